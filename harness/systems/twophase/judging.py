"""How the cuts of a run are judged: a check for each level of `checkers.cuts`, over what nodes left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

from checkers.check import Check
from checkers.cuts import LEVELS, Cut, Given, Level, Logs, Operation, Report, check, verify_levels
from checkers.cuts.logs import START
from checkers.cuts.report import FINDINGS, PROMISES
from checkers.history.declared import declared
from checkers.history.history import History
from checkers.verdict import Verdict, Verified
from harness.plan.plan import SECOND_NS, Plan
from harness.systems.cut_lines import AskedCut, asked_cuts, series_of, times_of
from harness.systems.parts import NodeFiles
from harness.systems.twophase.cut_operator import NEEDS_BASE, UNKNOWN
from harness.systems.twophase.logs import logs_in, records_in, restored_in, trace_in
from harness.systems.twophase.options import LEAVE_S, said_of, servers_of
from harness.systems.twophase.seen import Writers
from nodes.records import records_of
from nodes.twophase.bugs import decisions_with

AFTER_NS = int(10 * LEAVE_S * SECOND_NS)
"""How long after its end a fault may keep a cut from finishing: a node leaves, joins, and copies what it lacks."""

OF_TRANSACTIONS: frozenset[Level] = frozenset(
    {"transactions", "closure", "external-causality", "acknowledged"}
)
"""The levels that judge nothing where the one space of a run is atomic: cuts do not cover it."""


def checks_of_cuts(plan: Plan, files: NodeFiles) -> tuple[Check, ...]:
    """A check for each level that the plan gives something to judge; files are read once."""
    if not said_of(plan).cut_every_s:
        return ()
    judging = _Judging(plan, files)
    return tuple(
        Check(
            f"cuts-{level}",
            PROMISES[level],
            "" if level in FINDINGS else PROMISES[level],
            partial(judging.verdict, level),
            verify=partial(judging.verified, level) if level in verify_levels.PROVED else None,
            is_of_nodes=True,
        )
        for level in LEVELS
        if level not in OF_TRANSACTIONS or not said_of(plan).atomic
    )


class _Judging:
    def __init__(self, plan: Plan, files: NodeFiles) -> None:
        self._plan = plan
        self._files = files
        self._judged: tuple[History, Sequence[AskedCut], Given, Report] | None = None

    def verified(self, level: Level, history: History, verdict: Verdict) -> Verified:
        _, given, report = self._report(history)
        return verify_levels.check(given, report, level, verdict)

    def verdict(self, level: Level, history: History) -> Verdict:
        asked, _, report = self._report(history)
        verdict = report.verdict(level)
        if level != "finish":
            return verdict
        series = series_of(asked, said_of(self._plan).variant)
        return replace(verdict, details={**verdict.details, "series": series})

    def _report(self, history: History) -> tuple[Sequence[AskedCut], Given, Report]:
        if self._judged is None or self._judged[0] is not history:
            asked, given = self._given(history)
            self._judged = history, asked, given, replace(check(given), times=times_of(asked))
        return self._judged[1:]

    def _given(self, history: History) -> tuple[Sequence[AskedCut], Given]:
        plan, files, servers, said = self._plan, self._files, servers_of(self._plan), said_of(self._plan)
        read = cache(records_of)
        logs = logs_in(files, servers, read) if files else None
        asked = _named(asked_cuts(history), logs)
        cuts = _in_series(_cuts(asked, history), logs, servers)
        records = records_in(files, servers, read)
        decisions = decisions_with(plan.bugs)
        # All cuts, whatever nodes reported: a cut that they gave up can be whole in all logs.
        restored = [
            restored_in(files, records, cut.id, said.partitions, said.backups, decisions, read)
            for cut in cuts
        ]
        return asked, Given(
            cuts=cuts,
            baseline=servers,
            trace=trace_in(files, is_one_clock=plan.cluster == "sim"),
            logs=logs,
            operations=_operations(history, Writers(records)),
            restored={state.cut: state for state in restored if state is not None},
            strict_sets=True,
        )


def _in_series(cuts: Sequence[Cut], logs: Logs | None, servers: Sequence[str]) -> Sequence[Cut]:
    """In the order of their STARTs: a request that a fault held up may begin its cut after a later request.

    A cut without a START keeps its place.
    """
    if logs is None:
        return cuts
    starts = [logs.of_cut(START, cut.id).get(servers[0], [-1])[0] for cut in cuts]
    places = [place for place, start in enumerate(starts) if start >= 0]
    moved = dict(zip(places, sorted(places, key=lambda place: starts[place]), strict=True))
    return [cuts[moved.get(place, place)] for place in range(len(cuts))]


def _named(asked: Sequence[AskedCut], logs: Logs | None) -> Sequence[AskedCut]:
    """A cut without a reported end gets its name in logs, which in some variants is not that of its request.

    Of several such requests no line says which one began a cut. Each that gets a name counts from the first of them on.
    """
    if logs is None:
        return asked
    names = {str(cut.value.get("named", cut.cut)) for cut in asked}
    free = [name for kind, name in logs.marks if kind == START and name not in names]
    nameless = [cut for cut in asked if cut.state == UNKNOWN and not logs.of_cut(START, cut.cut)]
    found = {cut.cut: name for cut, name in zip(nameless, free, strict=False)}
    return [
        replace(cut, asked_ns=nameless[0].asked_ns, value={**cut.value, "named": found[cut.cut]})
        if cut.cut in found
        else cut
        for cut in asked
    ]


def _cuts(all_asked: Sequence[AskedCut], history: History) -> Sequence[Cut]:
    """The cuts by the operator's lines.

    A cut that no node reported as finished may be whole in all logs: its end is that of the run, as no operation was
    invoked later.
    """
    last_ns = max((event.time_ns for event in history.events), default=-1)
    cuts = []
    for asked in all_asked:
        outcome = {"ok": "finished", "failed": "failed"}.get(asked.state)
        cuts.append(
            Cut(
                id=asked.value.get("named", asked.cut),
                asked_ns=asked.asked_ns,
                ended_ns=asked.ended_ns if asked.state == "ok" else last_ns,
                outcomes={asked.node: outcome} if outcome else {},  # type: ignore[dict-item]  # two words of Outcome
                causes=tuple(_causes(asked, history)),
            )
        )
    return cuts


def _causes(cut: AskedCut, history: History) -> Sequence[str]:
    rebalanced = [f"{cut.why}, after a fault"] if NEEDS_BASE in cut.why and history.faults else []
    return [*cut.causes(history, AFTER_NS), *rebalanced]


def _operations(history: History, writers: Writers) -> list[Operation]:
    """`wrote`: it surely wrote. A take of an empty queue writes nothing, and is in no log."""
    effects = declared(history.header)
    return [
        Operation(
            xid=operation.transaction,
            process=operation.process,
            invoked_ns=operation.invoke_ns,
            completed_ns=-1 if operation.complete_ns is None else operation.complete_ns,
            ok=operation.type == "ok",
            wrote=effects.get(operation.f) == "writes",
            saw=writers.shown_by(operation),
            events=operation.events,
        )
        for operation in history.operations
        if operation.transaction is not None
    ]
