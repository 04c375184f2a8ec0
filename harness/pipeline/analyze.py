"""`qsync analyze`: adds new runs under results/ to the tables, and makes the aggregates anew.

With nothing new no Spark is started. Runs with removed folders (retention) stay in the tables: this is the
purpose of the tables. So do the rows of a run whose files were damaged since they were read.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

from checkers.history.values import many
from harness.errors import StoreError
from harness.pipeline.overview import AGGREGATES
from harness.pipeline.places import place_of
from harness.pipeline.remote_tables import RemoteTables
from harness.pipeline.report import Report
from harness.pipeline.session import in_one_line
from harness.pipeline.sources import Source, source_of
from harness.pipeline.stock import State
from harness.pipeline.tables import Tables
from harness.pipeline.usable import usable
from harness.results import Scan, StoredRun, hashes
from harness.results.objects import Address
from harness.results.run_folder import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Step = Callable[[str, int, int], None]
"""Reports progress: the finished step, how many steps are done, and how many there are in all."""
AT_ONCE = 3
FEW = 8
"""Up to so many runs, starting (and compiling) takes most of the time."""
_FOR_FEW = {
    "spark.qsync.fewRuns": "yes",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
}
STEPS = 19


def analyze(
    results: Path | Address,
    folder: Path | Address,
    session: Callable[[], AbstractContextManager[SparkSession]],
    *,
    anew: bool = False,
    step: Step = lambda words, done, of: None,
    spool: Path | None = None,
) -> Report:
    """Bring the tables in `folder` up to date with `results`. Raises HarnessError in one line.

    `anew`: every run that is there is read again, whatever the tables say of it.
    `spool`: a folder for files that are fetched from addresses, and for a copy of tables at an address.
    """
    began_s = time.monotonic()
    source = source_of(results, spool)
    tables = _tables_of(folder, spool)
    with tables.opened(anew=anew) as state:
        scan = source.scan()
        known = {} if anew else dict(state.runs)
        if anew or state.schema not in ("", _schema_mark()):
            _read_again(state, scan, everything=anew)
        report = _bring_in(tables, state, source, scan, session, step, known)
        report.damaged_tables = tables.stock.damaged
        report.lost = tuple(sorted({*tables.stock.lost} - {run.name for run in scan.runs}))
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


def _read_again(state: State, scan: Scan, *, everything: bool) -> None:
    """The tables have new rows or columns now: every run that is there is read anew. Rows of removed runs stay as they
    are, with null in the new columns.

    `everything`: a run that the state does not know may have rows, too.
    """
    state.runs |= {run.name: "" for run in scan.runs if everything or run.name in state.runs}


def _bring_in(
    tables: Tables,
    state: State,
    source: Source,
    scan: Scan,
    session: Callable[[], AbstractContextManager[SparkSession]],
    step: Step,
    known: Mapping[str, str],
) -> Report:
    """`known`: the runs that count as changed, not as new."""
    fresh = [run for run in scan.runs if state.runs.get(run.name) != run.stamp]
    report = Report(
        tables=tables.folder,
        place=tables.place,
        known=len(scan.runs) - len(fresh),
        left_out=list(scan.unfinished),
        foreign=list(scan.foreign),
    )
    with ExitStack() as stack:
        spark: SparkSession | None = None

        def put(runs: list[StoredRun]) -> None:
            nonlocal spark
            if spark is None:
                spark = stack.enter_context(session())
                step("Spark has started", 1, STEPS)
            there = report.new + report.changed
            kept = f"took in {many(there, 'run')} of the portions before" if there else "are as they were"
            with in_one_line(StoreError, f"the tables {kept}"):
                _Batch(spark, tables, state, runs, step).run()
            report.new += sum(run.name not in known for run in runs)
            report.changed += sum(run.name in known for run in runs)

        for portion in source.portions(fresh, lambda words: step(words, 0, STEPS)):
            whole, broken = usable(portion.runs, source.has)
            report.left_out = [*broken, *report.left_out, *portion.left_out]  # of many, the first are shown
            report.changed_files += sum(skipped.why.startswith(hashes.CHANGED) for skipped in broken)
            if whole:
                put(whole)
        if spark is None and (tables.stock.state.sums or tables.stock.damaged):
            put([])  # no run can be read any more: the rest of the tables is put in order
    return report


@contextmanager
def _settings_for(spark: SparkSession, runs: int) -> Iterator[None]:
    """Settings for few runs, if they are few; afterwards the session has its own settings again."""
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


@contextmanager
def _uncached(spark: SparkSession) -> Iterator[None]:
    """Forget cached frames. A session that lives on would take them for the present content of the same files."""
    try:
        yield
    finally:
        spark.catalog.clearCache()


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

    def run(self) -> None:
        """Put the rows in place."""
        with _settings_for(self.spark, len(self.runs)), _uncached(self.spark):
            removed = self._write(self._curated() if self.runs else {})
        self.state.runs |= {run.name: run.stamp for run in self.runs}
        self.state.batch += 1  # before the commit, whose files have the number in their names
        self.state.schema = _schema_mark()
        self.tables.commit(self.state, removed, AGGREGATES)
        self._finished("put in place")

    def _curated(self) -> Mapping[str, Callable[[], DataFrame]]:
        from harness.pipeline import curate, documents, workers

        scanned = self._scanned()
        parsed = curate.kept(documents.parsed(curate.read_by(workers.documents, workers.DOCUMENTS, scanned)))
        with_events = [run.path for run in self.runs if (run.path / COLUMNS).exists()]
        return curate.curated(scanned, parsed, curate.events_of(self.spark, with_events))

    def _scanned(self) -> DataFrame:
        import pyarrow

        from harness.pipeline.schemas import RUNS_FOUND

        rows = [
            (run.name, str(run.path), run.campaign, run.started.date(), run.started, run.place)
            for run in self.runs
        ]
        columns = dict(zip(RUNS_FOUND.fieldNames(), zip(*rows, strict=True), strict=True))
        frame = self.spark.createDataFrame(pyarrow.table(columns), RUNS_FOUND)
        if len(rows) <= FEW:
            return frame.coalesce(1)
        return frame.repartition(min(len(rows), 4 * self.spark.sparkContext.defaultParallelism)).cache()

    def _write(self, curated: Mapping[str, Callable[[], DataFrame]]) -> list[Path]:
        """Write all tables and their aggregates to staging; returns the files that these replace."""
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
        """A table as it will be: the files that stay, and those in staging."""
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
        """Run a few jobs at once (small ones leave cores idle), each as soon as the tables that it needs are there."""
        from harness.pipeline.curate import NEEDS

        order = TopologicalSorter({name: NEEDS.get(name, frozenset()) & jobs.keys() for name in jobs})
        order.prepare()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            running: dict[Future[None], str] = {}
            try:
                while order.is_active():
                    running |= {pool.submit(jobs[name]): name for name in order.get_ready()}
                    for job in wait(running, return_when=FIRST_COMPLETED).done:
                        job.result()
                        order.done(running[job])
                        self._finished(running.pop(job))
            finally:
                pool.shutdown(cancel_futures=True)  # of those that wait, if one broke

    def _finished(self, words: str) -> None:
        self.done += 1
        self._step(words, self.done, STEPS)


def _schema_mark() -> str:
    """A mark of the code that decides the tables' rows: with a different mark they are made anew."""
    own = Path(__file__).parent
    names = "schemas operations latency documents node_files workers curate aggregates".split()  # noqa: SIM905
    # Of a new form no stored fingerprint is seen again: it would be silent, and so fixed.
    names += ["../campaigns/fingerprint", "../judge/causes"]
    text = b"".join((own / f"{name}.py").read_bytes() for name in names)
    return hashlib.sha256(text).hexdigest()[:16]


def tables_place(results: Path | Address, given: Path | None) -> Path | Address:
    """Where the tables are: beside the runs, under a name that no plan can have."""
    if given is None and (named := os.environ.get("QSYNC_TABLES")):
        given = Path(named)
    return results / "_tables" if given is None else place_of(given)
