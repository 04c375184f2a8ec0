"""Each fault, on each cluster, for each system: it can take effect, or it is refused before the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import pytest

from harness.cluster.containers.shaped_faults import PacketLinks
from harness.cluster.network_faults import RelayLinks
from harness.errors import WrongUse
from harness.faults.fault import Fault
from harness.faults.held import SCENIC
from harness.faults.overlap import ADMINISTERED
from harness.faults.table import ACTIONS, FAULTS
from harness.plan.plan import Drawn, Plan
from harness.run.assemble import CLUSTERS, parts_of
from harness.run.draw import faults_of
from harness.systems import system_of
from harness.systems.parts import Members
from harness.systems.plans import planned

OWN = "docs/mystore.py"
BEFORE = {"add-node": "remove-node", "rolling-downgrade": "rolling-upgrade"}


@pytest.fixture(autouse=True)
def a_machine_that_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """What depends on the machine is refused elsewhere (`refuse_what_this_machine_cannot`)."""
    monkeypatch.setattr("harness.systems.tarantool.system.program", lambda: "/usr/bin/tarantool")
    monkeypatch.setattr("harness.run.assemble.versions_of", lambda plan, system: {})
    monkeypatch.setattr("harness.run.assemble._check_inventory", lambda plan, runs_here: None)


def plans(system: str, cluster: str) -> Iterator[tuple[str, Plan]]:
    for name, kind in FAULTS.items():
        faults = (BEFORE[name], name) if name in BEFORE else (name,)
        node_from = "older" if kind.does in ("upgrade", "downgrade") else None
        for nodes in (1, 3):
            fields: dict[str, Any] = {"system": system, "cluster": cluster, "faults": faults, "nodes": nodes}
            yield name, planned(**fields, time_limit_s=60, node_from=node_from)


@pytest.mark.parametrize("faults", [("all",), ("changing-partitions", "partition-in-steps")])
@pytest.mark.parametrize("system", ["qsync", "twophase", "txlog", "tarantool", OWN])
def test_a_fault_names_nodes_of_the_plan(system: str, faults: tuple[str, ...]) -> None:
    """If it failed, a fault would aim at the leader of a store that has none, and end the run or do nothing."""
    for seed in range(20):
        plan = planned(system=system, cluster="local", nodes=3, faults=faults, time_limit_s=60, seed=seed)
        parts = parts_of(plan)
        for fault in faults_of(parts.plan, parts.system):
            links = [*fault.links, *(link for shape in fault.shapes for link in shape.links)]
            assert {*fault.nodes, *(node for link in links for node in link)} <= {*parts.plan.node_names}


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("system", ["qsync", "tarantool", OWN])
def test_a_fault_can_take_effect_or_is_refused_before_the_run(system: str, cluster: str) -> None:
    """If it failed, somebody would wait for a whole run to learn that the fault could never have been done."""
    for name, plan in plans(system, cluster):
        try:
            parts = parts_of(plan)
        except WrongUse:
            continue
        drawn = faults_of(parts.plan, parts.system)
        _takes_effect(parts, next(each for each in drawn if name == each.name or name in SCENIC))


def _takes_effect(parts: Any, fault: Fault) -> None:
    """Something carries it out, and the system lacks nothing that it needs."""
    system, plan = parts.system, parts.plan
    needed = ACTIONS[fault.does].ability
    assert needed is None or needed in system.abilities or plan.disk == "mounted"
    if plan.cluster != "sim" and fault.does not in ADMINISTERED | {"failover"}:
        packets, relay = MagicMock(), MagicMock()
        links = PacketLinks(packets, MagicMock()) if plan.cluster == "docker" else None
        links = links or RelayLinks(plan.cluster, plan.node_names, relay, MagicMock(), (1, 0))
        assert ACTIONS[fault.does].real(fault, MagicMock(links=links)) is not None
    brought = type(system.members)
    if needed == "members":
        assert brought.newcomer is not Members.newcomer
    if needed == "newcomers":
        assert brought.newcomer is not Members.newcomer or brought.are_added_running
    if needed == "versions":
        assert system.version(None) is not None


@pytest.mark.parametrize("does", [does for does, action in ACTIONS.items() if action.ability])
def test_a_written_plan_asks_for_nothing_that_its_system_is_not_able_to_do(does: Any) -> None:
    """If it failed, a plan file would bring to a run what its faults by name are refused for."""
    fields: dict[str, Any] = {
        "nodes": ("n1",),
        "delay_ns": 1,
        "error": "EIO",
        "damage": "torn-tail",
        "jump_ns": 1,
    }
    kept = {name: value for name, value in fields.items() if name == "nodes" or name in ACTIONS[does].fields}
    kept |= {"jump_ns": 1} if does == "clock" else {}
    fault = Fault(id=0, name="written", does=does, at_ns=0, until_ns=1, **kept)
    plan = planned(
        system=OWN, cluster="local", node_from="older", drawn=Drawn(faults=(fault,), operations=())
    )
    if ACTIONS[does].ability == "disk layer":
        assert parts_of(plan).plan.disk == "mounted"
        return
    with pytest.raises(WrongUse, match="mystore"):
        parts_of(plan)
    assert ACTIONS[does].ability not in system_of(OWN).abilities
