"""The nodes of a local cluster as processes: which run, which are killed or paused, which ended unexpectedly.

Faults may overlap: a node that two faults killed comes back when the last of them is healed, and so with pauses.
The roster keeps the relay informed where each node listens; the relay guards each process.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from harness.cluster import faketime_files
from harness.cluster.processes import NodeProcess, Orders
from harness.cluster.protocol import Ended, Orphans
from harness.cluster.relay.remote import Relay
from harness.errors import ClusterError, NodeEnded

_STOP_WITHIN_S: Final = 2.0
REFUSED: Final = ("exit 1", "exit 64")
"""How a node ends that does not come up, or does not know what it was told, and has said why."""
CRASHED: Final = (
    *(
        f"signal {int(number)}"
        for number in (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV)
    ),
    "exit 70",
)
"""No node ends like this because of SIGTERM: one that does so then has crashed all the same."""
_TERMINATES_WITHIN_S: Final = 10.0


def raise_first(outcomes: Iterable[BaseException | None]) -> None:
    """The error of a node that ended before that of a node which only waited for it."""
    errors = [outcome for outcome in outcomes if outcome is not None]
    for error in sorted(errors, key=lambda error: not isinstance(error, NodeEnded)):
        raise error


class Roster:
    def __init__(self, orders: Mapping[str, Orders], relay: Relay, now_ns: Callable[[], int]) -> None:
        self._orders = orders
        self._relay = relay
        self._now_ns = now_ns
        self._processes: dict[str, NodeProcess] = {}
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._told: set[int] = set()
        self._kills: Counter[str] = Counter()
        self._pauses: Counter[str] = Counter()
        self._starved: Counter[str] = Counter()
        self._ran_out: set[str] = set()
        """Nodes that the kernel ended while a fault starved them."""
        self._ended: list[Ended] = []
        self._orphans: list[Orphans] = []
        self._may_refuse: dict[str, list[str]] = {}
        self._is_stopping = False

    async def start(self) -> None:
        """All nodes, side by side. Raises the ClusterError of the first that does not come up."""
        raise_first(await asyncio.gather(*map(self.start_one, self._orders), return_exceptions=True))

    async def start_one(self, node: str) -> None:
        """Start a node, wait until it is ready, tell the relay. Raises ClusterError."""
        if self._is_stopping:
            raise ClusterError(f"{node} is not started: the cluster is being stopped")
        process = self._processes[node] = await NodeProcess.spawn(self._orders[node])
        self._watchers[node] = asyncio.get_running_loop().create_task(self._watch(process))
        await self._relay.guard(process.pid, process.family.mark)
        if self._orders[node].early_port:
            await self._relay.set_port(node, self._orders[node].early_port)
        await process.ready()
        await self._relay.set_port(node, process.port)

    async def kill(self, node: str) -> None:
        """Kill -9; returns when the process was seen dead and the relay knows."""
        self._kills[node] += 1
        process = self._processes[node]
        self._told.add(process.pid)
        await process.kill()
        await asyncio.shield(self._watchers[node])

    async def terminate(self, node: str) -> bool:
        """SIGTERM; returns when the process was seen dead. False if it took too long, and a -9."""
        self._kills[node] += 1
        process = self._processes[node]
        self._told.add(process.pid)
        stopped = await process.stop(_TERMINATES_WITHIN_S)
        await asyncio.shield(self._watchers[node])
        return stopped.by_itself

    async def left(self, node: str) -> str:
        """What is left of a node that was killed or stopped, in words; "" if nothing is."""
        return await self._processes[node].left()

    def starve(self, node: str) -> None:
        """From now on the kernel may end the node for want of memory; `feed` reports it, and `revive` undoes it."""
        self._kills[node] += 1
        self._starved[node] += 1
        self._ran_out.discard(node)

    async def feed(self, node: str) -> bool:
        """Not any more; before `revive`. Whether the kernel has ended it since `starve`."""
        if not self.is_alive(node):
            await asyncio.shield(self._watchers[node])  # how it ended is known
        self._starved[node] -= 1
        return node in self._ran_out

    @contextmanager
    def may_refuse(self, node: str) -> Iterator[list[str]]:
        """Meanwhile the node may end with exit 1, which says that it refuses to start; that is not a crash.

        Gives the last words of its log.
        """
        said = self._may_refuse[node] = []
        try:
            yield said
        finally:
            del self._may_refuse[node]

    def reorder(self, orders: Orders) -> None:
        """Start the node like this from now on."""
        self._orders = {**self._orders, orders.node: orders}

    async def start_again(self, node: str) -> None:
        await self.start_one(node)

    async def revive(self, node: str) -> bool:
        """Undo a `kill`; False if another fault keeps the node dead. Raises ClusterError."""
        self._kills[node] -= 1
        if self._kills[node]:
            return False
        if not self.is_alive(node):
            await self.start_one(node)
        return True

    async def pause(self, node: str) -> bool:
        """Stop the node; True if all threads of all its processes were seen stopped."""
        self._pauses[node] += 1
        return await self._processes[node].pause()

    async def resume(self, node: str) -> bool:
        """Undo a `pause`; False if another fault keeps the node stopped."""
        self._pauses[node] -= 1
        if self._pauses[node]:
            return False
        self._processes[node].send(signal.SIGCONT)
        return True

    def pid(self, node: str) -> int:
        return self._processes[node].pid

    def port(self, node: str) -> int:
        return self._processes[node].port

    def is_alive(self, node: str) -> bool:
        process = self._processes.get(node)
        return process is not None and process.is_alive

    async def is_stopped(self, node: str) -> bool:
        """All threads of all its processes are stopped now."""
        return self.is_alive(node) and self._processes[node].is_stopped()

    def may_answer(self, node: str) -> bool:
        """The process is ready and neither dead nor paused."""
        return self.is_alive(node) and not self._pauses[node] and self.port(node) > 0

    def ended(self) -> tuple[Ended, ...]:
        ended, self._ended = tuple(self._ended), []
        return ended

    async def stop(self) -> None:
        """End all processes, whatever state they are in; safe at any time."""
        self._is_stopping = True
        await asyncio.gather(*map(self._stop, self._processes.values()))
        await asyncio.gather(*self._watchers.values(), return_exceptions=True)

    async def _stop(self, process: NodeProcess) -> None:
        self._note_orphans(process, (await process.stop(_STOP_WITHIN_S)).outlived)

    def _note_orphans(self, process: NodeProcess, what: str) -> None:
        if what:
            self._orphans.append(Orphans(process.node, self._now_ns(), what))

    def orphans(self) -> tuple[Orphans, ...]:
        """Processes that outlived their node, and were killed, since the last call."""
        orphans, self._orphans = tuple(self._orphans), []
        return orphans

    async def _watch(self, process: NodeProcess) -> None:
        """See the process end. Its port may be anybody's now, its number soon too."""
        how = await process.ended()
        is_told = process.pid in self._told
        faketime_files.remove_of(process.pid)
        refused = how in REFUSED and process.node in self._may_refuse
        if refused:
            self._may_refuse[process.node] += process.last_words()[-1:]
        elif (not is_told or how in CRASHED) and not self._is_stopping:
            starved = process.out_of_memory(how)
            if starved and self._starved[process.node]:
                self._ran_out.add(process.node)
            else:
                self._ended.append(Ended(process.node, self._now_ns(), how, process.last_words(), starved))
        self._told.discard(process.pid)
        if self._processes[process.node] is process:
            await self._relay.set_port(process.node, 0)
        if not is_told and not self._is_stopping:
            self._note_orphans(process, await process.family.outlived())
        await self._relay.release(process.pid)
