"""plan.json and verdict.json → runs, verdicts, availability windows, anomalies."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from harness.pipeline.schemas import PLAN, VERDICT


def parsed(documents: DataFrame) -> DataFrame:
    """run, plan text, verdict text → run, plan, verdict. One that is no JSON object gives nulls (see `unreadable`)."""
    return documents.select(
        "run",
        F.from_json("plan", PLAN).alias("plan"),
        F.from_json("verdict", VERDICT).alias("verdict"),
    )


def readable() -> str:
    """The condition under which a parsed row can be used."""
    return "plan.name is not null and verdict.outcome is not null and verdict.checks is not null"


def runs(found: DataFrame, documents: DataFrame) -> DataFrame:
    """One row a run: what it was, what came of it."""
    plan = (
        "system cluster workload faults nodes seed time_limit_s rate workers bugs code".split()  # noqa: SIM905
    )
    evidence = "asked ok fail info ok_under_fault rollbacks stalls missing".split()  # noqa: SIM905
    return (
        found.join(documents, "run", "inner")
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
    """run, check: one row for each checker of each run."""
    return documents.select("run", F.explode("verdict.checks").alias("check"))


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
    """The windows in which a node (or, with no node, the whole cluster) served no client, as the checker found them."""
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


def anomalies(checks: DataFrame, fingerprints: DataFrame) -> DataFrame:
    """Every witness of every violation, with the fingerprint that the worker found for it."""
    told = checks.where(F.col("check.result") == "invalid").select(
        "run",
        F.col("check.checker").alias("checker"),
        F.posexplode("check.witnesses").alias("number", "witness"),
    )
    return told.join(fingerprints, ["run", "checker", "number"], "left").select(
        "run",
        "checker",
        "witness.rule",
        "number",
        "fingerprint",
        "shape",
        *[F.col(f"witness.{name}").alias(name) for name in "summary key node start_ns end_ns events".split()],  # noqa: SIM905
    )
