"""Our bytes and a real Tarantool (2.6 or later): it reads ours, we read its, on links and on disk.

Only this tells a codec that speaks Tarantool's language from one that agrees with itself.
"""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from nodes.iproto import xlog
from nodes.iproto.frames import ApplierDecoder, ClientDecoder, ServerDecoder, encode, greeting
from nodes.iproto.messages import (
    Ack,
    Answer,
    Call,
    Delete,
    Eval,
    Insert,
    Message,
    Ping,
    Refusal,
    Replace,
    Row,
    Rows,
    Select,
    Subscribe,
    Subscribed,
    Type,
    Unknown,
)
from tests import needs
from tests.reserved_ports import reserved

pytestmark = [pytest.mark.real, needs.tarantool]

PATIENCE_S = 60
SPACE, SYNC_SPACE = 512, 513
REPLICA = "11111111-2222-4333-8444-555555555555"

SERVER = f"""
box.cfg{{listen = '127.0.0.1:' .. arg[1], replication_synchro_quorum = 2, replication_synchro_timeout = 100,
    replication_timeout = 0.1, feedback_enabled = false, log = 'tarantool.log', checkpoint_count = 10}}
box.once('spaces', function()
    box.schema.user.grant('guest', 'super')
    box.schema.space.create('plain', {{id = {SPACE}}}):create_index('primary')
    box.schema.space.create('synchronous', {{id = {SYNC_SPACE}, is_sync = true}}):create_index('primary')
    box.space._cluster:insert{{2, '{REPLICA}'}}
end)
function fill(count, size)
    box.atomic(function()
        for i = 1, count do box.space.plain:replace{{1000 + i, string.rep('x', size), {{i, {{a = 1.5}}}}}} end
    end)
end
function rotate() box.snapshot() end
function cluster() return box.info.cluster.uuid, box.info.uuid, box.info.vclock end
function hang_up() os.exit(0) end
print('ready')
io.stdout:flush()
"""

CLIENT = """
local connection = require('net.box').connect('127.0.0.1:' .. arg[1], {wait_connected = 10})
local function try(...)
    local ok, result = pcall(...)
    return ok and result or {code = result.code, message = result.message}
end
print(require('json').encode{
    state = connection.state,
    ping = connection:ping(),
    echo = {connection:call('echo', {1, 'two', {3}})},
    refused = try(connection.call, connection, 'refuse', {}),
    unknown = try(connection.eval, connection, 'return 1', {}),
})
os.exit(0)
"""


@dataclass
class Link:
    """A connection to a real server, and the decoder for it."""

    connection: socket.socket
    decoder: ClientDecoder | ApplierDecoder

    def receive(self) -> list[Message]:
        """At least one message."""
        messages: list[Message] = []
        while not messages:
            data = self.connection.recv(65536)
            assert data, "the server closed the connection"
            messages = self.decoder.feed(data)
        return messages

    def ask(self, request: Message) -> Message:
        self.connection.sendall(encode(request))
        (answer,) = self.receive()
        return answer

    def call(self, name: str, *arguments: object) -> tuple[object, ...]:
        answer = self.ask(Call(1, name, arguments))
        assert isinstance(answer, Answer), answer
        return answer.data


@dataclass
class Server:
    folder: Path
    port: int

    def link(self, decoder: ClientDecoder | ApplierDecoder) -> Link:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        return Link(connection, decoder)


def started(folder: Path, port: int) -> subprocess.Popen[bytes]:
    script = folder / "server.lua"
    script.write_text(SERVER)
    process = subprocess.Popen(
        ["tarantool", str(script), str(port)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said == b"ready\n", said + process.stdout.read()
    return process


def ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.communicate(timeout=PATIENCE_S)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    port = reserved(1)
    process = started(tmp_path, port)
    yield Server(tmp_path, port)
    ended(process)


@pytest.fixture
def client(server: Server) -> Iterator[Link]:
    link = server.link(ClientDecoder())
    yield link
    link.connection.close()


def files(folder: Path, suffix: str) -> list[Path]:
    return sorted(folder.glob(f"*.{suffix}"))


def transactions(rows: tuple[Row, ...]) -> list[list[Row]]:
    found: list[list[Row]] = [[]]
    for row in rows:
        found[-1].append(row)
        if row.is_commit:
            found.append([])
    return found[:-1]


# --- links -----------------------------------------------------------------------------------------------------


def test_a_real_server_answers_our_requests(client: Link) -> None:
    """Our client could not drive a real cluster."""
    pong = client.ask(Ping(7))
    assert isinstance(pong, Answer)
    assert (pong.sync, pong.data) == (7, ())
    version = pong.schema_version
    assert client.ask(Replace(8, SPACE, (1, "é", None))) == Answer(8, ([1, "é", None],), version)
    assert client.ask(Insert(9, SPACE, (2, b"\xff", 1.5))) == Answer(9, ([2, b"\xff", 1.5],), version)
    assert client.ask(Select(10, SPACE, (1,))) == Answer(10, ([1, "é", None],), version)
    assert client.ask(Select(11, SPACE, (), iterator=2, offset=1, limit=1)) == Answer(
        11, ([2, b"\xff", 1.5],), version
    )
    assert client.ask(Delete(12, SPACE, (1,))) == Answer(12, ([1, "é", None],), version)
    assert client.ask(Call(13, "math.abs", (-5,))) == Answer(13, (5,), version)


def test_a_real_server_refuses_as_we_say_it_does(client: Link) -> None:
    """The codes and texts that our nodes give would not be Tarantool's."""
    duplicate = Insert(1, SPACE, (1,))
    client.ask(duplicate)
    answers = [
        client.ask(duplicate),
        client.ask(Select(2, 999, ())),
        client.ask(Call(3, "nothing", ())),
        client.ask(Insert(4, SPACE, ("text",))),
    ]
    assert [answer.code for answer in answers if isinstance(answer, Refusal)] == [3, 36, 33, 23]
    assert isinstance(answers[2], Refusal)
    assert answers[2].message == "Procedure 'nothing' is not defined"
    client.connection.sendall(bytes.fromhex("06 82 00 49 01 05 80"))
    assert client.receive() == [
        Refusal(5, 48, "Unknown request type 73", client.ask(Ping(6)).schema_version)  # type: ignore[union-attr]
    ]


def test_a_real_master_streams_to_us_and_obeys_our_acks(server: Server, client: Link) -> None:
    """A reference node could not be a replica of a real master: its ACK would not count, or CONFIRM be misread."""
    cluster_uuid, instance_uuid, vclock = client.call("cluster")
    assert isinstance(cluster_uuid, str)
    assert isinstance(vclock, dict)
    replica = server.link(ApplierDecoder())
    subscribe = Subscribe(0, cluster_uuid, REPLICA, 2, vclock, 0x020600)
    replica.connection.sendall(encode(subscribe))
    arrived = replica.receive()
    assert arrived[0] == Subscribed(0, cluster_uuid, vclock, replica_id=1)
    assert replica.decoder.greeting is not None
    assert replica.decoder.greeting.instance_uuid == instance_uuid

    client.connection.sendall(encode(Replace(1, SYNC_SPACE, (1, "pending"))))
    lsn = vclock[1] + 1
    write, confirm = streamed_rows(replica, lsn)
    assert (write.type, write.replica_id, write.lsn) == (Type.REPLACE, 1, lsn)
    assert write.body == {0x10: SYNC_SPACE, 0x21: (1, "pending")}
    assert (confirm.type, confirm.lsn, confirm.body) == (Type.CONFIRM, lsn + 1, {0x02: 1, 0x03: lsn})
    (answer,) = client.receive()
    assert isinstance(answer, Answer)
    assert answer.data == ([1, "pending"],)
    replica.connection.close()


def streamed_rows(replica: Link, lsn: int) -> tuple[Row, Row]:
    """The first two rows that the master sends, the first acknowledged when it comes; heartbeats in between."""
    rows: list[Row] = []
    while len(rows) < 2:
        for message in replica.receive():
            if isinstance(message, Rows):
                rows += message.rows
                replica.connection.sendall(encode(Ack({1: lsn}, 0)))
    return rows[0], rows[1]


def test_a_real_client_understands_our_answers(tmp_path: Path) -> None:
    """Unmodified connectors could not talk to a reference node."""
    script = tmp_path / "client.lua"
    script.write_text(CLIENT)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        thread = threading.Thread(target=serve_one, args=(listener,), daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        command = ["tarantool", str(script), str(port)]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=PATIENCE_S, check=True)
        thread.join(PATIENCE_S)
    assert json.loads(said.stdout) == {
        "state": "active",
        "ping": True,
        "echo": [1, "two", [3]],
        "refused": {"code": 7, "message": "Can't modify data on a read-only instance"},
        "unknown": {"code": 48, "message": "Unknown request type 8"},
    }


def serve_one(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    connection.sendall(greeting("2.6.0", REPLICA, bytes(32)))
    decoder = ServerDecoder()
    while data := connection.recv(65536):
        for message in decoder.feed(data):
            connection.sendall(encode(answer_to(message)))
    connection.close()


def answer_to(message: Message) -> Message:
    match message:
        case Call(sync, "echo", arguments):
            return Answer(sync, arguments)
        case Call(sync):
            return Refusal(sync, 7, "Can't modify data on a read-only instance")
        case Select(sync) | Ping(sync):
            return Answer(sync)
        case Eval(sync):
            return Refusal(sync, 48, "Unknown request type 8")
        case Unknown(sync, code, text):
            return Refusal(sync, code, text)
    raise AssertionError(message)


# --- disk ------------------------------------------------------------------------------------------------------


def test_we_write_the_very_bytes_that_tarantool_writes(server: Server, client: Link) -> None:
    """Our files would be almost like Tarantool's: read by us and, on a bad day, not by it."""
    client.call("rotate")
    client.ask(Replace(1, SPACE, (1, "one", [None, True, {"a": -1.5}])))
    client.call("fill", 3, 10)
    client.ask(Delete(2, SPACE, (1,)))
    client.call("rotate")
    written = files(server.folder, "xlog")[1].read_bytes()
    read = xlog.decode(written)
    assert read.damage is None
    assert read.finished
    assert read.meta is not None
    meta = read.meta
    assert [len(rows) for rows in transactions(read.rows)] == [1, 3, 1]
    header = xlog.encode_header(
        "XLOG", meta.instance_uuid, meta.vclock, meta.previous_vclock, meta.server_version
    )
    blocks = b"".join(xlog.encode_block(rows) for rows in transactions(read.rows))
    assert header + blocks + xlog.encode_eof() == written


def test_we_read_packed_blocks_and_snapshots(server: Server, client: Link) -> None:
    """A node's log of large transactions, or its snapshot, could not be audited."""
    client.call("rotate")
    client.call("fill", 200, 100)
    client.call("rotate")
    log = xlog.decode(files(server.folder, "xlog")[1].read_bytes())
    (transaction,) = transactions(log.rows)
    assert (log.damage, len(transaction)) == (None, 200)
    assert transaction[199].body[0x21] == (1200, "x" * 100, [200, {"a": 1.5}])
    snapshot = files(server.folder, "snap")[-1]
    snap = xlog.decode(snapshot.read_bytes())
    assert (snap.damage, snap.finished) == (None, True)
    assert sum(row.body.get(0x10) == SPACE for row in snap.rows) == 200
    assert snap.meta is not None
    assert xlog.file_name(snap.meta.vclock, "SNAP") == snapshot.name
    assert snap.meta.vclock == {1: transaction[-1].lsn}


def test_tarantool_recovers_from_what_we_write(tmp_path: Path) -> None:
    """A reference node's log would not be one for Tarantool."""
    port = reserved(1)
    process = started(tmp_path, port)
    asked(Server(tmp_path, port), Call(1, "fill", (5, 10)))
    ended(process)
    (path,) = (path for path in files(tmp_path, "xlog") if xlog.decode(path.read_bytes()).rows)
    ours(path)
    process = started(tmp_path, port)
    found = asked(Server(tmp_path, port), Select(1, SPACE, ()))
    ended(process)
    assert isinstance(found, Answer)
    assert [fields[0] for fields in found.data if isinstance(fields, list)] == [1, *range(1001, 1006), 2000]


def asked(server: Server, request: Message) -> Message:
    link = server.link(ClientDecoder())
    with link.connection:
        return link.ask(request)


def ours(path: Path) -> None:
    """Write a log anew: all its rows in our bytes, and two transactions more, a small one and a packed one."""
    read = xlog.decode(path.read_bytes())
    assert read.meta is not None
    lsn, instance_uuid = read.rows[-1].lsn, read.meta.instance_uuid
    more = [
        [Row(Type.REPLACE, 1, lsn + 1, 1.5, lsn + 1, body={0x10: SPACE, 0x21: (1, "ours")})],
        [
            Row(Type.NOP, 1, lsn + 2, 1.5, lsn + 2, is_commit=False),
            Row(Type.REPLACE, 1, lsn + 3, 1.5, lsn + 2, body={0x10: SPACE, 0x21: (2000, "y" * 3000)}),
        ],
    ]
    blocks = [xlog.encode_block(rows) for rows in transactions(read.rows) + more]
    path.write_bytes(xlog.encode_header("XLOG", instance_uuid, read.meta.vclock) + b"".join(blocks))


@needs.tarantoolctl
def test_tarantoolctl_prints_what_we_write(tmp_path: Path) -> None:
    """Whoever looks into a reference node's log with Tarantool's tool would see nothing, or something else."""
    rows = [
        Row(Type.REPLACE, 1, 8, 1.5, 8, body={0x10: SPACE, 0x21: ("key", 7)}),
        Row(Type.REPLACE, 1, 9, 1.5, 9, body={0x10: SPACE, 0x21: ("z" * 3000,)}),
        Row(Type.CONFIRM, 1, 10, 1.5, 10, body={0x02: 1, 0x03: 9}),
    ]
    blocks = b"".join(xlog.encode_block([row]) for row in rows)
    path = tmp_path / xlog.file_name({1: 7})
    path.write_bytes(xlog.encode_header("XLOG", REPLICA, {1: 7}) + blocks + xlog.encode_eof())
    command = ["tarantoolctl", "cat", str(path), "--format=json"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=PATIENCE_S, check=True)
    printed = [json.loads(line) for line in said.stdout.splitlines()]
    assert [line["HEADER"]["lsn"] for line in printed] == [8, 9, 10]
    assert [line["HEADER"]["type"] for line in printed[:2]] == ["REPLACE", "REPLACE"]
    assert printed[2]["HEADER"]["type"] in (40, "CONFIRM")  # 2.6 has no name for it
    assert [line["BODY"]["tuple"] for line in printed[:2]] == [["key", 7], ["z" * 3000]]
