"""`qsync analyze` of 200 stored runs, of five more, of nothing new, and of one run alone.

    python -m bench.stored_runs [--runs 200] [--more 5] [--distinct 40] [--folder DIR]

The runs are simulated ones, each stored under several names, as simulating takes longer than analyzing. Every call is
a process of its own, as a person calls it. "Of the core" is what its whole tree used (JVM too), user and system: that
can be compared where other work goes on beside it, seconds cannot. The count of operations is compared with what the
records themselves say.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.table import print_table
from checkers.history import jsonl
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import finish
from harness.systems.plans import planned

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--more", type=int, default=5)
    parser.add_argument("--distinct", type=int, default=40)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "qsync-stored-runs")
    given = parser.parse_args()
    made = _simulated(given.folder / "made", given.distinct)
    results, alone = given.folder / "results", given.folder / "alone"
    for folder in (results, alone):
        shutil.rmtree(folder, ignore_errors=True)
    names = _names(made, given.runs + given.more)
    # Keeps Spark's classes, reads PySpark from the disk.
    _call("", alone, _stored(alone, [(made[0], made[0].name)]))
    shutil.rmtree(alone)
    rows = [_call(f"{given.runs} runs", results, _stored(results, [next(names) for _ in range(given.runs)]))]
    rows.append(_call(f"{given.more} new ones", results, _stored(results, list(names))))
    rows.append(_call("nothing new", results, 0))
    rows.append(_call("one run alone", alone, _stored(alone, [(made[0], made[0].name)])))
    print(f"load {os.getloadavg()[0]:.1f}; {_operations_in_tables(results):,} operations in the tables")
    print_table(["call", "new operations", "seconds", "of the core"], rows)


def _simulated(folder: Path, count: int) -> list[Path]:
    """Folders of that many runs; those of an earlier call are taken again."""
    found = sorted(folder.glob("bench/*Z-*"))
    for seed in range(len(found) + 1, count + 1):
        plan = planned(name="bench", cluster="sim", time_limit_s=10.0, rate=150.0, seed=seed)
        finish(execute(parts_of(plan), folder).folder, plan)
    return sorted(folder.glob("bench/[0-9]*Z-*"))[:count]


def _names(made: list[Path], count: int) -> Iterator[tuple[Path, str]]:
    """The runs to store, each with its name: four runs an hour."""
    for number in range(count):
        began = FIRST + timedelta(minutes=15 * number)
        yield made[number % len(made)], f"{began:%Y%m%dT%H%M%SZ}-{number}"


def _stored(results: Path, runs: list[tuple[Path, str]]) -> int:
    """Store them; how many operations they hold."""
    operations = 0
    for path, name in runs:
        shutil.copytree(path, results / "bench" / name)
        operations += len(jsonl.read(path / "history.jsonl").operations)
    return operations


def _call(what: str, results: Path, operations: int) -> list[str]:
    before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    words = [sys.executable, "-m", "harness.cli", "analyze", "--results", str(results), "--json"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    seconds, after = time.perf_counter() - began_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    core_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return [what, f"{operations:,}", f"{seconds:.1f}", f"{core_s:.1f}"]


def _operations_in_tables(results: Path) -> int:
    import pyarrow.dataset

    table = pyarrow.dataset.dataset(results / "_tables" / "operations", partitioning="hive")
    return int(table.count_rows())


if __name__ == "__main__":
    main()
