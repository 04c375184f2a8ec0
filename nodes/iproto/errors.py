"""Errors in bytes that came from outside.

    FormatError
    ├── ProtocolError          a link: end it, nothing after this point can be trusted
    │   ├── MalformedGreeting    the other end is no Tarantool, or no binary port of one
    │   ├── MalformedFrame       a frame, or a block or record of a file, is not msgpack, or its fields are missing or
    │   │                        of the wrong type; readers of files turn it into damage
    │   └── FrameTooLong         a frame is longer than a decoder is willing to keep
    └── XlogError              a file: it is no xlog at all, or its text header cannot be used

A request that is well framed but unknown or incomplete is not an error here: it is a message (`messages.Unknown`)
and gets an answer. Neither is a torn or damaged xlog: it is a value (`xlog.Xlog.damage`).
"""

from __future__ import annotations

from nodes.iproto.messages import Message


class FormatError(Exception):
    """The root: the bytes do not have the expected format."""


class ProtocolError(FormatError):
    """`messages`: the messages that the same `feed` had decoded before the fault, in order."""

    messages: tuple[Message, ...] = ()


class MalformedGreeting(ProtocolError):
    pass


class MalformedFrame(ProtocolError):
    pass


class FrameTooLong(ProtocolError):
    pass


class XlogError(FormatError):
    pass


def shown(value: object) -> str:
    """The beginning of a value, for a message. Python cannot print all that is nested as deep as msgpack allows."""
    try:
        return f"{value!r:.80}"
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deep to be shown"
