"""Where nodes may differ in the end: each workload whose writes are promised to last is judged by what nobody holds."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.replicas import kept
from harness.campaigns.hunt.seeds import try_seed
from harness.systems.plans import planned
from harness.systems.qsync.promises import ELECTED, PROMISES
from harness.workloads import WORKLOADS
from tests.suites import mostly_long

NODES = ("n1", "n2", "n3")
JUDGED = ("register", "append", "rw-register", "long-fork", "set", "bank", "counter", "queue")
OPENED = ("open", None, {"a1": 40, "a2": 40})
ASKED: dict[str, list[tuple[str, Any, Any]]] = {
    "bank": [OPENED, ("transfer", None, {"from": "a1", "to": "a2", "amount": 7})],
    "counter": [("add", "c0-1", 4), ("add", "c0-1", -1)],
    "queue": [("enqueue", "q0-1", 1), ("enqueue", "q0-1", 2)],
}
HELD: dict[str, tuple[Any, Any]] = {
    "bank": ([["a1", 33], ["a2", 47]], [["a1", 40], ["a2", 40]]),
    "counter": ([["c0-1", 3]], [["c0-1", 4]]),
    "queue": ([["q0-1", [1, 2]]], [["q0-1", [1]]]),
}
"""By workload: what a node holds that has all of it, and one that has lost the last."""


@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.parametrize("letter", ["F", "G", "I"])
def test_every_workload_is_judged_where_nodes_may_differ(name: str, letter: str) -> None:
    """If it failed, an acknowledged write of that workload could be gone from every node, and nobody would look."""
    names = [check.name for check in WORKLOADS[name].checks(PROMISES[letter], None)]
    assert names.count(kept.NAME) == 1
    assert kept.NAME not in [check.name for check in WORKLOADS[name].checks(ELECTED, None)]


@pytest.mark.parametrize("name", list(ASKED))
@pytest.mark.parametrize(
    ("lost", "result"),
    [((True, True, True), "invalid"), ((True, False, True), "valid"), ((False,) * 3, "valid")],
)
def test_what_every_node_has_lost_is_lost(name: str, lost: tuple[bool, ...], result: str) -> None:
    """If it failed, a lost transfer, addition or element would be green in F, G and I, or an alarm where one has it."""
    events: list[Event] = []

    def line(type_: Any, **fields: Any) -> None:
        events.append(Event(index=len(events), time_ns=len(events), type=type_, **fields))

    for process, (f, key, value) in enumerate(ASKED[name]):
        for type_ in ("invoke", "ok"):
            line(type_, process=process, f=f, key=key, value=value, node="n1")
    line("info", process="harness", f="settled", value=True)
    for number, (node, has_lost) in enumerate(zip(NODES, lost, strict=True)):
        rows = HELD[name][has_lost]
        for type_, value in (("invoke", None), ("ok", {"spaces": {name: rows}})):
            line(type_, process=100 + number, f="dump", node=node, value=value, phase="final")
    history = History.of(Header(nodes=NODES, quorum=2), events)
    (check,) = [each for each in WORKLOADS[name].checks(PROMISES["G"], None) if each.name == kept.NAME]
    verdict = check.run(history)
    assert verdict.result == result, verdict.summary
    assert not verdict.details["vacuous"]


@pytest.mark.parametrize("name", [*JUDGED, "mixed-spaces"])
def test_every_workload_names_what_no_final_read_shows(name: str) -> None:
    """If it failed, a run without final states would be valid in F, although nothing had looked for lost writes."""
    written: dict[str, tuple[str, str | None, Any]] = {
        "register": ("write", "r0-1", 1),
        "append": ("txn", None, [("append", "k0-1", 1)]),
        "rw-register": ("txn", None, [("w", "k0-1", 1)]),
        "long-fork": ("txn", None, [("w", "g0-0", 1)]),
        "set": ("add", "s0", 1),
        "mixed-spaces": ("insert", None, {"spaces": {"once": [3]}, "fails": ""}),
    }
    f, key, value = written[name] if name in written else ASKED[name][0]
    events = [
        Event(index=place, time_ns=place, type=type_, process=1, f=f, key=key, value=value, phase="load")
        for place, type_ in enumerate(("invoke", "ok"))
    ]
    lacks = list(WORKLOADS[name].missing(History.of(Header(nodes=NODES, quorum=2), events)))
    assert any("had no final read that had to be fresh" in each for each in lacks), lacks


@pytest.mark.parametrize("name", mostly_long(ASKED, quick=["bank"]))
def test_good_nodes_keep_what_they_acknowledged(name: str) -> None:
    """If it failed, right stores would be accused wherever their nodes need not be equal."""
    plan = planned(
        cluster="sim",
        configuration="I",
        workload=name,
        time_limit_s=8,
        rate=60,
        faults=("isolate-owner",),
        seed=3,
    )
    assert kept.NAME not in try_seed(plan).violated
