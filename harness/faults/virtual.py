"""Faults over a world of virtual nodes: what they use, and what they have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.faults.fault import Evidence, Fault
from nodes.world.network import Effect, Pair

if TYPE_CHECKING:
    from nodes.world.machine import Machine
    from nodes.world.network import Network
    from nodes.world.world import World

POLL_NS = 20_000_000


@dataclass(frozen=True, slots=True)
class VirtualHands:
    world: World
    sleep_until: Callable[[int], Awaitable[None]]
    heartbeat_ns: int

    def now_ns(self) -> int:
        return self.world.agenda.now_ns

    @property
    def network(self) -> Network:
        return self.world.network

    def machines(self, nodes: Sequence[str]) -> list[Machine]:
        return [self.world.machines[node] for node in nodes]


class VirtualFault:
    """One fault at work. It is in effect at the instant at which it begins."""

    def __init__(self, fault: Fault, hands: VirtualHands) -> None:
        self.fault = fault
        self.hands = hands
        self.asked_ns = hands.now_ns()
        self.heal_asked_ns: int | None = None

    def evidence(
        self,
        took_effect: bool,
        counters: Mapping[str, int],
        *,
        first_ns: int | None = None,
        healed: bool | None = True,
    ) -> Evidence:
        """`first_ns`: when it had its first effect."""
        return Evidence(
            took_effect=took_effect,
            asked_ns=self.asked_ns,
            first_effect_ns=first_ns,
            all_in_effect_ns=self.asked_ns,
            heal_asked_ns=self.heal_asked_ns,
            last_effect_ns=self.hands.now_ns(),
            healed=healed,
            counters=dict(counters),
        )

    async def traffic_passes(self, pairs: Iterable[Pair]) -> bool | None:
        """Wait until a fresh message has come through each healed pair with both ends up; None if there is none.

        Nothing comes through pairs of nodes that never talk to each other.
        """
        network, machines = self.hands.network, self.hands.world.machines
        watched = [pair for pair in pairs if set(pair) <= set(machines) and network.is_used(pair)]
        if not any(self._both_up(pair) for pair in watched):
            return None
        effects = {pair: Effect() for pair in watched}
        for pair, effect in effects.items():
            network.effects[pair] = effect
        deadline_ns = self.hands.now_ns() + 20 * self.hands.heartbeat_ns
        while True:
            for pair in watched:  # another fault of the same pair may have begun or ended meanwhile
                effects[pair] = network.effects.setdefault(pair, effects[pair])
            quiet = [
                pair
                for pair, effect in effects.items()
                if effect.passed == 0 and self._both_up(pair) and not network.is_cut(pair)
            ]
            if not quiet or self.hands.now_ns() > deadline_ns:
                break
            await self.hands.sleep_until(self.hands.now_ns() + POLL_NS)
        for pair in watched:
            if not network.is_cut(pair):
                network.effects.pop(pair, None)
        # Another fault may have stopped or cut all of them meanwhile: then nothing came, and nothing could.
        return False if quiet else True if any(effect.passed for effect in effects.values()) else None

    def _both_up(self, pair: Pair) -> bool:
        return all(self.hands.world.machines[name].state == "up" for name in pair)


def first(times: Iterable[int | None]) -> int | None:
    """The earliest of the known times."""
    return min((time_ns for time_ns in times if time_ns is not None), default=None)
