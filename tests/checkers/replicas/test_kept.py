"""What was acknowledged and is gone from every node, where nodes need not be equal: elements and values, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.domain import counter, durability, queues
from checkers.history import Event, Header, History
from checkers.replicas import convergence, kept
from checkers.replicas.kept import Gone
from checkers.verdict import Verdict

NODES = ("n1", "n2", "n3")
Asked = tuple[str, Any, str]
"""What was asked for, with which value, and how it ended."""


def told(writes: list[Any], *dumps: Any, settled: bool = True) -> str:
    """The verdict's result: transactions one after the other, each acknowledged, and what each node holds of x."""
    done = [("txn", value, "ok") for value in writes]
    return verdict(durability.gone_everywhere, done, *dumps, settled=settled).result


def verdict(gone: Gone, asked: list[Asked], *dumps: Any, settled: bool = True) -> Verdict:
    """Operations on x one after the other, and what each node holds of it in the end."""
    lines: list[dict[str, Any]] = []
    for process, (f, value, end) in enumerate(asked):
        key = None if f == "txn" else "x"
        lines += [
            {"type": kind, "process": process, "f": f, "value": value, "key": key} for kind in ("invoke", end)
        ]
    lines.append({"type": "info", "process": "harness", "f": "settled", "value": settled})
    for node, held in zip(NODES, dumps, strict=False):
        rows = [] if held is None else [["x", held]]
        for kind in ("invoke", "ok"):
            value = {"spaces": {"append": rows}} if kind == "ok" else None
            place = {"node": node, "phase": "final", "process": 100 + NODES.index(node)}
            lines.append({"type": kind, "f": "dump", "value": value, **place})
    events = [Event(index=index, time_ns=index, **line) for index, line in enumerate(lines)]
    return kept.check(History.of(Header(nodes=NODES, quorum=2), events), gone)


APPENDS = [[["append", "x", 1]], [["append", "x", 2]]]
WRITES = [[["w", "x", 1]], [["w", "x", 2]]]


@pytest.mark.parametrize(
    ("writes", "dumps", "result"),
    [
        (APPENDS, ([1, 2], [1, 2], [1, 2]), "valid"),
        (APPENDS, ([1], [2], [1]), "valid"),  # each is held by somebody
        (APPENDS, ([1], [1], [1]), "invalid"),
        (APPENDS, (None, None, None), "invalid"),
        (APPENDS, ([1], [1]), "unknown"),  # the third may have it
        (WRITES, (2, 2, 2), "valid"),
        (WRITES, (1, 2, 1), "valid"),
        (WRITES, (1, 1, 1), "invalid"),
        (WRITES, (1, None, 1), "invalid"),
    ],
)
def test_what_every_node_has_lost_is_told_and_nothing_else(writes: Any, dumps: Any, result: str) -> None:
    """Broken, in F, G and I an acknowledged transaction could vanish unseen; or one that a node still has is missed."""
    assert told(writes, *dumps) == result


def test_nodes_that_were_not_quiet_prove_nothing() -> None:
    """Broken, a replica that is behind makes a false alarm."""
    assert told(APPENDS, [1], [1], [1], settled=False) == "unknown"


@pytest.mark.parametrize(
    ("holders", "settled", "judges"), [(3, True, True), (2, True, False), (3, False, False)]
)
def test_who_could_not_look_does_not_say_that_nothing_is_gone(
    holders: int, settled: bool, judges: bool
) -> None:
    """Broken, a page says of registers that nothing was lost, though nobody had looked."""
    lines: list[dict[str, Any]] = [
        {"type": kind, "process": 0, "f": "write", "key": "x", "value": 1} for kind in ("invoke", "ok")
    ]
    lines.append({"type": "info", "process": "harness", "f": "settled", "value": settled})
    for process, node in enumerate(NODES[:holders], 100):
        for kind, value in (("invoke", None), ("ok", {"spaces": {"register": [["x", 1]]}})):
            place = {"node": node, "phase": "final", "process": process}
            lines.append({"type": kind, "f": "dump", "value": value, **place})
    events = [Event(index=index, time_ns=index, **line) for index, line in enumerate(lines)]
    found = kept.check(History.of(Header(nodes=NODES, quorum=2), events), convergence.gone_everywhere)
    assert (found.result, found.details["vacuous"]) == ("valid" if judges else "unknown", not judges)
    assert found.summary.startswith("nothing to judge") != judges


OWNER = {"up": True, "role": "owner", "term": 3, "limbo": 0, "in_rollback": False, "stopped": {"n3": "split"}}
FOLLOWS = {**OWNER, "role": "replica"}
STOPPED = {**OWNER, "role": "replica", "term": 2, "limbo": 7, "stopped": {"n1": "split", "n2": "split"}}
RIVAL = {**STOPPED, "role": "owner"}


@pytest.mark.parametrize(
    ("states", "judges"),
    [
        ((OWNER, FOLLOWS, STOPPED), True),
        ((OWNER, FOLLOWS, RIVAL), True),  # of an old term: nobody hears it
        (({**OWNER, "limbo": 1}, FOLLOWS, STOPPED), False),
        (({**OWNER, "pending_promotes": 1}, FOLLOWS, STOPPED), False),
        (({**OWNER, "in_rollback": True}, FOLLOWS, STOPPED), False),
        ((FOLLOWS, FOLLOWS, STOPPED), False),  # nobody leads: what was acknowledged may be pending with all
        ((OWNER, {"up": False}, STOPPED), False),
        ((OWNER, FOLLOWS), False),  # of one nothing was ever heard
        ([{**each, "stopped": {}} for each in (OWNER, FOLLOWS, STOPPED)], False),  # it may be on its way
        ((), False),
    ],
)
def test_nodes_that_stopped_for_good_are_never_equal_and_are_judged(states: Any, judges: bool) -> None:
    """Broken, what was acknowledged is lost unseen where a node has stopped; or one that is behind is accused."""
    lines: list[dict[str, Any]] = [
        {"type": kind, "process": 0, "f": "write", "key": "x", "value": value}
        for value in (1, 2)
        for kind in ("invoke", "ok")
    ]
    lines += [
        {"type": "info", "process": "monitor", "f": "state", "node": node, "value": state}
        for node, state in zip(NODES, states, strict=False)
    ]
    lines.append({"type": "info", "process": "harness", "f": "settled", "value": False})
    for process, node in enumerate(NODES, 100):
        for kind, value in (("invoke", None), ("ok", {"spaces": {"register": [["x", 1]]}})):
            place = {"node": node, "phase": "final", "process": process}
            lines.append({"type": kind, "f": "dump", "value": value, **place})
    events = [Event(index=index, time_ns=index, **line) for index, line in enumerate(lines)]
    found = kept.check(History.of(Header(nodes=NODES, quorum=2), events), convergence.gone_everywhere)
    assert (found.result, found.details["vacuous"]) == (("invalid", False) if judges else ("unknown", True))


ADDS: list[Asked] = [("add", 5, "ok"), ("add", -2, "ok"), ("add", 4, "fail")]


@pytest.mark.parametrize(
    ("asked", "dumps", "result"),
    [
        (ADDS, (3, 3, 3), "valid"),
        (ADDS, (5, 3, None), "valid"),  # one node has all of it
        (ADDS, (5, 5, 5), "invalid"),
        (ADDS, (5, 7, None), "invalid"),  # each lacks something, or has what had failed
        (ADDS, (5, 5), "unknown"),  # the third may have it
        ([*ADDS, ("add", 2, "info")], (5, 5, 5), "valid"),  # or it never took effect, and this did
        ([*ADDS, ("add", 2, "info")], (6, 6, 6), "invalid"),
        ([*ADDS, ("add", -4, "info")], (-1, 9, 9), "valid"),
        ([("add", 5, "info")], (None, None, None), "valid"),
    ],
)
def test_a_sum_that_no_node_holds_is_told(asked: list[Asked], dumps: Any, result: str) -> None:
    """Broken, an acknowledged addition or transfer could vanish unseen where no read is fresh; or there are alarms."""
    found = verdict(counter.gone_everywhere, asked, *dumps)
    assert found.result == result, found.summary
    assert verdict(counter.gone_everywhere, asked, *dumps, settled=False).result == "unknown"


def test_who_holds_which_sum_and_what_may_be_gone_is_said() -> None:
    """Broken, nobody could tell from the witness what was lost."""
    (witness,) = verdict(counter.gone_everywhere, ADDS, 5, 5, 5).witnesses
    assert witness.rule == "lost-sum"
    assert witness.summary == (
        "no node held what was acknowledged of x at the end: 5 at n1, 5 at n2, 5 at n3, instead of 3"
    )
    assert {2, 3} <= set(witness.events)  # the addition of -2


PUT: list[Asked] = [("enqueue", 1, "ok"), ("enqueue", 2, "ok"), ("enqueue", 3, "info")]


@pytest.mark.parametrize(
    ("asked", "dumps", "result"),
    [
        (PUT, ([1, 2], [1, 2], [1, 2]), "valid"),
        (PUT, ([1], [2], []), "valid"),  # each is held by somebody
        (PUT, ([1], [1], [1, 3]), "invalid"),
        (PUT, (None, None, None), "invalid"),
        (PUT, ([1], [1]), "unknown"),  # the third may have it
        ([*PUT, ("dequeue", 2, "ok")], ([1], [1], [1]), "valid"),
        ([*PUT, ("dequeue", None, "info")], ([1], [1], [1]), "valid"),  # it may have taken it
        ([*PUT, ("dequeue", None, "info")], ([], [], []), "invalid"),  # but not both
        ([*PUT, ("drain", [1, 2], "ok")], ([], [], []), "valid"),
        ([*PUT, ("drain", None, "info")], ([], [], []), "valid"),
        ([*PUT, ("drain", [1], "ok")], ([], [], []), "invalid"),
        ([*PUT, ("dequeue", None, "fail")], ([1], [1], [1]), "invalid"),
    ],
)
def test_an_element_that_neither_came_out_nor_is_there_is_told(
    asked: list[Asked], dumps: Any, result: str
) -> None:
    """Broken, what was put in could vanish unseen where the queue was never drained; or what was taken is missed."""
    found = verdict(queues.gone_everywhere, asked, *dumps)
    assert found.result == result, found.summary
    assert [each.rule for each in found.witnesses] == (["lost-element"] if result == "invalid" else [])


@pytest.mark.parametrize(("end", "node"), [("fail", "n1"), ("info", "n1"), ("ok", None)])
def test_a_dump_that_was_not_answered_or_of_no_node_is_none(end: Any, node: str | None) -> None:
    """The request for a dump would count as a dump that holds nothing, and so every write would be gone."""
    asked: dict[str, Any] = {
        "process": 1,
        "f": "dump",
        "phase": "final",
        "node": node,
        "value": {"spaces": {}},
    }
    events = [
        Event(index=0, time_ns=0, type="invoke", **asked),
        Event(index=1, time_ns=1, type=end, **asked),
    ]
    assert kept.last_dumps(History.of(Header(nodes=("n1",)), events)) == []
