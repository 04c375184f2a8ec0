"""Synchronous writes per second of our three-node cluster beside real Tarantool's, in one run.

Both are three processes on loopback with a fixed owner and quorum 2, driven by the same client with the same REPLACE
requests, without the relay, by turns. Neither syncs less than it does by default: ours waits for fsync (`wal_mode`
fsync), and Tarantool is measured with its default (`write`) and with `fsync`. Needs `tarantool` on PATH.
`python -m bench.beside_tarantool`
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.clusters import TIMEOUT_NS, direct, free_ports
from bench.table import print_table
from harness.cluster.connections import Connections
from harness.protocols import Lost, Replied
from nodes.iproto.messages import Answer, Replace, Select

SECONDS = 3.0
ROUNDS = 3
CONNECTIONS = (1, 64)
SPACE = 512
START_S = 30.0
STALL_NS = 1_000_000_000
MEMBERS = 320
"""The system space `_cluster`."""

SERVER = """
local port, master, mode = arg[1], arg[2], arg[3]
local is_master = port == master
box.cfg{
    listen = '127.0.0.1:' .. port, replication = not is_master and '127.0.0.1:' .. master or nil,
    read_only = not is_master, wal_mode = mode,
    replication_synchro_quorum = 2, replication_synchro_timeout = 60, feedback_enabled = false, log = 'server.log',
}
if is_master then
    box.once('set-up', function()
        box.schema.user.grant('guest', 'super')
        box.schema.space.create('register', {id = 512, is_sync = true})
            :create_index('primary', {parts = {1, 'string'}})
    end)
end
"""


@dataclass
class Measured:
    """Of the best round; `stalls` of all: writes without an answer in a second, after which the client goes on."""

    rate: float = 0.0
    stalls: int = 0


async def measure_round(connections: Connections, clients: int, measured: Measured) -> None:
    """Acknowledged writes per second of so many connections, each waiting for its answer."""
    done = 0
    until_s = time.perf_counter() + SECONDS

    async def client(number: int) -> None:
        nonlocal done
        count = 0
        while time.perf_counter() < until_s:
            count += 1
            request = Replace(count, SPACE, (f"k{number}", count))
            match await connections.call(number, "n1", request, STALL_NS):
                case Replied(Answer()):
                    done += 1
                case Lost():
                    measured.stalls += 1
                case refused:
                    raise AssertionError(refused)

    await asyncio.gather(*(client(number) for number in range(clients)))
    measured.rate = max(measured.rate, done / SECONDS)


@asynccontextmanager
async def tarantool(folder: Path, wal_mode: str) -> AsyncIterator[Connections]:
    ports = free_ports(3)
    servers: list[subprocess.Popen[bytes]] = []
    connections = Connections(lambda node: ports[0])
    try:
        for number, port in enumerate(ports):
            home = folder / f"t{number}"
            home.mkdir(parents=True)
            (home / "server.lua").write_text(SERVER)
            command = ["tarantool", "server.lua", str(port), str(ports[0]), wal_mode]
            servers.append(
                subprocess.Popen(command, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            if number == 0:
                await _until(connections, SPACE, 0)
        await _until(connections, MEMBERS, 3)
        await asyncio.sleep(2.0)  # a JOIN waits for the queue: nothing may stand in it yet
        yield connections
    finally:
        connections.close()
        for server in servers:
            server.kill()
            server.wait()


async def _until(connections: Connections, space: int, rows: int) -> None:
    """Wait for the space to be there, with so many rows at least."""
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s:
        reply = await connections.call(0, "n1", Select(1, space, ()), TIMEOUT_NS)
        if (
            isinstance(reply, Replied)
            and isinstance(reply.response, Answer)
            and len(reply.response.data) >= rows
        ):
            return
        await asyncio.sleep(0.1)
    raise TimeoutError("Tarantool did not start")


async def measure() -> None:
    """The best of some rounds by turns: a busy machine only takes away."""
    best: defaultdict[tuple[str, int], Measured] = defaultdict(Measured)
    with tempfile.TemporaryDirectory(prefix="qsync-bench-") as folder:
        async with (
            direct(Path(folder) / "ours") as here,
            tarantool(Path(folder) / "write", "write") as default,
            tarantool(Path(folder) / "fsync", "fsync") as synced,
        ):
            systems = {
                "ours": here,
                "Tarantool, wal_mode write": default,
                "Tarantool, wal_mode fsync": synced,
            }
            for _ in range(ROUNDS):
                for clients in CONNECTIONS:
                    for name, connections in systems.items():
                        await measure_round(connections, clients, best[name, clients])
    rows = [
        [
            str(clients),
            name,
            f"{best[name, clients].rate:,.0f}",
            _ratio(best["ours", clients].rate, best[name, clients].rate),
            str(best[name, clients].stalls),
        ]
        for clients in CONNECTIONS
        for name in systems
    ]
    print_table(["connections", "system", "writes/s", "ours : this", "stalls"], rows)


def _ratio(ours: float, other: float) -> str:
    return f"{ours / other:.2f}" if other else "–"


def main() -> int:
    if shutil.which("tarantool") is None:
        print("needs `tarantool` on PATH; on Debian: apt-get install tarantool", file=sys.stderr)
        return 64
    asyncio.run(measure())
    return 0


if __name__ == "__main__":
    sys.exit(main())
