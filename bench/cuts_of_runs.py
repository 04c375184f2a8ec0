"""What the cuts of a default run of the reference node cost: CPU of simulated seeds with them and without.

    python -m bench.cuts_of_runs                # 20 seeds, each with and without, in turn

Measured is the process's CPU from the plan to the verdict. Which of the two goes first takes turns.
"""

from __future__ import annotations

import argparse
import gc
import time

from bench.table import print_table
from harness.campaigns.hunt.seeds import try_seed
from harness.cluster.sim.cluster import SEARCHES_FOR_CYCLES
from harness.systems.plans import planned

WITH, WITHOUT = None, 0.0
"""The pace of cuts in the plan."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    gc.set_threshold(*SEARCHES_FOR_CYCLES)
    seconds: dict[float | None, float] = {WITHOUT: 0.0, WITH: 0.0}
    cuts: dict[float | None, int] = {WITHOUT: 0, WITH: 0}
    try_seed(planned(cluster="sim", seed=seeds))  # compiles what is compiled once
    for seed in range(seeds):
        for pace in (WITH, WITHOUT) if seed % 2 else (WITHOUT, WITH):
            began_s = time.process_time()
            tried = try_seed(planned(cluster="sim", seed=seed, cut_every_s=pace))
            seconds[pace] += time.process_time() - began_s
            cuts[pace] += tried.cuts
    rows = [
        [
            name,
            str(seeds),
            f"{cuts[pace]:,}",
            f"{seconds[pace]:.1f}",
            f"{seconds[pace] / seconds[WITHOUT]:.3f}",
        ]
        for name, pace in (("none", WITHOUT), ("as by default", WITH))
    ]
    print_table(["cuts", "seeds", "judged", "CPU, s", "ratio"], rows)


if __name__ == "__main__":
    main()
