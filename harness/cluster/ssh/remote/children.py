"""The nodes of one host as processes: started, killed and stopped, and observed.

Each is a session of its own with a lifeline on stdin, and the kernel kills it if the supervisor dies. Its
number and start time are written down at once, so that a later clean-up hits no other process. All that it starts
inherits a mark with the folder of the run, and is found by that (`harness.cluster.family`).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from harness.cluster import faketime_files
from harness.cluster.family import MARK, Family, Stopped, new_mark, still_listens
from harness.cluster.last_words import last_words
from harness.cluster.limits.enclosure import launcher
from harness.cluster.limits.group import Group
from harness.cluster.limits.starved import Starved
from harness.cluster.relay.guard import ask_for_signal_at_death_of_parent
from harness.cluster.ssh.remote.bootstrap import PROCESSES, started

OnEnd = Callable[[str, int, int, tuple[str, ...], str], None]
"""(node, process number, return code as Python has it, last lines that it printed, the kernel's words if it ended the
process for want of memory)."""


class Child:
    """A process that was spawned. `output` is where it prints, from the byte `output_from` on."""

    def __init__(
        self, node: str, process: asyncio.subprocess.Process, output: Path, output_from: int, mark: str
    ) -> None:
        self.node = node
        self.process = process
        self._output = output
        self._output_from = output_from
        self.over = asyncio.Event()
        self.family = Family(process.pid, mark)
        self.is_asked_to_end = False
        """The caller asked it to end, and looks after the processes that it started."""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        return self.process.returncode is None

    def last_words(self) -> tuple[str, ...]:
        return last_words(self._output, self._output_from)


class Children:
    def __init__(self, folder: Path, on_end: OnEnd, on_orphans: Callable[[str, str], None]) -> None:
        """`on_orphans` gets (node, in words which processes outlived it)."""
        self._folder = folder
        self._on_end = on_end
        self._on_orphans = on_orphans
        self._children: dict[str, Child] = {}
        self._known: list[tuple[int, int]] = []
        self._watchers: dict[asyncio.Task[None], None] = {}

    def __getitem__(self, node: str) -> Child:
        if node not in self._children:
            raise ValueError(f"{node} was never started here")
        return self._children[node]

    async def start(
        self,
        node: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        output: Path,
        group: Group | None = None,
    ) -> int:
        """Its process number; OSError if the program cannot be started."""
        if node in self._children and self._children[node].is_alive:
            raise ValueError(f"{node} runs already")
        with output.open("ab") as file:
            output_from = file.tell()
            starved, mark = Starved(group), new_mark(f"{self._folder}/{node}")
            process = await asyncio.create_subprocess_exec(
                *launcher(group, tuple(command)),
                stdin=asyncio.subprocess.PIPE,
                stdout=file,
                stderr=file,
                cwd=self._folder,
                env={**os.environ, **environment, MARK: mark},
                start_new_session=True,
                preexec_fn=partial(ask_for_signal_at_death_of_parent, signal.SIGKILL),
            )
        child = self._children[node] = Child(node, process, output, output_from, mark)
        task = asyncio.get_running_loop().create_task(self._watch(child, starved))
        self._watchers[task] = None
        task.add_done_callback(self._watchers.pop)
        # The node runs now: one that cannot be written down, on a full disk, is watched and can be killed all the same.
        self._write_down(child.pid)
        return child.pid

    async def kill(self, node: str) -> None:
        """SIGKILL; returns when all processes are dead."""
        child = self[node]
        child.is_asked_to_end = True
        await child.family.end(child.over.wait)

    async def terminate(self, node: str, patience_s: float) -> bool:
        """SIGTERM, after a while SIGKILL; when it is dead, whether SIGTERM was enough."""
        stopped = await self._stop(self[node], patience_s)
        if stopped.outlived:
            self._on_orphans(node, stopped.outlived)
        return stopped.by_itself

    async def _stop(self, child: Child, patience_s: float) -> Stopped:
        child.is_asked_to_end = True
        return await child.family.terminate(child.over.wait, patience_s)

    async def left(self, node: str, host: str, port: int) -> str:
        """The remains of a node that was ended, in words: processes or a port; "" if there are none."""
        return self[node].family.in_words() or await still_listens(host, [port])

    async def end(self, patience_s: float) -> dict[str, str]:
        """SIGTERM to all, stopped ones too; after a while SIGKILL. Node → which processes outlived it, in words."""
        children = list(self._children.values())
        stopped = await asyncio.gather(*(self._stop(child, patience_s) for child in children))
        ends = zip(children, stopped, strict=True)
        return {child.node: ended.outlived for child, ended in ends if ended.outlived}

    def _write_down(self, pid: int) -> None:
        with suppress(OSError):  # it is gone already
            self._known.append((pid, started(pid)))
        fresh = self._folder / f"{PROCESSES}.new"
        fresh.write_text(json.dumps(self._known))
        fresh.replace(self._folder / PROCESSES)

    async def _watch(self, child: Child, starved: Starved) -> None:
        code = await child.process.wait()
        faketime_files.remove_of(child.pid)
        child.over.set()
        out_of_memory = starved.kernel_line(child.pid) if code == -signal.SIGKILL else ""
        self._on_end(child.node, child.pid, code, child.last_words(), out_of_memory)
        if not child.is_asked_to_end and (outlived := await child.family.outlived()):
            self._on_orphans(child.node, outlived)
