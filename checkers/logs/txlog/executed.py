"""Whether masters execute their queues in order, to the same states: I6, I7, I8, and what a restore takes back.

| rule | a run breaks it if |
|---|---|
| executed-out-of-turn | an executed index is not one above the last |
| executed-another | the executed transaction is not the synchronised entry at this index |
| executed-entry-removed | an executed entry leaves the synchronised queue, and no recovery is the cause |
| executed-without-restore | a recovery takes executed entries away, and the master goes on without a restore |
| restored-another | a restore comes to a state that no backup of this master has |
| backup-differs | a backup is not a state that this master had executed to |
| restored-too-much | a state is restored that has entries which the recovery took away |
| restored-without-split | a restore, where masters never split |
| answered-unexecuted | a client got the answer of a transaction that the master has not executed |
| undone-answer | a restore takes back a state of which a client got the answer, or which a client read |
| state-differs | the same transactions in the same order made two states |

With the strategies `simple` and `smart`, an undone answer is the documented price of a split.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, pairwise
from typing import Any

import numpy

from checkers.logs.txlog import kernels
from checkers.logs.txlog.asked import OK
from checkers.logs.txlog.columns import LogColumns
from checkers.logs.txlog.given import Given
from checkers.logs.txlog.kernels import NEVER
from checkers.logs.txlog.queues import room
from checkers.logs.txlog.records import Backup, Rare, Recovered, Recovering, Rejoined, Restored, Split
from checkers.logs.txlog.report import Breach, Report

Array = Any  # numpy's

UNDONE = "documented: a restore takes back what a part of a split cluster had executed"
SPURIOUS = "documented: a spurious failure makes the states of masters differ"
PLACES_MIN = 4
"""Of a step that stores a value: word, space, key, …, value."""

NONE: Array = numpy.zeros(0, dtype=numpy.int64)


def judge(given: Given) -> Report:
    report = Report()
    states = _States(given)
    masters: dict[str, _Master] = {}
    for name, log in given.by_master.items():
        masters[name] = _Master(given, log, states)
        report.breaches += masters[name].breaches()
    report.breaches += states.breaches
    executions = sum(len(master.undone) for master in masters.values())
    report.count("executed", masters=len(masters), executions=executions)
    report.count("executed", restores=sum(master.restores for master in masters.values()))
    report.breaches += _answers(given, masters, report)
    report.count("state", executions=executions, states=states.count, of_several_masters=states.compared)
    if not executions:
        report.nothing["executed"] = "nothing was executed"
    if not states.compared and len(given.masters) > 1:
        report.nothing["state"] = "no two masters executed the same transactions"
        if all(name in masters and len(masters[name].undone) for name in given.masters) and _all_apart(given):
            report.impossible.add("state")
    report.proofs["executed"] = {
        "rule": "all in turn",
        "executed": {name: master.index for name, master in masters.items()},
    }
    report.proofs["state"] = {"rule": "all the same", "compared": states.compared}
    return report


def _all_apart(given: Given) -> bool:
    """Whether, by the faults, each master may go on alone for ever, from its first transaction on."""
    may_be_apart = given.disturbances.may_be_apart
    return given.strategy == "none" and all(may_be_apart(*pair) for pair in combinations(given.masters, 2))


class _States:
    """The state behind each sequence of transactions. Sequences are the nodes of a tree, by number; 0 is the empty one.

    Executions have numbers, too: the numbers of a master follow those of the master before it.
    """

    def __init__(self, given: Given) -> None:
        logs = given.by_master.values()
        self.price = "" if given.is_deterministic else SPURIOUS
        self.digest = numpy.concatenate([numpy.zeros(0, dtype=numpy.int64), *(log.digest for log in logs)])
        self.begins = numpy.cumsum([0, *(len(log.digest) for log in logs)])
        self.child, self.sibling, self.last_id = (
            numpy.zeros(len(self.digest) + 1, dtype=numpy.int32) for _ in range(3)
        )
        self.first = numpy.full(len(self.digest) + 1, -1, dtype=numpy.int32)
        self.several = numpy.zeros(len(self.digest) + 1, dtype=numpy.bool_)
        self.state = numpy.zeros(kernels.PLACES, dtype=numpy.int64)
        self.state[kernels.SEQUENCES] = 1
        self.breaches: list[Breach] = []
        self._logs = [*logs]

    @property
    def count(self) -> int:
        return int(self.state[kernels.FOUND])

    @property
    def compared(self) -> int:
        """Sequences that several masters have executed."""
        return int(self.state[kernels.SEVERAL])

    def differs(self, log: LogColumns, row: int, first: int, names: Any) -> Breach:
        """`first`: the execution that first reached this sequence."""
        other = self._logs[number := int(numpy.searchsorted(self.begins, first, "right")) - 1]
        theirs = first - int(self.begins[number])
        own = int((log.rows.kind[:row] == kernels.EXECUTED).sum())
        place = int(other.rows.of_kind(kernels.EXECUTED)[theirs]) + 1
        return Breach(
            rule="state-differs",
            summary=f"{log.master} and {other.master} executed the same {log.rows.number[row]} transactions, the "
            f"last one {names[int(log.rows.name[row])]}, and came to different states "
            f"(hash {log.hash(own).hex()} and {other.hash(theirs).hex()})",
            records=[(other.master, place), (log.master, row + 1)],
            price=self.price,
        )


class _Master:
    """The executions of one master. `undone`: by execution the record that took it back (NEVER)."""

    def __init__(self, given: Given, log: LogColumns, states: _States) -> None:
        self.given, self.log, self.name, self.states = given, log, log.master, states
        self.restores = 0
        self.rows = log.rows.of_kind(kernels.EXECUTED)
        count = len(self.rows)
        self.undone = numpy.full(count, NEVER, dtype=numpy.int64)
        self._index_of = log.rows.number[self.rows]
        self._synced = numpy.empty(room(log), dtype=numpy.int32)
        self._live = numpy.empty(count, dtype=numpy.int32)
        """The executions that make the present state."""
        self._chain, self._hash_of = (numpy.zeros(count + 1, dtype=numpy.int32) for _ in range(2))
        """By executed index the sequence of transactions that made the state, and the execution with its hash."""
        self._out = numpy.empty((0, kernels.FIELDS), dtype=numpy.int64)
        self._backup: Backup | None = None
        self._is_split = self._is_recovering = False
        self._begin = 0
        self._state = states.state

    @property
    def index(self) -> int:
        return int(self._state[kernels.AT])

    def breaches(self) -> Iterator[Breach]:
        state = self._state
        state[[kernels.AT, kernels.IS_LOST, kernels.HAS_OTHER, kernels.LIVE, kernels.SYNCED]] = 0
        # How many executed entries a recovery has kept. It holds until a restore, perhaps that of a later recovery.
        state[kernels.KEPT] = NEVER
        state[kernels.CHAIN] = 1
        state[kernels.OWN] = self._begin = int(state[kernels.NEXT])
        rare = [record for record in self.log.rare if isinstance(record, ENDS)]
        ends = [*(record.place - 1 for record in rare), len(self.log.rows.kind)]
        for event, (begin, end) in zip((None, *rare), pairwise((0, *ends)), strict=True):
            if event is not None:
                yield from self._rare(event)
            yield from self._bulk(begin, end)
        self._state = state.copy()

    def _bulk(self, begin: int, end: int) -> Iterator[Breach]:
        states = self.states
        out, count = self.given.kernels.executed(
            self.log.rows, self.given.columns.id, begin, end, self._state, self._synced, self._chain, self._hash_of,
            self._live, states.child, states.sibling, states.last_id, states.first, states.several, states.digest,
            self._out,
        )  # fmt: skip
        for rule, row, one, two, _ in out[:count].tolist():
            if rule == kernels.STATE_DIFFERS:
                states.breaches.append(states.differs(self.log, row, one, self.given.columns.names))
            else:
                yield self._breach(row + 1, *self._finding(rule, row, one, two))

    def _breach(self, place: int, rule: str, says: str) -> Breach:
        return Breach(rule=rule, summary=f"{self.name} {says}", records=[(self.name, place)])

    def _finding(self, rule: int, row: int, one: int, two: int) -> tuple[str, str]:
        rows, names = self.log.rows, self.given.columns.names
        index = int(rows.number[row])
        if rule == kernels.WITHOUT_RESTORE:
            says = f"goes on from {one} executed, and a recovery has kept {two} of them"
            return "executed-without-restore", says
        if rule == kernels.OUT_OF_TURN:
            return "executed-out-of-turn", f"has executed {one}, and goes on with {index}"
        if rule == kernels.ENTRY_REMOVED:
            return "executed-entry-removed", f"has executed {one}, and keeps the first {index}"
        there = f"the entry is {names[one]}" if one >= 0 else f"the queue has {two}"
        says = f"executed {names[int(rows.name[row])]} at {index}, and {there}"
        return "executed-another", says

    def _rare(self, event: Rare) -> Iterator[Breach]:
        state = self._state
        match event:
            case Split(backup=backup, missing=missing):
                yield from self._backed_up(event, backup)
                self._is_split = bool(missing)
            case Rejoined():
                self._is_split = False
            case Recovering(backup=backup):
                yield from self._backed_up(event, backup)
                self._is_recovering = True
            case Recovered(common=common):
                if common < self.index or state[kernels.KEPT] < NEVER:
                    state[kernels.KEPT] = min(common, int(state[kernels.KEPT]))
                else:
                    self._backup = None
                self._is_split = self._is_recovering = False
            case Restored():
                yield from self._restored(event)  # compares with the backup, so before it is dropped
                if not (self._is_split or self._is_recovering):
                    self._backup = None

    def _backed_up(self, event: Split | Recovering, backup: Backup | None) -> Iterator[Breach]:
        if backup is None:
            return
        if not self._state[kernels.IS_LOST] and self._hash_at(backup.executed) != backup.hash:
            says = f"takes a backup at {backup.executed} of a state that it never had there"
            yield self._breach(event.place, "backup-differs", says)
        self._backup = backup

    def _hash_at(self, index: int) -> bytes | None:
        """The hash of the state with `index` transactions; None: there was no such state."""
        if index >= self._state[kernels.CHAIN]:
            return None
        return self.log.hash(int(self._hash_of[index]) - self._begin) if index else b""

    def _restored(self, event: Restored) -> Iterator[Breach]:
        state = self._state
        self.restores += 1
        if not self.given.can_split:
            yield self._breach(
                event.place,
                "restored-without-split",
                f"goes back to {event.index}: no master can be left out",
            )
        if self._backup is None or (event.index, event.hash) != self._backup:
            yield self._breach(
                event.place, "restored-another", f"goes back to {event.index}, of which it has no backup"
            )
        if event.index > state[kernels.KEPT]:
            says = f"goes back to {event.index}, and the recovery kept {state[kernels.KEPT]} entries"
            yield self._breach(event.place, "restored-too-much", says)
        self.given.kernels.undone(state, self._live, self._index_of, self.undone, event.index, event.place)
        state[kernels.CHAIN] = min(int(state[kernels.CHAIN]), event.index + 1)
        state[kernels.AT], state[kernels.KEPT] = event.index, NEVER
        state[kernels.IS_LOST] = state[kernels.CHAIN] != event.index + 1
        state[kernels.HAS_OTHER] = 0


ENDS = (Split, Rejoined, Recovering, Recovered, Restored)
"""The records that `_rare` applies. A kernel applies those between them."""


# ---- answers


def _answers(given: Given, masters: Mapping[str, _Master], report: Report) -> Iterator[Breach]:
    asked = given.asked
    ok = asked.type == OK
    breaches: list[tuple[int, Breach]] = []
    answers, reads = [], []
    for node, master in masters.items():
        here = numpy.flatnonzero(ok & asked.on(node))
        answered = here[asked.transaction[here] >= 0]
        answers.append(answered)
        first, second = given.first_two[node]
        done = first[asked.transaction[answered]]
        if not given.by_master[node].damage:
            breaches += (
                (operation, _unexecuted(given, node, operation)) for operation in answered[done < 0].tolist()
            )
        undone = numpy.zeros(len(answered), dtype=bool)
        undone[done >= 0] = master.undone[done[done >= 0]] < NEVER
        breaches += (
            (operation, _undone(given, master, execution, operation, "answered"))
            for operation, execution in zip(answered[undone].tolist(), done[undone].tolist(), strict=True)
        )
        shown = here[asked.transaction[here] < 0]
        reads.append(shown)
        if len(shown) and (master.undone < NEVER).any():
            breaches += _shown(given, master, shown, first, second)
    counted = {"answers": numpy.concatenate([NONE, *answers]), "reads": numpy.concatenate([NONE, *reads])}
    for name, operations in sorted(counted.items(), key=lambda entry: int(entry[1].min(initial=NEVER))):
        if len(operations):
            report.count("executed", **{name: len(operations)})
    return (breach for _, breach in sorted(breaches, key=lambda entry: entry[0]))


def _unexecuted(given: Given, node: str, operation: int) -> Breach:
    name = given.columns.names[int(given.asked.transaction[operation])]
    return Breach(
        rule="answered-unexecuted",
        summary=f"{node} answered {name}, and has not executed it",
        events=given.asked.events(operation),
        facts={"id": name, "node": node},
    )


def _writers(given: Given) -> Mapping[tuple[str, Any], int]:
    """(key, value) → the only transaction that stores this value under this key; -1 if there are several."""
    writers: dict[tuple[str, Any], int] = {}
    for number, log in enumerate(given.made.logs):
        rows = log.rows.of_kind(kernels.MADE)
        for row, name, steps in zip(
            rows.tolist(), given.columns.id[log.rows.name[rows]].tolist(), log.steps, strict=True
        ):
            if given.made.row[name] != row or given.made.log[name] != number:
                continue  # made twice: the last record counts
            for step in steps:
                if len(step) >= PLACES_MIN and isinstance(step[-1], str | int):
                    place = (str(step[2]), step[-1])
                    writers[place] = name if writers.get(place, name) == name else -1
    return writers


def _shown(
    given: Given, master: _Master, reads: Array, first: Array, second: Array
) -> Iterator[tuple[int, Breach]]:
    """Reads of the master's own state, before the restore, or before the master executed the writer again."""
    asked, writers = given.asked, _writers(given)
    for operation in reads.tolist():
        key, value = asked.read(operation)
        if not isinstance(value, str | int) or asked.complete_ns[operation] < 0:
            continue
        writer = writers.get((str(key), value), -1)
        done = int(first[writer]) if writer >= 0 else -1
        if done < 0 or master.undone[done] == NEVER:
            continue
        again = master.rows[second[writer]] + 1 if second[writer] >= 0 else master.undone[done]
        if asked.complete_ns[operation] < given.clocks[master.name].not_before_ns(int(again)):
            yield operation, _undone(given, master, done, operation, "showed")


def _undone(given: Given, master: _Master, execution: int, operation: int, says: str) -> Breach:
    is_documented = given.can_split and given.strategy != "none" and bool(given.disturbances.spans)
    row = master.rows[execution]
    name = given.columns.names[int(master.log.rows.name[row])]
    return Breach(
        rule="undone-answer",
        summary=f"operation {given.asked.invoke[operation]}: {master.name} {says} {name}, and then went back before it",
        records=[(master.name, int(row) + 1), (master.name, int(master.undone[execution]))],
        events=given.asked.events(operation),
        facts={"id": name},
        price=UNDONE if is_documented else "",
    )
