"""Sentences of the checkers of replicas about values of every kind, and about nodes that were not judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checkers.history import Event, Header, History
from checkers.history.errors import ModelError
from checkers.replicas import convergence, dirty, overruled, quorum, stored_start
from tests.checkers.replicas.test_quorum import fault

NODES = ("n1", "n2", "n3")


def history(*lines: dict[str, Any], **header: Any) -> History:
    events = [
        Event(**{"index": index, "time_ns": index, "process": 0, **line}) for index, line in enumerate(lines)
    ]
    return History.of(Header(**{"nodes": NODES, "quorum": 2, **header}), events)


def done(f: str, value: Any, answer: Any = None, **fields: Any) -> list[dict[str, Any]]:
    asked = {"f": f, "value": value, **fields}
    return [
        {"type": "invoke", **asked},
        {"type": "ok", **asked, "value": value if answer is None else answer},
    ]


def dump(node: str, **spaces: Any) -> list[dict[str, Any]]:
    return done("dump", None, {"spaces": spaces}, node=node, phase="final")


def test_nodes_that_were_not_compared_are_not_said_to_agree() -> None:
    """A sentence that is not so: n1 and n2 hold different values, and had not settled."""
    lines = [
        *done("write", 1, key="k"),
        *done("write", 2, key="k"),
        {"type": "info", "process": "harness", "f": "settled", "value": False},
        *dump("n1", register=[["k", 1]]),
        *dump("n2", register=[["k", 2]]),
    ]
    assert convergence.check(history(*lines)).summary == "no final dump of n3"
    agreeing = convergence.check(
        history(*done("write", 2, key="k"), *lines[-2:], *dump("n1", register=[["k", 2]]))
    )
    assert agreeing.summary == "no final dump of n3; the other nodes agree"


def test_a_missing_dump_says_what_came_of_it() -> None:
    """A client that gives its dumps another form would be told only that there are none."""
    asked = {"process": 1, "f": "dump", "node": "n1", "phase": "final"}
    lines = [{"type": "invoke", **asked}, {"type": "fail", **asked, "error": "unexpected answer 5"}]
    found = convergence.check(history(*done("write", 2, key="k"), *lines))
    assert found.summary == "no node gave a final dump (unexpected answer 5)"


@pytest.mark.parametrize(("rows", "is_vacuous"), [([], True), ([["k", 2]], False)])
def test_nodes_that_hold_nothing_agree_on_nothing(rows: list[Any], is_vacuous: bool) -> None:
    """A run in which nothing was written would count as one in which replicas converged."""
    lines = [
        *(done("write", 2, key="k") if rows else ()),
        *(line for node in NODES for line in dump(node, register=rows)),
    ]
    verdict = convergence.check(history(*lines))
    assert (verdict.result, verdict.details.get("vacuous", False)) == ("valid", is_vacuous)


@pytest.mark.parametrize(
    ("key", "words"), [(None, "a dirty read at n1"), ("k", "a dirty read of key k at n1")]
)
def test_a_dirty_read_is_told_in_words(key: str | None, words: str) -> None:
    """The sentence would show a value as Python writes it, and a key that there is not."""
    told = dirty.check(history(*done("read", None, True, key=key, node="n1", mode="dirty")))
    assert told.witnesses[0].summary == f"{words} returned true, which no client ever asked to write"


@pytest.mark.parametrize(
    ("f", "value", "result"),
    [
        ("cas", [1, True], "invalid"),
        ("cas", [1, 1], "valid"),
        ("cas", [1, 1, 1], "valid"),
        ("add", 0.0, "valid"),
    ],
)
def test_only_a_change_needs_a_quorum(f: str, value: Any, result: str) -> None:
    """A change from 1 to true would need no quorum."""
    before = done("read", None, key="k", node="n1", role="owner")
    write = history(*before, *done(f, value, key="k", node="n1", role="owner"), owner="n1")
    starved = replace(write, faults=(fault(1, (1, 9), "kill", {"n2", "n3"}),))
    assert quorum.check(starved).result == result


def test_rows_of_before_are_found_by_what_they_are() -> None:
    """A row whose value became another kind would count as kept."""
    before = {"space": "old", "rows": [["a", 1], ["b", [1, {"c": 0.0}]]]}
    kept = [["b", [1, {"c": -0.0}]], ["a", 1]]
    for rows, result in ((kept, "valid"), ([kept[0], ["a", True]], "invalid")):
        made = history(*dump("n1", old=rows), nodes=("n1",), extra={"acknowledged_before": before})
        assert stored_start.check(made).result == result


UNSETTLED = {"type": "info", "process": "harness", "f": "settled", "value": False}
NOTHING: list[Any] = []


@pytest.mark.parametrize(
    ("held", "everywhere", "result", "summary"),
    [
        (
            {"n1": [["a", 1]], "n2": [["a", 1]]},
            True,
            "valid",
            "what was acknowledged before the run is there",
        ),
        ({"n1": [["a", 1]], "n2": NOTHING}, True, "invalid", "n2 did not hold ['a', 1] in old at the end"),
        ({"n1": [["a", 1]], "n2": NOTHING}, False, "valid", "what was acknowledged before the run is there"),
        ({"n1": NOTHING, "n2": NOTHING}, False, "invalid", "n1, n2 did not hold ['a', 1] in old at the end"),
        ({"n1": [["a", 1]]}, True, "unknown", "no final dump of n2"),
        ({"n1": NOTHING}, True, "invalid", "n1 did not hold ['a', 1] in old at the end"),
        ({"n1": NOTHING}, False, "unknown", "no final dump of n2"),
    ],
)
def test_what_a_run_began_with_is_on_all_nodes_or_on_one(
    held: dict[str, list[Any]], everywhere: bool, result: str, summary: str
) -> None:
    """A row that every node has lost would pass, or a node that may lag would be blamed."""
    before = {"space": "old", "rows": [["a", 1]]}
    lines = [line for node, rows in held.items() for line in dump(node, old=rows)]
    made = history(*lines, nodes=("n1", "n2"), extra={"acknowledged_before": before})
    verdict = stored_start.check(made, everywhere=everywhere)
    assert verdict.result == result and verdict.summary.startswith(summary)
    assert verdict.details["vacuous"] is False
    if result == "invalid":
        lacking = [node for node, rows in held.items() if not rows]
        assert verdict.witnesses[0].node == (lacking[0] if len(lacking) == 1 else None)
    if everywhere and len(held) == 2:  # nodes that were not quiet may lag
        moving = history(UNSETTLED, *lines, nodes=("n1", "n2"), extra={"acknowledged_before": before})
        assert stored_start.check(moving).result == "valid"


def test_nothing_that_a_run_began_with_is_nothing_to_judge() -> None:
    """A run that began with nothing would be said to have kept it."""
    verdict = stored_start.check(history(*dump("n1"), nodes=("n1",)))
    assert (verdict.result, verdict.details["vacuous"]) == ("unknown", True)
    without = history(extra={"acknowledged_before": {"space": "old", "rows": [["a", 1]]}}, nodes=())
    assert stored_start.check(without).summary == "no final dump of any node"


@pytest.mark.parametrize(
    "value", [5, {"spaces": 5}, {"spaces": {"register": [5]}}, {"spaces": {"register": [["k"]]}}]
)
def test_a_dump_of_another_form_is_refused(value: Any) -> None:
    """The checker would break on it."""
    made = history(
        *done("dump", None, value, node="n1", phase="final"),
        nodes=("n1",),
        extra={"acknowledged_before": {"space": "register", "rows": [["k", 1]]}},
    )
    for check in (overruled.check, stored_start.check):
        with pytest.raises(ModelError, match="expected a dump"):
            check(made)


def test_a_dump_that_failed_shows_nothing() -> None:
    """The checker would refuse a run in which one node gave no dump."""
    failed = [
        {**line, "type": "fail" if line["type"] == "ok" else "invoke"}
        for line in done("dump", None, node="n2", phase="final")
    ]
    assert overruled.check(history(*dump("n1", register=[["k", 1]]), *failed)).result == "valid"


@pytest.mark.parametrize(
    ("f", "start", "shown"),
    [
        ("write", 5, dump("n1", register=[["k", 5]])),
        ("write", 5, done("cas", [5, 6], key="k", node="n1")),
        ("add", [5], done("read", None, [5], key="k", node="n1", phase="final")),
    ],
)
def test_a_value_that_was_there_at_first_proves_no_overruled_rollback(f: str, start: Any, shown: Any) -> None:
    """A store that did roll the write back would be blamed for what the key began with."""
    asked = {"f": f, "value": 5, "key": "k", "node": "n1"}
    made = history({"type": "invoke", **asked}, {"type": "info", **asked, "error": "rollback (217)"}, *shown)
    assert overruled.check(made).result == "invalid"
    assert overruled.check(made.starting_at(start)).result == "valid"


def test_only_a_reported_rollback_can_be_overruled() -> None:
    """A write of which the client heard nothing would be called an overruled rollback as soon as a node holds it."""
    lines: list[dict[str, Any]] = []
    for value, error in ((1, "rollback (217)"), (2, "timeout")):
        asked = {"f": "write", "value": value, "key": "k", "node": "n1"}
        lines += [{"type": "invoke", **asked}, {"type": "info", **asked, "error": error}]
    made = overruled.check(history(*lines, *dump("n1", register=[["k", 2]])))
    assert (made.result, made.details["rolled_back"], made.details["vacuous"]) == ("valid", 1, False)
    assert made.summary == "no write that was reported rolled back was there at the end (1 write)"
    nothing = overruled.check(history(*lines[2:], *dump("n1", register=[["k", 2]])))
    assert (nothing.result, nothing.details["vacuous"]) == ("valid", True)
    assert nothing.summary == "nothing to judge: no write was reported rolled back"
