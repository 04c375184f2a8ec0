"""The commands of the relay: JSON lines in, JSON lines out.

    {"id": 7, "do": "cut", "fault": 3, "links": [["n1", "n2"]]}   →   {"id": 7, "at_ns": 123456789}
    {"id": 8, "do": "listen", "routes": [["n1", "n2", 0]]}        →   {"id": 8, "ports": [40123]}
    anything that cannot be done                                  →   {"id": 9, "error": "…"}

| do | with | answers |
|---|---|---|
| listen | routes: [source, target, port or 0] | ports |
| port | node, port (0: dead), host | |
| cut | fault, links | at_ns |
| slow | fault, links, delay_ns, jitter_ns, bytes_per_s, seed | at_ns |
| heal | fault, seed | at_ns |
| counters | fault | links: what the fault did on each |
| forget | fault | |
| reset, discard | node | connections |
| guard | pid, mark | |
| release | pid | |
| totals | | passed, connections |

Commands are done one after the other, each at one instant (but for `listen`). The end of the channel is the
end of the relay.
"""

from __future__ import annotations

import asyncio
import errno
import json
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from harness.cluster.relay.guard import Guard, ask_for_signal_at_death_of_parent
from harness.cluster.relay.link import LinkName
from harness.cluster.relay.switchboard import Switchboard
from harness.errors import ClusterError

Command = Mapping[str, Any]  # JSON's door: checked by its use, answered with an error
Result = dict[str, object]


class Control:
    def __init__(self, switchboard: Switchboard, guard: Guard) -> None:
        self._switchboard = switchboard
        self._guard = guard

    async def do(self, command: Command) -> Result:
        board = self._switchboard
        match command["do"]:
            case "listen":
                return {"ports": [await self._listen(*route) for route in command["routes"]]}
            case "port":
                board.set_port(command["node"], command["port"], command["host"])
            case "cut":
                return {"at_ns": board.cut(command["fault"], links_of(command))}
            case "slow":
                how = {name: command[name] for name in ("delay_ns", "jitter_ns", "bytes_per_s", "seed")}
                return {"at_ns": board.slow(command["fault"], links_of(command), **how)}
            case "heal":
                return {"at_ns": board.heal(command["fault"], command["seed"])}
            case "counters":
                return {"links": board.counters(command["fault"])}
            case "forget":
                board.forget(command["fault"])
            case "reset":
                return {"connections": board.reset(command["node"])}
            case "discard":
                return {"connections": board.discard(command["node"])}
            case "guard":
                self._guard.watch(command["pid"], command["mark"])
            case "release":
                self._guard.release(command["pid"])
            case "totals":
                return board.totals()
            case unknown:
                raise ValueError(f"no command is called {unknown!r}")
        return {}

    async def _listen(self, source: str, target: str, port: int) -> int:
        try:
            return await self._switchboard.listen(source, target, port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise OSError(f"port {port} is in use") from error
            raise


async def answered(do: Callable[[Command], Awaitable[Result]], line: bytes) -> bytes:
    """Do one command; the line that answers it."""
    command: Command = {}
    try:
        command = dict(json.loads(line))
        result = await do(command)
    except Exception as error:  # the process must live on, and the harness must hear of it
        text = str(error) if isinstance(error, OSError | ValueError | ClusterError) else repr(error)
        result = {"error": f"{command.get('do', 'not a command')!r}: {text}"}
    return json.dumps({"id": command.get("id"), **result}).encode() + b"\n"


async def answer_stdin(do: Callable[[Command], Awaitable[Result]]) -> None:
    """Answer the lines of stdin on stdout, until that ends, a signal comes, or the parent is dead."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)
    ask_for_signal_at_death_of_parent(signal.SIGTERM)  # not SIGKILL: the caller has to clean up
    answers, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)

    async def on_line(line: bytes) -> None:
        answers.write(await answered(do, line))

    await loop.connect_read_pipe(lambda: Lines(on_line, over.set), sys.stdin)
    await over.wait()


class Lines(asyncio.Protocol):
    """The channel: splits what comes into lines, and says when it ended."""

    def __init__(self, on_line: Callable[[bytes], Awaitable[None]], on_end: Callable[[], None]) -> None:
        self._on_line = on_line
        self._on_end = on_end
        self._rest = b""
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue()
        self._worker = asyncio.get_running_loop().create_task(self._work())

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._waiting.put_nowait(line)

    def connection_lost(self, error: Exception | None) -> None:
        self._worker.cancel()
        self._on_end()

    async def _work(self) -> None:
        while True:
            await self._on_line(await self._waiting.get())


def links_of(command: Command) -> list[LinkName]:
    return [cast(LinkName, tuple(link)) for link in command["links"]]
