"""The few protocols that the harness is built of; each has a handful of methods.

A *cluster* is where nodes run, and the only thing that a conductor awaits: its coroutines run on asyncio (local
processes, containers, SSH) or in virtual time (the simulator) without knowing which.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from harness.clients.reply import Reply
from harness.cluster.place import Which
from harness.faults.fault import Evidence, Fault, Moment
from harness.faults.hands import Time

LAST_LINES = 5
"""How many last lines of a node that did not start are reported: enough for the end of a traceback."""


def end_of(code: int) -> str:
    """How a process ended that has this return code in Python: "exit 70", or "signal 11" for -11."""
    return f"signal {-code}" if code < 0 else f"exit {code}"


@dataclass(frozen=True, slots=True)
class Ended:
    """A node's process that ended without a fault or the harness ending it. `how` is "exit 70", "signal 11", or the
    assertion.

    `last_words` are the last lines that it printed; `out_of_memory` the kernel's words, if the kernel ended it for
    want of memory.
    """

    node: str
    time_ns: int
    how: str
    last_words: tuple[str, ...] = ()
    out_of_memory: str = ""

    @property
    def failed_start(self) -> str:
        """The sentence for a node that ended before it was ready: how it ended, and its last lines."""
        reason = self.out_of_memory or " | ".join(self.last_words[-LAST_LINES:]) or "it printed nothing"
        return f"{self.node} ended before it was ready ({self.how}): {reason}"


@dataclass(frozen=True, slots=True)
class Orphans:
    """Processes of a node that outlived the one which was started; they were killed. `what`: which, in words."""

    node: str
    time_ns: int
    what: str


@runtime_checkable
class FindsOrphans(Protocol):
    """A cluster with nodes that may leave processes behind."""

    def orphans(self) -> tuple[Orphans, ...]:
        """The processes that were found, and killed, since the last call; after `Cluster.stop` too."""
        ...


@runtime_checkable
class MeasuresItself(Protocol):
    """A cluster that can tell the memory and the disk space in use, in real bytes."""

    async def used(self) -> Mapping[str, Mapping[str, int]]:
        """By node, and for "harness": `memory_bytes` of its process, if one is there, and `disk_bytes`."""
        ...


@runtime_checkable
class WatchesMoments(Protocol):
    """A cluster that observes every action of its nodes: the simulator."""

    def moment(self, moment: Moment) -> Awaitable[str]:
        """Wait, from now on, until a node reaches the moment; which node."""
        ...


@runtime_checkable
class BeginsAnew(Protocol):
    """A cluster with nodes that take an unknown time to come up: its time begins when they serve."""

    def begin_now(self) -> object:
        """The time is 0 from this call on. Called before anything is recorded."""
        ...


@runtime_checkable
class ChangesShapes(Protocol):
    """A cluster that can change the shape of an active partition."""

    async def change(self, fault: Fault, number: int) -> None:
        """Switch the partition to shape `number`; links cut in both shapes stay cut throughout."""
        ...


@runtime_checkable
class LooksForEnds(Protocol):
    """A cluster that gets no notice when a node ends, and has to look."""

    async def look(self) -> None:
        """Look at all nodes once more: then `ended` reports every end before this. ClusterError if it cannot."""
        ...


READY_WITHIN_S: Final = 20.0
"""How long a node may take until it answers, unless its system says something else."""
RARE_TURNS = "rare-turns"
"""A line of the harness at the end of a record: what `NotesRareTurns.sometimes` gives."""


@runtime_checkable
class NotesRareTurns(Protocol):
    """A cluster that knows the rare turns of its nodes, if these count any."""

    def sometimes(self) -> Mapping[str, int]:
        """Row → how often it occurred, once the cluster has stopped; on real clusters, in how many lives at least."""
        ...


@runtime_checkable
class Administered(Protocol):
    """A cluster in which an operator can stop single nodes, start them again, and put new nodes in their place."""

    async def terminate(self, node: str) -> bool:
        """SIGTERM; returns when the process is gone. False if that took more than a signal."""
        ...

    async def destroy(self, node: str) -> None:
        """kill -9, and its disk is lost: it can only come back as a new node."""
        ...

    async def start_again(
        self, node: str, *, configuration: bytes | None = None, members: Collection[str] = ()
    ) -> None:
        """Start a node that was stopped; with a configuration, a new node on an empty disk.

        With `members`, a new command starts it, for a `Place` that joins these.

        Raises ClusterError; NodeEnded if a new node ended by itself: then it may be tried again.
        """
        ...


@runtime_checkable
class HasAddresses(Protocol):
    """A cluster in which all nodes and clients dial a node at the same address."""

    def address(self, node: str) -> str:
        """HOST:PORT, as in `harness.cluster.place.Place.listen`."""
        ...


@runtime_checkable
class Configures(Protocol):
    """A cluster in which an operator can change the options of a node."""

    def configure(self, node: str, configuration: bytes) -> None:
        """Options for the node from its next start on, on the data that it has."""
        ...


@runtime_checkable
class ExchangesVersions(Protocol):
    """A cluster that can start a node, which was stopped, in another version on the same data."""

    async def start_in(self, node: str, version: Which, otherwise: Which) -> str:
        """Start it in `version`; if it ends instead, in `otherwise`, and return its last words. Else "".

        Raises ClusterError if it runs in neither, or does not come up in time.
        """
        ...


class Cluster(Time, Protocol):
    """Where nodes run."""

    async def start(self) -> None:
        """Bring all nodes up; raises `ClusterError` with one clear line if they do not come up.

        Until all nodes were ready once, a node that ends is a start that failed: the line has its last lines.
        """
        ...

    async def stop(self) -> None:
        """End everything that `start` began; safe to call at any time and twice."""
        ...

    async def call(self, process: int, node: str, request: object, timeout_ns: int) -> Reply:
        """One request on the connection of client `process` to `node`, made when there is none.

        After `Lost` the connection is closed. No client goes on under the same number then; operators (below 0) do.
        """
        ...

    async def inject(self, fault: Fault) -> None:
        """Carry the fault out; returns when all of it is in effect (or surely will not be)."""
        ...

    async def heal(self, fault: Fault) -> Evidence:
        """Undo it, verify that it is undone, and report what it did."""
        ...

    async def status(self, node: str) -> Mapping[str, object] | None:
        """The node's report of itself, past all faults of the network; None if it does not answer."""
        ...

    def ended(self) -> tuple[Ended, ...]:
        """Nodes that ended unexpectedly since the last call."""
        ...

    def stalls(self) -> tuple[tuple[int, float], ...]:
        """When the harness's own loop stood still, and for how many milliseconds, since the last call."""
        ...
