"""How the rows behind a PROMOTE without a mark decide whether it waits: each rule of `checkers.logs.wal.marks`."""

from __future__ import annotations

import pytest

from checkers.logs.wal.marks import marks
from checkers.logs.wal.record import Record


def promote(origin: int, lsn: int, owner: int, until: int, *, waits: bool | None = None) -> Record:
    return Record(kind="promote", origin=origin, lsn=lsn, owner=owner, until=until, waits=waits, file="log")


def confirm(origin: int, lsn: int, until: int) -> Record:
    return Record(kind="confirm", origin=origin, lsn=lsn, owner=origin, until=until, file="log")


OF_ANOTHER = promote(1, 10, 3, 8)
"""Node 1 takes over node 3's queue."""
OF_ITS_OWN = promote(1, 10, 1, 8)
"""Node 1 owned the queue already."""


@pytest.mark.parametrize(
    ("earlier", "row", "waits"),
    [
        (OF_ANOTHER, confirm(1, 11, 10), True),
        (OF_ANOTHER, confirm(1, 11, 9), False),
        (OF_ANOTHER, promote(2, 4, 1, 10), True),
        (OF_ANOTHER, promote(2, 4, 1, 12), False),
        (OF_ANOTHER, promote(2, 4, 3, 8), True),
        (OF_ANOTHER, promote(2, 4, 2, 8), None),
        (OF_ANOTHER, confirm(2, 4, 10), None),
        (OF_ANOTHER, Record(kind="write", origin=1, lsn=11, file="log"), False),
        (OF_ITS_OWN, promote(2, 4, 1, 10), True),
        (OF_ITS_OWN, promote(2, 4, 1, 7), True),
        (OF_ITS_OWN, promote(2, 4, 1, 8), False),
        (OF_ITS_OWN, promote(2, 4, 1, 12), False),
    ],
)
def test_the_row_behind_it_decides(earlier: Record, row: Record, waits: bool | None) -> None:
    """A PROMOTE of real Tarantool is replayed the wrong way: rows before it are confirmed too early, or never."""
    for otherwise in (True, False):
        said = marks([earlier, row], "synchronous" if otherwise else "at once")
        assert said[1, 10] is (otherwise if waits is None else waits)


def test_a_mark_decides_alone() -> None:
    """A row that says itself whether it waits is read by its neighbours instead."""
    for waits in (True, False):
        said = marks([promote(1, 10, 3, 8, waits=waits), promote(2, 4, 1, 10 + waits)], "at once")
        assert said[1, 10] is waits
