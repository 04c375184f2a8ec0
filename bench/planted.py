"""Every planted bug: what `qsync simulate` with nothing but the default draw finds in three CPU minutes.

    .venv/bin/python -m bench.planted [--seconds 180] [--seed 0] [NAME …]

Each bug (`bench/planted_bugs.py`) is put into a copy of the code, and a process of its own hunts there until the first
anomaly, with one job, until its CPU time is spent. Prints a row of Markdown a bug; exit code 1 if less than three
quarters were found.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.planted_bugs import PLANTED, Planted

ROOT = Path(__file__).parents[1]

SEEDS_APART = 100_000
"""Each bug has seeds of its own."""


def main() -> int:
    names = [bug.name for bug in PLANTED]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("names", nargs="*", choices=[[], *names])
    given = parser.parse_args()
    print("| planted | found by | seeds | CPU s |\n|---|---|---|---|")
    chosen = [bug for bug in PLANTED if bug.name in (given.names or names)]
    found = 0
    for bug in chosen:
        before = _children_s()
        tried = hunt(bug, given.seed + names.index(bug.name) * SEEDS_APART, given.seconds)
        by = ", ".join(tried[-1]["violated"]) if tried and tried[-1]["exit_code"] == 1 else ""
        found += bool(by)
        spent_s = _children_s() - before
        print(f"| {bug.name}: {bug.what} | {by or '–'} | {len(tried)} | {spent_s:.0f} |", flush=True)
    print(f"\n{found} of {len(chosen)}")
    return 0 if found >= 0.75 * len(chosen) else 1


def hunt(bug: Planted, seed: int, seconds: int) -> list[dict[str, Any]]:
    """The lines of `simulate --json`, one for each seed; the last one is the anomaly, if there was any."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("nodes", "harness", "checkers"):
            shutil.copytree(ROOT / part, Path(folder) / part, ignore=shutil.ignore_patterns("*.pyc"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        plant(bug, Path(folder))
        asked = ["--seed", str(seed), "--seeds", str(SEEDS_APART), "--jobs", "1", "--json"]
        done = subprocess.run(
            [sys.executable, "-P", "-m", "harness.cli", "simulate", *asked],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": folder},
            stdout=subprocess.PIPE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5)),
            check=False,
        )
    lines = done.stdout.splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def plant(bug: Planted, folder: Path) -> None:
    path = folder / "nodes" / "qsync" / bug.file
    text = path.read_text(encoding="utf-8")
    assert text.count(bug.old) == 1, (
        f"{bug.name}: its old text is not in {bug.file} once; bring it up to date"
    )
    path.write_text(text.replace(bug.old, bug.new), encoding="utf-8")


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
