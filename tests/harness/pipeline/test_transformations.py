"""Each step of the pipeline on a few rows, against what it should give, written by hand."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]

MS = 1_000_000


def events(spark: Any, *rows: dict[str, Any]) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    from harness.pipeline.schemas import EVENTS

    schema = StructType([StructField("run", StringType()), *EVENTS.fields])
    fields = [{"run": "r", "time_ns": 0, "phase": "load", "actor": "client", **row} for row in rows]
    return spark.createDataFrame(
        [tuple(row.get(name) for name in schema.fieldNames()) for row in fields], schema
    )


def same(found: Any, expected: list[dict[str, Any]]) -> None:
    """`assertDataFrameEqual` on the columns that are expected."""
    from pyspark.testing import assertDataFrameEqual

    names = list(expected[0])
    chosen = found.select(*names)
    rows = [tuple(row[name] for name in names) for row in expected]
    assertDataFrameEqual(chosen, chosen.sparkSession.createDataFrame(rows, chosen.schema))


def test_runs_of_older_versions_are_read_in_the_words_of_today(spark: Any) -> None:
    """If it failed, stored runs of older versions would lose their outcome and their faults' effect."""
    from harness.pipeline import documents
    from harness.pipeline.operations import fault_spans

    verdict = json.dumps({"outcome": "not-evidence", "checks": []})
    run = [("r", json.dumps({"name": "a"}), verdict)]
    parsed = documents.parsed(spark.createDataFrame(run, "run string, plan string, verdict string"))
    found = spark.createDataFrame(
        [("r", "p", datetime(2026, 1, 1))], "run string, place string, started timestamp"
    )
    same(documents.runs(found, parsed), [{"run": "r", "outcome": "inconclusive"}])
    fault = {"actor": "nemesis", "f": "nemesis"}
    spans = fault_spans(
        events(
            spark,
            {**fault, "type": "invoke", "value": '{"id":1,"name":"kill-1","does":"kill","nodes":["n1"]}'},
            {**fault, "type": "info", "value": '{"id":1,"bit":true}'},
        )
    )
    same(spans, [{"fault_id": 1, "took_effect": True}])


def test_tables_of_older_versions_are_read_in_the_words_of_today(spark: Any, tmp_path: Path) -> None:
    """If it failed, rows whose runs retention has removed would count as faults without effect."""
    from harness.pipeline.curate import stored

    faults = spark.createDataFrame(
        [("r", 1, True), ("r", 2, False)], "run string, fault_id long, bit boolean"
    )
    runs = spark.createDataFrame([("r", "not-evidence"), ("s", "valid")], "run string, outcome string")
    place = "campaign=c/date=2026-01-01"
    for name, table in (("faults", faults), ("runs", runs)):
        table.coalesce(1).write.parquet(str(tmp_path / name / place))

    def read(name: str) -> Any:
        return stored(spark, tmp_path, name, sorted((tmp_path / name).rglob("*.parquet")))

    same(read("faults"), [{"fault_id": 1, "took_effect": True}, {"fault_id": 2, "took_effect": False}])
    same(read("runs"), [{"run": "r", "outcome": "inconclusive"}, {"run": "s", "outcome": "valid"}])


def test_a_plan_whose_quorum_is_a_formula_is_read_whole(spark: Any) -> None:
    """If it failed, runs with such a plan would be missing from the tables, or their other fields be empty."""
    from harness.pipeline import documents

    verdict = json.dumps({"outcome": "valid", "checks": []})
    plans = [json.dumps({"name": "a", "workers": 7, "quorum": said}) for said in (2, None, "N / 2 + 1")]
    rows = [(f"r{place}", plan, verdict) for place, plan in enumerate(plans)]
    parsed = documents.parsed(spark.createDataFrame(rows, "run string, plan string, verdict string"))
    same(
        parsed.select("run", "plan.workers", "plan.quorum"),
        [
            {"run": "r0", "workers": 7, "quorum": "2"},
            {"run": "r1", "workers": 7, "quorum": None},
            {"run": "r2", "workers": 7, "quorum": "N / 2 + 1"},
        ],
    )


def test_an_invocation_is_paired_with_what_its_process_ended_next(spark: Any) -> None:
    """If it failed, latencies and values would be those of other operations."""
    from harness.pipeline.operations import paired

    found = paired(
        events(
            spark,
            {
                "index": 0,
                "type": "invoke",
                "process": 1,
                "f": "write",
                "key": "a",
                "value": "5",
                "node": "n1",
            },
            {"index": 1, "type": "invoke", "process": 2, "f": "read", "key": "a", "node": "n2", "time_ns": 1},
            {"index": 2, "type": "info", "actor": "monitor", "f": "state", "time_ns": 2},
            {
                "index": 3,
                "type": "ok",
                "process": 2,
                "f": "read",
                "key": "a",
                "role": "replica",
                "value": "5",
                "time_ns": 9,
            },
            {
                "index": 4,
                "type": "info",
                "process": 1,
                "f": "write",
                "key": "a",
                "error": "timeout",
                "time_ns": 20,
            },
            {
                "index": 5,
                "type": "invoke",
                "process": 2,
                "f": "read",
                "key": "b",
                "phase": "final",
                "time_ns": 30,
            },
        )
    )
    asked = {"run": "r"}
    same(
        found,
        [
            {
                **asked,
                "process": 1,
                "type": "info",
                "value": "5",
                "node": "n1",
                "role": None,
                "error": "timeout",
                "invoke_index": 0,
                "complete_index": 4,
                "latency_ns": 20,
            },
            {
                **asked,
                "process": 2,
                "type": "ok",
                "value": "5",
                "node": "n2",
                "role": "replica",
                "error": None,
                "invoke_index": 1,
                "complete_index": 3,
                "latency_ns": 8,
            },
            {
                **asked,
                "process": 2,
                "type": "info",
                "value": None,
                "node": None,
                "role": None,
                "error": "no completion was recorded",
                "invoke_index": 5,
                "complete_index": None,
                "latency_ns": None,
            },
        ],
    )


def test_the_value_of_an_operation_is_the_one_that_checkers_see(spark: Any) -> None:
    """What an operation of unknown outcome polled from a log would be judged, and missing in the tables."""
    from checkers.history import Event
    from checkers.history.operation import paired
    from harness.pipeline import operations

    answers = [
        *('[["poll",{"x":[[0,1]]}]]', '[["send","x",[3,7]]]', '[["send","x",7]]', '[["poll"]]', "[]", "[1]"),
        *('"refused"', '{"poll":1}', "[[]]", "7", '[["w","x",1],["poll",{}]]'),
    ]
    lines, expected = [], []
    for number, (type_, answer) in enumerate((t, a) for t in ("ok", "fail", "info") for a in answers):
        invoke, completion = (
            {"index": 2 * number + place, "type": kind, "process": number, "f": "txn", "value": value}
            for place, (kind, value) in enumerate((("invoke", '["asked"]'), (type_, answer)))
        )
        lines += [invoke, completion]
        both = [
            Event(time_ns=0, **line | {"value": json.loads(line["value"])}) for line in (invoke, completion)
        ]
        value = json.dumps(paired(*both).value, separators=(",", ":"))
        expected.append({"invoke_index": 2 * number, "value": value})
    same(operations.paired(events(spark, *lines)), expected)


def test_processes_of_different_runs_are_different(spark: Any) -> None:
    """If it failed, an operation of one run would end with an answer of another."""
    from harness.pipeline.operations import paired

    found = paired(
        events(
            spark,
            {"run": "r1", "index": 0, "type": "invoke", "process": 1, "f": "read", "key": "a"},
            {"run": "r2", "index": 1, "type": "ok", "process": 1, "f": "read", "key": "a", "value": "1"},
        )
    )
    same(found, [{"run": "r1", "type": "info"}])


def fault_lines(spark: Any) -> Any:
    start = (
        '{"id":3,"name":"isolate-owner","does":"cut","at_ns":10,"until_ns":50,'
        '"links":[["n1","n2"],["client","n2"]]}'
    )
    end = (
        '{"id":3,"took_effect":true,"asked_ns":10,"first_effect_ns":11,"all_in_effect_ns":12,"heal_asked_ns":50,'
        '"last_effect_ns":49,"healed":true,"counters":{"withheld":7},"detail":""}'
    )
    unended = '{"id":4,"name":"kill","does":"kill","at_ns":60,"until_ns":80,"nodes":["n2"]}'
    nemesis = {"actor": "nemesis", "f": "isolate-owner"}
    return events(
        spark,
        {**nemesis, "index": 0, "type": "invoke", "value": start, "time_ns": 10},
        {**nemesis, "index": 1, "type": "info", "value": end, "time_ns": 55},
        {**nemesis, "index": 2, "type": "invoke", "value": unended, "time_ns": 60},
    )


def test_a_fault_is_its_two_lines_and_without_the_second_it_did_not_bite(spark: Any) -> None:
    """If it failed, faults that nobody felt would explain what was slow."""
    from harness.pipeline.operations import fault_spans

    same(
        fault_spans(fault_lines(spark)),
        [
            {
                "fault_id": 3,
                "name": "isolate-owner",
                "took_effect": True,
                "healed": True,
                "start_ns": 10,
                "end_ns": 55,
                "all_in_effect_ns": 12,
                "nodes": [],
                "links": [["n1", "n2"], ["client", "n2"]],
                "counters": {"withheld": 7},
            },
            {
                "fault_id": 4,
                "name": "kill",
                "took_effect": False,
                "healed": None,
                "start_ns": 60,
                "end_ns": None,
                "all_in_effect_ns": None,
                "nodes": ["n2"],
                "links": [],
                "counters": None,
            },
        ],
    )


def test_the_fault_of_a_moment_is_what_surely_was_in_effect(spark: Any) -> None:
    """If it failed, times around a fault would be put to its account, or its own would not."""
    from pyspark.sql import functions as F  # noqa: N812

    from harness.pipeline.operations import fault_spans, sure, with_fault

    spans = sure(fault_spans(fault_lines(spark)))
    rows = spark.createDataFrame(
        [("r", 11), ("r", 12), ("r", 50), ("r", 51), ("other", 20)], "run string, at long"
    )
    same(
        with_fault(rows, spans, F.col("at")),
        [
            {"run": "r", "at": 11, "fault": "none"},
            {"run": "r", "at": 12, "fault": "isolate-owner"},
            {"run": "r", "at": 50, "fault": "isolate-owner"},
            {"run": "r", "at": 51, "fault": "none"},
            {"run": "other", "at": 20, "fault": "none"},
        ],
    )


OPERATION = (
    "run string, phase string, type string, f string, node string, role string, fault string, "
    "invoke_ns long, complete_ns long, latency_ns long"
)


def test_quantiles_are_latencies_that_somebody_had(spark: Any) -> None:
    """If it failed, the tables would show other quantiles than the report of the same run."""
    from checkers.replicas.availability import quantiles_ms
    from harness.pipeline.latency import latency

    times = [5, 1, 9, 3, 7, 2, 8, 4, 6, 1000]
    rows = [
        ("r", "load", "ok", "read", "n1", "owner", "none", 100 * MS, 100 * MS + each * MS, each * MS)
        for each in times[:-1]
    ]
    rows += [
        ("r", "load", "ok", "read", "n1", "owner", "none", 0, 999 * MS, 999 * MS),
        ("r", "load", "info", "read", "n1", "owner", "none", 5, None, None),
        ("r", "final", "ok", "read", "n1", "owner", "none", 5, 6, 1),
        ("r", "load", "fail", "read", "n1", "owner", "none", 0, 1001 * MS, 1001 * MS),
    ]
    plain = quantiles_ms([each * MS for each in (*times[:-1], 999)])
    same(
        latency(spark.createDataFrame(rows, OPERATION)),
        [
            {
                "window_s": 0,
                "ok": 10,
                "fail": 0,
                "info": 1,
                "rate_per_s": 10.0,
                **{f"{name}_ns": int(plain[name] * MS) for name in ("p50", "p95", "p99", "max")},
            },
            {
                "window_s": 1,
                "ok": 0,
                "fail": 1,
                "info": 0,
                "rate_per_s": 0.0,
                "p50_ns": None,
                "p95_ns": None,
                "p99_ns": None,
                "max_ns": None,
            },
        ],
    )


RUNS = (
    "run string, started timestamp, campaign string, system string, configuration string, cluster string, "
    "workload string, faults array<string>, bugs array<string>, code string, outcome string, ok long, asked long"
)


def run(name: str, day: int, outcome: str = "valid", faults: tuple[str, ...] = ("all",)) -> tuple[Any, ...]:
    started = datetime(2026, 11, day, 3)
    return (
        name,
        started,
        "nightly",
        "qsync",
        "C",
        "sim",
        "register",
        list(faults),
        [],
        f"v{day}",
        outcome,
        90,
        100,
    )


ANOMALIES = "run string, fingerprint string, shape string, summary string"


def test_silence_is_called_a_fix_only_when_chance_would_rarely_give_it(spark: Any) -> None:
    """If it failed, an anomaly of one night in ten would be called fixed after a quiet week, wherever it was seen, or
    never."""
    from harness.pipeline.aggregates import flaky_or_fixed

    runs = [run(f"r{day}", day, "anomaly" if day in (1, 2, 3) else "valid") for day in range(1, 11)]
    runs += [
        run("elsewhere", 9, faults=("kill",)),
        run("nothing", 8, "inconclusive"),
        run("open", 8, "unknown"),
    ]
    seen = [
        ("r1", "often", "", ""),
        ("r2", "often", "", ""),
        ("r3", "often", "", ""),
        ("r3", "often", "", ""),
    ]
    seen += [("r1", "once", "", ""), ("r10", "now", "", "")]
    found = flaky_or_fixed(spark.createDataFrame(seen, ANOMALIES), spark.createDataFrame(runs, RUNS))
    same(
        found,
        [
            {
                "fingerprint": "now",
                "sightings": 1,
                "tried": 10,
                "silent": 0,
                "chance": 1.0,
                "says": "present",
            },
            {
                "fingerprint": "often",
                "sightings": 3,
                "tried": 3,
                "silent": 7,
                "chance": 0.0083,
                "says": "fixed",
            },
            {
                "fingerprint": "once",
                "sightings": 1,
                "tried": 1,
                "silent": 9,
                "chance": 0.1,
                "says": "cannot tell",
            },
        ],
    )


def test_a_rare_anomaly_that_is_silent_for_a_while_is_not_called_fixed(spark: Any) -> None:
    """If it failed, an anomaly that comes once in ten runs would be closed after three quiet ones."""
    from harness.pipeline.aggregates import flaky_or_fixed

    runs = [run(f"r{day}", day) for day in range(1, 14)]
    found = flaky_or_fixed(
        spark.createDataFrame([("r10", "rare", "", "")], ANOMALIES), spark.createDataFrame(runs, RUNS)
    )
    same(found, [{"tried": 10, "silent": 3, "rate": 0.1, "chance": 0.7692, "says": "cannot tell"}])


def test_recurrence_counts_runs_and_not_witnesses(spark: Any) -> None:
    """If it failed, one run with twenty witnesses would look like twenty nights."""
    from harness.pipeline.aggregates import recurrence

    seen = [("r1", "f", "shape", "first"), ("r1", "f", "shape", "first"), ("r3", "f", "shape", "last")]
    runs = [run("r1", 1, "anomaly"), run("r2", 2), run("r3", 3, "anomaly")]
    same(
        recurrence(spark.createDataFrame(seen, ANOMALIES), spark.createDataFrame(runs, RUNS)),
        [
            {
                "fingerprint": "f",
                "runs": 2,
                "witnesses": 3,
                "last_run": "r3",
                "example": "last",
                "versions": ["v1", "v3"],
                "cells": ["qsync C sim register all"],
            }
        ],
    )


def test_a_wal_record_is_joined_to_the_one_operation_that_it_served(spark: Any) -> None:
    """If it failed, a record would be put to the account of a write that surely did not happen."""
    from harness.pipeline.node_files import wal

    records = spark.createDataFrame(
        [*(("r", "n1", "k", value) for value in ("1", "2", "3", '"x"')), ("r", "n1", None, None)],
        "run string, node string, key string, value string",
    )
    operations = spark.createDataFrame(
        [
            ("r", "write", "ok", "k", "1", 10),
            ("r", "cas", "info", "k", "[1,2]", 20),
            ("r", "write", "fail", "k", "3", 30),
            ("r", "cas", "ok", "k", "[2,3]", 40),
            ("r", "write", "ok", "k", "3", 50),
            ("r", "cas", "ok", "k", '[1,"x"]', 60),
        ],
        "run string, f string, type string, key string, value string, invoke_index long",
    )
    same(
        wal(records, operations),
        [
            {"key": "k", "value": "1", "operation_index": 10, "operation_type": "ok", "candidates": 1},
            {"key": "k", "value": "2", "operation_index": 20, "operation_type": "info", "candidates": 1},
            {"key": "k", "value": "3", "operation_index": None, "operation_type": None, "candidates": 2},
            {"key": "k", "value": '"x"', "operation_index": 60, "operation_type": "ok", "candidates": 1},
            {"key": None, "value": None, "operation_index": None, "operation_type": None, "candidates": 0},
        ],
    )


LOG_LINE = '{"time_ns":5,"level":"warning","message":"hi","node":"n1","term":2,"owner":1,"lsn":9,"peer":"n2"}'


def test_lines_of_a_log_that_are_no_json_keep_their_text(spark: Any) -> None:
    """If it failed, the traceback of a crashed node would be missing from the tables."""
    from harness.pipeline.node_files import node_log

    lines = [("r", "n1", 1, LOG_LINE), ("r", "n1", 2, "Traceback (most recent call last):")]
    same(
        node_log(spark.createDataFrame(lines, "run string, node string, number long, line string")),
        [
            {"number": 1, "level": "warning", "message": "hi", "term": 2, "lsn": 9, "line": lines[0][3]},
            {"number": 2, "level": "raw", "message": None, "term": None, "lsn": None, "line": lines[1][3]},
        ],
    )
