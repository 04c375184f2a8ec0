"""One node as a process of this machine: started, ready, killed, stopped, continued, ended.

Each node is a session of its own, so that a terminal's Ctrl-C reaches the harness alone. Its stdin is a lifeline:
it ends when the harness does. Its output goes to `output.txt` in its folder, the readiness line included.

A node may be more than one process (a store behind a wrapper, with workers): every signal goes to all of them, and a
state of the node is a state of all of them (`harness.cluster.family`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness.cluster.family import MARK, Family, Stopped, new_mark, still_listens
from harness.cluster.last_words import last_words
from harness.cluster.limits.enclosure import launcher
from harness.cluster.limits.group import Group
from harness.cluster.limits.starved import Starved
from harness.cluster.ownership import this_harness
from harness.cluster.place import LOOPBACK, ROOT
from harness.cluster.protocol import READY_WITHIN_S, Ended, end_of
from harness.errors import ClusterError, NodeEnded

PORT_MAX: Final = 65_535
_POLL_S: Final = 0.003


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """The start command of a node; the same at each start. `early_port`: its peers dial it there before it is ready.

    `group` is the group of processes that it runs in, if it has one of its own.
    """

    node: str
    command: tuple[str, ...]
    output: Path
    early_port: int = 0
    answers: Callable[[], Awaitable[bool]] | None = None
    """Whether it answers at its early port: a store that prints no readiness line is ready then."""
    why_silent: Callable[[], str] = str
    """Why it did not answer: a clause that follows "was not ready"."""
    ready_within_s: float = READY_WITHIN_S
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those of every node."""
    group: Group | None = None


class NodeProcess:
    """A node's process that was spawned. `port` is 0 until it is ready."""

    def __init__(
        self,
        options: StartOptions,
        process: asyncio.subprocess.Process,
        output_from: int,
        starved: Starved,
        mark: str,
    ) -> None:
        self.node = options.node
        self.port = 0
        self._options = options
        self._process = process
        self._output_from = self._looked_to = output_from
        self._starved = starved
        self.family = Family(process.pid, mark)
        self._ended = asyncio.get_running_loop().create_task(process.wait())

    @classmethod
    async def spawn(cls, options: StartOptions) -> NodeProcess:
        with options.output.open("ab") as output:
            output_from = output.tell()
            starved, mark = Starved(options.group), new_mark(f"{this_harness()}/{options.node}")
            try:
                process = await asyncio.create_subprocess_exec(
                    *launcher(options.group, options.command),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    env=os.environ
                    | {"PYTHONPATH": _search_path()}
                    | dict(options.environment)
                    | {MARK: mark},
                    start_new_session=True,
                )
            except OSError as error:
                raise ClusterError(f"{options.node} cannot be started: {error}") from error
        return cls(options, process, output_from, starved, mark)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """The process that was started runs, or is stopped."""
        return self._process.returncode is None

    async def ready(self) -> None:
        """Wait for the readiness line, or an answer. ClusterError if the node ends, refuses, or takes too long."""
        within_s = self._options.ready_within_s
        deadline = time.monotonic() + within_s
        while (line := await self._is_ready()) is None:
            if not self.is_alive:
                raise NodeEnded((await self.end(lambda: 0)).failed_start)
            if time.monotonic() > deadline:
                why = self._options.why_silent() + self._hint()
                raise ClusterError(f"{self.node} was not ready within {within_s:g} s{why}")
            await asyncio.sleep(_POLL_S)
        if line.get("ready") is not True:
            raise ClusterError(f"{self.node} does not come up: {line.get('error', 'it gave no reason')}")
        port = line.get("port")
        if type(port) is not int or not 0 < port <= PORT_MAX:
            raise ClusterError(
                f"{self.node} is ready but names no port of 1 to {PORT_MAX}: {json.dumps(line)[:200]}"
            )
        self.port = port

    async def ended(self) -> str:
        """Wait until the process is dead; how it ended."""
        return end_of(await asyncio.shield(self._ended))

    async def end(self, now_ns: Callable[[], int]) -> Ended:
        """Wait until the process is dead; how it ended, with the kernel's words if that was for want of memory."""
        how, time_ns = await self.ended(), now_ns()
        starved = self._starved.kernel_line(self.pid) if how == "signal 9" else ""
        return Ended(self.node, time_ns, how, self.last_words(), starved)

    async def kill(self) -> None:
        """SIGKILL, and wait until all processes are dead."""
        await self.family.end(self.ended)

    async def stop(self, patience_s: float) -> Stopped:
        """SIGTERM, then after a while SIGKILL."""
        stopped = await self.family.terminate(self.ended, patience_s)
        assert self._process.stdin is not None
        self._process.stdin.close()
        return stopped

    async def left(self) -> str:
        """The remains of a node that was ended, in words: processes or a port; "" if there are none."""
        return self.family.in_words() or await still_listens(LOOPBACK, [self.port] if self.port else [])

    async def _is_ready(self) -> Mapping[str, object] | None:
        answers = self._options.answers
        if answers is None:
            return self._readiness()
        # Such a store prints no readiness line: what looks like one is a line of its log.
        return {"ready": True, "port": self._options.early_port} if await answers() else None

    def _readiness(self) -> Mapping[str, object] | None:
        """The readiness line, if it was printed completely since the last look."""
        with contextlib.suppress(OSError), self._options.output.open("rb") as output:
            output.seek(self._looked_to)
            for line in output:
                if not line.endswith(b"\n"):
                    break
                self._looked_to += len(line)
                if line.startswith(b"{") and line.rstrip().endswith(b"}"):
                    with contextlib.suppress(ValueError, RecursionError):
                        value = json.loads(line)
                        if "ready" in value:
                            return dict(value)
        return None

    def last_words(self) -> tuple[str, ...]:
        return last_words(self._options.output, self._output_from)

    def _hint(self) -> str:
        printed = self.last_words()
        return f": {printed[-1].lstrip()}" if printed else f"; it printed nothing to {self._options.output}"


def _search_path() -> str:
    """The nodes are the ones of this checkout, wherever the harness was started from."""
    inherited = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(ROOT), *([inherited] if inherited else [])])
