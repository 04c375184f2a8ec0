"""Members that change: what one has shown does not bind the next, and who starts nodes anew wakes the dead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from checkers.history import members
from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.proofs import verify_isolation
from checkers.replicas import prefix, quorum
from harness.systems.qsync.promises import PROMISES
from harness.workloads import WORKLOADS

NODES = ("n1", "n2", "n3")
HEADER = Header(system="qsync", nodes=NODES, quorum=2, owner="n1", heartbeat_ns=1_000_000)
CONFIRMED = {"mode": "read-confirmed"}


@dataclass
class Record:
    """Lines one nanosecond apart."""

    events: list[Event] = field(default_factory=list)

    def line(self, type_: Any, process: int | str, f: str, **fields: Any) -> None:
        index = len(self.events)
        self.events.append(Event(index=index, time_ns=index, type=type_, process=process, f=f, **fields))

    def ask(self, f: str, value: Any, node: str, role: str, asked: Any = None, **fields: Any) -> None:
        process = len(self.events)
        self.line("invoke", process, f, value=asked, node=node, **fields)
        self.line("ok", process, f, value=value, node=node, role=role, **fields)

    def comes(self, node: str) -> None:
        told = {"nodes": list(NODES), "quorum": 2}
        self.line("info", "harness", "members", value={**told, "settled": False, "joins": node})
        self.line("info", "harness", "members", value={**told, "settled": True})

    @property
    def history(self) -> History:
        return History.of(HEADER, self.events)


def two_values_shown_at_n2() -> Record:
    record = Record()
    for value in (1, 2):
        record.ask("write", value, "n1", "owner", asked=value, key="a")
        record.ask("read", value, "n2", "replica", key="a", **CONFIRMED)
    return record


def test_a_read_that_was_on_its_way_when_somebody_came_binds_nobody() -> None:
    """Broken, a newcomer that answers what its predecessor was asked is called a node that went back."""
    record = two_values_shown_at_n2()
    record.line("invoke", 99, "read", key="a", node="n2", **CONFIRMED)
    record.comes("n2")
    record.line("ok", 99, "read", value=1, key="a", node="n2", role="replica", **CONFIRMED)
    assert prefix.check(record.history).result == "valid"


def test_a_read_before_and_one_after_nobody_came_go_forward() -> None:
    """Broken, a node that goes back is excused because somebody has come to another place."""
    record = two_values_shown_at_n2()
    record.comes("n3")
    record.ask("read", 1, "n2", "replica", key="a", **CONFIRMED)
    assert prefix.check(record.history).result == "invalid"


def shown_lists(comes: str) -> History:
    """n2 shows two elements; then somebody comes, and n2 shows one."""
    record = Record()
    for value in (1, 2):
        micros = [["append", "k", value]]
        record.ask("txn", micros, "n1", "owner", asked=micros)
    for elements in ([1, 2], [1]):
        record.ask("txn", [["r", "k", elements]], "n2", "replica", asked=[["r", "k", None]], **CONFIRMED)
        if elements == [1, 2]:
            record.comes(comes)
    return record.history


def test_snapshots_of_a_newcomer_begin_anew() -> None:
    """Broken, runs of transactions in which a node is replaced are anomalies; or nodes may go back in all of them."""
    (check,) = (each for each in WORKLOADS["append"].checks(PROMISES["C"], None) if each.name == "snapshots")
    for comes, expected in (("n2", "valid"), ("n3", "invalid")):
        history = shown_lists(comes)
        verdict = check.run(history)
        assert verdict.result == expected
        assert check.judged is not None
        assert not verify_isolation.check(history, verdict, check.judged).refused


def a_write_while_others_are_killed(*, restarted: bool) -> History:
    record = Record()
    for number, node in ((0, "n2"), (1, "n3")):
        fault = {"id": number, "name": "kill", "does": "kill", "nodes": [node]}
        record.line("invoke", "nemesis", "kill", value=fault)
    if restarted:
        fault = {"id": 2, "name": "rolling-restart", "does": "restart", "nodes": list(NODES)}
        record.line("invoke", "nemesis", "rolling-restart", value=fault)
    for value in range(5):
        record.ask("write", value, "n1", "owner", asked=value, key="a")
    end = len(record.events)
    told = {"took_effect": True, "all_in_effect_ns": 1, "heal_asked_ns": end, "healed": True}
    for number in range(3 if restarted else 2):
        name = ("kill", "kill", "rolling-restart")[number]
        record.line("info", "nemesis", name, value={"id": number, **told})
    return record.history


def test_a_rolling_restart_may_wake_who_was_killed() -> None:
    """Broken, a write that a node confirmed which the operator had started again is called one without a quorum."""
    assert quorum.check(a_write_while_others_are_killed(restarted=False)).result == "invalid"
    assert quorum.check(a_write_while_others_are_killed(restarted=True)).result == "valid"


def test_two_threads_do_not_exchange_their_members(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken, a page that asks about another run meanwhile gives this one its members and its quorum."""
    ours, theirs = Record(), Record()
    for record, nodes in ((ours, ["n1", "n2"]), (theirs, ["n9"])):
        record.line("info", "harness", "members", value={"nodes": nodes})
    others = members._changes(theirs.history)

    class Asked(list[Any]):
        """Another thread asks about its history as soon as this one has."""

        def __setitem__(self, place: Any, value: Any) -> None:
            super().__setitem__(place, [others])

    monkeypatch.setattr(members, "_last", Asked())
    assert members.at_the_end(ours.history) == ("n1", "n2")


def test_who_is_a_member_and_how_many_make_a_quorum() -> None:
    """Broken, a write is judged by a quorum that no node counted by, or by members that had left."""
    none = Record().history
    assert members.counts(none, (0, 9)) == (members.Count(NODES, 2),)
    assert (members.least_quorum(none, (0, 9)), members.left(none), members.have_changed(none)) == (
        2,
        (),
        False,
    )
    record = Record()
    for _ in range(3):
        record.line("invoke", len(record.events), "read")
    record.line("info", "harness", "members", value={"nodes": ["n1", "n2"], "quorum": 3, "settled": False})
    record.line("info", "harness", "members", value={"nodes": ["n1", "n2"], "quorum": 3})
    first, second = members.Count(NODES, 2), members.Count(("n1", "n2"), 3)
    changed = record.history
    assert members.counts(changed, (0, 2)) == (first,)
    assert members.counts(changed, (1, 3)) == members.counts(changed, (4, 9)) == (first, second)
    assert members.counts(changed, (5, 9)) == (second,)
    assert (members.least_quorum(changed, (1, 9)), members.least_quorum(changed, (5, 9))) == (2, 3)
    assert (members.left(changed), members.have_changed(changed)) == (("n3",), True)
    record.line("info", "harness", "members", value={"nodes": ["n1", "n2"]})
    assert members.least_quorum(record.history, (5, 9)) is None, "one is not known"
