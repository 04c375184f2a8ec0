"""How the cuts of a run are judged, on three levels, over what the operator's lines and the nodes' logs say.

| level | a cut violates it if |
|---|---|
| quorum | it finished, and the places that nodes named cannot be restored (`checkers.cuts.quorum_logs`) |
| marker | a place is not right behind the marker in the node's log, or it finished with different statuses |
| finish | it did not finish, and no fault, refusal, second writer or node that stopped following is the cause |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from checkers.check import Check
from checkers.cuts.quorum_logs import counted
from checkers.cuts.report import NOTHING, OF_REPLICA_SETS, PROMISES, Judgement, Level, Report, skipped
from checkers.history.history import History
from checkers.history.members import quorums
from checkers.history.values import vclock_words
from checkers.logs.log_cuts import LogCuts
from checkers.logs.wal.record import LogRules, NodeLog
from checkers.verdict import Verdict, Witness
from harness.plan.plan import SECOND_NS, Plan
from harness.systems.cut_lines import AskedCut, asked_cuts, series_of, times_of
from harness.systems.qsync.node_options import BEAT, ELECTION_TIMEOUT
from harness.systems.qsync.options import said_of, settings_of
from harness.systems.qsync.status import stopped_of

OF_MARKERS = frozenset({"marker-differs", "status-differs"})
"""Rules of `quorum_logs` that only the cut of a marker must keep."""


def checks_of_cuts(
    plan: Plan, logs: Sequence[NodeLog], rules: LogRules, *, is_promised: bool
) -> tuple[Check, ...]:
    """A check for each level; logs are replayed once. Unless logs that agree are promised, all is a finding."""
    if not settings_of(plan).cut_every_s:
        return ()
    judging = _Judging(plan, logs, rules)
    return tuple(
        Check(
            f"cuts-{level}",
            PROMISES[level],
            PROMISES[level] if is_promised else "",
            partial(judging.verdict, level),
            is_of_nodes=True,
        )
        for level in OF_REPLICA_SETS
    )


class _Judging:
    def __init__(self, plan: Plan, logs: Sequence[NodeLog], rules: LogRules) -> None:
        self._plan = plan
        self._logs = logs
        self._rules = rules
        self._report: tuple[History, Report] | None = None

    def verdict(self, level: Level, history: History) -> Verdict:
        if self._report is None or self._report[0] is not history:
            self._report = history, self._judged(history)
        report = self._report[1]
        verdict = report.verdict(level)
        details: dict[str, object] = {}
        if level == "finish":
            details["series"] = series_of(asked_cuts(history), "")
        if said_of(self._plan).cut_every_s is None and report.had_nothing(level):
            details["opportunities"] = 0  # no user asked for cuts, and faults left none to judge
        return replace(verdict, details={**verdict.details, **details})

    def _judged(self, history: History) -> Report:
        quorum = min((each for each in quorums(history) if each is not None), default=self._rules.quorum)
        logs = LogCuts(self._logs, replace(self._rules, quorum=quorum))
        cuts, after_ns = asked_cuts(history), _after_ns(self._plan)
        # Cut by cut: the places of one are behind those of the one before, so logs are replayed once.
        judgements: list[tuple[Judgement, ...]] = [
            (_quorum(cut, logs), _marker(cut, logs), _finish(cut, logs, history, after_ns)) for cut in cuts
        ]
        if said_of(self._plan).cut_every_s is None:
            judgements = [tuple(map(_as_unasked, each)) for each in judgements]
        return Report(
            cuts=tuple(cut.cut for cut in cuts),
            times=times_of(cuts),
            judgements={
                level: tuple(each[number] for each in judgements)
                for number, level in enumerate(OF_REPLICA_SETS)
            },
        )


def _as_unasked(judgement: Judgement) -> Judgement:
    """If no user asked for cuts, one that logs do not decide leaves no doubt: a node may have joined anew."""
    return replace(judgement, standing=NOTHING) if judgement.result == "unknown" else judgement


def _after_ns(plan: Plan) -> int:
    """How long after its end a fault may keep a cut from finishing: links come back, and a leader is elected."""
    settings = settings_of(plan)
    link_s, election_s = 4 * max(settings.all_of(BEAT)), max(settings.all_of(ELECTION_TIMEOUT))
    return int(4 * (link_s + election_s) * SECOND_NS)


def _quorum(cut: AskedCut, logs: LogCuts) -> Judgement:
    if cut.state != "ok":
        return skipped("quorum", cut.cut, "it did not finish", lacks=False)
    places: dict[str, int] = {}
    for node, vclock in _named_places(cut).items():
        place = logs[node].of_vclock(vclock) if node in logs.walks else None
        if place is None:
            return skipped("quorum", cut.cut, f"the log of {node} has no place {vclock}", lacks=True)
        places[node] = place
    verdict = logs.check(places)
    return Judgement(
        level="quorum",
        cut=cut.cut,
        result=verdict.result,
        summary=verdict.summary,
        count=len(verdict.witnesses),
        witnesses=verdict.witnesses,
    )


def _marker(cut: AskedCut, logs: LogCuts) -> Judgement:
    if not _named_places(cut):
        return skipped("marker", cut.cut, "no node named its place", lacks=False)
    origin, lsn = cut.value["marker"]
    places: dict[str, int] = {}
    for node in _named_places(cut):
        place = logs[node].find(origin, lsn) if node in logs.walks else None
        if place is None:
            return skipped("marker", cut.cut, f"the log of {node} has no row {origin}/{lsn}", lacks=True)
        places[node] = place
    stands = {node: counted(logs[node].cut(place).vclock) for node, place in places.items()}
    witnesses = [
        Witness(
            rule="place-not-at-marker",
            summary=f"{node} named {vclock_words(vclock)} as its place in {cut.cut}, and its log is at "
            f"{vclock_words(stands[node])} behind the marker {origin}:{lsn}",
            events=(),
            node=node,
            how="in front of its marker"
            if sum(vclock.values()) < sum(stands[node].values())
            else "behind its marker",
        )
        for node, vclock in _named_places(cut).items()
        if vclock != stands[node]
    ]
    if cut.state == "ok":
        verdict = logs.check(places, dict(cut.value["vclock"]))
        witnesses += [witness for witness in verdict.witnesses if witness.rule in OF_MARKERS]
    summary = f"{len(places)} places are right behind the marker {origin}/{lsn}"
    return Judgement(
        level="marker",
        cut=cut.cut,
        result="invalid" if witnesses else "valid",
        summary=witnesses[0].summary if witnesses else summary,
        count=len(witnesses),
        witnesses=tuple(witnesses),
    )


def _finish(cut: AskedCut, logs: LogCuts, history: History, after_ns: int) -> Judgement:
    if cut.state == "ok":
        summary = f"every node named its place, {len(_named_places(cut))} of them"
        return Judgement(level="finish", cut=cut.cut, result="valid", summary=summary)
    causes: Sequence[str] = [
        *cut.causes(history, after_ns),
        *_second_writers(cut, logs),
        *_stopped(cut, history),
    ]
    if causes:
        return skipped("finish", cut.cut, "; ".join(causes), lacks=False)
    summary = f"{cut.cut} did not finish, and nothing that was done explains why: {cut.why}"
    witness = Witness(rule="no-cause", summary=summary, events=(), node=cut.node)
    return Judgement(
        level="finish", cut=cut.cut, result="invalid", summary=summary, count=1, witnesses=(witness,)
    )


def _second_writers(cut: AskedCut, logs: LogCuts) -> Sequence[str]:
    """The nodes with other rows in front of the marker than its writer had, by their logs."""
    if not _named_places(cut):
        return []
    origin, lsn = cut.value["marker"]
    named = counted(dict(cut.value["vclock"]))
    places = {node: walk.find(origin, lsn) for node, walk in logs.walks.items()}
    return [
        f"{node} had rows of a second writer by then"
        for node, place in places.items()
        if place is not None and counted(logs[node].cut(place).vclock) != named
    ]


def _stopped(cut: AskedCut, history: History) -> Sequence[str]:
    """The nodes that had stopped following peers when the cut ended. A different check judges whether they may."""
    stopped = {
        state.node: stopped_of(state.status) for state in history.states if state.time_ns <= cut.ended_ns
    }
    return [
        f"{node} had stopped following {', '.join(sorted(peers))}" for node, peers in stopped.items() if peers
    ]


def _named_places(cut: AskedCut) -> Mapping[str, dict[int, int]]:
    return {node: counted(dict(place)) for node, place in cut.value.get("places", {}).items()}
