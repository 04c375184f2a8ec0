"""`qsync analyze`: adds new runs under results/ to the tables, and makes the aggregates anew.

With nothing new no Spark is started. Runs with removed folders (retention) stay in the tables: this is the
purpose of the tables.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, date, datetime
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

from checkers.history import HistoryError, parquet, segments
from harness.errors import StoreError
from harness.pipeline.overview import AGGREGATES
from harness.pipeline.places import place_of
from harness.pipeline.remote_tables import RemoteTables
from harness.pipeline.report import Report
from harness.pipeline.sources import Source, source_of
from harness.pipeline.tables import State, Tables
from harness.store import LeftOut, Scan, StoredRun, hashes
from harness.store.objects import Address
from harness.store.remote_runs import at_once
from harness.store.run_folder import COLUMNS, HISTORY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Step = Callable[[str, int, int], None]
"""Told of progress: what was finished, how many steps are, and how many there are in all."""
NOT_OURS = "plan.json or verdict.json is not ours"
AT_ONCE = 3
FEW = 8
"""Up to so many runs what takes the time is starting things, compiling among them."""
_FOR_FEW = {
    "spark.qsync.fewRuns": "yes",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
}
STEPS = 16


def analyze(
    results: Path | Address,
    folder: Path | Address,
    session: Callable[[], AbstractContextManager[SparkSession]],
    *,
    anew: bool = False,
    step: Step = lambda what, done, of: None,
    spool: Path | None = None,
) -> Report:
    """Bring the tables in `folder` up to date with `results`. Raises HarnessError in one line.

    `spool`: a folder for what is fetched from addresses, and for a copy of tables that are kept at one.
    """
    began_s = time.monotonic()
    source = source_of(results, spool)
    tables = _tables_of(folder, spool)
    with tables.opened() as stored:
        state = State() if anew else stored
        found = source.scan()
        if anew:
            tables.forget_all()
        elif state.schema not in ("", _schema_mark()):
            _read_again(state, found)
        report = _bring_in(tables, state, source, found, session, step)
        for name in AGGREGATES:  # they are here then, and verified, for their readers
            tables.files(name)
    report.seconds = round(time.monotonic() - began_s, 3)
    return report


def _tables_of(folder: Path | Address, spool: Path | None) -> Tables:
    if isinstance(folder, Path):
        return Tables(folder)
    if spool is None:
        raise StoreError(f"tables at {folder} need a folder in which they are made; try: --spool FOLDER")
    return RemoteTables(folder, spool / "tables")


def _read_again(state: State, found: Scan) -> None:
    """The tables have other rows or columns now: every run that is there is read anew, and what retention has removed
    stays as it was (columns that it does not have are null)."""
    state.runs |= {run.name: "" for run in found.runs if run.name in state.runs}
    state.strange = {}


def _bring_in(
    tables: Tables,
    state: State,
    source: Source,
    found: Scan,
    session: Callable[[], AbstractContextManager[SparkSession]],
    step: Step,
) -> Report:
    strange = [run for run in found.runs if state.strange.get(run.name) == run.stamp]
    fresh = [run for run in found.runs if state.runs.get(run.name) != run.stamp and run not in strange]
    report = Report(
        tables=tables.folder,
        place=tables.place,
        known=len(found.runs) - len(fresh) - len(strange),
        left_out=[*found.unfinished, *(_not_ours(run) for run in strange)],
        foreign=list(found.foreign),
    )
    with ExitStack() as stack:
        spark: SparkSession | None = None
        for portion in source.portions(fresh, lambda what: step(what, 0, STEPS)):
            usable, broken = _usable(portion.runs, source.has)
            report.left_out = [*broken, *report.left_out, *portion.left_out]  # of many, the first are shown
            report.changed_files += sum(each.why.startswith(hashes.CHANGED) for each in broken)
            if not usable:
                continue
            if spark is None:
                spark = stack.enter_context(session())
                report.spark = _versions(spark)
                step("Spark has started", 1, STEPS)
            _bring_in_portion(spark, tables, state, usable, step, report)
    return report


def _bring_in_portion(
    spark: SparkSession, tables: Tables, state: State, usable: list[StoredRun], step: Step, report: Report
) -> None:
    before = dict(state.runs)
    from harness.pipeline.session import in_one_line

    with in_one_line(StoreError, "the tables are as they were"):
        strange = _Batch(spark, tables, state, usable, step).run()
    taken = [run for run in usable if run not in strange]
    report.left_out += [_not_ours(run) for run in strange]
    report.new += sum(run.name not in before for run in taken)
    report.changed += sum(run.name in before for run in taken)


def _versions(spark: SparkSession) -> Mapping[str, str]:
    from harness.pipeline.session import versions

    return versions(spark)


def _not_ours(run: StoredRun) -> LeftOut:
    return LeftOut(run.address or run.path, NOT_OURS)


def _usable(
    runs: Sequence[StoredRun], is_fetched: Callable[[str], bool]
) -> tuple[list[StoredRun], list[LeftOut]]:
    """Those that are whole: a kill may have come between the verdict and the columns, a disk may have spoilt a file.

    `is_fetched`: which files of a run are here.
    """
    reasons = at_once(partial(_why_broken, is_fetched), runs)
    found = list(zip(runs, reasons, strict=True))
    broken = [LeftOut(run.address or run.path, why) for run, why in found if why is not None]
    return [run for run, why in found if why is None], broken


def _why_broken(is_fetched: Callable[[str], bool], run: StoredRun) -> str | None:
    import pyarrow

    try:
        changed = hashes.changed(run.path, is_fetched)
        if changed:
            return (
                f"{hashes.CHANGED}: {'; '.join(changed)}; try: the file as it was, or qsync check {run.place}"
            )
        names = set(parquet.opened(run.path / COLUMNS).schema_arrow.names)
    except FileNotFoundError:
        empty = _is_empty(run.path / HISTORY)
        return None if empty else f"half-written: no {COLUMNS}; try: qsync check {run.place}"
    except StoreError as error:
        return error.message
    except (OSError, pyarrow.ArrowException, HistoryError):
        return f"half-written: {COLUMNS} is torn; try: qsync check {run.place}"
    lacking = {"index", "time_ns", "process", "type", "f", "value"} - names
    return f"{COLUMNS} is not ours: it has no column {sorted(lacking)[0]}" if lacking else None


def _is_empty(history: Path) -> bool:
    """Nothing but the header was recorded."""
    with segments.stream(history) as lines:
        return sum(1 for _, _ in zip(lines, range(2), strict=False)) < 2


@contextmanager
def _settings_for(spark: SparkSession, runs: int) -> Iterator[None]:
    """Those for few runs, if they are few; a session that lives on has its own again afterwards."""
    wanted = _FOR_FEW if runs <= FEW else {}
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, was in before.items():
            if was is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, was)


class _Batch:
    """One call's new rows, from their runs into place."""

    def __init__(
        self, spark: SparkSession, tables: Tables, state: State, runs: Sequence[StoredRun], step: Step
    ) -> None:
        self.spark, self.tables, self.state = spark, tables, state
        self.runs = runs
        self.done = 1
        self._step = step
        self.again = {run.name: run for run in runs if run.name in state.runs}

    def run(self) -> list[StoredRun]:
        """Put the rows in place; gives the runs with documents that are not ours."""
        with _settings_for(self.spark, len(self.runs)):
            return self._run()

    def _run(self) -> list[StoredRun]:
        from harness.pipeline import curate, documents, workers

        found = self._found()
        parsed = curate.kept(documents.parsed(curate.read_by(workers.documents, workers.DOCUMENTS, found)))
        strange = {row.run for row in parsed.where(f"not ({documents.readable()})").select("run").collect()}
        usable = [run for run in self.runs if run.name not in strange]
        with_events = [run.path for run in usable if (run.path / COLUMNS).exists()]
        events = curate.events_of(self.spark, with_events)
        if strange:
            found, parsed = (frame.where(~frame["run"].isin(list(strange))) for frame in (found, parsed))
        removed = self._write(curate.curated(found, parsed, events))
        self.state.runs |= {run.name: run.stamp for run in usable}
        self.state.strange |= {run.name: run.stamp for run in self.runs if run.name in strange}
        self.state.batch += 1
        self.state.schema = _schema_mark()
        self.tables.commit(self.state, removed, curate.AGGREGATES)
        self._finished("put in place")
        return [run for run in self.runs if run.name in strange]

    def _found(self) -> DataFrame:
        import pyarrow

        from harness.pipeline.schemas import RUNS_FOUND

        rows = [
            (run.name, str(run.path), run.campaign, date.fromisoformat(run.date), _started(run), run.place)
            for run in self.runs
        ]
        columns = dict(zip(RUNS_FOUND.fieldNames(), zip(*rows, strict=True), strict=True))
        found = self.spark.createDataFrame(pyarrow.table(columns), RUNS_FOUND)
        if len(rows) <= FEW:
            return found.coalesce(1)
        return found.repartition(min(len(rows), 4 * self.spark.sparkContext.defaultParallelism)).cache()

    def _write(self, curated: Mapping[str, Callable[[], DataFrame]]) -> list[Path]:
        """Write all tables to staging, and what they say together; gives the files that they take the place of."""
        from harness.pipeline import curate

        removed: list[Path] = []
        jobs: dict[str, Callable[[], None]] = {}
        for name, making in curated.items():
            kept, gone = self._of_touched_partitions(name)
            removed += gone
            jobs[name] = partial(self._write_one, name, making, kept)
        gone_for_good = set(removed)
        standing = {
            name: [file for file in self.tables.files(name) if file not in gone_for_good]
            for name in curate.AGGREGATED
        }
        for name, making in curate.aggregated(partial(self._whole, standing)).items():
            jobs[name] = partial(self._write_aggregate, name, making)
        self._together(jobs)
        return removed

    def _write_one(self, name: str, making: Callable[[], DataFrame], kept: DataFrame | None) -> None:
        from harness.pipeline.curate import write

        table = making()
        write(table if kept is None else table.unionByName(kept), self.tables.staging / name)

    def _of_touched_partitions(self, name: str) -> tuple[DataFrame | None, list[Path]]:
        """Of partitions that hold a run which is read again: the rows of the other runs, and the files to replace."""
        from harness.pipeline.curate import stored

        places = sorted({(run.campaign, run.date) for run in self.again.values()})
        files = [file for place in places for file in self.tables.partition(name, *place)]
        if not files:
            return None, []
        rows = stored(self.spark, self.tables.folder, name, files)
        return rows.where(~rows["run"].isin(list(self.again))), files

    def _whole(self, standing: Mapping[str, Sequence[Path]], name: str) -> DataFrame:
        """A table as it will be: the files that stay, and what lies in staging."""
        from harness.pipeline.curate import gathered, stored

        staged = sorted((self.tables.staging / name).glob("**/*.parquet"))
        parts = stored(self.spark, self.tables.folder, name, standing[name]).unionByName(
            stored(self.spark, self.tables.staging, name, staged)
        )
        return gathered(parts)

    def _write_aggregate(self, name: str, making: Callable[[], DataFrame]) -> None:
        from harness.pipeline.curate import write

        write(making(), self.tables.staging / name, is_partitioned=False)

    def _together(self, jobs: Mapping[str, Callable[[], None]]) -> None:
        """Small jobs leave cores idle: a few at once, each as soon as what it stands on is written."""
        from harness.pipeline.curate import NEEDS

        order = TopologicalSorter({name: NEEDS.get(name, frozenset()) for name in jobs})
        order.prepare()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            running: dict[Future[None], str] = {}
            try:
                while order.is_active():
                    running |= {pool.submit(jobs[name]): name for name in order.get_ready()}
                    for one in wait(running, return_when=FIRST_COMPLETED).done:
                        one.result()
                        order.done(running[one])
                        self._finished(running.pop(one))
            finally:
                pool.shutdown(cancel_futures=True)  # of those that wait, if one broke

    def _finished(self, what: str) -> None:
        self.done += 1
        self._step(what, self.done, STEPS)


def _started(run: StoredRun) -> datetime:
    return datetime.strptime(run.path.name.partition("-")[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)


def _schema_mark() -> str:
    """Changes with whatever decides the tables' rows."""
    own = Path(__file__).parent
    names = ("schemas.py", "operations.py", "latency.py", "documents.py", "node_files.py", "workers.py")
    text = b"".join((own / name).read_bytes() for name in names)
    return hashlib.sha256(text).hexdigest()[:16]


def tables_place(results: Path | Address, given: Path | None) -> Path | Address:
    """Where the tables are: beside the runs, under a name that no plan can have."""
    if given is None and "QSYNC_TABLES" in os.environ:
        given = Path(os.environ["QSYNC_TABLES"])
    return results / "_tables" if given is None else place_of(given)
