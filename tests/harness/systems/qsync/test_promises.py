"""The table of promises: each row as it was decided, and each class of answers judged by it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.judge import Case, judge
from harness.plan.promise import (
    ASYNCHRONOUS_WRITES,
    DIRTY_READS,
    FINAL_STATE,
    LEADERS,
    LINEARIZABLE_READS,
    LOGS,
    OWNER_READS,
    QUORUM,
    REPLICA_READS,
    WRITES,
)
from harness.run.assemble import parts_of
from harness.systems.plans import planned
from harness.systems.qsync.promises import (
    ELECTED,
    PROMISES,
    with_asynchronous,
    with_promotes_at_once,
    without_majority,
)
from tests.harness.judge.test_judge import Line, good, history, operation

STRICT, STALE, PREFIX, ANY = "linearizable", "stale", "monotone-prefix", "read-uncommitted"
SAME = "converged"

TABLE = {
    #     writes  owner   replica dirty linearizable  final
    "A": (STRICT, "", "", ANY, "", SAME),
    "B": ("", "", "", ANY, "", ""),
    "C": (STRICT, STRICT, PREFIX, ANY, STRICT, SAME),
    "D": ("", "", "", ANY, "", ""),
    "E": ("", "", "", ANY, "", ""),
    "F": (STRICT, STALE, PREFIX, ANY, STRICT, ""),
    "G": (STRICT, STALE, "", ANY, "", ""),
    "H": (STRICT, STALE, PREFIX, ANY, STRICT, SAME),
    "I": (STRICT, STALE, PREFIX, ANY, STRICT, ""),
}


def test_the_rows_are_those_that_were_decided() -> None:
    """If it failed, a row could be weakened by a slip, and every run under it would pass."""
    rows = {
        letter: (
            *(row.model(WRITES), row.model(OWNER_READS), row.model(REPLICA_READS)),
            *(row.model(DIRTY_READS), row.model(LINEARIZABLE_READS), row.model(FINAL_STATE)),
        )
        for letter, row in PROMISES.items()
    }
    assert rows == TABLE


def test_a_row_says_which_logs_need_not_agree() -> None:
    """If it failed, nodes that may stop or differ would be an anomaly, or a row would excuse what it must not."""
    excused = {letter for letter, row in PROMISES.items() if not row.model(LOGS)}
    assert excused == set("BDEGI")
    assert {row.model(LEADERS) for row in PROMISES.values()} == {"one leader a term"}
    assert {row.model(QUORUM) for row in PROMISES.values()} == {"acknowledged only with a quorum"}
    weaker = (
        (with_promotes_at_once(ELECTED), ("", "one leader a term", "as synchronous")),
        (with_asynchronous(ELECTED), ("", "one leader a term", "where answered")),
        (without_majority(ELECTED, 2, 4), ("", "", "as synchronous")),
    )
    for row, models in weaker:
        assert tuple(map(row.model, (LOGS, LEADERS, ASYNCHRONOUS_WRITES))) == models, row.configuration


def read(at_ms: int, value: int, **others: str) -> list[Line]:
    return operation(at_ms, "read", value, process=8, **others)


def an_old_state_is_compared_with(lines: list[Line]) -> list[Line]:
    """Acknowledged, though it does not follow from what was acknowledged before."""
    return [*lines, *operation(2_950, "cas", [3, 999], process=8), *operation(2_960, "write", 29, process=8)]


def the_owner_shows_an_old_value(lines: list[Line]) -> list[Line]:
    return [*lines, *read(2_500, 3, mode="read-confirmed")]


def a_replica_goes_back(lines: list[Line]) -> list[Line]:
    told = {"node": "n3", "role": "replica", "mode": "read-confirmed"}
    return [*lines, *read(2_500, 20, **told), *read(2_600, 3, **told)]


def a_replica_shows_an_old_value(lines: list[Line]) -> list[Line]:
    return [*lines, *read(2_500, 3, node="n3", role="replica", mode="read-confirmed")]


def a_dirty_read_shows_what_nobody_wrote(lines: list[Line]) -> list[Line]:
    return [*lines, *read(2_500, 12_345, node="n3", role="replica", mode="dirty")]


def a_linearizable_read_shows_an_old_value(lines: list[Line]) -> list[Line]:
    return [*lines, *read(2_500, 3, node="n3", role="replica", mode="linearizable")]


def a_node_differs_in_the_end(lines: list[Line]) -> list[Line]:
    """It holds what was there before: a value that others had replaced."""
    *before, last = lines
    return [*before, {**last, "value": {"spaces": {"register": [["x", 28]]}}}]


VIOLATES: dict[Callable[[list[Line]], list[Line]], tuple[str, str]] = {
    an_old_state_is_compared_with: ("linearizable", "ACFGHI"),
    the_owner_shows_an_old_value: ("linearizable", "C"),
    a_replica_goes_back: ("prefix", "CFHI"),
    a_replica_shows_an_old_value: ("", ""),
    a_dirty_read_shows_what_nobody_wrote: ("dirty", "ABCDEFGHI"),
    a_linearizable_read_shows_an_old_value: ("linearizable", "CFHI"),
    a_node_differs_in_the_end: ("convergence", "ACH"),
}
"""What is seen, the check that says so, and the rows in which it is a violation."""


@pytest.mark.parametrize("letter", PROMISES)
@pytest.mark.parametrize("seen", VIOLATES, ids=lambda seen: seen.__name__)
def test_each_class_of_answers_is_judged_by_its_own_promise(
    letter: str, seen: Callable[[list[Line]], list[Line]]
) -> None:
    """If it failed, a row would say what is promised, and something else would be judged."""
    plan = planned(cluster="sim", configuration=letter, rate=10, time_limit_s=3, faults=("pause",))
    promise = parts_of(plan).system.promise(plan)
    assert promise == PROMISES[letter]
    check, letters = VIOLATES[seen]
    expected = [check] if letter in letters else []
    assert judge(Case(plan, history(seen(good())), given_promise=promise))["violations"] == expected


def two_lead_one_term(lines: list[Line]) -> list[Line]:
    state = {"process": "monitor", "f": "state", "type": "info"}
    leads = {"up": True, "role": "owner", "election": "leader", "election_term": 7, "term": 7, "rollbacks": 0}
    return [*lines, *({**state, "node": node, "at_ms": 2_500, "value": leads} for node in ("n1", "n2"))]


@pytest.mark.parametrize(
    ("quorum", "letters"), [(1, "FGHI"), (2, ""), ("math.max(N / 2, 1)", "FGHI"), ("math.max(2*N/3, 1)", "")]
)
@pytest.mark.parametrize("letter", "CFGHI")
def test_a_quorum_that_is_no_majority_weakens_what_elections_promise(
    letter: str, quorum: int | str, letters: str
) -> None:
    """If it failed, a cluster would be accused of what no cluster with such a quorum can keep: a false alarm."""
    plan = planned(
        cluster="sim", configuration=letter, rate=10, time_limit_s=3, faults=("pause",), quorum=quorum
    )
    promise = parts_of(plan).system.promise(plan)
    if letter not in letters:
        assert promise == PROMISES[letter]
        return
    assert promise == without_majority(PROMISES[letter], 1, 3)
    lost = judge(Case(plan, history(an_old_state_is_compared_with(good())), given_promise=promise))
    assert lost["violations"] == []
    assert any(finding["checker"] == "linearizable" for finding in lost["findings"])
    assert judge(Case(plan, history(two_lead_one_term(good())), given_promise=promise))["violations"] == []
    assert judge(Case(plan, history(two_lead_one_term(good())), given_promise=PROMISES[letter]))[
        "violations"
    ] == ["leadership"]
    invented = judge(Case(plan, history(a_dirty_read_shows_what_nobody_wrote(good())), given_promise=promise))
    assert invented["violations"] == ["dirty"]
