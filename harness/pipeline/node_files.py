"""The tables of the nodes' own files: lines of their logs, and records of their write-ahead logs."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from harness.pipeline.schemas import LOG_LINE


def node_log(lines: DataFrame) -> DataFrame:
    """Lines with their known fields as columns; a line without a level, or that is not JSON, has the level "raw"."""
    fields = F.from_json("line", LOG_LINE)
    return lines.select("run", "node", "number", "line", fields.alias("told")).select(
        "run",
        "node",
        "number",
        "told.time_ns",
        F.coalesce("told.level", F.lit("raw")).alias("level"),
        *[F.col(f"told.{name}").alias(name) for name in ("message", "term", "owner", "lsn")],
        "line",
    )


def wal(records: DataFrame, operations: DataFrame) -> DataFrame:
    """Records of writes joined to the operations that they served: same key, same value, and surely not failed.

    `candidates` counts the operations that would fit; `operation_index` is the invocation of the only one, null if
    there is none (set-up, bookkeeping, a record without a key) or more than one (a value that was written twice).
    Deletions and statements that compute their value on the node have no value here, and so no operation.
    """
    # A text keeps its quotes.
    new = F.to_json(F.try_variant_get(F.try_parse_json("value"), "$[1]", "variant"))
    put = F.when(F.col("f") == "cas", new).otherwise(F.col("value"))
    writers = (
        operations.where(F.col("f").isin("write", "cas") & (F.col("type") != "fail"))
        .select("run", "key", put.alias("value"), "invoke_index", "type")
        .groupBy("run", "key", "value")
        .agg(
            F.count("*").alias("candidates"),
            F.min("invoke_index").alias("first_index"),
            F.min("type").alias("first_type"),
        )
    )
    only = F.col("candidates") == 1
    return records.join(writers, ["run", "key", "value"], "left").select(
        *records.columns,
        F.when(only, F.col("first_index")).alias("operation_index"),
        F.when(only, F.col("first_type")).alias("operation_type"),
        F.coalesce("candidates", F.lit(0)).alias("candidates"),
    )
