"""How long it takes to a new writable leader after kill -9 of the old one, on local processes.

    .venv/bin/python -m bench.failover [--kills 10] [--replication-timeout 0.25]

A node counts as the new leader when a write at it is answered ok. Times are from the kill, in seconds and in multiples
of the replication timeout; the death timeout alone is 4 of these.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from harness.clients.reply import Replied
from harness.cluster.local.cluster import LocalCluster
from harness.faults.fault import Fault
from harness.plan.plan import SECOND_NS, Plan
from harness.run.assemble import local, parts_of
from harness.systems.plans import planned
from harness.systems.system import System
from nodes.iproto.messages import Answer, Call

POLL_NS = SECOND_NS // 200
PATIENCE_NS = 20 * SECOND_NS


async def measured(plan: Plan, kills: int, folder: Path) -> list[float]:
    """Seconds from each kill to the first write that another node acknowledges."""
    parts = parts_of(plan)
    cluster = local(parts, folder)
    times: list[float] = []
    try:
        await cluster.start()
        await parts.system.set_up(plan, cluster)
        for number in range(kills):
            owner = await _owner(plan, cluster, parts.system)
            fault = Fault(id=number, name="kill", does="kill", at_ns=0, until_ns=0, nodes=(owner,))
            began_ns = cluster.now_ns()
            await cluster.inject(fault)
            times.append((await _written(plan, cluster, parts.system, number, owner) - began_ns) / SECOND_NS)
            await cluster.heal(fault)
            await cluster.sleep_until(cluster.now_ns() + 3 * SECOND_NS)
    finally:
        await cluster.stop()
    return times


async def _owner(plan: Plan, cluster: LocalCluster, system: System) -> str:
    deadline_ns = cluster.now_ns() + PATIENCE_NS
    while cluster.now_ns() < deadline_ns:
        owner = system.owner_now({node: await cluster.status(node) for node in plan.node_names})
        if owner is not None:
            return owner
        await cluster.sleep_until(cluster.now_ns() + POLL_NS)
    raise SystemExit("nobody owns the queue")


async def _written(plan: Plan, cluster: LocalCluster, system: System, number: int, dead: str) -> int:
    """When a write at one of the others was answered ok."""
    others = [node for node in plan.node_names if node != dead]
    process = 100 * (number + 1)
    deadline_ns = cluster.now_ns() + PATIENCE_NS
    while cluster.now_ns() < deadline_ns:
        owner = system.owner_now({node: await cluster.status(node) for node in others})
        if owner is not None:
            process += 1
            request = Call(process, "qsync.transaction", ([["replace", "register", ["k", process]]], {}))
            reply = await cluster.call(process, owner, request, 2 * SECOND_NS)
            if isinstance(reply, Replied) and isinstance(reply.response, Answer):
                return cluster.now_ns()
        await cluster.sleep_until(cluster.now_ns() + POLL_NS)
    raise SystemExit(f"no new leader within {PATIENCE_NS / SECOND_NS:g} s after the kill of {dead}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--replication-timeout", type=float, default=0.25)
    given = parser.parse_args()
    plan = planned(faults=("none",), replication_timeout_s=given.replication_timeout, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        started_s = time.monotonic()
        times = asyncio.run(measured(plan, given.kills, Path(folder)))
    beats = [seconds / given.replication_timeout for seconds in times]
    print("| kills | replication timeout | median | worst | median in timeouts | worst in timeouts |")
    print("|---|---|---|---|---|---|")
    print(
        f"| {len(times)} | {given.replication_timeout:g} s | {statistics.median(times):.2f} s | {max(times):.2f} s "
        f"| {statistics.median(beats):.1f} | {max(beats):.1f} |"
    )
    print(
        f"each: {', '.join(f'{seconds:.2f}' for seconds in times)} s; {time.monotonic() - started_s:.0f} s in all"
    )
    return 0 if statistics.median(beats) <= 5 and max(beats) <= 8 else 1


if __name__ == "__main__":
    sys.exit(main())
