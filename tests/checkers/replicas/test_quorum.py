"""The shortcut of the quorum's check: at the end of a write a quorum was possible, so nothing more is looked at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.history.faults import FaultSpan, Link
from checkers.history.history import Header, History
from checkers.history.operation import Event, Operation
from checkers.replicas import quorum
from checkers.replicas.quorum import _Faults
from tests import examples
from tests.checkers.over_objects import over_objects

NODES = ("n1", "n2", "n3")
LINKS = tuple((source, target) for source in NODES for target in NODES if source != target)
MOMENTS = st.integers(0, 12)
TIMES = st.tuples(MOMENTS, MOMENTS).map(lambda pair: (min(pair), max(pair)))
FAULTS = st.lists(
    st.tuples(
        TIMES,
        st.one_of(
            st.tuples(st.sampled_from(("kill", "pause")), st.sets(st.sampled_from(NODES), min_size=1)),
            st.tuples(st.just("cut"), st.sets(st.sampled_from(LINKS), min_size=1)),
            st.tuples(st.just("cut"), st.just({link for link in LINKS if "n1" in link})),
        ),
    ),
    max_size=6,
)

ASKED: tuple[tuple[str, Any], ...] = (
    *(("write", 1), ("write", "x"), ("write", None), ("read", 1)),
    *(("cas", (1, 1)), ("cas", (1, 2)), ("cas", ["a", "a"]), ("cas", ["a", "b"])),
    *(("add", 0), ("add", 0.0), ("add", 3), ("dequeue", None), ("dequeue", 4), ("dequeue", "x")),
    *(("transfer", {"amount": 0}), ("transfer", {"amount": 1})),
    *(("txn", [["r", "x", None]]), ("txn", [["r", "x", None], ["w", "x", 1]])),
)
WRITES = st.lists(
    st.tuples(TIMES, st.sampled_from(NODES), st.booleans(), st.sampled_from(ASKED)), min_size=1, max_size=6
)


def fault(number: int, times: tuple[int, int], does: str, what: set[str] | set[Link]) -> FaultSpan:
    start, end = times
    nodes = tuple(each for each in sorted(what) if isinstance(each, str))
    links = tuple(each for each in sorted(what) if isinstance(each, tuple))
    return FaultSpan(
        id=number,
        name=does,
        does=does,
        start_index=100 + number,
        start_ns=start,
        end_index=200 + number,
        end_ns=end,
        nodes=nodes,
        links=links,
        took_effect=True,
        first_effect_ns=start,
        all_in_effect_ns=start,
        heal_asked_ns=end,
        last_effect_ns=end,
    )


MEMBERS = st.lists(
    st.tuples(MOMENTS, st.sampled_from((NODES, NODES[:2], NODES[1:])), st.integers(1, 3), st.booleans()),
    max_size=3,
)


@examples.up_to(500)
@given(
    faults=FAULTS,
    writes=WRITES,
    members=MEMBERS,
    owner=st.sampled_from((None, "n1")),
    is_leaderless=st.booleans(),
)
def test_a_write_that_is_passed_over_is_no_violation(
    faults: list[tuple[tuple[int, int], tuple[str, set[str]]]],
    writes: list[tuple[tuple[int, int], str, bool, tuple[str, Any]]],
    members: list[tuple[int, tuple[str, ...], int, bool]],
    owner: str | None,
    is_leaderless: bool,
) -> None:
    """Broken, an acknowledgement that cannot have had a quorum is not seen, or not counted."""
    operations = tuple(
        Operation(
            type="ok" if is_ok else "info",
            process=place,
            f=f,
            key="k",
            value=value,
            invoke_index=2 * place,
            invoke_ns=start,
            complete_index=2 * place + 1,
            complete_ns=end,
            node=node,
            role="owner" if place % 4 else "replica",
        )
        for place, ((start, end), node, is_ok, (f, value)) in enumerate(writes)
    )
    spans = tuple(fault(number, times, *what) for number, (times, what) in enumerate(faults))
    extra = {"leaderless": True} if is_leaderless else {}
    empty = History.of(Header(nodes=NODES, quorum=2, owner=owner, extra=extra), [])
    told = tuple(
        Event(
            index=50 + place,
            time_ns=time_ns,
            type="info",
            process="harness",
            f="members",
            value={"nodes": list(nodes), "quorum": quorum, "settled": settled},
        )
        for place, (time_ns, nodes, quorum, settled) in enumerate(sorted(members, key=lambda each: each[0]))
    )
    history = replace(empty, operations=operations, faults=spans, told_members=told)
    with over_objects(), patch.object(_Faults, "may_be_served", return_value=False):
        expected = quorum.check(history)
    assert quorum.check(history) == expected


@pytest.mark.parametrize(("value", "words"), [([1, 2], "1 → 2"), (None, "nothing"), ({"a": 1}, "{a: 1}")])
def test_a_cas_that_tells_no_two_values_needs_a_quorum_all_the_same(value: Any, words: str) -> None:
    """The checker would break on its own witness, and an acknowledgement without a quorum be unknown."""
    cut = {"id": 1, "name": "cut", "does": "cut", "links": [["n2", "n1"], ["n3", "n1"]]}
    effect = {"id": 1, "took_effect": True, "all_in_effect_ns": 1, "heal_asked_ns": 9}
    asked: dict[str, Any] = {"process": 0, "f": "cas", "node": "n1", "role": "owner", "value": value}
    lines: list[tuple[int, str, dict[str, Any]]] = [
        (0, "invoke", {"process": "nemesis", "f": "cut", "value": cut}),
        (3, "invoke", asked),
        (4, "ok", asked),
        (9, "info", {"process": "nemesis", "f": "cut", "value": effect}),
    ]
    events = [
        Event(index=index, time_ns=time_ns, type=type_, **told)  # type: ignore[arg-type]
        for index, (time_ns, type_, told) in enumerate(lines)
    ]
    verdict = quorum.check(History.of(Header(nodes=NODES, owner="n1", quorum=2), events))
    assert verdict.result == "invalid"
    assert f"n1 confirmed cas {words} to process 0" in verdict.summary
