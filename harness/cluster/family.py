"""All processes of one node: the one that was started, and every process that comes from it.

The started process leads a session of its own, so most processes of the node are found by their session. A wrapper may
start the store in another session (`setsid`), or end before it. Such a process is found as a descendant, by a mark in
the environment, which every process of the node inherits, or because an earlier look had it.

Hosts over SSH have no psutil: on Linux all of this is read from /proc.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

MARK: Final = "QSYNC_NODE_PROCESS"
"""The environment variable that every process of a node inherits."""
GONE_WITHIN_S: Final = 5.0
STOPPED_WITHIN_S: Final = 2.0
OUTLIVES_S: Final = 1.0
"""How long the other processes of a node may take to end after the one that was started."""
_POLL_S: Final = 0.01
_REFUSES_WITHIN_S: Final = 1.0
_PROC: Final = Path("/proc")
_HAS_PROC: Final = (_PROC / "self" / "task").is_dir()

Name = tuple[int, float]
"""A process: its number, and when it began. A number is given again, the pair is not."""


@dataclass(frozen=True, slots=True)
class _Process:
    """A process of this machine. `began` is in ticks since boot (elsewhere than on Linux: in seconds)."""

    pid: int
    parent: int
    group: int
    session: int
    began: float

    @property
    def name(self) -> Name:
        return self.pid, self.began


class Stopped(NamedTuple):
    """How a node ended that the harness stopped."""

    by_itself: bool
    """SIGTERM was enough for the one that was started."""
    outlived: str
    """In words: which processes lived on after the one that was started, and were killed."""


@dataclass(slots=True)
class Family:
    """The processes of one node: `leader` is the started one, and the processes that it starts inherit `mark`."""

    leader: int
    mark: str
    _began: float | None = None
    _known: set[Name] = field(default_factory=set)
    _strangers: set[Name] = field(default_factory=set)
    """Processes with an environment that was read and has no such mark: it is read once."""

    def __post_init__(self) -> None:
        rows = _table()
        self._began = rows[self.leader].began if self.leader in rows else None

    def look(self) -> list[int]:
        """The numbers of its processes that run or are stopped now; a zombie is gone."""
        return [row.pid for row in self._processes()]

    def are_stopped(self) -> bool:
        """There is a process, and all threads of all processes are stopped."""
        pids = self.look()
        return bool(pids) and all(map(_is_stopped, pids))

    def send(self, number: signal.Signals) -> None:
        """Signal each process once: the leader's group as a whole, so that none can fork in between.

        Not by `subprocess`, which would poll the leader and take its exit status from the waiter.
        """
        rows = self._processes()
        if any(row.group == self.leader for row in rows):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.leader, number)
        for row in rows:
            if row.group != self.leader:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(row.pid, number)

    async def stop(self) -> bool:
        """SIGSTOP until all threads are stopped: a process may fork before the signal reaches it. Whether they are."""
        deadline_s = time.monotonic() + STOPPED_WITHIN_S
        while self.look() and time.monotonic() < deadline_s:
            self.send(signal.SIGSTOP)
            if self.are_stopped():
                return True
            await asyncio.sleep(_POLL_S)
        return False

    async def terminate(self, leader_ends: Callable[[], Awaitable[object]], patience_s: float) -> Stopped:
        """SIGTERM, then after a while SIGKILL. Stopped processes are continued first."""
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)
        deadline_s = time.monotonic() + patience_s
        try:
            await asyncio.wait_for(leader_ends(), patience_s)
        except TimeoutError:
            await self.end(leader_ends)
            return Stopped(False, "")
        return Stopped(True, await self.outlived(max(OUTLIVES_S, deadline_s - time.monotonic())))

    async def end(self, leader_ends: Callable[[], Awaitable[object]]) -> None:
        """SIGKILL; returns when the end of the leader is known, and all others are dead."""
        self.send(signal.SIGKILL)
        await leader_ends()
        await self.kill()

    async def outlived(self, patience_s: float = OUTLIVES_S) -> str:
        """After the end of the started process: kill what is left after a while; returns what that was, in words."""
        if await self._gone(patience_s):
            return ""
        left = self.in_words()
        await self.kill()
        return left

    async def _gone(self, within_s: float) -> bool:
        """Whether all processes end within this time."""
        deadline_s = time.monotonic() + within_s
        while self.look():
            if time.monotonic() > deadline_s:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    async def kill(self) -> None:
        """SIGKILL until none is left, or until that takes too long."""
        for _ in self._killing():
            await asyncio.sleep(_POLL_S)

    def kill_now(self) -> None:
        """The same, without giving way to the loop."""
        for _ in self._killing():
            time.sleep(_POLL_S)

    def _killing(self) -> Iterator[None]:
        """A process may fork before the signal reaches it, so look again after each signal."""
        deadline_s = time.monotonic() + GONE_WITHIN_S
        while self.look() and time.monotonic() < deadline_s:
            self.send(signal.SIGKILL)
            yield

    def in_words(self) -> str:
        """The processes that are left, with their commands; "" if none is."""
        return ", ".join(f"process {pid} ({_command(pid)})" for pid in self.look())

    def _processes(self) -> list[_Process]:
        table = _table()
        leader = table.get(self.leader)
        is_number_ours = leader is None or leader.began == self._began
        ours = {
            row.pid
            for row in table.values()
            if row.name in self._known
            or (is_number_ours and self.leader in (row.pid, row.session))
            or self._is_marked(row)
        }
        while children := {row.pid for row in table.values() if row.parent in ours} - ours:
            ours |= children
        self._known = {table[pid].name for pid in ours}
        self._strangers &= {row.name for row in table.values()}
        return [table[pid] for pid in sorted(ours)]

    def _is_marked(self, row: _Process) -> bool:
        if row.name in self._strangers:
            return False
        if f"{MARK}={self.mark}".encode() in _environment(row.pid):
            return True
        self._strangers.add(row.name)
        return False


def is_in_our_pid_namespace(pid: int, proc: Path = _PROC) -> bool:
    """Otherwise it is in a container, and the number of its harness is that of a different process here.

    Raises OSError if the process is no more, or is another user's.
    """
    ours = proc / "self" / "ns" / "pid"
    return not ours.is_symlink() or (proc / str(pid) / "ns" / "pid").readlink() == ours.readlink()


def new_mark(whose: str) -> str:
    """A value of `MARK` that no other process has; the environment of the process that is started gets it."""
    return f"{whose}/{secrets.token_hex(8)}"


async def still_listens(host: str, ports: Iterable[int]) -> str:
    """The first port that does not refuse connections, in words; "" if all do."""
    for port in ports:
        try:
            async with asyncio.timeout(_REFUSES_WITHIN_S):
                _, writer = await asyncio.open_connection(host, port)
            writer.close()
        except TimeoutError:
            pass
        except OSError:  # also of a name with several addresses, of which each refuses
            continue
        return f"port {port} still takes connections"
    return ""


def _table() -> Mapping[int, _Process]:
    """All processes that are no zombies."""
    return dict(_of_proc() if _HAS_PROC else _of_psutil())


def _of_proc() -> Iterator[tuple[int, _Process]]:
    for folder in os.scandir(_PROC):
        if folder.name.isdigit():
            with suppress(OSError, IndexError):
                text = (_PROC / folder.name / "stat").read_text(errors="replace")
                state, parent, group, session, *rest = text.rpartition(")")[2].split()
                if state not in "ZX":
                    pid = int(folder.name)
                    yield pid, _Process(pid, int(parent), int(group), int(session), float(rest[15]))


def _of_psutil() -> Iterator[tuple[int, _Process]]:
    import psutil  # type: ignore[import-untyped]  # it has no types

    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.status() != psutil.STATUS_ZOMBIE:
                pid = process.pid
                row = _Process(pid, process.ppid(), os.getpgid(pid), os.getsid(pid), process.create_time())
                yield pid, row


def _environment(pid: int) -> bytes:
    """Empty if it may not be read."""
    if not _HAS_PROC:
        return b""
    with suppress(OSError):
        return (_PROC / str(pid) / "environ").read_bytes()
    return b""


def _is_stopped(pid: int) -> bool:
    """All threads are stopped. Linux reports each; elsewhere a signal stops the whole process."""
    if not _HAS_PROC:
        import psutil

        with suppress(psutil.Error):
            return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        return False
    with suppress(OSError):
        stats = [path.read_text(errors="replace") for path in (_PROC / str(pid) / "task").glob("*/stat")]
        return {stat.rpartition(")")[2].split()[0] for stat in stats} == {"T"}
    return False


def _command(pid: int) -> str:
    with suppress(OSError):
        words = (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return " ".join(words.split())[:80]
    return "?"
