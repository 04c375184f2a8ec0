"""What a consistent cut every second costs the clients of the two-phase store: throughput, and the slowest answers.

    python -m bench.cuts_throughput                          # 5 nodes, 20 slices of 5 s
    python -m bench.cuts_throughput --slices 40 --seconds 10

One local cluster of real processes, one load. Slices with cuts and without them take turns, so other work on the
machine hits both. Each client writes two keys in a transaction and waits for the answer. The first two slices do not
count. The ratio is of a slice with cuts to the slice before it; the table has the median of these ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.table import print_table
from harness.clients.reply import Replied
from harness.cluster.protocol import Cluster
from harness.plan.plan import Plan
from harness.run.assemble import local, parts_of
from harness.systems.cut_lines import ENDED
from harness.systems.plans import planned
from harness.systems.twophase.cut_operator import CutOperator

KEYS = 400
TIMEOUT_NS = 5_000_000_000
WARM_UP = 2
QUANTILE = 0.999


@dataclass
class Slice:
    """`cuts`: by the state in which they ended."""

    latencies_s: list[float] = field(default_factory=list)
    not_done: int = 0
    seconds: float = 0.0
    cuts: Counter[str] = field(default_factory=Counter)

    @property
    def per_s(self) -> float:
        return len(self.latencies_s) / self.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slices", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=8)
    asked = parser.parse_args()
    slices = asyncio.run(measured(asked.slices + WARM_UP, asked.seconds, asked.clients))[WARM_UP:]
    without, beside = slices[::2], slices[1::2]
    rows = [_row("none", without, asked.clients), _row("every second", beside, asked.clients)]
    ratios = [cut.per_s / none.per_s for none, cut in zip(without, beside, strict=False)]
    rows[0] += ["", ""]
    rows[1] += [f"{statistics.median(ratios):.3f}", f"{min(ratios):.2f} to {max(ratios):.2f}"]
    head = ["cuts", "clients", "finished", "load", "transactions/s", "median, ms", "99.9 %, ms", "not done"]
    print_table([*head, "ratio", "of slices"], rows)


async def measured(slices: int, seconds: float, clients: int) -> list[Slice]:
    """Slices without cuts and with them, in turn."""
    plan = planned(
        system="twophase", name="bench", workload="bank", nodes=5, faults=("none",), cut_every_s=1.0
    )
    parts = parts_of(plan)
    with tempfile.TemporaryDirectory(prefix="qsync-bench-") as folder:
        cluster = local(parts, Path(folder))
        try:
            await cluster.start()
            await parts.system.set_up(parts.plan, cluster)
            space = parts.workload.spaces[0]
            return [
                await _slice(cluster, parts.plan, space, seconds, clients, with_cuts=number % 2 == 1)
                for number in range(slices)
            ]
        finally:
            await cluster.stop()


async def _slice(
    cluster: Cluster, plan: Plan, space: str, seconds: float, clients: int, *, with_cuts: bool
) -> Slice:
    done = Slice()
    begun_s = time.perf_counter()

    def is_over() -> bool:
        return time.perf_counter() - begun_s >= seconds

    def note(what: str, node: str, value: object) -> None:
        if what == ENDED and isinstance(value, dict):
            done.cuts[str(value["state"])] += 1

    async def client(number: int) -> None:
        chance, node = random.Random(f"{number}/{begun_s}"), plan.node_names[number % plan.nodes]
        count = 0
        while not is_over():
            count += 1
            keys = chance.sample(range(KEYS), 2)
            steps = [["write", space, f"k{key}", count] for key in sorted(keys)]
            asked_s = time.perf_counter()
            reply = await cluster.call(number, node, ["txn", count, steps, {}], TIMEOUT_NS)
            match reply:
                case Replied([_, _, {"type": "ok"}]):
                    done.latencies_s.append(time.perf_counter() - asked_s)
                case _:
                    done.not_done += 1

    operator = asyncio.create_task(CutOperator(plan, cluster, note).run(is_over)) if with_cuts else None
    await asyncio.gather(*(client(number) for number in range(clients)))
    done.seconds = time.perf_counter() - begun_s
    if operator is not None:
        await operator
    return done


def _row(cuts: str, slices: Sequence[Slice], clients: int) -> list[str]:
    latencies_s = sorted(each for one in slices for each in one.latencies_s)
    seconds = sum(each.seconds for each in slices)
    finished = sum(each.cuts["ok"] for each in slices)
    asked = sum(each.cuts.total() for each in slices)
    return [
        *(cuts, str(clients), f"{finished} of {asked}", f"{os.getloadavg()[0]:.0f}"),
        f"{len(latencies_s) / seconds:,.0f}",
        f"{1e3 * latencies_s[len(latencies_s) // 2]:.1f}",
        f"{1e3 * latencies_s[int(QUANTILE * (len(latencies_s) - 1))]:.0f}",
        str(sum(each.not_done for each in slices)),
    ]


if __name__ == "__main__":
    main()
