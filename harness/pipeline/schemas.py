"""The schemas of the input files and of the curated tables: written down, never guessed.

Every table begins with `run` (`<plan>/<utc>-<seed>`) and ends with its partition: `campaign` (the plan's name) and
`date` (the day on which the run began, UTC). Times ending in `_ns` are nanoseconds since the run began; `index` counts
the lines of its record.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_TYPES = {
    "string": StringType(),
    "long": LongType(),
    "int": IntegerType(),
    "double": DoubleType(),
    "bool": BooleanType(),
    "date": DateType(),
    "time": TimestampType(),
    "strings": ArrayType(StringType()),
    "longs": ArrayType(LongType()),
    "links": ArrayType(ArrayType(StringType())),
    "counters": MapType(StringType(), LongType()),
    "words": MapType(StringType(), StringType()),
}


def _struct(text: str) -> StructType:
    """`name type, name type, …`."""
    pairs = (field.split() for field in text.split(","))
    return StructType([StructField(name, _TYPES[kind]) for name, kind in pairs])


def _table(text: str) -> StructType:
    return _struct(f"run string, {text}, campaign string, date date")


# ---- what is read

EVENTS = _struct(
    "index long, time_ns long, process long, type string, actor string, f string, key string, node string, "
    "role string, mode string, error string, phase string, value string"
)
"""history.parquet, as `checkers.history.parquet` writes it."""

RUNS_FOUND = _struct("run string, path string, campaign string, date date, started time, place string")
"""The columns that the scan of results/ returns. The files are read at `path`; the run is kept at `place`."""

PLAN = _struct(
    "name string, system string, cluster string, workload string, faults strings, nodes int, seed long, "
    "time_limit_s double, rate double, workers int, quorum string, election_mode string, configuration string, "
    "bugs strings, code string"
)
PLAN.add("options", _struct("configuration string, variant string"))
_WITNESS = _struct(
    "rule string, summary string, events longs, key string, node string, start_ns long, end_ns long"
)
_GAPS = ArrayType(_struct("from_s double, to_s double"))
_CUTS = ArrayType(_struct("cut string, result string, standing string, summary string"))
_DETAILS = StructType(
    [
        StructField("gaps", MapType(StringType(), _GAPS)),
        StructField("cluster_gaps", _GAPS),
        StructField("cuts", _CUTS),
    ]
)
_CHECK = StructType(
    [
        *_struct("checker string, result string, summary string, model string, seconds double").fields,
        StructField("witnesses", ArrayType(_WITNESS)),
        StructField("details", _DETAILS),
    ]
)
_EVIDENCE = _struct(
    "asked long, ok long, fail long, info long, ok_under_fault long, rollbacks long, stalls long, missing strings"
)
VERDICT = StructType(
    [
        *_struct("outcome string, exit_code int, sentence string, violations strings").fields,
        StructField("promise", _struct("configuration string")),
        StructField("evidence", _EVIDENCE),
        StructField("checks", ArrayType(_CHECK)),
    ]
)
FAULT = _struct("id long, name string, does string, at_ns long, until_ns long, nodes strings, links links")
EVIDENCE = _struct(
    "id long, took_effect bool, bit bool, asked_ns long, first_effect_ns long, all_in_effect_ns long, "
    "heal_asked_ns long, last_effect_ns long, healed bool, counters counters, detail string"
)
CUT = _struct("cut string, named string, state string, why string")
LOG_LINE = _struct(
    "time_ns long, level string, message string, node string, term long, owner string, lsn long"
)

# ---- the tables

_WITNESSED = (
    "checker string, rule string, number int, fingerprint string, shape string, summary string, key string, "
    "node string, start_ns long, end_ns long, events longs, fault string"
)

TABLES: dict[str, StructType] = {
    "runs": _table(
        "started time, system string, configuration string, cluster string, workload string, faults strings, "
        "nodes int, seed long, time_limit_s double, rate double, workers int, bugs strings, code string, "
        "outcome string, exit_code int, sentence string, violations strings, asked long, ok long, fail long, "
        "info long, ok_under_fault long, rollbacks long, stalls long, missing strings, path string"
    ),
    "operations": _table(
        "process long, f string, key string, node string, role string, mode string, phase string, type string, "
        "asked string, value string, error string, invoke_index long, invoke_ns long, complete_index long, "
        "complete_ns long, latency_ns long, fault string"
    ),
    "faults": _table(
        "fault_id long, name string, does string, nodes strings, links links, start_ns long, end_ns long, "
        "took_effect bool, healed bool, first_effect_ns long, all_in_effect_ns long, heal_asked_ns long, "
        "last_effect_ns long, counters counters, detail string, ok_meanwhile long, not_ok_meanwhile long"
    ),
    "latency": _table(
        "window_s long, f string, node string, role string, fault string, ok long, fail long, info long, "
        "rate_per_s double, p50_ns long, p95_ns long, p99_ns long, max_ns long"
    ),
    "availability": _table("node string, from_ns long, to_ns long, unserved_ms double, fault string"),
    "verdicts": _table(
        "checker string, result string, model string, summary string, seconds double, witnesses int"
    ),
    "cuts": _table(
        "cut string, system string, variant string, node string, asked_ns long, ended_ns long, state string, "
        "why string, levels words"
    ),
    "anomalies": _table(_WITNESSED),
    "findings": _table(_WITNESSED),
    "node_log": _table(
        "node string, number long, time_ns long, level string, message string, term long, owner string, "
        "lsn long, line string"
    ),
    "wal": _table(
        "node string, place string, kind string, origin long, lsn long, first_lsn long, is_synchronous bool, "
        "owner long, until_lsn long, term long, space long, key string, value string, operation_index long, "
        "operation_type string, candidates long"
    ),
}
"""The curated tables. `fault`: the names of faults that surely were in effect, joined by +, or "none"."""

PARTITION = ("campaign", "date")
