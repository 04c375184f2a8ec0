"""Clusters of real processes on loopback for benchmarks, without the relay."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from harness.cluster.connections import Connections
from harness.cluster.local.processes import NodeProcess, StartOptions
from harness.cluster.place import LOOPBACK
from harness.run.assemble import parts_of
from harness.systems.iproto_wire import IPROTO
from harness.systems.plans import planned
from nodes.iproto.messages import Call

TIMEOUT_NS = 5_000_000_000
STOP_PATIENCE_S = 3.0


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@asynccontextmanager
async def direct(folder: Path, profile_of_owner: Path | None = None) -> AsyncIterator[Connections]:
    """Three nodes of ours, n1 the owner, and connections straight to them; its profile is written when it ends."""
    plan = planned(name="bench", faults=("none",), configuration="C")
    parts = parts_of(plan)
    configurations = parts.system.configurations(plan, parts.workload.spaces)
    ports = dict(zip(configurations, free_ports(len(configurations)), strict=True))
    processes: list[NodeProcess] = []
    connections = Connections(IPROTO, lambda node: ports[node], lambda _: LOOPBACK)
    profiled = () if profile_of_owner is None else ("-m", "cProfile", "-o", str(profile_of_owner))
    try:
        for name, data in configurations.items():
            (folder / name).mkdir(parents=True)
            (folder / name / "config.json").write_bytes(data)
            peers = [f"--peer={other}=127.0.0.1:{port}" for other, port in ports.items() if other != name]
            command = (
                *(sys.executable, *(profiled if name == "n1" else ()), "-m", "nodes.host"),
                *("--system", "qsync", "--stdin-lifeline"),
                *("--config", str(folder / name / "config.json"), "--data", str(folder / name)),
                *("--listen", f"127.0.0.1:{ports[name]}", *peers),
            )
            options = StartOptions(node=name, command=command, output=folder / name / "output.txt")
            processes.append(await NodeProcess.spawn(options))
        for process in processes:
            await process.ready()
        await connections.call(-1, "n1", Call(1, "box.ctl.promote", ()), TIMEOUT_NS)
        await asyncio.sleep(1.0)  # the replicas find the owner
        yield connections
    finally:
        connections.close()
        for process in processes:
            await process.stop(STOP_PATIENCE_S)
