"""Too early: an answer before its CONFIRM, an acknowledgement before its row is on disk.

The evidence is the record of a simulator of disks and links (`checkers.logs.wal.effects`). A history alone shows such
an answer only if a fault strikes in the moment between; here every answer is judged.

`RULES` says what each rule asks for.

The checker replays the part of a node's log that was durable when the answer left. A synchronous write needs a
CONFIRM that covers it, or a PROMOTE that keeps it. An asynchronous transaction is committed when it is durable and
nothing before it waits. A write that was only to be submitted promises nothing of this, and a NOP is not a row of its
transaction.

Where disks and links were not recorded, `check_by_clocks` judges the first rule by the times of rows, within a bound.

A write is joined to its rows by the request that made the node write them, else by a value that it alone wrote. Writes
without rows are counted (`details["not_joined"]`), and judged by the checks of the history alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy

from checkers.history.declared import declared
from checkers.history.faults import SETS_CLOCKS
from checkers.history.history import History
from checkers.history.line_kernels import ABSENT, OK
from checkers.history.members import least_quorum
from checkers.history.operation import Operation
from checkers.logs.wal.breaches import Breach, Part, one_of_each_first, text, witnesses_of
from checkers.logs.wal.columns import Rows
from checkers.logs.wal.disk import Disk
from checkers.logs.wal.effects import Answered, Begun, Claimed, Durable, Effect, RowLine
from checkers.logs.wal.nodes import Logs
from checkers.logs.wal.record import Id, Promotes, Record
from checkers.logs.wal.settle import Marks
from checkers.verdict import WITNESSES_MAX, Verdict, Witness, concluded

Array = Any  # numpy's

NAME = "acknowledged-early"
MODEL = "answered when it is confirmed, acknowledged when it is on disk"
RULES = {
    "answered-before-confirm": "when a write is answered, the log on that node's disk says that it is committed",
    "answered-before-quorum": "when a synchronous write is answered, its rows are on the disks of a quorum",
    "shown-before-confirm": "when a read or a refusal shows a value, the log on that node's disk has it committed",
    "read-behind": "when a linearizable read is answered, that log has confirmed what any had when it was asked",
    "claimed-before-durable": "a node acknowledges, and stands for election with, only rows that are on its disk",
    "term-not-durable": "a node sends only terms that its disk holds",
    "vote-not-durable": "a node sends only votes that its disk holds",
    "term-lost": "a node that joins anew, as the rows it needs are gone elsewhere, keeps its term",
    "rows-lost": "such a node has all rows afterwards that its disk held before",
}
LATE_NS = 100_000_000
"""How much earlier than its CONFIRM an answer may seem by clocks: the delay of a report on a busy machine."""
LINEARIZABLE = "linearizable"
"""The mode of a read."""
WAITS_FOR_NOTHING = ("submit", "none")
WRITES = ("writes", "both")
"""Effects of operations (`checkers.history.declared`) that make a node write, if they are answered."""
Joined = Mapping[int, Sequence[Id]]
"""By the index of an operation's invocation: the transactions that it alone can have written."""


def check(
    history: History,
    *,
    effects: Sequence[Effect] = (),
    promotes: Promotes = "synchronous",
    joined: Joined | None = None,
    shown: Joined | None = None,
    linearizable_reads: bool = False,
) -> Verdict:
    """Whether no answer, acknowledgement or claim left a node before the disks held the rows on which it rests.

    `effects` are those of the same run, oldest first; without any the verdict is unknown. `shown`: by the index of an
    operation's invocation the transactions whose values its answer shows as confirmed. `linearizable_reads`: such reads
    are promised. `details`: how many answered writes were judged, how many could not be joined to rows, how many claims
    of nodes were compared.
    """
    if not effects:
        return Verdict(
            checker=NAME, model=MODEL, result="unknown", summary="there is no record of disks and links"
        )
    judge = _Judge(history, effects, promotes, joined or {}, shown or {}, linearizable_reads)
    for effect in effects:
        judge.take(effect)
    return judge.verdict()


def check_by_clocks(history: History, logs: Logs, marks: Marks) -> Verdict:
    """The first rule where disks and links were not recorded: by the times that rows carry.

    Each node's wall clock, in its report to the monitor, is compared with the run's. The report arrived after the clock
    was read, so the clock is at least so far ahead. A write must not be answered more than `LATE_NS` before the CONFIRM
    that decides about it was written. With a clock fault in the run nothing is judged.
    """
    columns, rows = history.columns, logs.rows
    clock_ns = _clocks_by_origin(history, rows)
    is_joined = marks.is_own & (marks.transaction >= 0) & (columns.type == OK) & (columns.complete >= 0)
    if any(columns.code(word) >= 0 for word in WAITS_FOR_NOTHING):  # objects say which of them have it
        places = numpy.flatnonzero(is_joined)
        is_joined[places] = [each.wait not in WAITS_FOR_NOTHING for each in history.at(places)]
    judged = 0
    late: list[tuple[int, int, int, int]] = []
    for number, node in enumerate(logs.nodes):
        own = numpy.flatnonzero(is_joined & (columns.node == columns.code(node.log.node)))
        decision = node.decided[marks.transaction[own]]
        own, decision = own[decision >= 0], decision[decision >= 0]
        row = node.at[decision]
        ahead_ns, written_ns = clock_ns[rows.origin[row]], rows.time[row]
        is_known = (ahead_ns != ABSENT) & (written_ns != 0)
        judged += int(is_known.sum())
        late_ns = written_ns - ahead_ns - columns.complete_ns[own]
        is_late = is_known & (late_ns > LATE_NS)
        each = (column[is_late].tolist() for column in (own, late_ns, decision))
        late += [(place, number, ns, by) for place, ns, by in zip(*each, strict=True)]
    late.sort()
    shown = late[:WITNESSES_MAX]
    operations = history.at(numpy.array([each[0] for each in shown], dtype=numpy.int64))
    breaches = [
        _late(logs, operation, int(marks.transaction[place]), number, by, ns)
        for (place, number, ns, by), operation in zip(shown, operations, strict=True)
    ]
    witnesses = list(witnesses_of(logs, breaches))
    summary = f"none of {judged:,} writes was answered {LATE_NS / 1e6:g} ms before its CONFIRM was written"
    if not judged:
        summary = "nothing to judge: disks and links were not recorded, and no times can be compared"
    details = {"writes": judged, "by": "clocks", "violations": len(late), "vacuous": judged == 0}
    return concluded(NAME, witnesses, summary, model=MODEL, details=details, violations=len(late))


def _late(
    logs: Logs, operation: Operation, transaction: int, number: int, decision: int, late_ns: int
) -> Breach:
    """The breach of a write that was answered `late_ns` before the row at `decision` was written."""
    origin, lsn = logs.rows.id_of(transaction)

    def words(decisions: list[Record]) -> Witness:
        return Witness(
            rule="answered-before-confirm",
            summary=f"{operation.node} answered process {operation.process}'s {operation.f} (transaction "
            f"{origin}:{lsn}) {late_ns / 1e6:.0f} ms before it wrote that it is confirmed",
            events=operation.events,
            key=operation.key,
            node=operation.node,
            start_ns=operation.invoke_ns,
            end_ns=operation.complete_ns,
            explanation=(f"decided by {text(decisions[0])}",),
            how="by clocks",
        )

    return Breach((Part(number, (decision,)),), words)


def _clocks_by_origin(history: History, rows: Rows) -> Array:
    """How far the clock of each replica was ahead of the run's, in ns; ABSENT: unknown, as after a clock fault."""
    clock_ns = numpy.full(rows.origins, ABSENT, dtype=numpy.int64)
    if not any(fault.does in SETS_CLOCKS for fault in history.faults):
        ahead_ns, names = clocks(history)
        for origin, name in names.items():
            if 0 <= origin < rows.origins:
                clock_ns[origin] = ahead_ns[name]
    return clock_ns


def times_of_rows(
    history: History, logs: Logs, effects: Sequence[Effect], wanted: Set[tuple[int, int]]
) -> Mapping[tuple[int, int], int]:
    """By (origin, lsn) of the wanted rows, when a row was written, in ns of the run.

    By the record of disks where there is one. Else by the clocks that rows carry, less what their writer's clock was
    ahead: accurate to the delay of a report. With a clock fault, and for a node that reported no clock, there is none.
    """
    times: dict[tuple[int, int], int] = {}
    if effects:
        for effect in effects:
            for row in effect.rows if isinstance(effect, Durable) else ():
                if (row.origin, row.lsn) in wanted:
                    times.setdefault((row.origin, row.lsn), effect.time_ns)
        return times
    rows = logs.rows
    clock_ns = _clocks_by_origin(history, rows)
    is_wanted = numpy.isin(
        rows.origin.astype(numpy.int64) << 32 | rows.lsn, [origin << 32 | lsn for origin, lsn in wanted]
    )
    is_known = is_wanted & (rows.time != 0) & (clock_ns[rows.origin] != ABSENT)
    for node in logs.nodes:
        for row in node.at[is_known[node.at]].tolist():
            origin = int(rows.origin[row])
            times.setdefault((origin, int(rows.lsn[row])), max(int(rows.time[row] - clock_ns[origin]), 0))
    return times


def clocks(history: History) -> tuple[dict[str, int], dict[int, str]]:
    """By node, the most that its wall clock was ahead of the run's; and the nodes by their ids."""
    ahead_ns: dict[str, int] = {}
    names: dict[int, str] = {}
    for state in history.states:
        wall_ns, number = state.status.get("wall_ns"), state.status.get("id")
        if isinstance(wall_ns, int) and isinstance(number, int):
            names[number] = state.node
            ahead = wall_ns - state.time_ns
            ahead_ns[state.node] = max(ahead, ahead_ns.get(state.node, ahead))
    return ahead_ns, names


class _Processes:
    """The operation that a process was running at a time."""

    def __init__(self, history: History) -> None:
        self._operations: dict[int, list[Operation]] = {}
        for operation in history.operations:
            self._operations.setdefault(operation.process, []).append(operation)
        self._begun = {p: [entry.invoke_ns for entry in own] for p, own in self._operations.items()}

    def at(self, process: int, time_ns: int) -> Operation | None:
        place = bisect_right(self._begun.get(process, ()), time_ns) - 1
        if place < 0:
            return None
        operation = self._operations[process][place]
        is_over = operation.complete_ns is not None and operation.complete_ns < time_ns
        return None if is_over else operation


@dataclass(frozen=True, slots=True)
class _Transaction:
    last: int
    is_synchronous: bool


class _Judge:
    def __init__(
        self,
        history: History,
        effects: Sequence[Effect],
        promotes: Promotes,
        joined: Joined,
        shown: Joined,
        linearizable_reads: bool,
    ) -> None:
        self._history = history
        self._promotes: Promotes = promotes
        self._shown = shown
        self._judges_reads = linearizable_reads
        self._confirmed: dict[int, list[tuple[int, int, str]]] = {}
        """By owner: when a log first confirmed its entries up to an lsn, the lsn, and the node; both numbers grow."""
        self._kept_by: dict[Id, Id] = {}
        """By PROMOTE: the owner and the lsn that it names; those of a PROMOTE that it names, if it does."""
        self._reads = 0
        self._disks: dict[str, Disk] = {}
        self._processes = _Processes(history)
        self._ids = {name: number for number, name in clocks(history)[1].items()}
        self._records: dict[tuple[RowLine, ...], Sequence[Record]] = {}
        self._transactions: dict[Id, _Transaction] = {}
        self._written_by: dict[int, list[Id]] = {}
        """By the index of an invocation: the transactions that its request made a node write."""
        for effect in effects:
            if isinstance(effect, Durable):
                self._note(effect)
        for index, names in joined.items():
            known = [name for name in names if name in self._transactions]
            if known:
                self._written_by.setdefault(index, known)
        self._witnesses: list[Witness] = []
        self._reported: set[tuple[str, str, object]] = set()
        self._judged: set[int] = set()
        self._claims = 0

    def _note(self, durable: Durable) -> None:
        for row in durable.rows:
            if row.kind == "write":
                name = (row.origin, row.first or row.lsn)
                before = self._transactions.get(name, _Transaction(0, is_synchronous=False))
                self._transactions[name] = _Transaction(
                    max(before.last, row.lsn), before.is_synchronous or row.is_synchronous
                )
        if durable.process is None:
            return
        operation = self._processes.at(durable.process, durable.written_ns)
        if operation is not None:
            names = {(row.origin, row.first or row.lsn): None for row in durable.rows if row.kind == "write"}
            self._written_by.setdefault(operation.invoke_index, []).extend(names)

    def take(self, effect: Effect) -> None:
        match effect:
            case Durable():
                records = self._records_of(effect.rows)
                self._disk(effect.node).take(records)
                self._note_confirmed(effect.time_ns, effect.node, records)
            case Begun():
                self._begun(effect)
            case Claimed():
                self._compare(effect)
            case Answered():
                self._answered(effect)

    def _note_confirmed(self, time_ns: int, node: str, records: Sequence[Record]) -> None:
        for row in records:
            # The CONFIRM of a PROMOTE is about what that keeps.
            name = self._kept_by.get((row.owner, row.until), (row.owner, row.until))
            if row.kind == "promote":
                self._kept_by[row.origin, row.lsn] = name
            if row.kind != "confirm":
                continue
            known = self._confirmed.setdefault(name[0], [])
            # Both numbers grow, so the last entry before a time has the greatest lsn: `_judge_read` bisects.
            if not known or name[1] > known[-1][1]:
                known.append((time_ns, name[1], node))

    def _records_of(self, rows: tuple[RowLine, ...]) -> Sequence[Record]:
        """The records of rows; kept, because the same rows come to several disks."""
        records = self._records.get(rows)
        if records is None:
            records = self._records[rows] = [row.record() for row in rows]
        return records

    def _disk(self, node: str) -> Disk:
        disk = self._disks.get(node)
        if disk is None:
            disk = self._disks[node] = Disk(node, self._promotes)
        return disk

    def _begun(self, begun: Begun) -> None:
        disk = self._disk(begun.node)
        if disk.is_join(begun) and begun.term < disk.term:
            self._breach(
                "term-lost",
                (begun.node, disk.term),
                f"{begun.node} joined anew with term {begun.term}, and its disk held term {disk.term}",
                begun,
            )
        disk.begin(begun)  # last: it replaces the term that is compared above

    # ---- what nodes say to each other

    def _compare(self, claimed: Claimed) -> None:
        disk = self._disk(claimed.node)
        self._claims += 1
        has = dict(claimed.vclock)
        for origin, lsn in disk.before.items():
            if has and has.get(origin, 0) < lsn:
                self._breach(
                    "rows-lost",
                    (claimed.node, origin),
                    f"{claimed.node} joined anew, and then has lsn {has.get(origin, 0)} of replica {origin}: "
                    f"its disk held {lsn} before",
                    claimed,
                )
        for origin, lsn in disk.lacks(claimed):
            self._breach(
                "claimed-before-durable",
                (claimed.node, origin),
                f"{claimed.node} claimed lsn {lsn} of replica {origin} in its {claimed.what}, and its disk held "
                f"{disk.vclock.get(origin, 0)}",
                claimed,
            )
        if claimed.term > disk.term:
            self._breach(
                "term-not-durable",
                (claimed.node, claimed.term),
                f"{claimed.node} said in its {claimed.what} that it is in term {claimed.term}, and its disk held "
                f"term {disk.term}",
                claimed,
            )
        elif claimed.vote and (claimed.term, claimed.vote) not in disk.votes:
            self._breach(
                "vote-not-durable",
                (claimed.node, claimed.term),
                f"{claimed.node} said that it voted for replica {claimed.vote} in term {claimed.term}, and its disk "
                "held no such vote",
                claimed,
            )

    def _breach(self, rule: str, of: object, summary: str, claimed: Claimed | Begun) -> None:
        """A claim that is repeated is one breach."""
        if (rule, claimed.node, of) in self._reported:
            return
        self._reported.add((rule, claimed.node, of))
        self._witnesses.append(
            Witness(
                rule=rule,
                summary=summary,
                events=(),
                node=claimed.node,
                start_ns=claimed.time_ns,
                end_ns=claimed.time_ns,
            )
        )

    # ---- what clients are told

    def _answered(self, answered: Answered) -> None:
        operation = self._processes.at(answered.process, answered.time_ns)
        if operation is None:
            return
        self._judge_shown(answered, operation)
        if operation.type != "ok" or operation.wait in WAITS_FOR_NOTHING:
            return
        if self._judges_reads and operation.mode == LINEARIZABLE:
            self._judge_read(answered, operation)
        for name in self._written_by.get(operation.invoke_index, ()):
            self._judged.add(operation.invoke_index)
            self._judge_answer(answered, operation, name, self._transactions[name])

    def _judge_shown(self, answered: Answered, operation: Operation) -> None:
        disk = self._disk(answered.node)
        for name in self._shown.get(operation.invoke_index, ()):
            transaction = self._transactions.get(name)
            if transaction is not None and not disk.knows_as_done(name, transaction.last):
                fate = disk.replayed.fates.get(name, "not on its disk")
                self._early(
                    "shown-before-confirm",
                    f"{answered.node} showed process {operation.process}'s {operation.f} the value of transaction "
                    f"{name[0]}:{name[1]} when its own log did not say yet that it is committed: it was {fate}",
                    answered,
                    operation,
                    fate,
                )

    def _judge_read(self, answered: Answered, operation: Operation) -> None:
        """Judge a linearizable read. A quorum has every confirmed entry, and the read asked at least one node of it."""
        disk = self._disk(answered.node)
        self._reads += 1
        for owner, known in self._confirmed.items():
            # Before the question, not at its time: lsns are above 0, so entries of an equal time are behind.
            place = bisect_left(known, (operation.invoke_ns, 0, "")) - 1
            has = max(disk.limbo.confirmed_of.get(owner, 0), disk.begins.get(owner, 0))
            if place >= 0 and has < known[place][1]:
                self._early(
                    "read-behind",
                    f"{answered.node} answered process {operation.process}'s linearizable {operation.f} with replica "
                    f"{owner}'s entries confirmed up to lsn {has}: before it was asked, the log of {known[place][2]} "
                    f"had them confirmed up to lsn {known[place][1]}",
                    answered,
                    operation,
                    f"its own log has it as {self._role(answered.node, disk)}",
                )

    def _role(self, node: str, disk: Disk) -> str:
        if not disk.limbo.owner or disk.limbo.owner != self._ids.get(node):
            return "a follower"
        is_deposed = any(other.limbo.term > disk.limbo.term for other in self._disks.values())
        return "the owner, and another has a newer one" if is_deposed else "the owner"

    def _judge_answer(
        self, answered: Answered, operation: Operation, name: Id, transaction: _Transaction
    ) -> None:
        disk = self._disk(answered.node)
        deed = f"process {operation.process}'s {operation.f} (transaction {name[0]}:{name[1]})"
        if not disk.knows_as_done(name, transaction.last):
            fate = disk.replayed.fates.get(name, "not on its disk")
            self._early(
                "answered-before-confirm",
                f"{answered.node} answered {deed} when its own log did not say yet that it is committed: it was {fate}",
                answered,
                operation,
                fate,
            )
        if not transaction.is_synchronous:
            return
        holders = [node for node, other in self._disks.items() if other.holds(name, transaction.last)]
        assert operation.complete_ns is not None
        needed = least_quorum(self._history, (operation.invoke_ns, operation.complete_ns))
        if needed is not None and len(holders) < needed:
            own = "confirms" if disk.knows_as_done(name, transaction.last) else "does not confirm"
            half = ", half of the nodes have it" if 2 * len(holders) == len(self._disks) else ""
            self._early(
                "answered-before-quorum",
                f"{answered.node} answered {deed} when it was on the disk of {', '.join(sorted(holders)) or 'no node'} "
                f"alone, and {needed} nodes are needed",
                answered,
                operation,
                f"its own log {own} it{half}{', told by a read' if operation.f == 'read' else ''}",
            )

    def _early(
        self, rule: str, summary: str, answered: Answered, operation: Operation, how: str = ""
    ) -> None:
        self._witnesses.append(
            Witness(
                rule=rule,
                summary=summary,
                events=operation.events,
                key=operation.key,
                node=answered.node,
                start_ns=operation.invoke_ns,
                end_ns=operation.complete_ns,
                explanation=(
                    f"the answer left {answered.node} at {answered.time_ns / 1e9:.4f} s",
                    *([f"{answered.node}: {how}"] if how and how not in summary else ()),
                ),
                how=how,
            )
        )

    # ---- the verdict

    def verdict(self) -> Verdict:
        judged = len(self._judged)
        breaches: dict[str, int] = {}
        for witness in self._witnesses:
            breaches[witness.rule] = breaches.get(witness.rule, 0) + 1
        details = {
            "writes": judged,
            "not_joined": sum(self._is_unjoined(operation) for operation in self._history.operations),
            "claims": self._claims,
            "linearizable_reads": self._reads,
            "breaches": breaches,
            "vacuous": judged == 0,
        }
        summary = (
            f"{judged:,} writes were answered when they were confirmed, and {self._claims:,} acknowledgements and "
            "votes reported only what was on disk"
        )
        return concluded(NAME, one_of_each_first(self._witnesses), summary, model=MODEL, details=details)

    def _is_unjoined(self, operation: Operation) -> bool:
        is_write = (
            declared(self._history.header).get(operation.f) in WRITES
            and operation.type == "ok"
            and operation.phase == "load"
        )
        return is_write and operation.invoke_index not in self._written_by
