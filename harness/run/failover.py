"""Failover without elections: which node is made the owner, and how.

- The fault `failover`: a node is asked to become the owner, again and again until it is.
- The *operator*: if no member stands for election by itself (modes off, manual and voter) and no node has owned the
  queue for a while, the harness promotes the node with the most rows, as a person would; if that does not help, the
  next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from harness.cluster.protocol import Cluster
from harness.faults.fault import Evidence, Fault
from harness.faults.overlap import hinders_no_owner
from harness.plan.plan import SECOND_NS, Plan
from harness.systems.status import Statuses, rows_of
from harness.systems.system import System

POLL_NS = SECOND_NS // 20
ASK_AGAIN_TIMEOUTS = 2
"""After so many election timeouts the operator asks again for a promotion that came to nothing."""
RETRY_TIMEOUTS = 0.4
"""The same of the fault. Under load voters are ahead of a candidate by the rows of a moment, and refuse it. No row
is written after that, so it has caught up when asked again, which must be before another node stands for election."""
OWNER_WITHIN_TIMEOUTS = 10
"""After so many election timeouts there is an owner again where nothing is wrong."""
LEADERLESS_BEATS = 2
"""The operator acts after so many heartbeats without an owner."""


@dataclass(slots=True)
class Failover:
    """One promotion that was asked for."""

    asked_ns: int
    asked: int = 0
    owner_ns: int | None = None
    """When the node was first seen to be the owner."""
    refused: str = ""
    outrun_by: str = ""
    """In words: the other node that became the owner meanwhile. It won the election that the promotion began."""

    def evidence(self, heal_asked_ns: int, now_ns: int, has_owner: bool | None) -> Evidence:
        """`has_owner`: a node owns the queue again; None if another fault may be the reason that none does."""
        return Evidence(
            took_effect=self.owner_ns is not None,
            asked_ns=self.asked_ns,
            first_effect_ns=self.owner_ns,
            all_in_effect_ns=self.owner_ns,
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=now_ns,
            healed=has_owner,
            counters={"asked": self.asked},
            detail="" if self.owner_ns is not None else self.refused or self.outrun_by,
        )


def owner_within_ns(plan: Plan) -> int:
    """How long after a promotion, successful or not, a node must own the queue."""
    return int(OWNER_WITHIN_TIMEOUTS * plan.expectations.election_timeout_s * SECOND_NS)


def may_keep_owners_away(
    faults: Iterable[Fault], failover: Fault, members: Sequence[str], plan: Plan
) -> bool:
    """These faults stop or cut off the node that was promoted, or leave no quorum that is not touched by one."""
    touched: set[str] = set()
    for fault in faults:
        if not hinders_no_owner(fault.does, fault.options, plan.expectations.decisive):
            touched.update(fault.nodes, *fault.links)
    untouched = [node for node in members if node not in touched]
    return bool({*failover.nodes} & touched) or len(untouched) < plan.quorum_size


async def statuses_of(plan: Plan, cluster: Cluster) -> dict[str, Mapping[str, object] | None]:
    return {node: await cluster.status(node) for node in plan.node_names}


async def fail_over(plan: Plan, cluster: Cluster, system: System, fault: Fault) -> Failover:
    """Promote the fault's node; comes back when it is the owner, or when the fault's time is over."""
    (node,) = fault.nodes
    failover = Failover(asked_ns=cluster.now_ns())
    ask_ns = cluster.now_ns()
    first: str | None = None
    while cluster.now_ns() < fault.until_ns:
        owner = system.owner_now(await statuses_of(plan, cluster))
        if owner == node:
            failover.owner_ns = cluster.now_ns()
            return failover
        if not failover.asked:
            first = owner
        elif owner is not None and owner != first:
            failover.outrun_by = f"an election was quicker: {owner} was promoted first"
        if cluster.now_ns() >= ask_ns:
            failover.asked += 1
            failover.refused = await system.promote(node, cluster) or ""
            ask_ns = cluster.now_ns() + int(RETRY_TIMEOUTS * plan.expectations.election_timeout_s * SECOND_NS)
        await cluster.sleep_until(min(cluster.now_ns() + POLL_NS, fault.until_ns))
    return failover


@dataclass(slots=True)
class ReelectionOperator:
    """Watches the nodes' reports, as the monitor does, and promotes one if no node owns the queue for too long."""

    plan: Plan
    cluster: Cluster
    system: System
    _leaderless_since_ns: int | None = None
    _next_ns: int = 0
    _tried: dict[str, None] = field(default_factory=dict)

    def look(self, statuses: Statuses) -> None:
        """Act, if it is time to, beside whatever else goes on. `statuses` are those of the members."""
        now_ns = self.cluster.now_ns()
        if self.system.owner_now(statuses) is not None or not self.plan.candidates.isdisjoint(statuses):
            self._leaderless_since_ns = None
            self._tried.clear()
            return
        if self._leaderless_since_ns is None:
            self._leaderless_since_ns = now_ns
        waited_ns = now_ns - self._leaderless_since_ns
        if waited_ns < LEADERLESS_BEATS * self.plan.heartbeat_ns or now_ns < self._next_ns:
            return
        node = self._choice(statuses)
        if node is not None:
            self._tried[node] = None
            self._next_ns = now_ns + int(
                ASK_AGAIN_TIMEOUTS * self.plan.expectations.election_timeout_s * SECOND_NS
            )
            self.cluster.spawn(self.system.promote(node, self.cluster))

    def _choice(self, statuses: Statuses) -> str | None:
        """The node that answers and has written most, among those not tried yet."""
        ready = [node for node in self.system.can_lead(self.plan) if statuses.get(node) is not None]
        fresh = [node for node in ready if node not in self._tried]
        if not fresh:
            self._tried.clear()
            fresh = ready
        return max(fresh, key=lambda node: rows_of(statuses[node]), default=None)
