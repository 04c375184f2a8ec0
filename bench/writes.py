"""Synchronous writes per second of a local three-node cluster, with the relay in every link and without it.

Both clusters are real processes on loopback, quorum 2; clients write as fast as answers come. `python -m bench.writes`
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.clusters import TIMEOUT_NS, direct
from bench.table import print_table
from harness.clients.reply import Replied, Reply
from harness.run.assemble import local, parts_of
from harness.systems.plans import planned
from nodes.iproto.messages import Answer, Call, Request

SECONDS = 3.0
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
    parts = parts_of(planned(name="bench", faults=("none",)))
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


async def without_relay(folder: Path) -> list[float]:
    async with direct(folder) as connections:
        return [
            await writes_per_s(lambda n, request: connections.call(n, "n1", request, TIMEOUT_NS), clients)
            for clients in CONNECTIONS
        ]


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
