"""The files that a real host writes of the messages between nodes."""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from nodes.framed import GREETING, FramedCodec
from nodes.host.host import EXIT_BROKEN, Host
from nodes.host.log import NodeLog
from nodes.host.message_trace import MessageTrace
from nodes.kernel.effects import Effect, Mark, SetTimer
from nodes.kernel.events import Event, Instant, TimerFired
from tests.nodes.host.hosts import PATIENCE_S, Process, eventually

SYSTEM = "tests.nodes.kernel.traced_pings:pings"
PINGS = 200
LOG_BYTES_MAX = 6_000
"""More than a node's log for people, and its last words, come to."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def rows_of(folder: Path) -> list[list[object]]:
    return [json.loads(line) for file in sorted(folder.glob("*")) for line in file.read_text().splitlines()]


def test_two_processes_record_what_they_say_to_each_other(
    start_host: Callable[..., Process], tmp_path: Path
) -> None:
    """Broken, a run on real processes has no record, or one that a kill tears."""
    ports = {name: free_port() for name in ("a", "b")}

    def start(name: str, peer: str) -> Process:
        return start_host(
            f"--peer={peer}=127.0.0.1:{ports[peer]}",
            f"--trace={folders[name]}",
            name=name,
            config=json.dumps({"name": name, "peers": [peer]}),
            system=SYSTEM,
            listen=f"127.0.0.1:{ports[name]}",
        )

    folders = {name: tmp_path / f"trace-of-{name}" / "trace" for name in ports}

    def taken(name: str) -> list[tuple[object, ...]]:
        return [tuple(row[1:4]) for row in rows_of(folders[name]) if row[0] == "receive"]

    a, b = start("a", "b"), start("b", "a")
    assert a.said["ready"] and b.said["ready"]
    assert eventually(lambda: len(taken("a")) >= 6 and len(taken("b")) >= 6)
    b.end(signal.SIGKILL)
    assert start("b", "a").said["ready"]
    assert eventually(lambda: len(taken("b")) >= 9), "the second life takes the answers to its own pings"
    sent = {
        (node, life, row[1]): row[3]
        for node, folder in folders.items()
        for life, file in enumerate(sorted(folder.glob("*")), 1)
        for row in map(json.loads, file.read_text().splitlines())
        if row[0] == "send"
    }
    assert {file.name for file in folders["b"].glob("*")} == {"trace-000001.jsonl", "trace-000002.jsonl"}
    assert {*taken("a"), *taken("b")} <= sent.keys()
    rows = rows_of(folders["a"])
    pings = [
        place for place, row in enumerate(rows) if row[0] == "receive" and sent[tuple(row[1:4])] == "ping"
    ]
    assert [row[0] for row in rows].index("mark") < pings[0], "answers to its own pings may come earlier"


class Marking:
    """A node with steps that set a timer, leave a mark and send nothing."""

    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        return [SetTimer("far", 3_600_000_000_000), Mark(type(event).__name__)]

    def status(self) -> dict[str, object]:
        return {}


def test_the_rows_of_a_step_that_sends_nothing_are_written_at_once(tmp_path: Path) -> None:
    """Broken, a node that is killed while it waits for a timer loses what it has taken in: a cut began at no node."""

    async def live() -> list[object]:
        trace = MessageTrace(str(tmp_path / "trace"), "a", lambda message: None)
        node = Marking()
        log = NodeLog(str(tmp_path / "a.log"), "a", 0, node.status)
        host = Host(node, FramedCodec(), {}, str(tmp_path), "synced", log, trace=trace)
        host.start({})
        host.links.deliver(TimerFired("near"))
        for _ in range(3):
            await asyncio.sleep(0)
        rows = rows_of(tmp_path / "trace")
        await host.stop()
        return [row[:2] for row in rows]

    assert asyncio.run(live()) == [["life", "a"], ["mark", "Started"], ["mark", "TimerFired"]]


def test_a_trace_folder_that_cannot_be_made_is_one_line(
    start_host: Callable[..., Process], tmp_path: Path
) -> None:
    """Broken, a node runs without the record that its checker needs."""
    (tmp_path / "file").write_text("")
    options = (f"--trace={tmp_path / 'file' / 'trace'}",)
    config = json.dumps({"name": "a", "peers": []})
    process = start_host(*options, name="a", config=config, system=SYSTEM)
    assert process.said["ready"] is False
    assert str(process.said["error"]).startswith(
        f"the trace folder {tmp_path / 'file' / 'trace'} cannot be used"
    )


def test_a_node_whose_record_cannot_be_written_ends(
    start_host: Callable[..., Process], tmp_path: Path
) -> None:
    """Broken, messages go out that no record tells of, and a checker takes the record for the whole."""
    config = json.dumps({"name": "a", "peers": []})
    process = start_host(f"--trace={tmp_path / 'trace'}", name="a", config=config, system=SYSTEM)
    file = tmp_path / "trace" / "trace-000001.jsonl"
    with socket.create_connection(("127.0.0.1", process.port)) as client:
        client.sendall(b"".join(FramedCodec().encode(["ping", number, "about"]) for number in range(PINGS)))
        assert eventually(lambda: len(rows_of(tmp_path / "trace")) > PINGS)
        size = file.stat().st_size
        assert size > LOG_BYTES_MAX
        # Its other files are shorter.
        resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE, (size, size))
        client.settimeout(PATIENCE_S)
        client.sendall(FramedCodec().encode(["ping", PINGS, "about"]))
        decoder = FramedCodec().client_decoder()
        answers: list[object] = []
        with suppress(ConnectionResetError):
            while data := client.recv(1 << 16):
                answers += decoder.feed(data)
    assert process.popen.wait(PATIENCE_S) == EXIT_BROKEN
    (last,) = [line for line in process.log() if line["level"] == "error"]
    assert last["message"] == "the record of messages cannot be written"
    assert len(answers) == PINGS, "every answer whose row was written, and not the one without a row"
    assert file.stat().st_size == size


def test_a_node_that_starts_again_has_a_new_life_at_the_same_address(
    start_host: Callable[..., Process], tmp_path: Path
) -> None:
    """Broken, a node that its peers have given up is gone for good, or speaks on in its former life."""
    folder = tmp_path / "trace-of-a"
    config = json.dumps({"name": "a", "peers": []})
    process = start_host(f"--trace={folder}", name="a", config=config, system=SYSTEM)
    port = process.said["port"]
    assert isinstance(port, int)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(FramedCodec().encode(["over", 1]))
        while client.recv(100):
            pass
    assert eventually(lambda: len(list(folder.glob("*"))) == 2)
    assert process.popen.poll() is None

    def answers() -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(FramedCodec().encode(["status", 1]))
                return len(client.recv(1000)) > len(GREETING) or bool(client.recv(1000))
        except ConnectionError:
            return False

    assert eventually(answers)
    assert any(line["message"] == "starts again" for line in process.log())


def test_a_file_that_no_host_wrote_is_no_life(tmp_path: Path) -> None:
    """Broken, a copy of a record beside it keeps a node from starting."""
    for name in ("trace-000003.jsonl", "trace-old.jsonl"):
        (tmp_path / name).touch()
    MessageTrace(str(tmp_path), "a", lambda message: None)
    assert (tmp_path / "trace-000004.jsonl").exists()


def test_each_row_is_written_once(tmp_path: Path) -> None:
    """Broken, a checker takes a message that was sent once for several."""
    trace = MessageTrace(str(tmp_path), "a", lambda message: None)
    for kind in ("one", "two"):
        assert trace.tracer.closed([Mark(kind)]) == []
        assert trace.is_waiting
        trace.flush()
        trace.flush()
        assert not trace.is_waiting
    assert [row[:2] for row in rows_of(tmp_path)] == [["life", "a"], ["mark", "one"], ["mark", "two"]]
