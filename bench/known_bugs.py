"""Every seeded bug: how many seeds `qsync simulate --bug NAME` needs, and which checkers find it.

    .venv/bin/python bench/known_bugs.py [--seeds 500] [NAME …]

Prints a row of Markdown a bug; exit code 1 if one was not found within the seeds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness.hunt import hunted, try_seed
from harness.plan import Plan
from nodes.qsync.bugs import BUGS, TABLE


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("names", nargs="*", choices=[[], *BUGS])
    given = parser.parse_args()
    print("| bug | issue | seeds needed | found by |\n|---|---|---|---|")
    missed = 0
    for name in given.names or BUGS:
        seeds, found_by = needed(name, given.seeds)
        missed += not found_by
        issue = f"#{TABLE[name].issue}" if TABLE[name].issue else "–"
        print(f"| {name} | {issue} | {seeds if found_by else f'not in {seeds}'} | {found_by} |", flush=True)
    return 1 if missed else 0


def needed(name: str, seeds: int) -> tuple[int, str]:
    """How many seeds until a violation, and the checkers that say so ("" if none does)."""
    for seed in range(seeds):
        tried = try_seed(hunted(Plan(cluster="sim", seed=seed, bugs=(name,)), frozenset()))
        if tried.violated:
            return seed + 1, ", ".join(tried.violated)
    return seeds, ""


if __name__ == "__main__":
    sys.exit(main())
