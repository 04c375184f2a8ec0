"""The harness's end of the relay's control channel: of one relay, and what is the same for several."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self, cast

from harness.cluster.place import LOOPBACK, ROOT
from harness.cluster.protocol import end_of
from harness.cluster.relay.link import LinkName
from harness.errors import ClusterError

_PATIENCE_S: Final = 10.0
_ANSWER_BYTES_MAX: Final = 1 << 22


class Commands(ABC):
    """The commands of a relay, or of several that are one to the harness (`harness.cluster.ssh.relays`)."""

    @abstractmethod
    async def ask(self, command: str, /, **arguments: object) -> dict[str, Any]:
        """Send a command; its answer. Raises ClusterError if the relay is not there or cannot do it."""

    async def listen(self, routes: Iterable[tuple[str, str, int]]) -> list[int]:
        """Open the routes (source, target, port or 0); their ports."""
        return cast(list[int], (await self.ask("listen", routes=list(routes)))["ports"])

    async def set_port(self, node: str, port: int, host: str = LOOPBACK) -> None:
        """Where `node` listens now; 0 while it is dead."""
        await self.ask("port", node=node, port=port, host=host)

    async def cut(self, fault: int, links: Iterable[LinkName]) -> int:
        """The monotonic time from which nothing passes any of the links."""
        return cast(int, (await self.ask("cut", fault=fault, links=list(links)))["at_ns"])

    async def slow(
        self,
        fault: int,
        links: Iterable[LinkName],
        *,
        delay_ns: int = 0,
        jitter_ns: int = 0,
        bytes_per_s: int = 0,
        seed: int,
    ) -> int:
        """The monotonic time from which all of the links are slow, or narrow."""
        how = {"delay_ns": delay_ns, "jitter_ns": jitter_ns, "bytes_per_s": bytes_per_s, "seed": seed}
        return cast(int, (await self.ask("slow", fault=fault, links=list(links), **how))["at_ns"])

    async def heal(self, fault: int, seed: int) -> int:
        """The monotonic time from which the fault does nothing to any link."""
        return cast(int, (await self.ask("heal", fault=fault, seed=seed))["at_ns"])

    async def counters(self, fault: int) -> dict[LinkName, dict[str, int | None]]:
        """The effect of the fault on each of its links: the fields of `relay.link.Watch`."""
        rows: list[dict[str, Any]] = (await self.ask("counters", fault=fault))["links"]
        return {cast(LinkName, tuple(row.pop("link"))): row for row in rows}

    async def forget(self, fault: int) -> None:
        """Drop the counters of a fault."""
        await self.ask("forget", fault=fault)

    async def reset(self, node: str) -> int:
        """End the connections from and to the node with a reset; how many there were."""
        return cast(int, (await self.ask("reset", node=node))["connections"])

    async def discard(self, node: str) -> int:
        """Drop what is held for a node without power; its connections stay silent until `reset`. How many they are."""
        return cast(int, (await self.ask("discard", node=node))["connections"])


class ControlledProcess(Commands):
    """A process of ours that takes commands; made by `start`. Each command raises ClusterError if it has ended."""

    what: ClassVar[str]
    module: ClassVar[str]

    def __init__(self, process: asyncio.subprocess.Process, errors: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._errors = errors
        self._commands = process.stdin
        self._answers = process.stdout
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._last_id = 0
        self._not_an_answer = ""
        self._reader = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def start(cls, errors: Path) -> Self:
        """Start the process; what it says on stderr goes to the file `errors`."""
        with errors.open("ab") as file:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", cls.module),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=file,
                cwd=ROOT,
                limit=_ANSWER_BYTES_MAX,
                start_new_session=True,  # the terminal's Ctrl-C is not for it
            )
        return cls(process, errors)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def stop(self) -> None:
        """End the process. It kills the nodes that it still guards. A file of errors that has none is removed."""
        self._commands.close()
        try:
            await asyncio.wait_for(self._process.wait(), 1.0)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            await self._commands.wait_closed()
        await self._reader
        with contextlib.suppress(FileNotFoundError):
            if not self._errors.stat().st_size:
                self._errors.unlink()

    async def ask(self, command: str, /, **arguments: object) -> dict[str, Any]:
        if self._reader.done() or self._not_an_answer:
            raise ClusterError(f"{self.what} ended ({self._how_it_ended()}) before the command {command!r}")
        self._last_id = number = self._last_id + 1
        line = {"id": number, "do": command, **arguments}
        answered: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answered
        try:
            self._commands.write(json.dumps(line).encode() + b"\n")
            answer = await asyncio.wait_for(answered, _PATIENCE_S)
        except TimeoutError:
            raise ClusterError(
                f"{self.what} did not answer the command {command!r} within {_PATIENCE_S:.0f} s"
            ) from None
        finally:
            self._waiting.pop(number, None)
        if "error" in answer:
            raise ClusterError(f"{self.what} could not do the command {answer['error']}")
        return answer

    async def _read(self) -> None:
        """Hand out the answers, until the process ends or writes something else. Then every command fails."""
        line = b""
        try:
            while line := await self._answers.readline():
                answer = json.loads(line)
                waiting = self._waiting.get(answer["id"])
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)
        # A process that is killed may leave half a line.
        except (ValueError, LookupError, TypeError) as error:
            self._not_an_answer = f"{error}: {line[:60]!r}"
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ClusterError(f"{self.what} ended ({self._how_it_ended()})"))
        while await self._answers.read(_ANSWER_BYTES_MAX):
            pass  # a process that waits for room in its output could not end

    def _how_it_ended(self) -> str:
        if self._not_an_answer:
            return f"expected an answer in JSON, got {self._not_an_answer}"
        code = self._process.returncode
        return "no exit code yet" if code is None else end_of(code)


class Relay(ControlledProcess):
    """A running relay."""

    what = "the relay"
    module = "harness.cluster.relay"

    async def guard(self, pid: int, mark: str) -> None:
        await self.ask("guard", pid=pid, mark=mark)

    async def release(self, pid: int) -> None:
        await self.ask("release", pid=pid)

    async def totals(self) -> Mapping[str, Any]:
        return await self.ask("totals")
