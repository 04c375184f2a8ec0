"""The faults in the simulator: how each is carried out, and its observed effect."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from harness.cluster.sim.shapes import SeenShape
from harness.cluster.sim.shaping import shaped_effect, shaping_of
from harness.errors import WrongUse
from harness.faults.changing import all_links
from harness.faults.fault import Evidence, Fault
from nodes.world.network import Effect, Pair, Stop
from nodes.world.world import World

MILLISECOND_NS = 1_000_000
RESTART_NS = (50 * MILLISECOND_NS, 200 * MILLISECOND_NS)
"""How long a process takes to come up again."""
POLL_NS = 20 * MILLISECOND_NS

SleepUntil = Callable[[int], Awaitable[None]]


class VirtualFaults:
    """Does faults to a world; one `inject`, one `heal` each."""

    def __init__(self, world: World, sleep_until: SleepUntil, heartbeat_ns: int) -> None:
        self._world = world
        self._sleep_until = sleep_until
        self._heartbeat_ns = heartbeat_ns
        self._asked: dict[int, int] = {}
        self._hit: dict[int, list[str]] = {}
        self._lost_bytes: dict[int, int] = {}
        self._stops: dict[int, Stop] = {}
        self._shapes: dict[int, list[SeenShape]] = {}
        self._turns: dict[int, int] = {}
        """Of clocks that strobe: how often they have turned; away after an even number."""

    async def inject(self, fault: Fault) -> None:
        self._asked[fault.id] = self._world.agenda.now_ns
        machines = [self._world.machines[node] for node in fault.nodes]
        match fault.does:
            case "cut":
                self._world.network.cut(fault.links)
            case "changing-cut":
                self._world.network.cut(fault.shapes[0].links)
                self._shapes[fault.id] = [SeenShape(fault.shapes[0].links, self._asked[fault.id])]
            case "slow" | "jitter" | "reorder" | "bandwidth":
                self._world.network.shape(fault.links, shaping_of(fault))
            case "kill" | "power":
                up = [machine for machine in machines if machine.state != "down"]
                for machine in up:
                    if fault.does == "kill":
                        machine.kill()
                    else:
                        lost = machine.lose_power()
                        self._lost_bytes[fault.id] = self._lost_bytes.get(fault.id, 0) + lost
                self._hit[fault.id] = [machine.name for machine in up]
            case "pause":
                for machine in machines:
                    machine.pause()
                self._hit[fault.id] = [machine.name for machine in machines if machine.state == "paused"]
            case "clock":
                self._set_clocks(fault)
            case "slow-fsync" | "disk-error":
                for machine in machines:
                    machine.slow_disk(fault.delay_ns)
                    machine.fill_disk(bool(fault.error))
            case "hold":
                self._stops[fault.id] = self._world.network.stop(fault.links, fault.kinds)
            case "slow-disk":
                self._hold_records(fault)
            case "failover":
                raise AssertionError("the conductor promotes")
            case other:
                raise WrongUse(f"fault {fault.name}: --cluster sim cannot do {other!r}")

    def _hold_records(self, fault: Fault) -> None:
        for node in fault.nodes:
            for kind in fault.kinds or ("",):
                self._world.machines[node].hold_record(kind)

    async def heal(self, fault: Fault) -> Evidence:
        heal_asked_ns = self._world.agenda.now_ns
        match fault.does:
            case "cut":
                return await self._heal_cut(fault, heal_asked_ns)
            case "changing-cut":
                return await self._heal_changing(fault, heal_asked_ns)
            case "slow" | "jitter" | "reorder" | "bandwidth":
                return self._heal_shaped(fault, heal_asked_ns)
            case "kill" | "power":
                return await self._restart(fault, heal_asked_ns)
            case "pause":
                return await self._resume(fault, heal_asked_ns)
            case "clock":
                return self._heal_clock(fault, heal_asked_ns)
            case "hold":
                stop = self._stops.pop(fault.id)
                self._world.network.go_on(stop)
                return self._evidence(
                    fault, heal_asked_ns, stop.first_ns, stop.stopped > 0, True, {"stopped": stop.stopped}
                )
            case "slow-disk":
                for name in fault.nodes:
                    for kind in fault.kinds or ("",):
                        self._world.machines[name].release_record(kind)
                return self._evidence(fault, heal_asked_ns, self._asked[fault.id], True, True, {})
            case "slow-fsync" | "disk-error":
                return self._heal_disk(fault, heal_asked_ns)
            case "failover":
                raise AssertionError("the conductor promotes")
            case other:
                raise AssertionError(f"{other} cannot have begun")

    def _heal_disk(self, fault: Fault, heal_asked_ns: int) -> Evidence:
        machines = [self._world.machines[node] for node in fault.nodes]
        affected = sum(machine.take_disk_affected() for machine in machines)
        for machine in machines:
            machine.slow_disk(0)
            machine.fill_disk(False)
        counters = {"calls_delayed" if fault.does == "slow-fsync" else "calls_failed": affected}
        return self._evidence(fault, heal_asked_ns, self._asked[fault.id], affected > 0, True, counters)

    async def _heal_cut(self, fault: Fault, heal_asked_ns: int) -> Evidence:
        network = self._world.network
        effects = network.take_effects(fault.links)
        reset = network.heal(fault.links, random.Random(fault.seed))
        counters = {
            "links_used": sum(map(network.is_used, fault.links)),
            "withheld": sum(effect.withheld for effect in effects.values()),
            "longest_withheld_ms": max(effect.longest_withheld_ns for effect in effects.values())
            // MILLISECOND_NS,
            "reset": reset,
        }
        took_effect = any(effect.longest_withheld_ns > self._heartbeat_ns for effect in effects.values())
        first_ns = _first(effect.first_withheld_ns for effect in effects.values())
        healed = await self._traffic_passes(fault.links)
        return self._evidence(fault, heal_asked_ns, first_ns, took_effect, healed, counters)

    def _heal_shaped(self, fault: Fault, heal_asked_ns: int) -> Evidence:
        network = self._world.network
        network.unshape(fault.links, shaping_of(fault))
        effects = list(network.take_effects(fault.links).values())
        affected = shaped_effect(fault, effects)
        counters = {"links_used": sum(map(network.is_used, fault.links)), **affected.counters}
        first_ns = _first(effect.first_delayed_ns for effect in effects)
        return self._evidence(fault, heal_asked_ns, first_ns, affected.took_effect, True, counters)

    def change(self, fault: Fault, number: int) -> None:
        """From one shape of a partition to another, at one instant; what both cut stays as it is."""
        network, seen = self._world.network, self._shapes[fault.id]
        seen[-1].ends(self._world.agenda.now_ns, network.take_effects(seen[-1].links))
        links = fault.shapes[number].links
        network.cut(links)
        network.heal(seen[-1].links, random.Random(fault.seed + number))
        seen.append(SeenShape(links, self._world.agenda.now_ns))

    async def _heal_changing(self, fault: Fault, heal_asked_ns: int) -> Evidence:
        network, seen = self._world.network, self._shapes.pop(fault.id)
        seen[-1].ends(heal_asked_ns, network.take_effects(seen[-1].links))
        network.heal(seen[-1].links, random.Random(fault.seed))
        healed = await self._traffic_passes(all_links(fault.shapes))
        affected = [shape.took_effect(self._heartbeat_ns) for shape in seen]
        counters = {
            "shapes": len(seen),
            "shapes_affected": sum(affected),
            "changes_affected": sum(affected[1:]),
            "shapes_unused": sum(not any(map(network.is_used, shape.links)) for shape in seen),
        }
        counters["withheld"] = sum(shape.withheld for shape in seen)
        first_ns = _first(shape.first_ns for shape in seen)
        told = self._evidence(fault, heal_asked_ns, first_ns, sum(affected) > 1, healed, counters)
        return msgspec.structs.replace(told, shapes=tuple(s.told(self._heartbeat_ns) for s in seen))

    async def _traffic_passes(self, pairs: Iterable[Pair]) -> bool | None:
        """Wait until a fresh message has come through each healed pair with both ends up; None if there is none.

        Nothing comes through pairs of nodes that never talk to each other.
        """
        used = self._world.network.is_used
        watched = [pair for pair in pairs if set(pair) <= set(self._world.machines) and used(pair)]
        if not any(self._both_up(pair) for pair in watched):
            return None
        network = self._world.network
        seen = {pair: Effect() for pair in watched}
        for pair, effect in seen.items():
            network.effects[pair] = effect
        deadline_ns = self._world.agenda.now_ns + 20 * self._heartbeat_ns
        while True:
            for pair in watched:  # another fault of the same pair may have begun or ended meanwhile
                seen[pair] = network.effects.setdefault(pair, seen[pair])
            quiet = [
                pair
                for pair, effect in seen.items()
                if effect.passed == 0 and self._both_up(pair) and not network.is_cut(pair)
            ]
            if not quiet or self._world.agenda.now_ns > deadline_ns:
                break
            await self._sleep_until(self._world.agenda.now_ns + POLL_NS)
        for pair in watched:
            if not network.is_cut(pair):
                network.effects.pop(pair, None)
        return not quiet

    def _both_up(self, pair: Pair) -> bool:
        return all(self._world.machines[name].state == "up" for name in pair)

    async def _restart(self, fault: Fault, heal_asked_ns: int) -> Evidence:
        hit = self._hit.pop(fault.id)
        chance = random.Random(fault.seed)
        for name in hit:
            await self._sleep_until(self._world.agenda.now_ns + chance.randrange(*RESTART_NS))
            if self._world.machines[name].state == "down":
                self._world.machines[name].start()
        healed = all(self._world.machines[name].status() is not None for name in hit)
        counters = {"killed": len(hit)}
        if fault.does == "power":
            counters["bytes_lost"] = self._lost_bytes.pop(fault.id, 0)
        return self._evidence(fault, heal_asked_ns, self._asked[fault.id], bool(hit), healed, counters)

    async def _resume(self, fault: Fault, heal_asked_ns: int) -> Evidence:
        hit = self._hit.pop(fault.id)
        for name in hit:
            self._world.machines[name].resume()
        healed = all(self._world.machines[name].status() is not None for name in hit)
        return self._evidence(
            fault, heal_asked_ns, self._asked[fault.id], bool(hit), healed, {"paused": len(hit)}
        )

    def _set_clocks(self, fault: Fault) -> None:
        for name in fault.nodes:
            clock = self._world.machines[name].clock
            clock.wall_offset_ns += fault.jump_ns
            clock.set_drift(self._world.agenda.now_ns, fault.drift_ppm)
        if fault.delay_ns:
            self._turns[fault.id] = 0
            self._world.agenda.after(fault.delay_ns, self._turn, fault)

    def _turn(self, fault: Fault) -> None:
        """Clocks that strobe go to the right time, or away from it again."""
        if fault.id not in self._turns:
            return  # healed meanwhile
        self._turns[fault.id] += 1
        by_ns = -fault.jump_ns if self._turns[fault.id] % 2 else fault.jump_ns
        for name in fault.nodes:
            self._world.machines[name].clock.wall_offset_ns += by_ns
        self._world.agenda.after(fault.delay_ns, self._turn, fault)

    def _heal_clock(self, fault: Fault, heal_asked_ns: int) -> Evidence:
        now_ns = self._world.agenda.now_ns
        turns = self._turns.pop(fault.id, 0)
        differed = 0
        for name in fault.nodes:
            clock = self._world.machines[name].clock
            differed += clock.wall_offset_ns != 0 or clock.read(now_ns).monotonic_ns != now_ns
            clock.wall_offset_ns -= 0 if turns % 2 else fault.jump_ns
            clock.set_drift(now_ns, 0)
        counters = {"turns": turns} if fault.delay_ns else {"clocks": differed}
        took_effect = turns > 1 if fault.delay_ns else differed > 0
        return self._evidence(fault, heal_asked_ns, self._asked[fault.id], took_effect, True, counters)

    def _evidence(
        self,
        fault: Fault,
        heal_asked_ns: int,
        first_effect_ns: int | None,
        took_effect: bool,
        healed: bool | None,
        counters: dict[str, int],
    ) -> Evidence:
        return Evidence(
            took_effect=took_effect,
            asked_ns=self._asked[fault.id],
            first_effect_ns=first_effect_ns,
            all_in_effect_ns=self._asked[fault.id],
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=self._world.agenda.now_ns,
            healed=healed,
            counters=counters,
        )


def _first(times: Iterable[int | None]) -> int | None:
    return min((time_ns for time_ns in times if time_ns is not None), default=None)
