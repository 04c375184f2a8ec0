"""A cluster in the virtual world: thin over `nodes.world`.

`run` drives a coroutine in virtual time: nothing sleeps, and the same seed and plan give the same trace, byte for
byte. In one seed of ten, messages go through the bytes of the store's protocol, in chunks of random length.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from checkers.logs.wal.effects import FILE, Effect, to_lines
from harness.clients.reply import Reply
from harness.clients.wire import SimulatedWire
from harness.cluster.place import TRACE
from harness.cluster.protocol import Ended
from harness.cluster.sim.clients import VirtualClients
from harness.cluster.sim.moments import Moments
from harness.cluster.sim.virtual_tasks import Pending, VirtualTask
from harness.errors import ClusterError, StoreError
from harness.faults.action import changing
from harness.faults.fault import Evidence, Fault, Moment
from harness.faults.hands import AtWork
from harness.faults.table import action_of
from harness.faults.virtual import VirtualHands
from nodes.kernel.effects import REMOVED, Log
from nodes.kernel.node import CountsRareTurns, Node
from nodes.kernel.outbox import Durability
from nodes.kernel.trace import TRACE_FILE, Described
from nodes.world.world import World

T = TypeVar("T")
SEARCHES_FOR_CYCLES = (200_000, 20, 20)
"""A seed makes millions of values and hardly a cycle, so the search for cycles may be rare: 4 to 18 % of the time."""


@contextmanager
def _few_searches() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*SEARCHES_FOR_CYCLES)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class KeepsEffects(Protocol):
    """The effects of a simulator's disks and links."""

    def read(self) -> list[Effect]: ...


Watch = Callable[[World, Callable[[int], int | None]], KeepsEffects]
"""(world, the client process at the other end of a link, or None for a node) → the effects."""

STARTS_IN_NS = 100_000_000
"""How long a process takes to come up again when an operator starts it."""
BYTES_EVERY = 10
"""One seed in so many sends bytes."""


class SimCluster:
    """Implements `harness.cluster.protocol.Cluster`."""

    def __init__(
        self,
        makers: Mapping[str, Callable[[], Node]],
        *,
        wire: SimulatedWire,
        seed: int,
        heartbeat_ns: int,
        durability: Durability = "synced",
        folder: Path | None = None,
        record_trace: bool = False,
        maker: Callable[[bytes], Callable[[], Node]] | None = None,
        watch: Watch | None = None,
        files: Mapping[str, Mapping[str, bytes]] | None = None,
        described: Described | None = None,
    ) -> None:
        """`maker` makes a node of a configuration that was not known when the run began.

        `watch` keeps what disks and links do, for the checks of `checkers.logs.wal.early`. `files`: what is on the
        disks before the nodes start for the first time. `described`: which messages go between nodes; they are
        recorded.
        """
        codec = wire if seed % BYTES_EVERY == BYTES_EVERY - 1 else None
        self.world = World(
            seed,
            makers,
            durability=durability,
            codec=codec,
            record_trace=record_trace,
            described=described,
        )
        self.world.network.size_of = lambda message: len(wire.encode(message))
        self._clients = VirtualClients(self.world, wire)
        self._hands = VirtualHands(self.world, self.sleep_until, heartbeat_ns)
        self._at_work: dict[int, AtWork] = {}
        self._moments = Moments(self.world, wire.kinds_of)
        self._effects = watch(self.world, self._clients.process_of) if watch is not None else None
        for node, first_files in (files or {}).items():
            for name, data in first_files.items():
                self.world.machines[node].disk.put_whole(name, data)
        self._folder = folder
        self._maker = maker
        self._sometimes: dict[str, int] = {}
        self._ended: list[Ended] = []
        self._logs: dict[str, list[bytes]] = {name: [] for name in makers}
        for machine in self.world.machines.values():
            machine.on_crash = self._crashed
            machine.on_end = self._count
            machine.on_log = self._logged

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Drive a coroutine, and all that it spawns, until it is done."""
        task = VirtualTask(coroutine)
        try:
            task.start()
            with _few_searches():
                while not task.done():
                    if not self.world.agenda.advance():
                        raise RuntimeError("nothing is left to happen, and the run is not done")
        finally:
            # An interrupted coroutine still waits: what it does at its end needs the caller's open files.
            coroutine.close()
        return task.result()

    # ---- Time

    def now_ns(self) -> int:
        return self.world.agenda.now_ns

    def sleep_until(self, time_ns: int) -> Pending[None]:
        wake: Pending[None] = Pending()
        self.world.agenda.at(time_ns, wake.resolve, None)
        return wake

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> VirtualTask[T]:
        task = VirtualTask(coroutine)
        self.world.agenda.after(0, task.start)
        return task

    # ---- WatchesMoments

    def moment(self, moment: Moment) -> Pending[str]:
        return self._moments.wait(moment)

    # ---- Cluster

    async def start(self) -> None:
        for machine in self.world.machines.values():
            machine.start()
        await self.sleep_until(self.now_ns() + 1_000_000)
        for ended in self._ended:
            raise ClusterError(f"{ended.node} did not start: {ended.how}")

    async def stop(self) -> None:
        """Write down what the nodes leave behind; the world itself needs no end."""
        if self._folder is not None:
            try:
                self._write_files(self._folder)
            except OSError as error:
                raise StoreError(f"cannot write what the nodes leave behind: {error}") from error

    def files(self) -> dict[str, dict[str, bytes]]:
        """Node → path → content: its disk, the files that it removed, and the record of its messages."""
        encode = msgspec.json.Encoder().encode_lines
        left: dict[str, dict[str, bytes]] = {}
        for name, machine in self.world.machines.items():
            left[name] = dict(machine.disk.files())
            left[name] |= {f"{REMOVED}/{file}": data for file, data in machine.disk.removed.items()}
            for life, rows in enumerate(self.world.messages[name], 1):
                left[name][f"{TRACE}/{TRACE_FILE.format(life)}"] = encode(rows)
        return left

    def _write_files(self, nodes: Path) -> None:
        for name, files in self.files().items():
            folder = nodes / name
            for path, data in {**files, "log.jsonl": b"".join(self._logs[name])}.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(data)
        if self._effects is not None:
            (nodes / FILE).write_bytes(to_lines(self.effects()))

    def effects(self) -> list[Effect]:
        """The effects of disks and links until now; empty if they were not kept."""
        return [] if self._effects is None else self._effects.read()

    async def call(self, process: int, node: str, request: object, timeout_ns: int) -> Reply:
        return await self._clients.call(process, node, request, timeout_ns)

    async def inject(self, fault: Fault) -> None:
        at_work = self._at_work[fault.id] = action_of(fault).virtual(fault, self._hands)
        await at_work.begin()

    async def change(self, fault: Fault, number: int) -> None:
        await changing(self._at_work[fault.id]).change(number)

    async def heal(self, fault: Fault) -> Evidence:
        return await self._at_work.pop(fault.id).end()

    # ---- Administered

    async def terminate(self, node: str) -> bool:
        machine = self.world.machines[node]
        if machine.state != "down":
            machine.resume()
            machine.terminate()
        return True

    async def destroy(self, node: str) -> None:
        machine = self.world.machines[node]
        if machine.state != "down":
            machine.kill()

    async def start_again(
        self, node: str, *, configuration: bytes | None = None, members: Collection[str] = ()
    ) -> None:
        machine = self.world.machines[node]
        await self.sleep_until(self.now_ns() + STARTS_IN_NS)
        if machine.state != "down":
            return
        if configuration is not None:
            assert self._maker is not None, "this system has no nodes for the simulator"
            machine.replace(self._maker(configuration))
        machine.start()

    # ---- Configures

    def configure(self, node: str, configuration: bytes) -> None:
        assert self._maker is not None, "this system has no nodes for the simulator"
        self.world.machines[node].configure(self._maker(configuration))

    async def status(self, node: str) -> Mapping[str, object] | None:
        return self.world.machines[node].status()

    def ended(self) -> tuple[Ended, ...]:
        ended, self._ended = tuple(self._ended), []
        return ended

    def stalls(self) -> tuple[tuple[int, float], ...]:
        """Virtual time does not stall."""
        return ()

    def sometimes(self) -> dict[str, int]:
        """How often the rare turns that nodes count occurred, in all their lives."""
        for machine in self.world.machines.values():
            if machine.node is not None:
                self._count(machine.node)
                machine.node = None
        return self._sometimes

    def _count(self, node: Node) -> None:
        if isinstance(node, CountsRareTurns):
            for row, times in node.sometimes.items():
                self._sometimes[row] = self._sometimes.get(row, 0) + times

    # ---- what the machines say

    def _crashed(self, name: str, how: str) -> None:
        self._ended.append(Ended(name, self.now_ns(), how))
        self._logged(name, Log("error", "ended", {"how": how}))

    def _logged(self, name: str, line: Log) -> None:
        if self._folder is None:
            return
        status = self.world.machines[name].status() or {}
        known = {key: status[key] for key in ("term", "owner", "lsn") if key in status}
        row = {"time_ns": self.now_ns(), "level": line.level, "message": line.message, "node": name}
        self._logs[name].append(msgspec.json.encode({**row, **known, **line.fields}) + b"\n")
