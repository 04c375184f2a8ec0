"""Cuts of a replica set: each rule has a cut that it must reject, and close neighbours that it must accept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checkers.cuts.quorum_logs import Decision, NodeCut, SetCut, check

CONFIRM = Decision(kind="confirm", origin=1, lsn=3, owner=1, until=2)
PROMOTE = Decision(kind="promote", origin=2, lsn=1, owner=1, until=2, term=5)
FIRST, SECOND = (1, 1), (1, 2)


def _node(name: str, vclock: dict[int, int], **more: Any) -> NodeCut:
    return NodeCut(node=name, replica="abc".index(name) + 1, vclock=vclock, **more)


def _set(*nodes: NodeCut, **more: Any) -> SetCut:
    return SetCut(nodes=nodes, **{"members": 3, "quorum": 2, **more})


OWNER = _node("a", {1: 3}, decisions=[CONFIRM], statuses={SECOND: "confirmed"}, order=[SECOND])
HAS_ROW = _node("b", {1: 2}, statuses={SECOND: "pending"})
ELECTED = _node("b", {1: 2, 2: 1}, decisions=[PROMOTE], term=5, votes={5: 2})
VOTER = _node("c", {1: 2}, term=5, votes={5: 2})

RIGHT: dict[str, SetCut] = {
    "replicas lag behind the owner": _set(_node("a", {1: 3}), _node("b", {1: 1}), _node("c", {})),
    "local rows do not count": _set(_node("a", {0: 1, 1: 3}), _node("b", {0: 9, 1: 3}), _node("c", {})),
    "local rows of a node whose number is not known": _set(
        replace(_node("a", {0: 1, 1: 3}), replica=0), _node("b", {0: 9, 1: 3}), _node("c", {})
    ),
    "CONFIRM, and a quorum has the row": _set(OWNER, HAS_ROW, _node("c", {1: 1})),
    "CONFIRM on the replica as well": _set(OWNER, replace(OWNER, node="b", replica=2), _node("c", {1: 1})),
    "rolled back here and pending there": _set(
        _node("a", {1: 3}, statuses={SECOND: "rolled back"}), HAS_ROW, _node("c", {1: 2})
    ),
    "ROLLBACK needs no quorum": _set(
        _node("a", {1: 3}, decisions=[replace(CONFIRM, kind="rollback")]), _node("b", {1: 1}), _node("c", {})
    ),
    "PROMOTE with terms and votes": _set(_node("a", {1: 2}), ELECTED, VOTER, has_votes=True),
    "PROMOTE, and a voter went on to a later term": _set(
        _node("a", {1: 2}), ELECTED, replace(VOTER, term=7, votes={5: 2, 7: 1}), has_votes=True
    ),
    "PROMOTE without elections": _set(_node("a", {1: 2}, term=5), replace(ELECTED, votes={}), VOTER),
    "PROMOTE by hand in a term that no other node knows yet": _set(
        _node("a", {1: 2}), replace(ELECTED, votes={}), _node("c", {1: 2}, term=4)
    ),
    "PROMOTE by hand before elections": _set(
        _node("a", {1: 2}, term=5),
        replace(ELECTED, votes={}),
        _node("c", {1: 2}),
        has_votes=True,
        voted_since=5,
    ),
    "confirmed sets of which each contains the next": _set(
        _node("a", {1: 3}, order=[FIRST, SECOND]), _node("b", {1: 3}, order=[FIRST]), _node("c", {1: 2})
    ),
    "a log that begins behind what the others show": _set(
        _node("a", {1: 3}, order=[FIRST, SECOND]),
        _node("b", {1: 3}, order=[SECOND], begins={1: 1}),
        _node("c", {1: 2}, order=[FIRST]),
    ),
    "a marker behind which a log begins that shows no status of before": _set(
        _node("a", {1: 2}, statuses={SECOND: "confirmed"}),
        _node("b", {1: 2}, begins={1: 2}),
        _node("c", {1: 2}, begins={1: 2}),
        marker={1: 2},
    ),
    "a marker with equal statuses": _set(
        *(_node(name, {1: 2}, statuses={SECOND: "pending"}) for name in "abc"), marker={1: 2}
    ),
}

WRONG: dict[str, tuple[str, SetCut]] = {
    "a row before its origin": (
        "row-before-its-origin",
        _set(_node("a", {1: 1}), _node("b", {1: 2}), _node("c", {})),
    ),
    "the owner behind CONFIRM, the replicas before the row": (
        "confirmed-without-quorum",
        _set(OWNER, _node("b", {1: 1}), _node("c", {1: 1})),
    ),
    "the same with a log that is missing, and a larger quorum": (
        "confirmed-without-quorum",
        _set(OWNER, _node("b", {1: 1}), _node("c", {1: 1}), members=4, quorum=3),
    ),
    "two decisions under one lsn, of which the second has no quorum": (
        "confirmed-without-quorum",
        _set(OWNER, _node("b", {1: 3, 2: 9}, decisions=[replace(CONFIRM, owner=2, until=9)]), _node("c", {})),
    ),
    "CONFIRM before its row": (
        "decision-without-its-row",
        _set(_node("a", {1: 3}), _node("b", {1: 3}), _node("c", {1: 1}, decisions=[CONFIRM])),
    ),
    "PROMOTE over a row that too few have": (
        "confirmed-without-quorum",
        _set(_node("a", {1: 3}, term=5), ELECTED, _node("c", {}, term=5), members=3, quorum=3),
    ),
    "PROMOTE in a term that too few know": (
        "promoted-without-terms",
        _set(_node("a", {1: 2}), ELECTED, replace(VOTER, term=4), has_votes=True),
    ),
    "PROMOTE without the votes": (
        "promoted-without-votes",
        _set(_node("a", {1: 2}), ELECTED, replace(VOTER, votes={}), has_votes=True),
    ),
    "a vote for another": (
        "promoted-without-votes",
        _set(_node("a", {1: 2}), ELECTED, replace(VOTER, votes={5: 3}), has_votes=True),
    ),
    "confirmed here and rolled back there": (
        "confirmed-and-rolled-back",
        _set(OWNER, replace(HAS_ROW, statuses={SECOND: "rolled back"}), _node("c", {1: 1})),
    ),
    "confirmed sets side by side": (
        "confirmed-not-a-chain",
        _set(_node("a", {1: 2}, order=[FIRST]), _node("b", {1: 2}, order=[SECOND]), _node("c", {})),
    ),
    "confirmed in two orders": (
        "confirmed-not-a-chain",
        _set(
            _node("a", {1: 2}, order=[FIRST, SECOND]),
            _node("b", {1: 2}, order=[SECOND, FIRST]),
            _node("c", {}),
        ),
    ),
    "a node behind the marker": (
        "marker-differs",
        _set(_node("a", {1: 2}), _node("b", {1: 2}), _node("c", {1: 1}), marker={1: 2}),
    ),
    "a marker with two statuses": (
        "status-differs",
        _set(
            replace(HAS_ROW, node="a", replica=1),
            replace(HAS_ROW, statuses={SECOND: "confirmed"}),
            _node("c", {1: 2}, statuses={SECOND: "pending"}),
            marker={1: 2},
        ),
    ),
}

OPEN: dict[str, SetCut] = {
    "the log that would make the quorum is missing": _set(OWNER, _node("b", {1: 1})),
    "a log is missing": _set(OWNER, HAS_ROW),
    "the votes of that time are not in the log": _set(
        _node("a", {1: 2}), ELECTED, replace(VOTER, votes={}, begins={1: 1}), has_votes=True
    ),
    "the term of that time is not in the log": _set(
        _node("a", {1: 2}), ELECTED, replace(VOTER, term=0, begins={1: 1}), has_votes=True
    ),
    "no log": _set(),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_cut_is_accepted(name: str) -> None:
    """A false alarm."""
    verdict = check(RIGHT[name])
    assert verdict.result == "valid", verdict.summary


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_cut_is_rejected_by_its_rule(name: str) -> None:
    """A cut that loses or contradicts a decision passes."""
    rule, cut = WRONG[name]
    verdict = check(cut)
    assert verdict.result == "invalid", verdict.summary
    assert {witness.rule for witness in verdict.witnesses} == {rule}, verdict.summary
    count = "once" if len(verdict.witnesses) == 1 else "twice"
    assert verdict.summary == f"the rules are broken {count}; {verdict.witnesses[0].summary}"


@pytest.mark.parametrize("name", OPEN)
def test_a_cut_with_logs_missing_is_open(name: str) -> None:
    """A missing log is taken for one that has, or has not, what a rule asks for."""
    verdict = check(OPEN[name])
    assert verdict.result == "unknown"
    assert ("vacuous" in verdict.details) == (name == "no log")


@pytest.mark.parametrize("quorum", [0, 4])
def test_a_quorum_that_is_none_is_refused(quorum: int) -> None:
    """Rules that count nodes are passed by any cut."""
    with pytest.raises(ValueError, match="expected different nodes and a quorum of 3 members"):
        check(_set(OWNER, quorum=quorum))
