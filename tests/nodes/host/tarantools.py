"""A real Tarantool 2.6 beside our nodes, and a way to cut it off: processes and sockets on loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nodes.iproto.decoders import ClientDecoder
from nodes.iproto.frames import encode
from nodes.iproto.messages import Answer, Call, Insert, Message, Refusal, Replace, Select
from tests.nodes.host.hosts import PATIENCE_S

CLUSTER = "00000000-0000-4000-8000-000000000009"
UUID = "00000000-0000-4000-8000-00000000000{}"
REGISTER, NOTES = 512, 513

SCRIPT = (
    """
local port, peers, read_only, uuid, quorum, timeout = unpack(arg)
local replication = {}
for peer in string.gmatch(peers, '[^,]+') do table.insert(replication, peer) end
box.cfg{listen = '127.0.0.1:' .. port, replication = replication, read_only = read_only == 'true',
    instance_uuid = uuid, replicaset_uuid = '"""
    + CLUSTER
    + """', replication_synchro_quorum = tonumber(quorum),
    replication_synchro_timeout = tonumber(timeout), replication_timeout = 0.1, replication_connect_timeout = 3,
    replication_connect_quorum = 0, feedback_enabled = false, log = 'tarantool.log', checkpoint_count = 10}
if #replication == 0 then
    box.once('spaces', function()
        box.schema.user.grant('guest', 'super')
        box.schema.space.create('register', {id = 512, is_sync = true}):create_index(
            'primary', {parts = {{1, 'scalar'}}})
        box.schema.space.create('notes', {id = 513}):create_index('primary', {parts = {{1, 'scalar'}}})
    end)
end
function rotate() box.snapshot() end
function set_quorum(n) box.cfg{replication_synchro_quorum = n} end
function followed()
    local found = {}
    for id, peer in pairs(box.info.replication) do
        if peer.upstream then found[id] = {peer.upstream.status, tostring(peer.upstream.message)} end
    end
    return found
end
function me() return box.info.id, box.info.vclock, box.info.status, box.info.ro end
print('ready')
io.stdout:flush()
"""
)


def ask(port: int, request: Message, patience_s: float = PATIENCE_S) -> Message:
    """One request on a connection of its own; OSError if nobody answers."""
    decoder = ClientDecoder()
    with socket.create_connection(("127.0.0.1", port), timeout=patience_s) as connection:
        connection.sendall(encode(request))
        while True:
            data = connection.recv(1 << 16)
            if not data:
                raise ConnectionError("closed without an answer")
            for message in decoder.feed(data):
                return message


def put(
    port: int, key: object, value: object, space: int = REGISTER, patience_s: float = PATIENCE_S
) -> Message:
    return ask(port, Replace(1, space, (key, value)), patience_s)


def add(port: int, key: object, value: object) -> Message:
    return ask(port, Insert(1, REGISTER, (key, value)))


def rows(port: int, space: int = REGISTER) -> list[list[object]] | None:
    """All tuples, or None while nobody can say."""
    try:
        answer = ask(port, Select(1, space, ()), 2.0)
    except OSError:
        return None
    if not isinstance(answer, Answer):
        return None
    return [list(found) for found in answer.data if isinstance(found, list | tuple)]


def call(port: int, name: str, *arguments: object) -> tuple[object, ...]:
    answer = ask(port, Call(1, name, arguments))
    assert isinstance(answer, Answer), answer
    return answer.data


def is_refused(answer: Message, code: int) -> bool:
    return isinstance(answer, Refusal) and answer.code == code


@dataclass
class Tarantool:
    """One real node. Its files stay when it is killed."""

    folder: Path
    port: int
    uuid: str
    read_only: bool = True
    quorum: int = 2
    timeout_s: float = 100
    process: subprocess.Popen[bytes] | None = None

    def start(self, peers: Mapping[str, int]) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "node.lua").write_text(SCRIPT)
        uris = ",".join(f"127.0.0.1:{port}" for port in peers.values())
        options = [str(self.port), uris, str(self.read_only).lower(), self.uuid, str(self.quorum)]
        self.process = subprocess.Popen(
            ["tarantool", "node.lua", *options, str(self.timeout_s)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said == b"ready\n", said + self.process.stdout.read() + self.log().encode()

    def log(self) -> str:
        path = self.folder / "tarantool.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def said(self) -> str:
        """What it printed since its start; waits for its end."""
        assert self.process is not None and self.process.stdout is not None
        return self.process.stdout.read().decode(errors="replace")

    def end(self, number: int = signal.SIGKILL) -> None:
        if self.process is None:
            return
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, number)
        self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None


@dataclass
class Line:
    """A port that leads to another one, and can be cut: then nothing passes, and nobody is told."""

    target: int
    port: int = 0
    is_cut: bool = False
    _sockets: list[socket.socket] = field(default_factory=list)
    _is_over: bool = False

    def open(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._listener.settimeout(0.05)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self.is_cut = True

    def heal(self) -> None:
        """What was withheld is lost with its connections, as after a long partition."""
        for held in self._sockets:
            with suppress(OSError):
                held.close()
        self._sockets.clear()
        self.is_cut = False

    def close(self) -> None:
        self._is_over = True
        self.heal()

    def _accept(self) -> None:
        with self._listener:
            while not self._is_over:
                try:
                    near, _ = self._listener.accept()
                except OSError:
                    continue
                threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        self._sockets.append(near)
        while self.is_cut and not self._is_over:
            time.sleep(0.01)
        try:
            far = socket.create_connection(("127.0.0.1", self.target), timeout=1)
        except OSError:
            near.close()
            return
        self._sockets.append(far)
        if self._is_over:  # closed meanwhile: the next test would be told of a socket that nothing closes
            self.heal()
            return
        for one, other in ((near, far), (far, near)):
            threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            one.settimeout(None)
            while data := one.recv(1 << 16):
                if self.is_cut:
                    return
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
