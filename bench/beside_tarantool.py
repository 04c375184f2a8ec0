"""Synchronous writes per second of our three nodes beside those of real Tarantool 2.6, in one run.

    .venv/bin/python -m bench.beside_tarantool [--seconds 3] [--rounds 2] [--profile]

Three processes each on loopback, quorum 2, everybody follows everybody; clients send REPLACE to the first node, each as
soon as the last is answered, from one and the same client program. Each measurement has a new cluster of its own, in
turns; the better round counts. Both sync to disk before they acknowledge (`wal_mode=fsync`), and Tarantool is also
measured as it is shipped (`wal_mode=write`). `--profile` prints where our owner spends its time with 64 connections.

2.6.0 loses sight of an acknowledgement every few or some hundred writes: such a write waits until the quorum times out
(216), and takes those behind it along. That time-out is set to a tenth of a second here. So there are two figures: over
all the time, and connections divided by the median time of an acknowledged write, which is what 2.6.0 does between such
moments. An owner that ends itself (2.6.0 panics now and then when writes are rolled back) ends its measurement, which
is begun anew; how often that was is in the table.
"""

from __future__ import annotations

import argparse
import asyncio
import pstats
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.clusters import TIMEOUT_NS, direct, free_ports
from bench.table import print_table
from harness.clients.reply import Replied
from harness.cluster.connections import Connections
from harness.cluster.place import LOOPBACK
from harness.systems.iproto_wire import IPROTO
from nodes.iproto.messages import Answer, Replace

SPACE_ID = 512
CONNECTIONS = (1, 64)
LUA = Path(__file__).with_suffix(".lua")
PROFILED = 5
START_TIMEOUT_S = 30
ATTEMPTS = 5
NOT_AT_WORK = (
    "<method 'poll' of 'select.epoll' objects>",
    "<built-in method builtins.compile>",
    "<built-in method builtins.exec>",
    "<built-in method marshal.loads>",
)
"""Waiting for something to do, and starting."""
HEAD = (
    *("connections", "cluster", "writes/s", "between stalls", "refused", "crashed"),
    *("ours to it", "ours to it, between stalls"),
)


@dataclass(frozen=True, slots=True)
class Rates:
    """Acknowledged writes per second over all the time, and as the median of their times has it."""

    overall: float
    between_stalls: float
    refused: int


@asynccontextmanager
async def tarantool(folder: Path, wal_mode: str) -> AsyncIterator[Connections]:
    """Three real nodes that follow each other, and connections to them."""
    program = shutil.which("tarantool")
    assert program is not None
    ports = free_ports(3)
    connections = Connections(IPROTO, lambda node: ports[int(node[1:]) - 1], lambda _: LOOPBACK)
    processes: list[asyncio.subprocess.Process] = []
    try:
        for number in (1, 2, 3):
            home = folder / f"t{number}"
            home.mkdir(parents=True)
            words = (program, str(LUA), str(number), wal_mode, *map(str, ports))
            pipe = asyncio.subprocess.PIPE
            processes.append(await asyncio.create_subprocess_exec(*words, cwd=home, stdin=pipe, stdout=pipe))
        for process in processes:
            assert process.stdout is not None
            line = await asyncio.wait_for(process.stdout.readline(), START_TIMEOUT_S)
            if line != b"ready\n":
                raise SystemExit(f"a real node did not start; its log is in {folder}")
        yield connections
    finally:
        connections.close()
        for process in processes:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def writes_per_s(connections: Connections, clients: int, seconds: float) -> Rates | None:
    """Writes at n1. One that is refused (a quorum timed out) is counted, and the client goes on. None: n1 is gone."""
    took_s: list[float] = []
    refused = 0
    is_there = True
    end_s = time.perf_counter() + seconds

    async def client(number: int) -> None:
        nonlocal refused, is_there
        count = 0
        while is_there and (asked_s := time.perf_counter()) < end_s:
            count += 1
            request = Replace(count, SPACE_ID, (f"k{number}", count))
            reply = await connections.call(number, "n1", request, TIMEOUT_NS)
            if not isinstance(reply, Replied):
                is_there = False
            elif isinstance(reply.response, Answer):
                took_s.append(time.perf_counter() - asked_s)
            else:
                refused += 1

    await asyncio.gather(*(client(number) for number in range(clients)))
    return Rates(len(took_s) / seconds, clients / median(took_s), refused) if is_there and took_s else None


Cluster = Callable[[Path], AbstractAsyncContextManager[Connections]]
CLUSTERS: Mapping[str, Cluster] = {
    "ours": direct,
    "Tarantool, fsync": lambda folder: tarantool(folder, "fsync"),
    "Tarantool, write": lambda folder: tarantool(folder, "write"),
}


async def measured(seconds: float, rounds: int, folder: Path) -> list[list[str]]:
    """Rows of the table."""
    found: dict[tuple[str, int], list[Rates]] = {}
    crashed: Counter[tuple[str, int]] = Counter()
    for at in range(rounds):
        for clients in CONNECTIONS:
            for name in CLUSTERS:
                for attempt in range(ATTEMPTS):
                    async with CLUSTERS[name](folder / f"{name}-{clients}-{at}-{attempt}") as connections:
                        rates = await writes_per_s(connections, clients, seconds)
                    if rates is not None:
                        found.setdefault((name, clients), []).append(rates)
                        break
                    crashed[name, clients] += 1
    return [_row(name, clients, found, crashed) for clients in CONNECTIONS for name in CLUSTERS]


def _row(
    name: str,
    clients: int,
    found: Mapping[tuple[str, int], Sequence[Rates]],
    crashed: Mapping[tuple[str, int], int],
) -> list[str]:
    def best(of: str) -> tuple[float, float]:
        rates = found.get((of, clients), ())
        return (
            max((each.overall for each in rates), default=0.0),
            max((each.between_stalls for each in rates), default=0.0),
        )

    figures, ours = best(name), best("ours")
    refused = sum(each.refused for each in found.get((name, clients), ()))
    ratios = [f"{mine / its:.2f}" if its else "–" for mine, its in zip(ours, figures, strict=True)]
    counts = [f"{refused:,}", str(crashed[name, clients])]
    return [str(clients), name, *(f"{figure:,.0f}" for figure in figures), *counts, *ratios]


async def profile(seconds: float, folder: Path) -> None:
    """Where the owner's thread of events spends its time with 64 connections."""
    found = folder / "owner.profile"
    async with direct(folder / "profiled", profile_of_owner=found) as connections:
        await writes_per_s(connections, max(CONNECTIONS), seconds)
    stats = pstats.Stats(str(found))
    entries = sorted(stats.stats.items(), key=lambda entry: entry[1][2], reverse=True)  # type: ignore[attr-defined]
    at_work = [entry for entry in entries if entry[0][2] not in NOT_AT_WORK]
    total_s = sum(own_s for _, (_, _, own_s, *_) in at_work)
    rows = [
        [f"{own_s / total_s:.1%}", f"{calls:,}", f"{_short(file)}:{line} {name}" if line else name]
        for (file, line, name), (_, calls, own_s, *_) in at_work[:PROFILED]
    ]
    print_table(["share of the time", "calls", "function"], rows)


def _short(file: str) -> str:
    return file.removeprefix(f"{Path.cwd()}/") if "/nodes/" in file else Path(file).name


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    if shutil.which("tarantool") is None:
        print("skipped: there is no `tarantool` on PATH; try: apt-get install tarantool")
        return 0
    with tempfile.TemporaryDirectory(prefix="qsync-bench-") as folder:
        rows = asyncio.run(measured(given.seconds, given.rounds, Path(folder)))
        print_table(HEAD, rows)
        if given.profile:
            asyncio.run(profile(given.seconds, Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
