"""Where nodes may differ in the end, the check `kept` of each workload knows its own dumps."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.history import Event, Header, History
from harness.systems.promises import PROMISES
from harness.workloads import WORKLOADS
from harness.workloads.set import ROOM

NODES = ("n1", "n2", "n3")
WRITES: dict[str, list[tuple[str, str | None, Any]]] = {
    "register": [("write", "s3", 1), ("write", "s3", 2)],
    "set": [("add", "s3", 1), ("add", "s3", 2)],
    "append": [("txn", None, [["append", "s3", 1]]), ("txn", None, [["append", "s3", 2]])],
    "rw-register": [("txn", None, [["w", "s3", 1]]), ("txn", None, [["w", "s3", 2]])],
}
ROWS: dict[str, tuple[Any, Any]] = {
    "register": ([["s3", 1]], [["s3", 2]]),
    "set": ([[3 * ROOM + 1, "s3"]], [[3 * ROOM + 1, "s3"], [3 * ROOM + 2, "s3"]]),
    "append": ([["s3", [1]]], [["s3", [1, 2]]]),
    "rw-register": ([["s3", 1]], [["s3", 2]]),
}


@pytest.mark.parametrize("name", list(WRITES))
def test_what_every_node_has_lost_is_a_violation_and_what_one_holds_is_none(name: str) -> None:
    """Broken, in F and I an acknowledged write of this workload could vanish, and nobody would look."""
    (kept,) = [check for check in WORKLOADS[name].checks(PROMISES["I"], None) if check.name == "kept"]
    assert kept.model
    without, with_it = ROWS[name]

    def judged(*rows: Any) -> str:
        lines: list[dict[str, Any]] = []
        for process, (f, key, value) in enumerate(WRITES[name]):
            said = {"process": process, "f": f, "key": key, "value": value}
            lines += [{"type": "invoke", **said}, {"type": "ok", **said}]
        for process, node in enumerate(NODES, start=10):
            said = {"process": process, "f": "dump", "node": node, "phase": "final"}
            value = {"spaces": {WORKLOADS[name].spaces[0]: rows[process - 10]}}
            lines += [{"type": "invoke", **said}, {"type": "ok", "value": value, **said}]
        events = [Event(index=index, time_ns=index, **line) for index, line in enumerate(lines)]
        return kept.run(History.of(Header(nodes=NODES, quorum=2), events)).result

    assert judged(without, without, without) == "invalid"
    assert judged(without, with_it, without) == "valid"


def test_where_nodes_must_be_equal_it_is_not_asked() -> None:
    """Broken, a run would be told twice of one loss."""
    assert all(check.name != "kept" for check in WORKLOADS["set"].checks(PROMISES["H"], None))
