"""`python -m harness.cluster.ssh.remote.supervisor FOLDER`: looks after the nodes of one host, and is their relay.

It takes the JSON lines of `harness.cluster.relay.control`, and these of its own, on a socket in its folder:

| do | with | answers |
|---|---|---|
| hello | seen: the number of the last event that was seen | pid; events that were missed come again |
| clock | | monotonic_ns, wall_ns of this host |
| ports | count, host, first, last | ports: not in use now |
| write | path in the folder, text | |
| start | node, command, environment | pid |
| kill | node | (all processes are dead) |
| terminate | node, patience_s | in_order: SIGTERM was enough for the one that was started; all processes are dead |
| left | node, host, port | left: which process or port of a node that was ended is still there, in words |
| enclose | run, nodes | (each node has a group of processes of its own from its next start on) |
| limit | node, what (counts, cpu, memory, press, release, lift), given | result: of `LimitsHere` |
| continue | node | |
| pause | node | stopped: all threads of all processes are stopped |
| stopped | node | stopped |
| disk | node, word, given: as `harness.cluster.storage` has them | result: what that returns |
| end | patience_s | orphans: node → which processes outlived it, in words; all nodes are dead |
| probe | source, target, port, data (hex) | (a PING is on its way on that route) |
| probed | | (no probe is open any more) |
| remove | | (and then it ends, and its folder is gone) |

A line that comes again, after a connection was lost, is done once and answered again. Lines of its own are events:
{"event": 4, "node": "n2", "pid": 812, "code": -11, "words": [...], "starved": ""}: a node ended;
{"event": 5, "node": "n2", "orphans": "process 813 (…)"}: processes that outlived it, and were killed.

When no harness has spoken for as long as the lease, it is gone: nodes are killed, the folder is removed.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from harness.cluster.limits.enclosure import Enclosure, began_at, remove_leftovers
from harness.cluster.limits.group import Group
from harness.cluster.limits.machine import LimitsHere
from harness.cluster.open_files import allow_many
from harness.cluster.ports import free_ports
from harness.cluster.probe import Probes
from harness.cluster.relay.control import Command, Control, Lines, Result, answered
from harness.cluster.relay.guard import Guard
from harness.cluster.relay.switchboard import OBSERVE_EVERY_S, Switchboard
from harness.cluster.ssh.remote.bootstrap import MARK, SOCKET
from harness.cluster.ssh.remote.children import Children
from harness.cluster.storage import WORDS, Word, perform
from harness.errors import ClusterError

_ANSWERS_KEPT: Final = 1000


class Supervisor:
    def __init__(self, folder: Path, lease_s: float) -> None:
        self._folder = folder
        self._lease_s = lease_s
        self._last_line_s = time.monotonic()
        self._children = Children(folder, self._child_ended, self._orphans_killed)
        self._switchboard = Switchboard()
        self._control = Control(self._switchboard, Guard())
        self._routes: dict[tuple[str, str], int] = {}
        self._probes = Probes(self._routes, lambda node: True, b"")
        self._attached: asyncio.WriteTransport | None = None
        self._answers: dict[int, bytes] = {}
        self._at_work: dict[int, asyncio.Task[None]] = {}
        self._events: list[bytes] = []
        self._over = asyncio.Event()
        self._enclosure = Enclosure("0", f"{os.getpid()}@{began_at(os.getpid())}", "qsync-ssh")
        self._limits = LimitsHere(self._group, self._folder_of)

    async def run(self) -> None:
        """Until the command to remove itself, until SIGTERM, or until the lease is over."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._over.set)
        await loop.create_unix_server(lambda: _Attached(self), SOCKET)
        observer = loop.create_task(self._observe())
        await self._over.wait()
        observer.cancel()
        await self._children.end(0.0)
        await self._limits.stop()
        self._enclosure.remove()

    async def _observe(self) -> None:
        """Observe cuts, and whether the lease is over."""
        while True:
            await asyncio.sleep(OBSERVE_EVERY_S)
            self._switchboard.observe()
            if time.monotonic() - self._last_line_s > self._lease_s:
                self._over.set()

    # Lines

    def attached(self, transport: asyncio.WriteTransport) -> None:
        """The connection that came last gets the answers."""
        self._attached = transport

    async def line(self, line: bytes) -> None:
        """Do what a line asks for, beside what is being done."""
        self._last_line_s = time.monotonic()
        number = _number(line)
        if number in self._answers:
            self._say(self._answers[number])
        elif number not in self._at_work:
            task = asyncio.get_running_loop().create_task(self._answer(number, line))
            self._at_work[number] = task

    async def _answer(self, number: int, line: bytes) -> None:
        answer = self._answers[number] = await answered(self._do, line)
        del self._at_work[number]
        while len(self._answers) > _ANSWERS_KEPT:
            del self._answers[next(iter(self._answers))]
        self._say(answer)

    async def _do(self, command: Command) -> Result:
        match command["do"]:
            case "hello":
                for event in self._events[command["seen"] :]:
                    self._say(event)
                return {"pid": os.getpid()}
            case "clock":
                return {"monotonic_ns": time.monotonic_ns(), "wall_ns": time.time_ns()}
            case "ports":
                span = range(command["first"], command["last"] + 1)
                return {"ports": free_ports(command["count"], command["host"], span)}
            case "write" | "disk":
                return await self._on_files(command)
            case "enclose" | "limit":
                return await self._on_limits(command)
            case "start":
                return {"pid": await self._start(command)}
            case "kill" | "terminate" | "left" | "continue" | "pause" | "stopped":
                return await self._on_child(command)
            case "end":
                return {"orphans": await self._children.end(command["patience_s"])}
            case "probe" | "probed":
                self._probe(command)
            case "remove":
                asyncio.get_running_loop().call_soon(self._over.set)  # when this has been answered
            case _:
                return await self._control.do(command)
        return {}

    async def _on_child(self, command: Command) -> Result:
        children, node = self._children, command["node"]
        match command["do"]:
            case "kill":
                await children.kill(node)
            case "terminate":
                return {"in_order": await children.terminate(node, command["patience_s"])}
            case "left":
                return {"left": await children.left(node, command["host"], command["port"])}
            case "continue":
                children[node].family.send(signal.SIGCONT)
            case "pause":
                return {"stopped": await children[node].family.stop()}
            case "stopped":
                return {"stopped": children[node].family.are_stopped()}
        return {}

    def _probe(self, command: Command) -> None:
        if command["do"] == "probed":
            self._probes.close()
        else:
            link = (command["source"], command["target"])
            self._routes[link] = command["port"]
            self._probes.data = bytes.fromhex(command["data"])
            self._probes.send(link)

    async def _start(self, command: Command) -> int:
        node = str(command["node"])
        output = self._folder / "nodes" / node / "output.txt"
        output.parent.mkdir(parents=True, exist_ok=True)
        environment = cast(Mapping[str, str], command["environment"])
        group = self._enclosure.groups.get(node)
        return await self._children.start(node, command["command"], environment, output, group)

    async def _on_limits(self, command: Command) -> Result:
        if command["do"] == "enclose":
            self._enclose(str(command["run"]), [str(node) for node in command["nodes"]])
            return {}
        return {"result": await self._limit(command["node"], command["what"], command["given"])}

    def _enclose(self, run: str, nodes: Sequence[str]) -> None:
        """ValueError says why it cannot be done here."""
        remove_leftovers(None)
        self._enclosure.run = run
        self._enclosure.make(nodes)

    async def _group(self, node: str) -> Group:
        if node not in self._enclosure.groups:
            raise ValueError(f"{node} runs in no group of its own")
        return self._enclosure.groups[node]

    async def _limit(self, node: str, what: str, given: Any) -> Any:
        limits = self._limits
        match what:
            case "counts":
                return await limits.counts(node)
            case "cpu":
                return await limits.limit_cpu(node, int(given))
            case "memory":
                return await limits.limit_memory(node, int(given))
            case "press":
                return await limits.press(node, given)
            case "release":
                return await limits.release(node)
            case "lift":
                return await limits.lift(node)
        raise ValueError(f"nothing called {what} is done to limits")

    async def _on_files(self, command: Command) -> Result:
        if command["do"] == "write":
            self._write(command["path"], command["text"])
            return {}
        folder = self._folder_of(command["node"])
        return {"result": await asyncio.to_thread(_perform, folder, command["word"], command["given"])}

    def _folder_of(self, node: str) -> Path:
        """The folder of a node of this run; ValueError for every other path."""
        nodes = self._folder.resolve() / "nodes"
        folder = (nodes / node).resolve()
        if folder.parent != nodes or not folder.is_dir():
            raise ValueError(f"no node is called {node} here")
        return folder

    def _write(self, path: str, text: str) -> None:
        """By renaming: a reader sees the old text or the new."""
        target = (self._folder / path).resolve()
        if not target.is_relative_to(self._folder.resolve()):
            raise ValueError(f"{path} is not in the folder of the run")
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(target.name + ".new")
        fresh.write_text(text)
        fresh.replace(target)

    def _child_ended(self, node: str, pid: int, code: int, words: tuple[str, ...], starved: str) -> None:
        self._report({"node": node, "pid": pid, "code": code, "words": words, "starved": starved})

    def _orphans_killed(self, node: str, outlived: str) -> None:
        self._report({"node": node, "orphans": outlived})

    def _report(self, event: Result) -> None:
        numbered = {"event": len(self._events) + 1, **event}
        self._events.append(json.dumps(numbered).encode() + b"\n")
        self._say(self._events[-1])

    def _say(self, line: bytes) -> None:
        if self._attached is not None and not self._attached.is_closing():
            self._attached.write(line)


class _Attached(Lines):
    """One connection to the supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        super().__init__(supervisor.line, lambda: None)
        self._supervisor = supervisor

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._supervisor.attached(cast(asyncio.WriteTransport, transport))


def _perform(folder: Path, word: Word, given: Mapping[str, Any]) -> Result:
    """Change the files of a node, in a thread. ValueError says what could not be done."""
    if word not in WORDS:
        raise ValueError(f"nothing called {word} is done to files")
    try:
        return perform(folder, word, given)
    except ClusterError as error:
        raise ValueError(error.message) from error


def _number(line: bytes) -> int:
    """The id of a line; 0 if it has none."""
    with suppress(ValueError, TypeError, KeyError):
        return int(json.loads(line)["id"])
    return 0


def main(folder: Path) -> None:
    os.chdir(folder)
    info: dict[str, Any] = json.loads((folder / MARK).read_text())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    allow_many()
    try:
        asyncio.run(Supervisor(folder, float(info["lease_s"])).run())
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)  # connections end with the process; there is nothing to say goodbye to


if __name__ == "__main__":
    main(Path(sys.argv[1]))
