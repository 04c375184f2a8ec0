"""Tables over many runs: trends by version, recurring and fixed anomalies, slow windows, fault coverage.

Each function takes curated tables and gives a small one, which is made anew by every `qsync analyze`.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

SLOWEST = 50
SURE = 0.05
"""A silence counts as a fix if chance would give it less often than this."""


def trend(runs: DataFrame, latency: DataFrame) -> DataFrame:
    """One row a version of the code in each campaign, oldest first: outcomes, load, latency."""
    worst = latency.groupBy("run").agg(F.max("p99_ns").alias("worst_p99_ns"))
    of_version = F.coalesce("code", F.lit(""))
    return (
        runs.join(worst, "run", "left")
        .groupBy("campaign", of_version.alias("code"))
        .agg(
            F.min("started").alias("first_run"),
            F.max("started").alias("last_run"),
            F.count("*").alias("runs"),
            *[
                F.count_if(F.col("outcome") == word).alias(word.replace("-", "_"))
                for word in ("valid", "anomaly", "unknown", "inconclusive")
            ],
            F.sum("ok").alias("ok"),
            F.round(F.try_divide(F.sum("ok"), F.sum("asked")), 4).alias("ok_share"),
            F.round(F.percentile_approx("worst_p99_ns", 0.5) / 1e6, 3).alias("typical_worst_p99_ms"),
        )
        .orderBy("campaign", "first_run")
    )


def violations(anomalies: DataFrame, runs: DataFrame) -> DataFrame:
    """Without the rows of early versions that are findings; retention has removed their runs."""
    listed = runs.select("run", "violations")
    is_one = F.coalesce(F.array_contains("violations", F.col("checker")), F.lit(True))
    return anomalies.join(listed, "run", "inner").where(is_one).drop("violations")


def recurrence(anomalies: DataFrame, runs: DataFrame) -> DataFrame:
    """One row a fingerprint: when and where it occurred."""
    seen = anomalies.select("run", "fingerprint", "shape", "summary").join(
        runs.select("run", "started", "code", "campaign", _cell().alias("cell")), "run", "inner"
    )
    return (
        seen.groupBy("fingerprint", "shape")
        .agg(
            F.count_distinct("run").alias("runs"),
            F.count("*").alias("witnesses"),
            F.min("started").alias("first_seen"),
            F.max("started").alias("last_seen"),
            F.array_sort(F.collect_set("campaign")).alias("campaigns"),
            F.array_sort(F.collect_set("cell")).alias("cells"),
            F.array_sort(F.collect_set("code")).alias("versions"),
            F.max_by("run", F.struct("started", "run")).alias("last_run"),
            # Of witnesses of one moment always the same one, in whatever order they come.
            F.max_by("summary", F.struct("started", "run", "summary")).alias("example"),
        )
        .orderBy(F.desc("runs"), "fingerprint")
    )


def flaky_or_fixed(anomalies: DataFrame, runs: DataFrame) -> DataFrame:
    """Whether a fingerprint is gone, or only rare, by its silence since the last sighting.

    In the cells where it was ever seen, it showed in `sightings` of the `tried` runs up to the last sighting. If all
    orders of the runs are as likely, none of the last `silent` runs shows it with `chance` (Fisher's exact test). With
    less than 5 % it is called fixed; with 0 silent runs it is present; otherwise this is undecided. Only runs that
    were judged are counted.
    """
    telling = runs.where(F.col("outcome").isin("valid", "anomaly")).select(
        "run", "started", _cell().alias("cell")
    )
    seen = anomalies.select("run", "fingerprint").distinct().join(telling, "run", "inner")
    cells = seen.groupBy("fingerprint", "cell").agg(
        F.count("*").alias("sightings"), F.max("started").alias("last_in_cell")
    )
    last = Window.partitionBy("fingerprint").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    where = cells.withColumn("last_seen", F.max("last_in_cell").over(last))
    counted = (
        where.join(telling, "cell", "inner")
        .groupBy("fingerprint", "last_seen")
        .agg(
            F.count_if(F.col("started") <= F.col("last_seen")).alias("tried"),
            F.count_if(F.col("started") > F.col("last_seen")).alias("silent"),
        )
        .join(cells.groupBy("fingerprint").agg(F.sum("sightings").alias("sightings")), "fingerprint", "inner")
    )
    rate = F.col("sightings") / F.col("tried")
    # No (1 - rate) ** silent: the runs up to a sighting show it more often than others, one alone always.
    chance = F.aggregate(
        F.sequence(F.lit(0), F.col("sightings") - 1),
        F.lit(1.0),
        lambda so_far, others: (
            so_far * (F.col("tried") - others) / (F.col("tried") + F.col("silent") - others)
        ),
    )
    says = (
        F.when(F.col("silent") == 0, "present").when(F.col("chance") < SURE, "fixed").otherwise("cannot tell")
    )
    return (
        counted.select(
            "fingerprint",
            "sightings",
            "tried",
            "silent",
            "last_seen",
            F.round(rate, 4).alias("rate"),
            F.round(chance, 4).alias("chance"),
        )
        .withColumn("says", says)
        .orderBy("fingerprint")
    )


def slowest(latency: DataFrame) -> DataFrame:
    """The windows with the slowest answers of all."""
    return (
        latency.where(F.col("max_ns").isNotNull())
        .orderBy(F.desc("max_ns"), "run", "window_s", "f", "node")
        .limit(SLOWEST)
        .select("run", "window_s", "f", "node", "role", "fault", "ok", "p50_ns", "p99_ns", "max_ns")
    )


def fault_coverage(faults: DataFrame, runs: DataFrame) -> DataFrame:
    """One row a campaign, system, cluster, workload and fault: how often it was injected, took effect, healed, and the
    load meanwhile."""
    cells = runs.select("run", "cluster", "system", "workload")
    lasted = F.when(F.col("took_effect"), F.col("heal_asked_ns") - F.col("all_in_effect_ns"))
    return (
        faults.join(cells, "run", "inner")
        .groupBy("campaign", "system", "cluster", "workload", "name")
        .agg(
            F.count_distinct("run").alias("runs"),
            F.count("*").alias("injected"),
            F.count_if("took_effect").alias("took_effect"),
            F.count_if(F.coalesce("healed", F.lit(False))).alias("healed"),
            F.round(F.sum(lasted) / 1e9, 3).alias("in_effect_s"),
            F.sum("ok_meanwhile").alias("ok_meanwhile"),
            F.sum("not_ok_meanwhile").alias("not_ok_meanwhile"),
        )
        .orderBy("campaign", "system", "cluster", "workload", "name")
    )


def _cell() -> Column:
    """The combination under test, in words: the same for all seeds."""
    bugs = F.when(F.size("bugs") > 0, F.concat(F.lit("with "), F.concat_ws("+", F.array_sort("bugs"))))
    faults = F.concat_ws("+", F.array_sort("faults"))
    return F.concat_ws(" ", "system", "configuration", "cluster", "workload", faults, bugs)
