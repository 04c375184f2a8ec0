"""Scripted lives of a node, each with a crash at every call that changes or syncs a file, and again in the recovery.

A life has what touches files: writes, rotation, snapshots, what is thrown away behind them, terms and votes, a join
with a snapshot that replaces all, a restart, and calls that fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from nodes.iproto import xlog
from tests.nodes.crashes.explorer import Explorer

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
JOINS_ANEW = (
    "node n2 elections=voter file=200",
    "n1 answers",
    "n1 rows 1/1 PROMOTE 2 | 1/2 REPLACE notes a 1",
    "written all",
    "n1 rows 1/3 REPLACE notes b 2",
    "written all",
    "n1 is candidate in term 4 with {1: 3}",
    "written all",
    "n1 is lost",
    "beat",
    "n1 takes the call",
    "n1 refuses with 219",
    "beat",
    "n1 takes the call",
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
LIVES = {"alone": ALONE, "joins anew": JOINS_ANEW, "joins": JOINS}


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files are read again and again here, and most are the same."""
    kept = cache(xlog.decode)
    monkeypatch.setattr(xlog, "decode", kept)
    yield
    kept.cache_clear()


@pytest.mark.parametrize("name", LIVES)
def test_a_crash_at_any_moment_loses_nothing(name: str) -> None:
    """Broken, a node that was killed or lost its power does not start, or has lost rows, a term or a vote that others
    were told of."""
    Explorer(depth=0).play(LIVES[name])


@pytest.mark.nightly
@pytest.mark.parametrize("name", LIVES)
def test_a_crash_in_a_recovery_loses_nothing(name: str) -> None:
    """Broken, a node that was killed or lost its power does not start, or has lost rows, a term or a vote that others
    were told of."""
    Explorer(depth=1).play(LIVES[name])


@pytest.mark.nightly
@pytest.mark.parametrize("name", LIVES)
def test_a_crash_behind_a_call_that_failed_loses_nothing(name: str) -> None:
    """Broken, what a failed write has left in the folder spoils the next start, or hides what was written since."""
    explorer = Explorer(depth=0)
    calls = explorer.play(LIVES[name])
    for number in range(calls):
        explorer.play(LIVES[name], failing=number)
