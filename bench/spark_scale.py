"""Pairing, quantiles and linearizability per key of one big history: in process and on Spark, side by side.

    python -m bench.spark_scale [--sizes 1M 10M 50M] [--keys 10000] [--folder DIR] [--in-process-gib 20]

Each way runs in a process of its own, whose peak is that of its whole tree (JVM and Python workers too), sampled ten
times a second. "fixed" is what Spark takes before it looks at the first event. The in-process way is held to a limit
of memory, so that a machine is not brought down by it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types

from bench.big_histories import write
from bench.table import print_table

UNITS = {"k": 1_000, "M": 1_000_000}


@dataclass(frozen=True, slots=True)
class Measured:
    """One way at one size. `fixed_s` is part of `seconds`."""

    seconds: float
    fixed_s: float
    peak_gib: float
    result: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=["1M", "10M"])
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "qsync-bench")
    parser.add_argument("--in-process-gib", type=float, default=12.0)
    parser.add_argument("--only", choices=("process", "spark"))
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        print(
            json.dumps(
                _in_process(given.file, given.in_process_gib)
                if given.way == "process"
                else _on_spark(given.file)
            )
        )
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for size in given.sizes:
        operations = int(float(size[:-1]) * UNITS[size[-1]])
        path = given.folder / f"{size}-{given.keys}.parquet"
        if not path.exists():
            write(path.with_suffix(".unfinished"), operations, given.keys)
            path.with_suffix(".unfinished").rename(path)
        for way in ("process", "spark"):
            if given.only in (None, way):
                found = _measured(way, path, given.in_process_gib)
                rows.append(_row(size, way, operations, found))
                print(rows[-1], file=sys.stderr, flush=True)
    print_table(
        ("operations", "way", "seconds", "of which fixed", "operations/s", "peak, GiB", "verdict"), rows
    )


def _row(size: str, way: str, operations: int, found: Measured) -> tuple[str, ...]:
    rate = f"{operations / found.seconds:,.0f}" if found.result == "valid" else ""
    words = (f"{found.seconds:.1f}", f"{found.fixed_s:.1f}", rate, f"{found.peak_gib:.1f}", found.result)
    return (size, "in process" if way == "process" else "Spark", *words)


def _measured(way: str, path: Path, gib: float) -> Measured:
    command = [
        sys.executable,
        "-P",
        "-m",
        "bench.spark_scale",
        "--way",
        way,
        "--file",
        str(path),
        "--in-process-gib",
        str(gib),
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )
    peak = 0
    began_s = time.monotonic()
    while process.poll() is None:
        peak = max(peak, _tree_bytes(process.pid))
        time.sleep(0.1)
    seconds = time.monotonic() - began_s
    assert process.stdout is not None
    said = process.stdout.read().strip().splitlines()
    told: dict[str, Any] = json.loads(said[-1]) if said else {"result": "out of memory"}
    return Measured(told.get("seconds", seconds), told.get("fixed_s", 0.0), peak / 2**30, told["result"])


def _tree_bytes(pid: int) -> int:
    """Memory of a process and all below it. Memory that forked workers share is counted once (PSS)."""
    total = 0
    try:
        root = psutil.Process(pid)
        for each in (root, *root.children(recursive=True)):
            try:
                total += each.memory_full_info().pss
            except psutil.Error:
                continue
    except psutil.Error:
        return total
    return total


def _in_process(path: Path, gib: float) -> dict[str, Any]:
    limit = int(gib * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    began_s = time.monotonic()
    try:
        return {**_all_in_process(path), "seconds": time.monotonic() - began_s}
    except MemoryError:
        return {"result": f"more than {gib:g} GiB", "seconds": time.monotonic() - began_s}
    except Exception as error:
        if "memory" in str(error).lower() or "allocat" in str(error).lower():
            return {"result": f"more than {gib:g} GiB", "seconds": time.monotonic() - began_s}
        raise


def _all_in_process(path: Path) -> dict[str, Any]:
    import numpy

    from checkers import linearizable
    from checkers.history import parquet
    from checkers.history.line_kernels import OK

    history = parquet.read(path)
    verdict = linearizable.check(history)
    columns = history.columns
    is_ok = columns.type == OK
    took_ns = columns.complete_ns - columns.invoke_ns
    for code in numpy.unique(columns.f[is_ok]).tolist():
        of_f = took_ns[is_ok & (columns.f == code)]
        numpy.quantile(of_f, (0.5, 0.95, 0.99, 1.0), method="inverted_cdf")
    return {"result": verdict.result}


def _on_spark(path: Path) -> dict[str, Any]:
    from harness.pipeline import spread
    from harness.pipeline.session import session

    began_s = time.monotonic()
    with session(quick=False, memory_mib=2560) as spark:
        spark.range(1).collect()
        fixed_s = time.monotonic() - began_s
        found = spread.check_parquet(spark, path)
        seconds = time.monotonic() - began_s
    assert found is not None
    return {"result": found.verdict.result, "seconds": seconds, "fixed_s": fixed_s}


if __name__ == "__main__":
    main()
