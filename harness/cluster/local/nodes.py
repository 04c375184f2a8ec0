"""The nodes of a local cluster as processes: started, killed, paused, watched.

The nodes keep the relay informed where each of them listens; the relay guards each process.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping

from harness.cluster import faketime_files
from harness.cluster.local.processes import NodeProcess, StartOptions
from harness.cluster.node_book import STOP_WITHIN_S, TERMINATES_WITHIN_S, Asked, ProcessBook
from harness.cluster.relay.remote import Relay
from harness.errors import ClusterError


class LocalNodes(ProcessBook[StartOptions]):
    def __init__(self, options: Mapping[str, StartOptions], relay: Relay, now_ns: Callable[[], int]) -> None:
        super().__init__(options, now_ns)
        self._relay = relay
        self._processes: dict[str, NodeProcess] = {}
        self._watchers: dict[str, asyncio.Task[None]] = {}
        self._asked_to_end: dict[NodeProcess, Asked] = {}

    async def start_again(self, node: str) -> None:
        process = None if self._is_stopping else await NodeProcess.spawn(self._options[node])
        if process is None or self._is_stopping:
            if process is not None:  # `stop` does not know it
                await process.kill()
            raise ClusterError(f"{node} is not started: the cluster is being stopped")
        self._processes[node] = process
        self._watchers[node] = asyncio.get_running_loop().create_task(self._watch(process))
        await self._relay.guard(process.pid, process.family.mark)
        if self._options[node].early_port:
            await self._relay.set_port(node, self._options[node].early_port)
        await process.ready()
        await self._relay.set_port(node, process.port)

    async def kill(self, node: str) -> None:
        """Kill -9; returns when the process is dead and the relay knows."""
        self._kills[node] += 1
        process = self._processes[node]
        self._asked_to_end.setdefault(process, "kill")  # before the kill: `_watch` looks there when it ends
        await process.kill()
        await asyncio.shield(self._watchers[node])

    async def terminate(self, node: str) -> bool:
        """SIGTERM; returns when the process is dead. False if it took too long, and a -9."""
        self._kills[node] += 1
        process = self._processes[node]
        self._asked_to_end.setdefault(process, "terminate")
        stopped = await process.stop(TERMINATES_WITHIN_S)
        self.note_orphans({node: stopped.outlived})
        await asyncio.shield(self._watchers[node])
        return stopped.by_itself

    async def left(self, node: str) -> str:
        """The remains of a node that was killed or stopped, in words; "" if there are none."""
        return await self._processes[node].left()

    async def feed(self, node: str) -> bool:
        if not self.is_alive(node):
            await asyncio.shield(self._watchers[node])  # how it ended is known
        return await super().feed(node)

    async def pause(self, node: str) -> bool:
        """Stop the node; True if all threads of all its processes are stopped."""
        self._pauses[node] += 1
        return await self._processes[node].family.stop()

    async def resume(self, node: str) -> bool:
        """Undo a `pause`; False if another fault keeps the node stopped."""
        self._pauses[node] -= 1
        if self._pauses[node]:
            return False
        self._processes[node].family.send(signal.SIGCONT)
        return True

    def pid(self, node: str) -> int:
        return self._processes[node].pid

    life = pid

    def port(self, node: str) -> int:
        return self._processes[node].port

    def is_alive(self, node: str) -> bool:
        process = self._processes.get(node)
        return process is not None and process.is_alive

    def is_down(self, node: str) -> bool:
        """The process is dead, and the relay dials it no more."""
        return node in self._watchers and not self.is_alive(node) and self._watchers[node].done()

    async def is_stopped(self, node: str) -> bool:
        """All threads of all its processes are stopped now."""
        return self.is_alive(node) and self._processes[node].family.are_stopped()

    def may_answer(self, node: str) -> bool:
        """The process is ready and neither dead nor paused."""
        return self.is_alive(node) and not self._pauses[node] and self.port(node) > 0

    async def stop(self) -> None:
        """End all processes, whatever state they are in; safe at any time."""
        self._is_stopping = True
        await asyncio.gather(*map(self._stop, self._processes.values()))
        await asyncio.gather(*self._watchers.values(), return_exceptions=True)

    async def _stop(self, process: NodeProcess) -> None:
        self.note_orphans({process.node: (await process.stop(STOP_WITHIN_S)).outlived})

    async def _watch(self, process: NodeProcess) -> None:
        """Note the end of the process. Its port may belong to another process now, its number soon too."""
        ended = await process.end(self._now_ns)
        asked = self._asked_to_end.pop(process, None)
        faketime_files.remove_of(process.pid)
        self._note(ended, asked)
        if self._processes[process.node] is process:
            await self._relay.set_port(process.node, 0)
        if asked is None and not self._is_stopping:
            self.note_orphans({process.node: await process.family.outlived()})
        await self._relay.release(process.pid)
