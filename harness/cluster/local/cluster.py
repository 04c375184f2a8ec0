"""The cluster `local`: one process a node on this machine, and the relay between all of them.

    clients ──┐                      ┌── n1 (python -m nodes.host …)
              ├── relay (a process) ─┼── n2
    n1 … nN ──┘                      └── n3

Every client and every node dials a port of the relay that stands for one route; only `status` goes past it. Network
faults happen in the relay, process faults by signals, disk faults in the nodes' own disk layer or in their files.

Nothing outlives a run: `stop` ends what `start` began, however far it got; if the harness itself is killed, nodes
and relay see it (their stdin ends, on Linux the kernel signals) and the relay kills the nodes once more. If both were
killed, the next local run, or `qsync doctor --clean`, ends stores that do not see it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from harness.cluster import faketime_files
from harness.cluster.empty_disk import CONFIG
from harness.cluster.limits.enclosure import Enclosure, remove_leftovers
from harness.cluster.limits.group import Group, Share
from harness.cluster.limits.machine import LimitsHere
from harness.cluster.local.nodes import LocalNodes
from harness.cluster.local.processes import PORT_MAX, StartOptions
from harness.cluster.mounted_disk.disks import Mounted, mounted
from harness.cluster.network_faults import RelayLinks
from harness.cluster.ownership import RunId, lives, remove_processes, this_harness
from harness.cluster.place import FROM, LOOPBACK, Place, Which
from harness.cluster.ports import free_ports
from harness.cluster.probe import Probes
from harness.cluster.real_cluster import CLIENT, STATUS_WITHIN_NS, RealCluster, RealSettings
from harness.cluster.relay.link import LinkName
from harness.cluster.relay.remote import Relay
from harness.cluster.talk import admin_of, clients_of, probe_of
from harness.errors import ClusterError, WrongUse

_CHOSEN_PORTS: Final = range(20_000, 32_000)
"""Outside of those that the system gives to connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings(RealSettings):
    """`base_port` 0 takes any free ports; else the nodes, then the relay's routes, take the ports from there on."""

    base_port: int = 0
    limited: bool = False
    """Each node runs in a group of processes of its own, which can be limited."""
    share: Share | None = None
    """The share of this machine that each node may use in the whole run; it runs in a group of its own then."""
    mounted: Mounted = ""
    are_dialed_unready: bool = False
    """Nodes reach each other before they are ready: their ports are chosen for them."""
    asks_when_ready: bool = False
    """Nodes print no readiness line: they are ready when they report their state."""


class LocalCluster(RealCluster[LocalNodes]):
    """Implements `harness.cluster.protocol.Cluster` on asyncio."""

    name = "local"
    _settings: LocalSettings

    def __init__(self, settings: LocalSettings) -> None:
        super().__init__(
            settings,
            clients_of(
                settings.talk, lambda node: self._routes[CLIENT, node], lambda node: LOOPBACK, self._is_down
            ),
            admin_of(
                settings.talk,
                lambda node: self._chosen_ports[node] or self.processes.port(node),
                lambda node: LOOPBACK,
            ),
        )
        self._routes: dict[LinkName, int] = {}
        self._relay: Relay | None = None
        self._chosen_ports: dict[str, int] = {}
        self._limits = LimitsHere(self._group, lambda node: settings.folder)
        self._enclosure = Enclosure(RunId.new().text, this_harness())

    # Life

    async def _begin(self) -> None:
        self._watch_stalls()
        # Before the ports are checked: a store of a dead run may have them.
        await asyncio.to_thread(remove_processes)
        self._mounted = await mounted(self._settings.mounted, self._settings.folder, self._nodes)
        ports = self._chosen_ports = self._node_ports()
        _check_free(ports.values())
        self._relay = await Relay.start(self._relay_errors)
        await self._open_routes(self._relay)
        for node, configuration in self._settings.configs.items():
            await self._configure(node, configuration)
        if self._settings.limited or self._settings.share is not None:
            self._enclose()
        options = {node: self._options(node, FROM) for node in self._nodes}
        self._started = LocalNodes(options, self._relay, self.now_ns)
        await self._started.start()
        for node in self._nodes:
            if await self._admin.status(node, 10 * STATUS_WITHIN_NS) is None:
                raise ClusterError(f"{node} is ready but does not answer when it is asked for its state")

    async def _end(self) -> None:
        async with contextlib.AsyncExitStack() as ends:  # from the last to the first, whatever fails
            if self._relay is not None:
                ends.push_async_callback(self._relay.stop)
            ends.callback(self._shift_logs)
            if self._mounted is not None:
                ends.push_async_callback(self._mounted.stop)
            ends.callback(faketime_files.remove_leftovers)  # those of processes that a node began, too
            ends.callback(self._enclosure.remove)
            ends.push_async_callback(self._limits.stop)
            if self._started is not None:
                ends.push_async_callback(self._started.stop)

    def _is_down(self, node: str) -> bool:
        return self._started is not None and self._started.is_down(node)

    def _pid(self, node: str) -> int:
        started = self._started
        return started.pid(node) if started is not None and started.is_alive(node) else 0

    # Faults

    @property
    def limits(self) -> LimitsHere:
        return self._limits

    @property
    def links(self) -> RelayLinks:
        assert self._relay is not None
        nodes, times = (CLIENT, *self._nodes), (self.heartbeat_ns, self._epoch_ns)
        return RelayLinks(self.name, nodes, self._relay, self._probes, times)

    def _probes(self) -> Probes:
        return Probes(self._routes, self.processes.may_answer, probe_of(self._settings.talk))

    async def _group(self, node: str) -> Group:
        if node not in self._enclosure.groups:
            raise ClusterError(f"{node} runs in no group of its own")
        return self._enclosure.groups[node]

    def _enclose(self) -> None:
        """Remove the groups that dead runs left, and make one for each node."""
        remove_leftovers(lives)
        share = self._settings.share
        try:
            self._enclosure.make(self._nodes, share.limit if share is not None else lambda group: None)
        except ValueError as error:
            raise ClusterError(f"nodes cannot be limited here: {error}") from error

    # Ports, routes and options

    def _node_ports(self) -> dict[str, int]:
        base = self._settings.base_port
        last = base + len(self._nodes) * (len(self._nodes) + 1) - 1
        if base < 0 or last > PORT_MAX:
            raise WrongUse(f"base port {base}: ports {base} to {last} are needed, expected 1 to {PORT_MAX}")
        if not base and self._settings.are_dialed_unready:
            ports = free_ports(len(self._nodes), LOOPBACK, _CHOSEN_PORTS)
            return dict(zip(self._nodes, ports, strict=True))
        return {node: base + index if base else 0 for index, node in enumerate(self._nodes)}

    async def _open_routes(self, relay: Relay) -> None:
        pairs = [(source, target) for source in (CLIENT, *self._nodes) for target in self._nodes]
        links = [(source, target) for source, target in pairs if source != target]
        first = self._settings.base_port + len(self._nodes) if self._settings.base_port else 0
        wanted = [first + index if first else 0 for index in range(len(links))]
        _check_free(wanted)
        ports = await relay.listen((*link, port) for link, port in zip(links, wanted, strict=True))
        self._routes.update(zip(links, ports, strict=True))

    async def _renew(self, node: str, version: Which, members: Collection[str] = ()) -> None:
        self.processes.start_with(self._options(node, version, members))

    def _options(self, node: str, which: Which, members: Collection[str] = ()) -> StartOptions:
        folder, port = self._folder(node), self._chosen_ports[node]
        version = self._settings.versions.get(which)
        peers = {peer: self._routes[node, peer] for peer in members or self._nodes if peer != node}
        settings = self._settings
        place = Place(
            node=node,
            config=str(folder / CONFIG),
            data=str(folder),
            log=str(folder / "log.jsonl"),
            clock=str(folder / "clock"),
            listen=f"{LOOPBACK}:{port}",
            peers={peer: f"{LOOPBACK}:{route}" for peer, route in peers.items()},
            epoch_ns=settings.epoch_ns,
            program=str(version.program) if version and version.program else "",
            joins=bool(members),
        )
        early_port = port if settings.are_dialed_unready else 0
        return StartOptions(
            node=node,
            command=settings.command(place),
            output=folder / "output.txt",
            early_port=early_port,
            answers=partial(self._says_its_state, node) if settings.asks_when_ready else None,
            why_silent=lambda: self._why_silent(node) if settings.asks_when_ready else "",
            ready_within_s=self.ready_within_ns / 1e9,
            environment=version.environment if version else {},
            group=self._enclosure.groups.get(node),
        )

    async def _says_its_state(self, node: str) -> bool:
        return await self._admin.status(node, STATUS_WITHIN_NS) is not None


def _check_free(ports: Iterable[int]) -> None:
    """ClusterError in one line if a port is taken."""
    for port in ports:
        with socket.socket() as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind((LOOPBACK, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise ClusterError(f"port {port} cannot be used: {error.strerror}") from error
                raise ClusterError(
                    f"port {port} is in use; choose another base port, or 0 for any"
                ) from error
