"""After a run: read the record, judge it, keep verdict, columns and page. The same for a run that was stored."""

from __future__ import annotations

from typing import Any

from checkers.history import parquet
from checkers.history.errors import HistoryError
from checkers.history.history import History
from checkers.history.jsonl import read
from harness import report
from harness.errors import StoreError
from harness.judge import judge
from harness.plan import Plan
from harness.store import RunFolder
from harness.systems import SYSTEMS


def read_history(folder: RunFolder) -> History:
    """The record of a run; StoreError in one line if it cannot be read."""
    try:
        return read(folder.history)
    except HistoryError as error:
        raise StoreError(f"{folder.history}: {error}") from error
    except OSError as error:
        raise StoreError(f"cannot read {folder.history}: {error.strerror}") from error


def finish(
    folder: RunFolder, plan: Plan, *, interrupted: bool = False, failure: str | None = None
) -> dict[str, Any]:
    """Judge a run; write verdict.json, history.parquet and report.html; returns the verdict."""
    history = read_history(folder)
    promise = SYSTEMS[plan.system].promise(plan)
    verdict = judge(plan, promise, history, interrupted=interrupted, failure=failure)
    folder.write_verdict(verdict)
    if history.events:
        parquet.write(folder.path / "history.parquet", history)
    report.write(folder.path)
    return verdict
