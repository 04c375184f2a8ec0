"""The nodes' own logs as evidence: what they must agree on, and what they say that no client learned.

    logs = Logs.of(node_logs, LogRules(promotes="synchronous", has_votes=True, quorum=2, members=3))
    verdict = check_replayed(logs)
    settled = settle(history, logs, is_final=True)

`record` is the form that a log must be brought into. `columns` makes arrays of it, `nodes` replays the queue of each
log, `agreement` has the rules over all of them, `settle` uses them for operations without an outcome. A rule returns
the rows that break it (`breaches`). Nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Protocol

from checkers.history.operation import Operation
from checkers.history.values import many, often, value_words
from checkers.logs.wal.agreement import RULES
from checkers.logs.wal.breaches import one_of_each_first, witnesses_of
from checkers.logs.wal.nodes import Logs, Node
from checkers.logs.wal.record import Id, Kind, LogRules, NodeLog, Promotes, Record, Snapshot
from checkers.logs.wal.replay import Fate
from checkers.logs.wal.settle import Marks, Settled, settle
from checkers.verdict import WITNESSES_MAX, Result, Verdict, Witness

NAME = "audit"
MODEL = "logs that agree"


CONTRADICTIONS = {
    "acknowledged-but-discarded": "was acknowledged, and every log that has it discarded it",
    "failed-but-confirmed": "was said to have failed for sure, and a log confirms it",
    "revealed-but-discarded": "was refused with a value that every log which has it discarded",
}

Times = Callable[[Set[tuple[int, int]]], Mapping[tuple[int, int], int]]
"""By (origin, lsn), when rows were written, in ns of the run, as far as that is known."""


def check(logs: Sequence[NodeLog], rules: LogRules) -> Verdict:
    """Whether the logs of a cluster agree on what was confirmed, by the rules of `agreement`."""
    return check_replayed(Logs.of(logs, rules))


def check_replayed(logs: Logs, settled: Settled | None = None, times: Times | None = None) -> Verdict:
    """`check` over replayed logs; `settled`: the answers of clients must not contradict them.

    Without any record the verdict is unknown; where a log is damaged or missing it is invalid or unknown, never valid.
    `details["findings"]` says which logs are damaged or missing, `details["notes"]` what was left out for that,
    `details["breaches"]` counts by rule, `details["nodes"]` what became of the transactions in each log.
    """
    if not any(node.log.records for node in logs.nodes):
        return verdict_on(logs.nodes, logs.rules, 0)
    broken = {name: rule(logs) for name, rule in RULES.items()}
    witnesses = list(witnesses_of(logs, (breach for each in broken.values() for breach in each.first)))
    rows = {row for each in witnesses for row in each.records}
    totals = {name: each.count for name, each in broken.items()}
    if settled is not None:
        witnesses += contradictions(settled)
        totals |= zip(CONTRADICTIONS, settled.counts, strict=True)
    return verdict_on(
        logs.nodes,
        logs.rules,
        int(logs.is_confirmed.sum()),
        witnesses,
        totals,
        times(rows) if times and rows else {},
    )


class ReplayedLog(Protocol):
    """A log that was replayed. `counts`: how many transactions have each fate."""

    @property
    def log(self) -> NodeLog: ...
    @property
    def counts(self) -> Mapping[Fate, int]: ...


def verdict_on(
    nodes: Sequence[ReplayedLog],
    rules: LogRules,
    confirmed: int,
    witnesses: Sequence[Witness] = (),
    totals: Mapping[str, int] | None = None,
    written_ns: Mapping[tuple[int, int], int] | None = None,
) -> Verdict:
    """The verdict of `check_replayed`. `confirmed`: how many synchronous transactions some log confirms; `totals`: by
    rule how many breaches there are, of which `witnesses` has the first ones."""
    records = sum(len(node.log.records) for node in nodes)
    lost = _lost(nodes, rules.members)
    if records == 0:
        reasons = f": {'; '.join(lost)}" if lost else ""
        return Verdict(
            checker=NAME, model=MODEL, result="unknown", summary=f"there are no records to audit{reasons}"
        )
    breaches = {rule: count for rule, count in (totals or {}).items() if count}
    shown = [_timed(witness, written_ns or {}) for witness in one_of_each_first(witnesses)[:WITNESSES_MAX]]
    details = {
        "records": records,
        "nodes": {node.log.node: _counts(node) for node in nodes},
        "breaches": breaches,
        "findings": lost,
        "notes": _notes(nodes, rules.is_complete([node.log for node in nodes])),
    }
    counts = f"{many(records, 'record')}, {many(confirmed, 'synchronous transaction')} confirmed"
    result: Result = "invalid" if witnesses else "unknown" if lost else "valid"
    summary = {
        "invalid": f"the logs of {many(len(nodes), 'node')} break the rules {often(sum(breaches.values()))}: {counts}",
        "unknown": f"{_are_lost(nodes, rules.members)}: {'; '.join(lost)}; what is left agrees: {counts}",
        "valid": f"the logs of {many(len(nodes), 'node')} agree: {counts}",
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


def _lost(nodes: Sequence[ReplayedLog], members: int | None) -> list[str]:
    """A sentence for each log or snapshot that is damaged or missing."""
    lost = [f"{node.log.node}: {node.log.damage}" for node in nodes if node.log.damage]
    lost += [f"{node.log.node}: {sentence}" for node in nodes for sentence in node.log.unread]
    if members is not None and len(nodes) < members:
        lost.append(f"the logs of {members - len(nodes)} of {many(members, 'node')} are missing")
    return lost


def _are_lost(nodes: Sequence[ReplayedLog], members: int | None) -> str:
    is_complete = members is None or len(nodes) >= members
    if is_complete and not any(node.log.damage for node in nodes):
        return "snapshots are damaged"
    return "rows are missing"


def _notes(nodes: Sequence[ReplayedLog], is_complete: bool) -> list[str]:
    notes = [
        f"{node.log.node}: its log begins at a snapshot" for node in nodes if any(node.log.begins.values())
    ]
    if not is_complete:
        notes.append("not all logs are known to be whole: rules that count nodes were left out")
    return notes


def _counts(node: ReplayedLog) -> dict[str, int]:
    return {
        "records": len(node.log.records),
        **{fate.replace(" ", "_"): count for fate, count in sorted(node.counts.items())},
    }


__all__ = [
    "CONTRADICTIONS",
    "MODEL",
    "NAME",
    "RULES",
    "Fate",
    "Id",
    "Kind",
    "LogRules",
    "Logs",
    "Marks",
    "Node",
    "NodeLog",
    "Promotes",
    "Record",
    "Settled",
    "Snapshot",
    "check",
    "check_replayed",
    "settle",
]
