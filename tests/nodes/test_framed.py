"""Frames: bytes that are no messages end a link with one sentence, and the messages before them count."""

from __future__ import annotations

import pytest

from nodes.framed import LONGEST, BrokenFrames, FramedCodec

GOOD = FramedCodec().encode(["status", 1])


def frame(content: bytes) -> bytes:
    return len(content).to_bytes(4) + content


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (frame(b"\x91" * 1_020 + b"\x90"), "a list that is nested too deep"),
        (frame(b"\x92\xa1a\xa1b"), r"expected \[word, number, …\], got \['a', 'b'\]"),
        (frame(b"\xc1"), "expected one msgpack value"),
        ((LONGEST + 1).to_bytes(4), f"more than {LONGEST}"),
    ],
    ids=["deep", "no number", "no msgpack", "long"],
)
def test_what_is_no_message_breaks_the_framing(bad: bytes, why: str) -> None:
    """Broken, a client ends with a traceback, or loses the answers before the damage."""
    _, decoder = FramedCodec().accepted()
    assert decoder.feed(GOOD) == [["status", 1]]
    with pytest.raises(BrokenFrames, match=why) as caught:
        decoder.feed(GOOD + bad)
    assert caught.value.messages == [["status", 1]]
