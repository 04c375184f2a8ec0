"""`./qsync check FILE`, the whole process: from its start to the verdict on the screen, by the size of the history.

    python -m bench.check [--sizes 1k 100k 1M]

Reads and writes of 64 clients, 50 operations a key, valid; from JSON lines and from Parquet. Machine code is kept from
before. CPU time is that of the process and all that it started (user and system), memory its peak.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import big_histories
from bench.table import print_table
from checkers.history import jsonl, parquet

SIZES = {"1k": 1_000, "100k": 100_000, "1M": 1_000_000, "10M": 10_000_000}
A_KEY = 50
LINES_MAX = 1_000_000
"""Larger ones are read from Parquet alone: to write their lines takes longer than all else here."""


def check(path: Path) -> tuple[float, float, float]:
    """Seconds by the clock, seconds of the core, MiB."""
    command = [sys.executable, "-P", "-m", "harness.cli", "check", str(path)]
    began_s = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, said.decode()
    return time.perf_counter() - began_s, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def histories(folder: Path, operations: int) -> dict[str, Path]:
    """By another process: the peak of a process counts from that of the one which began it."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(write, folder, operations).result()


def write(folder: Path, operations: int) -> dict[str, Path]:
    columns = folder / "history.parquet"
    big_histories.write(columns, operations, keys=max(1, operations // A_KEY))
    found = {"Parquet": columns}
    if operations <= LINES_MAX:
        lines = folder / "history.jsonl"
        history = parquet.read(columns)
        jsonl.write(lines, history.header, history.events)
        found = {"JSON lines": lines, **found}
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--sizes", nargs="+", choices=SIZES, default=["1k", "100k", "1M"])
    rows = []
    for size in arguments.parse_args().sizes:
        with TemporaryDirectory() as folder:
            for form, path in histories(Path(folder), SIZES[size]).items():
                check(path)  # compiles what this size needs, if nothing has yet
                seconds, core_s, mib = check(path)
                rows.append([size, form, f"{core_s:.2f}", f"{seconds:.2f}", f"{mib:,.0f}"])
    print_table(("operations", "from", "of the core, s", "by the clock, s", "peak, MiB"), rows)


if __name__ == "__main__":
    main()
