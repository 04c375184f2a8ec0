"""The cluster `docker`: containers on a private network; clients reach them from the host.

Network faults are packet rules on the host (`packet_filter.py`), process faults are the Docker daemon's. A run that
was killed leaves its containers; the next run, or `qsync doctor --clean`, removes them by their labels.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from harness.cluster.containers.image import NODE_ROOT, connect, node_image, usual_image
from harness.cluster.containers.nodes import DATA, PORT, ContainerNodes, ContainerSpec, Limits
from harness.cluster.containers.packet_faults import Packets
from harness.cluster.containers.packet_filter import PacketFilter
from harness.cluster.containers.shaped_faults import PacketLinks, PacketShaping
from harness.cluster.containers.shaping.namespace import dial_as
from harness.cluster.empty_disk import CONFIG
from harness.cluster.limits.group import Group, Share
from harness.cluster.limits.machine import LimitsHere
from harness.cluster.mounted_disk.disks import Mounted, mounted
from harness.cluster.ownership import RunId, remove_leftovers
from harness.cluster.place import FROM, Place, Which
from harness.cluster.real_cluster import CLIENT, RealCluster, RealSettings
from harness.cluster.talk import admin_of, clients_of
from harness.errors import ClusterError
from harness.faults.fault import Link

PROGRAM: Final = "/opt/version"
"""The path in a container of the binary of another version; `-from` or `-to` follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSettings(RealSettings):
    share: Share = field(default_factory=Share)
    """The limits of nodes that differ from the usual ones in this run."""
    mounted: Mounted = ""
    filters_packets: bool = True
    """False: no fault of the run needs packet rules, so a machine without nftables can do it."""
    packages: tuple[str, ...] = ()
    """Debian packages that nodes need, beside those of every image of nodes."""
    image: str = ""
    """The image of all nodes, as it is; "": the usual one."""
    files: tuple[str, ...] = ()
    """Files of this machine that nodes find under the same path, read-only."""


class ContainerCluster(RealCluster[ContainerNodes]):
    """Implements `harness.cluster.protocol.Cluster`."""

    name = "docker"
    _settings: ContainerSettings

    def __init__(self, settings: ContainerSettings) -> None:
        super().__init__(
            settings,
            clients_of(settings.talk, lambda node: PORT, lambda node: self._addresses[node]),
            admin_of(settings.talk, lambda node: PORT, lambda node: self._addresses[node]),
        )
        self._run = RunId.new()
        self._addresses: dict[str, str] = {}
        self._filter = PacketFilter(self._run.table)
        self._packets: Packets | None = None
        self._shaping: PacketShaping | None = None
        self._limits = LimitsHere(self._group, lambda node: settings.folder)
        self._usual_image = ""
        self._images: dict[Which, str] = {}

    # ---- life

    async def _begin(self) -> None:
        client = await asyncio.to_thread(connect)
        await asyncio.to_thread(remove_leftovers, client)
        await asyncio.to_thread(self._make_images, client)
        processes = self._started = ContainerNodes(
            client, self._run, self.now_ns, Limits.of(self._settings.share)
        )
        host, addresses = await asyncio.to_thread(processes.make_network, self._nodes)
        self._addresses.update({CLIENT: host, **addresses})
        if self._settings.filters_packets:
            await self._filter.start(
                (self._addresses[source], self._addresses[target])
                for source in self._addresses
                for target in self._addresses
                if source != target
            )
        self._packets = Packets(
            self._filter,
            self._addresses,
            self.now_ns,
            processes.may_answer,
            self._settings.heartbeat_ns,
            self._provoke,
        )
        self._shaping = PacketShaping(
            processes, self._packets, self._settings.folder / "shaping.txt", lambda: self._epoch_ns
        )
        self._mounted = await mounted(self._settings.mounted, self._settings.folder, self._nodes)
        for node, configuration in self._settings.configs.items():
            await self._configure(node, configuration)
        await processes.start([self._spec(node, FROM) for node in self._nodes])
        await asyncio.gather(*map(self._until_ready, self._nodes))
        self.begin_now()

    def _make_images(self, client: Any) -> None:
        """The usual image, and one for each version with code of its own."""
        self._usual_image = usual_image(client, self._settings.packages, self._settings.image)
        for which, version in self._settings.versions.items():
            if version.root is not None:
                self._images[which] = node_image(client, root=version.root)

    async def _renew(self, node: str, version: Which, members: Collection[str] = ()) -> None:
        await asyncio.to_thread(self.processes.exchange, self._spec(node, version, members))

    def address(self, node: str) -> str:
        return f"{self._addresses[node]}:{PORT}"

    def _spec(self, node: str, which: Which, members: Collection[str] = ()) -> ContainerSpec:
        version = self._settings.versions.get(which)
        binary = version.shipped if version is not None else None
        place = Place(
            node=node,
            config=f"{DATA}/{CONFIG}",
            data=DATA,
            log=f"{DATA}/log.jsonl",
            clock=f"{DATA}/clock",
            listen=self.address(node),
            peers={peer: self.address(peer) for peer in members or self._nodes if peer != node},
            epoch_ns=self._settings.epoch_ns,
            python="python3",
            root=NODE_ROOT,
            program=f"{PROGRAM}-{which}" if binary else "",
            joins=bool(members),
        )
        return ContainerSpec(
            node=node,
            address=self._addresses[node],
            command=self._settings.command(place),
            folder=str(self._folder(node).resolve()),
            image=self._images.get(which, self._usual_image),
            programs={
                **{path: path for path in self._settings.files},
                **({str(binary): f"{PROGRAM}-{which}"} if binary else {}),
            },
        )

    async def _until_ready(self, node: str) -> None:
        await self._until_up(node, self.processes.first_ended)
        self.processes.ready(node)

    async def _end(self) -> None:
        if self._started is None:
            return
        async with AsyncExitStack() as ends:  # from the last to the first, whatever fails
            ends.callback(self._shift_logs)
            if self._mounted is not None:
                ends.push_async_callback(self._mounted.stop)
            ends.push_async_callback(self._started.stop)
            ends.push_async_callback(self._limits.stop)
            if self._settings.filters_packets:
                ends.push_async_callback(self._filter.stop)
            if self._shaping is not None:
                ends.push_async_callback(self._shaping.stop)

    def _pid(self, node: str) -> int:
        with suppress(ClusterError):  # it was not made, or the daemon cannot tell
            return self.processes.pid(node)
        return 0

    async def look(self) -> None:
        await self.processes.look()

    async def _provoke(self, link: Link) -> None:
        source, target = link if link[1] != CLIENT else (CLIENT, link[0])  # its answer comes to the client
        # It has ended, or its namespace is off limits: then nothing passes.
        with suppress(OSError, ClusterError):
            pid = 0 if source == CLIENT else await asyncio.to_thread(self.processes.pid, source)
            await asyncio.to_thread(dial_as, pid, self._addresses[target], PORT)

    # ---- faults

    async def _group(self, node: str) -> Group:
        return await self.processes.group(node)

    @property
    def limits(self) -> LimitsHere:
        return self._limits

    @property
    def links(self) -> PacketLinks:
        assert self._packets is not None
        assert self._shaping is not None
        return PacketLinks(self._packets, self._shaping)
