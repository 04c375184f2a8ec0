"""Members of a store that counts a new node before it starts: stores/etcd.py against a made-up cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import cast

import pytest

from harness.clients.operations import AddMember, Asked, Completion, Done, Outcome, RemoveMember
from harness.cluster.protocol import Cluster
from harness.errors import NodeEnded
from harness.faults.fault import Does
from harness.faults.membership import Membership
from harness.run.administration.deployed import Deployed
from harness.run.administration.members import Addition, Removal, Replacement
from harness.systems import system_of
from harness.systems.plans import planned
from tests.harness.faults.test_membership import fault
from tests.harness.run.administration.test_newcomers import _Now, over

STORE = str(Path(__file__).parents[4] / "stores/etcd.py")
PLAN = planned(system=STORE, cluster="docker", faults=("membership",))
ACTIONS: Mapping[Does, type[Addition | Replacement]] = {"add": Addition, "replace": Replacement}


class _Cluster:
    """Members by their ids. `lost`: so many answers to AddMember do not arrive; `fails`: so many new nodes end."""

    def __init__(self, *there: str, lost: int = 0, fails: int = 0) -> None:
        self.ids = {node: int(node[1:]) for node in there}
        self.members = {*self.ids.values()}
        self.lost = lost
        self.fails = fails
        self.added: list[str] = []
        self.joined: list[tuple[str, ...]] = []
        self._now_ns = 0

    def now_ns(self) -> int:
        return self._now_ns

    async def sleep_until(self, time_ns: int) -> None:
        self._now_ns = max(self._now_ns, time_ns)
        await _Now()

    def address(self, node: str) -> str:
        return f"10.0.0.{node[1:]}:3301"

    async def status(self, node: str) -> Mapping[str, object] | None:
        if node not in self.ids:
            return None
        role = "owner" if node == "n1" else "replica"
        return {"id": self.ids[node], "role": role, "vclock": "5", "members": sorted(self.members)}

    async def perform(self, process: int, node: str, asked: Asked, timeout_ns: int) -> Outcome:
        match asked:
            case RemoveMember(number):
                self.members -= {number}
            case AddMember(_, address):
                self.added.append(address)
                self.members |= {100 + len(self.added)}
                if len(self.added) <= self.lost:
                    return Completion("info", None, "timeout")
        return Done([True])

    async def terminate(self, node: str) -> bool:
        del self.ids[node]
        return True

    async def destroy(self, node: str) -> None:
        await self.terminate(node)

    async def start_again(
        self, node: str, *, configuration: bytes | None = None, members: Collection[str] = ()
    ) -> None:
        assert configuration is not None
        self.joined.append(tuple(members))
        if len(self.joined) <= self.fails:
            raise NodeEnded(f"{node} ended: cannot fetch cluster info from peer urls")
        self.ids[node] = 100 + len(self.added)


@pytest.mark.parametrize(("lost", "fails", "asked"), [(0, 0, 1), (2, 0, 3), (0, 2, 3)])
@pytest.mark.parametrize("does", ["add", "replace"])
def test_a_new_node_is_counted_before_it_starts_and_no_lost_one_is_counted(
    does: Does, lost: int, fails: int, asked: int
) -> None:
    """If it failed, a node would start on an empty disk under an id that may have voted: a false alarm, or members
    that never come would take the store its quorum."""
    cluster = _Cluster("n1", "n2", *(("n3",) if does == "replace" else ()), lost=lost, fails=fails)
    present = tuple(cluster.ids)
    members = Membership(PLAN.node_names, present)
    deployed = Deployed(PLAN, cast(Cluster, cluster), system_of(STORE), (), lambda value: None, members)
    action = ACTIONS[does](fault(0, does, 1, "n3"), deployed)
    over(action.begin())
    evidence = over(action.end())
    assert (evidence.took_effect, evidence.healed) == (True, True), evidence
    assert cluster.added == ["10.0.0.3:3301"] * asked
    assert cluster.members == {1, 2, 100 + asked}
    assert {*cluster.joined} == {("n1", "n2")}


def test_a_member_that_leaves_is_counted_no_more() -> None:
    """If it failed, the remaining members would need a quorum with a node that never comes back."""
    cluster = _Cluster("n1", "n2", "n3")
    members = Membership.at_first(PLAN.node_names, None)
    deployed = Deployed(PLAN, cast(Cluster, cluster), system_of(STORE), (), lambda value: None, members)
    action = Removal(fault(0, "remove", 1, "n3"), deployed)
    over(action.begin())
    evidence = over(action.end())
    assert (evidence.took_effect, evidence.healed, cluster.members) == (True, True, {1, 2}), evidence
