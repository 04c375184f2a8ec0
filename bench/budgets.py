"""Measure how many seconds a budget of steps takes: the time after which a search gives up.

    .venv/bin/python -m bench.budgets [--steps 2000000000]

Hard histories, each searched for so many steps with memory enough, in a process that has loaded its kernels; the last
column is what the default budget would take at that rate. `plain` is the search without a compiler, whose steps count
for more because they take longer.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

from bench.table import print_table
from checkers.limits import STEPS
from checkers.linearizable import forward, search
from checkers.linearizable.models import Register
from checkers.linearizable.search import Decision, Limits
from tests.checkers.linearizable.generated import columns
from tests.checkers.linearizable.test_algorithms import calls_of

CONFIGURATIONS = 20_000_000
HARD: dict[str, dict[str, int]] = {
    "cas, 10k × 10, 55 crashed": {"operations": 10_000, "clients": 10, "crashed": 55},
    "cas, 2k × 20, 100 crashed": {"operations": 2_000, "clients": 20, "crashed": 100},
    "cas of 30 values, 1k × 40, 100 crashed": {
        "operations": 1_000,
        "clients": 40,
        "values": 30,
        "crashed": 100,
    },
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--steps", type=int, default=2_000_000_000)
    steps = arguments.parse_args().steps
    for warm in (columns(100, 3), columns(1_000, 3)):
        forward.search_columns(warm, Limits())
    rows = []
    for name, fields in HARD.items():
        given = columns(**fields, stale=True)  # type: ignore[arg-type]  # whole numbers all
        rows.append(_row(name, partial(forward.search_columns, given, Limits(CONFIGURATIONS, steps))))
        few = Limits(CONFIGURATIONS, steps // 20)
        rows.append(
            _row("the same, plain", partial(search.search, Register(initial=0), calls_of(given), few))
        )
    head = ("history", "answer", "steps", "of the core", "a second", f"{STEPS:,} steps")
    print_table(head, rows)


def _row(name: str, look: Callable[[], Decision]) -> list[str]:
    began_s = time.process_time()
    found = look()
    seconds = time.process_time() - began_s
    rate = found.steps / seconds
    return [
        name, found.result, f"{found.steps / 1e6:,.0f} M", f"{seconds:.1f} s", f"{rate / 1e6:,.0f} M",
        f"{STEPS / rate:.0f} s",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
