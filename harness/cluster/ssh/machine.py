"""One host during a run: what the last run left is removed, the bundle installed, the supervisor commanded.

Commands are JSON lines over one SSH channel (`remote/supervisor.py` has the table). When the connection is lost the
supervisor goes on; we connect again, for as long as its lease, and send again what was not answered: it does nothing
twice. paramiko blocks, so reading has a thread of its own, and writing another.
"""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from harness.cluster.place import Version, Which
from harness.cluster.ssh.bundle import bundle
from harness.cluster.ssh.inventory import Host
from harness.cluster.ssh.leftovers import answer_to, clean, owner
from harness.cluster.ssh.remote.bootstrap import FORMAT, PREFIX
from harness.cluster.ssh.session import CONNECT_WITHIN_S, Session
from harness.errors import ClusterError, HarnessError

if TYPE_CHECKING:
    import paramiko  # type: ignore[import-untyped]  # it has no types

PATIENCE_S: Final = 20.0
_RENEW_EVERY_S: Final = 1.0
_CLOCK_TRIES: Final = 7
_AGAIN_EVERY_S: Final = 0.5

OnEvent = Callable[["Machine", Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Clocks:
    """By how much the clocks of the host are ahead of ours."""

    monotonic_ns: int = 0
    wall_ns: int = 0


class Machine:
    """`facts` is the host's report of itself: its Python, its machine, the programs that were found."""

    def __init__(self, host: Host, run: str, on_event: OnEvent) -> None:
        """`run`: the run's id, different for each host of the inventory, because two of them may be one machine."""
        self.host = host
        self.facts: Mapping[str, Any] = {}
        self.clocks = Clocks()
        self._compared: deque[tuple[int, Clocks]] = deque(maxlen=_CLOCK_TRIES)
        """The last few: clocks drift, and a wall clock is set."""
        self._run = run
        self._on_event = on_event
        self._session: Session | None = None
        self._channel: paramiko.Channel | None = None
        self.is_installed = False
        self._waiting: dict[int, tuple[bytes, asyncio.Future[dict[str, Any]]]] = {}
        self._last_id = 0
        self._last_event = 0
        self._writer = ThreadPoolExecutor(1, f"to {host.place}")
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._is_over = False
        self._is_connecting = False
        """One task connects anew, and each of its tries may be lost in its turn."""
        self._why_lost = ""
        """Why it could not be reached again in time; "" as long as there is hope."""

    @property
    def folder(self) -> str:
        """The folder of the run on that host."""
        return str(PurePosixPath(str(self.facts["base"])) / f"{PREFIX}{self._run}")

    # Before and after the supervisor

    async def reach(self) -> None:
        """Log in, get the host's report, remove what dead runs left. Raises ClusterError."""
        self._session = await asyncio.to_thread(Session.open, self.host)
        self.facts = await self._answer_to("look", self.host.folder)
        await asyncio.to_thread(clean, self._session, self.host, self.facts)

    async def install(self, versions: Sequence[tuple[Which, Version]] = ()) -> None:
        """Upload, start the supervisor, talk to it. Raises ClusterError."""
        version = ".".join(map(str, self.facts["version"]))
        archive = await asyncio.to_thread(bundle, version, str(self.facts["machine"]), tuple(versions))
        info = {
            "format": FORMAT,
            "run": self._run,
            "owner": owner(),
            "lease_s": self.host.lease_s,
        }
        self.is_installed = True
        await self._answer_to("install", json.dumps({"folder": self.folder, "info": info}), archive)
        await self._attach()
        for _ in range(_CLOCK_TRIES):
            await self._compare_clocks()
        self._start(self._renew())

    async def fetch(self, target: Path) -> None:
        """Bring home what the nodes wrote: `nodes/<n>/…` under `target`. Raises ClusterError."""
        assert self._session is not None
        archive = await asyncio.to_thread(self._session.run, "fetch", self.folder)
        await asyncio.to_thread(_unpack, archive, target, self.host)

    async def remove(self) -> None:
        """End what runs there, and remove all of it; safe at any time."""
        self._is_over = True
        for task in list(self._tasks):
            task.cancel()
        try:
            if self.is_installed:
                await self._remove()
        finally:
            if self._channel is not None:
                self._channel.close()
            if self._session is not None:
                await asyncio.to_thread(self._session.close)
            self._writer.shutdown(wait=False)

    async def _remove(self) -> None:
        try:
            await self._answer_to("clean", self.folder)
        except ClusterError:  # once more, over a fresh connection
            self._session = await asyncio.to_thread(Session.open, self.host)
            await self._answer_to("clean", self.folder)

    async def _answer_to(self, word: str, argument: str, stdin: bytes = b"") -> dict[str, Any]:
        assert self._session is not None
        return await asyncio.to_thread(answer_to, self._session, self.host, word, argument, stdin)

    # Commands

    async def ask(self, command: str, /, **arguments: object) -> dict[str, Any]:
        """Have the supervisor do it; its answer. Raises ClusterError."""
        if self._why_lost:
            raise ClusterError(self._why_lost)
        self._last_id = number = self._last_id + 1
        line = json.dumps({"id": number, "do": command, **arguments}).encode() + b"\n"
        answered: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (line, answered)
        try:
            self._send(line)
            answer = await asyncio.wait_for(answered, PATIENCE_S + self.host.lease_s)
        except TimeoutError:
            raise ClusterError(f"{self.host.place} did not answer the command {command!r} in time") from None
        finally:
            self._waiting.pop(number, None)
        if "error" in answer:
            raise ClusterError(f"{self.host.place} could not do the command {answer['error']}")
        return answer

    def tell(self, command: str, /, **arguments: object) -> None:
        """The same, without waiting for the answer."""

        async def asked() -> None:
            with suppress(ClusterError):
                await self.ask(command, **arguments)

        self._start(asked())

    def _send(self, line: bytes) -> None:
        channel = self._channel
        if channel is not None and not self._is_over:
            self._writer.submit(_write, channel, line)

    async def _attach(self) -> None:
        assert self._session is not None
        channel = await asyncio.to_thread(self._session.begin, "attach", self.folder)
        self._channel = channel
        loop = asyncio.get_running_loop()
        threading.Thread(
            target=self._read, args=(channel, loop), name=f"from {self.host.place}", daemon=True
        ).start()
        for line, _ in list(self._waiting.values()):
            self._send(line)
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                await self.ask("hello", seen=self._last_event)
        except TimeoutError:
            raise ClusterError(f"{self.host.place} does not answer on a new connection") from None

    def _read(self, channel: paramiko.Channel, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: every line goes to the loop, and so does the end."""
        rest = b""
        with suppress(OSError, EOFError, RuntimeError):  # the loop may be closed by then
            while data := channel.recv(65536):
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    loop.call_soon_threadsafe(self._arrived, line)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._lost, channel)

    def _arrived(self, line: bytes) -> None:
        message = json.loads(line)
        if "event" in message:
            # One that overtakes events that were missed waits for them: the answer to `hello` has it again.
            if message["event"] == self._last_event + 1:
                self._last_event += 1
                self._on_event(self, message)
            return
        if "id" not in message:  # there is no supervisor to connect to
            self._fail(f"{self.host.place}: {message.get('error', 'it does not answer in order')}")
            return
        _, answered = self._waiting.get(message["id"], (b"", None))
        if answered is not None and not answered.done():
            answered.set_result(message)

    def _fail(self, why: str) -> None:
        """No question will be answered any more."""
        for _, answered in self._waiting.values():
            if not answered.done():
                answered.set_exception(ClusterError(why))

    def _lost(self, channel: paramiko.Channel) -> None:
        if channel is self._channel and not self._is_over:
            self._channel = None
            if not self._is_connecting:
                self._is_connecting = True
                self._start(self._again())

    async def _again(self) -> None:
        """Connect anew; when the lease is over there is no supervisor to connect to."""
        deadline = time.monotonic() + self.host.lease_s
        last = f"the connection to {self.host.place} was lost"
        while time.monotonic() < deadline:
            try:
                if self._session is not None:
                    await asyncio.to_thread(self._session.close)
                self._session = await asyncio.to_thread(Session.open, self.host)
                await self._attach()
                if self._channel is not None:  # else it is lost already
                    self._is_connecting = False
                    return
            except HarnessError as error:
                last = error.message
            await asyncio.sleep(_AGAIN_EVERY_S)
        self._why_lost = last
        self._fail(last)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(_RENEW_EVERY_S)
            with suppress(ClusterError):
                await self._compare_clocks()

    async def _compare_clocks(self) -> None:
        """By the fastest of the last round trips, as if the way back took as long as the way there."""
        asked_ns, asked_wall_ns = time.monotonic_ns(), time.time_ns()
        answer = await self.ask("clock")
        took_ns = time.monotonic_ns() - asked_ns
        ahead = Clocks(
            answer["monotonic_ns"] - asked_ns - took_ns // 2, answer["wall_ns"] - asked_wall_ns - took_ns // 2
        )
        self._compared.append((took_ns, ahead))
        _, self.clocks = min(self._compared, key=lambda compared: compared[0])

    def _start(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)


def _write(channel: paramiko.Channel, line: bytes) -> None:
    with suppress(OSError, EOFError):  # the reader sees it too
        channel.sendall(line)


def _unpack(archive: bytes, target: Path, host: Host) -> None:
    """Files and folders, at their places under `target`: a host is not trusted with anything else."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as packed:  # nothing that unpacks to more
            for member in packed:
                _place(packed, member, target, host)
    # LookupError: the second name of a file that is not in it. ValueError: a NUL in a name.
    except (tarfile.TarError, LookupError, ValueError, OSError) as error:
        text = error if isinstance(error, OSError) else archive[:200].decode(errors="replace")
        raise ClusterError(f"the logs of {host.place} cannot be brought home: {text}") from error


def _place(packed: tarfile.TarFile, member: tarfile.TarInfo, target: Path, host: Host) -> None:
    name = PurePosixPath(member.name)
    if name.is_absolute() or ".." in name.parts:
        return
    is_of_a_node = name.parts[:1] == ("nodes",)
    if (member.isfile() or member.islnk()) and (is_of_a_node or member.size):
        path = target / (name if is_of_a_node else f"supervisor-{host.host}-{host.port}.txt")
        content = packed.extractfile(member)
        assert content is not None  # it is a file, or the second name of one
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.read())
