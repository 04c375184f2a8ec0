"""Kill, SIGTERM and pause at work on local processes: what was done, what was seen, whether it was undone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager
from typing import Final, Protocol

from harness.errors import ClusterError
from harness.faults.fault import Evidence, Fault

_ANSWERS_WITHIN_S: Final = 10.0
_ASK_AGAIN_S: Final = 0.005

Answers = Callable[[str], Awaitable[bool]]


class Processes(Protocol):
    """The nodes of a cluster: local processes, those of other hosts, or containers."""

    async def kill(self, node: str) -> None: ...

    async def terminate(self, node: str) -> bool: ...

    async def revive(self, node: str) -> bool: ...

    async def start_again(self, node: str) -> None: ...

    def may_refuse(self, node: str) -> AbstractContextManager[list[str]]: ...

    async def pause(self, node: str) -> bool: ...

    async def resume(self, node: str) -> bool: ...

    def pid(self, node: str) -> int: ...

    def is_alive(self, node: str) -> bool: ...

    async def is_stopped(self, node: str) -> bool: ...

    async def left(self, node: str) -> str:
        """The remains of a node that was killed or stopped: a process or a port; "" if there are none."""
        ...


class _ProcessFault:
    """Times, and which nodes the fault did not change as it should."""

    def __init__(
        self, fault: Fault, processes: Processes, now_ns: Callable[[], int], answers: Answers
    ) -> None:
        self._fault = fault
        self._processes = processes
        self._now_ns = now_ns
        self._answers = answers
        self._asked_ns = now_ns()
        self._heal_asked_ns: int | None = None
        self._seen_ns: list[int] = []
        self._details: list[str] = []

    def _saw(self) -> None:
        self._seen_ns.append(self._now_ns())

    async def _answers_again(self, node: str) -> bool:
        """The node was asked until it answered."""
        try:
            async with asyncio.timeout(_ANSWERS_WITHIN_S):
                while not await self._answers(node):
                    if not self._processes.is_alive(node):
                        self._details.append(f"{node} is dead")
                        return False
                    await asyncio.sleep(_ASK_AGAIN_S)
        except TimeoutError:
            self._details.append(f"{node} did not answer within {_ANSWERS_WITHIN_S:.0f} s")
            return False
        return True

    def _evidence(
        self, took_effect: bool, healed: Iterable[bool | None], counters: dict[str, int]
    ) -> Evidence:
        tried = [outcome for outcome in healed if outcome is not None]
        return Evidence(
            took_effect=took_effect,
            asked_ns=self._asked_ns,
            first_effect_ns=min(self._seen_ns, default=None),
            all_in_effect_ns=max(self._seen_ns) if len(self._seen_ns) == len(self._fault.nodes) else None,
            heal_asked_ns=self._heal_asked_ns,
            last_effect_ns=self._now_ns(),
            healed=all(tried) if tried else None,
            counters=counters,
            detail="; ".join(self._details),
        )


class Kill(_ProcessFault):
    """Took effect if all processes of all nodes were seen dead, their ports closed; undone when they answer again."""

    async def begin(self) -> None:
        await asyncio.gather(*map(self._kill, self._fault.nodes))

    async def end(self) -> Evidence:
        self._heal_asked_ns = self._now_ns()
        healed = await asyncio.gather(*map(self._revive, self._fault.nodes))
        return self._evidence(self._all_seen, healed, {"processes_seen_dead": len(self._seen_ns)})

    @property
    def _all_seen(self) -> bool:
        return bool(self._seen_ns) and len(self._seen_ns) == len(self._fault.nodes)

    async def _kill(self, node: str) -> None:
        await self._processes.kill(node)
        await self._look_at(node)

    async def _look_at(self, node: str) -> None:
        if left := await self._processes.left(node):
            self._details.append(f"{node} is not down: {left}")
        else:
            self._saw()

    async def _revive(self, node: str) -> bool | None:
        try:
            if not await self._processes.revive(node):
                return None
        except ClusterError as error:
            self._details.append(error.message)
            return False
        return await self._answers_again(node)


class Terminate(Kill):
    """SIGTERM: the node may end in order. Bit as a kill."""

    async def _kill(self, node: str) -> None:
        if not await self._processes.terminate(node):
            self._details.append(f"{node} did not end at SIGTERM and was killed")
        await self._look_at(node)


class Pause(_ProcessFault):
    """Took effect if all threads of all processes were seen stopped, at the beginning and still at the end."""

    async def begin(self) -> None:
        self._pids = {node: self._processes.pid(node) for node in self._fault.nodes}
        await asyncio.gather(*map(self._pause, self._fault.nodes))

    async def end(self) -> Evidence:
        self._heal_asked_ns = self._now_ns()
        still = [await self._still_stopped(node) for node in self._fault.nodes]
        took_effect = bool(self._seen_ns) and len(self._seen_ns) == len(still) and all(still)
        healed = await asyncio.gather(*map(self._resume, self._fault.nodes))
        return self._evidence(took_effect, healed, {"processes_seen_stopped": len(self._seen_ns)})

    async def _pause(self, node: str) -> None:
        if await self._processes.pause(node):
            self._saw()
        else:
            self._details.append(f"{node} was not seen stopped")

    async def _still_stopped(self, node: str) -> bool:
        is_so = self._processes.pid(node) == self._pids[node] and await self._processes.is_stopped(node)
        if not is_so:
            self._details.append(f"{node} did not stay stopped")
        return is_so

    async def _resume(self, node: str) -> bool | None:
        if not await self._processes.resume(node) or not self._processes.is_alive(node):
            return None
        return await self._answers_again(node)
