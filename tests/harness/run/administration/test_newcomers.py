"""Members where an operator has to tell every node: who is asked what, and a newcomer that ends while it joins."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Collection, Coroutine, Generator, Mapping
from typing import Any, cast

from harness.clients.reply import Replied
from harness.cluster.protocol import Cluster
from harness.errors import NodeEnded
from harness.faults.membership import Membership
from harness.plan.plan import Plan
from harness.run.administration.deployed import Deployed
from harness.run.administration.members import Addition, Removal
from harness.systems.plans import planned
from harness.systems.tarantool.system import Tarantool
from nodes.iproto.messages import Answer, Call
from tests.harness.faults.test_membership import fault


class _Now:
    """An await that is over at once."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class _Cluster:
    """Three nodes of 2.6 as far as an operator sees them; `fails` newcomers end while they join."""

    def __init__(self, *there: str, fails: int = 0) -> None:
        self.ids = {node: int(node[1:]) for node in there}
        self.quorums = dict.fromkeys(there, 2)
        self.lists: dict[str, tuple[str, ...]] = dict.fromkeys(there, ("n1", "n2", "n3"))
        self.members = {1, 2, 3} if len(there) == 3 else {*self.ids.values()}
        self.fails = fails
        self.started: list[dict[str, Any]] = []
        self._now_ns = 0

    def now_ns(self) -> int:
        return self._now_ns

    async def sleep_until(self, time_ns: int) -> None:
        self._now_ns = max(self._now_ns, time_ns)
        await cast(Awaitable[None], _Now())

    async def status(self, node: str) -> Mapping[str, object] | None:
        if node not in self.ids:
            return None
        role = "owner" if node == "n1" else "replica"
        following = [other for other in self.lists[node] if other != node]
        told = {"members": sorted(self.members), "quorum": self.quorums[node], "following": following}
        return {"id": self.ids[node], "role": role, "term": 1, "vclock": {"1": 5}, **told}

    async def call(self, process: int, node: str, request: Call, timeout_ns: int) -> Replied:
        match request:
            case Call(_, "qsync.remove_member", (int(number),)):
                self.members -= {number}
            case Call(_, "qsync.set_members", (Mapping() as given,)):
                self.lists[node] = tuple(given["members"])
                self.quorums[node] = given["quorum"]
        return Replied(Answer(request.sync))

    async def terminate(self, node: str) -> bool:
        del self.ids[node], self.lists[node], self.quorums[node]
        return True

    async def destroy(self, node: str) -> None:
        await self.terminate(node)

    async def start_again(
        self, node: str, *, configuration: bytes | None = None, members: Collection[str] = ()
    ) -> None:
        assert configuration is not None
        assert not members, "nodes of Tarantool register themselves"
        self.started.append(json.loads(configuration))
        if len(self.started) <= self.fails:
            raise NodeEnded(f"{node} ended: unknown request type 40")
        self.ids[node] = 3
        self.members |= {3}
        self.lists[node] = tuple(self.started[-1]["members"])
        self.quorums[node] = self.started[-1]["quorum"]


def deployed(cluster: _Cluster, plan: Plan) -> Deployed:
    present = tuple(cluster.ids)
    members = Membership(plan.node_names, present)
    return Deployed(plan, cast(Cluster, cluster), Tarantool(), ("register",), lambda value: None, members)


def over(coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        while True:
            coroutine.send(None)
    except StopIteration as done:
        return done.value


PLAN = planned(system="tarantool", configuration="B", cluster="local", faults=("membership",))


def test_who_stays_replicates_from_nobody_who_has_left() -> None:
    """Broken, the nodes that stay go on dialing who left, or count a quorum that includes it."""
    cluster = _Cluster("n1", "n2", "n3")
    action = Removal(fault(0, "remove", 1, "n3"), deployed(cluster, PLAN))
    over(action.begin())
    evidence = over(action.end())
    assert (evidence.took_effect, evidence.healed) == (True, True), evidence
    assert cluster.members == {1, 2}
    assert cluster.lists == {"n1": ("n1", "n2"), "n2": ("n1", "n2")}


def test_a_newcomer_that_ends_while_it_joins_is_tried_again_and_that_is_told() -> None:
    """Broken, one failed join makes the rest of the run worthless, or nobody hears of it."""
    cluster = _Cluster("n1", "n2", fails=2)
    action = Addition(fault(0, "add", 1, "n3"), deployed(cluster, PLAN))
    over(action.begin())
    evidence = over(action.end())
    assert (evidence.took_effect, evidence.healed) == (True, True), evidence
    assert evidence.counters["ended_while_joining"] == 2
    assert "unknown request type 40" in evidence.detail
    assert {each["instance_uuid"] for each in cluster.started} == {cluster.started[0]["instance_uuid"]}
    assert cluster.lists == dict.fromkeys(("n1", "n2", "n3"), ("n1", "n2", "n3"))


def test_a_newcomer_has_an_identity_of_its_own_that_the_others_know() -> None:
    """Broken, real Tarantool takes the newcomer for the node that left, or an operator does not know its name."""
    system = Tarantool()
    usual = json.loads(system.configurations(PLAN, ("register",))["n3"])
    members = Membership.at_first(PLAN.node_names, None)
    told = json.loads(system.members.newcomer(PLAN, ("register",), "n3", {"n3": 1}, members))
    assert told["joins"]
    assert told["replicaset_uuid"] == usual["replicaset_uuid"]
    assert told["instance_uuid"] != usual["instance_uuid"]
    assert told["names"][told["instance_uuid"]] == "n3"
    assert told["quorum"] == 2
