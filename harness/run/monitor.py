"""The monitor: asks every node for its state, notes nodes that ended by themselves, and keeps the record on disk.

On real clusters it notes the memory and the disk space in use now and then: lines of the harness, f "used", whose value
is what `MeasuresItself.used` gives. A run of a day ends early if one of them grows without end, and its page shows why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.cluster.protocol import (
    RARE_TURNS,
    BeginsAnew,
    Cluster,
    Ended,
    FindsOrphans,
    LooksForEnds,
    MeasuresItself,
    NotesRareTurns,
)
from harness.plan.plan import SECOND_NS, Plan
from harness.run.course import Course
from harness.run.failover import ReelectionOperator
from harness.run.present import Present
from harness.run.recorder import Recorder
from harness.systems.system import CANNOT_JOIN, System

EVERY_NS = SECOND_NS // 4
SETTLE_POLL_NS = SECOND_NS // 20
MEASURED_EVERY_NS = 10 * SECOND_NS
USED = "used"


@dataclass(slots=True)
class Monitor:
    plan: Plan
    cluster: Cluster
    system: System
    recorder: Recorder
    course: Course
    present: Present
    operator: ReelectionOperator | None = None
    """Promotes nodes when nothing else does; it acts on the states that the monitor gets."""
    is_up: bool = False
    """All nodes came up once."""
    untold: tuple[str, ...] = ()
    """The nodes that report nothing by which they could be seen to settle."""
    _has_looked_for_ends: bool = False

    async def watch(self) -> None:
        """Look again and again, until the run is over."""
        due_ns = measured_ns = self.cluster.now_ns()
        while not self.course.is_over:
            await self.look()
            if self.cluster.now_ns() >= measured_ns:
                measured_ns += MEASURED_EVERY_NS
                await self.measure()
            due_ns = max(due_ns + EVERY_NS, self.cluster.now_ns())
            await self.cluster.sleep_until(due_ns)

    async def measure(self) -> None:
        """Note the memory and the disk space in use, where the cluster can tell."""
        if isinstance(self.cluster, MeasuresItself):
            self.recorder.record("info", "harness", USED, value=await self.cluster.used())

    async def look(self) -> dict[str, Mapping[str, object] | None]:
        """The state of each member, noted and shown."""
        states = self.recorder.progress.states
        for node in self.plan.node_names:
            if node not in self.present.deployed.members.present:
                states.pop(node, None)
                continue
            status = await self.cluster.status(node)
            states[node] = status
            # A store may have an "up" of its own.
            value = {"up": False} if status is None else {"up": True} | {**status, "up": True}
            self.recorder.record("info", "monitor", "state", node=node, value=value)
        # While no node leads the last leader stays: in each election names would be exchanged back.
        self.present.leads(self.system.owner_now(states) or self.present.leader)
        if self.operator is not None:
            self.operator.look(states)
        self.note_ended()
        self.recorder.flush()
        self.recorder.show()
        return dict(states)

    async def has_settled(self) -> bool:
        """Wait until all queues are empty and all nodes equal; False if they are not in time."""
        deadline_ns = self.cluster.now_ns() + int(self.plan.settle_timeout_s * SECOND_NS)
        settled = False
        while not settled and self.cluster.now_ns() < deadline_ns and not self.course.is_interrupted:
            statuses = await self.look()
            settled = self.system.is_settled(statuses)
            self.untold = self.system.reports.untold(statuses)
            if not settled:
                await self.cluster.sleep_until(self.cluster.now_ns() + SETTLE_POLL_NS)
        if not settled and isinstance(self.cluster, BeginsAnew):
            # The last report decides which nodes are judged, and one may only have been late.
            await self.look()
        return settled

    async def look_for_ends(self) -> None:
        """Once in a run, on a cluster that has to look: a look that fails takes long."""
        if isinstance(self.cluster, LooksForEnds) and not self._has_looked_for_ends:
            self._has_looked_for_ends = True
            await self.cluster.look()

    def note_ended(self) -> None:
        for ended in self.cluster.ended():
            if self.is_up:  # else the start failed; the error of `Cluster.start` has the node's last lines
                self._note_end(ended)
        for stalled_at_ns, stalled_ms in self.cluster.stalls():
            value = {"stalled_ms": stalled_ms, "at_ns": stalled_at_ns}
            self.recorder.record("info", "harness", "stall", value=value)
        self.note_orphans()

    def _note_end(self, ended: Ended) -> None:
        """A newcomer that said that no member can take it in ended in order; every other end is a crash."""
        is_new = self.present.deployed.was_joining(ended.node, ended.time_ns)
        if is_new and (why := self.system.members.cannot_join(ended.how, ended.last_words)):
            self.recorder.record("info", "monitor", CANNOT_JOIN, node=ended.node, value={"why": why})
            return
        value: dict[str, object] = {"how": ended.how, "at_ns": ended.time_ns}
        if ended.last_words:
            value["last_words"] = ended.last_words
        if ended.out_of_memory:
            value["out_of_memory"] = ended.out_of_memory
        self.recorder.record("info", "monitor", "crash", node=ended.node, value=value)

    def note_rare_turns(self) -> None:
        """At the time of the last line: the run is over, and takes no longer for this.

        A record without any line stays empty, which shows that the run was broken off.
        """
        writer = self.recorder.writer
        if not writer.time_ns:
            return
        if self.system.variety.rare_turns and isinstance(self.cluster, NotesRareTurns):
            turns = self.cluster.sometimes()
            writer.record("info", "harness", RARE_TURNS, time_ns=writer.time_ns, value=dict(turns))

    def note_orphans(self) -> None:
        if isinstance(self.cluster, FindsOrphans):
            for orphans in self.cluster.orphans():
                value = {"what": orphans.what, "at_ns": orphans.time_ns}
                self.recorder.record("info", "harness", "orphans", node=orphans.node, value=value)
