"""Scripted lives of a node, each with a crash at every call that changes or syncs a file, and again in the recovery.

A life has what touches files: writes, rotation, snapshots, what is thrown away behind them, terms and votes, a join
with a snapshot that replaces all, a restart, and calls that fail.
"""

from __future__ import annotations

from functools import cache

import pytest

from nodes.iproto import xlog
from nodes.qsync import snapshot
from tests import examples
from tests.nodes.crashes.explorer import Explorer, every_byte

ALONE = (
    "node n1 nodes=1 quorum=1 elections=manual file=300 keep=1",
    "c1 promote",
    "written all",
    "c1 replace notes a 1",
    "written all",
    "c1 replace register b 2",
    "c1 replace notes c 3",
    "written all",
    "c1 snapshot",
    "written all",
    "c1 replace notes d 4",
    "c1 replace notes e 5",
    "written all",
    "restart",
    "written all",
    "c1 promote",
    "written all",
    "c1 snapshot",
    "c1 replace notes f 6",
    "written all",
)
IS_TOO_FAR_BEHIND = (
    "n1 is lost",
    "beat",
    "n1 takes the call",
    "n1 refuses with 219",
    "beat",
    "n1 takes the call",
)
"""What it needs is gone from the log of the other, so it asks to join anew."""
JOINS_ANEW = (
    "node n2 elections=voter file=200",
    "n1 answers",
    "n1 rows 1/1 PROMOTE 2 | 1/2 REPLACE notes a 1",
    "written all",
    "n1 rows 1/3 REPLACE notes b 2",
    "written all",
    "n1 is candidate in term 4 with {1: 3}",
    "written all",
    *IS_TOO_FAR_BEHIND,
    "n1 is writable at {1: 9}",
    "n1 gives all up to 9",
    "written all",
    "beat",
    "n1 answers",
    "n1 rows 1/10 REPLACE notes c 3",
    "written all",
    "n1 is candidate in term 6 with {1: 10}",
    "written all",
)
JOINS = (
    "newcomer n4",
    "n1 takes the call",
    "n1 is writable at {1: 9}",
    "n1 gives all up to 9",
    "written all",
    "beat",
    "n1 answers",
    "n1 rows 1/10 REPLACE notes b 2",
    "written all",
)
FOLLOWS = (
    "node n2 elections=voter file=250 keep=1",
    "n1 answers",
    "n1 rows 1/1 PROMOTE 2 | 1/2 CONFIRM 1",
    "written all",
    "n3 answers",
    "n3 subscribes 2",
    "n1 rows 1/3 REPLACE register a 1 wait-sync wait-ack",
    "n3 is candidate in term 3 with {1: 3}",
    "c1 snapshot",
    "written",
    "n1 rows 1/4 CONFIRM 3 | 1/5 REPLACE notes b 2 + 1/6 REPLACE notes c 3 | 1/7 REPLACE notes d 4",
    "written all",
    "n3 acks 7 of n1",
    "n1 rows 1/8 REPLACE notes e 5",
    "c1 replace near f 6",
    "written",
    "c1 snapshot",
    "n1 rows 1/9 REPLACE notes g 7",
    "written all",
    "restart",
    "c1 replace near h 8",
    "written all",
    "c1 snapshot",
    "written all",
)
JOINS_TWICE = (
    *JOINS_ANEW,
    *IS_TOO_FAR_BEHIND,
    "n1 is writable at {1: 20}",
    "n1 gives all up to 20",
    "written all",
    "restart",
    "written all",
    "c1 replace near d 4",
    "written all",
)
NIGHTS = 20
LIVES = {
    "alone": ALONE,
    "follows": FOLLOWS,
    "joins anew": JOINS_ANEW,
    "joins twice": JOINS_TWICE,
    "joins": JOINS,
}


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read again and again here, and most are the same."""
    monkeypatch.setattr(xlog, "decode", cache(xlog.decode))
    monkeypatch.setattr(snapshot, "read", cache(snapshot.read))


def behind_a_call_that_fails(name: str, explorer: Explorer, *, every: int = 1) -> None:
    for number in range(every // 2, Explorer(depth=0).play(LIVES[name]), every):
        explorer.play(LIVES[name], failing=number)


@pytest.mark.parametrize(
    "name",
    [
        "alone",
        "joins anew",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("follows", "joins", "joins twice")),
    ],
)
def test_a_crash_at_any_moment_loses_nothing(name: str) -> None:
    """Broken, a node that was killed or lost its power, at its work or in its recovery, does not start, or has lost
    rows, a term or a vote that others were told of."""
    explorer = Explorer(depth=1)
    explorer.play(LIVES[name])
    assert explorer.starts > 200


@pytest.mark.parametrize("name", [pytest.param("alone", marks=pytest.mark.long), "joins anew"])
def test_a_crash_behind_some_calls_that_failed_loses_nothing(name: str) -> None:
    """Broken, what a failed write has left in the folder spoils the next start, or hides what was written since."""
    behind_a_call_that_fails(name, Explorer(depth=0), every=7)


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.long) for name in ("alone", "joins", "joins anew")),
        *(pytest.param(name, marks=pytest.mark.nightly) for name in ("follows", "joins twice")),
    ],
)
def test_a_crash_behind_any_call_that_failed_loses_nothing(name: str) -> None:
    """As above, whichever call it is."""
    behind_a_call_that_fails(name, Explorer(depth=0))


@pytest.mark.nightly
@pytest.mark.parametrize("name", LIVES)
def test_no_three_crashes_lose_anything(name: str) -> None:
    """As above; a recovery's recovery crashes, too."""
    Explorer(depth=2).play(LIVES[name])


@pytest.mark.nightly
@pytest.mark.parametrize("name", LIVES)
def test_a_write_that_is_torn_at_any_byte_loses_nothing(name: str) -> None:
    """As above. In twenty nights every byte has its turn: all of them take an hour for each life."""
    explorer = Explorer(depth=1, places=every_byte, one_in=NIGHTS, which=examples.night)
    explorer.play(LIVES[name])
    assert explorer.starts > 200


@pytest.mark.nightly
@pytest.mark.parametrize("name", LIVES)
def test_no_two_crashes_behind_a_call_that_failed_lose_anything(name: str) -> None:
    """As above, with a crash in the recovery."""
    behind_a_call_that_fails(name, Explorer(depth=1))
