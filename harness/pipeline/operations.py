"""Events → operations, faults, and the fault in effect: the same words as `checkers.history`, as columns."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  # the name that all of Spark's users know

from harness.pipeline.schemas import EVIDENCE, FAULT

NO_FAULT = "none"


def paired(events: DataFrame) -> DataFrame:
    """Every invocation of a client with its completion, as `checkers.history.operation.paired` says.

    A process has at most one open operation (the record was refused otherwise), so the event after an invocation
    of the same process is its completion, or there is none.
    """
    own = Window.partitionBy("run", "process").orderBy("index")
    following = [
        F.lead(name).over(own).alias(f"next_{name}")
        for name in ("type", "value", "node", "role", "mode", "error", "index", "time_ns")
    ]
    clients = events.where(F.col("process").isNotNull()).select("*", *following)
    ended = F.col("next_type").isNotNull() & (F.col("next_type") != "invoke")
    is_ok = F.col("next_type") == "ok"
    # One that failed, or whose outcome is unknown, shows what it polled from a log, and where its entries stand.
    steps = F.when(~is_ok, F.from_json("next_value", "array<array<string>>"))
    shows_logs = F.exists(
        steps,
        lambda step: (
            (F.size(step) > 1)
            & (
                (F.get(step, 0) == "poll")
                | ((F.get(step, 0) == "send") & F.get(step, F.size(step) - 1).startswith("["))
            )
        ),
    )
    answered = ended & F.col("next_value").isNotNull() & (is_ok | F.coalesce(shows_logs, F.lit(False)))
    return clients.where(F.col("type") == "invoke").select(
        "run",
        "process",
        "f",
        "key",
        *[
            F.when(ended, F.coalesce(f"next_{name}", name)).otherwise(F.col(name)).alias(name)
            for name in ("node", "role", "mode")
        ],
        "phase",
        F.when(ended, F.col("next_type")).otherwise("info").alias("type"),
        F.col("value").alias("asked"),
        F.when(answered, F.col("next_value")).otherwise(F.col("value")).alias("value"),
        F.when(ended, F.col("next_error")).otherwise("no completion was recorded").alias("error"),
        F.col("index").alias("invoke_index"),
        F.col("time_ns").alias("invoke_ns"),
        F.when(ended, F.col("next_index")).alias("complete_index"),
        F.when(ended, F.col("next_time_ns")).alias("complete_ns"),
        F.when(ended, F.col("next_time_ns") - F.col("time_ns")).alias("latency_ns"),
    )


def fault_spans(events: DataFrame) -> DataFrame:
    """Start and end lines of every fault as one row. A fault without an end line took no effect."""
    lines = events.where(F.col("actor") == "nemesis")
    starts = lines.where(F.col("type") == "invoke").select(
        "run", F.from_json("value", FAULT).alias("asked"), F.col("time_ns").alias("start_ns")
    )
    ends = lines.where(F.col("type") != "invoke").select(
        F.col("run").alias("end_run"),
        F.from_json("value", EVIDENCE).alias("found"),
        F.col("time_ns").alias("end_ns"),
    )
    same = (F.col("run") == F.col("end_run")) & (F.col("asked.id") == F.col("found.id"))
    return starts.join(ends, same, "left").select(
        "run",
        F.col("asked.id").alias("fault_id"),
        "asked.name",
        "asked.does",
        F.coalesce("asked.nodes", F.array().cast("array<string>")).alias("nodes"),
        F.coalesce("asked.links", F.array().cast("array<array<string>>")).alias("links"),
        "start_ns",
        "end_ns",
        F.coalesce("found.took_effect", "found.bit", F.lit(False)).alias("took_effect"),
        "found.healed",
        "found.first_effect_ns",
        "found.all_in_effect_ns",
        "found.heal_asked_ns",
        "found.last_effect_ns",
        "found.counters",
        "found.detail",
    )


def sure(faults: DataFrame) -> DataFrame:
    """run → the spans in which a fault surely was in effect, as `FaultSpan.sure` says."""
    known = (
        F.col("took_effect")
        & F.col("all_in_effect_ns").isNotNull()
        & (F.col("all_in_effect_ns") <= F.col("heal_asked_ns"))
    )
    return (
        faults.where(known)
        .groupBy("run")
        .agg(
            F.collect_list(
                F.struct(
                    F.col("name"),
                    F.col("all_in_effect_ns").alias("start"),
                    F.col("heal_asked_ns").alias("end"),
                )
            ).alias("spans")
        )
    )


def with_fault(rows: DataFrame, spans: DataFrame, start: Column, end: Column | None = None) -> DataFrame:
    """`rows` and a column `fault`: the faults that surely were in effect at some time from `start` to `end` (or at
    `start`)."""
    last = start if end is None else end
    names = F.array_sort(
        F.array_distinct(
            F.transform(
                F.filter("spans", lambda span: (span["start"] <= last) & (span["end"] >= start)),
                lambda span: span["name"],
            )
        )
    )
    named = F.when(F.size(names) > 0, F.concat_ws("+", names)).otherwise(NO_FAULT)
    fault = F.when(F.col("spans").isNull(), NO_FAULT).otherwise(named)
    return rows.join(F.broadcast(spans), "run", "left").withColumn("fault", fault).drop("spans")


def meanwhile(faults: DataFrame, operations: DataFrame) -> DataFrame:
    """Every fault with the counts of operations that ended ok, and not ok, while it surely was in effect."""
    ended = operations.where((F.col("phase") == "load") & F.col("complete_ns").isNotNull()).select(
        F.col("run").alias("of_run"), "type", "complete_ns"
    )
    inside = (
        (F.col("run") == F.col("of_run"))
        & F.col("took_effect")
        & F.col("complete_ns").between(F.col("all_in_effect_ns"), F.col("heal_asked_ns"))
    )
    counts = (
        faults.join(ended, inside, "inner")
        .groupBy("run", "fault_id")
        .agg(
            F.count_if(F.col("type") == "ok").alias("ok_meanwhile"),
            F.count_if(F.col("type") != "ok").alias("not_ok_meanwhile"),
        )
    )
    return faults.join(counts, ["run", "fault_id"], "left").fillna(0, ["ok_meanwhile", "not_ok_meanwhile"])
