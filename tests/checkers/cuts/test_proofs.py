"""A forged proof is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from checkers.cuts import Cut, Given, Operation, check, verify, verify_logs
from checkers.cuts.trace import LifeRows, trace_of
from tests.checkers.cuts import scripts

CONSISTENT = {"n1": "+a>n2 *k1 +b>n2", "n2": "-a *k1 -b"}
INCONSISTENT = {"n1": "+a>n2 *k1 +b>n2 +c>d", "n2": "-a -b *k1", "d": "-c +e>n2"}


def _at(node: str, position: float) -> dict[str, Any]:
    return {"node": node, "life": 1, "position": position}


def _inside(n1: Any, n2: Any) -> dict[str, Any]:
    return {"kind": "frontier", "inside": [["n1", 1, n1], ["n2", 1, n2]]}


MESSAGES: dict[str, tuple[Mapping[str, str], str, dict[str, Any]]] = {
    "a frontier elsewhere": (CONSISTENT, "valid", _inside(3, 1)),
    "a frontier of other nodes": (CONSISTENT, "valid", {"kind": "frontier", "inside": [["n1", 1, 1]]}),
    "rows that are not there": (CONSISTENT, "valid", _inside(1, 9)),
    "a frontier where there is none": (
        INCONSISTENT,
        "valid",
        {"kind": "frontier", "inside": [["n1", 1, 1], ["n2", 1, 2], ["d", 1, 0]]},
    ),
    "a witness for a right cut": (CONSISTENT, "valid", {"kind": "message", "path": []}),
    "a frontier for a wrong cut": (CONSISTENT, "invalid", _inside(1, 1)),
    "a message that was sent inside": (
        CONSISTENT,
        "invalid",
        {"kind": "message", "path": [_at("n1", 0), _at("n2", 0)]},
    ),
    "a message that was received outside": (
        CONSISTENT,
        "invalid",
        {"kind": "message", "path": [_at("n1", 2), _at("n2", 2)]},
    ),
    "a receive of another message": (
        INCONSISTENT,
        "invalid",
        {"kind": "message", "path": [_at("n1", 2), _at("n2", 0)]},
    ),
    "a hop that is left out": (
        INCONSISTENT,
        "invalid",
        {"kind": "message", "path": [_at("n1", 3), _at("d", 0), _at("n1", 2), _at("n2", 1)]},
    ),
    "a way that ends at a node without a side": (
        INCONSISTENT,
        "invalid",
        {"kind": "message", "path": [_at("n1", 3), _at("d", 0)]},
    ),
    "no way": (INCONSISTENT, "invalid", {"kind": "message", "path": []}),
    "a place that is none": (
        INCONSISTENT,
        "invalid",
        {"kind": "message", "path": [_at("n1", 99), _at("n2", 1)]},
    ),
    "another form": (INCONSISTENT, "invalid", {"kind": "message"}),
    "infinitely many rows": (CONSISTENT, "valid", _inside(1, float("inf"))),
    "a fraction of a row": (CONSISTENT, "valid", _inside(1.0, 1)),
    "more than a whole row": (CONSISTENT, "valid", _inside(1.9, 1)),
    "rows as a text": (CONSISTENT, "valid", _inside("1", 1)),
    "a place between two rows": (
        INCONSISTENT,
        "invalid",
        {"kind": "message", "path": [_at("n1", 2.5), _at("n2", 1)]},
    ),
    "a truth for a number": (CONSISTENT, "valid", _inside(True, 1)),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_a_forged_proof_about_messages_is_refused(name: str) -> None:
    """A proof that is accepted whatever it says."""
    script, result, proof = MESSAGES[name]
    with pytest.raises(verify.RefusedError):
        verify.check(scripts.trace(script), "k1", result, proof)


def test_a_row_is_lost_since_the_time_of_the_row_before_it_though_that_is_the_first_nanosecond() -> None:
    """A loss would seem to be later than it may be, and so behind the end of a cut."""
    rows = [["send", number, "n2", "finish", None, now] for number, now in ((1, 0), (3, 9))]
    trace = trace_of([LifeRows(node="n1", life=1, rows=rows, time_ns=5)])
    ((_, behind, since, until),) = verify._losses(trace)
    assert (behind, since, until) == (0, 0, 9)


def test_a_proof_about_another_cut_is_refused() -> None:
    """A proof that does not look at the cut."""
    trace = scripts.trace(CONSISTENT)
    proof = check(Given(cuts=[Cut(id="k1")], trace=trace)).of("messages", "k1").proof
    assert proof is not None
    verify.check(trace, "k1", "valid", proof)
    with pytest.raises(verify.RefusedError):
        verify.check(trace, "k2", "valid", proof)


HELD = {"n1": "t1 S:k1 F:k1 t3", "n2": "S:k1 t1 F:k1+t1 t3"}
TORN = {"n1": "t1 S:k1 F:k1 t3", "n2": "S:k1 t1 F:k1 t3"}
GAP = {"n1": "t1 t3 S:k1 F:k1-t1", "n2": "t1 t3 S:k1 F:k1-t1"}
MARKS = {"kind": "sides", "marks": {"n1": [1, 2], "n2": [0, 2]}}
ASKED = (
    Operation(xid="t1", process=1, invoked_ns=10, completed_ns=20, ok=True),
    Operation(xid="t3", process=1, invoked_ns=1, completed_ns=9, ok=True),
)

LOGS: dict[str, tuple[Mapping[str, str], str, str, dict[str, Any]]] = {
    "marks elsewhere": (
        HELD,
        "transactions",
        "valid",
        {"kind": "sides", "marks": {"n1": [0, 2], "n2": [0, 2]}},
    ),
    "a server left out": (HELD, "transactions", "valid", {"kind": "sides", "marks": {"n1": [1, 2]}}),
    "marks of no server": (HELD, "transactions", "valid", {"kind": "sides", "marks": [[1, 2], [0, 2]]}),
    "torn, and said to be held": (TORN, "transactions", "valid", MARKS),
    "held, and said to be torn": (
        HELD,
        "transactions",
        "invalid",
        {"kind": "torn", "xid": "t1", "has": "n1", "lacks": "n2"},
    ),
    "torn the other way": (
        TORN,
        "transactions",
        "invalid",
        {"kind": "torn", "xid": "t1", "has": "n2", "lacks": "n1"},
    ),
    "a node that takes no part": (
        {"n1": "t1@n1 S:k1 F:k1", "n2": "S:k1 F:k1"},
        "transactions",
        "invalid",
        {"kind": "torn", "xid": "t1", "has": "n1", "lacks": "n2"},
    ),
    "a transaction that is none": (
        TORN,
        "transactions",
        "invalid",
        {"kind": "torn", "xid": "t9", "has": "n1", "lacks": "n2"},
    ),
    "a gap, and said to be none": (
        GAP,
        "closure",
        "valid",
        {"kind": "sides", "marks": {"n1": [2, 3], "n2": [2, 3]}},
    ),
    "a gap the other way": (
        GAP,
        "closure",
        "invalid",
        {"kind": "gap", "node": "n1", "key": "x", "earlier": "t3", "later": "t1"},
    ),
    "a gap where there is none": (
        HELD,
        "closure",
        "invalid",
        {"kind": "gap", "node": "n1", "key": "x", "earlier": "t1", "later": "t3"},
    ),
    "a gap that a torn transaction makes": (
        {"n1": "t1 t3 S:k1 F:k1-t1", "n2": "t1 t3 S:k1 F:k1"},
        "closure",
        "invalid",
        {"kind": "gap", "node": "n1", "key": "x", "earlier": "t1", "later": "t3"},
    ),
    "an inversion, and said to be none": (HELD, "external-causality", "valid", MARKS),
    "an inversion the other way": (
        HELD,
        "external-causality",
        "invalid",
        {"kind": "inversion", "earlier": "t1", "later": "t3"},
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_a_forged_proof_about_logs_is_refused(name: str) -> None:
    """A proof that is accepted whatever it says."""
    script, level, result, proof = LOGS[name]
    with pytest.raises(verify.RefusedError):
        verify_logs.check(scripts.logs(script), ("n1", "n2"), "k1", level, result, proof, ASKED)


def test_the_log_of_no_baseline_server_refuses_nothing() -> None:
    """A right verdict on a cut is refused for the log of a server that came later."""
    held = "t1 t3 S:k1 F:k1"
    logs = scripts.logs({"n1": held, "n2": held, "n3": "t1 t3 S:k1 F:k1-t1"})
    marks = {"n1": [2, 3], "n2": [2, 3]}
    proof = {"kind": "sides", "marks": marks}
    verify_logs.check(logs, ("n1", "n2"), "k1", "closure", "valid", proof)
    proof = {"kind": "sides", "marks": {**marks, "n3": [2, 3]}}
    with pytest.raises(verify.RefusedError, match="is on both sides"):
        verify_logs.check(logs, ("n1", "n2", "n3"), "k1", "transactions", "valid", proof)
