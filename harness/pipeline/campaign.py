"""The runs of a campaign, judged together in one Spark session.

Most runs are judged as a whole, each by some worker, which writes verdict, columns and page to the run's folder. The
record of a long run is too much for one worker: its checks, keys and segments are spread, one such run after the other.
The result of a run is the same as that of `harness.campaigns.judging`. Results are handed on in portions, so
that a campaign that is killed meanwhile has noted all but the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from checkers.check import RunCheck, run_here
from checkers.history import HistoryError, segments
from harness.campaigns.journal import Ended, ToJudge
from harness.campaigns.judging import Judge, judged
from harness.errors import HarnessError
from harness.pipeline.checking import answers, spread_checks
from harness.pipeline.session import SparkError, in_one_line, session
from harness.results import RunFolder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG_BYTES = 64 << 20
"""A record from which on a run's own checks are spread: some hundred thousand operations."""
PORTION = 4
"""Runs for each core that are handed out together."""


def judge_on(master: str, settings: Mapping[str, str]) -> Judge:
    """A judge that starts its session when there is something to judge."""

    def judge(results: Path, runs: list[ToJudge]) -> Iterator[Ended]:
        with (
            session(master, conf=settings) as spark,
            in_one_line(
                SparkError,
                "the runs are kept: the same command goes on, with --engine process without Spark",
            ),
        ):
            yield from judge_with(spark, results, runs)

    return judge


def judge_with(spark: SparkSession, results: Path, runs: Sequence[ToJudge]) -> Iterator[Ended]:
    """The result of each run: short runs first, each in one task, and long runs after them, each over many tasks."""
    long = [run for run in runs if _size(results / run.run) >= LONG_BYTES]
    whole = [run for run in runs if run not in long]
    portion = PORTION * spark.sparkContext.defaultParallelism
    for start in range(0, len(whole), portion):
        asked = [(str(results), msgspec.json.encode(run).decode()) for run in whole[start : start + portion]]
        for answer in answers(spark, asked, _answer):
            yield msgspec.json.decode(answer, type=Ended)
    for run in long:
        yield judged(results, run, _spread(spark, RunFolder(results / run.run)))


def _spread(spark: SparkSession, folder: RunFolder) -> RunCheck:
    """The run's checks on Spark. Errors of Spark are raised, because they are not the run's."""
    try:
        return spread_checks(spark, folder)
    except HarnessError:
        return run_here  # which says what is wrong with the record


def _size(run: Path) -> int:
    try:
        return segments.size(RunFolder(run).history)
    except (OSError, HistoryError):
        return 0  # the judge reports what is wrong


def _answer(results: str, run: str | None) -> str:
    """Judge one run, in a worker."""
    assert run is not None
    ended = judged(Path(results), msgspec.json.decode(run, type=ToJudge))
    return msgspec.json.encode(ended).decode()
