"""The nodes of all hosts: started, killed, paused, watched.

Has the methods of `harness.faults.hands.Processes`, so kill and pause are the same code on every cluster.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.cluster.node_book import TERMINATES_WITHIN_S, Asked, ProcessBook
from harness.cluster.protocol import Ended, end_of
from harness.cluster.relay.remote import Commands
from harness.cluster.ssh.machine import Machine
from harness.errors import ClusterError


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """The start command of a node; the same at each start. `early`: its peers dial it before it is ready."""

    node: str
    machine: Machine
    command: tuple[str, ...]
    environment: Mapping[str, str]
    port: int
    early: bool


class SshNodes(ProcessBook[StartOptions]):
    """`until_up` waits until a node answers; a function says how it ended, if it has ended."""

    def __init__(
        self,
        options: Mapping[str, StartOptions],
        relays: Commands,
        now_ns: Callable[[], int],
        until_up: Callable[[str, Callable[[], Ended | None]], Awaitable[None]],
    ) -> None:
        super().__init__(options, now_ns)
        self._relays = relays
        self._until_up = until_up
        self._pids: dict[str, int] = {}
        self._alive: set[str] = set()
        self._ready: set[str] = set()
        self._asked_to_end: dict[tuple[str, int], Asked] = {}
        self._early: dict[tuple[str, int], Mapping[str, Any]] = {}
        """Ends of processes whose start has not been answered yet."""
        self._how_it_ended: dict[str, Ended] = {}
        """The last end of each node."""

    async def start_again(self, node: str) -> None:
        if self._is_stopping:
            raise ClusterError(f"{node} is not started: the cluster is being stopped")
        options = self._options[node]
        answer = await options.machine.ask(
            "start", node=node, command=options.command, environment=options.environment
        )
        self._pids[node] = answer["pid"]
        self._asked_to_end.pop((node, answer["pid"]), None)  # numbers are used again
        self._alive.add(node)  # before an early event is handled, which takes the node out again
        if (event := self._early.pop((node, answer["pid"]), None)) is not None:
            self._over(event)
        if options.early:
            await self._listens(node)
        await self._until_up(node, lambda: None if node in self._alive else self._how_it_ended.get(node))
        self._ready.add(node)
        await self._listens(node)

    async def _listens(self, node: str) -> None:
        options = self._options[node]
        await self._relays.set_port(node, options.port, options.machine.host.reached_at)

    def event(self, machine: Machine, event: Mapping[str, Any]) -> None:
        """A supervisor saw a process end. Its report may come before its answer with the number of that process."""
        if "orphans" in event:
            self.note_orphans({event["node"]: event["orphans"]})
            return
        key = (event["node"], event["pid"])
        if self._pids.get(event["node"]) == event["pid"]:
            self._over(event)
        else:
            self._early[key] = event

    def _over(self, event: Mapping[str, Any]) -> None:
        node, how = event["node"], end_of(event["code"])
        words = tuple(map(str, event["words"]))
        self._alive.discard(node)
        self._ready.discard(node)
        starved = str(event.get("starved", ""))
        ended = self._how_it_ended[node] = Ended(node, self._now_ns(), how, words, starved)
        self._note(ended, self._asked_to_end.pop((node, event["pid"]), None))

    # For faults

    async def kill(self, node: str) -> None:
        """Kill -9; returns when the process is dead and the relays know."""
        await self._put_down(node, "kill")

    async def terminate(self, node: str) -> bool:
        """SIGTERM, -9 if it takes too long; when the process is dead, whether SIGTERM was enough."""
        return bool((await self._put_down(node, "terminate", patience_s=TERMINATES_WITHIN_S))["in_order"])

    async def _put_down(self, node: str, how: Asked, **more: object) -> dict[str, Any]:
        self._kills[node] += 1
        self._asked_to_end.setdefault((node, self._pids[node]), how)
        answer = await self._options[node].machine.ask(how, node=node, **more)
        self._alive.discard(node)
        self._ready.discard(node)
        await self._relays.set_port(node, 0)
        return answer

    async def pause(self, node: str) -> bool:
        """Stop the node; True if all threads of all its processes are stopped."""
        self._pauses[node] += 1
        return bool((await self._options[node].machine.ask("pause", node=node))["stopped"])

    async def resume(self, node: str) -> bool:
        """Undo a `pause`; False if another fault keeps the node stopped."""
        self._pauses[node] -= 1
        if self._pauses[node]:
            return False
        await self._options[node].machine.ask("continue", node=node)
        return True

    def life(self, node: str) -> int:
        return self._pids[node]

    def is_alive(self, node: str) -> bool:
        return node in self._alive

    async def is_stopped(self, node: str) -> bool:
        return bool((await self._options[node].machine.ask("stopped", node=node))["stopped"])

    def may_answer(self, node: str) -> bool:
        return self.is_alive(node) and not self._pauses[node] and node in self._ready

    async def left(self, node: str) -> str:
        """The remains of a node that was killed or stopped, in words; "" if there are none."""
        options = self._options[node]
        answer = await options.machine.ask(
            "left", node=node, host=options.machine.host.binds, port=options.port
        )
        return str(answer["left"])

    def stopping(self) -> None:
        """From now on no end is unexpected."""
        self._is_stopping = True
