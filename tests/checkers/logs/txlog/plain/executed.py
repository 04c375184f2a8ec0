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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from checkers.history.operation import Operation
from checkers.logs.txlog.report import Breach, Report
from tests.checkers.logs.txlog.plain.given import Given
from tests.checkers.logs.txlog.plain.records import (
    Added,
    Backup,
    CaughtUp,
    Event,
    Executed,
    Recovered,
    Recovering,
    Restored,
    Split,
)
from tests.checkers.logs.txlog.plain.replay import NEVER, Replay

UNDONE = "documented: a restore takes back what a part of a split cluster had executed"
SPURIOUS = "documented: a spurious failure makes the states of masters differ"
PLACES_MIN = 4
"""Of a step that stores a value: word, space, key, …, value."""


def judge(given: Given) -> Report:
    found = Report()
    states = _States("" if given.is_deterministic else SPURIOUS)
    masters = [_Master(given, name, states) for name in given.masters if name in given.logs]
    for master in masters:
        found.breaches += master.breaches()
    found.breaches += states.breaches
    executions = sum(len(master.executions) for master in masters)
    found.count("executed", masters=len(masters), executions=executions)
    found.count("executed", restores=sum(master.restores for master in masters))
    found.breaches += _answers(given, {master.name: master for master in masters}, found)
    found.count("state", executions=executions, states=len(states), of_several_masters=states.compared)
    if not executions:
        found.nothing["executed"] = "nothing was executed"
    if not states.compared and len(given.masters) > 1:
        found.nothing["state"] = "no two masters executed the same transactions"
        have_executed = {master.name for master in masters if master.executions}
        pairs = combinations(given.masters, 2)
        if (
            given.strategy == "none"
            and have_executed == {*given.masters}
            and all(given.disturbances.may_be_apart(*pair) for pair in pairs)
        ):
            found.impossible.add("state")
    found.proofs["executed"] = {
        "rule": "all in turn",
        "executed": {master.name: master.index for master in masters},
    }
    found.proofs["state"] = {"rule": "all the same", "compared": states.compared}
    return found


@dataclass(slots=True)
class _Execution:
    id: str
    index: int
    place: int
    undone: int = NEVER
    """The record that took it back."""


class _States:
    """Which state each sequence of transactions comes to. A sequence is a number: its last one behind a shorter one."""

    def __init__(self, price: str) -> None:
        self._price = price
        self._numbers: dict[tuple[int, str], int] = {}
        self._found: dict[int, tuple[bytes, str, int]] = {}
        self._several: set[int] = set()
        self.breaches: list[Breach] = []

    def __len__(self) -> int:
        return len(self._found)

    @property
    def compared(self) -> int:
        """Sequences that several masters have executed."""
        return len(self._several)

    def behind(self, number: int, name: str) -> int:
        return self._numbers.setdefault((number, name), len(self._numbers) + 1)

    def add(self, number: int, event: Executed, master: str) -> bool:
        """False if another state is known of these transactions."""
        digest, other, place = self._found.setdefault(number, (event.hash, master, event.place))
        if other != master:
            self._several.add(number)
        if digest == event.hash:
            return True
        self.breaches.append(
            Breach(
                rule="state-differs",
                summary=f"{master} and {other} executed the same {event.index} transactions, the last one "
                f"{event.id}, and came to different states (hash {event.hash.hex()} and {digest.hex()})",
                records=[(other, place), (master, event.place)],
                price=self._price,
            )
        )
        return False


@dataclass(slots=True)
class _Master:
    given: Given
    name: str
    states: _States
    index: int = 0
    restores: int = 0
    executions: list[_Execution] = field(default_factory=list)
    """In the order of the log."""
    _live: list[_Execution] = field(default_factory=list)
    """Those that make the present state."""
    _chain: list[int] = field(default_factory=lambda: [0])
    """By executed index the sequence of transactions that made the state."""
    _hashes: list[bytes] = field(default_factory=lambda: [b""])
    _is_lost: bool = False
    """The state is no longer that of the index: a violation says so, and further ones would only follow."""
    _has_other_state: bool = False
    _backup: Backup | None = None
    _kept: int = NEVER
    """So many executed entries a recovery has kept, until the restore: perhaps that of a later recovery."""

    def breaches(self) -> Iterator[Breach]:
        replay = Replay(self.name)
        for event in self.given.logs[self.name].events:
            match event:
                case Executed():
                    yield from self._executed(event, replay)
                case Added(index=index) | CaughtUp(index=index) if index < min(self.index, self._kept):
                    stays = min(self.index, self._kept)
                    yield self._breach(
                        "executed-entry-removed", event, f"has executed {stays}, and keeps the first {index}"
                    )
                case Split(backup=backup) | Recovering(backup=backup) if backup is not None:
                    yield from self._backed_up(event, backup)
                case Recovered(common=common) if common < self.index or self._kept < NEVER:
                    self._kept = min(common, self._kept)
                case Recovered():
                    self._backup = None
                case Restored():
                    yield from self._restored(event)
                    if not (replay.missing or replay.is_recovering):
                        self._backup = None
            replay.apply(event)

    def _breach(self, rule: str, event: Event, says: str, **facts: Any) -> Breach:
        return Breach(
            rule=rule, summary=f"{self.name} {says}", records=[(self.name, event.place)], facts=facts
        )

    def _executed(self, event: Executed, replay: Replay) -> Iterator[Breach]:
        index = event.index
        if self._kept < self.index:
            yield self._breach(
                "executed-without-restore",
                event,
                f"goes on from {self.index} executed, and a recovery has kept {self._kept} of them",
            )
            self._kept, self._is_lost = NEVER, True
        if index != self.index + 1:
            yield self._breach(
                "executed-out-of-turn", event, f"has executed {self.index}, and goes on with {index}"
            )
            self._is_lost = True
        entry = replay.synced[index - 1].id if 0 < index <= len(replay.synced) else ""
        if entry != event.id:
            there = f"the entry is {entry}" if entry else f"the queue has {len(replay.synced)}"
            yield self._breach("executed-another", event, f"executed {event.id} at {index}, and {there}")
        execution = _Execution(event.id, index, event.place)
        self.executions.append(execution)
        self._live.append(execution)
        self.index = index
        if not self._is_lost:
            number = self.states.behind(self._chain[-1], event.id)
            self._chain.append(number)
            self._hashes.append(event.hash)
            # A state that differs makes all later ones differ: the first is the violation.
            if not self._has_other_state:
                self._has_other_state = not self.states.add(number, event, self.name)

    def _backed_up(self, event: Event, backup: Backup) -> Iterator[Breach]:
        known = self._hashes[backup.executed] if backup.executed < len(self._hashes) else None
        if not self._is_lost and known != backup.hash:
            yield self._breach(
                "backup-differs",
                event,
                f"takes a backup at {backup.executed} of a state that it never had there",
            )
        self._backup = backup

    def _restored(self, event: Restored) -> Iterator[Breach]:
        self.restores += 1
        if not self.given.can_split:
            yield self._breach(
                "restored-without-split", event, f"goes back to {event.index}: no master can be left out"
            )
        if self._backup is None or (event.index, event.hash) != self._backup:
            yield self._breach(
                "restored-another", event, f"goes back to {event.index}, of which it has no backup"
            )
        if event.index > self._kept:
            yield self._breach(
                "restored-too-much",
                event,
                f"goes back to {event.index}, and the recovery kept {self._kept} entries",
            )
        while self._live and self._live[-1].index > event.index:
            self._live.pop().undone = event.place
        del self._chain[event.index + 1 :], self._hashes[event.index + 1 :]
        self.index, self._kept = event.index, NEVER
        self._is_lost = len(self._chain) != event.index + 1
        self._has_other_state = False


# ---- answers


def _answers(given: Given, masters: Mapping[str, _Master], found: Report) -> Iterator[Breach]:
    by_id = {name: _by_id(master.executions) for name, master in masters.items()}
    writers: Mapping[tuple[str, Any], str] | None = None
    for operation in given.history.operations:
        node = operation.node or ""
        if operation.type != "ok" or node not in masters:
            continue
        if operation.transaction is not None:
            found.count("executed", answers=1)
            done = by_id[node].get(operation.transaction)
            if done is None:
                if not given.logs[node].damage:
                    yield Breach(
                        rule="answered-unexecuted",
                        summary=f"{node} answered {operation.transaction}, and has not executed it",
                        events=operation.events,
                        facts={"id": operation.transaction, "node": node},
                    )
            elif done[0].undone < NEVER:
                yield _undone(given, node, done[0], operation, "answered")
        elif operation.f == "read":
            writers = _writers(given) if writers is None else writers
            found.count("executed", reads=1)
            yield from _read(given, node, by_id[node], writers, operation)


def _by_id(executions: Sequence[_Execution]) -> dict[str, list[_Execution]]:
    found: dict[str, list[_Execution]] = {}
    for each in executions:
        found.setdefault(each.id, []).append(each)
    return found


def _writers(given: Given) -> Mapping[tuple[str, Any], str]:
    """(key, value) → the only transaction that stores this value under this key; "" if there are several."""
    writers: dict[tuple[str, Any], str] = {}
    for name, made in given.made.items():
        for step in made.steps:
            if len(step) >= PLACES_MIN and isinstance(step[-1], str | int):
                place = (str(step[2]), step[-1])
                writers[place] = name if writers.get(place, name) == name else ""
    return writers


def _read(
    given: Given,
    node: str,
    executions: Mapping[str, Sequence[_Execution]],
    writers: Mapping[tuple[str, Any], str],
    operation: Operation,
) -> Iterator[Breach]:
    """A read of the master's own state, before the restore and before its writer was executed again, if it was."""
    if not isinstance(operation.value, str | int) or operation.complete_ns is None:
        return
    done = executions.get(writers.get((str(operation.key), operation.value), ""), ())
    if not done or done[0].undone == NEVER:
        return
    again = done[1].place if len(done) > 1 else done[0].undone
    if operation.complete_ns < given.clocks[node].not_before_ns(again):
        yield _undone(given, node, done[0], operation, "showed")


def _undone(given: Given, node: str, execution: _Execution, operation: Operation, says: str) -> Breach:
    is_documented = given.can_split and given.strategy != "none" and bool(given.disturbances.spans)
    return Breach(
        rule="undone-answer",
        summary=f"operation {operation.invoke_index}: {node} {says} {execution.id}, and then went back before it",
        records=[(node, execution.place), (node, execution.undone)],
        events=operation.events,
        facts={"id": execution.id},
        price=UNDONE if is_documented else "",
    )
