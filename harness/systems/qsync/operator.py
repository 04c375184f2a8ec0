"""An operator: failover from outside, for a store that has none of its own.

It sees the cluster from the side of the replicas, as an external observer does: if no other node hears a master any
more, it assumes that the master is gone. It cannot reach such a node either, so it cannot make it read-only before it
promotes another one; it does so as soon as other nodes hear it again. Of the nodes that can form a quorum it promotes
the one with the most rows.

Replication that has stopped, because a node could not apply a row, does not go on by itself. When all that answer are
heard again the operator restarts it, as the documentation says (Replication stops), and again if that did not help.

Everything it does is written into the history, as lines of the process "operator".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from harness.clients.reply import Replied
from harness.cluster.protocol import Cluster
from harness.plan.plan import SECOND_NS, Plan
from harness.systems.parts import Note
from harness.systems.qsync.calls import why_refused
from harness.systems.qsync.options import said_of
from harness.systems.status import Statuses
from nodes.iproto.messages import Answer, Call

PROCESS = -2
MILLISECOND_NS = 1_000_000
LOOK_EVERY_NS = SECOND_NS // 10
TAKE_OVER_TIMEOUT_NS = 10 * SECOND_NS
STEP_DOWN_TIMEOUT_NS = SECOND_NS
RESUME_TIMEOUT_NS = 3 * SECOND_NS
RESUME_EVERY_NS = 2 * SECOND_NS
SILENT_HEARTBEATS = 2
"""A node is not heard any more after so many heartbeats."""


@dataclass(slots=True)
class ClearQueueOperator:
    plan: Plan
    cluster: Cluster
    note: Note
    master: str
    _generation: int = 0
    _resumed_ns: dict[str, int] = field(default_factory=dict)
    """When the replication of each node was last started anew."""

    async def run(self, is_over: Callable[[], bool]) -> None:
        """Look at the nodes, again and again, and do what is needed."""
        while not is_over():
            statuses = {node: await self.cluster.status(node) for node in self.plan.node_names}
            await self._act(statuses)
            await self.cluster.sleep_until(self.cluster.now_ns() + LOOK_EVERY_NS)

    async def _act(self, statuses: Statuses) -> None:
        reachable = [node for node in self.plan.node_names if self._is_heard(node, statuses)]
        self._note_master(reachable, statuses)
        for node in reachable:
            if node != self.master and _role(statuses[node]) == "owner":
                await self._step_down(node)
        if self.master in reachable and _role(statuses[self.master]) == "owner":
            await self._resume_whatstopped_upstreams(reachable, statuses)
            return
        able = [node for node in reachable if self._hears(node, statuses) >= self._quorum(statuses[node])]
        if able:
            await self._take_over(max(able, key=lambda node: _progress(statuses[node])))

    def _note_master(self, reachable: list[str], statuses: Statuses) -> None:
        """The node that took over last, by this operator's hand or another's."""
        for node in reachable:
            generation = _number(statuses[node], "term")
            # A deposed master calls itself owner, too, of an older generation.
            if _role(statuses[node]) == "owner" and generation > self._generation:
                self.master, self._generation = node, generation

    def _is_heard(self, node: str, statuses: Statuses) -> bool:
        """A peer receives from the node; or the peer stopped on a row, and the node receives from it: not a silence."""
        if statuses[node] is None:
            return False
        others = [other for other in self.plan.node_names if other != node]
        return any(
            self._receives(statuses[other], node)
            or (node in stopped_upstreams(statuses[other]) and self._receives(statuses[node], other))
            for other in others
        )

    def _hears(self, node: str, statuses: Statuses) -> int:
        """How many nodes the node receives from, itself included."""
        return 1 + sum(self._receives(statuses[node], other) for other in self.plan.node_names)

    def _quorum(self, status: Mapping[str, object] | None) -> int:
        """The quorum by the node's report: it changes when members leave and come."""
        return _number(status, "quorum") or self.plan.quorum_size

    def _receives(self, status: Mapping[str, object] | None, source: str) -> bool:
        upstreams = status["upstreams"] if status is not None else None
        upstream = upstreams.get(source) if isinstance(upstreams, dict) else None
        if not isinstance(upstream, dict) or upstream.get("status") != "follow":
            return False
        return float(upstream.get("idle", 0)) < SILENT_HEARTBEATS * said_of(self.plan).replication_timeout_s

    async def _take_over(self, node: str) -> None:
        self.note("take-over", node, {"asked": True, "instead_of": self.master})
        error = await take_over(node, self.cluster)
        self.note("take-over", node, {"done": error is None, "error": error})

    async def _resume_whatstopped_upstreams(self, reachable: list[str], statuses: Statuses) -> None:
        """Wait until all that answer are reachable: a node that restarts replication waits for every silent node."""
        if len(reachable) < len([node for node in self.plan.node_names if statuses[node] is not None]):
            return
        for node in reachable:
            stopped = stopped_upstreams(statuses[node])
            due_ns = self._resumed_ns.get(node, -RESUME_EVERY_NS) + RESUME_EVERY_NS
            if stopped and self.cluster.now_ns() >= due_ns:
                self._resumed_ns[node] = self.cluster.now_ns()
                error = await asked(self.cluster, node, "qsync.resume", (), RESUME_TIMEOUT_NS)
                self.note("resume", node, {"done": error is None, "error": error, "stopped": stopped})

    async def _step_down(self, node: str) -> None:
        error = await asked(self.cluster, node, "qsync.step_down", (), STEP_DOWN_TIMEOUT_NS)
        self.note("step-down", node, {"done": error is None, "error": error})


async def take_over(node: str, cluster: Cluster, *, is_first: bool = False) -> str | None:
    """Make a node the master of a new generation; None if it was done, else why not.

    Generations are milliseconds of the run: the last one need not be known. `is_first`: the time begins anew after it.
    """
    generation = 1 if is_first else 1 + cluster.now_ns() // MILLISECOND_NS
    return await asked(cluster, node, "qsync.take_over", (generation,), TAKE_OVER_TIMEOUT_NS)


async def asked(
    cluster: Cluster, node: str, name: str, arguments: tuple[object, ...], within_ns: int
) -> str | None:
    """Call a function of a node; None if it answered, else why it did not."""
    reply = await cluster.call(PROCESS, node, Call(1 + cluster.now_ns(), name, arguments), within_ns)
    match reply:
        case Replied(Answer()):
            return None
        case Replied(refusal):
            return why_refused(refusal)
        case lost:
            return lost.reason


def _role(status: Mapping[str, object] | None) -> object:
    return None if status is None else status["role"]


def stopped_upstreams(status: Mapping[str, object] | None) -> dict[str, str]:
    """The sources from which the node receives no more, and why, by its own report."""
    upstreams = status.get("upstreams") if status is not None else None
    return {
        source: str(upstream.get("message") or "")
        for source, upstream in (upstreams.items() if isinstance(upstreams, dict) else ())
        if isinstance(upstream, dict) and upstream.get("status") == "stopped"
    }


def _number(status: Mapping[str, object] | None, name: str) -> int:
    value = None if status is None else status.get(name)
    return value if isinstance(value, int) else 0


def _progress(status: Mapping[str, object] | None) -> int:
    """How much a node has: the sum of its vclock."""
    vclock = status["vclock"] if status is not None else None
    return sum(map(int, vclock.values())) if isinstance(vclock, dict) else 0
