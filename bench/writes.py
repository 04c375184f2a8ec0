"""Synchronous writes per second of a local three-node cluster, with the relay in every link and without it.

Both clusters are real processes on loopback, quorum 2; clients write as fast as answers come. `python -m bench.writes`
"""

from __future__ import annotations

import asyncio
import socket
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.table import print_table
from harness.assemble import local, parts_of
from harness.cluster.connections import Connections
from harness.cluster.processes import NodeProcess, Orders
from harness.plan import Plan
from harness.protocols import Replied, Reply
from nodes.iproto.messages import Answer, Call, Request

SECONDS = 3.0
TIMEOUT_NS = 5_000_000_000
CONNECTIONS = (1, 16, 64)

Caller = Callable[[int, Request], Awaitable[Reply]]


async def writes_per_s(call: Caller, clients: int) -> float:
    """Acknowledged writes per second of so many clients, each waiting for its answer."""
    done = 0
    until_s = time.perf_counter() + SECONDS

    async def client(number: int) -> None:
        nonlocal done
        count = 0
        while time.perf_counter() < until_s:
            count += 1
            statements = [["replace", "register", [f"k{number}", count]]]
            reply = await call(number, Call(count, "qsync.transaction", (statements, {})))
            assert isinstance(reply, Replied), reply
            assert isinstance(reply.response, Answer), reply
            done += 1

    await asyncio.gather(*(client(number) for number in range(clients)))
    return done / SECONDS


async def with_relay(folder: Path) -> list[float]:
    parts = parts_of(Plan(name="bench", faults=("none",)))
    folder.mkdir()
    cluster = local(parts, folder)
    try:
        await cluster.start()
        await parts.system.set_up(parts.plan, cluster)
        return [
            await writes_per_s(lambda n, request: cluster.call(n, "n1", request, TIMEOUT_NS), clients)
            for clients in CONNECTIONS
        ]
    finally:
        await cluster.stop()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


async def without_relay(folder: Path) -> list[float]:
    plan = Plan(name="bench", faults=("none",))
    parts = parts_of(plan)
    configurations = parts.system.configurations(plan, parts.workload.spaces)
    ports = dict(zip(configurations, _free_ports(len(configurations)), strict=True))
    processes: list[NodeProcess] = []
    connections = Connections(lambda node: ports[node])
    try:
        for name, data in configurations.items():
            (folder / name).mkdir(parents=True)
            (folder / name / "config.json").write_bytes(data)
            peers = [f"--peer={other}=127.0.0.1:{port}" for other, port in ports.items() if other != name]
            command = (
                *(sys.executable, "-m", "nodes.host", "--system", "qsync", "--stdin-lifeline"),
                *("--config", str(folder / name / "config.json"), "--data", str(folder / name)),
                *("--listen", f"127.0.0.1:{ports[name]}", *peers),
            )
            orders = Orders(node=name, command=command, output=folder / name / "output.txt")
            processes.append(await NodeProcess.spawn(orders))
        for process in processes:
            await process.ready()
        await connections.call(-1, "n1", Call(1, "box.ctl.promote", ()), TIMEOUT_NS)
        await asyncio.sleep(1.0)  # the replicas find the owner
        return [
            await writes_per_s(lambda n, request: connections.call(n, "n1", request, TIMEOUT_NS), clients)
            for clients in CONNECTIONS
        ]
    finally:
        connections.close()
        for process in processes:
            await process.kill()


async def measure() -> None:
    with tempfile.TemporaryDirectory(prefix="qsync-bench-") as folder:
        direct = await without_relay(Path(folder) / "direct")
        relayed = await with_relay(Path(folder) / "relayed")
    rows = [
        [str(clients), f"{a:,.0f}", f"{b:,.0f}", f"{b / a:.2f}"]
        for clients, a, b in zip(CONNECTIONS, direct, relayed, strict=True)
    ]
    print_table(["clients", "direct, writes/s", "through the relay, writes/s", "ratio"], rows)


if __name__ == "__main__":
    asyncio.run(measure())
