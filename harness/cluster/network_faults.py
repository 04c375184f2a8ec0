"""Cut, slow, jitter and bandwidth in the relay: their observed effect, and whether fresh traffic passed afterwards.

The relay cuts or slows all links of a fault at one instant and heals them at one instant, so the times in between
are sharp. Whether it had any *effect* is a different question, which the relay's counters answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NoReturn

from harness.cluster.probe import Prober
from harness.cluster.relay.link import LinkName
from harness.cluster.relay.remote import Commands
from harness.errors import WrongUse
from harness.faults.fault import Evidence, Fault

_FRESH_WITHIN_S: Final = 3.0
_LOOK_AGAIN_S: Final = 0.01

Counters = Mapping[str, int | None]
ByLink = Mapping[LinkName, Counters]


class NetworkFault:
    """One fault of the network. `epoch_ns` is the monotonic time at which the run began."""

    def __init__(
        self, fault: Fault, relay: Commands, probes: Prober, heartbeat_ns: int, epoch_ns: int
    ) -> None:
        self._fault = fault
        self._relay = relay
        self._probes = probes
        self._heartbeat_ns = heartbeat_ns
        self._epoch_ns = epoch_ns
        self._asked_ns = self._now_ns()
        self._in_effect_ns: int | None = None
        self._heal_asked_ns: int | None = None
        self._healed_ns: int | None = None

    async def begin(self) -> None:
        fault = self._fault
        if fault.does == "cut":
            at_ns = await self._relay.cut(fault.id, fault.links)
        else:
            at_ns = await self._relay.slow(
                fault.id,
                fault.links,
                delay_ns=fault.delay_ns,
                jitter_ns=fault.jitter_ns,
                bytes_per_s=fault.bytes_per_s,
                seed=fault.seed,
            )
        self._in_effect_ns = at_ns - self._epoch_ns

    async def end(self) -> Evidence:
        await self.heal()
        return await self.evidence()

    async def heal(self) -> None:
        self._heal_asked_ns = self._now_ns()
        self._healed_ns = await self._relay.heal(self._fault.id, self._fault.seed) - self._epoch_ns

    async def evidence(self) -> Evidence:
        """The evidence, after waiting for fresh traffic."""
        fault = self._fault
        healed, detail = await self._fresh_traffic()
        links = await self._relay.counters(fault.id)
        await self._relay.forget(fault.id)
        affected = [name for name, counters in links.items() if self._took_effect(counters)]
        begun = [_value(counters, "begun_ns") - self._epoch_ns for counters in links.values()]
        return Evidence(
            took_effect=bool(affected),
            asked_ns=self._asked_ns,
            first_effect_ns=min(begun, default=None),
            all_in_effect_ns=self._in_effect_ns,
            heal_asked_ns=self._heal_asked_ns,
            last_effect_ns=self._healed_ns,
            healed=healed,
            counters=_summed(links, len(affected)),
            detail="; ".join([*_without_effect(links, affected), *detail]),
        )

    def _took_effect(self, counters: Counters) -> bool:
        """Bytes or a connection waited for more than a heartbeat; or were delayed: at all, unevenly, or by a queue."""
        match self._fault.does:
            case "slow":
                return _value(counters, "bytes_delayed") > 0
            case "jitter":
                spread_ns = _value(counters, "longest_delay_ns") - _value(counters, "shortest_delay_ns")
                return counters["shortest_delay_ns"] is not None and spread_ns >= self._fault.jitter_ns // 2
            case "bandwidth":
                return _value(counters, "bytes_queued") > 0
            case _:
                waited_ns = max(
                    _value(counters, "longest_withheld_ns"), _value(counters, "longest_hanging_ns")
                )
                return waited_ns > self._heartbeat_ns

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._epoch_ns

    async def _fresh_traffic(self) -> tuple[bool | None, list[str]]:
        """Wait until bytes have passed each link that can pass any; None if no link can."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _FRESH_WITHIN_S
        try:
            while True:
                links = await self._relay.counters(self._fault.id)
                stale = [name for name, counters in links.items() if not _value(counters, "bytes_fresh")]
                missing = [name for name in stale if self._can_pass(name, links[name])]
                if not missing:
                    untried = [f"{_arrow(name)} could not be tried" for name in stale]
                    return (True if len(stale) < len(links) else None), untried
                if loop.time() > deadline:
                    return False, [f"nothing passed {_arrow(name)} after healing" for name in missing]
                for name in missing:
                    self._probes.send(name)
                await asyncio.sleep(_LOOK_AGAIN_S)
        finally:
            self._probes.close()

    def _can_pass(self, name: LinkName, counters: Counters) -> bool:
        """No other fault cuts the link, and a node can send or take a byte on it."""
        is_reverse_cut = bool(_value(counters, "is_reverse_cut"))
        return not _value(counters, "is_cut") and self._probes.can_reach(name, is_reverse_cut)


def _value(counters: Counters, name: str) -> int:
    return counters[name] or 0


def _arrow(name: LinkName) -> str:
    return f"{name[0]}→{name[1]}"


def _without_effect(links: ByLink, affected: list[LinkName]) -> list[str]:
    names = ", ".join(_arrow(name) for name in links if name not in affected)
    return [f"no effect on {names}"] if names else []


def _summed(links: ByLink, affected: int) -> dict[str, int]:
    """Sums over all links, the longest of the longest times, and the shortest delay."""
    used = sum(_value(counters, "is_used") for counters in links.values())
    totals = {"links": len(links), "links_used": used, "links_affected": affected}
    for name in (
        "bytes_passed",
        "bytes_withheld",
        "connections_hanging",
        "connections_reset",
        "bytes_delayed",
        "bytes_queued",
    ):
        totals[name] = sum(_value(counters, name) for counters in links.values())
    for name in ("longest_withheld_ns", "longest_hanging_ns", "longest_delay_ns", "longest_queued_ns"):
        totals[name] = max((_value(counters, name) for counters in links.values()), default=0)
    shortest = [ns for counters in links.values() if (ns := counters["shortest_delay_ns"]) is not None]
    return totals | {"shortest_delay_ns": min(shortest, default=0)}


def links_around(nodes: Iterable[str], all_nodes: Iterable[str]) -> list[LinkName]:
    """Each link between these nodes and all others once, both ways."""
    pairs = [(node, other) for node in nodes for other in all_nodes if other != node]
    return list(dict.fromkeys(link for one, other in pairs for link in ((one, other), (other, one))))


class RelayLinks:
    """Implements `harness.faults.hands.Links`. `cluster`: its name; `nodes`: all nodes, and the name of the clients'
    end."""

    def __init__(
        self,
        cluster: str,
        nodes: Iterable[str],
        relay: Commands,
        probes: Callable[[], Prober],
        times: tuple[int, int],
    ) -> None:
        """`times`: a heartbeat, and when the run began."""
        self._cluster = cluster
        self._nodes = tuple(nodes)
        self._relay = relay
        self._probes = probes
        self._times = times

    def cut(self, fault: Fault) -> NetworkFault:
        return NetworkFault(fault, self._relay, self._probes(), *self._times)

    def shape(self, fault: Fault) -> NetworkFault:
        return self._refused(fault) if fault.does == "reorder" else self.cut(fault)

    def lose(self, fault: Fault) -> NetworkFault:
        return self._refused(fault)

    def isolation(self) -> RelayIsolation:
        return RelayIsolation(self._relay, self._nodes)

    def _refused(self, fault: Fault) -> NoReturn:
        raise WrongUse(f"fault {fault.name}: --cluster {self._cluster} cannot do {fault.does!r}")


class RelayIsolation:
    """Implements `harness.faults.hands.Isolation`. `nodes` are all nodes, and the name of the clients' end."""

    def __init__(self, relay: Commands, nodes: Iterable[str]) -> None:
        self._relay = relay
        self._nodes = tuple(nodes)

    async def cut_off(self, fault: Fault) -> None:
        await self._relay.cut(fault.id, links_around(fault.nodes, self._nodes))

    async def forget(self, fault: Fault) -> None:
        for node in fault.nodes:
            await self._relay.discard(node)

    async def join(self, fault: Fault) -> None:
        for node in fault.nodes:
            await self._relay.reset(node)
        await self._relay.heal(fault.id, fault.seed)
        await self._relay.forget(fault.id)
