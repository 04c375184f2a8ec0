"""Mixed spaces: what a run must have shown, and what is promised of asynchronous rows."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.history.history import Header, History
from checkers.history.operation import SUBMITTED, Event
from harness.systems.qsync.promises import FIXED_OWNER
from harness.workloads import WORKLOADS

MIXED = WORKLOADS["mixed-spaces"]
NODES = ("n1", "n2")
ALL_KINDS = ({"once": [1]}, {"notes": [2]}, {"once": [3], "notes": [4]})
READ = {"from": 0, "below": 10**10}


def recorded(*inserts: dict[str, Any], dumps: tuple[Any, ...] = (), end: str = "ok") -> History:
    """Inserts at n1, each with this end, a final read there that shows them, and a dump of each node."""
    shown: dict[str, list[int]] = {"once": [], "notes": []}
    for rows in inserts:
        for space, keys in rows.items():
            shown[space] += keys
    events: list[Event] = []

    def line(process: int | str, f: str, type_: Any, **fields: Any) -> None:
        number = len(events)
        events.append(Event(index=number, time_ns=number, type=type_, process=process, f=f, **fields))

    for number, rows in enumerate(inserts):
        value = {"spaces": rows, "fails": ""}
        line(number, "insert", "invoke", value=value, node="n1")
        line(number, "insert", end, value=value, node="n1", error=None if end == "ok" else SUBMITTED)
    line("harness", "settled", "info", value=True)
    line(98, "read", "invoke", value=READ, node="n1", phase="final")
    line(98, "read", "ok", value={**READ, "spaces": shown}, node="n1", role="owner", phase="final")
    for node, spaces in zip(NODES, dumps, strict=False):
        rows = {space: [[key, key] for key in keys] for space, keys in spaces.items()}
        line(99, "dump", "invoke", node=node, phase="final")
        line(99, "dump", "ok", node=node, value={"spaces": rows}, phase="final")
    return History.of(Header(nodes=NODES, quorum=2, owner="n1"), events)


@pytest.mark.parametrize("end", ["ok", "info"])
def test_each_kind_of_insert_must_have_been_taken_and_dumps_be_there(end: str) -> None:
    """If it failed, a run without asynchronous rows, or without final states, would say something of both."""
    assert list(MIXED.missing(recorded(*ALL_KINDS, dumps=({}, {}), end=end))) == []
    assert list(MIXED.missing(recorded(ALL_KINDS[0], end=end))) == [
        "no insert into notes was acknowledged",
        "no insert into once and notes was acknowledged",
        "no node gave a final dump of its rows",
    ]


@pytest.mark.parametrize(("kept", "result"), [("as synchronous", "invalid"), ("where answered", "valid")])
def test_an_asynchronous_row_need_not_be_on_every_node_where_its_own_keeps_it(kept: str, result: str) -> None:
    """If it failed, rows that a fixed owner lost would pass, or a failover would be accused of what it may do."""
    promise = FIXED_OWNER.but(asynchronous=kept)
    (check,) = [each for each in MIXED.checks(promise, None) if each.name == "write-once"]
    verdict = check.run(recorded({"notes": [2]}, dumps=({"notes": [2]}, {})))
    assert (verdict.result, [each.rule for each in verdict.witnesses]) == (
        result,
        ["lost-row"] if result == "invalid" else [],
    )
