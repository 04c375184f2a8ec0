"""Linearizability, side by side with Porcupine in one run, and what only we decide.

    python -m bench.linearizable [--driver PATH] [--timeout SECONDS] [--long]

The driver is Porcupine behind standard input, bench/porcupine_driver; the README there tells how to build it. Without
one only our own times are shown. Both get the same histories as numbers and are timed without parsing. `--long` adds
the histories on which Porcupine takes minutes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet

from bench.table import print_table
from checkers.history import Header, foreign, parquet
from checkers.history.jsonl import header_line
from checkers.linearizable.columns import NEVER, Columns, register_columns
from checkers.linearizable.decide import decide_columns
from checkers.linearizable.models import Register
from checkers.linearizable.search import Call, Found, Limits
from checkers.linearizable.search_kernels import OBSERVE, OVERWRITE, REFUSE
from tests.checkers.linearizable.generated import columns

LOGS = Path(__file__).parents[1] / "tests" / "checkers" / "histories" / "porcupine"
CONFIGURATIONS = 20_000_000  # rows of some 100 bytes
Histories = Sequence[Columns]


def side_by_side(long: bool) -> Iterable[tuple[str, Histories]]:
    """Histories that Porcupine can decide."""
    unique = {"unique": True, "cas": False}
    yield "register, unique writes, 10k × 5", [columns(10_000, 5, **unique)]
    yield "register, unique writes, 10k × 10", [columns(10_000, 10, **unique)]
    yield "the same, a stale read", [columns(10_000, 10, stale=True, **unique)]
    yield "cas, 1k × 5", [columns(1_000, 5)]
    yield "cas, 10k × 10", [columns(10_000, 10)]
    yield "the same, a stale read", [columns(10_000, 10, stale=True)]
    yield "the etcd logs of Jepsen", etcd_logs()
    if long:
        yield "register, unique writes, 100k × 5", [columns(100_000, 5, **unique)]
        yield "cas, 100k × 10", [columns(100_000, 10)]


def ours_alone() -> Iterable[tuple[str, Histories]]:
    """Histories that are too long or too hard for it."""
    yield "register, unique writes, 1M × 5", [columns(1_000_000, 5, unique=True, cas=False)]
    yield "cas, 1M × 5", [columns(1_000_000, 5)]
    yield (
        "unique writes, 100k × 10, 2,500 crashed",
        [columns(100_000, 10, unique=True, cas=False, crashed=2_500)],
    )
    yield "cas, 10k × 30, a stale read", [columns(10_000, 30, stale=True)]
    yield "cas, 100k × 30, a stale read", [columns(100_000, 30, stale=True)]
    yield "cas, 10k × 10, 55 crashed", [columns(10_000, 10, crashed=55)]
    yield "cas, 10k × 10, 55 crashed, a stale read", [columns(10_000, 10, crashed=55, stale=True)]


def etcd_logs() -> Histories:
    """The logs with a published verdict, as columns."""
    model, histories = Register(), []
    for path in sorted(LOGS.glob("*.log")):
        if path.name == "etcd_095.log":
            continue
        operations = foreign.read(path).history.operations
        calls = [
            Call(action, each.invoke_index, each.returned_index)
            for each in operations
            if (action := model.action(each)) is not None
        ]
        histories.append(register_columns(calls, (None,))[0])
    return histories


def ours(histories: Histories, timeout_s: float, times: int = 5) -> tuple[str, float]:
    """The answer, and the best of a few times in seconds."""
    best, found = float("inf"), Found("unknown")
    for _ in range(times):
        began_s = time.perf_counter()
        for each in histories:
            found = decide_columns(each, Limits(time.monotonic() + timeout_s, CONFIGURATIONS))
        best = min(best, time.perf_counter() - began_s)
        if best > 1:
            break
    many = len(histories) > 1
    return (f"{len(histories)} logs" if many else found.result), best


def porcupine(driver: Path, histories: Histories, timeout_s: float) -> tuple[str, float]:
    """What Porcupine says of the last, and its time for all."""
    text = "".join(_as_text(each, timeout_s) for each in histories)
    done = subprocess.run([driver], input=text, capture_output=True, text=True, check=True)
    answers = [line.split() for line in done.stdout.splitlines()]
    return answers[-1][0], sum(int(nanoseconds) for _, nanoseconds in answers) / 1e9


def _as_text(history: Columns, timeout_s: float) -> str:
    keep = (history.complete < NEVER) | (history.kind > REFUSE)
    complete = numpy.where(history.complete < NEVER, history.complete, -1)
    rows = numpy.stack((history.invoke, complete, history.kind, history.old, history.new), axis=1)[keep]
    lines = [
        f"history {len(rows)} {int(timeout_s * 1000)}",
        *(" ".join(map(str, row)) for row in rows.tolist()),
    ]
    return "\n".join(lines) + "\n"


def whole_process(history: Columns) -> float:
    """Seconds from a Parquet file to the verdict in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.parquet"
        write(path, history)
        code = "import sys, pathlib; from checkers import linearizable as them\n"
        code += "print(them.check_parquet(pathlib.Path(sys.argv[1])).result)"
        began_s = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
        )
        seconds = time.perf_counter() - began_s
        assert done.stdout.strip() == "valid", done.stdout
        return seconds


def write(path: Path, history: Columns) -> None:
    """A history.parquet of a register's reads and writes, each of a process of its own."""
    live = history.complete < NEVER
    calls = numpy.arange(len(history))
    rank = numpy.concatenate((history.invoke, history.complete[live]))
    by_rank = numpy.argsort(rank)
    call = numpy.concatenate((calls, calls[live]))[by_rank]
    ends = numpy.concatenate((numpy.zeros(len(history), bool), numpy.ones(int(live.sum()), bool)))[by_rank]
    value = numpy.where(history.kind == OBSERVE, history.old, history.new)[call]
    hidden = (history.kind[call] == OBSERVE) & ~ends | (value == 0)
    count = len(call)
    nothing = pyarrow.nulls(count, pyarrow.string())
    names = {
        "index": numpy.arange(count), "time_ns": numpy.arange(count), "process": call,
        "type": pyarrow.array(numpy.where(ends, "ok", "invoke")), "actor": pyarrow.array(["client"] * count),
        "f": pyarrow.array(numpy.where(history.kind[call] == OVERWRITE, "write", "read")),
        "key": pyarrow.array(["x"] * count), "node": nothing, "role": nothing, "mode": nothing, "error": nothing,
        "phase": pyarrow.array(["load"] * count), "value": pyarrow.array(value.astype(str), mask=hidden),
    }  # fmt: skip
    table = (
        pyarrow.table(names)
        .cast(parquet._schema())
        .replace_schema_metadata({parquet._METADATA: header_line(Header())})
    )
    pyarrow.parquet.write_table(table, path, compression="zstd")


def main() -> None:
    arguments = argparse.ArgumentParser(description="Linearizability, side by side with Porcupine.")
    arguments.add_argument(
        "--driver", type=Path, help="Porcupine's driver, built from bench/porcupine_driver"
    )
    arguments.add_argument("--timeout", type=float, default=30.0, help="seconds for each history")
    arguments.add_argument("--long", action="store_true", help="with what takes Porcupine minutes")
    given = arguments.parse_args()
    decide_columns(columns(100, 3), Limits())  # loads the kernels
    rows = []
    for name, histories in side_by_side(given.long):
        answer, seconds = ours(histories, given.timeout)
        row = [name, answer, f"{seconds * 1e3:.2f} ms", "", "", ""]
        if given.driver is not None:
            theirs, their_seconds = porcupine(
                given.driver, histories, given.timeout if not given.long else 600
            )
            row[3:] = [theirs, f"{their_seconds * 1e3:.0f} ms", f"{their_seconds / seconds:.0f} ×"]
        rows.append(row)
    print_table(("history", "ours", "time", "Porcupine", "time", "ratio"), rows)
    print()
    alone = []
    for name, histories in ours_alone():
        answer, seconds = ours(histories, given.timeout, times=3)
        alone.append([name, answer, f"{seconds * 1e3:.1f} ms"])
    seconds = whole_process(columns(1_000_000, 5, unique=True, cas=False))
    alone.append(["1M × 5 from Parquet, the whole process", "valid", f"{seconds * 1e3:.0f} ms"])
    print_table(("history", "answer", "time"), alone)


if __name__ == "__main__":
    main()
