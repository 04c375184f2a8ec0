"""`./qsync check FILE`, the whole process: from its start to the verdict on the screen, by the size of the history.

    python -m bench.check [--sizes 1k 100k 1M] [--polars PYTHON]

Reads and writes of 64 clients, 50 operations a key, valid; from JSON lines, from the same lines with a blank behind
each colon and comma (as `json.dumps` writes them), and from Parquet. Machine code is kept from before. CPU time is that
of the process and all that it started (user and system), memory its peak. `--polars`: an interpreter that has polars;
its row is a plain program, which reads the same lines and pairs them, and judges nothing.
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

import msgspec

from bench import big_histories
from bench.table import print_table
from checkers.history import jsonl, parquet

SIZES = {"1k": 1_000, "100k": 100_000, "1M": 1_000_000, "10M": 10_000_000}
A_KEY = 50
LINES_MAX = 1_000_000
"""Larger ones are read from Parquet alone: to write their lines takes longer than all else here."""


def check(path: Path) -> tuple[float, float, float]:
    """Seconds by the clock, seconds of the core, MiB."""
    return _process([sys.executable, "-P", "-m", "harness.cli", "check", str(path)])


def _process(command: list[str]) -> tuple[float, float, float]:
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
        apart = folder / "apart.jsonl"
        apart.write_bytes(b"".join(_with_blanks(line) for line in lines.read_bytes().splitlines()))
        found = {"JSON lines": lines, "lines with blanks": apart, **found}
    return found


def _with_blanks(line: bytes) -> bytes:
    return msgspec.json.format(line, indent=0) + b"\n"


PLAIN_PROGRAM = """
import sys
import polars
words = dict.fromkeys(("type", "f", "key", "value", "node", "role", "mode", "error", "phase"), polars.String)
schema = {"index": polars.Int64, "time_ns": polars.Int64, "process": polars.Int64, **words}
lines = polars.read_ndjson(sys.argv[1], schema=schema, ignore_errors=True).drop_nulls("index")
ended = [polars.col(name).shift(-1).over("process").alias("ended_" + name) for name in ("type", "index", "value")]
pairs = lines.with_columns(ended).filter(polars.col("type") == "invoke")
print(len(pairs))
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--sizes", nargs="+", choices=SIZES, default=["1k", "100k", "1M"])
    arguments.add_argument("--polars", metavar="PYTHON", help="an interpreter that has polars")
    given = arguments.parse_args()
    rows = []
    for size in given.sizes:
        with TemporaryDirectory() as folder:
            for form, path in histories(Path(folder), SIZES[size]).items():
                check(path)  # compiles what this size needs, if nothing has yet
                seconds, core_s, mib = check(path)
                rows.append([size, form, f"{core_s:.2f}", f"{seconds:.2f}", f"{mib:,.0f}"])
                if given.polars and path.suffix == ".jsonl":
                    seconds, core_s, mib = _process([given.polars, "-c", PLAIN_PROGRAM, str(path)])
                    rows.append([size, f"{form}, polars", f"{core_s:.2f}", f"{seconds:.2f}", f"{mib:,.0f}"])
    print_table(("operations", "from", "of the core, s", "by the clock, s", "peak, MiB"), rows)


if __name__ == "__main__":
    main()
