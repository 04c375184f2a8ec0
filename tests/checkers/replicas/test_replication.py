"""What the check of replication tells beside its verdict: who stopped receiving, and whether for good."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.history import Event, Header, History
from checkers.replicas import replication

SECOND_NS = 1_000_000_000
STOPPED = {"n1": {"status": "stopped", "message": "Failed to write to disk"}}
FOLLOWS = {"n1": {"status": "follow"}}


def findings(*upstreams: dict[str, Any]) -> list[str]:
    """Of a run in which n2 told these, one a second."""
    states = [
        Event(
            index=index,
            time_ns=index * SECOND_NS,
            type="info",
            process="monitor",
            f="state",
            node="n2",
            value={"up": True, "vclock": {"1": 5}, "upstreams": told},
        )
        for index, told in enumerate(upstreams)
    ]
    told: list[str] = replication.check(History.of(Header(nodes=("n1", "n2")), states)).details["findings"]
    return told


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ((FOLLOWS, FOLLOWS), []),
        ((FOLLOWS, STOPPED, STOPPED), ["at the end, for good: Failed to write to disk"]),
        ((FOLLOWS, STOPPED, FOLLOWS, FOLLOWS), ["at 1.0 s, and not for good: Failed to write to disk"]),
        ((STOPPED, FOLLOWS, STOPPED, FOLLOWS), ["at 0.0 s, and not for good: Failed to write to disk"]),
    ],
)
def test_who_stopped_receiving_is_told_once(told: tuple[dict[str, Any], ...], words: list[str]) -> None:
    """If it failed, an operator who starts replication anew would hide that it had stopped."""
    assert findings(*told) == [f"n2 had stopped receiving from n1 {each}" for each in words]


def of_lines(*lines: dict[str, Any]) -> list[str]:
    """The findings of a run of n1 and n2 with these lines, one a second."""
    events = [
        Event(index=index, time_ns=index * SECOND_NS, type="info", **line) for index, line in enumerate(lines)
    ]
    told: list[str] = replication.check(History.of(Header(nodes=("n1", "n2")), events)).details["findings"]
    return told


def state(told: dict[str, Any] | None) -> dict[str, Any]:
    value = {"up": False} if told is None else {"up": True, "vclock": {"1": 5}, "upstreams": told}
    return {"process": "monitor", "f": "state", "node": "n2", "value": value}


RESUMED = {
    "process": "operator",
    "f": "resume",
    "node": "n2",
    "value": {"done": True, "error": None, "stopped": {"n1": "Duplicate key"}},
}


def test_a_stop_that_only_the_operator_saw_is_told() -> None:
    """If it failed, an operator who is quicker than the monitor would hide that replication had stopped."""
    follows = state(FOLLOWS)
    assert of_lines(follows, RESUMED, follows, follows) == [
        "n2 had stopped receiving from n1 at 1.0 s, and not for good: Duplicate key"
    ]
    assert of_lines(follows, follows, RESUMED) == [
        "n2 had stopped receiving from n1 at 2.0 s, and reported no more of it: Duplicate key"
    ]


def test_of_a_node_that_told_no_more_nobody_says_that_it_went_on() -> None:
    """If it failed, a page would say of a node that died while it received nothing that it had gone on."""
    (told,) = of_lines(state(FOLLOWS), state(STOPPED), state(None), state(None))
    assert told == "n2 had stopped receiving from n1 when it last reported: Failed to write to disk"


NINE = {"1": 9}


def of(
    held: dict[str, Any], *operations: tuple[str, str, Any, str, str | None], vclock: Any = NINE
) -> History:
    """A run of operations (f, key, value, outcome, error) at n1, after which each node is asked for what it holds."""
    lines: list[dict[str, Any]] = []
    for process, (f, key, value, outcome, error) in enumerate(operations):
        asked = {"process": process, "f": f, "key": key, "value": value, "node": "n1"}
        lines += [{"type": "invoke", **asked}, {"type": outcome, **asked, "error": error}]
    lines += [
        {
            "type": "info",
            "process": "monitor",
            "f": "state",
            "node": node,
            "value": {"up": True, "vclock": vclock},
        }
        for node in (*held, *held)
    ]
    for process, (node, rows) in enumerate(held.items(), start=50):
        dump = {"process": process, "f": "dump", "node": node, "phase": "final"}
        lines += [{"type": "invoke", **dump}, {"type": "ok", **dump, "value": {"spaces": {"register": rows}}}]
    events = [Event(index=index, time_ns=index * SECOND_NS, **line) for index, line in enumerate(lines)]
    return History.of(Header(nodes=tuple(held)), events)


def test_who_wrote_what_one_node_alone_has_is_named() -> None:
    """If it failed, a divergence would be claimed without showing where it came from."""
    history = of(
        {"n1": [["r1", 1]], "n2": [["r1", 2]]},
        ("write", "r1", 1, "ok", None),
        ("cas", "r1", [1, 2], "info", "quorum-timeout (216)"),
        ("write", "r2", 2, "ok", None),
    )
    (witness,) = replication.check(history).witnesses
    assert witness.summary == (
        "n1 and n2 stood at the same vclock {1: 9} and differ in one key: key r1 of register: 1 at n1, 2 at n2"
    )
    assert {0, 1, 2, 3} <= set(witness.events) and not {4, 5} & set(witness.events)
    assert witness.start_ns == 0
    assert witness.explanation[1:] == (
        "the write of 1 to r1 at n1 was acknowledged",
        "the cas of 2 to r1 at n1 was left open: quorum-timeout (216)",
    )


def test_of_sets_the_elements_that_one_lacks_are_told() -> None:
    """If it failed, two sets of a thousand elements would be printed for the one in which they differ."""
    history = of(
        {"n1": [["s0", [7, 8]]], "n2": [["s0", [7, 9]]], "n3": [["s0", [8, 7]]]},
        ("add", "s0", 7, "ok", None),
        ("add", "s0", 9, "info", "rollback (217)"),
    )
    witnesses = replication.check(history).witnesses
    assert [witness.explanation[0] for witness in witnesses] == [
        "s0 of register: n1 lacks 9 and n2 lacks 8",
        "s0 of register: the same elements in another order",
        "s0 of register: n2 lacks 8 and n3 lacks 9",
    ]
    assert "the add of 9 to s0 at n1 was left open: rollback (217)" in witnesses[0].explanation


def test_a_list_and_a_scalar_differ_too() -> None:
    """If it failed, the check would break on the gravest difference of all, and the run be unknown instead of wrong."""
    (witness,) = replication.check(of({"n1": [["s0", [7, 8]]], "n2": [["s0", 7]]})).witnesses
    assert witness.explanation == ("s0 of register: n2 lacks 8",)


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ([7, 7], [7], "s0 of register: n2 lacks 7"),
        ([7], 7, "key s0 of register: [7] at n1, 7 at n2"),
        ([], None, "key s0 of register: [] at n1, nothing at n2"),
    ],
)
def test_what_is_no_other_order_is_not_called_one(one: Any, other: Any, told: str) -> None:
    """An append that one node applied twice would be told as the same elements in another order."""
    (witness,) = replication.check(of({"n1": [["s0", one]], "n2": [["s0", other]]})).witnesses
    assert witness.explanation == (told,)


def test_without_final_dumps_nothing_was_compared() -> None:
    """If it failed, a run that was broken off would be called sound by a check that had compared nothing."""
    lines = [{**state(FOLLOWS), "node": node} for node in ("n1", "n2") * 2]
    events = [
        Event(index=index, time_ns=index * SECOND_NS, type="info", **line) for index, line in enumerate(lines)
    ]
    verdict = replication.check(History.of(Header(nodes=("n1", "n2")), events))
    assert (verdict.result, verdict.details["vacuous"]) == ("valid", True)
    assert verdict.summary == "nothing to judge: no two nodes gave a final dump"


def test_a_vclock_that_is_null_compares_nothing() -> None:
    """If it failed, two different nodes that told no position would pass for compared."""
    verdict = replication.check(of({"n1": [["r0", 1]], "n2": [["r0", 2]]}, vclock=None))
    assert (verdict.summary, verdict.details["vacuous"]) == (
        "nothing to judge: the nodes tell no vclocks",
        True,
    )


@pytest.mark.parametrize("value", [None, 5, [1]])
def test_a_cas_that_tells_no_two_values_hides_no_divergence(value: Any) -> None:
    """If it failed, two nodes that differ for good would be unknown, for an operation that nothing is asked of."""
    history = of({"n1": [["r1", 1]], "n2": [["r1", 2]]}, ("cas", "r1", value, "ok", None))
    assert replication.check(history).result == "invalid"
