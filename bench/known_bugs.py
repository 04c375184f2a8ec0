"""Every seeded bug: how many seeds `qsync simulate --bug NAME` needs, and which checkers find it.

    .venv/bin/python -m bench.known_bugs [--system twophase] [--seeds 500] [--write] [NAME …]

Prints a row of Markdown a bug. The last column is the very same runs with the bug switched off: of how many a checker
said that something is wrong. Exit code 1 if a bug was not found within the seeds, or anything where there was none.
`--write` puts the rows into the file from which a run's page says what its checks are known to find.
"""

from __future__ import annotations

import argparse
import sys

import msgspec

from harness.campaigns.hunt import hunted, try_seed
from harness.plan.plan import Plan
from harness.systems import system_of
from harness.systems.finds import Find, finds_of, write
from harness.systems.plans import planned
from nodes.qsync import bugs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", default="qsync")
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    issues = {name: bugs.bug(name).issue for name in bugs.NAMES} if given.system == "qsync" else {}
    print("| bug | issue | seeds needed | found by | found without it |\n|---|---|---|---|---|")
    wrong = 0
    for name in given.names or system_of(given.system).bugs():
        find = needed(given.system, name, given.seeds)
        alarms = false_alarms(given.system, name, find.seeds)
        wrong += not find.by or bool(alarms)
        issue = f"#{issues[name]}" if issues.get(name) else "–"
        told = find.seeds if find.by else f"not in {find.seeds}"
        print(
            f"| {name} | {issue} | {told} | {', '.join(find.by)} | {', '.join(alarms) or 'nothing'} |",
            flush=True,
        )
        if given.write:
            write(given.system, {**finds_of(given.system), name: find})
    return 1 if wrong else 0


def plan_of(system: str, name: str, seed: int) -> Plan:
    """The plan that a hunt for this bug draws from this seed."""
    return hunted(planned(system=system, cluster="sim", seed=seed, bugs=(name,)), frozenset())


def needed(system: str, name: str, seeds: int) -> Find:
    """How many seeds until a violation, and the checkers that say so (none if none does)."""
    for seed in range(seeds):
        tried = try_seed(plan_of(system, name, seed))
        if tried.violated:
            return Find(seeds=seed + 1, by=tried.violated)
    return Find(seeds=seeds)


def false_alarms(system: str, name: str, seeds: int) -> list[str]:
    """Those of the same plans, with right nodes, in which a checker found something: seed and checkers."""
    found: list[str] = []
    for seed in range(seeds):
        tried = try_seed(msgspec.structs.replace(plan_of(system, name, seed), bugs=()))
        if tried.violated:
            found.append(f"seed {seed}: {', '.join(tried.violated)}")
    return found


if __name__ == "__main__":
    sys.exit(main())
