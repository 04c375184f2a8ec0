"""Checks of runs on Spark: checks, keys, segments of long keys, and whole runs, spread over workers.

A worker runs the same checks as a run in process, on part of a history: all of it for most checks; some keys, or one
segment of a key, for linearizability, which is local. Keys that a worker does not find valid are decided once more in
process, together, so that verdict and witnesses are the same as without Spark. Workers read the runs themselves: they
must see the same results folder.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from checkers.check import Check, RunCheck, run_here
from checkers.history.errors import ModelError
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
    """A check on part of a run's history. `keys` None: all of it; `segment`: the number of a segment of the only key,
    which is cut into segments of `least` operations.
    """

    check: str
    keys: tuple[str, ...] | None = None
    segment: int | None = None
    least: int = 0


def checks_of(folder: RunFolder, history: History) -> dict[str, Check]:
    """The checks of a run by name, as the judge has them. `history`: the whole one."""
    case = Case(plans.read(folder.plan_file), history)
    return {check.name: check for check in case.checks}


class Reply(msgspec.Struct, frozen=True):
    """A worker's answer to a task: a verdict, or a defect of the checker. A defect breaks this run and not the job."""

    verdict: dict[str, Any] | None = None
    defect: str = ""

    def result(self) -> Verdict:
        """The verdict. Raises CheckerDefect if the worker met one."""
        if self.verdict is None:
            raise CheckerDefect(self.defect)
        return Verdict.from_json(self.verdict)


def check_run(spark: SparkSession, folder: RunFolder) -> dict[str, Any]:
    """`finish` for a stored run, its checks on Spark; the same verdict."""
    return finish(folder, plans.read(folder.plan_file), run_check=spread_checks(spark, folder))


def spread_checks(spark: SparkSession, folder: RunFolder) -> RunCheck:
    """Have workers judge a run's record; returns the function that makes a check's verdict of their replies."""
    replies = _replies(spark, folder)

    def run_check(check: Check, of: History) -> Verdict:
        if check.name not in replies:  # of the nodes' logs, which stay with the driver
            return run_here(check, of)
        return _put_together(check, of, [(task, reply.result()) for task, reply in replies[check.name]])

    return run_check


def _replies(spark: SparkSession, folder: RunFolder) -> dict[str, list[tuple[Task, Reply]]]:
    history = read_history(folder)
    tasks = list(_tasks(checks_of(folder, history), history, 2 * spark.sparkContext.defaultParallelism))
    replies: dict[str, list[tuple[Task, Reply]]] = {}
    asked = [(str(folder.path), msgspec.json.encode(task).decode()) for task in tasks]
    for task, answer in zip(
        tasks, answers(spark, asked, functools.partial(_answer, Elsewhere.now())), strict=True
    ):
        replies.setdefault(task.check, []).append((task, msgspec.json.decode(answer, type=Reply)))
    return replies


def check_runs(spark: SparkSession, folders: Sequence[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Judge many stored runs again, each as a whole on some worker, which writes its verdict and its page.

    Yields outcome, exit code and sentence of each, in order; of a run that cannot be judged exit code and reason.
    """
    answer = functools.partial(_answer, Elsewhere.now())
    replies = answers(spark, [(str(folder), None) for folder in folders], answer)
    for folder, reply in zip(folders, replies, strict=True):
        yield folder, msgspec.json.decode(reply)


def answers(spark: SparkSession, asked: Sequence[tuple[str, str | None]], answer: Answer) -> list[str]:
    """The workers' answers to each path and task, in order. Each task has a partition: a slow one delays no other."""
    rows = [(number, path, task) for number, (path, task) in enumerate(asked)]
    frame = spark.createDataFrame(rows, _TASK).repartitionByRange(max(1, len(rows)), "number")
    work = functools.partial(_work, answer)
    by_number = {row.number: row.answer for row in frame.mapInArrow(work, _ANSWER).collect()}
    return [by_number[number] for number in range(len(rows))]


# ---- in the driver


def _tasks(checks: Mapping[str, Check], history: History, parts: int) -> Iterator[Task]:
    for name in checks:
        if name == LINEARIZABLE and _is_local(history):
            yield from _by_keys(history, parts)
        else:
            yield Task(name)


def _is_local(history: History) -> bool:
    """Whether every judged operation is on one key, and of a kind that segments know."""
    return all(
        operation.f == "dump" or (operation.f in KEYED and operation.key is not None)
        for operation in history.operations
    )


def _by_keys(history: History, parts: int) -> Iterator[Task]:
    """Neighbouring keys together, in parts of about the same work; long keys by their segments."""
    groups = {key: operations for key, operations in by_key(_judged(history)).items() if key is not None}
    least = sum(map(len, groups.values())) / parts
    keys: list[str] = []
    work = 0
    for key, operations in groups.items():
        pieces = 1
        with suppress(ModelError):  # the check itself says so, of the whole key
            pieces = len(segments(operations, SEGMENT // 2)) if len(operations) >= SEGMENT else 1
        if pieces > 1:
            yield from (Task(LINEARIZABLE, (key,), number, SEGMENT // 2) for number in range(pieces))
            continue
        keys.append(key)
        work += len(operations)
        if work >= least:
            yield Task(LINEARIZABLE, tuple(keys))
            keys, work = [], 0
    if keys or not groups:
        yield Task(LINEARIZABLE, tuple(keys))


def _judged(history: History) -> list[Operation]:
    return [operation for operation in history.operations if operation.f != "dump"]


def _put_together(check: Check, history: History, results: Sequence[tuple[Task, Verdict]]) -> Verdict:
    """The verdict on the whole from those on parts. Parts that are not plainly valid are decided again, together."""
    if results[0][0].keys is None:
        return results[0][1]
    by_keys: dict[tuple[str, ...], list[Verdict]] = {}
    for task, verdict in results:
        by_keys.setdefault(task.keys or (), []).append(verdict)
    if not all("keys_invalid" in verdict.details for _, verdict in results):
        return run_safely(check.run, history, name=check.name)
    fine: list[Verdict] = []
    again: list[str] = []
    for keys, verdicts in by_keys.items():
        wrong = [
            key
            for part in verdicts
            for key in (*part.details["keys_invalid"], *part.details["keys_undecided"])
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
    return replace(
        history, operations=tuple(operation for operation in history.operations if operation.key in keys)
    )


# ---- in the workers


def _work(answer: Answer, batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow

    for batch in batches:
        rows = batch.to_pylist()
        replies = [answer(row["path"], row["task"]) for row in rows]
        numbers = pyarrow.array([row["number"] for row in rows], pyarrow.int32())
        yield pyarrow.RecordBatch.from_arrays(
            [numbers, pyarrow.array(replies, pyarrow.string())], ["number", "answer"]
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
        reply = Reply(verdict=verdict.to_json())
    except CheckerDefect as defect:
        reply = Reply(defect=str(defect))
    return msgspec.json.encode(reply).decode()


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
