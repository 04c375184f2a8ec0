"""The cluster `docker`: containers on a private network; clients reach them from the host.

Network faults are packet rules on the host (`packet_filter.py`), process faults are the Docker daemon's. A run that
was killed leaves its containers; the next run, or `qsync doctor --clean`, removes them by their labels.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness.cluster.clock_faults import ClockFault
from harness.cluster.connections import Admin, Connections
from harness.cluster.containers.fleet import DATA, PORT, Berth, Fleet, Limits
from harness.cluster.containers.image import NODE_ROOT, connect, node_image
from harness.cluster.containers.ownership import RunId, remove_leftovers
from harness.cluster.containers.packet_faults import PacketFault, Packets
from harness.cluster.containers.packet_filter import PacketFilter
from harness.cluster.node_log import shift_log
from harness.cluster.place import Command, Place
from harness.cluster.process_faults import Kill, Pause
from harness.cluster.real_time import RealTime
from harness.cluster.stall import StallWatch
from harness.errors import ClusterError, WrongUse
from harness.faults.fault import Evidence, Fault
from harness.protocols import Ended, Reply
from nodes.iproto.messages import Request

CLIENT: Final = "client"
_STATUS_WITHIN_NS: Final = 500_000_000
_READY_WITHIN_S: Final = 20.0
_ASK_AGAIN_S: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSettings:
    """What a cluster of containers is made of: each node's configuration, the run's folder, how nodes are started."""

    configs: Mapping[str, bytes]
    folder: Path
    heartbeat_ns: int
    epoch_ns: int
    command: Command
    status_function: str = "qsync.status"
    limits: Limits = field(default_factory=Limits)


class ContainerCluster(RealTime):
    """Implements `harness.protocols.Cluster`."""

    def __init__(self, settings: ContainerSettings) -> None:
        super().__init__(settings.epoch_ns)
        self._settings = settings
        self._nodes = tuple(settings.configs)
        self._run = RunId.new()
        self._addresses: dict[str, str] = {}
        self._filter = PacketFilter(self._run.table)
        self._fleet: Fleet | None = None
        self._packets: Packets | None = None
        self._connections = Connections(lambda node: PORT, self._addresses.__getitem__)
        self._admin = Admin(lambda node: PORT, settings.status_function, self._addresses.__getitem__)
        self._at_work: dict[int, PacketFault | Kill | Pause | ClockFault] = {}
        self._stalls = StallWatch(settings.epoch_ns)
        self._started_for_ns = 0
        self._stall_watch: asyncio.Task[None] | None = None
        self._stopped: asyncio.Task[None] | None = None

    # ---- life

    async def start(self) -> None:
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        if self._stopped is None:
            self._stopped = asyncio.get_running_loop().create_task(self._stop())
        await asyncio.shield(self._stopped)

    async def _start(self) -> None:
        client = await asyncio.to_thread(connect)
        await asyncio.to_thread(remove_leftovers, client)
        image = await asyncio.to_thread(node_image, client)
        fleet = self._fleet = Fleet(client, self._run, self.now_ns, self._settings.limits)
        host, addresses = await fleet.make_network(self._nodes)
        self._addresses.update({CLIENT: host, **addresses})
        await self._filter.start(
            (self._addresses[source], self._addresses[target])
            for source in self._addresses
            for target in self._addresses
            if source != target
        )
        self._packets = Packets(
            self._filter, self._addresses, self.now_ns, fleet.may_answer, self._settings.heartbeat_ns
        )
        await fleet.start(image, [self._berth(node) for node in self._nodes])
        await asyncio.gather(*map(self._until_ready, self._nodes))
        self._started_for_ns = self.begin_now()
        self._stalls = StallWatch(self._epoch_ns)
        self._stall_watch = asyncio.get_running_loop().create_task(self._stalls.run())

    def _berth(self, node: str) -> Berth:
        folder = (self._settings.folder / "nodes" / node).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_bytes(self._settings.configs[node])
        place = Place(
            node=node,
            config=f"{DATA}/config.json",
            data=DATA,
            log=f"{DATA}/log.jsonl",
            clock=f"{DATA}/clock",
            listen=f"{self._addresses[node]}:{PORT}",
            peers={peer: f"{self._addresses[peer]}:{PORT}" for peer in self._nodes if peer != node},
            epoch_ns=self._settings.epoch_ns,
            python="python3",
            root=NODE_ROOT,
        )
        return Berth(
            node=node,
            address=self._addresses[node],
            command=self._settings.command(place),
            folder=str(folder),
            environment={},
        )

    async def _until_ready(self, node: str) -> None:
        """The node answers; ClusterError with its last words if it ends instead."""
        fleet = self._running()
        try:
            async with asyncio.timeout(_READY_WITHIN_S):
                while await self._admin.status(node, _STATUS_WITHIN_NS) is None:
                    for ended in fleet.ended():
                        said = next((line for line in reversed(ended.last_words) if line.strip()), "")
                        raise ClusterError(f"{ended.node} ended before it was ready ({ended.how}): {said}")
                    await asyncio.sleep(_ASK_AGAIN_S)
        except TimeoutError:
            raise ClusterError(f"{node} was not ready within {_READY_WITHIN_S:.0f} s") from None
        fleet.ready(node)

    async def _stop(self) -> None:
        if self._stall_watch is not None:
            self._stall_watch.cancel()
        self._connections.close()
        self._admin.close()
        if self._fleet is not None:
            try:
                await self._filter.stop()
            finally:
                await self._fleet.stop()
                for node in self._nodes:
                    shift_log(self._settings.folder / "nodes" / node / "log.jsonl", self._started_for_ns)

    # ---- clients

    async def call(self, process: int, node: str, request: Request, timeout_ns: int) -> Reply:
        return await self._connections.call(process, node, request, timeout_ns)

    async def status(self, node: str) -> Mapping[str, object] | None:
        fleet = self._fleet
        if fleet is None or not fleet.may_answer(node):
            return None
        return await self._admin.status(node, _STATUS_WITHIN_NS)

    # ---- faults

    async def inject(self, fault: Fault) -> None:
        fleet, packets = self._running(), self._packets
        assert packets is not None
        at_work: PacketFault | Kill | Pause | ClockFault
        match fault.does:
            case "cut":
                at_work = PacketFault(fault, packets)
            case "kill":
                at_work = Kill(fault, fleet, self.now_ns, self._answers)
            case "pause":
                at_work = Pause(fault, fleet, self.now_ns, self._answers)
            case "clock":
                at_work = ClockFault(fault, self._clock_folder, self.now_ns, self.status)
            case other:
                raise WrongUse(f"fault {fault.name}: --cluster docker cannot do {other!r}")
        self._at_work[fault.id] = at_work
        await at_work.begin()

    async def heal(self, fault: Fault) -> Evidence:
        at_work = self._at_work.pop(fault.id, None)
        if at_work is None:
            raise WrongUse(f"fault {fault.id} ({fault.name}) is not at work and cannot be healed")
        return await at_work.end()

    def ended(self) -> tuple[Ended, ...]:
        return () if self._fleet is None else self._fleet.ended()

    def stalls(self) -> tuple[tuple[int, int], ...]:
        return self._stalls.stalls()

    def _clock_folder(self, node: str) -> Path:
        return self._settings.folder / "nodes" / node / "clock"

    async def _answers(self, node: str) -> bool:
        return await self.status(node) is not None

    def _running(self) -> Fleet:
        if self._fleet is None:
            raise ClusterError("the cluster was not started")
        return self._fleet
