"""The cluster `local`: one process a node on this machine, and the relay between all of them.

    clients ──┐                      ┌── n1 (python -m nodes.host …)
              ├── relay (a process) ─┼── n2
    n1 … nN ──┘                      └── n3

Every client and every node dials a port of the relay that stands for one route; only `status` goes past it. Network
faults happen in the relay, process faults by signals, disk faults in the nodes' own disk layer or in their files.

Nothing outlives a run: `stop` ends what `start` began, however far it got; if the harness itself is killed, nodes
and relay see it (their stdin ends, on Linux the kernel signals) and the relay kills the nodes once more.
"""

from __future__ import annotations

import contextlib
import errno
import random
import socket
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness.cluster import faketime_files
from harness.cluster.clock_files import write_clock
from harness.cluster.empty_disk import CONFIG
from harness.cluster.limits.enclosure import Enclosure, remove_leftovers
from harness.cluster.limits.group import Group
from harness.cluster.limits.machine import LimitsHere
from harness.cluster.limits.share import Share
from harness.cluster.local.nodes import LocalNodes
from harness.cluster.local.processes import StartOptions
from harness.cluster.mounted_disk.disks import Mounted, MountedDisks, mounted
from harness.cluster.network_faults import RelayLinks
from harness.cluster.ownership import RunId, lives, this_harness
from harness.cluster.place import FROM, Command, Place, Version, Which, node_host
from harness.cluster.probe import Probes
from harness.cluster.protocol import Ended, Orphans
from harness.cluster.real_cluster import CLIENT, STATUS_WITHIN_NS, RealCluster
from harness.cluster.relay.link import LinkName
from harness.cluster.relay.remote import Relay
from harness.cluster.storage import FileStorage
from harness.cluster.talk import Talk, admin_of, clients_of, probe_of
from harness.errors import ClusterError, WrongUse
from harness.faults.hands import Storage
from nodes.kernel.outbox import Durability

_HOST: Final = "127.0.0.1"
_PORT_MAX: Final = 65535
_CHOSEN_PORTS: Final = (20_000, 32_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSettings:
    """The settings of a local cluster.

    `configs`: one JSON config for each node, in the nodes' order. `folder` is the run's folder: data, log and
    output of a node go to `nodes/<name>/`. `epoch_ns` is the monotonic time at which the run began. `base_port` 0
    takes any free ports; otherwise the nodes, then the relay's routes, take the ports from there on.
    """

    system: str
    talk: Talk
    configs: Mapping[str, bytes]
    folder: Path
    heartbeat_ns: int
    epoch_ns: int
    base_port: int = 0
    durability: Durability = "synced"
    host_command: tuple[str, ...] = ()
    command: Command | None = None
    """The command that starts a node; None: `host_command` with the options of our own nodes."""
    limited: bool = False
    """Each node runs in a group of processes of its own, which can be limited."""
    share: Share | None = None
    """The share of this machine that each node may use in the whole run; it runs in a group of its own then."""
    mounted: Mounted = ""
    may_refuse: bool = False
    """A node that lost power may refuse to start: it does not promise to survive the loss of unsynced data."""
    are_dialed_unready: bool = False
    """Nodes reach each other before they are ready: their ports are chosen for them."""
    asks_when_ready: bool = False
    """Nodes print no readiness line: they are ready when they report their state."""
    versions: Mapping[Which, Version] = field(default_factory=dict)
    """The versions that nodes run in, if not in the usual one; they start in "from"."""


class LocalCluster(RealCluster):
    """Implements `harness.cluster.protocol.Cluster` on asyncio."""

    name = "local"

    def __init__(self, settings: LocalSettings) -> None:
        super().__init__(
            settings.configs,
            settings.epoch_ns,
            clients_of(
                settings.talk, lambda node: self._routes[CLIENT, node], lambda node: _HOST, self._is_down
            ),
            admin_of(
                settings.talk,
                lambda node: self._chosen_ports[node] or self._running().port(node),
                lambda node: _HOST,
            ),
        )
        self._settings = settings
        self._routes: dict[LinkName, int] = {}
        self._relay: Relay | None = None
        self._started: LocalNodes | None = None
        self._chosen_ports: dict[str, int] = {}
        self._limits = LimitsHere(self._group, lambda node: settings.folder)
        self._enclosure = Enclosure(RunId.new().text, this_harness())
        self._mounted: MountedDisks | None = None

    # Life

    async def _begin(self) -> None:
        self._watch_stalls()
        self._mounted = await mounted(self._settings.mounted, self._settings.folder, self._nodes)
        ports = self._chosen_ports = self._node_ports()
        _check_free(ports.values())
        self._relay = await Relay.start(self._relay_errors())
        await self._open_routes(self._relay)
        for node in self._nodes:
            self._write_config(node)
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
            ends.push_async_callback(self._end_relay)
            ends.callback(self._shift_logs)
            if self._mounted is not None:
                ends.push_async_callback(self._mounted.stop)
            ends.callback(faketime_files.remove_leftovers)  # those of processes that a node began, too
            ends.callback(self._enclosure.remove)
            ends.push_async_callback(self._limits.stop)
            if self._started is not None:
                ends.push_async_callback(self._started.stop)

    async def _end_relay(self) -> None:
        if self._relay is not None:
            await self._relay.stop()
            if not self._relay_errors().stat().st_size:
                self._relay_errors().unlink()

    def _may_answer(self, node: str) -> bool:
        return self._started is not None and self._started.may_answer(node)

    def _is_down(self, node: str) -> bool:
        return self._started is not None and self._started.is_down(node)

    def _folder(self, node: str) -> Path:
        return self._settings.folder / "nodes" / node

    def _pid(self, node: str) -> int:
        is_there = self._started is not None and self._started.is_alive(node)
        return self._running().pid(node) if is_there else 0

    def ended(self) -> tuple[Ended, ...]:
        return () if self._started is None else self._started.ended()

    def orphans(self) -> tuple[Orphans, ...]:
        return () if self._started is None else self._started.orphans()

    # Faults

    @property
    def heartbeat_ns(self) -> int:
        return self._settings.heartbeat_ns

    @property
    def may_refuse(self) -> bool:
        return self._settings.may_refuse

    @property
    def processes(self) -> LocalNodes:
        return self._running()

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

    def storage(self, node: str) -> Storage:
        return FileStorage.here(self._folder(node)) if self._mounted is None else self._mounted[node]

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

    def _running(self) -> LocalNodes:
        if self._started is None:
            raise ClusterError("the cluster was not started")
        return self._started

    def _node_ports(self) -> dict[str, int]:
        base = self._settings.base_port
        last = base + len(self._nodes) * (len(self._nodes) + 1) - 1
        if base < 0 or last > _PORT_MAX:
            raise WrongUse(f"base port {base}: ports {base} to {last} are needed, expected 1 to {_PORT_MAX}")
        if not base and self._settings.are_dialed_unready:
            return dict(zip(self._nodes, _free_ports(len(self._nodes)), strict=True))
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
        self._running().start_with(self._options(node, version, members))

    def _write_config(self, node: str) -> None:
        folder = self._folder(node)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CONFIG).write_bytes(self._settings.configs[node])

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
            listen=f"{_HOST}:{port}",
            peers={peer: f"{_HOST}:{route}" for peer, route in peers.items()},
            epoch_ns=settings.epoch_ns,
            program=str(version.program) if version and version.program else "",
            joins=bool(members),
        )
        command = settings.command or node_host(settings.system, settings.durability, settings.host_command)
        early_port = port if settings.are_dialed_unready else 0
        return StartOptions(
            node=node,
            command=command(place),
            output=folder / "output.txt",
            early_port=early_port,
            answers=self._says_its_state(node) if settings.asks_when_ready else None,
            why_silent=lambda: self._why_silent(node) if settings.asks_when_ready else "",
            environment=version.environment if version else {},
            group=self._enclosure.groups.get(node),
        )

    def _says_its_state(self, node: str) -> Callable[[], Awaitable[bool]]:
        async def answers() -> bool:
            return await self._admin.status(node, STATUS_WITHIN_NS) is not None

        return answers

    async def set_clock(self, node: str, wall_offset_ns: int, drift_ppm: int) -> None:
        write_clock(self._settings.folder / "nodes" / node / "clock", wall_offset_ns, drift_ppm)

    def _relay_errors(self) -> Path:
        return self._settings.folder / "relay.txt"


def _free_ports(count: int) -> list[int]:
    """Different ports that are not in use now, outside of those that the system gives to connections."""
    ports: dict[int, None] = {}
    while len(ports) < count:
        port = random.randrange(*_CHOSEN_PORTS)
        with socket.socket() as attempt, contextlib.suppress(OSError):
            attempt.bind((_HOST, port))
            ports[port] = None
    return list(ports)


def _check_free(ports: Iterable[int]) -> None:
    """ClusterError in one line if a port is taken."""
    for port in ports:
        with socket.socket() as attempt:
            attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                attempt.bind((_HOST, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise ClusterError(f"port {port} cannot be used: {error.strerror}") from error
                raise ClusterError(
                    f"port {port} is in use; choose another base port, or 0 for any"
                ) from error
