"""Blocks that begin alike give the rows that unpacking each of them gives."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.iproto import recurring
from nodes.iproto.errors import MalformedFrame
from nodes.iproto.messages import Row, Type
from nodes.iproto.packing import pack
from nodes.iproto.recurring import Recurring
from nodes.iproto.rows import packed_insert, packed_row, rows_of

SYSTEM = st.tuples(st.sampled_from((272, 280, 288, 511)), st.tuples(st.integers(0, 2), st.sampled_from("ab")))
USER = st.tuples(st.sampled_from((512, 513)), st.tuples(st.integers(0, 2), st.integers(0, 300)))
OTHERS = st.sampled_from(
    (
        Row(Type.NOP.value, 1, 5, 0.0, 5),
        Row(Type.RAFT.value, 0, 0, 0.0, 0, group_id=1, body={0: 3}),
        Row(Type.DELETE.value, 1, 7, 2.5, 7, body={0x10: 280, 0x20: (1,)}),
    )
)
STAMPS = st.sampled_from((0.0, 1.5, 1e9, 1.7e9 + 1.3e-9, 4.0 + 203 / 2**8))
SNAPSHOTS = st.lists(
    st.tuples(st.lists(SYSTEM, max_size=4), st.lists(USER, max_size=3), st.lists(OTHERS, max_size=2), STAMPS, STAMPS),
    min_size=1,
    max_size=6,
)  # fmt: skip


def block(system: list[object], users: list[object], others: list[Row], early: float, late: float) -> bytes:
    pairs = [*system, *users]
    rows = [packed_insert(pair, place, early if place % 2 else late) for place, pair in enumerate(pairs)]  # type: ignore[arg-type]
    return b"".join((*rows, *(packed_row(row) for row in others)))


def wanted(type_: int, body: dict[int, object]) -> bool:
    return type_ != Type.INSERT or body.get(0x10) in (280, 512)


def timeless(rows: list[Row]) -> list[Row]:
    return [replace(row, timestamp=0.0) for row in rows]


@given(snapshots=SNAPSHOTS)
def test_blocks_that_begin_alike(
    snapshots: list[tuple[list[object], list[object], list[Row], float, float]],
) -> None:
    """Broken, the definition of a space or a member in a snapshot is another node's, or an older one."""
    reads = Recurring(wanted)
    for snapshot in [*snapshots, *snapshots]:
        payload = block(*snapshot)
        assert timeless(reads(payload)) == timeless(rows_of(payload, wanted))


def test_what_is_known_is_not_unpacked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken, each of a thousand snapshots is unpacked in full, which takes a fifth of a seed's time."""
    system = [(280, (number, "x")) for number in range(50)]
    reads = Recurring(lambda _, body: True)
    reads(block([], [(512, (1, 1))], [], 1.5, 2.5))
    first = reads(block(system, [(512, (1, 2))], [], 1.5, 2.5))
    monkeypatch.setattr(Recurring, "_learnt", None)
    again = reads(block(system, [(512, (1, 3))], [], 3.5, 4.5))
    assert [row.body for row in again[:-1]] == [row.body for row in first[:-1]]
    assert again[-1].body[0x21] == (1, 3)
    with pytest.raises(TypeError):
        reads(block([*system[:-1], (280, (49, "y"))], [], [], 3.5, 4.5))


def test_a_short_block_does_not_hide_what_longer_ones_begin_with() -> None:
    """Broken, 600 rows of each snapshot are unpacked again and again, because a snapshot of one row came first."""
    system: list[object] = [(280, (number, "x")) for number in range(50)]
    unpacked: list[object] = []
    reads = Recurring(lambda _, body: not unpacked.append(body))  # type: ignore[func-returns-value]
    reads(block(system[:1], [], [], 1.5, 2.5))
    first = reads(block(system, [(512, (1, 2))], [], 1.5, 2.5))
    unpacked.clear()
    again = reads(block(system, [(512, (1, 3))], [], 3.5, 4.5))
    assert len(unpacked) == 1
    assert [row.body for row in again[:-1]] == [row.body for row in first[:-1]]


def test_what_is_met_often_stays_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken, a few odd snapshots make the usual beginning unknown, though it comes all the time."""
    reads = Recurring(wanted)
    usual = block([(280, (1, "usual"))], [], [], 1.5, 2.5)
    for number in range(2 * recurring.KNOWN_MAX):
        reads(usual)
        reads(block([(280, (2, f"odd {number}"))], [], [], 1.5, 2.5))
    monkeypatch.setattr(Recurring, "_learnt", None)
    assert [row.body[0x21] for row in reads(usual)] == [(1, "usual")]


def test_an_lsn_with_the_bytes_of_a_timestamp() -> None:
    """Broken, the last byte of the lsn is taken for the time, and a later row has the lsn of an earlier one."""
    reads = Recurring(wanted)
    for lsn in (0x04CB00, 0x04CB01):
        assert [row.lsn for row in reads(packed_insert((280, (1, "a")), lsn, 1.5))] == [lsn]


@pytest.mark.parametrize("cut", [1, 20, 45])
def test_what_is_cut_off_is_refused(cut: int) -> None:
    """Broken, a damaged block counts as a shorter one."""
    payload = block([(280, (1, "a")), (288, (2, "b"))], [(512, (1, 2))], [], 1.5, 2.5)
    reads = Recurring(wanted)
    reads(payload)
    for other in (payload[:-cut], payload[:-cut]):
        with pytest.raises(MalformedFrame):
            reads(other)


def test_what_is_wrong_with_a_timestamp_is_said_shortly() -> None:
    """Broken, a damaged row puts all that stands in it, megabytes perhaps, into one line."""
    with pytest.raises(MalformedFrame) as refused:
        rows_of(pack({0: 2, 4: "x" * 10_000}) + pack({16: 280, 33: [1]}))
    assert len(str(refused.value)) < 200
