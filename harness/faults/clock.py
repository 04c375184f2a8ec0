"""Clock: wall clocks jump, or jump there and back; monotonic clocks drift.

On real nodes the machine's own clock is never touched: files in the node's folder say by how much its clocks are wrong
(`harness.cluster.clock_files`). The node reports its clock in its status, between two readings of the right time: so
there are bounds for how far it is off.

| fault | took effect if |
|---|---|
| a jump | the node's clock was surely off, in the right direction and by at least half of the jump |
| a drift alone | its clock surely gained (lost) time between the beginning and the end |
| strobe (`delay_ns`) | its clock was seen to be wrong, then right, then wrong again |

Healed if its clock was seen to be right.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from harness.faults.action import MILLISECOND_NS, SECOND_NS, Action, Fields, Kind, Situation, anyone
from harness.faults.fault import Evidence, Fault
from harness.faults.hands import AtWork, Hands, Task
from harness.faults.real import RealFault
from harness.faults.virtual import VirtualFault, VirtualHands
from harness.faults.where import REAL, SIM, by_name

RIGHT_WITHIN_NS = 500 * MILLISECOND_NS
"""A clock that is off by less is right."""
SURELY_WRONG_NS = 100 * MILLISECOND_NS
"""A clock that is off by less may be right: the clock of a remote host is not known more exactly."""
STROBE_TURNS_MIN = 2
"""Right again, and wrong again."""
SEEN_WITHIN_NS = 3 * SECOND_NS
ASK_AGAIN_NS = 20 * MILLISECOND_NS


class VirtualClocks(VirtualFault):
    """Took effect if a clock differed from the right time; one that strobes, if it turned twice."""

    turns: int | None = None
    """How often clocks that strobe have turned: away after an even number. None: the fault is over."""

    async def begin(self) -> None:
        fault = self.fault
        for machine in self.hands.machines(fault.nodes):
            machine.clock.wall_offset_ns += fault.jump_ns
            machine.clock.set_drift(self.hands.now_ns(), fault.drift_ppm)
        if fault.delay_ns:
            self.turns = 0
            self.hands.world.agenda.after(fault.delay_ns, self._turn)

    def _turn(self) -> None:
        """Clocks that strobe go to the right time, or away from it again."""
        if self.turns is None:
            return  # healed meanwhile
        self.turns += 1
        by_ns = -self.fault.jump_ns if self.turns % 2 else self.fault.jump_ns
        for machine in self.hands.machines(self.fault.nodes):
            machine.clock.wall_offset_ns += by_ns
        self.hands.world.agenda.after(self.fault.delay_ns, self._turn)

    async def end(self) -> Evidence:
        self.heal_asked_ns = now_ns = self.hands.now_ns()
        turns, self.turns = self.turns or 0, None
        differed = 0
        for machine in self.hands.machines(self.fault.nodes):
            clock = machine.clock
            differed += clock.wall_offset_ns != 0 or clock.read(now_ns).monotonic_ns != now_ns
            clock.wall_offset_ns -= 0 if turns % 2 else self.fault.jump_ns
            clock.set_drift(now_ns, 0)
        is_strobe = bool(self.fault.delay_ns)
        counters = {"turns": turns} if is_strobe else {"clocks": differed}
        took_effect = turns > 1 if is_strobe else differed > 0
        return self.evidence(took_effect, counters, first_ns=self.asked_ns)


class Off(NamedTuple):
    """By how much a clock is wrong: not less than `least_ns`, not more than `most_ns`."""

    least_ns: int
    most_ns: int

    def is_wrong_by(self, jump_ns: int) -> bool:
        """The clock is surely off in the direction of the jump, by at least half of it."""
        enough_ns = max(abs(jump_ns) // 2, SURELY_WRONG_NS)
        return self.least_ns >= enough_ns if jump_ns > 0 else self.most_ns <= -enough_ns

    def may_be_right(self, jump_ns: int) -> bool:
        """The clock is right as far as can be known, and not still off by most of the jump."""
        tolerance_ns = min(RIGHT_WITHIN_NS, max(abs(jump_ns) // 2, SURELY_WRONG_NS))
        return self.least_ns < tolerance_ns and self.most_ns > -tolerance_ns

    def gained_since(self, before: Off, drift_ppm: int) -> int:
        """How much time the clock surely gained (or, where it is slow, lost) since then; 0 if that is not sure."""
        if drift_ppm > 0:
            return max(0, self.least_ns - before.most_ns)
        return max(0, before.least_ns - self.most_ns)


class RealClocks(RealFault):
    """The clocks of some nodes jump, once or there and back again and again, and drift."""

    def __init__(self, fault: Fault, hands: Hands) -> None:
        super().__init__(fault, hands)
        self._at_first: dict[str, Off] = {}
        """How wrong each clock was when it was first observed to be wrong; without a jump, when it was first read."""
        self._gained_ns: dict[str, int] = {}
        self._turns: Counter[str] = Counter()
        """How often a node's clock was observed to turn since, as ordered."""
        self._is_over = False
        self._strobes: list[Task[None]] = []

    async def begin(self) -> None:
        fault = self.fault
        for node in fault.nodes:
            await self.hands.set_clock(node, fault.jump_ns, fault.drift_ppm)
        await self.each(self._see)
        if fault.delay_ns:
            self._strobes = [self.hands.spawn(self._strobe(node)) for node in fault.nodes]

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        self._is_over = True
        # All have ended before a clock is set right: one might turn it again.
        broken = await self._broken_strobes()
        if self.fault.drift_ppm and not self.fault.delay_ns:
            await self.each(self._see_gain)  # while the clock is wrong still
        for node in self.fault.nodes:
            await self.hands.set_clock(node, 0, 0)
        if broken:
            raise broken[0]
        healed = [await self._is_seen(node, self._is_right) for node in self.fault.nodes]
        took_effect = self.all_seen and all(map(self._took_effect, self.fault.nodes))
        return self.evidence(took_effect, healed, self._counters())

    async def _broken_strobes(self) -> Sequence[Exception]:
        broken: list[Exception] = []
        for strobe in self._strobes:
            try:
                await strobe
            except Exception as error:  # the clocks are set right first
                broken.append(error)
        return broken

    def _took_effect(self, node: str) -> bool:
        if self.fault.delay_ns:
            return self._turns[node] >= STROBE_TURNS_MIN
        return self.fault.jump_ns != 0 or self._gained_ns.get(node, 0) > 0

    def _counters(self) -> dict[str, int]:
        fault = self.fault
        counters = {"clocks_seen_to_differ": len(self.seen_ns) if fault.jump_ns else 0}
        if fault.delay_ns:
            counters["turns_seen"] = self._turns.total()
        elif fault.drift_ppm:
            counters["gained_us" if fault.drift_ppm > 0 else "lost_us"] = (
                sum(self._gained_ns.values()) // 1_000
            )
        return counters

    async def _see(self, node: str) -> None:
        """Wait until the clock is observed to be wrong. Without a jump, read it, for a comparison at the end."""
        jump_ns = self.fault.jump_ns
        if await self._is_seen(node, lambda off: not jump_ns or off.is_wrong_by(jump_ns)):
            self.saw()
            if (off := await self._off(node)) is not None:
                self._at_first[node] = off

    async def _see_gain(self, node: str) -> None:
        off = await self._off(node)
        if off is not None and node in self._at_first:
            self._gained_ns[node] = off.gained_since(self._at_first[node], self.fault.drift_ppm)

    async def _strobe(self, node: str) -> None:
        """Turn the clock to the right time and away again, each time when the last turn was observed and is over."""
        is_wrong = True
        while not await self._is_over_within(self.fault.delay_ns):
            is_wrong = not is_wrong
            jump_ns = self.fault.jump_ns if is_wrong else 0
            await self.hands.set_clock(node, jump_ns, self.fault.drift_ppm)
            if await self._is_seen(node, self._is_wrong if is_wrong else self._is_right, until_over=True):
                self._turns[node] += 1

    async def _is_over_within(self, time_ns: int) -> bool:
        until_ns = self.hands.now_ns() + time_ns
        while not self._is_over and (left_ns := until_ns - self.hands.now_ns()) > 0:
            await self.sleep(min(left_ns, ASK_AGAIN_NS))
        return self._is_over

    async def _is_seen(
        self, node: str, wanted: Callable[[Off], bool], *, until_over: bool = False
    ) -> bool | None:
        """Whether the clock came to be as `wanted` in time; None if the node never reported it."""
        deadline_ns = self.hands.now_ns() + SEEN_WITHIN_NS
        is_so = None
        while self.hands.now_ns() < deadline_ns and not (until_over and self._is_over):
            if (off := await self._off(node)) is not None:
                is_so = wanted(off)
                if is_so:
                    return True
            await self.sleep(ASK_AGAIN_NS)
        return is_so

    async def _off(self, node: str) -> Off | None:
        """The node's report of its clock; None if there is none."""
        before_ns = self.hands.wall_ns(node)
        status = await self.hands.status(node)
        after_ns = self.hands.wall_ns(node)
        wall_ns = None if status is None else status.get("wall_ns")
        if not isinstance(wall_ns, int | float) or not abs(wall_ns) < math.inf:
            return None
        return Off(int(wall_ns) - after_ns, int(wall_ns) - before_ns)

    def _is_wrong(self, off: Off) -> bool:
        return off.is_wrong_by(self.fault.jump_ns)

    def _is_right(self, off: Off) -> bool:
        return off.may_be_right(self.fault.jump_ns)


def jump(situation: Situation) -> Fields:
    """The wall clock jumps by up to an hour either way; the monotonic one drifts by up to 5 %."""
    chance = situation.chance
    jump_ns = chance.choice((-1, 1)) * chance.randrange(1, 3_600_000) * MILLISECOND_NS
    drift_ppm = chance.choice((-1, 1)) * chance.randrange(10_000, 50_000)
    return {**anyone(situation), "jump_ns": jump_ns, "drift_ppm": drift_ppm}


def strobe(situation: Situation) -> Fields:
    """By up to an hour either way, there and back several times a second or so."""
    chance = situation.chance
    jump_ns = chance.choice((-1, 1)) * chance.randrange(1_000, 3_600_000) * MILLISECOND_NS
    delay_ns = chance.randrange(50, 400) * MILLISECOND_NS
    return {**anyone(situation), "jump_ns": jump_ns, "delay_ns": delay_ns}


class Clock(Action):
    """The wall clock of `nodes` jumps by `jump_ns`, their monotonic clock drifts by `drift_ppm`. With `delay_ns` it
    strobes: every `delay_ns` the wall clock jumps back to the right time, and away from it again."""

    does = "clock"
    kinds = (
        Kind(name="clock", group="clock", summary="a wall clock jumps, a monotonic clock drifts", draw=jump),
        Kind(
            name="clock-strobe",
            group="clock",
            summary="a wall clock jumps away and back again, several times a second",
            draw=strobe,
            where=REAL | by_name(SIM),
        ),
    )
    ability = "clock"
    sets_clocks = True
    hinders_owner = False

    def virtual(self, fault: Fault, hands: VirtualHands) -> AtWork:
        return VirtualClocks(fault, hands)

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        return RealClocks(fault, hands)
