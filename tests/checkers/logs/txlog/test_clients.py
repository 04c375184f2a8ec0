"""What clients see of the log: an order that contradicts theirs, and a wait that no fault explains."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests import examples
from tests.checkers.logs.txlog.scripts import (
    Records,
    added,
    cut,
    executed,
    history,
    life,
    made,
    operation,
    ref,
    told,
    verdicts,
)
from tests.checkers.logs.txlog.scripts import rules as rules_of

LOGS: dict[str, Records] = {
    "n1": [life(), made(1, "n1-1"), added(0, 1, ["n2"], [], ref(1, "n1-1")), executed(1, "n1-1")],
    "n2": [life(), made(2, "n2-1")],
    "n3": [life()],
}
sessions = partial(rules_of, of=("sessions",))
drained = partial(rules_of, of=("drained",))
LATER = {"submitted-later-sorts-before"}


def test_what_is_submitted_later_sorts_behind() -> None:
    first, second = operation(0, 1, 2, "n2-1", node="n2"), operation(1, 3, 4, "n1-1")
    assert sessions(LOGS, history(first, second)) == LATER
    assert sessions(LOGS, history(first, operation(1, 1.5, 4, "n1-1"))) == set()
    assert sessions(LOGS, history(operation(0, 1, 2, "n1-1"), operation(1, 3, 4, "n2-1", node="n2"))) == set()


def test_in_a_split_a_part_does_not_know_the_others_counters() -> None:
    logs = LOGS | {
        "n2": [
            life(),
            made(2, "n2-1"),
            ["split", ["n1"], None],
            added(0, 2, ["n3"], [], ref(2, "n2-1")),
            executed(1, "n2-1"),
        ]
    }
    asked = [operation(0, 3, 4, "n2-1", node="n2"), operation(1, 5, 6, "n1-1")]
    fault = cut([("n1", "n2"), ("n1", "n3")], 1, 9)
    assert sessions(logs, history(fault, *asked), split_ns=1_000_000_000) == set()
    assert sessions(logs, history(*asked), split_ns=1_000_000_000) == LATER
    assert sessions(logs, history(fault, *asked)) == LATER


def test_without_a_strategy_what_a_part_has_added_comes_to_masters_that_are_in_none() -> None:
    """n2 takes the entry from n3's branch. With `simple` a recovery would have come before."""
    branch = [["split", ["n1"], None], added(0, 2, ["n2"], [], ref(2, "n2-1"))]
    taken = ["caught-up", 0, [ref(2, "n2-1")], "n3"]
    logs = LOGS | {
        "n2": [life(), made(2, "n2-1"), taken, executed(1, "n2-1")],
        "n3": [life(), ["heard", "n2", 2, 2, [ref(2, "n2-1")]], *branch],
    }
    asked = [operation(0, 3, 4, "n2-1", node="n2"), operation(1, 5, 6, "n1-1")]
    fault = cut([("n1", "n2"), ("n1", "n3")], 1, 9)
    assert sessions(logs, history(fault, *asked), split_ns=1_000_000_000) == set()
    assert sessions(logs, history(*asked), split_ns=1_000_000_000) == LATER


@examples.up_to(200)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=2, max_size=7), st.randoms())
def test_sessions_against_all_pairs(spans: list[tuple[int, int]], random: Any) -> None:
    """By definition: of each two operations, of which one was over before the other was submitted."""
    stamps = random.sample(range(1, 30), len(spans))
    names = [f"n1-{number}" for number in range(len(spans))]
    logs: dict[str, Records] = {
        "n1": [life(), *(made(ts, name) for ts, name in zip(stamps, names, strict=True))]
    }
    lines = [
        operation(number, start + number / 100, start + length + number / 100 + 0.001, name)
        for number, ((start, length), name) in enumerate(zip(spans, names, strict=True))
    ]
    record = history(*lines)
    stamp = dict(zip(names, stamps, strict=True))
    broken = any(
        (one.complete_index or 0) < other.invoke_index
        and stamp[one.transaction or ""] > stamp[other.transaction or ""]
        for one in record.operations
        for other in record.operations
    )
    assert (sessions(logs, record) == LATER) == broken


BOUND: dict[str, Any] = {"agrees_within_ns": 5_000_000_000}


def test_masters_that_never_come_to_an_agreement() -> None:
    fault = cut([("n1", "n2")], 1, 3)
    gave_up = told("settled", 20, False)
    assert drained(LOGS, history(fault, gave_up), **BOUND) == {"never-drained"}
    assert drained(LOGS, history(cut([("n1", "n2")], 1, 17), gave_up), **BOUND) == set()
    assert verdicts(LOGS, history(fault, told("settled", 20, True)), **BOUND)["drained"].result == "valid"
    # A request of a moment ago may still be under way, also one whose outcome is not known.
    for asked_s, broken in ((14, {"never-drained"}), (16, set())):
        late = operation(0, asked_s, 99)[:1]
        assert drained(LOGS, history(fault, late, gave_up), **BOUND) == broken


def test_branches_that_nothing_repairs_are_never_drained_with_the_strategy_none() -> None:
    split = LOGS | {"n2": [*LOGS["n2"], ["split", ["n1", "n3"], None]]}
    record = history(cut([("n1", "n2"), ("n2", "n3")], 1, 3), told("settled", 20, False))
    said = verdicts(split, record, split_ns=1_000_000_000, **BOUND)["drained"]
    assert said.result != "invalid"
    assert "unrepaired divergence" in said.details["findings"][0]


def test_a_client_that_waits_while_nothing_is_disturbed() -> None:
    slow = operation(0, 1, 9, "n1-1")
    quiet = told("settled", 20, True)
    assert drained(LOGS, history(slow, quiet), **BOUND) == {"stalled"}
    assert drained(LOGS, history(slow, cut([("n1", "n2")], 4, 6), quiet), **BOUND) == set()


def test_a_client_waits_for_the_transactions_that_are_under_way() -> None:
    """If it failed, masters that need long for each transaction would be said to stand still whenever many wait."""
    slow, other = operation(0, 1, 9, "n1-1"), operation(1, 2, 8.5, "n2-1", node="n2")
    over = operation(1, 0.5, 0.9, "n2-1", node="n2")
    quiet = told("settled", 20, True)
    for each, seconds, is_stalled in (
        (other, 1.6, False),
        (other, 1.4, True),
        (over, 1.6, True),
        (over, 3.1, False),
    ):
        found = drained(LOGS, history(slow, each, quiet), **BOUND, executes_within_ns=int(seconds * 1e9))
        assert (found == {"stalled"}) == is_stalled, (each, seconds)


def test_a_pause_with_its_cause_is_reported() -> None:
    ring = cut([("n1", "n2"), ("n1", "n3"), ("n2", "n3")], 3, 7)
    asked = [operation(0, 1, 2, "n1-1"), operation(1, 3, 9, "n2-1", node="n2")]
    said = verdicts(LOGS, history(ring, *asked, told("settled", 20, True)), **BOUND)["drained"]
    assert "not all masters could reach each other" in said.details["findings"][0]
    assert said.result == "valid"
