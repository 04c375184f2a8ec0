"""Cut and loss act on the packets of a run: their observed effect, and whether fresh packets passed afterwards.

A cut drops packets, so the kernels go on trying: after healing, bytes of an old connection may come after those of a
new one, as in a real network. A fault took effect if it lasted longer than a heartbeat, and dropped a packet.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from harness.cluster.containers.packet_filter import PacketFilter, Pair, lossy
from harness.cluster.network_faults import links_around
from harness.faults.fault import LOSSES, Evidence, Fault, Link

_FRESH_WITHIN_S: Final = 15.0
_LOOK_AGAIN_S: Final = 0.05
_PROVOKED_AFTER_S: Final = 0.3
"""Where nodes have said nothing to each other for so long, the harness dials one as the other."""


@dataclass(slots=True)
class Packets:
    """The packet filter of a run, and how many faults hold each link: faults may overlap."""

    filter: PacketFilter
    addresses: Mapping[str, str]
    now_ns: Callable[[], int]
    may_answer: Callable[[str], bool]
    heartbeat_ns: int
    provoke: Callable[[Link], Awaitable[None]]
    """Puts a packet on the link, if both ends run."""
    asked: dict[str, Counter[Pair]] = field(
        default_factory=lambda: {name: Counter() for name in ("cuts", *map(lossy, LOSSES))}
    )
    _used: set[Pair] = field(default_factory=set)
    _provoked: set[Pair] = field(default_factory=set)
    _by_harness: dict[Pair, int] = field(default_factory=dict)
    """How many packets had passed when the harness had last provoked some."""
    _one_after_another: asyncio.Lock = field(default_factory=asyncio.Lock)
    """If one fault releases a link while another one cuts it, the filter must get both in that order."""

    def pair(self, link: Link) -> Pair:
        return self.addresses[link[0]], self.addresses[link[1]]

    async def add(self, which: str, pairs: Sequence[Pair], held: list[Pair] | None = None) -> None:
        """`held` gets the pairs when they count: a caller that is cancelled before has none to give back."""
        async with self._one_after_another:
            fresh = [pair for pair in pairs if not self.asked[which][pair]]
            self.asked[which].update(pairs)
            if held is not None:
                held.extend(pairs)
            await self.filter.change(which, add=fresh)

    async def remove(self, which: str, pairs: Sequence[Pair]) -> None:
        async with self._one_after_another:
            self.asked[which].subtract(pairs)
            gone = [pair for pair in pairs if not self.asked[which][pair]]
            await self.filter.change(which, remove=gone)

    async def note_used(self) -> None:
        """Remember the links on which a node has sent something: packets passed that the harness did not provoke."""
        passed = await self.filter.packets("links")
        self._by_harness.update({pair: passed.get(pair, 0) for pair in self._provoked})
        self._provoked.clear()
        self._used.update(pair for pair, count in passed.items() if count > self._by_harness.get(pair, 0))

    def is_used(self, link: Link) -> bool:
        """A node had sent over it by the last `note_used`."""
        return self.pair(link) in self._used

    async def fresh(self, links: Sequence[Link]) -> tuple[bool | None, list[str]]:
        """Wait until packets have passed every link that can pass any; None if no link can. A line for each other."""
        before = await self.filter.packets("links")
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            passed = await self.filter.packets("links")
            stale = [
                link for link in links if passed.get(self.pair(link), 0) <= before.get(self.pair(link), 0)
            ]
            missing = [link for link in stale if self._can_pass(link)]
            if not missing:
                untried = [f"{source}→{target} could not be tried" for source, target in stale]
                return (True if len(stale) < len(links) else None), untried
            if loop.time() > began + _FRESH_WITHIN_S:
                return False, [
                    f"nothing passed {source}→{target} after healing" for source, target in missing
                ]
            if loop.time() > began + _PROVOKED_AFTER_S:
                self._provoked.update(
                    end for link in missing for end in (self.pair(link), self.pair(link[::-1]))
                )
                await asyncio.gather(*map(self.provoke, missing))
            await asyncio.sleep(_LOOK_AGAIN_S)

    def _can_pass(self, link: Link) -> bool:
        """No other fault cuts it either way, and both ends run."""
        pair, cuts = self.pair(link), self.asked["cuts"]
        ends = [end for end in link if end != "client"]
        return not cuts[pair] and not cuts[pair[::-1]] and all(map(self.may_answer, ends))


class PacketFault:
    """One fault of the network."""

    def __init__(self, fault: Fault, packets: Packets) -> None:
        self._fault = fault
        self._packets = packets
        self._which = "cuts" if fault.does == "cut" else lossy(fault.percent)
        self._links = {link: packets.pair(link) for link in fault.links}
        self._asked_ns = packets.now_ns()
        self._held: list[Pair] = []
        self._in_effect_ns: int | None = None
        self._before: dict[Pair, int] = {}
        self._dropped_before = 0
        self._heal_asked_ns = self._healed_ns = self._asked_ns
        self._met: dict[Pair, int] = {}
        self._dropped_while = 0

    async def begin(self) -> None:
        await self._packets.note_used()
        await self._packets.add(self._which, list(self._links.values()), self._held)
        self._in_effect_ns = self._packets.now_ns()
        self._before = await self._packets.filter.packets(self._which)
        self._dropped_before = await self._dropped()

    async def end(self) -> Evidence:
        await self.heal()
        return await self.evidence()

    async def heal(self) -> None:
        self._heal_asked_ns = self._packets.now_ns()
        self._met = await self._packets.filter.packets(self._which)
        self._dropped_while = await self._dropped() - self._dropped_before
        await self._packets.remove(self._which, self._held)  # no others: another fault may hold them
        self._healed_ns = self._packets.now_ns()

    async def evidence(self) -> Evidence:
        """The evidence, after waiting for fresh packets."""
        heal_asked_ns, dropped = self._heal_asked_ns, self._dropped_while
        affected = {
            link: self._met.get(pair, 0) - self._before.get(pair, 0) for link, pair in self._links.items()
        }
        long_enough = heal_asked_ns - (self._in_effect_ns or heal_asked_ns) > self._packets.heartbeat_ns
        healed, details = await self._packets.fresh(self._fault.links)
        return Evidence(
            took_effect=long_enough and any(affected.values()) and (self._fault.does == "cut" or dropped > 0),
            asked_ns=self._asked_ns,
            first_effect_ns=self._in_effect_ns,
            all_in_effect_ns=self._in_effect_ns,
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=self._healed_ns,
            healed=healed,
            counters={
                "links": len(affected),
                "links_used": sum(
                    packets > 0 or self._packets.is_used(link) for link, packets in affected.items()
                ),
                "links_affected": sum(packets > 0 for packets in affected.values()),
                "packets_met": sum(affected.values()),
                **({} if self._fault.does == "cut" else {"packets_dropped": dropped}),
            },
            detail="; ".join(details),
        )

    async def _dropped(self) -> int:
        """How many packets the lossy links dropped; 0 for a cut, which drops every packet."""
        return 0 if self._fault.does == "cut" else await self._packets.filter.dropped(self._which)


class PacketIsolation:
    """Implements `harness.faults.hands.Isolation`: every packet of a node without power is dropped.

    A container that starts has a new network, which answers what comes for old connections with a reset.
    """

    def __init__(self, packets: Packets) -> None:
        self._packets = packets
        self._held: list[Pair] = []

    async def cut_off(self, fault: Fault) -> None:
        links = links_around(fault.nodes, self._packets.addresses)
        await self._packets.add("cuts", list(map(self._packets.pair, links)), self._held)

    async def forget(self, fault: Fault) -> None:
        """Nothing to do: the packets that the kernel held for a container are gone with it."""

    async def join(self, fault: Fault) -> None:
        await self._packets.remove("cuts", self._held)
