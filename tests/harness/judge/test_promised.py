"""What excuses a store excuses it only in a run in which it began."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.logs.wal import LogRules, NodeLog
from harness.errors import StoreError
from harness.faults.fault import Fault
from harness.judge.promised import checks_of, logs_of_members, promise_of, rules_of
from harness.plan.plan import Drawn, Plan
from harness.plan.promise import WRITES
from harness.systems.plans import planned

POWER = Fault(id=0, name="power-one", does="power", at_ns=0, until_ns=1, nodes=("n2",))


def record(*faults: tuple[str, str]) -> History:
    """With those faults begun and ended (name, what it does), and felt by nobody."""
    events: list[Event] = []
    for number, (name, does) in enumerate(faults):
        asked: dict[str, Any] = {"id": number, "name": name, "does": does, "nodes": ["n2"]}
        for type_, value in (
            ("invoke", asked),
            ("info", {"id": number, "took_effect": False, "healed": True}),
        ):
            index = len(events)
            events.append(
                Event(index=index, time_ns=index, type=type_, process="nemesis", f=name, value=value)  # type: ignore[arg-type]
            )
    return History.of(Header(nodes=("n1", "n2", "n3"), quorum=2), events)


@pytest.mark.parametrize(
    "plan",
    [
        planned(system="tarantool", configuration="A", cluster="local", faults=("pause", "lose-unsynced")),
        planned(system="tarantool", configuration="A", cluster="local", faults=("power-one",)),
        planned(system="tarantool", configuration="A", drawn=Drawn(faults=(POWER,), operations=())),
    ],
)
def test_a_loss_of_power_that_never_began_excuses_no_lost_write(plan: Plan) -> None:
    """If it failed, a write that a store loses by itself would be no evidence, as a power loss was to come later."""
    assert promise_of(plan, record(("pause", "pause"))).model(WRITES) == "linearizable"
    assert promise_of(plan, record(("pause", "pause"), ("power-one", "power"))).model(WRITES) == ""


def test_what_is_asked_for_decides_everything_else() -> None:
    """If it failed, a run would be judged by the promise of another configuration."""
    plan = planned(system="tarantool", configuration="B", cluster="local", faults=("lose-unsynced",))
    assert promise_of(plan, record()).configuration.startswith("B")
    synced = planned(
        system="tarantool", configuration="A", cluster="local", faults=("lose-unsynced",), wal_mode="fsync"
    )
    assert promise_of(synced, record(("power-one", "power"))).model(WRITES) == "linearizable"


def test_a_fault_of_another_version_is_refused_in_one_line() -> None:
    """If it failed, a record from a later version would end its judgement with a traceback."""
    plan = planned(faults=("quorum",))
    history = record(("quorum", "options"))
    history.faults[0].asked["at_nz"] = 5  # type: ignore[index]
    with pytest.raises(
        StoreError, match=r"fault 0 \(quorum\) is not recorded as this version writes it: .*at_nz"
    ):
        promise_of(plan, history)


NODES = ("n1", "n2", "n3")
RULES = LogRules(promotes="synchronous", has_votes=True, quorum=2, members=3)


def changed(*lines: tuple[tuple[str, ...], int]) -> History:
    """With these members and quorums, one after the other."""
    events = [
        Event(
            index=at, time_ns=at, type="info", process="harness", f="members",
            value={"nodes": list(nodes), "quorum": asked, "settled": True},
        )
        for at, (nodes, asked) in enumerate(lines)
    ]  # fmt: skip
    return History.of(Header(nodes=NODES, quorum=2), events)


@pytest.mark.parametrize(
    ("history", "quorum", "members"),
    [
        (changed(), 2, 3),
        (changed((NODES, 3)), 2, 3),
        (changed((NODES, 1)), 1, 3),
        (changed((NODES[:2], 2)), None, None),
    ],
)
def test_the_smallest_quorum_judges_logs_and_none_if_nodes_changed(
    history: History, quorum: int | None, members: int | None
) -> None:
    """If it failed, a decision of few nodes would be an alarm, or one of too few would pass."""
    rules = rules_of(RULES, history)
    assert rules is not None and (rules.quorum, rules.members) == (quorum, members)
    assert rules_of(None, history) is None


def test_the_log_of_a_node_that_left_is_no_evidence() -> None:
    """If it failed, a transaction that a node never learned of after it had left would be an alarm."""
    logs = [NodeLog(node=node, records=()) for node in NODES]
    assert [log.node for log in logs_of_members(logs, changed((NODES[:2], 2)))] == ["n1", "n2"]
    assert len(logs_of_members(logs, changed())) == 3


@pytest.mark.parametrize("asked", [None, "linearizable"])
def test_what_the_plan_promises_is_judged_where_the_store_promises_nothing(asked: str | None) -> None:
    """If it failed, a run with `--promise linearizable` would be valid whatever clients saw."""
    plan = planned(cluster="sim", configuration="B", promise=asked)
    models = {check.name: check.model for check in checks_of(plan, promise_of(plan, record()))}
    assert models["linearizable"] == (asked or "")
    assert (models["prefix"], models["dirty"]) == ("", "read-uncommitted")
