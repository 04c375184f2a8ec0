"""One node of ours and one real Tarantool with the same spaces, users and functions, as processes on loopback.

Connectors and plain requests are tried on both: what the real one answers is what ours has to.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nodes.iproto.decoders import ClientDecoder
from nodes.iproto.frames import encode
from nodes.iproto.messages import Answer, Call, Refusal, Request
from nodes.qsync.access import password_hash
from nodes.qsync.configuration import Configuration, Identity, User
from nodes.qsync.definitions import FieldDefinition, IndexDefinition, SpaceDefinition
from nodes.qsync.keys import Part
from tests.reserved_ports import reserved

PATIENCE_S = 60.0
UUID = "00000000-0000-4000-8000-00000000000{}"

_UNSIGNED = (IndexDefinition(parts=(Part(0, "unsigned"),)),)
SPACES = (
    SpaceDefinition(id=512, name="plain"),
    SpaceDefinition(
        id=513,
        name="formed",
        format=(
            FieldDefinition("id", "unsigned"),
            FieldDefinition("name", "string"),
            FieldDefinition("rest", "any", is_nullable=True),
        ),
        indexes=_UNSIGNED,
    ),
    SpaceDefinition(id=514, name="near", is_local=True, indexes=_UNSIGNED),
    SpaceDefinition(id=515, name="brief", is_temporary=True, indexes=_UNSIGNED),
    SpaceDefinition(
        id=516,
        name="pairs",
        is_sync=True,
        indexes=(
            IndexDefinition(parts=(Part(0, "unsigned"), Part(1, "string"))),
            IndexDefinition(1, "other", (Part(2, "integer"),)),
        ),
    ),
)
USERS = (
    User(name="rex", hash=password_hash("secret")),
    User(name="bob", hash=password_hash("secret"), may=()),
)

SERVER = """
box.cfg{listen = '127.0.0.1:' .. arg[1], feedback_enabled = false, log = 'tarantool.log', wal_mode = 'write'}
local function make(id, name, options, ...)
    options.id = id
    local space = box.schema.space.create(name, options)
    for _, index in ipairs({...}) do space:create_index(unpack(index)) end
end
make(512, 'plain', {}, {'primary', {parts = {{1, 'scalar'}}}})
make(513, 'formed', {format = {{'id', 'unsigned'}, {'name', 'string'}, {'rest', 'any', is_nullable = true}}},
    {'primary', {parts = {{1, 'unsigned'}}}})
make(514, 'near', {is_local = true}, {'primary', {parts = {{1, 'unsigned'}}}})
make(515, 'brief', {temporary = true}, {'primary', {parts = {{1, 'unsigned'}}}})
make(516, 'pairs', {is_sync = true}, {'primary', {parts = {{1, 'unsigned'}, {2, 'string'}}}},
    {'other', {parts = {{3, 'integer'}}}})
box.schema.user.grant('guest', 'super')
box.schema.user.create('rex', {password = 'secret'})
box.schema.user.grant('rex', 'read,write,execute', 'universe')
box.schema.user.create('bob', {password = 'secret'})
print('ready')
io.stdout:flush()
"""


@dataclass
class Server:
    """A server that runs, by `name` "ours" or "tarantool"."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    links: list[Link] = field(default_factory=list)

    @property
    def is_ours(self) -> bool:
        return self.name == "ours"

    def link(self) -> Link:
        self.links.append(Link(socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)))
        return self.links[-1]

    def stop(self) -> None:
        for link in self.links:
            link.close()
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE_S)


class Link:
    """A plain connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._decoder = ClientDecoder()
        self._answers: list[Answer | Refusal] = []

    @property
    def salt(self) -> bytes:
        while self._decoder.greeting is None:
            self._feed()
        return self._decoder.greeting.salt

    def _feed(self) -> None:
        data = self._connection.recv(1 << 16)
        assert data, "the server hung up"
        for message in self._decoder.feed(data):
            assert isinstance(message, Answer | Refusal)
            self._answers.append(message)

    def ask(self, request: Request | bytes) -> Answer | Refusal:
        self._connection.sendall(request if isinstance(request, bytes) else encode(request))
        while not self._answers:
            self._feed()
        return self._answers.pop(0)

    def close(self) -> None:
        self._connection.close()


def start_ours(folder: Path) -> Server:
    """A cluster of one, which is its own quorum."""
    configuration = Configuration(
        name="n1",
        cluster_uuid=UUID.format(9),
        members=(Identity(id=1, name="n1", uuid=UUID.format(1)),),
        spaces=SPACES,
        quorum=1,
        synchro_timeout_ns=5_000_000_000,
        replication_timeout_ns=1_000_000_000,
        users=USERS,
    )
    (folder / "config.json").write_bytes(configuration.to_json())
    command = [
        sys.executable,
        "-m",
        "nodes.host",
        "--system",
        "qsync",
        "--config",
        str(folder / "config.json"),
    ]
    command += ["--data", str(folder / "data"), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    assert process.stdout is not None
    said = json.loads(process.stdout.readline())
    server = Server("ours", said["port"], process)
    link = server.link()
    assert isinstance(link.ask(Call(1, "box.ctl.promote", ())), Answer)
    link.close()
    return server


def start_tarantool(folder: Path) -> Server:
    (folder / "server.lua").write_text(SERVER)
    port = reserved(1)
    process = subprocess.Popen(
        ["tarantool", "server.lua", str(port)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said == b"ready\n", said + process.stdout.read()
    return Server("tarantool", port, process)


START: dict[str, Callable[[Path], Server]] = {"ours": start_ours, "tarantool": start_tarantool}


def eventually(what: Callable[[], bool]) -> bool:
    deadline_s = time.monotonic() + PATIENCE_S
    while not what():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.01)
    return True
