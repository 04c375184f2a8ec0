"""The nodes' own logs as evidence: what they must agree on, and what they know that no client learned.

    nodes = [replay(log, promotes="synchronous") for log in logs]
    verdict = check(logs, LogRules(promotes="synchronous", has_votes=True, quorum=2, members=3))
    settled = settle(history, nodes, is_final=True)

`record` is the form that a log must be brought into, `replay` replays the queue of one log, `agreement` has the rules
over all of them, `settle` uses them for operations without an outcome. Nothing here reads a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

from checkers.history.operation import Operation
from checkers.values import value_words
from checkers.verdict import WITNESSES_MAX, Result, Verdict, Witness
from checkers.wal.agreement import RULES, Cluster, one_of_each_first
from checkers.wal.record import Id, Kind, LogRules, NodeLog, Promotes, Record, Snapshot
from checkers.wal.replay import Fate, Replayed, replay
from checkers.wal.settle import Settled, settle

NAME = "audit"
MODEL = "logs that agree"


CONTRADICTIONS = {
    "acknowledged-but-discarded": "was acknowledged, and every log that has it discarded it",
    "failed-but-confirmed": "was said to have failed for sure, and a log confirms it",
    "revealed-but-discarded": "was refused with a value that every log which has it discarded",
}


def check(logs: Sequence[NodeLog], rules: LogRules) -> Verdict:
    """Whether the logs of a cluster agree on what was confirmed, by the rules of `agreement`."""
    return check_replayed([replay(log, rules.promotes) for log in logs], rules)


def check_replayed(
    nodes: Sequence[Replayed],
    rules: LogRules,
    settled: Settled | None = None,
    written_ns: Mapping[tuple[int, int], int] | None = None,
) -> Verdict:
    """The same over logs that were replayed already; `settled`: the answers of clients must not contradict them.

    `written_ns`: by (origin, lsn) of rows, when they were written, in ns of the run (`early.times_of_rows`).

    Without any record the verdict is unknown; where a log is damaged or missing it is invalid or unknown, never valid.
    `details["findings"]` says which logs are damaged or missing, `details["notes"]` what was left out for that,
    `details["breaches"]` counts by rule, `details["nodes"]` what became of the transactions in each log.
    """
    if not any(node.log.records for node in nodes):
        return verdict_on(nodes, rules, 0)
    cluster = cluster_of(nodes, rules)
    witnesses = [witness for rule in RULES.values() for witness in rule(cluster)]
    witnesses += () if settled is None else contradictions(settled)
    confirmed = len({name for node in nodes for name in node.order})
    return verdict_on(nodes, rules, confirmed, witnesses, written_ns=written_ns or {})


def cluster_of(nodes: Sequence[Replayed], rules: LogRules) -> Cluster:
    return Cluster(
        nodes=nodes,
        quorum=rules.quorum,
        has_votes=rules.has_votes,
        first_by_hand=rules.first_by_hand,
        started=rules.started,
        is_complete=rules.is_complete([node.log for node in nodes]),
    )


class Judged(Protocol):
    """A log that was judged. `counts`: of the fates of its transactions."""

    @property
    def log(self) -> NodeLog: ...
    @property
    def counts(self) -> Mapping[Fate, int]: ...


def verdict_on(
    nodes: Sequence[Judged],
    rules: LogRules,
    confirmed: int,
    witnesses: Sequence[Witness] = (),
    totals: Mapping[str, int] = MappingProxyType({}),
    written_ns: Mapping[tuple[int, int], int] = MappingProxyType({}),
) -> Verdict:
    """The verdict of `check_replayed`. `confirmed`: how many synchronous transactions some log confirms; `totals`: by
    rule how many breaches there are, if `witnesses` has not all of them."""
    records = sum(len(node.log.records) for node in nodes)
    lost = _lost(nodes, rules.members)
    if records == 0:
        why = f": {'; '.join(lost)}" if lost else ""
        return Verdict(
            checker=NAME, model=MODEL, result="unknown", summary=f"there are no records to audit{why}"
        )
    breaches = Counter(each.rule for each in witnesses) | Counter(totals)
    shown = [_timed(each, written_ns) for each in one_of_each_first(witnesses)[:WITNESSES_MAX]]
    details = {
        "records": records,
        "nodes": {node.log.node: _counts(node) for node in nodes},
        "breaches": dict(breaches),
        "findings": lost,
        "notes": _notes(nodes, rules.is_complete([node.log for node in nodes])),
    }
    counts = f"{records:,} records, {confirmed:,} synchronous transactions confirmed"
    result: Result = "invalid" if witnesses else "unknown" if lost else "valid"
    summary = {
        "invalid": f"the logs of {len(nodes)} nodes break the rules {sum(breaches.values())} times: {counts}",
        "unknown": f"{_are_lost(nodes, rules.members)}: {'; '.join(lost)}; what is left agrees: {counts}",
        "valid": f"the logs of {len(nodes)} nodes agree: {counts}",
    }[result]
    return Verdict(
        checker=NAME, model=MODEL, result=result, summary=summary, witnesses=tuple(shown), details=details
    )


def _timed(witness: Witness, written_ns: Mapping[tuple[int, int], int]) -> Witness:
    """The witness with the window of its rows, as far as their times are known."""
    times = [written_ns[row] for row in witness.records if row in written_ns]
    if not times or witness.start_ns is not None:
        return witness
    return replace(witness, start_ns=min(times), end_ns=max(times))


def contradictions(settled: Settled) -> list[Witness]:
    """Certain answers to clients that the logs deny."""
    return [
        Witness(
            rule=rule,
            summary=f"process {operation.process}'s {_deed(operation)} {CONTRADICTIONS[rule]}",
            events=operation.events,
            key=operation.key,
            node=operation.node,
            start_ns=operation.invoke_ns,
            end_ns=operation.complete_ns,
        )
        for rule, operations in zip(
            CONTRADICTIONS, (settled.lost, settled.kept, settled.revealed), strict=True
        )
        for operation in operations
    ]


def _deed(operation: Operation) -> str:
    if operation.is_deletion:
        return f"deletion of {operation.key}"
    return f"{operation.f} of {value_words(operation.value)}{f' to {operation.key}' if operation.key else ''}"


def _lost(nodes: Sequence[Judged], members: int | None) -> list[str]:
    """Sentences on what should be here and is not."""
    lost = [f"{node.log.node}: {node.log.damage}" for node in nodes if node.log.damage]
    lost += [f"{node.log.node}: {each}" for node in nodes for each in node.log.unread]
    if members is not None and len(nodes) < members:
        lost.append(f"the logs of {members - len(nodes)} of {members} nodes are missing")
    return lost


def _are_lost(nodes: Sequence[Judged], members: int | None) -> str:
    is_complete = members is None or len(nodes) >= members
    if is_complete and not any(node.log.damage for node in nodes):
        return "snapshots are damaged"
    return "rows are missing"


def _notes(nodes: Sequence[Judged], is_complete: bool) -> list[str]:
    notes = [
        f"{node.log.node}: its log begins at a snapshot" for node in nodes if any(node.log.begins.values())
    ]
    return (
        notes
        if is_complete
        else [*notes, "not all logs are known to be whole: rules that count nodes were left out"]
    )


def _counts(node: Judged) -> dict[str, int]:
    return {
        "records": len(node.log.records),
        **{fate.replace(" ", "_"): count for fate, count in sorted(node.counts.items())},
    }


__all__ = [
    "MODEL",
    "NAME",
    "RULES",
    "Fate",
    "Id",
    "Kind",
    "LogRules",
    "NodeLog",
    "Promotes",
    "Record",
    "Replayed",
    "Settled",
    "Snapshot",
    "check",
    "check_replayed",
    "replay",
    "settle",
]
