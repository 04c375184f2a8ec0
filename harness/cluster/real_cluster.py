"""The common part of all clusters of real nodes: the life of a run, its clients, and active faults.

A cluster says how its nodes are brought up and ended (`_begin`, `_end`), what it offers to faults (`processes`,
`links`, `storage`, …), which nodes may answer and which ended unexpectedly. All else that
`harness.cluster.protocol.Cluster` asks for is here.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final, Generic, Protocol, TypeVar

from harness.clients.operations import Asked, Outcome
from harness.clients.reply import Reply
from harness.cluster.clock_files import write_clock
from harness.cluster.connections import Admin, Connections
from harness.cluster.empty_disk import CONFIG
from harness.cluster.library_clients import LibraryClients
from harness.cluster.mounted_disk.disks import MountedDisks
from harness.cluster.node_log import rare_turns, shift_log
from harness.cluster.place import FROM, Command, Version, Which
from harness.cluster.protocol import READY_WITHIN_S, Ended, Orphans
from harness.cluster.real_time import RealTime
from harness.cluster.stall import StallWatch
from harness.cluster.storage import FileStorage
from harness.cluster.talk import Talk
from harness.cluster.used import disk_bytes, memory_bytes, memory_of_all_bytes
from harness.errors import ClusterError, NodeEnded, WrongUse
from harness.faults.action import changing
from harness.faults.fault import Evidence, Fault
from harness.faults.hands import AtWork, Limits, Links, Processes, Storage
from harness.faults.table import action_of

CLIENT: Final = "client"
HARNESS: Final = "harness"
STATUS_WITHIN_NS: Final = 500_000_000
ENDS_WITHIN_NS: Final = 5_000_000_000
_ASK_AGAIN_S: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class RealSettings:
    """The settings that all clusters of real nodes have.

    `configs`: one JSON config for each node, in the nodes' order. `folder` is the run's folder: data, log and output
    of a node go to `nodes/<name>/`. `epoch_ns` is the monotonic time at which the run began.
    """

    talk: Talk
    configs: Mapping[str, bytes]
    folder: Path
    heartbeat_ns: int
    epoch_ns: int
    command: Command
    """The command that starts a node."""
    may_refuse: bool = False
    """A node that lost power may refuse to start: it does not promise to survive the loss of unsynced data."""
    ready_within_s: float = READY_WITHIN_S
    versions: Mapping[Which, Version] = field(default_factory=dict)
    """The versions that nodes run in, if not in the usual one; they start in "from"."""


class StartedNodes(Processes, Protocol):
    """The nodes of a run: what faults do to them, and what the harness observes of them."""

    def may_answer(self, node: str) -> bool:
        """The node was started, is ready, and is neither dead nor paused."""
        ...

    def ended(self) -> tuple[Ended, ...]: ...

    def orphans(self) -> tuple[Orphans, ...]: ...


N = TypeVar("N", bound=StartedNodes)


class RealCluster(RealTime, Generic[N]):
    """Implements `harness.cluster.protocol.Cluster` and `harness.faults.hands.Hands` but for what is abstract here."""

    name: ClassVar[str]

    def __init__(
        self, settings: RealSettings, clients: Connections | LibraryClients, admin: Admin | LibraryClients
    ) -> None:
        super().__init__(settings.epoch_ns)
        self._settings = settings
        self._nodes = tuple(settings.configs)
        self._clients = clients
        self._admin = admin
        self._started: N | None = None
        self._mounted: MountedDisks | None = None
        self._at_work: dict[int, AtWork] = {}
        self._not_begun: dict[str, None] = {}
        """Newcomers that ended instead of coming up."""
        self._stalls = StallWatch(settings.epoch_ns)
        self._stall_watch: asyncio.Task[None] | None = None
        self._stopped: asyncio.Task[None] | None = None
        self._began_after_ns = 0
        """How long the run began after the start time that the nodes were given."""

    # Each cluster has its own way

    @abstractmethod
    async def _begin(self) -> None:
        """Bring all nodes up."""

    @abstractmethod
    async def _end(self) -> None:
        """End everything that `_begin` began, however far it got."""

    @property
    @abstractmethod
    def links(self) -> Links:
        """The network between the nodes, which were started."""

    @property
    @abstractmethod
    def limits(self) -> Limits: ...

    @abstractmethod
    async def _renew(self, node: str, version: Which, members: Collection[str] = ()) -> None:
        """Start the node, which does not run, in that version from now on; as a new one that joins `members`."""

    def _pid(self, node: str) -> int:
        """The node's process as this machine counts processes; 0 if it has none here. It may block."""
        return 0

    # The same for nodes of this machine, in containers or not

    def storage(self, node: str) -> Storage:
        return FileStorage.here(self._folder(node)) if self._mounted is None else self._mounted[node]

    async def set_clock(self, node: str, wall_offset_ns: int, drift_ppm: int) -> None:
        write_clock(self._folder(node) / "clock", wall_offset_ns, drift_ppm)

    def wall_ns(self, node: str) -> int:
        return time.time_ns()

    async def _configure(self, node: str, configuration: bytes) -> None:
        """Write the configuration for the node's next start."""
        self._folder(node).mkdir(parents=True, exist_ok=True)
        (self._folder(node) / CONFIG).write_bytes(configuration)

    # The same everywhere

    @property
    def heartbeat_ns(self) -> int:
        return self._settings.heartbeat_ns

    @property
    def ready_within_ns(self) -> int:
        return int(self._settings.ready_within_s * 1e9)

    @property
    def may_refuse(self) -> bool:
        return self._settings.may_refuse

    @property
    def processes(self) -> N:
        if self._started is None:
            raise ClusterError("the cluster was not started")
        return self._started

    def _may_answer(self, node: str) -> bool:
        return self._started is not None and self._started.may_answer(node)

    def ended(self) -> tuple[Ended, ...]:
        return () if self._started is None else self._started.ended()

    def orphans(self) -> tuple[Orphans, ...]:
        return () if self._started is None else self._started.orphans()

    def _folder(self, node: str) -> Path:
        """The node's folder on this machine."""
        return self._settings.folder / "nodes" / node

    @property
    def _relay_errors(self) -> Path:
        return self._settings.folder / "relay.txt"

    # Life

    async def start(self) -> None:
        try:
            await self._begin()
        except BaseException as error:
            with suppress(ClusterError):  # the error to report is why it did not start
                await self.stop()
            if isinstance(error, OSError):
                raise ClusterError(f"the nodes cannot be set up: {error}") from error
            raise

    async def stop(self) -> None:
        """A caller that is cancelled waits all the same: else nodes could outlive the run."""
        if self._stopped is None:
            self._stopped = asyncio.get_running_loop().create_task(self._stop())
        is_cancelled = False
        while not self._stopped.done():
            try:
                await asyncio.wait((self._stopped,))
            except asyncio.CancelledError:
                is_cancelled = True
        if is_cancelled:
            raise asyncio.CancelledError
        self._stopped.result()

    async def _stop(self) -> None:
        if self._stall_watch is not None:
            self._stall_watch.cancel()
        self._clients.close()
        self._admin.close()
        try:
            await self._end()
        except OSError as error:  # the disk is full, say: the logs then have wrong times
            raise ClusterError(f"what the nodes left cannot be kept: {error}") from error

    def begin_now(self) -> int:
        """All before this call, the stalls too, was not part of the run."""
        if self._stall_watch is not None:
            self._stall_watch.cancel()
        later_ns = super().begin_now()
        self._began_after_ns += later_ns
        self._watch_stalls()
        return later_ns

    def _watch_stalls(self) -> None:
        self._stalls = StallWatch(self._epoch_ns)
        self._stall_watch = asyncio.get_running_loop().create_task(self._stalls.run())

    def _shift_logs(self) -> None:
        """Nodes write the time since they were first started."""
        for node in self._nodes:
            shift_log(self._folder(node) / "log.jsonl", self._began_after_ns)

    def sometimes(self) -> Mapping[str, int]:
        """By the logs of the nodes, each life once; a log lacks the last moment of a killed life."""
        return rare_turns(self._folder(node) / "log.jsonl" for node in self._nodes)

    def stalls(self) -> tuple[tuple[int, int], ...]:
        """When the harness's own loop stalled since the last call, and for how many ms."""
        return self._stalls.stalls()

    async def used(self) -> Mapping[str, Mapping[str, int]]:
        return await asyncio.to_thread(self._used)

    def _used(self) -> dict[str, dict[str, int]]:
        memory = {HARNESS: memory_bytes("self")}
        memory |= {
            node: memory_of_all_bytes(pid) if (pid := self._pid(node)) else None
            for node in self._nodes
            if self._folder(node).is_dir()  # else it runs on another machine
        }
        return {
            name: {
                **({} if used_bytes is None else {"memory_bytes": used_bytes}),
                **({} if name == HARNESS else {"disk_bytes": disk_bytes(self._folder(name))}),
            }
            for name, used_bytes in memory.items()
        }

    # Clients

    async def call(self, process: int, node: str, request: object, timeout_ns: int) -> Reply:
        assert isinstance(self._clients, Connections), "this store is asked by its library"
        return await self._clients.call(process, node, request, timeout_ns)

    async def perform(self, process: int, node: str, asked: Asked, timeout_ns: int) -> Outcome:
        assert isinstance(self._clients, LibraryClients), "this store is asked by messages"
        return await self._clients.perform(process, node, asked, timeout_ns)

    async def status(self, node: str) -> Mapping[str, object] | None:
        """Past all faults of the network; None at once if the node is dead or paused."""
        return await self._admin.status(node, STATUS_WITHIN_NS) if self._may_answer(node) else None

    def _why_silent(self, node: str) -> str:
        """Why the node does not answer: a clause that follows "was not ready"."""
        why = self._admin.why_silent(node)
        return f"; its status: {why}" if why else ""

    # Administration

    async def terminate(self, node: str) -> bool:
        return await self.processes.terminate(node)

    async def destroy(self, node: str) -> None:
        await self.processes.kill(node)

    async def start_again(
        self, node: str, *, configuration: bytes | None = None, members: Collection[str] = ()
    ) -> None:
        if configuration is not None:
            await self.storage(node).forget()
            await self._configure(node, configuration)
        if members:
            await self._renew(node, FROM, members)
        processes = self.processes
        try:
            if node in self._not_begun:  # the fault that had it down is over
                del self._not_begun[node]
                await processes.start_again(node)
            else:
                await processes.revive(node)
            if configuration is not None:
                await self._until_up(node)
        except ClusterError as error:
            if configuration is None or not await self._has_ended(node):
                raise
            self._not_begun[node] = None
            raise NodeEnded(error.message) from error

    async def start_in(self, node: str, version: Which, otherwise: Which) -> str:
        """A node that refuses to start has not crashed: it then runs in `otherwise` again. Returns its last words."""
        processes = self.processes
        await self._renew(node, version)  # what fails here is no refusal
        with processes.may_refuse(node) as last_words:
            try:
                if await processes.revive(node):
                    await self._until_up(node)
                return ""
            except ClusterError as error:
                if not await self._has_ended(node):
                    raise
                refusal = _in_words(last_words) or error.message
            await self._renew(node, otherwise)
            await processes.start_again(node)
            await self._until_up(node)
        return refusal

    async def _until_up(self, node: str, ended: Callable[[], Ended | None] = lambda: None) -> None:
        """Wait until the node answers. NodeEnded if it ends, in the words of `ended`; ClusterError if it is late."""
        deadline_ns = self.now_ns() + self.ready_within_ns
        while await self._admin.status(node, STATUS_WITHIN_NS) is None:
            if how := ended():
                raise NodeEnded(how.failed_start)
            if not self.processes.is_alive(node):
                raise NodeEnded(f"{node} ended before it answered")
            if self.now_ns() > deadline_ns:
                within = f"{self.ready_within_ns / 1e9:g} s{self._why_silent(node)}"
                raise ClusterError(f"{node} was not ready within {within}")
            await asyncio.sleep(_ASK_AGAIN_S)

    async def _has_ended(self, node: str) -> bool:
        """A node that refuses to start ends soon after it says so."""
        deadline_ns = self.now_ns() + ENDS_WITHIN_NS
        while self.processes.is_alive(node) and self.now_ns() < deadline_ns:
            await asyncio.sleep(_ASK_AGAIN_S)
        return not self.processes.is_alive(node)

    # Faults

    async def inject(self, fault: Fault) -> None:
        """Raises WrongUse for what this cluster cannot do."""
        self._check_names(fault)
        at_work = self._at_work[fault.id] = action_of(fault).real(fault, self)
        with _in_a_line(fault):
            await at_work.begin()

    async def change(self, fault: Fault, number: int) -> None:
        with _in_a_line(fault):
            await changing(self._at_work[fault.id]).change(number)

    async def heal(self, fault: Fault) -> Evidence:
        at_work = self._at_work.pop(fault.id, None)
        if at_work is None:
            raise WrongUse(f"fault {fault.id} ({fault.name}) is not at work and cannot be healed")
        with _in_a_line(fault):
            return await at_work.end()

    def _check_names(self, fault: Fault) -> None:
        known = (*self._nodes, CLIENT)
        named = [*fault.nodes, *(end for link in fault.links for end in link)]
        unknown = sorted({name for name in named if name not in known} | ({CLIENT} & {*fault.nodes}))
        if unknown:
            raise WrongUse(f"fault {fault.name}: no node is called {', '.join(unknown)}")


@contextmanager
def _in_a_line(fault: Fault) -> Iterator[None]:
    """An error of this machine, such as that of a full disk, as ClusterError."""
    try:
        yield
    except OSError as error:
        raise ClusterError(
            f"fault {fault.id} ({fault.name}) could not be carried out or undone: {error}"
        ) from error


def _in_words(lines: Iterable[str]) -> str:
    """The reason in the last line, if that is the JSON of a node of ours; else the line."""
    last = next(iter(reversed([*lines])), "")
    with suppress(ValueError):
        fields = json.loads(last)
        if isinstance(fields, dict) and "error" in fields:
            return str(fields["error"])
    return last
