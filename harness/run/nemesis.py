"""The nemesis: begins and heals the faults of a run, and records their evidence.

Faults of one slot follow each other; the slots run beside each other. A directed fault runs beside all slots, from its
own time or moment on. Each fault was drawn for the first leader and for all members. The nemesis exchanges the names
for today's (`present.py`). It skips a fault that is not possible any more, and records the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from harness.cluster.protocol import ChangesShapes, Cluster, WatchesMoments
from harness.faults.directed import in_place
from harness.faults.fault import Evidence, Fault
from harness.faults.hands import AtWork, Task
from harness.faults.overlap import ADMINISTERED, STEPS, exclude, slots_of
from harness.plan.plan import SECOND_NS, Plan
from harness.run.administration.actions import action_of
from harness.run.course import Course
from harness.run.failover import Failover, fail_over, may_keep_owners_away, owner_within_ns, statuses_of
from harness.run.monitor import SETTLE_POLL_NS, Monitor
from harness.run.present import Present
from harness.run.recorder import Recorder
from harness.systems.system import System

LEFT_OUT_NS = SECOND_NS // 10
"""A slot that is later than this leaves out a fault that has no time left."""
GONE = "the target node is no longer a member, or there is no absent node to add"
LATE = "the previous fault was still active or healing when its time slot ended"


@dataclass(slots=True)
class Nemesis:
    plan: Plan
    cluster: Cluster
    system: System
    recorder: Recorder
    course: Course
    present: Present
    monitor: Monitor
    slots: list[Task[None]] = field(default_factory=list)
    directed: dict[int, Task[None]] = field(default_factory=dict)
    _begun: dict[int, None] = field(default_factory=dict)
    """Directed faults that have begun."""
    _is_ending: bool = False
    _actions: dict[int, AtWork] = field(default_factory=dict)
    _failovers: dict[int, Failover] = field(default_factory=dict)

    @property
    def active(self) -> dict[int, Fault]:
        return self.recorder.progress.active

    def begin(self, faults: Sequence[Fault]) -> None:
        """Start them all: the slots run beside each other, and each directed fault beside them."""
        for slot in slots_of(fault for fault in faults if not fault.is_directed):
            self.slots.append(self.cluster.spawn(self.course.part(self._slot(slot))))
        for fault in faults:
            if fault.is_directed:
                self.directed[fault.id] = self.cluster.spawn(self.course.part(self._directed(fault)))

    async def end_directed(self) -> None:
        """Faults that have begun end in their time; faults that wait for their trigger wait no more."""
        self._is_ending = True
        for number, task in self.directed.items():
            if number in self._begun:
                await task
            else:
                task.cancel()

    def cancel(self) -> None:
        for task in (*self.slots, *self.directed.values()):
            task.cancel()

    # ---- which fault, and when

    async def _slot(self, faults: Sequence[Fault]) -> None:
        is_late = False
        before: Fault | None = None
        for drawn in faults:
            await self.course.wait_until(drawn.at_ns)
            if self.course.is_interrupted:
                return
            if before is not None and self.plan.cluster != "sim":
                fault = await self._behind(before, drawn)
                is_late = is_late or fault is not drawn
                before = None
            else:
                fault = self._later(drawn) if is_late or drawn.does in STEPS else drawn
            present = None if fault is None else self.present.fault(fault)
            if present is not None and present.does in STEPS:
                present = await self._when_possible(present)
            if present is None or self._has_passed(present):
                has_no_target = fault is not None and self.present.fault(fault) is None
                self.recorder.left_out(drawn, GONE if has_no_target else LATE)
                continue
            # The end of an operator's action is not drawn: the next fault begins when that is over, and lasts as long.
            is_late = is_late or present.does in ADMINISTERED
            beside = self.excluded_by(present)
            if beside is not None:  # its node was exchanged for one that is down already, say
                self.recorder.left_out(present, f"fault {beside.id} ({beside.name}) was still at work")
            else:
                await self._fault(present)
                before = drawn

    async def _directed(self, fault: Fault) -> None:
        """One fault that runs beside the slots, when its time or its trigger has come."""
        await self.course.wait_until(fault.at_ns)
        trigger_node = ""
        if fault.on is not None and not self.course.is_interrupted:
            assert isinstance(self.cluster, WatchesMoments), "only the simulator knows moments"
            trigger_node = await self.cluster.moment(fault.on)
        if self.course.is_interrupted or self._is_ending:
            return
        lasts_ns = fault.until_ns - fault.at_ns
        now_ns = self.cluster.now_ns()
        present = self.present
        leader = present.leader or present.first
        resolved = present.of_members(
            in_place(fault, trigger_node, leader, self.plan.node_names, present.former)
        )
        if resolved is None or self._is_hindered(resolved):
            return
        self._begun[fault.id] = None  # from here on the end of the load waits for it, and does not cancel it
        await self._fault(msgspec.structs.replace(resolved, at_ns=now_ns, until_ns=now_ns + lasts_ns))

    def _is_hindered(self, directed: Fault) -> bool:
        """Options of a node change one at a time, and no node is promoted by hand while election modes change."""
        touches = directed.does in ADMINISTERED or directed.does == "failover"
        return touches and any(
            self._exclude(directed, other)
            for other in self.active.values()
            if other.options or directed.does in ADMINISTERED
        )

    def _exclude(self, one: Fault, other: Fault) -> bool:
        return exclude(one, other, self.plan.expectations.decisive, is_real=self.plan.cluster != "sim")

    async def _behind(self, before: Fault, drawn: Fault) -> Fault | None:
        """The fault to begin after `before`, which has been healed; None if no time is left for it.

        Real nodes take time to be back, and containers more. The store has its quiet time all the same, and the next
        fault its whole length.
        """
        quiet_ns = drawn.at_ns - before.until_ns
        late_ns = self.cluster.now_ns() + quiet_ns - drawn.at_ns
        if late_ns <= LEFT_OUT_NS:
            return drawn
        if drawn.until_ns + late_ns > self.plan.time_limit_ns:
            return None
        await self.course.wait_until(drawn.at_ns + late_ns)
        return self._later(drawn)

    def _later(self, drawn: Fault) -> Fault | None:
        """The fault from now on, as long as before: an operator's action took too long. None if no time is left."""
        now_ns, lasts_ns = self.cluster.now_ns(), drawn.until_ns - drawn.at_ns
        at_ns = max(now_ns, drawn.at_ns)
        if at_ns + lasts_ns > self.plan.time_limit_ns:
            return None
        return msgspec.structs.replace(drawn, at_ns=at_ns, until_ns=at_ns + lasts_ns)

    async def _when_possible(self, step: Fault) -> Fault | None:
        """An operator waits until nothing else is done to the node, or to the members."""
        while any(self._exclude(step, other) for other in self.active.values()):
            await self.cluster.sleep_until(self.cluster.now_ns() + SECOND_NS // 10)
            later = self._later(step)
            if self.course.is_interrupted or later is None:
                return None
            step = later
        return self.present.of_members(step)

    def _has_passed(self, fault: Fault) -> bool:
        """Healing the fault before took so long that this one has no time left to take effect."""
        now_ns = self.cluster.now_ns()
        return now_ns - fault.at_ns > LEFT_OUT_NS and fault.until_ns - now_ns < self.plan.heartbeat_ns

    # ---- one fault

    async def begin_fault(self, fault: Fault) -> None:
        """Begin a fault that is in no schedule; it lasts until `end_fault`."""
        self._announce(fault)
        await self._inject(fault)

    async def end_fault(self, fault: Fault) -> None:
        await self._heal(fault, None)

    def excluded_by(self, fault: Fault) -> Fault | None:
        """The active fault that keeps this one from beginning, if there is one."""
        return next((other for other in self.active.values() if self._exclude(fault, other)), None)

    def _announce(self, fault: Fault) -> None:
        self.recorder.record("invoke", "nemesis", fault.name, value=msgspec.to_builtins(fault))
        self.recorder.flush()  # so the record of a killed harness shows what was done to the nodes
        self.active[fault.id] = fault
        self.recorder.show()

    async def _fault(self, fault: Fault) -> None:
        self._announce(fault)
        broken: Exception | None = None
        try:
            await self._inject(fault)
            await self._change_shapes(fault)
            await self.course.wait_until(fault.until_ns)
        except Exception as error:
            broken = error  # first the healing, also of a fault that began on some nodes only
        finally:
            await self._heal(fault, broken)

    async def _inject(self, fault: Fault) -> None:
        if fault.does in ADMINISTERED:
            action = self._actions[fault.id] = action_of(fault, self.present.deployed)
            await action.begin()
        elif fault.does == "failover":
            self._failovers[fault.id] = await fail_over(self.plan, self.cluster, self.system, fault)
        else:
            await self.cluster.inject(fault)

    async def _change_shapes(self, fault: Fault) -> None:
        """A changing partition goes from shape to shape; a shape with its time over is skipped.

        Where a cluster was slow to begin it, the first shape lasts as long all the same.
        """
        begun_ns = max(self.cluster.now_ns(), fault.at_ns)
        ends = [min(begun_ns + shape.after_ns, fault.until_ns) for shape in fault.shapes[1:]]
        ends.append(fault.until_ns)
        for number in range(1, len(fault.shapes)):
            await self.course.wait_until(ends[number - 1])
            if self.course.is_interrupted:
                return
            # The last shape is never skipped: a partition that never changed has no effect.
            if self.cluster.now_ns() < ends[number] or number == len(fault.shapes) - 1:
                assert isinstance(self.cluster, ChangesShapes), "a cluster that cannot do it has refused it"
                await self.cluster.change(fault, number)

    async def _heal(self, fault: Fault, broken: Exception | None) -> None:
        """Undo a fault and record its end in any case; raises the first error."""
        asked_ns = self.cluster.now_ns()
        evidence: Evidence | None = None
        try:
            evidence = await self._undo(fault)
        except Exception as error:
            broken = broken or error
        finally:
            # Its end is written even if the healing broke: a fault without an end excuses all that follows.
            known = evidence or _nothing_known(fault, asked_ns, broken)
            value = {"id": fault.id, **msgspec.to_builtins(known)}
            self.recorder.record("info", "nemesis", fault.name, value=value)
            del self.active[fault.id]
            self.recorder.show()
        if broken is not None:
            raise broken

    async def _undo(self, fault: Fault) -> Evidence:
        if fault.does in ADMINISTERED:
            return await self._actions.pop(fault.id).end()
        if fault.does != "failover":
            return await self.cluster.heal(fault)
        asked_ns = self.cluster.now_ns()
        has_owner = await self._has_owner_again(fault)
        return self._failovers.pop(fault.id).evidence(asked_ns, self.cluster.now_ns(), has_owner)

    async def _has_owner_again(self, failover: Fault) -> bool | None:
        """Whether a node owns the queue soon after a promotion; None if another fault may prevent that."""
        deadline_ns = self.cluster.now_ns() + owner_within_ns(self.plan)
        states: Mapping[str, Mapping[str, object] | None] = await self.monitor.look()
        while self.system.owner_now(states) is None:
            others = [fault for fault in self.active.values() if fault.id != failover.id]
            members = self.present.deployed.members.present
            if self.course.is_interrupted or may_keep_owners_away(others, failover, members, self.plan):
                return None
            if self.cluster.now_ns() >= deadline_ns:
                return False
            await self.cluster.sleep_until(self.cluster.now_ns() + SETTLE_POLL_NS)
            states = await statuses_of(self.plan, self.cluster)
        return True


def _nothing_known(fault: Fault, heal_asked_ns: int, broken: Exception | None) -> Evidence:
    """The evidence of a fault that could not be healed: whether it took effect is not known either."""
    return Evidence(
        took_effect=False,
        asked_ns=fault.at_ns,
        first_effect_ns=None,
        all_in_effect_ns=None,
        heal_asked_ns=heal_asked_ns,
        last_effect_ns=None,
        healed=False,
        detail="not healed" if broken is None else f"not healed: {broken}",
    )
