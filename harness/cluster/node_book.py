"""A cluster's book of each real node: how often faults killed, paused and starved it, and how it ended.

Faults may overlap: a node that two faults killed comes back when the last of them is healed, and so with pauses. An end
is a crash unless a fault or an operator asked for it, or the node was allowed to refuse its start.
"""

from __future__ import annotations

import asyncio
import signal
from abc import abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Generic, Literal, Protocol, TypeVar

from harness.cluster.protocol import Ended, Orphans
from harness.errors import ClusterError, NodeEnded

STOP_WITHIN_S: Final = 2.0
TERMINATES_WITHIN_S: Final = 10.0
"""How long nodes may take to end at SIGTERM: at the end of a run, and when a fault or an operator asks one to."""
REFUSED: Final = ("exit 1", "exit 64")
"""How a node ends that refuses to start, or does not understand its options, and has said why."""
CRASHED: Final = (
    *(
        f"signal {int(number)}"
        for number in (signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV)
    ),
    "exit 70",
)
"""No node ends like this because it was asked to: one that does so at SIGTERM has crashed all the same."""
Asked = Literal["kill", "terminate"]
"""How a fault, or an operator, had a node end."""


def _has_crashed(how: str, asked: Asked) -> bool:
    """SIGKILL leaves no time for an exit code: a node with one had ended before. SIGTERM does."""
    return how in CRASHED or (asked == "kill" and how.startswith("exit ") and how != "exit 0")


async def all_over(awaited: Iterable[Awaitable[object]]) -> None:
    """Await all side by side; raises the first error when all are over."""
    for outcome in await asyncio.gather(*awaited, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


class NodeBook:
    def __init__(self) -> None:
        self._kills: Counter[str] = Counter()
        self._pauses: Counter[str] = Counter()
        self._starved: Counter[str] = Counter()
        self._ran_out: set[str] = set()
        """Nodes that the kernel ended while a fault starved them."""
        self._may_refuse: dict[str, list[str]] = {}
        self._ended: list[Ended] = []
        self._orphans: list[Orphans] = []
        self._is_stopping = False

    def starve(self, node: str) -> None:
        """From now on the kernel may end the node for want of memory; that is not a crash. `revive` undoes it."""
        self._kills[node] += 1
        self._starved[node] += 1
        self._ran_out.discard(node)

    async def feed(self, node: str) -> bool:
        """Undo `starve`, before `revive`; whether the kernel has ended the node meanwhile."""
        self._starved[node] -= 1
        return node in self._ran_out

    @contextmanager
    def may_refuse(self, node: str) -> Iterator[list[str]]:
        """In the block the node may refuse to start (`REFUSED`): that is not a crash.

        Yields a list that gets its last line then.
        """
        last_words = self._may_refuse[node] = []
        try:
            yield last_words
        finally:
            del self._may_refuse[node]

    def _note(self, ended: Ended, asked: Asked | None = None) -> None:
        """A node ended. One that breaks when it is asked to end, or just before, has crashed all the same."""
        node = ended.node
        if ended.how in REFUSED and node in self._may_refuse:
            self._may_refuse[node] += ended.last_words[-1:]
        elif self._is_stopping or (asked is not None and not _has_crashed(ended.how, asked)):
            return
        elif ended.out_of_memory and self._starved[node]:
            self._ran_out.add(node)
        else:
            self._ended.append(ended)

    def ended(self) -> tuple[Ended, ...]:
        """Nodes that crashed since the last call."""
        ended, self._ended = tuple(self._ended), []
        return ended

    def orphans(self) -> tuple[Orphans, ...]:
        """Processes that outlived their node, and were killed, since the last call."""
        orphans, self._orphans = tuple(self._orphans), []
        return orphans


class OfNode(Protocol):
    """How a node is started."""

    @property
    def node(self) -> str: ...


Options = TypeVar("Options", bound=OfNode)


class ProcessBook(NodeBook, Generic[Options]):
    """The same of nodes that are processes. Each is started with its options, until it gets others."""

    def __init__(self, options: Mapping[str, Options], now_ns: Callable[[], int]) -> None:
        super().__init__()
        self._options = dict(options)
        self._now_ns = now_ns

    @abstractmethod
    async def start_again(self, node: str) -> None:
        """Start a node, wait until it is ready, inform the relays. Raises ClusterError."""

    @abstractmethod
    def is_alive(self, node: str) -> bool: ...

    async def start(self) -> None:
        """All nodes, side by side. Raises NodeEnded as soon as one ends: a node that is late may only wait for it."""
        late: list[ClusterError] = []

        async def begin(node: str) -> None:
            try:
                await self.start_again(node)
            except ClusterError as error:
                if isinstance(error, NodeEnded):
                    raise
                late.append(error)

        try:
            async with asyncio.TaskGroup() as group:  # it ends when all have: none starts a process behind it
                for node in self._options:
                    group.create_task(begin(node))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        if late:
            raise late[0]

    def start_with(self, options: Options) -> None:
        """Start the node like this from now on."""
        self._options[options.node] = options

    async def revive(self, node: str) -> bool:
        """Undo a `kill`; False if another fault keeps the node dead. Raises ClusterError."""
        self._kills[node] -= 1
        if self._kills[node]:
            return False
        if not self.is_alive(node):
            await self.start_again(node)
        return True

    def note_orphans(self, orphans: Mapping[str, str]) -> None:
        """Node → which processes outlived it, in words; "" if none did."""
        self._orphans += [Orphans(node, self._now_ns(), words) for node, words in orphans.items() if words]
