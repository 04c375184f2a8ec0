"""Simulated seconds per second of one core: the default plan, and the plan that the project measures itself by.

60 virtual seconds of three nodes and five clients at 100 operations a second in all, with all faults, is to take
under 3 s. Checking is timed apart. `python -m bench.simulation`
"""

from __future__ import annotations

import io
import time

from bench.table import print_table
from checkers.history import jsonl
from harness.judge import Case, judge
from harness.run.assemble import header, parts_of, simulated
from harness.run.conductor import Conductor
from harness.systems.plans import planned

PLANS = {
    "60 s, 5 clients, 100 op/s": planned(cluster="sim", time_limit_s=60, workers=5, rate=100, seed=1),
    "the same, as bytes": planned(cluster="sim", time_limit_s=60, workers=5, rate=100, seed=9),
    "default: 20 s, 10 clients, 300 op/s": planned(cluster="sim", seed=1),
    "5 nodes, 20 s, 300 op/s": planned(cluster="sim", nodes=5, seed=1),
}


def main() -> None:
    rows = []
    for name, plan in PLANS.items():
        parts = parts_of(plan)
        cluster = simulated(parts, None)
        record = io.BytesIO()
        conductor = Conductor(
            plan, cluster, parts.system, parts.workload, jsonl.Writer(record, header(parts))
        )
        began_s = time.process_time()
        cluster.run(conductor.run())
        ran_s = time.process_time()
        verdict = judge(Case(plan, jsonl.parse(record.getvalue()), given_promise=parts.system.promise(plan)))
        judged_s = time.process_time()
        virtual_s = cluster.now_ns() / 1e9
        rows.append(
            [
                name,
                f"{virtual_s:.1f}",
                f"{ran_s - began_s:.2f}",
                f"{virtual_s / (ran_s - began_s):.1f}",
                f"{judged_s - ran_s:.2f}",
                verdict["outcome"],
            ]
        )
    head = ["plan", "virtual s", "core s to run", "virtual s / core s", "core s to judge", "outcome"]
    print_table(head, rows)


if __name__ == "__main__":
    main()
