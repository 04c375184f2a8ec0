"""Every seeded bug: how many seeds `qsync simulate --bug NAME` needs, and which checkers find it.

    .venv/bin/python bench/known_bugs.py [--seeds 500] [NAME …]

Prints a row of Markdown a bug. The last column is the very same runs with the bug switched off: of how many a checker
said that something is wrong. Exit code 1 if a bug was not found within the seeds, or anything where there was none.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness.hunt import hunted, try_seed
from harness.run.plan import Plan
from harness.systems.plans import planned
from nodes.qsync import bugs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("names", nargs="*", choices=[[], *bugs.NAMES])
    given = parser.parse_args()
    print("| bug | issue | seeds needed | found by | found without it |\n|---|---|---|---|---|")
    wrong = 0
    for name in given.names or bugs.NAMES:
        seeds, found_by = needed(name, given.seeds)
        alarms = false_alarms(name, seeds)
        wrong += not found_by or bool(alarms)
        issue = f"#{bugs.bug(name).issue}" if bugs.bug(name).issue else "–"
        told = seeds if found_by else f"not in {seeds}"
        print(f"| {name} | {issue} | {told} | {found_by} | {', '.join(alarms) or 'nothing'} |", flush=True)
    return 1 if wrong else 0


def plan_of(name: str, seed: int) -> Plan:
    """The plan that a hunt for this bug draws from this seed."""
    return hunted(planned(cluster="sim", seed=seed, bugs=(name,)), frozenset())


def needed(name: str, seeds: int) -> tuple[int, str]:
    """How many seeds until a violation, and the checkers that say so ("" if none does)."""
    for seed in range(seeds):
        tried = try_seed(plan_of(name, seed))
        if tried.violated:
            return seed + 1, ", ".join(tried.violated)
    return seeds, ""


def false_alarms(name: str, seeds: int) -> list[str]:
    """Those of the same plans, with right nodes, in which a checker found something: seed and checkers."""
    found: list[str] = []
    for seed in range(seeds):
        tried = try_seed(msgspec.structs.replace(plan_of(name, seed), bugs=()))
        if tried.violated:
            found.append(f"seed {seed}: {', '.join(tried.violated)}")
    return found


if __name__ == "__main__":
    sys.exit(main())
