"""What an operator of cuts has left in a history: which faults may have kept a cut from finishing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from checkers.history.faults import FaultSpan
from harness.systems.cut_lines import NOT_OVER, AskedCut, times_of

AFTER_NS = 10


def fault(start_ns: int, end_ns: int | None) -> FaultSpan:
    return FaultSpan(id=3, name="kill", does="kill", start_index=0, start_ns=start_ns, end_ns=end_ns)


@pytest.mark.parametrize(
    ("span", "counts"),
    [
        (fault(0, 50), True),
        (fault(0, 100 - AFTER_NS), True),
        (fault(0, 99 - AFTER_NS), False),
        (fault(150, None), True),
        (fault(200, 300), True),
        (fault(201, 300), False),
    ],
)
def test_a_fault_counts_until_a_while_after_its_end(span: FaultSpan, counts: bool) -> None:
    """If it failed, a cut that never finishes would have a cause in any run with faults; or a right one be accused."""
    history: Any = SimpleNamespace(faults=(span,))
    asked = AskedCut(
        cut="c", node="n1", asked_ns=60 if span.end_ns == 50 else 100, ended_ns=200, value={"state": "failed"}
    )
    assert asked.causes(history, AFTER_NS) == (["fault 3 (kill)"] if counts else [])


def test_a_cut_that_did_not_end_has_the_end_of_the_run_as_its_cause() -> None:
    """If it failed, the last cut of a run would be a violation; or one that a node refused."""
    history: Any = SimpleNamespace(faults=())
    assert AskedCut(cut="c", node="n1", asked_ns=1, value={}).causes(history, 0) == [NOT_OVER]
    silent = AskedCut(cut="c", node="n1", asked_ns=1, ended_ns=2, value={"state": "unknown"})
    assert silent.causes(history, 0) == [], "no node told its end in time, and the run went on"
    refused = AskedCut(cut="c", node="n1", asked_ns=1, ended_ns=2, value={"state": "refused", "why": "busy"})
    assert refused.causes(history, 0) == ["it was refused: busy"]


def test_a_cut_lasts_from_its_request_to_its_end() -> None:
    """If it failed, verdict and page would show when a cut was asked for as its end."""
    ended = AskedCut(cut="c", node="n1", asked_ns=3, ended_ns=9, value={"named": 7})
    assert times_of([ended, AskedCut(cut="d", node="n1", asked_ns=5, value={})]) == {"7": (3, 9), "d": (5, 5)}
