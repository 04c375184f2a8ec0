"""From scanned runs to the curated tables, as one plan of DataFrames; nothing is computed before it is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType, StructField, StructType

from harness.pipeline import documents, node_files, workers
from harness.pipeline.latency import latency
from harness.pipeline.operations import fault_spans, meanwhile, paired, sure, with_fault
from harness.pipeline.schemas import EVENTS, PARTITION, TABLES
from harness.results.run_folder import COLUMNS

_RUN_IN_PATH = rf"([^/]+/[^/]+)/{COLUMNS.replace('.', '[.]')}$"


FEW_RUNS = "spark.qsync.fewRuns"
"""Set to "yes" in a session that has few runs to look at."""


def events_of(spark: SparkSession, paths: Sequence[Path]) -> DataFrame:
    """The lines of these runs' records, with the run's name from each file's path."""
    if not paths:
        return spark.createDataFrame([], EVENTS).withColumn("run", F.lit(""))
    files = [named(path / COLUMNS) for path in paths]
    path = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))  # it is a URL
    run = F.regexp_extract(path, _RUN_IN_PATH, 1)
    return gathered(spark.read.schema(EVENTS).parquet(*files).withColumn("run", run))


def named(file: Path) -> str:
    """The file's name with the characters escaped that Spark takes for a pattern."""
    return re.sub(r"([][{}*?\\])", r"\\\1", str(file))


Making = Callable[[], DataFrame]


def curated(scanned: DataFrame, parsed: DataFrame, events: DataFrame) -> dict[str, Making]:
    """How each table of the scanned runs is made; `NEEDS` says which tables it is made from. `parsed`: see
    `documents.parsed`; `scanned` has the schema `RUNS_FOUND`."""
    faults = kept(fault_spans(events))
    spans = sure(faults)
    ended = F.coalesce("complete_ns", "invoke_ns")
    operations = kept(with_fault(paired(events), spans, F.col("invoke_ns"), ended))
    checks = kept(documents.checks(parsed))

    def availability() -> DataFrame:
        return with_fault(gathered(documents.availability(checks)), spans, F.col("from_ns"), F.col("to_ns"))

    @cache
    def sighted() -> DataFrame:
        showing = scanned.join(documents.with_witnesses(parsed), "run", "left_semi")
        return kept(read_by(workers.fingerprints, workers.FINGERPRINTS, showing))

    def witnesses(of: Callable[[DataFrame, DataFrame], DataFrame]) -> DataFrame:
        return with_fault(of(checks, sighted()), spans, F.col("start_ns"), F.col("end_ns"))

    tables: dict[str, Making] = {
        "operations": lambda: operations,
        "runs": lambda: documents.runs(scanned, parsed).drop(*PARTITION),
        "node_log": lambda: node_files.node_log(read_by(workers.node_log, workers.NODE_LOG, scanned)),
        "anomalies": lambda: witnesses(documents.anomalies),
        "findings": lambda: witnesses(documents.findings),
        "verdicts": lambda: documents.verdicts(checks),
        "availability": availability,
        "cuts": lambda: documents.cuts(events, parsed, checks),
        "latency": lambda: latency(operations),
        "faults": lambda: meanwhile(faults, operations),
        "wal": lambda: node_files.wal(read_by(workers.wal, workers.WAL, scanned), operations),
    }
    return {name: partial(_table, name, making) for name, making in tables.items()}


def is_of_few(frame: DataFrame) -> bool:
    """Whether its session has few runs to look at."""
    return bool(frame.sparkSession.conf.get(FEW_RUNS, "") == "yes")


def kept(frame: DataFrame) -> DataFrame:
    """The frame, computed once for all that use it. Few rows are kept as they are: for compressed columns Spark would
    compile code."""
    return gathered(frame).localCheckpoint(eager=False) if is_of_few(frame) else frame.cache()


def gathered(frame: DataFrame) -> DataFrame:
    """The frame; few rows in one partition, so that no step needs a shuffle."""
    return frame.coalesce(1) if is_of_few(frame) else frame


def _table(name: str, making: Making) -> DataFrame:
    """The columns of the written schema, in its order and of its types. Campaign and day (UTC) are from the run's name:
    `<plan>/<utc>-<seed>`.
    """
    placed = making().withColumns(
        {
            "campaign": F.substring_index("run", "/", 1),
            "date": F.to_date(F.substring(F.substring_index("run", "/", -1), 1, 8), "yyyyMMdd"),
        }
    )
    return placed.select(
        *[F.col(field.name).cast(field.dataType).alias(field.name) for field in TABLES[name].fields]
    )


def read_by(function: Callable[[Iterable[Any]], Iterator[Any]], schema: str, scanned: DataFrame) -> DataFrame:
    """The rows that a function of `workers` yields for these runs. A few runs are read in this process: that takes
    less time than starting the workers.
    """
    asked = scanned.select("run", "path")
    if not is_of_few(scanned):
        return asked.mapInArrow(function, schema)
    import pyarrow

    rows = pyarrow.RecordBatch.from_pylist([row.asDict() for row in asked.collect()])
    batches = list(function([rows]))
    if not batches:
        return gathered(scanned.sparkSession.createDataFrame([], schema))
    return gathered(scanned.sparkSession.createDataFrame(pyarrow.Table.from_batches(batches), schema))


def stored(spark: SparkSession, folder: Path, name: str, files: Sequence[Path]) -> DataFrame:
    """These files of a table under `folder`; an empty table if there are none."""
    if not files:
        return spark.createDataFrame([], TABLES[name])
    written = StructType([*TABLES[name].fields, StructField("bit", BooleanType())])
    read = spark.read.schema(written).option("basePath", str(folder / name)).parquet(*map(named, files))
    return in_todays_words(read, name).select(*TABLES[name].fieldNames())


def in_todays_words(table: DataFrame, name: str) -> DataFrame:
    """Rows of an older version, with the words of this one. Retention has removed their runs."""
    if name == "faults":
        return table.withColumn("took_effect", F.coalesce("took_effect", "bit"))
    return table.replace("not-evidence", "inconclusive", ["outcome"]) if name == "runs" else table


def write(table: DataFrame, path: Path, *, is_partitioned: bool = True) -> None:
    if is_partitioned:
        placed = gathered(table) if is_of_few(table) else table.hint("rebalance", *PARTITION)
        placed.write.partitionBy(*PARTITION).mode("overwrite").parquet(str(path))
    else:
        table.coalesce(1).write.mode("overwrite").parquet(str(path))


def aggregated(table: Callable[[str], DataFrame]) -> dict[str, Making]:
    """How the small tables over all runs are made. `table`: gives a curated table, whole."""
    from harness.pipeline import aggregates

    def violations() -> DataFrame:
        return aggregates.violations(table("anomalies"), table("runs"))

    return {
        "recurrence": lambda: aggregates.recurrence(violations(), table("runs")),
        "flaky_or_fixed": lambda: aggregates.flaky_or_fixed(violations(), table("runs")),
        "recurring_findings": lambda: aggregates.recurrence(table("findings"), table("runs")),
        "trend": lambda: aggregates.trend(table("runs"), table("latency")),
        "slowest": lambda: aggregates.slowest(table("latency")),
        "fault_coverage": lambda: aggregates.fault_coverage(table("faults"), table("runs")),
    }


NEEDS: Mapping[str, frozenset[str]] = {
    "latency": frozenset({"operations"}),
    "faults": frozenset({"operations"}),
    "wal": frozenset({"operations"}),
    "recurrence": frozenset({"anomalies", "runs"}),
    "flaky_or_fixed": frozenset({"anomalies", "runs"}),
    "recurring_findings": frozenset({"findings", "runs"}),
    "findings": frozenset({"anomalies"}),
    "trend": frozenset({"runs", "latency"}),
    "slowest": frozenset({"latency"}),
    "fault_coverage": frozenset({"faults", "runs"}),
}
"""The tables that have to be written before another one is made: their results are then at hand."""

AGGREGATED = ("runs", "latency", "anomalies", "findings", "faults")
"""The tables that the aggregates are made of."""
