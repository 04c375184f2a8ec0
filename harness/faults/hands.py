"""A cluster of real nodes, as faults use it. Faults wait for nothing else, so they need no clock and no thread."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeVar

from harness.faults.fault import Damage, Evidence, Fault

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Ballast = Literal["fill", "press"]


class Task(Protocol[T_co]):
    """A coroutine that runs beside the caller; await it for its result."""

    def __await__(self) -> Generator[Any, None, T_co]: ...

    def cancel(self) -> object: ...

    def done(self) -> bool: ...


class Time(Protocol):
    """Real or virtual: what coroutines may wait for."""

    def now_ns(self) -> int:
        """Nanoseconds since the run began, monotonic."""
        ...

    def sleep_until(self, time_ns: int) -> Awaitable[None]: ...

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> Task[T]: ...


class Processes(Protocol):
    """The nodes of a cluster: local processes, those of other hosts, or containers. Raises ClusterError.

    Faults may overlap: a node starts, or goes on, when the last fault that killed, or paused, it has ended.
    """

    async def kill(self, node: str) -> None:
        """kill -9; returns when the node is dead."""
        ...

    async def terminate(self, node: str) -> bool:
        """SIGTERM; returns when the node is dead. False if it had to be killed."""
        ...

    async def revive(self, node: str) -> bool:
        """Undo a `kill` or a `terminate`; False if a different fault keeps the node dead."""
        ...

    async def start_again(self, node: str) -> None:
        """Start a node that has ended; this undoes no `kill`."""
        ...

    def may_refuse(self, node: str) -> AbstractContextManager[list[str]]:
        """In the block the node may refuse to start: that is not a crash. The list then gets its last line."""
        ...

    async def pause(self, node: str) -> bool:
        """Stop all processes of the node; whether they are stopped."""
        ...

    async def resume(self, node: str) -> bool:
        """Undo a `pause`; False if a different fault keeps the node paused."""
        ...

    def life(self, node: str) -> int:
        """A number that is another one when the node was started again."""
        ...

    def is_alive(self, node: str) -> bool: ...

    async def is_stopped(self, node: str) -> bool:
        """Whether all its processes are stopped now."""
        ...

    async def left(self, node: str) -> str:
        """The remains of a node that was killed or stopped: a process or a port; "" if there are none."""
        ...

    def starve(self, node: str) -> None:
        """From now on the kernel may end the node for want of memory: that end does not count as unexpected."""
        ...

    async def feed(self, node: str) -> bool:
        """End `starve`; whether the kernel has ended the node meanwhile. Call it before `revive`, which forgets such an
        end."""
        ...


class Storage(Protocol):
    """A disk, for faults. Raises ClusterError, or OSError of this machine, if something cannot be done."""

    async def order(self, orders: Mapping[str, Any]) -> None:
        """Give the disk new orders: the fields of `nodes.host.orders.Orders`."""
        ...

    async def effects(self) -> dict[str, Any]:
        """id: the orders that the disk has read; delayed, failed: the calls that they affected. {} without a report."""
        ...

    async def power_fails(self) -> None:
        """The node is about to die: from now on nothing reaches the disk without a sync."""
        ...

    async def lose_unsynced(self, seed: str) -> int:
        """Throw away the unsynced bytes of the node, which is dead; return how many were lost or spoilt."""
        ...

    async def save(self) -> None:
        """Keep a copy of all files of the node, which is dead."""
        ...

    async def damage(self, what: Damage, logs: Sequence[str], seed: str) -> int:
        """Damage one file with a name of these patterns; how many bytes were added, cut off or changed. 0 if no file
        was long enough."""
        ...

    async def restore(self) -> None:
        """Put back what `save` kept."""
        ...

    async def forget(self) -> None:
        """Empty the folder of the node, which is dead; what people read, and its configuration, stay."""
        ...


Counts = Mapping[str, int]
"""The kernel's counts of a group of processes since it was made (`counts` of `harness.cluster.limits.group.Group`)."""


class Limits(Protocol):
    """Limits nodes, on this machine or on theirs. All raise OSError or ValueError where it cannot be done."""

    async def counts(self, node: str) -> Counts: ...

    async def limit_cpu(self, node: str, percent: int) -> None: ...

    async def limit_memory(self, node: str, spare_bytes: int) -> None:
        """Limit the node to the memory that it needs and `spare_bytes` more."""
        ...

    async def press(self, node: str, ballast: Ballast) -> None:
        """Start a second process in the node's group that takes memory; returns when it runs."""
        ...

    async def release(self, node: str) -> None:
        """End the second process."""
        ...

    async def lift(self, node: str) -> bool:
        """Take all limits back; whether the kernel reports them as they were."""
        ...


class AtWork(Protocol):
    """One fault, from its beginning to its verified end."""

    async def begin(self) -> None: ...

    async def end(self) -> Evidence: ...


class CutAtWork(AtWork, Protocol):
    """A cut, which may end in two steps: it is healed, and traffic is observed."""

    async def heal(self) -> None: ...

    async def evidence(self) -> Evidence:
        """Waits for fresh traffic."""
        ...


class Isolation(Protocol):
    """Silence around nodes without power."""

    async def cut_off(self, fault: Fault) -> None:
        """From now on nothing reaches the nodes of the fault or comes from them."""
        ...

    async def forget(self, fault: Fault) -> None:
        """Drop the bytes that are held for the nodes or from them: they are dead."""
        ...

    async def join(self, fault: Fault) -> None:
        """Let the nodes, which run again, communicate; old connections are reset."""
        ...


class Links(Protocol):
    """The network between nodes: a relay, or packets. Raises WrongUse for what cannot be done here."""

    def cut(self, fault: Fault) -> CutAtWork: ...

    def shape(self, fault: Fault) -> AtWork:
        """The links of the fault deliver late, out of order, or little."""
        ...

    def lose(self, fault: Fault) -> AtWork: ...

    def isolation(self) -> Isolation: ...


class Hands(Time, Protocol):
    """A cluster of real nodes."""

    @property
    def name(self) -> str: ...

    @property
    def heartbeat_ns(self) -> int: ...

    @property
    def ready_within_ns(self) -> int:
        """How long a node may take until it answers, when it was started or a fault has ended."""
        ...

    @property
    def may_refuse(self) -> bool:
        """A store that does not promise to survive a loss of power may say so instead of coming up."""
        ...

    @property
    def processes(self) -> Processes: ...

    @property
    def links(self) -> Links: ...

    @property
    def limits(self) -> Limits: ...

    def storage(self, node: str) -> Storage:
        """The disk under the node."""
        ...

    async def set_clock(self, node: str, wall_offset_ns: int, drift_ppm: int) -> None:
        """Set the offset and the drift of the node's clocks."""
        ...

    def wall_ns(self, node: str) -> int:
        """The right time where the node runs."""
        ...

    async def status(self, node: str) -> Mapping[str, object] | None:
        """The node's report of itself; None if it does not answer."""
        ...


async def together(time: Time, coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run the coroutines side by side; their results, in order. An error cancels those behind it in this order."""
    tasks = [time.spawn(coroutine) for coroutine in coroutines]
    try:
        return [await task for task in tasks]
    except BaseException:
        for task in tasks:
            task.cancel()
        raise
