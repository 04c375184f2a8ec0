"""The two-phase store in real processes: transactions, a cut, a kill, and the record of its messages."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from nodes.framed import GREETING, FramedCodec
from nodes.iproto.packing import pack
from nodes.twophase.configuration import Configuration
from tests.nodes.host.hosts import Process, eventually
from tests.nodes.twophase.cut_oracle import judge, logs_of
from tests.reserved_ports import HOST, reserved

SERVERS, CLIENT = ("n1", "n2", "n3"), "c1"
NODES = (*SERVERS, CLIENT)


class Talk:
    """One connection of a client of the harness."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._decoder = FramedCodec().client_decoder()
        self._number = 0
        assert connection.recv(len(GREETING), socket.MSG_WAITALL) == GREETING
        self._decoder.feed(GREETING)

    def ask(self, word: str, *arguments: object) -> Any:
        self._number += 1
        self._connection.sendall(FramedCodec().encode([word, self._number, *arguments]))
        while not (messages := self._decoder.feed(self._connection.recv(1 << 16))):
            pass
        (answer,) = messages
        assert isinstance(answer, list)
        assert answer[:2] == ["answer", self._number]
        return answer[2]


@contextmanager
def talk(port: int) -> Iterator[Talk]:
    with socket.create_connection((HOST, port), timeout=60) as connection:
        yield Talk(connection)


def deep(levels: int) -> bytes:
    """Lists in each other, packed."""
    return b"\x91" * levels + b"\xc0"


@pytest.mark.parametrize("levels", [pytest.param(101, marks=pytest.mark.long), 1_015])
def test_a_deep_request_ends_no_server(start_host: Callable[..., Process], levels: int) -> None:
    """If it failed, a client that sends lists in lists would end every server that it talks to."""
    configuration = Configuration(name="n1", role="server", baseline=("n1",), backups=0)
    port = reserved(1)
    start_host(name="n1", config=configuration.to_json().decode(), system="twophase", listen=f"{HOST}:{port}")
    step = b"\x94" + b"".join(map(pack, ("write", "r", 1)))
    requests = [
        b"\x94" + pack("txn") + pack(1) + b"\x91" + step + deep(levels - 2) + b"\x80",
        b"\x94"
        + pack("txn")
        + pack(1)
        + b"\x91"
        + step
        + b"\x01\x81"
        + pack("suspend_ms")
        + deep(levels - 2),
        b"\x93" + pack("cut") + pack(1) + deep(levels - 1),
        deep(levels),
    ]

    def is_member() -> bool:
        with talk(port) as client:
            return bool(client.ask("status")["ready"])

    assert eventually(is_member)
    for request in requests:
        with socket.create_connection((HOST, port), timeout=60) as connection:
            assert connection.recv(len(GREETING), socket.MSG_WAITALL) == GREETING
            connection.sendall(len(request).to_bytes(4) + request)
            assert b"illegal" in connection.recv(1 << 16) or request is requests[-1]
        assert is_member()


@pytest.mark.long
def test_a_real_cluster(start_host: Callable[..., Process], tmp_path: Path) -> None:
    """If it failed, the store would run in the simulator only."""
    first = reserved(len(NODES))
    ports = {node: first + place for place, node in enumerate(NODES)}

    def start(node: str) -> Process:
        configuration = Configuration(
            name=node, role="client" if node == CLIENT else "server", baseline=SERVERS, clients=(CLIENT,)
        )
        peers = [f"--peer={peer}={HOST}:{ports[peer]}" for peer in NODES if peer != node]
        return start_host(
            *peers,
            f"--trace={tmp_path}/trace-{node}",
            name=node,
            config=configuration.to_json().decode(),
            system="twophase",
            listen=f"{HOST}:{ports[node]}",
        )

    def is_ready(node: str) -> bool:
        with talk(ports[node]) as client:
            status = client.ask("status")
        return bool(status["ready"] and not status["out_of_sync"] and len(status["members"]) == len(NODES))

    def trace_of(node: str) -> Path:
        return tmp_path / f"trace-{node}" / "trace-000001.jsonl"

    processes = {node: start(node) for node in NODES}
    assert eventually(lambda: all(map(is_ready, NODES)))
    with talk(ports[CLIENT]) as client, talk(ports["n2"]) as server:
        for key in range(8):
            told = client.ask("txn", [["add", "r", key, 1, None], ["append", "l", key + 1, key]], {})
            assert told["type"] == "ok", told
        assert server.ask("cut", "a") == {"type": "ok", "cut": "a"}
        for key in range(8):
            assert server.ask("txn", [["add", "r", key, 1, None]], {})["results"] == [2]
        assert eventually(lambda: server.ask("cuts")[0]["state"] == "ok")
    traces = {node: [json.loads(line) for line in trace_of(node).read_text().splitlines()] for node in NODES}
    files = {
        node: {file.name: file.read_bytes() for file in processes[node].data.iterdir() if file.is_file()}
        for node in SERVERS
    }
    found = judge(logs_of(files), ["a"], traces)
    assert not found, found
    assert sum(row[0] == "receive" for rows in traces.values() for row in rows) > 20

    processes["n3"].end(signal.SIGKILL)
    processes["n3"] = start("n3")
    assert eventually(lambda: is_ready("n3"))
    with talk(ports["n3"]) as client:
        assert client.ask("txn", [["read", "r", key] for key in range(8)], {})["results"] == [2] * 8
