"""The fingerprints of every seeded bug: how many over some seeds in which it is found, and which bugs share one.

    .venv/bin/python bench/fingerprints.py [--seeds 5] [--tries 30] [--system qsync] [NAME …]

Each seed runs as `qsync simulate --bug NAME` would; a bug of qsync that too few of them find also by its stored plan.
Prints the bugs with their fingerprints and the words behind these, then the fingerprints that several bugs share. Exit
code 1 if a bug has more than two, or bugs share one and `SAME` does not name them as one defect.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from checkers.history.jsonl import read
from harness.campaigns.fingerprint import Sighting, causes
from harness.campaigns.hunt import hunted
from harness.plan.plan import Plan
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import Recorded, finish
from harness.systems.plans import planned
from harness.systems.plans import read as read_plan
from nodes.qsync import bugs as of_qsync
from nodes.twophase import bugs as of_twophase
from nodes.txlog import bugs as of_txlog

BUGS = {"qsync": of_qsync.NAMES, "twophase": of_twophase.NAMES, "txlog": of_txlog.NAMES}
PLANS = Path(__file__).parents[1] / "tests/plans"
MOST = 2
SAME = (
    frozenset({"no-markers", "marker-after-payload"}),  # a message is taken in before its colour is looked at
    frozenset({"each-signs-for-itself", "sign-at-send"}),  # the sign is not that of the commit
    frozenset({"committing-untracked", "finish-at-once"}),  # FINISH names no transaction that was in flight
)
"""Bugs that are one defect, and leave the same evidence."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="Seeds in which the bug is found.")
    parser.add_argument("--tries", type=int, default=30, help="Seeds that are tried at most.")
    parser.add_argument("--system", choices=BUGS)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    by_shape: dict[str, dict[str, None]] = {}
    has_too_many = False
    for system in BUGS if given.system is None else (given.system,):
        for bug in given.names or BUGS[system]:
            seen, found = prints_of(system, bug, given.seeds, given.tries)
            has_too_many |= len(seen) > MOST
            print(f"{system} {bug}: {len(seen)} fingerprints in {found} runs", flush=True)
            for sighting, count in seen.items():
                print(f"    {sighting[0]} ×{count}  {sighting[1]}", flush=True)
                by_shape.setdefault(sighting[1], {})[bug] = None
    shared = {shape: bugs for shape, bugs in by_shape.items() if len(bugs) > 1}
    for shape, bugs in shared.items():
        print(f"shared by {', '.join(bugs)}: {shape}")
    is_apart = all(any({*bugs} <= same for same in SAME) for bugs in shared.values())
    return 0 if is_apart and not has_too_many else 1


def prints_of(system: str, bug: str, seeds: int, tries: int) -> tuple[Counter[tuple[str, str]], int]:
    """By fingerprint and words, in how many runs; and how many runs found the bug."""
    seen: Counter[tuple[str, str]] = Counter()
    found = 0
    stored = [] if system != "qsync" else [read_plan(PLANS / f"{bug}.json")]
    for plan in (*(plan_of(system, bug, seed) for seed in range(tries)), *stored):
        told = [*_causes(plan)]
        found += bool(told)
        seen.update({(each.fingerprint, each.shape): None for each in told}.keys())
        if found == seeds:
            break
    return seen, found


def plan_of(system: str, bug: str, seed: int) -> Plan:
    """The plan that a hunt for this bug draws from this seed."""
    return hunted(planned(system=system, cluster="sim", seed=seed, bugs=(bug,)), frozenset({"system"}))


def _causes(plan: Plan) -> Iterator[Sighting]:
    with tempfile.TemporaryDirectory() as results:
        folder = execute(parts_of(plan), Path(results)).folder
        verdict = finish(folder, plan, Recorded(str(folder.path)))
        if verdict["outcome"] == "anomaly":
            yield from causes(verdict, read(folder.history))


if __name__ == "__main__":
    sys.exit(main())
