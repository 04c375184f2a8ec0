"""Which runs can go into the tables, and why a run cannot: its files are checked before Spark reads any of them.

A job of Spark reads many runs at once, and a file that it cannot read ends the job for all of them. So each run is
checked alone first:

1. no file differs from its entry in hashes.json
2. plan.json and verdict.json have the fields that the tables need, in their types
3. history.parquet has the columns of a record, in their types
4. if hashes.json has no hash of record or columns (early versions wrote none), both are read whole, and must be equal
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec

from checkers.history import HistoryError, jsonl, parquet, segments
from checkers.history.errors import NOT_JSON
from checkers.verdict import Result
from harness.errors import StoreError
from harness.judge.outcomes import Outcome
from harness.results import LeftOut, StoredRun, hashes
from harness.results.remote_runs import at_once
from harness.results.run_folder import COLUMNS, HISTORY, PLAN, VERDICT

Long = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
OUTCOMES = (*get_args(Outcome), "not-evidence")
"""The last one is of early versions."""
NEEDED = ("index", "time_ns", "process", "type", "f", "value")
"""Columns that every version wrote."""
_SAID = attrgetter("index", "time_ns", "type", "process", "f", "key", "value", "node", "error")


class _Plan(msgspec.Struct):
    name: str
    system: str | None = None
    cluster: str | None = None
    workload: str | None = None
    faults: list[str] | None = None
    nodes: Long | None = None
    seed: Long | None = None
    time_limit_s: float | None = None
    rate: float | None = None
    workers: Long | None = None
    bugs: list[str] | None = None
    code: str | None = None


class _Witness(msgspec.Struct):
    rule: str
    events: list[Long]
    summary: str | None = None
    key: str | None = None
    node: str | None = None
    start_ns: Long | None = None
    end_ns: Long | None = None


class _Check(msgspec.Struct):
    checker: str
    result: Result
    model: str | None = None
    summary: str | None = None
    seconds: float | None = None
    witnesses: list[_Witness] = []


class _Evidence(msgspec.Struct):
    asked: Long | None = None
    ok: Long | None = None
    fail: Long | None = None
    info: Long | None = None
    ok_under_fault: Long | None = None
    rollbacks: Long | None = None
    stalls: Long | None = None
    missing: list[str] | None = None


class _Verdict(msgspec.Struct):
    outcome: str
    checks: list[_Check]
    exit_code: Long | None = None
    sentence: str | None = None
    violations: list[str] | None = None
    evidence: _Evidence | None = None


def usable(
    runs: Sequence[StoredRun], is_fetched: Callable[[str], bool]
) -> tuple[list[StoredRun], list[LeftOut]]:
    """The runs that are whole, and the runs that are not, with their reasons: a kill between verdict and columns, or a
    damaged file.

    `is_fetched`: which files of a run are here.
    """
    reasons = at_once(partial(why_not, is_fetched), runs)
    pairs = list(zip(runs, reasons, strict=True))
    broken = [LeftOut(run.address or run.path, why) for run, why in pairs if why is not None]
    return [run for run, why in pairs if why is None], broken


def why_not(is_fetched: Callable[[str], bool], run: StoredRun) -> str | None:
    """Why a run cannot go into the tables; None if it can."""
    try:
        if changed := hashes.changed(run.path, is_fetched):
            return (
                f"{hashes.CHANGED}: {'; '.join(changed)}; try: the file as it was, or qsync check {run.place}"
            )
        if damage := _of_documents(run.path) or _of_columns(run.path) or _of_record(run.path):
            return f"{damage}; try: qsync check {run.place}"
    except StoreError as error:
        return error.message
    except (OSError, HistoryError, RecursionError) as error:
        return f"damaged: {_in_one_line(error)}"
    return None


def _of_documents(run: Path) -> str | None:
    for name, kind in ((PLAN, _Plan), (VERDICT, _Verdict)):
        try:
            document: Any = msgspec.json.decode((run / name).read_bytes(), type=kind)
        except NOT_JSON as error:
            return f"damaged: {name} is not ours: {_in_one_line(error)}"
        if name == VERDICT and document.outcome not in OUTCOMES:
            expected = ", ".join(OUTCOMES[:-1])
            return f"damaged: {name} is not ours: expected an outcome ({expected}), got {document.outcome!r}"
    return None


def _of_columns(run: Path) -> str | None:
    import pyarrow

    try:
        schema = parquet.opened(run / COLUMNS).schema_arrow
    except FileNotFoundError:
        return None if _is_empty(run / HISTORY) else f"half-written: no {COLUMNS}"
    except (OSError, pyarrow.ArrowException, HistoryError):
        return f"half-written: {COLUMNS} is torn"
    kinds = {field.name: _plain(field.type) for field in schema}
    for field in parquet.schema():
        kind, expected = kinds.get(field.name), _plain(field.type)
        if kind is None and field.name in NEEDED:
            return f"damaged: {COLUMNS} is not ours: it has no column {field.name}"
        if kind not in (None, expected):
            return (
                f"damaged: {COLUMNS} is not ours: expected {expected} in the column {field.name}, got {kind}"
            )
    return None


def _plain(kind: Any) -> Any:
    import pyarrow

    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind


def _is_empty(history: Path) -> bool:
    """Whether only the header was recorded."""
    with segments.stream(history) as lines:
        return sum(1 for _, _ in zip(lines, range(2), strict=False)) < 2


def _of_record(run: Path) -> str | None:
    listed = hashes.listed(run) or {}
    if all(listed.get(name) for name in (HISTORY, COLUMNS)) or not (run / COLUMNS).exists():
        return None
    try:
        record = jsonl.read(run / HISTORY).events
    except HistoryError as error:
        return f"damaged: {HISTORY}: {_in_one_line(error)}"
    try:
        columns = parquet.read(run / COLUMNS).events
    except HistoryError as error:
        return f"damaged: {COLUMNS}: {_in_one_line(error)}"
    for place, (one, other) in enumerate(zip_longest(record, columns)):
        if one is None or other is None or _SAID(one) != _SAID(other):
            return f"damaged: {HISTORY} and {COLUMNS} differ from line {place + 2} on"
    return None


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
