"""The two kinds of clients.

| kind | what it is | where it runs |
|---|---|---|
| `MessageClient` | a pure conversation over messages; their bytes are those of a `Wire` | everywhere |
| `LibraryClient` | the library that the store's users use; one connection for each process and node | real clusters |

A client says which operations it `speaks`: types of `harness.clients.operations`. Which errors surely mean "not done"
is the client's knowledge. In doubt an operation that writes is `info`: a `fail` that happened after all is a false
alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import msgspec

from checkers.history.operation import EMPTY, NOTHING_THERE
from harness.clients.operations import Asked, Outcome
from harness.clients.reply import Reply


class Send(msgspec.Struct, frozen=True, gc=False):
    """A message to a node; the conversation goes on with its `Reply`."""

    node: str
    message: object


Conversation = Generator[Send, Reply, Outcome]
"""Yields messages, gets the reply to each, and returns the outcome."""


@runtime_checkable
class MessageClient(Protocol):
    @property
    def speaks(self) -> frozenset[type]: ...

    def converse(self, asked: Asked, node: str, next_id: Callable[[], int]) -> Conversation:
        """The request for `node`; `next_id` gives numbers that no other request of the run has.

        Any exception but NotDone leaves the outcome of a write unknown.
        """
        ...


class NotDone(Exception):
    """Surely nothing happened: the store refused, or was not even asked."""


def in_words(error: Exception) -> str:
    """The error of an operation that a client ended like this; a record can hold it."""
    if isinstance(error, TimeoutError):
        return "timeout"
    text = str(getattr(error, "strerror", None) or error)
    if isinstance(error, NotDone):
        observes = text in (
            *EMPTY,
            "mismatch",
            NOTHING_THERE,
        )  # words by which a refusal counts as a fresh read
        text = f"not done: {text}" if observes else text or "not done"
    else:
        text = f"{type(error).__name__}: {text}"[:200] if text else type(error).__name__
    return text.encode(
        "utf-8", "backslashreplace"
    ).decode()  # a store's bytes may stand in it as lone surrogates


class Connected(Protocol):
    """A library's connection to one node. It is used by one thread, one call at a time.

    Retries, reconnects and addresses that the store advertises are switched off: they repeat operations, or go around
    the faults.
    """

    def invoke(self, asked: Asked) -> Outcome:
        """Any exception but NotDone leaves the outcome of a write unknown."""
        ...

    def status(self) -> Mapping[str, object]:
        """The node's report of itself; an exception if it does not answer."""
        ...

    def close(self) -> None:
        """Also called from another thread, to end a call that takes too long."""
        ...


@runtime_checkable
class LibraryClient(Protocol):
    @property
    def speaks(self) -> frozenset[type]: ...

    def connect(self, host: str, port: int, timeout_s: float) -> Connected:
        """Raises OSError if the node cannot be reached: then it received no request."""
        ...


@dataclass(frozen=True, slots=True)
class Library:
    """Implements `LibraryClient` by a class; its objects are the connections."""

    connects: Callable[[str, int, float], Connected]
    speaks: frozenset[type]

    def connect(self, host: str, port: int, timeout_s: float) -> Connected:
        return self.connects(host, port, timeout_s)


Client = MessageClient | LibraryClient
