"""The whole verdicts of many simulated runs as files: the same before and after a change that must change none.

    python -m bench.stored_verdicts make FOLDER [--runs 500]      # once: the runs, of all systems, workloads and bugs
    python -m bench.stored_verdicts judge FOLDER OUT              # the verdict of each as OUT/NAME.json
    diff -r BEFORE AFTER

The simulator makes the same runs of the same commit wherever it runs. A verdict is written without what depends on the
machine: times, paths and the versions of programs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from bench.fingerprints import BUGS
from checkers.limits import Limits
from harness.campaigns.hunt import hunted
from harness.judge.time_limit import limited
from harness.plan.plan import Plan
from harness.results import resolve
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import Recorded, finish
from harness.systems import plans
from harness.systems.plans import planned

OF_THE_MACHINE = frozenset(
    {"seconds", "duration_s", "judged_at", "versions", "repeat", "environment", "took_s"}
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make")
    make.add_argument("folder", type=Path)
    make.add_argument("--runs", type=int, default=500)
    judge = commands.add_parser("judge")
    judge.add_argument("folder", type=Path)
    judge.add_argument("out", type=Path)
    given = parser.parse_args()
    with ProcessPoolExecutor() as pool:
        if given.command == "make":
            chosen = [*itertools.islice(_plans(), given.runs)]
            _all(pool.map(partial(_made, given.folder), chosen, range(len(chosen))), len(chosen))
        else:
            given.out.mkdir(parents=True, exist_ok=True)
            stored = sorted(given.folder.glob("*/*/*Z-*/plan.json"))
            _all(pool.map(partial(_judged, given.out), [path.parent for path in stored]), len(stored))


def _all(outcomes: Iterator[str], many: int) -> None:
    counts: dict[str, int] = {}
    for number, outcome in enumerate(outcomes, 1):
        counts[outcome] = counts.get(outcome, 0) + 1
        print(f"\r{number}/{many}", end="", file=sys.stderr)
    print(f"\n{counts}; load {os.getloadavg()[0]:.1f}")


def _plans() -> Iterator[Plan]:
    """For each seed one plan a bug, and two without one of each system."""
    for seed in itertools.count():
        for system, bugs in BUGS.items():
            for bug in bugs:
                plan = planned(system=system, cluster="sim", seed=seed, bugs=(bug,), name=f"{system}-{bug}")
                yield hunted(plan, frozenset({"system"}))
            for other in (2 * seed, 2 * seed + 1):
                yield hunted(
                    planned(system=system, cluster="sim", seed=other, name=f"{system}-drawn"),
                    frozenset({"system"}),
                )


def _made(folder: Path, plan: Plan, number: int) -> str:
    target = folder / f"{number:04d}"
    if not target.exists():
        with limited(Limits(None, None, None)):
            run = execute(parts_of(plan), target).folder
            finish(run, plan, Recorded(str(run.path)))
    return plan.system


def _judged(out: Path, path: Path) -> str:
    folder = resolve(path)
    verdict = finish(folder, plans.read(folder.plan_file))
    name = f"{path.parents[1].name}-{path.parent.name}"
    (out / f"{name}.json").write_text(json.dumps(_without(verdict), indent=1, sort_keys=True, default=str))
    return str(verdict["outcome"])


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without(each) for name, each in value.items() if name not in OF_THE_MACHINE}
    if isinstance(value, list | tuple):
        return [_without(each) for each in value]
    return value


if __name__ == "__main__":
    main()
