"""What a person is told about a file: in one line, and never more than is true."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.iproto import xlog
from nodes.iproto.inspection import inspect
from nodes.iproto.messages import Row, Type

INSTANCE = "7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7"
HEADER = xlog.encode_header("XLOG", INSTANCE, {1: 7}, server_version="3.2.0")
LATER = [
    Row(Type.PROMOTE.value, 1, 8, 1.5, 8, body={0x02: 0, 0x03: 0, 0x53: 2}),
    Row(Type.REPLACE.value, 1, 9, 1.5, 9, wait_sync=True, wait_ack=True, body={0x10: 512, 0x21: ("k", 1)}),
    Row(Type.CONFIRM.value, 1, 10, 1.5, 10, body={0x02: 1, 0x03: 9}),
    Row(Type.RAFT.value, 0, 1, 1.5, 1, group_id=1, body={0: 3, 1: 1}),
    Row(Type.DEMOTE.value, 1, 11, 1.5, 11, body={0x02: 1, 0x03: 9, 0x53: 4}),
]
BLOCKS = [xlog.encode_block([row]) for row in LATER]
LOG = HEADER + b"".join(BLOCKS)


def test_a_log_of_a_later_version_is_read_and_named_so() -> None:
    """Broken, logs of 3.x with elections would look damaged, or as if 2.6 could take them."""
    assert xlog.decode(LOG).rows == tuple(LATER)
    found = inspect(LOG)
    assert found.is_sound
    assert found.sentence == (
        f"log of 3.2.0 from {{1: 7}} on, which 2.6 cannot read: good: 5 rows in {len(LOG)} bytes, "
        "not closed (its process was killed, or still writes)"
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", ("damaged", "the file is empty")),
        (b"nothing of the sort", ("expected an xlog", "none of 19 bytes is good")),
        (LOG[:-3], ("as a crash leaves it", "the 4 rows in the first")),
        (LOG + bytes(20), ("20 zeros", "the 5 rows in the first")),
        (HEADER + b"\xd5\xba\x0b\xab" + bytes(60) + BLOCKS[1], ("more good rows stand behind the damage",)),
        (HEADER + xlog.encode_packed([b"\x91" * 1000 + b"\x90"]), ("holds no rows", "a list that is nested")),
        (
            xlog.encode_header("SNAP", INSTANCE, {}) + xlog.encode_block(LATER[1:2]),
            ("without its end marker is not whole", "the 1 rows in all"),
        ),
    ],
)
def test_a_damaged_file_is_told_in_one_line(data: bytes, words: tuple[str, ...]) -> None:
    """Broken, a person would restore from a file that has lost its end, or give up one that is good."""
    found = inspect(data)
    assert not found.is_sound
    assert "\n" not in found.sentence
    for word in words:
        assert word in found.sentence


@pytest.mark.parametrize("kind", ["XLOG", "SNAP", "VYLOG", "RUN"])
def test_what_a_damaged_header_holds_is_printed_as_letters(kind: str) -> None:
    """Broken, a file that a bit has changed moves the cursor of a terminal, or its line is two."""
    header = HEADER.replace(b"XLOG", kind.encode()).replace(b"3.2.0", b"3\x1b[2J\x0b0")
    assert inspect(header).sentence.isprintable()
    assert r"of 3\x1b[2J\x0b0" in inspect(header).sentence


@given(data=st.binary(max_size=200), place=st.integers(0, 10_000), keep=st.integers(0, 10_000))
def test_any_bytes_are_told_of(data: bytes, place: int, keep: int) -> None:
    """Broken, the one tool for damaged files is stopped by one."""
    spoilt = bytearray(LOG[: keep % (len(LOG) + 1)])
    if spoilt:
        spoilt[place % len(spoilt)] ^= 0x41
    for found in (inspect(data), inspect(bytes(spoilt))):
        assert found.sentence.isprintable()
