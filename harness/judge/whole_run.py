"""From a run's plan, record and logs to its verdict: the one way for every verb, stored run or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from checkers.check import RunCheck, run_here
from checkers.history.history import History
from checkers.history.members import have_changed, left, quorums
from checkers.logs.wal import LogRules, NodeLog
from checkers.logs.wal.effects import Effect
from harness.cluster.place import TRACE
from harness.errors import FAILED, StoreError
from harness.judge.outcome import judge
from harness.judge.promised import promise_of
from harness.plan.plan import Plan
from harness.systems import system_of
from harness.systems.system import DrawsRuns, JudgesLogs, JudgesNodes, KeepsLogs, NodeFiles


def verdict_of(
    plan: Plan,
    history: History,
    logs: Sequence[NodeLog],
    *,
    interrupted: bool = False,
    failure: str | None = None,
    plan_file: Path | None = None,
    effects: Sequence[Effect] = (),
    run_check: RunCheck = run_here,
    asks_by_name: bool = True,
    key: str | None = None,
    files: NodeFiles | None = None,
) -> dict[str, Any]:
    """The content of verdict.json, by `judge`. `logs`: of all nodes that left one; `effects`: what their disks and
    links did, where the simulator kept it; `files`: what nodes left, for a system with checks of that."""
    system = system_of(plan.system)
    of_files = system.checks_of_nodes(plan, files or {}) if isinstance(system, JudgesNodes) else ()
    of_logs = system.checks_of_logs(plan, logs) if isinstance(system, JudgesLogs) else ()
    return judge(
        plan,
        promise_of(plan, history),
        history,
        interrupted=interrupted,
        failure=failure or told_failure(history),
        plan_file=plan_file,
        logs=logs_of_members(logs, history),
        rules=rules_of(log_rules(plan), history),
        effects=effects,
        run_check=run_check,
        asks_by_name=asks_by_name,
        key=key,
        of_nodes=(*of_files, *of_logs),
    )


def files_in(nodes: Path, plan: Plan) -> NodeFiles:
    """All that these nodes left, if the system of the plan has checks or pictures of it. Raises StoreError."""
    system = system_of(plan.system)
    has_checks = isinstance(system, JudgesNodes) and system.checks_of_nodes(plan, {})
    if not (has_checks or isinstance(system, DrawsRuns)):
        return {}
    try:
        return {
            folder.name: {
                str(path.relative_to(folder)): path.read_bytes()
                for path in sorted((*folder.glob("*"), *folder.glob(f"{TRACE}/*")))
                if path.is_file()
            }
            for folder in sorted(nodes.iterdir())
            if folder.is_dir()
        }
    except OSError as error:
        raise StoreError(f"cannot read what the nodes left: {error}") from error


def log_rules(plan: Plan) -> LogRules | None:
    """None if the nodes of its system leave no logs."""
    system = system_of(plan.system)
    return system.log_rules(plan) if isinstance(system, KeepsLogs) else None


def told_failure(history: History) -> str | None:
    """Why the harness broke the run off, if its record says so."""
    return next((str(event.value) for event in history.told("harness", FAILED)), None)


def rules_of(rules: LogRules | None, history: History) -> LogRules | None:
    """Only where no node left or joined, one number says how many logs there should be, and how many make a quorum.

    If only the quorum changed, the smallest one counts: every decision had at least that many.
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
    """The logs of nodes that were members at the end. A node that left does not learn the outcome of what it held, so
    its log is no evidence about the members."""
    gone = left(history)
    return tuple(log for log in logs if log.node not in gone)
