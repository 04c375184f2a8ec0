"""Linearizability, side by side with Porcupine in one run.

    python -m bench.linearizable [--driver PATH] [--timeout SECONDS] [--memory GIB] [--long]

The driver is Porcupine behind standard input, bench/porcupine_driver; the README there tells how to build it. Without
one only our own times are shown. Both get the same histories as numbers, have read them before the clock starts, and
are shown with the best of a few times. Ours are those of a process that has loaded its kernels; `--long` asks
Porcupine for the histories too on which it takes minutes, or memory without end.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.parquet

from bench.table import print_table
from checkers.history import Header, foreign, parquet
from checkers.history.jsonl import header_line
from checkers.limits import Limits as TimeLimit
from checkers.limits import within
from checkers.linearizable import many
from checkers.linearizable.columns import Columns, register_columns
from checkers.linearizable.decide import decide_columns
from checkers.linearizable.models import Register
from checkers.linearizable.search import Call, Limits
from checkers.linearizable.search_kernels import NEVER, OBSERVE, OVERWRITE, REFUSE
from tests.checkers.linearizable.generated import columns

LOGS = Path(__file__).parents[1] / "tests" / "checkers" / "histories" / "porcupine"
LIMITS = Limits(configurations=20_000_000)  # rows of some 100 bytes
Histories = Sequence[Columns]


def histories(long: bool) -> Iterable[tuple[str, Histories, bool]]:
    """Name, histories, and whether Porcupine is to be asked for a verdict of them."""
    unique = {"unique": True, "cas": False}
    yield "register, unique writes, 10k × 5", [columns(10_000, 5, **unique)], True
    yield "register, unique writes, 10k × 10", [columns(10_000, 10, **unique)], True
    yield "the same, a stale read", [columns(10_000, 10, stale=True, **unique)], True
    yield "register, unique writes, 100k × 5", [columns(100_000, 5, **unique)], long
    yield "the same, 2,500 crashed", [columns(100_000, 10, crashed=2_500, **unique)], long
    yield "register, unique writes, 1M × 5", [columns(1_000_000, 5, **unique)], long
    yield "cas, 1k × 5", [columns(1_000, 5)], True
    yield "cas, 10k × 10", [columns(10_000, 10)], True
    yield "the same, a stale read", [columns(10_000, 10, stale=True)], True
    yield "cas, 100k × 10", [columns(100_000, 10)], long
    yield "cas, 1M × 5", [columns(1_000_000, 5)], long
    yield "cas, 10k × 30, a stale read", [columns(10_000, 30, stale=True)], long
    yield "cas, 100k × 30, a stale read", [columns(100_000, 30, stale=True)], long
    yield "cas, 10k × 10, 55 crashed", [columns(10_000, 10, crashed=55)], long
    yield "the same, a stale read", [columns(10_000, 10, crashed=55, stale=True)], long
    yield "the etcd logs of Jepsen, in one process", etcd_logs(), True


def etcd_logs() -> Histories:
    """The logs with a published verdict, as columns."""
    model, histories = Register(), []
    for path in sorted(LOGS.glob("*.log")):
        if path.name == "etcd_095.log":
            continue
        operations = foreign.read(path).operations
        calls = [
            Call(action, each.invoke_index, each.returned_index)
            for each in operations
            if (action := model.action(each)) is not None
        ]
        histories.append(register_columns(calls, (None,))[0])
    return histories


def ours(histories: Histories, timeout_s: float) -> tuple[list[str], float, float]:
    """The answers, and the best of a few times in seconds: by the clock, and of the core."""
    best = least = float("inf")
    together = many.joined(histories)
    for _ in range(7):
        began_s, core_s = time.perf_counter(), time.process_time()
        with within(TimeLimit(timeout_s)):
            if len(histories) == 1:
                found: Any = decide_columns(histories[0], LIMITS)
            else:
                found = many.decide(together, LIMITS)
        best, least = (
            min(best, time.perf_counter() - began_s),
            min(least, time.process_time() - core_s),
        )
        if best > 1:
            break
    if len(histories) == 1:
        answers = [found.result]
    else:
        answers = [("no", "yes", "unknown")[answer] for answer in found[:, 0].tolist()]
    return answers, best, least


@dataclass(frozen=True, slots=True, kw_only=True)
class Porcupine:
    """A driver, and how much it may take for one history."""

    driver: Path
    timeout_s: float
    memory_gib: float

    def ask(self, histories: Histories, times: int) -> tuple[list[str], float]:
        """Its answers, and the best of a few times for all of them; where there are none, how long that took."""
        best = float("inf")
        answers: list[str] = []
        for _ in range(times):
            answers, seconds = self._once("".join(as_text(each, self.timeout_s) for each in histories))
            best = min(best, seconds)
            if best > 1:
                break
        return answers, best

    def _once(self, text: str) -> tuple[list[str], float]:
        began_s = time.perf_counter()
        try:
            done = subprocess.run(
                [self.driver], input=text, capture_output=True, text=True, check=False,
                timeout=10 * self.timeout_s, preexec_fn=self._bound,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return ["killed"], time.perf_counter() - began_s
        if done.returncode:
            reason = "no memory" if "out of memory" in done.stderr else f"exit {done.returncode}"
            return [reason], time.perf_counter() - began_s
        lines = [line.split() for line in done.stdout.splitlines()]
        return [line[0] for line in lines], sum(int(line[1]) for line in lines) / 1e9

    def _bound(self) -> None:
        limit = int(self.memory_gib * (1 << 30))
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def as_text(history: Columns, timeout_s: float) -> str:
    keep = (history.complete < NEVER) | (history.kind > REFUSE)
    complete = numpy.where(history.complete < NEVER, history.complete, -1)
    rows = numpy.stack((history.invoke, complete, history.kind, history.old, history.new), axis=1)[keep]
    lines = [
        f"history {len(rows)} {int(timeout_s * 1000)}",
        *(" ".join(map(str, row)) for row in rows.tolist()),
    ]
    return "\n".join(lines) + "\n"


def whole_process(history: Columns) -> tuple[float, float]:
    """Seconds of `qsync check` from a Parquet file to the verdict: by the clock, and of the core."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.parquet"
        write(path, history)
        began_s, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-m", "harness.cli", "check", str(path)],
            capture_output=True,
            text=True,
            check=True,
        )
        seconds, after = time.perf_counter() - began_s, resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.stdout.startswith("VALID"), done.stdout
        return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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
    given = {
        "index": numpy.arange(count), "time_ns": numpy.arange(count), "process": call,
        "type": pyarrow.array(numpy.where(ends, "ok", "invoke")), "actor": pyarrow.array(["client"] * count),
        "f": pyarrow.array(numpy.where(history.kind[call] == OVERWRITE, "write", "read")),
        "key": pyarrow.array(["x"] * count), "phase": pyarrow.array(["load"] * count),
        "value": pyarrow.array(value.astype(str), mask=hidden),
    }  # fmt: skip
    schema = parquet.schema()
    nothing = pyarrow.nulls(count, pyarrow.string())
    table = (
        pyarrow.table({name: given.get(name, nothing) for name in schema.names})
        .cast(schema)
        .replace_schema_metadata({parquet._METADATA: header_line(Header())})
    )
    pyarrow.parquet.write_table(table, path, compression="zstd")


def row(name: str, histories: Histories, porcupine: Porcupine | None, timeout_s: float) -> list[str]:
    """A line of the table. Raises AssertionError where the two contradict each other."""
    answers, seconds, core_s = ours(histories, timeout_s)
    found = [name, _together(answers), _time(seconds), _time(core_s), "", "", ""]
    if porcupine is None:
        return found
    theirs, their_seconds = porcupine.ask(histories, times=3)
    decided = len(theirs) == len(answers) and not {*theirs} - {"yes", "no"}
    assert not decided or theirs == answers, f"{name}: we say {answers}, Porcupine says {theirs}"
    more = "" if decided else "> "
    ratio = f"{more}{their_seconds / seconds:,.0f} ×"
    return [*found[:4], _together(theirs), f"{more}{_time(their_seconds)}", ratio]


def _together(answers: Sequence[str]) -> str:
    return ", ".join(
        word if len(answers) == 1 else f"{count} {word}" for word, count in Counter(answers).items()
    )


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1e3:.2f} ms"


def main() -> None:
    arguments = argparse.ArgumentParser(description="Linearizability, side by side with Porcupine.")
    arguments.add_argument("--driver", type=Path, help="Porcupine's driver, see bench/porcupine_driver")
    arguments.add_argument("--timeout", type=float, default=60.0, help="seconds for each history")
    arguments.add_argument("--memory", type=float, default=16.0, help="GiB of address space for the driver")
    arguments.add_argument("--long", action="store_true", help="ask Porcupine for what takes it minutes, too")
    given = arguments.parse_args()
    if given.driver is not None and shutil.which(given.driver) is None:
        arguments.error(
            f"--driver: expected a program, got {str(given.driver)!r}; "
            "bench/porcupine_driver/README.md tells how to build it"
        )
    porcupine = given.driver and Porcupine(
        driver=given.driver, timeout_s=given.timeout, memory_gib=given.memory
    )
    for warm in (columns(1_000, 3), columns(1_000, 3, stale=True), columns(1_000, 3, unique=True, cas=False)):
        decide_columns(warm, Limits())  # loads the kernels
    many.decide(many.joined([columns(100, 3), columns(100, 4)]), Limits())
    rows = [
        row(name, each, porcupine if asked else None, given.timeout)
        for name, each, asked in histories(given.long)
    ]
    seconds, core_s = whole_process(columns(1_000_000, 5, unique=True, cas=False))
    rows.append(["1M × 5, qsync check of Parquet", "yes", _time(seconds), _time(core_s), "", "", ""])
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    print_table(("history", "ours", "time", "of the core", "Porcupine", "time", "ratio"), rows)
    print(f"\nour peak memory: {peak_gib:.1f} GiB")


if __name__ == "__main__":
    main()
