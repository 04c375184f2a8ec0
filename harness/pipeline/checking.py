"""Checks of runs on Spark: checks, keys, segments of long keys, and whole runs, spread over workers.

A worker runs the very checks that a run in process has, on part of a history: all of it for most checks; some keys, or
one segment of a key, for linearizability, which is local. Keys that a worker does not find to be fine are decided once
more in process, together, so that the verdict and its witnesses are those that there would be without Spark. Workers
read the runs themselves: they must see the same results folder.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from checkers.check import Check, RunCheck, run_here
from checkers.history.history import History, by_key
from checkers.history.operation import Operation
from checkers.linearizable import merging
from checkers.linearizable.segments import segments
from checkers.verdict import CheckerDefect, Verdict, run_safely
from harness.judge import Case
from harness.judge.time_limit import Elsewhere
from harness.results import RunFolder
from harness.run.finish import finish, judged_again, read_history
from harness.systems import plans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINEARIZABLE = "linearizable"
KEYED = frozenset({"read", "write", "cas"})
SEGMENT = 20_000
"""Operations of one key from which on it is cut; half of that is a segment's least length."""
_TASK = "number int, path string, task string"
_ANSWER = "number int, answer string"
Answer = Callable[[str, str | None], str]
"""The work of a worker: a path and a task → its answer, as JSON."""


class Task(msgspec.Struct, frozen=True):
    """A check on part of a run's history. `keys` None: all of it; `segment`: that one of the only key, which is cut
    into segments of `least` operations.
    """

    check: str
    keys: tuple[str, ...] | None = None
    segment: int | None = None
    least: int = 0


def checks_of(folder: RunFolder, history: History) -> dict[str, Check]:
    """The checks of a run by name, as the judge has them. `history`: all of it."""
    case = Case(plans.read(folder.plan_file), history)
    return {check.name: check for check in case.checks}


class Said(msgspec.Struct, frozen=True):
    """A worker's answer to a task: a verdict, or a defect of the checker. A defect breaks this run and not the job."""

    verdict: dict[str, Any] | None = None
    defect: str = ""

    def told(self) -> Verdict:
        """Raises CheckerDefect where the worker had one."""
        if self.verdict is None:
            raise CheckerDefect(self.defect)
        return Verdict.from_json(self.verdict)


def check_run(spark: SparkSession, folder: RunFolder) -> dict[str, Any]:
    """`finish` for a stored run, its checks on Spark; the same verdict."""
    return finish(folder, plans.read(folder.plan_file), run_check=spread_checks(spark, folder))


def spread_checks(spark: SparkSession, folder: RunFolder) -> RunCheck:
    """Have workers judge a run's record, and give how its checks come to their verdicts."""
    told = _told(spark, folder)

    def run_check(check: Check, of: History) -> Verdict:
        if check.name not in told:  # of the nodes' logs, which stay with the driver
            return run_here(check, of)
        return _put_together(check, of, [(task, said.told()) for task, said in told[check.name]])

    return run_check


def _told(spark: SparkSession, folder: RunFolder) -> dict[str, list[tuple[Task, Said]]]:
    history = read_history(folder)
    tasks = list(_tasks(checks_of(folder, history), history, 2 * spark.sparkContext.defaultParallelism))
    told: dict[str, list[tuple[Task, Said]]] = {}
    asked = [(str(folder.path), msgspec.json.encode(task).decode()) for task in tasks]
    for task, answer in zip(
        tasks, answers(spark, asked, functools.partial(_answer, Elsewhere.now())), strict=True
    ):
        told.setdefault(task.check, []).append((task, msgspec.json.decode(answer, type=Said)))
    return told


def check_runs(spark: SparkSession, folders: Sequence[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Judge many stored runs again, each as a whole on some worker, which writes its verdict and its page.

    Gives outcome, exit code and sentence of each, in order; of one that cannot be judged its exit code and why.
    """
    answer = functools.partial(_answer, Elsewhere.now())
    told = answers(spark, [(str(folder), None) for folder in folders], answer)
    for folder, said in zip(folders, told, strict=True):
        yield folder, msgspec.json.decode(said)


def answers(spark: SparkSession, asked: Sequence[tuple[str, str | None]], answer: Answer) -> list[str]:
    """The workers' answers to each path and task, in order. Each has a partition, so a slow one delays no other."""
    rows = [(number, path, task) for number, (path, task) in enumerate(asked)]
    frame = spark.createDataFrame(rows, _TASK).repartitionByRange(max(1, len(rows)), "number")
    work = functools.partial(_work, answer)
    found = {row.number: row.answer for row in frame.mapInArrow(work, _ANSWER).collect()}
    return [found[number] for number in range(len(rows))]


# ---- in the driver


def _tasks(checks: Mapping[str, Check], history: History, parts: int) -> Iterator[Task]:
    for name in checks:
        if name == LINEARIZABLE and _is_local(history):
            yield from _by_keys(history, parts)
        else:
            yield Task(name)


def _is_local(history: History) -> bool:
    """Every operation that is judged is about one key, and of a kind that segments know."""
    return all(
        operation.f == "dump" or (operation.f in KEYED and operation.key is not None)
        for operation in history.operations
    )


def _by_keys(history: History, parts: int) -> Iterator[Task]:
    """Neighbouring keys together, in parts of about the same work; long keys by their segments."""
    groups = {key: operations for key, operations in by_key(_judged(history)).items() if key is not None}
    least = sum(map(len, groups.values())) / parts
    held: list[str] = []
    work = 0
    for key, operations in groups.items():
        pieces = len(segments(operations, SEGMENT // 2)) if len(operations) >= SEGMENT else 1
        if pieces > 1:
            yield from (Task(LINEARIZABLE, (key,), number, SEGMENT // 2) for number in range(pieces))
            continue
        held.append(key)
        work += len(operations)
        if work >= least:
            yield Task(LINEARIZABLE, tuple(held))
            held, work = [], 0
    if held or not groups:
        yield Task(LINEARIZABLE, tuple(held))


def _judged(history: History) -> list[Operation]:
    return [operation for operation in history.operations if operation.f != "dump"]


def _put_together(check: Check, history: History, told: Sequence[tuple[Task, Verdict]]) -> Verdict:
    """The verdict on all from those on parts. A part that is not plainly valid is decided again here."""
    if told[0][0].keys is None:
        return told[0][1]
    by_keys: dict[tuple[str, ...], list[Verdict]] = {}
    for task, verdict in told:
        by_keys.setdefault(task.keys or (), []).append(verdict)
    if not all("keys_invalid" in verdict.details for _, verdict in told):
        return run_safely(check.run, history, name=check.name)
    fine: list[Verdict] = []
    again: list[str] = []
    for keys, verdicts in by_keys.items():
        wrong = [
            key
            for each in verdicts
            for key in (*each.details["keys_invalid"], *each.details["keys_undecided"])
        ]
        if not wrong:
            fine.append(verdicts[0] if len(verdicts) == 1 else merging.of_segments(verdicts))
        else:  # all of its task: only whole parts can be added up
            again += keys
    rest = run_safely(check.run, _only(history, frozenset(again)), name=check.name) if again else None
    if rest is not None and "keys_invalid" not in rest.details:
        return rest
    return merging.merged(fine, rest)


def _only(history: History, keys: frozenset[str]) -> History:
    return replace(history, operations=tuple(each for each in history.operations if each.key in keys))


# ---- in the workers


def _work(answer: Answer, batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow

    for batch in batches:
        rows = batch.to_pylist()
        said = [answer(row["path"], row["task"]) for row in rows]
        numbers = pyarrow.array([row["number"] for row in rows], pyarrow.int32())
        yield pyarrow.RecordBatch.from_arrays(
            [numbers, pyarrow.array(said, pyarrow.string())], ["number", "answer"]
        )


def _answer(limits: Elsewhere, path: str, task: str | None) -> str:
    if task is None:
        with limits.held():
            return msgspec.json.encode(judged_again(Path(path))).decode()
    asked = msgspec.json.decode(task, type=Task)
    history = _read(path)
    check = checks_of(RunFolder(Path(path)), history)[asked.check]
    try:
        with limits.held():
            verdict = run_safely(check.run, _part(history, asked), name=check.name)
        said = Said(verdict=verdict.to_json())
    except CheckerDefect as defect:
        said = Said(defect=str(defect))
    return msgspec.json.encode(said).decode()


@functools.lru_cache(maxsize=1)
def _read(path: str) -> History:
    """A worker has several tasks of the same run."""
    return read_history(RunFolder(Path(path)))


def _part(history: History, task: Task) -> History:
    if task.keys is None:
        return history
    part = _only(history, frozenset(task.keys))
    if task.segment is None:
        return part
    return replace(part, operations=segments(_judged(part), task.least)[task.segment].operations)
