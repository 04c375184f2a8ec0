"""The audit of logs over records, one at a time: the slow, obvious twin of `checkers.logs.wal`.

Its own are the rules, how operations are joined to rows, and what logs settle. The queue is that of
`checkers.logs.wal.replay`, with every row (`test_replay` has its twin).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from checkers.history.faults import SETS_CLOCKS
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.logs.wal import LogRules, NodeLog, contradictions, verdict_on
from checkers.logs.wal.breaches import text
from checkers.logs.wal.early import LATE_NS, MODEL, NAME, WAITS_FOR_NOTHING, clocks
from checkers.logs.wal.record import Id, Mark, Promotes, Record
from checkers.logs.wal.replay import Fate, Limbo, Replayed, transactions
from checkers.logs.wal.settle import Settled, _refusal, _written, settled_history
from checkers.verdict import Verdict, Witness, concluded
from tests.checkers.logs.wal.agreement_over_objects import RULES, Cluster


def replay(log: NodeLog, promotes: Promotes = "synchronous") -> Replayed:
    """The fate of every transaction by `log`."""
    replayed = Replayed(log)
    limbo = Limbo(replayed, promotes)
    for rows in transactions(log):
        limbo.read(rows)
    if log.damage is not None:
        open_ones = [
            name for name, fate in replayed.fates.items() if fate != "nop" and not replayed.is_named(name)
        ]
        replayed.fates.update(dict.fromkeys(open_ones, "pending"))
        for name in open_ones:
            replayed.decided_by.pop(name, None)
        replayed.order = [name for name in replayed.order if name not in open_ones]
    return replayed


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """As `harness.judge.audit.Audit`."""

    logs: Verdict
    early: Verdict
    settling: Settled


def audit(logs: Sequence[NodeLog], rules: LogRules, history: History) -> Audited:
    """As `harness.judge.audit.audit`, where each member of the history has left a log."""
    nodes = [replay(log, rules.promotes) for log in logs]
    marks = Marks.of(history, nodes)
    is_final = rules.is_complete(logs) and history.settled is True
    settled = settle(history, nodes, is_final=is_final, known=marks)
    return Audited(
        logs=check_replayed(nodes, rules, settled, times_of_rows(history, nodes)),
        early=check_by_clocks(history, nodes, joined(marks)),
        settling=settled,
    )


def check(logs: Sequence[NodeLog], rules: LogRules) -> Verdict:
    """As `wal.check`."""
    return check_replayed([replay(log, rules.promotes) for log in logs], rules)


def check_replayed(
    nodes: Sequence[Replayed],
    rules: LogRules,
    settled: Settled | None = None,
    times: Mapping[tuple[int, int], int] | None = None,
) -> Verdict:
    if not any(node.log.records for node in nodes):
        return verdict_on(nodes, rules, 0)
    cluster = cluster_of(nodes, rules)
    witnesses = [witness for rule in RULES.values() for witness in rule(cluster)]
    witnesses += () if settled is None else contradictions(settled)
    confirmed = len({name for node in nodes for name in node.order})
    totals = Counter(each.rule for each in witnesses)
    return verdict_on(nodes, rules, confirmed, witnesses, totals, times)


def cluster_of(nodes: Sequence[Replayed], rules: LogRules) -> Cluster:
    return Cluster(
        nodes=nodes,
        quorum=rules.quorum,
        has_votes=rules.has_votes,
        first_by_hand=rules.first_by_hand,
        started=rules.started,
        is_complete=rules.is_complete([node.log for node in nodes]),
    )


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of each operation, by the index of its invocation; and the transactions that write each mark."""

    written: Mapping[int, list[Mark]]
    transactions: Mapping[Mark, set[Id]]

    @classmethod
    def of(cls, history: History, nodes: Iterable[Replayed]) -> Marks:
        return cls(_marks(history), _transactions(nodes))


def settle(
    history: History, nodes: Sequence[Replayed], *, is_final: bool, known: Marks | None = None
) -> Settled:
    """Settle the writes of `history` (f: write, cas, txn) with new values that no other operation wrote to their keys.

    `is_final`: every node's whole log is here, and the nodes were equal when it was taken. `known`: if it is.
    """
    known = known or Marks.of(history, nodes)
    marks, found = known.written, known.transactions
    settled: dict[str, list[int]] = {"happened": [], "did not": [], "open": []}
    lost: list[Operation] = []
    kept: list[Operation] = []
    for operation in history.operations:
        written = marks.get(operation.invoke_index)
        ids = {name for mark in written or () for name in found.get(mark, ())}
        is_unjoined = written is None or (operation.is_deletion and not ids)
        fates = None if is_unjoined else _fates(ids, nodes, is_final)
        if fates is None:
            if operation.type == "info" and _written(operation):
                settled["open"].append(operation.invoke_index)
        elif operation.type == "info":
            settled[fates].append(operation.invoke_index)
        elif operation.type == "ok" and fates == "did not":
            lost.append(operation)
        elif operation.type == "fail" and fates == "happened":
            kept.append(operation)
    revealed = tuple(_revealing(history, nodes, found)) if is_final else ()
    return Settled(
        history=settled_history(history, settled["did not"]),
        happened=tuple(settled["happened"]),
        did_not=tuple(settled["did not"]),
        open=tuple(settled["open"]),
        lost=tuple(lost),
        kept=tuple(kept),
        revealed=revealed,
        counts=(len(lost), len(kept), len(revealed)),
    )


def _revealing(
    history: History, nodes: Sequence[Replayed], found: Mapping[Mark, set[Id]]
) -> Iterator[Operation]:
    """A value that was confirmed at any time may be shown: it need not be the newest."""
    for operation in history.operations:
        shown = _shown_by(operation, history)
        if shown is None or shown not in found:
            continue
        fates = {node.fates[name] for name in found[shown] for node in nodes if name in node.fates}
        if fates <= {"rolled back", "nop"}:
            yield operation


def _shown_by(operation: Operation, history: History) -> Mark | None:
    if operation.type != "fail" or operation.complete_index is None:
        return None
    return _refusal(operation.f, operation.key, history.events[operation.complete_index].value)


def joined(known: Marks) -> Mapping[int, list[Id]]:
    """By the index of its invocation: the one transaction of each operation that can be joined to one."""
    found = known.transactions
    names = {
        index: {name for mark in marks for name in found.get(mark, ())}
        for index, marks in known.written.items()
    }
    return {index: list(each) for index, each in names.items() if len(each) == 1}


def _marks(history: History) -> Mapping[int, list[Mark]]:
    """By invocation: what this operation, and no other, writes; operations that share anything are left out."""
    written = {operation.invoke_index: _written(operation) for operation in history.operations}
    writers = Counter(mark for marks in written.values() for mark in marks)
    return {
        index: marks
        for index, marks in written.items()
        if marks and all(writers[mark] == 1 for mark in marks)
    }


def _transactions(nodes: Iterable[Replayed]) -> Mapping[Mark, set[Id]]:
    found: dict[Mark, set[Id]] = {}
    read: dict[Id, tuple[Record, ...]] = {}
    for node in nodes:
        for name, rows in node.transactions.items():
            if read.setdefault(name, rows) is not rows and _are_alike(read[name], rows):
                continue
            for row in rows:
                mark = row.mark
                if mark is not None:
                    found.setdefault(mark, set()).add(name)
    return found


def _are_alike(one: Sequence[Record], other: Sequence[Record]) -> bool:
    """Whether two logs hold a transaction with the same content."""
    return len(one) == len(other) and all(
        row.body == its.body and row.kind == its.kind for row, its in zip(one, other, strict=True)
    )


def _fates(ids: set[Id], nodes: Sequence[Replayed], is_final: bool) -> str | None:
    """`happened`, `did not` or `open`; None if the value cannot be joined to one transaction."""
    if len(ids) > 1:
        return None
    said: set[Fate] = {node.fates[name] for name in ids for node in nodes if name in node.fates}
    if said & {"confirmed", "committed"}:
        return "open" if said & {"rolled back", "nop"} else "happened"
    if is_final and said <= {"rolled back", "nop"}:
        return "did not"
    return "open"


def check_by_clocks(
    history: History, nodes: Sequence[Replayed], joined: Mapping[int, Sequence[Id]]
) -> Verdict:
    """The first rule where disks and links were not recorded: by the times that rows carry.

    Each node's wall clock, in its report to the monitor, is compared with the run's. The report arrived after the clock
    was read, so the clock is at least so far ahead. A write must not be answered more than `LATE_NS` before the CONFIRM
    that decides about it was written. With a clock fault in the run nothing is judged.
    """
    ahead_ns, names = clocks(history)
    witnesses: list[Witness] = []
    judged = 0
    logs = {node.log.node: node for node in nodes}
    for operation in history.operations if not has_clock_faults(history) else ():
        is_done = operation.type == "ok" and operation.wait not in WAITS_FOR_NOTHING
        node = logs.get(operation.node or "")
        if not is_done or node is None or operation.complete_ns is None:
            continue
        for name in joined.get(operation.invoke_index, ()):
            decision = node.decided_by.get(name)
            clock_ns = None if decision is None else ahead_ns.get(names.get(decision.origin, ""))
            if decision is None or clock_ns is None or not decision.time_ns:
                continue
            judged += 1
            late_ns = decision.time_ns - clock_ns - operation.complete_ns
            if late_ns > LATE_NS:
                witnesses.append(late(operation, name, decision, late_ns))
    return by_clocks(judged, witnesses)


def by_clocks(judged: int, witnesses: Sequence[Witness] = (), violations: int | None = None) -> Verdict:
    """The verdict of `check_by_clocks` over so many writes. `violations`: if `witnesses` are only some of them."""
    summary = f"none of {judged:,} writes was answered {LATE_NS / 1e6:g} ms before its CONFIRM was written"
    if not judged:
        summary = "nothing to judge: disks and links were not recorded, and no times can be compared"
    count = violations or len(witnesses)
    details = {"writes": judged, "by": "clocks", "violations": count, "vacuous": judged == 0}
    return concluded(NAME, witnesses, summary, model=MODEL, details=details, violations=count)


def times_of_rows(history: History, nodes: Sequence[Replayed]) -> Mapping[tuple[int, int], int]:
    """By (origin, lsn) when a row was written, in ns of the run.

    By the clocks that rows carry, less what their writer's clock was ahead. With a clock fault, and for a node that
    reported no clock, there is none.
    """
    times: dict[tuple[int, int], int] = {}
    if has_clock_faults(history):
        return times
    ahead_ns, names = clocks(history)
    for node in nodes:
        for record in node.log.records:
            clock_ns = ahead_ns.get(names.get(record.origin, ""))
            if clock_ns is not None and record.time_ns:
                times.setdefault((record.origin, record.lsn), max(record.time_ns - clock_ns, 0))
    return times


def has_clock_faults(history: History) -> bool:
    return any(fault.does in SETS_CLOCKS for fault in history.faults)


def late(operation: Operation, name: Id, decision: Record, late_ns: int) -> Witness:
    """A write of the transaction `name` was answered so much before `decision` was written."""
    return Witness(
        rule="answered-before-confirm",
        summary=f"{operation.node} answered process {operation.process}'s {operation.f} (transaction "
        f"{name[0]}:{name[1]}) {late_ns / 1e6:.0f} ms before it wrote that it is confirmed",
        events=operation.events,
        key=operation.key,
        node=operation.node,
        start_ns=operation.invoke_ns,
        end_ns=operation.complete_ns,
        explanation=(f"decided by {text(decision)}",),
        how="by clocks",
    )
