"""Slow, jitter, reorder and bandwidth at work on the packets of a run: what was measured, and that it is over.

Packets are held by a process of its own (`shaping/`), started when the first such fault begins. A round trip over each
link is measured before, all the while, and afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

from harness.cluster.containers.nodes import ContainerNodes
from harness.cluster.containers.packet_faults import PacketFault, PacketIsolation, Packets
from harness.cluster.relay.remote import ControlledProcess
from harness.errors import ClusterError
from harness.faults.fault import Evidence, Fault, Link

ECHO_WITHIN_S: Final = 1.0
MICROSECOND_NS: Final = 1_000
_SUMS: Final = (
    *("packets", "packets_held", "bytes_held"),
    *("packets_overtook", "packets_queued", "packets_dropped"),
)

Counters = Mapping[str, Any]


class ShapingProcess(ControlledProcess):
    """The process that holds packets."""

    what = "the process that holds packets"
    module = "harness.cluster.containers.shaping"


class PacketShaping:
    """The common part of all faults that shape packets in a run. `epoch_ns`: the monotonic time of the run's zero."""

    def __init__(
        self, processes: ContainerNodes, packets: Packets, errors: Path, epoch_ns: Callable[[], int]
    ) -> None:
        self.packets = packets
        self.epoch_ns = epoch_ns
        self._processes = processes
        self._errors = errors
        self._process: ShapingProcess | None = None
        self._entered: dict[str, int] = {}
        self._entering = asyncio.Lock()
        """Faults may begin at the same time: there is one process, and a container is entered once."""
        processes.on_started = self._started_again

    async def process(self) -> ShapingProcess:
        """The process that holds packets; it has entered all running containers."""
        async with self._entering:
            if self._process is None:
                self._process = await ShapingProcess.start(self._errors)
                await self._process.ask("name", addresses=dict(self.packets.addresses))
            nodes = [node for node in self.packets.addresses if self._processes.is_alive(node)]
            await asyncio.gather(*(self._enter(self._process, node) for node in nodes))
            return self._process

    async def _enter(self, process: ShapingProcess, node: str) -> None:
        pid = await asyncio.to_thread(self._processes.pid, node)
        if pid and self._entered.get(node) != pid:
            try:
                await process.ask("enter", node=node, pid=pid)
            except ClusterError:
                if await asyncio.to_thread(self._processes.pid, node) == pid:
                    raise
                return  # it has ended meanwhile, and nothing arrives at it
            self._entered[node] = pid

    async def _started_again(self, node: str) -> None:
        """Enter a container again that was started again: its network is a new one."""
        async with self._entering:
            self._entered.pop(node, None)
            if self._process is not None:
                await self._enter(self._process, node)

    async def stop(self) -> None:
        if self._process is not None:
            await self._process.stop()


class ShapedFault:
    """One fault that shapes packets."""

    def __init__(self, fault: Fault, shaping: PacketShaping) -> None:
        self._fault = fault
        self._shaping = shaping
        self._now_ns = shaping.packets.now_ns
        self._asked_ns = self._now_ns()
        self._in_effect_ns: int | None = None
        self._before: list[int] = []

    async def begin(self) -> None:
        fault = self._fault
        process = await self._shaping.process()
        self._before = await self._round_trips(process)
        answer = await process.ask(
            "shape",
            fault=fault.id,
            links=fault.links,
            seed=fault.seed,
            shaping={
                "delay_ns": fault.delay_ns,
                "jitter_ns": fault.jitter_ns,
                "percent": fault.percent if fault.does == "reorder" else 100,
                "bytes_per_s": fault.bytes_per_s,
                "keeps_order": fault.does != "reorder",
            },
        )
        self._in_effect_ns = answer["at_ns"] - self._shaping.epoch_ns()

    async def end(self) -> Evidence:
        fault, heal_asked_ns = self._fault, self._now_ns()
        process = await self._shaping.process()
        counters = await process.ask("counters", fault=fault.id)
        healed = await process.ask("unshape", fault=fault.id, links=fault.links)
        fresh, details = await self._shaping.packets.fresh(fault.links)
        after = await self._round_trips(process)
        remaining = await process.ask("counters", fault=fault.id)
        await process.ask("forget", fault=fault.id)
        if remaining["stranded"] or not remaining["are_rules_right"]:
            fresh = False
            details.append("packets are still held, or rules that hold them still stand")
        rows: dict[Link, Counters] = {(row["link"][0], row["link"][1]): row for row in counters["links"]}
        affected = [link for link, row in rows.items() if took_effect(fault, row)]
        first = [row["first_held_ns"] for row in rows.values() if row["first_held_ns"] is not None]
        times = {"before": self._before, "": counters["round_trips_ns"], "after": after}
        return Evidence(
            took_effect=bool(affected),
            asked_ns=self._asked_ns,
            first_effect_ns=min(first) - self._shaping.epoch_ns() if first else None,
            all_in_effect_ns=self._in_effect_ns,
            heal_asked_ns=heal_asked_ns,
            last_effect_ns=healed["at_ns"] - self._shaping.epoch_ns(),
            healed=fresh,
            counters={
                "links": len(rows),
                "links_affected": len(affected),
                **_summed(rows),
                **_round_trips(times),
            },
            detail="; ".join(details),
        )

    async def _round_trips(self, process: ShapingProcess) -> list[int]:
        answer = await process.ask("ask", links=self._fault.links, within_s=ECHO_WITHIN_S)
        return [time_ns for time_ns in answer["round_trips_ns"] if time_ns is not None]


class PacketLinks:
    """Implements `harness.faults.hands.Links`."""

    def __init__(self, packets: Packets, shaping: PacketShaping) -> None:
        self._packets = packets
        self._shaping = shaping

    def cut(self, fault: Fault) -> PacketFault:
        return PacketFault(fault, self._packets)

    def shape(self, fault: Fault) -> ShapedFault:
        return ShapedFault(fault, self._shaping)

    def lose(self, fault: Fault) -> PacketFault:
        return PacketFault(fault, self._packets)

    def isolation(self) -> PacketIsolation:
        return PacketIsolation(self._packets)


def took_effect(fault: Fault, row: Counters) -> bool:
    """By the counters of one link: packets were held, held for different times, overtaken, or queued."""
    match fault.does:
        case "jitter":
            shortest_ns = row["shortest_held_ns"]
            return shortest_ns is not None and row["longest_held_ns"] - shortest_ns >= fault.jitter_ns // 2
        case "reorder":
            return bool(row["packets_overtook"])
        case "bandwidth":
            return bool(row["packets_queued"])
    return bool(row["packets_held"])


def _summed(rows: Mapping[Link, Counters]) -> dict[str, int]:
    shortest = [row["shortest_held_ns"] for row in rows.values() if row["shortest_held_ns"] is not None]
    longest_ns = max((row["longest_held_ns"] for row in rows.values()), default=0)
    queued_ns = max((row["longest_queued_ns"] for row in rows.values()), default=0)
    return {
        **{name: sum(row[name] for row in rows.values()) for name in _SUMS},
        "shortest_held_us": min(shortest, default=0) // MICROSECOND_NS,
        "longest_held_us": longest_ns // MICROSECOND_NS,
        "longest_queued_us": queued_ns // MICROSECOND_NS,
    }


def _round_trips(times: Mapping[str, list[int]]) -> dict[str, int]:
    """The median round trip before, during and after the fault, where any came back."""
    return {
        f"round_trip_us_{when}".removesuffix("_"): round(median(times_ns)) // MICROSECOND_NS
        for when, times_ns in times.items()
        if times_ns
    }
