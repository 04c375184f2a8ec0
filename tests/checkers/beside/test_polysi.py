"""Our transactional checker beside the tests of PolySI: each history is snapshot isolated with sessions, or is not.

Source: `TestVerifier.java` of https://github.com/hengxin/PolySI-PVLDB2023-Artifacts at f16891b0. The histories are
written anew in the notation of `elle_cases`. docs/checkers-beside-others.md has the table.
"""

from __future__ import annotations

import pytest

from checkers import transactional
from tests.checkers.beside import pages
from tests.checkers.beside.elle_cases import registers
from tests.checkers.brute import isolation

MODEL = "strong-session-snapshot-isolation"
INVALID = {
    "read committed": "0: wx1 | 0: wx2 wy2 ; 1: ry2 rx1",
    "repeatable read": "0: wx1 | 0: wx2 ; 1: rx1 rx2",
    "read my writes": "0: wx1 wy1 ; 1: rx1 wy2 | 1: rx1 ry1",
    "repeatable read of two keys": "wx1 wy1 ; wx2 wy2 ; rx1 ry2",
    "causal": "wx1 ; rx2 wy1 ; rx1 wx2 ; rx1 ry1",
    "prefix": "wx1 wy1 ; rx1 wx2 ; rx2 ry1 ; ry1 wy2 ; ry2 rx1",
    "conflict": "wx1 ; rx1 wx2 ; rx1 wx3",
    "TiDB": "wx0 wy0 wz0 ; rx0 wy1 wz1 ; ry0 wx1 wz2",
    "internal 1": "wx0 wx1 rx0",
    "internal 2": "wx0 wx1 rx1 rx0",
    "internal 3": "wx0 rx0 wx1 rx0",
    "internal 4": "wx1 rx0",
    "long fork": "0: wx0 wy0 | 0: wx2 ; 1: wx1 ; 2: wy1 ; 3: rx1 ry0 ; 4: rx0 ry1",
    "own write not read": "wx0 ; wx1 rx0",
}
VALID = {
    "write skew": "wx1 wy1 ; rx1 ry1 wx2 ; rx1 ry1 wy2",
    "the example of the paper": "0: ww1 | 0: wx1 ww2 ry1 ; 1: wz1 | 1: wz2 rw1 ; 2: wy1 | 2: wx2 wy2 rz1",
}
ALL = {**dict.fromkeys(INVALID, "invalid"), **dict.fromkeys(VALID, "valid")}


@pytest.mark.parametrize("name", ALL)
def test_what_polysi_says(name: str) -> None:
    """We would contradict PolySI, or the definition, on a history of its own tests."""
    history = registers(name, (INVALID | VALID)[name]).history()
    verdict = transactional.check(history, workload="rw-register", model=MODEL)
    assert verdict.result == ALL[name]
    assert isolation.allows(MODEL, history, workload="rw-register") is (ALL[name] == "valid")


def test_what_has_no_execution_says_no_more_than_that() -> None:
    """The page would say that all orders were tried, where the versions of single keys decided without a search."""
    history = registers("TiDB", INVALID["TiDB"]).history()
    (witness,) = transactional.check(history, workload="rw-register", model="serializable").witnesses
    assert witness.explanation == (
        "No execution that is serializable gives the answers of these 3 transactions.",
    )


def test_the_table_in_the_docs() -> None:
    """The docs would have another figure than these tests."""
    assert pages.row("histories of PolySI's tests") == [str(len(ALL))] * 2
