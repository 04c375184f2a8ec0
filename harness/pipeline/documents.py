"""plan.json and verdict.json → runs, verdicts, availability windows, anomalies, findings."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from harness.pipeline.schemas import CUT, PLAN, VERDICT
from harness.systems.cut_lines import ASKED, ENDED

CUTS = "cuts-"
"""Begins the names of the checks that judge cuts, one for each level."""


def parsed(documents: DataFrame) -> DataFrame:
    """run, plan text, verdict text → run, plan, verdict. `harness.pipeline.usable` has validated them before."""
    return documents.select(
        "run",
        F.from_json("plan", PLAN).alias("plan"),
        F.from_json("verdict", VERDICT).alias("verdict"),
    )


def runs(scanned: DataFrame, documents: DataFrame) -> DataFrame:
    """One row a run: its plan, its outcome and its evidence."""
    plan = (
        "system cluster workload faults nodes seed time_limit_s rate workers bugs code".split()  # noqa: SIM905
    )
    evidence = "asked ok fail info ok_under_fault rollbacks stalls missing".split()  # noqa: SIM905
    return (
        scanned.join(documents, "run", "inner")
        .select(
            "run",
            "started",
            *[F.col(f"plan.{name}").alias(name) for name in plan],
            F.coalesce(
                "plan.options.configuration",
                "plan.configuration",  # of version 1
                F.split("verdict.promise.configuration", ":", 2)[0],
            ).alias("configuration"),
            *[
                F.col(f"verdict.{name}").alias(name)
                for name in ("outcome", "exit_code", "sentence", "violations")
            ],
            *[F.col(f"verdict.evidence.{name}").alias(name) for name in evidence],
            F.col("place").alias("path"),
        )
        .replace("not-evidence", "inconclusive", ["outcome"])
    )  # as older versions said


def checks(documents: DataFrame) -> DataFrame:
    """run, check, is_violation: one row for each checker of each run.

    An invalid check is a violation if the promise of the run forbids what it found, and a finding otherwise. Verdicts
    of early versions do not list the violations: there an anomaly is one of all invalid checks.
    """
    rows = documents.select(
        "run", "verdict.outcome", "verdict.violations", F.explode("verdict.checks").alias("check")
    )
    is_listed = F.array_contains("violations", F.col("check.checker"))
    is_violation = F.coalesce(is_listed, F.col("outcome") == "anomaly") & _is_invalid()
    return rows.select("run", "check", is_violation.alias("is_violation"))


def _is_invalid() -> Column:
    return F.col("check.result") == "invalid"


def with_witnesses(documents: DataFrame) -> DataFrame:
    """The runs with invalid checks: those for `harness.pipeline.workers.fingerprints`."""
    return documents.where(F.exists("verdict.checks", lambda check: check["result"] == "invalid")).select(
        "run"
    )


def verdicts(checks: DataFrame) -> DataFrame:
    return checks.select(
        "run",
        *[
            F.col(f"check.{name}").alias(name)
            for name in ("checker", "result", "model", "summary", "seconds")
        ],
        F.size(F.coalesce("check.witnesses", F.array())).alias("witnesses"),
    )


def availability(checks: DataFrame) -> DataFrame:
    """The windows in which a node (or, with no node, the whole cluster) served no client, as the checker reports."""
    own = checks.where(F.col("check.checker") == "availability").select("run", "check.details.*")
    nodes = own.select("run", F.explode("gaps").alias("node", "found")).select(
        "run", "node", F.explode("found").alias("gap")
    )
    cluster = own.select(
        "run", F.lit(None).cast("string").alias("node"), F.explode("cluster_gaps").alias("gap")
    )
    return nodes.unionByName(cluster).select(
        "run",
        "node",
        F.round(F.col("gap.from_s") * 1e9).cast("long").alias("from_ns"),
        F.round(F.col("gap.to_s") * 1e9).cast("long").alias("to_ns"),
        ((F.col("gap.to_s") - F.col("gap.from_s")) * 1e3).alias("unserved_ms"),
    )


def cuts(events: DataFrame, documents: DataFrame, checks: DataFrame) -> DataFrame:
    """One row for each cut that an operator asked for. `state`: "ok" if it finished, "failed", "refused" or "unknown".

    `levels`: by level of `checkers.cuts` the result, or why there is none ("nothing to judge", "lacks material").
    """
    lines = events.where(F.col("actor") == "operator").select(
        "run", "f", "node", "time_ns", F.from_json("value", CUT).alias("told")
    )
    asked = lines.where(F.col("f") == ASKED).select(
        "run", F.col("told.cut").alias("cut"), "node", F.col("time_ns").alias("asked_ns")
    )
    ended = lines.where(F.col("f") == ENDED).select("run", "told.*", F.col("time_ns").alias("ended_ns"))
    judged = (
        checks.where(F.col("check.checker").startswith(CUTS))
        .select("run", "check.checker", F.explode("check.details.cuts").alias("said"))
        .select(
            "run",
            F.col("said.cut").alias("judged_as"),
            F.substring_index("checker", CUTS, -1).alias("level"),
            F.when(F.col("said.standing") == "judged", F.col("said.result"))
            .otherwise(F.col("said.standing"))
            .alias("result"),
        )
        .dropDuplicates(["run", "judged_as", "level"])
        .groupBy("run", "judged_as")
        .agg(F.map_from_entries(F.sort_array(F.collect_list(F.struct("level", "result")))).alias("levels"))
    )
    variant = F.coalesce("plan.options.variant", "plan.options.configuration").alias("variant")
    plans = documents.select("run", "plan.system", variant)
    return (
        asked.join(ended, ["run", "cut"], "left")
        .withColumns(
            {
                "judged_as": F.coalesce("named", "cut"),
                "state": F.coalesce("state", F.lit("unknown")),
            }
        )
        .join(judged, ["run", "judged_as"], "left")
        .join(plans, "run", "inner")
        .select(
            *("run", "cut", "system", "variant", "node", "asked_ns", "ended_ns", "state", "why", "levels")
        )
    )


def anomalies(checks: DataFrame, fingerprints: DataFrame) -> DataFrame:
    """Every witness of every violation of the promise, with the fingerprint that the worker found for it."""
    return _witnesses(checks.where("is_violation"), fingerprints)


def findings(checks: DataFrame, fingerprints: DataFrame) -> DataFrame:
    """The same of invalid checks that the promise does not forbid."""
    return _witnesses(checks.where(_is_invalid() & ~F.col("is_violation")), fingerprints)


def _witnesses(checks: DataFrame, fingerprints: DataFrame) -> DataFrame:
    witnesses = checks.select(
        "run",
        F.col("check.checker").alias("checker"),
        F.posexplode("check.witnesses").alias("number", "witness"),
    )
    return witnesses.join(fingerprints, ["run", "checker", "number"], "left").select(
        "run",
        "checker",
        "witness.rule",
        "number",
        "fingerprint",
        "shape",
        *[F.col(f"witness.{name}").alias(name) for name in "summary key node start_ns end_ns events".split()],  # noqa: SIM905
    )
