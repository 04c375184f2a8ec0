"""Real node processes on loopback, and a client that talks to the toy of `toy.py` line by line."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 60.0


@dataclass
class Client:
    """A plain socket. `greeting` has been read."""

    socket: socket.socket
    rest: bytes = b""

    def tell(self, *lines: str) -> None:
        self.socket.sendall("".join(f"{line}\n" for line in lines).encode())

    def line(self) -> str:
        """The next line, or "" at the end of the connection."""
        while b"\n" not in self.rest:
            data = self.socket.recv(1 << 16)
            if not data:
                return ""
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode()

    def ask(self, line: str) -> str:
        self.tell(line)
        return self.line()


@dataclass
class Process:
    """A started host and its readiness line."""

    popen: subprocess.Popen[bytes]
    said: dict[str, object]
    data: Path
    log_path: Path
    clients: list[Client] = field(default_factory=list)

    @property
    def port(self) -> int:
        port = self.said["port"]
        assert isinstance(port, int)
        return port

    def client(self) -> Client:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        client = Client(connection)
        self.clients.append(client)
        assert client.line() == "toy greets you"
        return client

    def log(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log_path.read_text().splitlines()]

    def end(self, number: int = signal.SIGTERM) -> int:
        self.popen.send_signal(number)
        return self.popen.wait(PATIENCE_S)


StartHost = Callable[..., Process]


def command_line(
    system: str, config: Path, data: Path, log: Path, listen: str, options: Sequence[str] = ()
) -> list[str]:
    module = "tests.nodes.host.toy" if system == "toy" else "nodes.host"
    files = ["--config", str(config), "--data", str(data), "--log", str(log)]
    return [sys.executable, "-m", module, "--system", system, *files, "--listen", listen, *options]


def eventually(what: Callable[[], bool], within_s: float = PATIENCE_S) -> bool:
    """Poll until it holds."""
    deadline_s = time.monotonic() + within_s
    while not what():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.005)
    return True


def is_gone(pid: int) -> bool:
    """No such process, or only its exit code is left of it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False
