"""How the cuts of a run are judged: a check for each level of `checkers.cuts`, over what nodes left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from checkers.check import Check
from checkers.cuts import LEVELS, Cut, Given, Level, Logs, Operation, Report, check
from checkers.cuts.logs import START
from checkers.cuts.report import FINDINGS
from checkers.history.declared import declared
from checkers.history.faults import FaultSpan
from checkers.history.history import History
from checkers.verdict import Verdict
from harness.run.plan import SECOND_NS, Plan
from harness.systems.system import NodeFiles
from harness.systems.twophase.cut_operator import ASKED, ENDED, NEEDS_BASE
from harness.systems.twophase.logs import finished_in, logs_in, records_in, restored_in, trace_in
from harness.systems.twophase.options import LEAVE_S, said_of, servers_of
from nodes.twophase.bugs import decisions_with

NOT_OVER = "the run was over before the cut was"
AFTER_NS = int(4 * LEAVE_S * SECOND_NS)
"""How long after its end a fault may keep a cut from finishing: a node leaves, joins, and copies what it lacks."""


def checks_of_cuts(plan: Plan, files: NodeFiles) -> tuple[Check, ...]:
    """One for each level; the material is read once."""
    if not said_of(plan).cut_every_s:
        return ()
    judging = _Judging(plan, files)
    return tuple(
        Check(
            f"cuts-{level}",
            summary,
            "" if level in FINDINGS else summary,
            partial(judging.verdict, level),
            is_of_nodes=True,
        )
        for level, summary in LEVELS.items()
    )


class _Judging:
    def __init__(self, plan: Plan, files: NodeFiles) -> None:
        self._plan = plan
        self._files = files
        self._report: tuple[History, Report] | None = None

    def verdict(self, level: Level, history: History) -> Verdict:
        if self._report is None or self._report[0] is not history:
            self._report = history, self._judged(history)
        verdict = self._report[1].verdict(level)
        if level != "finish":
            return verdict
        return replace(verdict, details={**verdict.details, "series": _series(self._plan, history)})

    def _judged(self, history: History) -> Report:
        plan, files, servers = self._plan, self._files, servers_of(self._plan)
        logs = logs_in(files, servers) if files else None
        cuts = list(_cuts(history)) if logs is None else _in_series(list(_cuts(history)), logs, servers)
        said = said_of(plan)
        records = records_in(files, servers)
        decisions = decisions_with(plan.bugs)
        # By the logs, not by what nodes report: a cut that they gave up can be whole in all of them.
        whole = [cut for cut, on in finished_in(records).items() if len(on) == len(servers)]
        restored = (
            restored_in(files, records, cut, said.partitions, said.backups, decisions) for cut in whole
        )
        return check(
            Given(
                cuts=cuts,
                baseline=servers,
                trace=trace_in(files, is_one_clock=plan.cluster == "sim"),
                logs=logs,
                operations=_operations(history),
                restored={each.cut: each for each in restored if each is not None},
                strict_sets=True,
            )
        )


def _in_series(cuts: Sequence[Cut], logs: Logs, servers: Sequence[str]) -> list[Cut]:
    """In the order of their STARTs: a request that a fault held up may begin its cut after a later request."""
    starts = [logs.of_cut(START, cut.id).get(servers[0], [-1])[0] for cut in cuts]
    places = [place for place, start in enumerate(starts) if start >= 0]
    moved = dict(zip(places, sorted(places, key=lambda place: starts[place]), strict=True))
    return [cuts[moved.get(place, place)] for place in range(len(cuts))]


def _series(plan: Plan, history: History) -> list[dict[str, object]]:
    """For the page: of every cut that was asked for, when, at which node, and what that node or another one told."""
    asked = {event.value["cut"]: event for event in history.events if event.f == ASKED}
    ended = {event.value["cut"]: event for event in history.events if event.f == ENDED}
    rows: list[dict[str, object]] = []
    for cut, event in asked.items():
        end = ended.get(cut)
        told = {"named": cut, "state": "unknown", "why": NOT_OVER} if end is None else end.value
        rows.append(
            {
                "cut": told["named"],
                "asked_for": cut,
                "begun_ns": event.time_ns,
                "ended_ns": None if end is None else end.time_ns,
                "by": event.node,
                "variant": said_of(plan).variant,
                "state": told["state"],
                "why": told["why"],
            }
        )
    return rows


def _cuts(history: History) -> Sequence[Cut]:
    """What the operator knows. A cut without a report of its end was over when the run was: its FINISH is there, or
    nothing is claimed of it."""
    asked: dict[str, tuple[int, str]] = {}
    ended: dict[str, tuple[int, str, str, str]] = {}
    for event in history.events:
        if event.process == "operator" and event.f == ASKED:
            asked[event.value["cut"]] = event.time_ns, event.node or ""
        elif event.process == "operator" and event.f == ENDED:
            told = event.value
            ended[told["cut"]] = event.time_ns, told["named"], told["state"], told["why"]
    last_ns = max((event.time_ns for event in history.events), default=-1)
    cuts = []
    for cut, (asked_ns, node) in asked.items():
        ended_ns, named, state, why = ended.get(cut, (-1, cut, "unknown", ""))
        outcome = {"ok": "finished", "failed": "failed"}.get(state)
        cuts.append(
            Cut(
                id=named,
                asked_ns=asked_ns,
                ended_ns=ended_ns if outcome else last_ns,
                outcomes={node: outcome} if outcome else {},  # type: ignore[dict-item]  # two words of Outcome
                causes=tuple(_causes(history.faults, asked_ns, ended_ns, state, why)),
            )
        )
    return cuts


def _causes(faults: Sequence[FaultSpan], asked_ns: int, ended_ns: int, state: str, why: str) -> Sequence[str]:
    """What the harness did that may keep a cut from finishing."""
    if state == "refused":
        return [f"it was refused: {why}"]
    if state == "unknown" and ended_ns < 0:
        return [NOT_OVER]
    until_ns = ended_ns if ended_ns >= 0 else asked_ns
    causes = [
        f"fault {fault.id} ({fault.name})"
        for fault in faults
        if fault.start_ns <= until_ns and (fault.end_ns is None or asked_ns <= fault.end_ns + AFTER_NS)
    ]
    if NEEDS_BASE in why and faults:
        causes.append(f"{why}, after a fault")
    return causes


def _operations(history: History) -> list[Operation]:
    """An operation that may have written nothing (a take of an empty queue) is in no log then."""
    effects = declared(history.header)
    return [
        Operation(
            xid=operation.transaction,
            process=operation.process,
            invoked_ns=operation.invoke_ns,
            completed_ns=-1 if operation.complete_ns is None else operation.complete_ns,
            ok=operation.type == "ok",
            wrote=effects.get(operation.f) == "writes",
        )
        for operation in history.operations
        if operation.transaction is not None
    ]
