"""The cluster `ssh`: a node is a process of a host in the inventory, under the supervisor of that host.

Faults of the network happen in the relays (`relays.py`), those of processes, clocks and files at the supervisors; none
of them needs root. Clients reach the nodes from here over TCP, through a relay of the harness.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any

from harness.cluster.clock_files import clock_files
from harness.cluster.empty_disk import CONFIG
from harness.cluster.network_faults import RelayLinks
from harness.cluster.node_book import STOP_WITHIN_S, all_over
from harness.cluster.ownership import RunId
from harness.cluster.place import FROM, LOOPBACK, Place, Which
from harness.cluster.probe import Probes
from harness.cluster.real_cluster import CLIENT, RealCluster, RealSettings
from harness.cluster.relay.link import LinkName
from harness.cluster.relay.remote import Relay
from harness.cluster.ssh.bundle import PROGRAM, place_of
from harness.cluster.ssh.inventory import Host
from harness.cluster.ssh.limits import SshLimits
from harness.cluster.ssh.machine import Machine
from harness.cluster.ssh.nodes import SshNodes, StartOptions
from harness.cluster.ssh.relays import Relays, SshProbes
from harness.cluster.storage import FileStorage, Word
from harness.cluster.talk import admin_of, clients_of, probe_of
from harness.errors import ClusterError
from harness.faults.hands import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings(RealSettings):
    hosts: tuple[Host, ...]
    are_dialed_unready: bool = False
    limited: bool = False
    """Each node runs in a group of processes of its own, which can be limited; refused where the user may not."""


class SshCluster(RealCluster[SshNodes]):
    """Implements `harness.cluster.protocol.Cluster`."""

    name = "ssh"
    _settings: SshSettings

    def __init__(self, settings: SshSettings) -> None:
        super().__init__(
            settings,
            clients_of(settings.talk, lambda node: self._routes[CLIENT, node], lambda node: LOOPBACK),
            admin_of(settings.talk, lambda node: self._ports[node], self._host_of),
        )
        hosts = settings.hosts[: len(self._nodes)]
        run = RunId.new().text
        machines = [
            Machine(host, f"{run}-{number}", self._event) for number, host in enumerate(hosts, start=1)
        ]
        self._machines = {node: machines[place % len(hosts)] for place, node in enumerate(self._nodes)}
        self._in_use = machines
        self._ports: dict[str, int] = {}
        self._routes: dict[LinkName, int] = {}
        self._here: Relay | None = None
        self._relays: Relays | None = None

    # Life

    async def _begin(self) -> None:
        await all_over(machine.reach() for machine in self._in_use)
        await all_over(machine.install(tuple(self._settings.versions.items())) for machine in self._in_use)
        self._here = await Relay.start(self._relay_errors)
        self._relays = Relays(self._here, self._machines)
        await self._choose_ports()
        await self._open_routes(self._here)
        for node, configuration in self._settings.configs.items():
            await self._configure(node, configuration)
        options = {node: self._options(node, FROM) for node in self._nodes}
        self._started = SshNodes(options, self._relays, self.now_ns, self._until_up)
        if self._settings.limited:
            run = secrets.token_hex(4)
            await all_over(
                machine.ask("enclose", run=run, nodes=self._on(machine)) for machine in self._in_use
            )
        await self._started.start()
        self.begin_now()

    async def _end(self) -> None:
        if self._started is not None:
            self._started.stopping()
        async with AsyncExitStack() as ends:  # from the last to the first, whatever fails
            if self._here is not None:
                ends.push_async_callback(self._here.stop)
            ends.callback(self._shift_logs)
            await all_over(map(self._leave, self._in_use))

    async def _leave(self, machine: Machine) -> None:
        """End the nodes, bring their logs home, and remove everything, even if one of these fails."""
        try:
            if machine.is_installed:
                with suppress(ClusterError):  # removing will end them
                    answer = await machine.ask("end", patience_s=STOP_WITHIN_S)
                    if self._started is not None:
                        self._started.note_orphans(answer["orphans"])
                if self._started is not None:  # else no node was started, and the error to report is why
                    await machine.fetch(self._settings.folder)
        finally:
            await machine.remove()

    # Ports, routes and options

    async def _choose_ports(self) -> None:
        for machine in self._in_use:
            nodes = self._on(machine)
            first, last = machine.host.node_ports
            answer = await machine.ask(
                "ports", count=len(nodes), host=machine.host.binds, first=first, last=last
            )
            self._ports.update(zip(nodes, answer["ports"], strict=True))

    async def _open_routes(self, here: Relay) -> None:
        await self._listen(CLIENT, here)
        for node in self._nodes:
            await self._listen(node, self._machines[node])

    async def _listen(self, source: str, relay: Relay | Machine) -> None:
        targets = [node for node in self._nodes if node != source]
        answer = await relay.ask("listen", routes=[(source, target, 0) for target in targets])
        self._routes.update(
            {(source, target): port for target, port in zip(targets, answer["ports"], strict=True)}
        )

    async def _renew(self, node: str, version: Which, members: Collection[str] = ()) -> None:
        self.processes.start_with(self._options(node, version, members))

    def _options(self, node: str, which: Which, members: Collection[str] = ()) -> StartOptions:
        machine, settings = self._machines[node], self._settings
        bundle, data = f"{machine.folder}/bundle", f"{machine.folder}/nodes/{node}"
        version = settings.versions.get(which)
        folder = f"{bundle}/{place_of(which)}"
        safe = {} if version is None else version.environment  # no other nodes but these
        search = f"{folder}:{bundle}" if version is not None and version.root is not None else bundle
        place = Place(
            node=node,
            config=f"{data}/{CONFIG}",
            data=data,
            log=f"{data}/log.jsonl",
            clock=f"{data}/clock",
            listen=f"{machine.host.binds}:{self._ports[node]}",
            peers={
                peer: f"{LOOPBACK}:{self._routes[node, peer]}"
                for peer in members or self._nodes
                if peer != node
            },
            epoch_ns=settings.epoch_ns + machine.clocks.monotonic_ns,
            python=machine.facts["python"],
            root=bundle,
            programs={**machine.facts["programs"], **machine.host.programs},
            program=f"{folder}/{PROGRAM}" if version is not None and version.shipped is not None else "",
            joins=bool(members),
        )
        return StartOptions(
            node=node,
            machine=machine,
            command=settings.command(place),
            environment={**safe, "PYTHONPATH": search, "PYTHONDONTWRITEBYTECODE": "1"},
            port=self._ports[node],
            early=settings.are_dialed_unready,
        )

    def _on(self, machine: Machine) -> list[str]:
        return [node for node in self._nodes if self._machines[node] is machine]

    def _host_of(self, node: str) -> str:
        return self._machines[node].host.reached_at

    # Which nodes run

    def _event(self, machine: Machine, event: Mapping[str, Any]) -> None:
        if self._started is not None:
            self._started.event(machine, event)

    # Faults

    @property
    def limits(self) -> SshLimits:
        return SshLimits(self._machines)

    @property
    def links(self) -> RelayLinks:
        assert self._relays is not None
        nodes, times = (CLIENT, *self._nodes), (self.heartbeat_ns, self._epoch_ns)
        return RelayLinks(self.name, nodes, self._relays, self._probes, times)

    def _probes(self) -> SshProbes:
        here = Probes(self._routes, self.processes.may_answer, probe_of(self._settings.talk))
        return SshProbes(here, self._routes, self._machines)

    def storage(self, node: str) -> Storage:
        """The supervisor of a node's host changes the node's files."""

        async def done(word: Word, given: Mapping[str, Any]) -> dict[str, Any]:
            answer = await self._machines[node].ask("disk", node=node, word=word, given=given)
            return dict(answer["result"])

        return FileStorage(done)

    async def _configure(self, node: str, configuration: bytes) -> None:
        await self._machines[node].ask("write", path=f"nodes/{node}/{CONFIG}", text=configuration.decode())

    async def set_clock(self, node: str, wall_offset_ns: int, drift_ppm: int) -> None:
        for name, text in clock_files(wall_offset_ns, drift_ppm).items():
            await self._machines[node].ask("write", path=f"nodes/{node}/clock/{name}", text=text)

    def wall_ns(self, node: str) -> int:
        return super().wall_ns(node) + self._machines[node].clocks.wall_ns
