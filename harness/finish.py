"""After a run: read the record, judge it, keep verdict, columns and page. The same for a run that was stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec

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
from harness.store import RunFolder, hashes
from harness.store.run_folder import COLUMNS, REPORT, VERDICT, Make
from harness.systems import system_of
from harness.systems.xlogs import read_logs
from harness.workloads import WORKLOADS


def read_history(folder: RunFolder) -> History:
    """The history of a run; StoreError in one line if it cannot be read, or the record is not the one judged before."""
    hashes.must_be_as_judged(folder.path, hashes.of_record(folder.path))
    return _read(folder)


def _read(folder: RunFolder) -> History:
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
    is_new: bool = False,
) -> dict[str, Any]:
    """Judge a run; write verdict.json, history.parquet, hashes.json and report.html; returns the verdict.

    Raises StoreError if they cannot be written, and leaves those of an earlier judgement as they are. An anomaly is
    returned all the same, with that as a finding: a full disk must not hide it. StoreError also if the record is not
    the one that was judged before, unless the run `is_new`: then it is over only now.
    """
    record = hashes.of_record(folder.path)
    if not is_new:
        hashes.must_be_as_judged(folder.path, record)
    history = _read(folder)
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
        _keep(folder, record, history, verdict)
    except StoreError as error:
        if verdict["outcome"] != "anomaly":
            raise  # a run that could not be kept is no evidence, whatever its checks said
        verdict["findings"].append({"checker": "store", "summary": error.message})
        with suppress(StoreError):  # an anomaly stands without columns and page
            folder.keep_judgement({VERDICT: _writer(verdict)}, record)
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


def _keep(folder: RunFolder, record: hashes.Files, history: History, verdict: dict[str, Any]) -> None:
    shown = msgspec.json.decode(msgspec.json.encode(verdict))
    making: dict[str, Make] = {
        VERDICT: _writer(verdict),
        REPORT: lambda path: path.write_text(report.html(folder.path, shown), "utf-8", "replace"),
    }
    if history.events:
        making = {COLUMNS: lambda path: parquet.write(path, history), **making}
    folder.keep_judgement(making, record)


def _writer(verdict: Mapping[str, Any]) -> Make:
    data = msgspec.json.format(msgspec.json.encode(verdict), indent=1)
    return lambda path: path.write_bytes(data + b"\n")
