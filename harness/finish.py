"""After a run: read the record, judge it, keep verdict, columns and page. The same for a run that was stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from checkers.history import parquet
from checkers.history.errors import HistoryError
from checkers.history.history import History
from checkers.history.jsonl import read
from checkers.history.members import have_changed, left, quorums
from checkers.verdict import Verdict
from checkers.wal import LogRules, NodeLog
from harness import report
from harness.check import RunCheck, run_here
from harness.errors import StoreError
from harness.judge import judge
from harness.judge.promised import promise_of
from harness.judge.strongest import strongest
from harness.plan import Plan
from harness.store import RunFolder
from harness.systems import system_of
from harness.systems.xlogs import read_logs
from harness.workloads import WORKLOADS


def read_history(folder: RunFolder) -> History:
    """The record of a run; StoreError in one line if it cannot be read."""
    try:
        return read(folder.history)
    except HistoryError as error:
        raise StoreError(f"{folder.history}: {error}") from error
    except OSError as error:
        raise StoreError(f"cannot read {folder.history}: {error.strerror}") from error


def finish(
    folder: RunFolder,
    plan: Plan,
    *,
    interrupted: bool = False,
    failure: str | None = None,
    run_check: RunCheck = run_here,
) -> dict[str, Any]:
    """Judge a run; write verdict.json, history.parquet and report.html; returns the verdict.

    Raises StoreError if they cannot be written. An anomaly is returned all the same, with that as a finding: a full
    disk must not hide it.
    """
    history = read_history(folder)
    promise = promise_of(plan, history)
    verdict = judge(
        plan,
        promise,
        history,
        interrupted=interrupted,
        failure=failure,
        plan_file=folder.plan_file,
        logs=logs_of_members(read_logs(folder.nodes), history),
        rules=rules_of(system_of(plan.system).log_rules(plan), history),
        run_check=run_check,
    )
    verdicts = [Verdict.from_json(check) for check in verdict["checks"]]
    verdict["strongest"] = strongest(WORKLOADS[plan.workload], history, verdicts)
    try:
        _keep(folder, history, verdict)
    except StoreError as error:
        if verdict["outcome"] != "anomaly":
            folder.forget_verdict()  # a run that could not be kept is no evidence, whatever its checks said
            raise
        verdict["findings"].append({"checker": "store", "summary": error.message})
    return verdict


def rules_of(rules: LogRules | None, history: History) -> LogRules | None:
    """How many logs there should be, and how many make a quorum, is one number only where nobody left or came.

    Where the quorum alone changes, the least that it ever was is what every decision had.
    """
    if rules is None or not history.told_members:
        return rules
    if have_changed(history):
        return replace(rules, members=None, quorum=None)
    if rules.quorum is None:
        return rules
    told = [each for each in quorums(history) if each is not None]
    return replace(rules, quorum=min(told, default=None))


def logs_of_members(logs: Sequence[NodeLog], history: History) -> tuple[NodeLog, ...]:
    """Those of nodes that were members at the end: what a node held that left, and never heard what became of it, says
    nothing of the others."""
    gone = left(history)
    return tuple(log for log in logs if log.node not in gone)


def _keep(folder: RunFolder, history: History, verdict: dict[str, Any]) -> None:
    folder.write_verdict(verdict)
    try:
        if history.events:
            parquet.write(folder.path / "history.parquet", history)
        report.write(folder.path)
    except OSError as error:
        why = " ".join(str(error.strerror or error).split())
        raise StoreError(f"cannot write the columns or the report to {folder.path}: {why}") from error
