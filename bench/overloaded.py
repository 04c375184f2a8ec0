"""Verdicts on an idle machine beside those on an overloaded one: the same stored runs, judged twice.

    .venv/bin/python -m bench.overloaded [--seeds 200] [--first 1] [--loops 8] [--results FOLDER]

Each seed is a simulated run drawn as `qsync simulate` draws it, or (`--results`) a run below that folder, which is
copied. All are judged by a fresh process, and by another one while so many loops keep the cores busy. Seeds whose
verdicts differ in anything but the seconds are printed, and the exit code is 1. The loops end with this script, however
that ends.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from bench.table import print_table
from harness.campaigns.hunt.variety import hunted
from harness.errors import HarnessError
from harness.results import RunFolder
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import finish
from harness.systems.plans import planned, read

LOOP = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    for _ in range(1_000_000): pass"
"""A loop that ends by itself if the process that began it is gone."""


def stored(results: Path, seeds: Sequence[int]) -> list[Path]:
    """A run of each seed, recorded and not judged."""
    folders = []
    for seed in seeds:
        plan = hunted(planned(name="overloaded", cluster="sim", seed=seed), frozenset({"name", "cluster"}))
        try:
            folders.append(execute(parts_of(plan), results).folder.path)
        except HarnessError as error:
            print(f"seed {seed} could not be run: {error.message}", file=sys.stderr)
    return folders


def copied(results: Path, to: Path) -> list[Path]:
    """The runs below a folder, so that the stored ones keep their verdicts."""
    runs = sorted({each.parent for each in results.glob("**/plan.json") if "latest" not in each.parts})
    for number, run in enumerate(runs):
        shutil.copytree(run, to / str(number))
    return [to / str(number) for number in range(len(runs))]


def judged(folder: Path) -> tuple[int, dict[str, Any], float]:
    """The seed, the verdict without seconds, and the seconds that it took."""
    began_s = time.monotonic()
    run = RunFolder(folder)
    plan = read(run.plan_file)
    verdict = finish(run, plan)
    return plan.seed, without_seconds(verdict), time.monotonic() - began_s


def without_seconds(found: Any) -> Any:
    """JSON without the times that checks took."""
    if isinstance(found, dict):
        return {name: without_seconds(value) for name, value in found.items() if name != "seconds"}
    if isinstance(found, list | tuple):
        return [without_seconds(each) for each in found]
    return found


def all_judged(folders: Sequence[Path]) -> list[tuple[int, dict[str, Any], float]]:
    """Each by the same fresh process, in order."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return list(pool.map(judged, folders))


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """Keep the cores busy."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(loops):
            running.append(subprocess.Popen([sys.executable, "-c", LOOP]))
        yield
    finally:
        for each in running:
            each.kill()
        for each in running:
            each.wait()


def main() -> int:
    """Prints seeds whose verdicts differ; 1 if there are any."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--seeds", type=int, default=200)
    arguments.add_argument("--first", type=int, default=1)
    arguments.add_argument("--loops", type=int, default=8)
    arguments.add_argument("--results", type=Path)
    given = arguments.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="qsync-overloaded-") as scratch:
        folder = Path(scratch)
        seeds = range(given.first, given.first + given.seeds)
        folders = stored(folder, seeds) if given.results is None else copied(given.results, folder)
        idle = all_judged(folders)
        with busy(given.loops):
            overloaded = all_judged(folders)
    different = 0
    for (seed, quiet, _), (_, loud, _) in zip(idle, overloaded, strict=True):
        if quiet != loud:
            different += 1
            parts = [name for name in quiet if quiet[name] != loud.get(name)]
            print(f"seed {seed}: {quiet['outcome']} ({quiet['exit_code']}) idle, {loud['outcome']} "
                  f"({loud['exit_code']}) overloaded; different: {', '.join(parts)}")  # fmt: skip
    outcomes: dict[str, int] = {}
    for _, quiet, _ in idle:
        outcomes[quiet["outcome"]] = outcomes.get(quiet["outcome"], 0) + 1
    rows = [
        [
            str(len(idle)),
            str(given.loops),
            str(different),
            ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items())),
            f"{sum(took for _, _, took in idle):.0f}",
            f"{sum(took for _, _, took in overloaded):.0f}",
        ]
    ]
    print_table(["seeds", "busy loops", "different", "outcomes", "idle s", "overloaded s"], rows)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
