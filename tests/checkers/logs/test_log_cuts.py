"""Places in logs, and what a node had come to there; the rules of a cut have tests of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.cuts.quorum_logs import NodeCut
from checkers.logs.log_cuts import LogCuts, NoSuchPlace, Walk, spread
from checkers.logs.wal import LogRules, NodeLog, Record
from tests.checkers.logs.wal.logs import confirm, log, nop, promote, rollback, vote, write

RULES = LogRules(promotes="at once", has_votes=False, quorum=2, members=3)
MEMBERS = {1: "uuid-1", 2: "uuid-2", 3: "uuid-3"}


def _of(node: int, *records: Record, begins: dict[int, int] | None = None) -> NodeLog:
    bare = log(f"n{node}", *records, begins=begins)
    return NodeLog(
        node=bare.node,
        records=bare.records,
        begins=bare.begins,
        instance=MEMBERS[node],
        members=MEMBERS,
    )


OWNER = (write(1, 1), write(1, 2), confirm(1, 3, 1), write(1, 4), confirm(1, 5, 4))
LOGS = (_of(1, *OWNER), _of(2, *OWNER), _of(3, *OWNER[:1]))


def test_a_cut_at_each_decision_stops_every_node_behind_it() -> None:
    """Broken, a node would be judged at a place where no marker could have stopped it."""
    cuts = LogCuts(LOGS, RULES)
    assert [cuts.at(row) for row in cuts.decisions()] == [
        {"n1": 3, "n2": 3, "n3": 1},
        {"n1": 5, "n2": 5, "n3": 1},
    ]
    assert [cuts.check(cuts.at(row) or {}).result for row in cuts.decisions()] == ["valid", "valid"]


def test_the_owner_behind_confirm_and_replicas_before_the_row_is_found() -> None:
    """Broken, a cut whose restore has lost confirmed data passes: its vclocks are fine."""
    verdict = LogCuts(LOGS, RULES).check({"n1": 5, "n2": 3, "n3": 1})
    assert verdict.result == "invalid"
    assert [each.rule for each in verdict.witnesses] == ["confirmed-without-quorum"]


def test_a_cut_before_the_beginning_of_a_log_has_no_place() -> None:
    """Broken, a node would be judged by what it had come to much later."""
    late = _of(3, confirm(1, 5, 4), begins={1: 4})
    cuts = LogCuts((*LOGS[:2], late), RULES)
    assert [cuts.at(row) for row in cuts.decisions()] == [None, {"n1": 5, "n2": 5, "n3": 1}]


def test_a_log_that_does_not_say_whose_it_is_leaves_the_cut_open() -> None:
    """Broken, rows that their own replica lacks would pass unseen."""
    cuts = LogCuts((*LOGS[:2], log("n3", *OWNER[:1])), RULES)
    assert cuts.check({"n1": 5, "n2": 5, "n3": 1}).result == "unknown"


@pytest.mark.parametrize(
    ("second", "result"),
    [((OWNER[0], OWNER[1], confirm(1, 3, 1)), "unknown"), ((*OWNER[:2], rollback(1, 3, 1)), "invalid")],
    ids=["rows are missing", "what is there contradicts itself"],
)
def test_a_damaged_log_proves_only_contradictions(second: tuple[Record, ...], result: str) -> None:
    """Broken, rows that cannot be read would be rows that the node never had."""
    damaged = (
        replace(_of(2, *second[:1]), damage="cannot be read") if result == "unknown" else _of(2, *second)
    )
    logs = (replace(_of(1, *OWNER), damage="its end cannot be read"), damaged, _of(3, *OWNER[:1]))
    cuts = LogCuts(logs, RULES)
    assert cuts.check({node: walk.end for node, walk in cuts.walks.items()}).result == result


def test_rows_that_are_missing_from_the_middle_of_a_log_contradict_nothing() -> None:
    """Broken, a CONFIRM behind a damaged block confirms what a ROLLBACK in that block had discarded: a false alarm."""
    rows = (write(1, 1), rollback(1, 2, 1), write(1, 3), confirm(1, 4, 3))
    holed = replace(_of(2, rows[0], *rows[2:]), damage="a block is damaged")
    cuts = LogCuts((_of(1, *rows), holed, _of(3, *rows)), RULES)
    verdict = cuts.check({node: walk.end for node, walk in cuts.walks.items()})
    assert (verdict.result, verdict.witnesses) == ("unknown", ())


def test_a_promote_that_waits_confirms_nothing_yet() -> None:
    """Broken, a leader that asks for the queue is said to have lost rows that it alone has."""
    rows = (write(1, 1), promote(2, 1, over=1, until=1, term=2))
    rules = LogRules(promotes="synchronous", has_votes=False, quorum=2, members=3)
    logs = (_of(1), _of(2, *rows), _of(3))
    asked = LogCuts(logs, rules)
    assert asked["n2"].cut(2).decisions[0].until == 0
    confirmed = LogCuts((_of(1), _of(2, *rows, confirm(2, 2, 1)), _of(3)), rules)
    assert confirmed["n2"].cut(3).decisions[-1].until == 1


def test_a_nop_counts_only_where_a_log_has_the_transaction() -> None:
    """Broken, a stale CONFIRM that some nodes discarded differs at every later marker."""
    discarded = Walk(_of(2, nop(1, 1), nop(1, 2)), "at once", 2, synchronous=frozenset({(1, 1)}))
    assert discarded.cut(2).statuses == {(1, 1): "rolled back"}


@pytest.mark.parametrize(
    ("replica", "lsn", "says"),
    [(1, 9, "has no row 1/9; it goes from 1/1 to 1/5"), (3, 1, "has no row 3/1")],
)
def test_a_row_that_is_not_there_is_named(replica: int, lsn: int, says: str) -> None:
    """Broken, a mistyped place would be judged as a different one."""
    with pytest.raises(NoSuchPlace, match=says):
        LogCuts(LOGS, RULES)["n1"].behind(replica, lsn)


def test_a_cut_divides_no_transaction() -> None:
    """Broken, a restore of the cut would have half of a transaction."""
    first, second = (
        Record(kind="write", origin=1, lsn=lsn, file="", first=1, ends=lsn == 2) for lsn in (1, 2)
    )
    walk = Walk(_of(1, first, second), "at once", 1)
    assert walk.behind(1, 2) == 1
    with pytest.raises(NoSuchPlace, match="inside a transaction; try the last row of it: 1/2"):
        walk.behind(1, 1)


def test_an_lsn_of_two_replicas_is_ambiguous() -> None:
    """Broken, a cut would be at the row of the wrong replica."""
    walk = Walk(_of(1, write(1, 1), write(2, 1), write(1, 2)), "at once", 1)
    assert walk.of_lsn(2) == 3
    with pytest.raises(NoSuchPlace, match="try: 1/1 or 2/1"):
        walk.of_lsn(1)


def test_a_vclock_is_found_where_the_log_has_come_to_it() -> None:
    """Broken, a place that a node reports would be judged as a different one. A vote belongs to what is before it."""
    walk = Walk(_of(1, write(1, 1), write(2, 1), vote(1, 2, 2), write(1, 2)), "at once", 1)
    assert [walk.of_vclock(each) for each in ({}, {1: 1}, {0: 5, 1: 1, 2: 1}, {2: 1}, {1: 9})] == [
        0,
        1,
        3,
        None,
        None,
    ]


def test_cuts_are_spread_over_all_decisions() -> None:
    """Broken, the end of a long log would never be judged."""
    rows = [write(1, lsn) for lsn in range(1, 11)]
    assert [row.lsn for row in spread(rows, 4)] == [1, 4, 7, 10]
    assert [row.lsn for row in spread(rows, 1)] == [10]
    assert spread(rows, 99) == rows


ROWS = st.sampled_from(
    [
        lambda lsn: write(1, lsn),
        lambda lsn: write(1, lsn, waits=False),
        lambda lsn: nop(1, lsn),
        lambda lsn: confirm(1, lsn, max(lsn - 1, 1)),
        lambda lsn: rollback(1, lsn, max(lsn - 2, 1)),
        lambda lsn: promote(2, lsn, over=1, until=max(lsn - 1, 1), term=lsn + 1),
        lambda lsn: vote(lsn, lsn + 1, 2),
    ]
)


def _plain(records: list[Record], place: int) -> NodeCut:
    """The slow twin: a new replay for each place."""
    return Walk(_of(1, *records), "at once", 1).cut(place)


@given(makers=st.lists(ROWS, max_size=12), places=st.lists(st.integers(0, 12), max_size=6))
def test_a_walk_says_the_same_in_any_order_of_places(makers: list, places: list[int]) -> None:  # type: ignore[type-arg] # lambdas
    """Broken, what one cut left behind would show in the next one."""
    records = [make(lsn) for lsn, make in enumerate(makers, start=1)]
    walk = Walk(_of(1, *records), "at once", 1)
    for place in places:
        if place <= walk.end:
            assert walk.cut(place) == _plain(records, place)


@pytest.mark.parametrize(
    ("changed", "voters", "result"),
    [
        ({"has_votes": True}, 0, "invalid"),
        ({"has_votes": True}, 1, "invalid"),
        ({"has_votes": True}, 2, "valid"),
        ({"has_votes": False}, 0, "valid"),
        ({"has_votes": True, "first_by_hand": True}, 0, "valid"),
        ({"has_votes": True, "started": {1: 1}}, 0, "valid"),
    ],
)
def test_an_owner_needs_votes_where_nodes_elect(changed: dict[str, object], voters: int, result: str) -> None:
    """Broken, a cut of nodes that are promoted by hand would be an alarm, or one of a false leader would pass."""
    rows = (promote(1, 1, over=0, until=0, term=2), write(1, 2), confirm(1, 3, 2))
    logs = [_of(node, *([vote(node, 2, 1)] if node <= voters else []), *rows) for node in MEMBERS]
    cuts = LogCuts(logs, replace(RULES, **changed))  # type: ignore[arg-type]
    verdict = cuts.check({name: cuts[name].end for name in ("n1", "n2", "n3")})
    assert verdict.result == result, verdict.witnesses
