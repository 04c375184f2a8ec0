"""Latency and rates by window, operation, node, role and fault in effect."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

WINDOW_S = 1
SECOND_NS = 1_000_000_000
QUANTILES = {"p50_ns": 0.50, "p95_ns": 0.95, "p99_ns": 0.99, "max_ns": 1.0}


def latency(operations: DataFrame) -> DataFrame:
    """One row a window and group. An operation that never ended counts where it was asked; quantiles are of ok ones.

    Quantiles are nearest rank, as `checkers.replicas.availability` takes them: a latency that some operation had.
    """
    moment = F.coalesce("complete_ns", "invoke_ns")
    served = F.when(F.col("type") == "ok", F.col("latency_ns"))
    return (
        operations.where(F.col("phase") == "load")
        .select(
            "run",
            F.floor(moment / (WINDOW_S * SECOND_NS)).cast("long").alias("number"),
            "f",
            "node",
            "role",
            "fault",
            "type",
            served.alias("served_ns"),
        )
        .groupBy("run", "number", "f", "node", "role", "fault")
        .agg(
            *[F.count_if(F.col("type") == word).alias(word) for word in ("ok", "fail", "info")],
            *[
                F.expr(f"percentile_disc({share}) within group (order by served_ns)").cast("long").alias(name)
                for name, share in QUANTILES.items()
            ],
        )
        .select(
            "run",
            (F.col("number") * WINDOW_S).alias("window_s"),
            "f",
            "node",
            "role",
            "fault",
            "ok",
            "fail",
            "info",
            (F.col("ok") / F.lit(float(WINDOW_S))).alias("rate_per_s"),
            *QUANTILES,
        )
    )
