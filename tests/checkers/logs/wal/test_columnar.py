"""The audit and its twin over objects say the same, of logs that were read as records and of those read as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from random import Random
from typing import Any
from unittest.mock import patch

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from checkers.history.columns import of_operations
from checkers.history.history import Header, History
from checkers.history.operation import Event, EventType, Operation
from checkers.history.stored import StoredOperations
from checkers.logs.wal import LogRules, NodeLog, Record, breaches, nodes
from checkers.logs.wal.plain import Builder, StoredRecords, StoredTuples, Tuples
from checkers.logs.wal.record import NotPlain, Snapshot
from checkers.verdict import WITNESSES_MAX
from harness.judge.audit import Audit, audit
from tests import examples
from tests.checkers.logs.wal import over_objects
from tests.checkers.logs.wal.logs import confirm, nop, promote, rollback, vote, write

NODES = ("n1", "n2", "n3")
RULES = LogRules(promotes="synchronous", has_votes=False, quorum=2, members=3)
OTHERS = (
    RULES,
    RULES,
    replace(RULES, has_votes=True),
    replace(RULES, has_votes=True, promotes="at once", first_by_hand=True, started={1: 3}),
    replace(RULES, quorum=3, members=None),
)
SPACE = 512


class Run:
    """A cluster that is drawn: one order of rows, logs that follow it, and what clients were told."""

    def __init__(self, chance: Random, *, is_rich: bool = False) -> None:
        self.chance = chance
        self.is_rich = is_rich
        """With values, transactions and updates that plain rows have not."""
        self.rows: list[Record] = []
        self.last = dict.fromkeys((1, 2, 3), 0)
        self.owner, self.term = 1, 1
        self.waiting: list[tuple[Record, int]] = []
        """With the place of its operation in `told`."""
        self.told: list[tuple[str, str | None, Any, EventType]] = []
        """Of each operation: f, key, value, outcome."""
        self.confirmed = 0
        for _ in range(chance.randint(0, 30)):
            chance.choice(
                (self.write, self.write, self.write, self.confirm, self.roll_back, self.promote, self.void)
            )()

    def next(self) -> int:
        self.last[self.owner] += 1
        return self.last[self.owner]

    def write(self) -> None:
        if self.is_rich and self.chance.random() < 0.5:
            self.chance.choice((self.write_rich, self.update, self.transact))()
            return
        chance, lsn = self.chance, self.next()
        key, value = (
            chance.choice("xy"),
            chance.choice((10 * lsn + self.owner, 10 * lsn + self.owner, 7, None)),
        )
        is_synchronous = chance.random() < 0.9
        row = write(self.owner, lsn, value, key=key, waits=is_synchronous)
        shown = () if value is None else (key, value)
        row = structs.replace(row, space=SPACE, key=key, tuple=shown, time_ns=1_000 * len(self.rows) + 1)
        self.rows.append(row)
        self.ask("write", key, value, row)

    def ask(self, f: str, key: str | None, value: object, row: Record) -> None:
        """An operation whose transaction ends with the row."""
        self.told.append((f, key, value, "info"))
        if row.is_synchronous or self.waiting:
            self.waiting.append((row, len(self.told) - 1))

    def row(
        self, key: str, *fields: object, is_whole: bool = True, first: int = 0, ends: bool = True
    ) -> Record:
        """The next row, with whatever fields."""
        shown = (key, *fields) if is_whole else ()
        row = structs.replace(
            write(self.owner, self.next(), key=key),
            space=SPACE,
            key=key,
            tuple=shown,
            body=repr(fields).encode(),
        )
        row = structs.replace(
            row, is_whole=is_whole, first=first, ends=ends, time_ns=1_000 * len(self.rows) + 1
        )
        self.rows.append(row)
        return row

    def write_rich(self) -> None:
        number = 10_000 + self.last[self.owner]
        kept, asked = self.chance.choice(
            (
                (number + 0.5, number + 0.5),
                (float(number), number),
                (number, float(number)),
                (1 << 64, 1 << 64),
                (-(1 << 62), -(1 << 62)),
                (f"text {number}", f"text {number}"),
                (True, True),
                ({"a": [1]}, number),
                ([1, [2]], number),
            )
        )
        row = self.row("x", kept) if self.chance.random() < 0.9 else self.row("x", kept, "more")
        self.ask("write", "x", asked, row)

    def update(self) -> None:
        self.ask("write", "y", 20_000 + self.last[self.owner], self.row("y", is_whole=False))

    def transact(self) -> None:
        one, two = 30_000 + self.last[self.owner], self.chance.choice((7, 40_000 + self.last[self.owner]))
        first = self.row("x", [5, one], first=self.last[self.owner] + 1, ends=self.chance.random() < 0.05)
        row = self.row("y", two, first=first.lsn)
        self.ask("txn", None, [["append", "x", one], ["r", "x", None], ["w", "y", two]], row)

    def settle(self, count: int, outcome: EventType) -> None:
        for _, place in self.waiting[:count]:
            self.told[place] = (*self.told[place][:3], self.chance.choice((outcome, outcome, "info")))

    def confirm(self) -> None:
        many = self.chance.randint(0, len(self.waiting))
        while many and not self.waiting[many - 1][0].is_synchronous:
            many -= 1
        if many:
            self.settle(many, "ok")
            row = confirm(self.owner, self.next(), self.waiting[many - 1][0].lsn, self.waiting[0][0].origin)
            late_ns = self.chance.choice((0, 0, 0, 100_010_000, 200_000_000))
            self.rows.append(structs.replace(row, time_ns=1_000 * len(self.rows) + late_ns))
            del self.waiting[:many]

    def roll_back(self) -> None:
        if self.waiting and self.waiting[0][0].is_synchronous:
            first = self.waiting[0][0]
            self.settle(len(self.waiting), "fail")
            self.rows.append(
                structs.replace(rollback(self.owner, self.next(), first.lsn), owner=first.origin)
            )
            self.waiting.clear()

    def promote(self) -> None:
        kept = [entry for entry in self.waiting if entry[0].is_synchronous]
        over = self.owner
        until = kept[-1][0].lsn if kept else self.last[over]
        self.owner, self.term = self.chance.choice((1, 2, 3)), self.term + 1
        self.settle(len(self.waiting), "ok")
        self.waiting.clear()
        waits = self.chance.random() < 0.7
        lsn = self.next()
        row = promote(self.owner, lsn, over=over, until=until, term=self.term)
        is_told = not self.is_rich or self.chance.random() < 0.7
        self.rows.append(structs.replace(row, waits=waits if is_told else None))
        if waits and self.chance.random() < 0.9:
            self.rows.append(confirm(self.owner, self.next(), lsn))

    def void(self) -> None:
        self.rows.append(nop(self.owner, self.next()))

    def log(self, node: str, snapshots: Sequence[int] = (0, 0, 0, 1, 2, 3)) -> NodeLog:
        """`snapshots`: one of these numbers is how many there are."""
        chance = self.chance
        rows = self.rows[: chance.choice((len(self.rows), len(self.rows), chance.randint(0, len(self.rows))))]
        if rows and chance.random() < 0.25:
            rows = self.spoilt(rows)
        places = sorted(chance.randint(0, len(rows)) for _ in range(chance.randint(0, 2)))
        for lsn, place in enumerate(places):
            rows.insert(place + lsn, vote(lsn + 1, chance.choice((2, lsn + 2)), chance.randint(1, 3)))
        untils = sorted({chance.randint(0, len(rows)) for _ in range(chance.choice(snapshots))})
        taken = tuple(self.snapshot(rows[:until], f"{until}.snap") for until in untils)
        rows = [
            structs.replace(row, file=f"{node}.xlog", row=number) for number, row in enumerate(rows, start=1)
        ]
        damage = "a block is cut off" if chance.random() < 0.05 else None
        whole = NodeLog(node=node, records=tuple(rows), snapshots=taken, damage=damage)
        if not taken or chance.random() < 0.5:
            return whole
        if chance.random() < 0.5:  # a snapshot that came by a join may be ahead of the log
            return replace(whole, records=tuple(rows[: chance.randint(0, len(rows))]))
        return replace(whole, records=tuple(rows[untils[0] :]), begins=taken[0].vclock)

    def spoilt(self, rows: list[Record]) -> list[Record]:
        chance, rows = self.chance, list(rows)
        at = chance.randrange(len(rows))
        row = rows[at]
        match chance.randrange(8):
            case 0:
                del rows[at]
            case 1 if row.kind == "write":
                rows[at] = structs.replace(row, tuple=(row.key, 1), body=b"other")
            case 2:
                rows[at] = structs.replace(nop(row.origin, row.lsn), time_ns=row.time_ns)
            case 3:
                rows[at:at] = [row]
            case 4:
                rows[at : at + 2] = rows[at : at + 2][::-1]
            case 5:
                rows[at] = structs.replace(row, until=row.until + 1, body=b"more")
            case 6:
                rows[at] = structs.replace(row, term=max(0, row.term - 1))
            case 7:
                rows.insert(
                    at, structs.replace(rollback(row.origin, row.lsn + 100, row.until), owner=row.owner)
                )
        return rows

    def snapshot(self, rows: list[Record], place: str) -> Snapshot:
        """After these rows; right if all of them are confirmed, as a rule."""
        tuples: dict[tuple[int, object], tuple[object, ...]] = {}
        vclock: dict[int, int] = {}
        for row in rows:
            vclock[row.origin] = max(row.lsn, vclock.get(row.origin, 0))
            if row.kind == "write":
                tuples[row.space, row.key] = row.tuple
        tuples = {place: values for place, values in tuples.items() if values}
        if tuples and self.chance.random() < 0.2:
            tuples.popitem()
        if self.chance.random() < 0.1:
            tuples[SPACE, "z"] = ("z", 1)
        left_out = frozenset({self.chance.choice((SPACE, SPACE + 1))} if self.chance.random() < 0.2 else ())
        last = max((row.until for row in rows if row.kind == "confirm"), default=0)
        confirmed = dict.fromkeys(vclock, last) if self.chance.random() < 0.8 else {}
        owner, term = self.chance.choice((0, 1, 1, 2)), self.chance.choice((1, 9, 9, 9))
        return Snapshot(
            place=place,
            vclock=vclock,
            tuples=tuples,
            left_out=left_out,
            owner=owner,
            term=term,
            confirmed=confirmed,
        )

    def history(self) -> History:
        events: list[Event] = []

        def say(type_: EventType, process: int | str, f: str, **fields: Any) -> None:
            index = len(events)
            events.append(
                Event(index=index, time_ns=1_000 * index, type=type_, process=process, f=f, **fields)
            )

        for number, node in enumerate(NODES, start=1):
            say(
                "info",
                "monitor",
                "state",
                node=node,
                value={"up": True, "id": number, "wall_ns": 1_000 * number},
            )
        for process, (f, key, value, outcome) in enumerate(self.told):
            is_wrong = self.chance.random() < 0.05
            wrong: tuple[EventType, ...] = ("ok", "fail")
            told = self.chance.choice(wrong) if is_wrong else outcome
            node = self.chance.choice(NODES)
            wait = "submit" if self.is_rich and self.chance.random() < 0.2 else None
            say("invoke", process, f, key=key, value=value, node=node, wait=wait)
            if told != "info" or self.chance.random() < 0.5:
                error = "submitted" if told == "info" and wait else None
                say(told, process, f, key=key, value=value, node=node, wait=wait, error=error)
            if self.chance.random() < 0.2:
                other = self.chance.choice([each[2] for each in self.told if each[0] == "write"] or [1])
                asked = [1, 10_000 + process]
                say("invoke", 1_000 + process, "cas", key=key, value=asked, node=node)
                named = self.chance.choice((key, None))
                say("fail", 1_000 + process, "cas", key=named, value=[*asked, other], node=node)
            if self.chance.random() < 0.1:
                say("invoke", 2_000 + process, "read", key=key, node=node)
                say("ok", 2_000 + process, "read", key=key, value=value, node=node)
        say("info", "harness", "settled", value=self.chance.random() < 0.8)
        return History.of(Header(cluster="local", nodes=NODES), events)


def stored(history: History) -> History:
    operations = history.operations
    columns = of_operations(operations)
    assert columns is not None
    some = lambda places: [operations[place] for place in places.tolist()]  # noqa: E731
    return replace(history, operations=StoredOperations(columns, lambda: operations, some))


class Some(StoredRecords):
    """Records of which not all may be asked for as objects; where everything is in order, not even some."""

    def __init__(self, records: Sequence[Record], *, is_fine: bool) -> None:
        assert isinstance(records, StoredRecords)
        super().__init__(records._builder, 0, 0, records._parts)
        self.at = records.at
        self.is_fine = is_fine

    @property
    def all(self) -> Sequence[Record]:
        pytest.fail("all records were asked for as objects")

    def some(self, places: Sequence[int]) -> list[Record]:
        assert not self.is_fine or not len(places), "objects were made, although everything is in order"
        return super().some(places)


def plain(logs: Sequence[NodeLog]) -> list[NodeLog]:
    """The logs as if they had been read as arrays. Raises NotPlain."""
    builder = Builder(sum(len(log.records) for log in logs))
    ends = [0]
    for log in logs:
        for record in log.records:
            builder.put(record)
        ends.append(builder.held)
    return [
        replace(
            log,
            records=StoredRecords(builder, begin, end, [(end - begin, partial(tuple, log.records))]),
            snapshots=tuple(map(_stored, log.snapshots)),
        )
        for log, begin, end in zip(logs, ends, ends[1:], strict=False)
    ]


def _stored(snapshot: Snapshot) -> Snapshot:
    if any(values[0] != key for (_, key), values in snapshot.tuples.items()):
        raise NotPlain
    found = Tuples.of((space, values) for (space, _), values in snapshot.tuples.items())
    return replace(snapshot, tuples=StoredTuples(lambda: found))


def told(found: Audit | over_objects.Audited) -> object:
    settled, early = found.settling, found.early
    assert settled is not None and early is not None
    verdicts = [replace(each, seconds=0.0) for each in (found.logs, early)]
    operations = [(each.invoke_index, each.type, each.error) for each in settled.history.operations]
    contradicted = settled.lost, settled.kept, settled.revealed, settled.counts
    return verdicts, operations, settled.happened, settled.did_not, settled.open, contradicted


def alone(found: Audit) -> object:
    return replace(found.logs, seconds=0.0)


@examples.up_to(300)
@example(139257, False)  # a PROMOTE stands twice in a log, and the second one decides
@given(st.integers(0, 1 << 40), st.booleans())
def test_the_audit_and_its_twin_say_the_same(seed: int, is_rich: bool) -> None:
    """Breaks if a rule, a fate, a join, a witness or a count were another one in arrays than among objects, or if
    objects were made of rows that no verdict names."""
    run = Run(Random(seed), is_rich=is_rich)
    rules = run.chance.choice(OTHERS)
    logs = [run.log(node) for node in NODES]
    history = run.history()
    expected = over_objects.audit(logs, rules, history)
    assert told(audit(logs, rules, history)) == told(expected)
    assert alone(audit(logs, rules)) == over_objects.check(logs, rules)
    try:
        arrays = plain(logs)
    except NotPlain:
        return
    is_fine = all(verdict.result != "invalid" for verdict in (expected.logs, expected.early))
    arrays = [replace(log, records=Some(log.records, is_fine=is_fine)) for log in arrays]
    assert told(audit(arrays, rules, stored(history))) == told(expected)


def test_logs_whose_places_have_no_room_are_read_as_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks if a log behind its 67 millionth row ended the check with a MemoryError on a machine with 16 GiB."""

    def refuse(*_: object, **__: object) -> None:
        raise MemoryError

    builder = Builder(1)
    monkeypatch.setattr(numpy, "zeros", refuse)
    with pytest.raises(NotPlain):
        builder.make_room(1 << 26)


@given(st.integers(0, 1 << 40))
def test_of_many_breaches_some_are_told_and_all_are_counted(seed: int) -> None:
    """Breaks if a rule that is broken more often than witnesses are kept were forgotten, or counted otherwise."""
    run = Run(Random(seed))
    logs, history = [run.log(node) for node in NODES], run.history()
    expected = over_objects.audit(logs, RULES, history)
    with (
        patch.object(breaches, "WITNESSES_MAX", 1),
        patch.object(import_module("checkers.logs.wal.settle"), "MOST", 1),
    ):
        found = audit(logs, RULES, history)
    assert found.early is not None
    for one, other in ((found.logs, expected.logs), (found.early, expected.early)):
        assert (one.result, one.summary, one.details) == (other.result, other.summary, other.details)
        assert {each.rule for each in one.witnesses} == {each.rule for each in other.witnesses}
        assert set(one.witnesses) <= set(other.witnesses) or len(other.witnesses) == WITNESSES_MAX


def put(lsn: int, value: int) -> Record:
    row = write(1, lsn, value)
    return structs.replace(row, space=SPACE, key="x", tuple=("x", value))


RARE = {
    "a transaction is confirmed, and without content elsewhere": (
        [put(1, 5), confirm(1, 2, 1)],
        [nop(1, 1)],
    ),
    "another row stands in the place of a PROMOTE, and something else is missing": (
        [promote(1, 1, over=2, until=0, term=2), put(2, 5), put(3, 6)],
        [nop(1, 1), put(3, 6)],
    ),
    "a term comes again, and a CONFIRM that is older than that in it": (
        [put(lsn, lsn) for lsn in range(1, 6)]
        + [promote(1, 6, over=1, until=0, term=5), confirm(1, 7, 4)]
        + [promote(1, 8, over=1, until=0, term=3), confirm(1, 9, 5)]
        + [promote(1, 10, over=1, until=0, term=5), confirm(1, 11, 3)],
        [],
    ),
    "a log holds a row twice, with two contents": ([put(1, 5), put(1, 6)], [put(1, 5)]),
}


@pytest.mark.parametrize(("one", "other"), RARE.values(), ids=RARE)
def test_what_is_seldom_drawn_is_judged_alike(one: list[Record], other: list[Record]) -> None:
    """Breaks in the product alone: the rules over objects find each of these."""
    rules = replace(RULES, quorum=None)
    logs = [
        NodeLog(
            node=node, records=tuple(structs.replace(row, waits=True) if row.term else row for row in rows)
        )
        for node, rows in (("n1", one), ("n2", other))
    ]
    expected = over_objects.check(logs, rules)
    assert expected.result == "invalid"
    assert alone(audit(logs, rules)) == expected
    arrays = [replace(log, records=Some(log.records, is_fine=False)) for log in plain(logs)]
    assert alone(audit(arrays, rules)) == expected


def test_without_a_log_nothing_is_made_of_a_long_history() -> None:
    """Breaks if a run without logs were read as objects: 3.5 million operations took 3 GiB."""
    history = Run(Random(5)).history()

    def never() -> Sequence[Operation]:
        pytest.fail("somebody asked for the operations as objects")

    assert told(audit((), RULES, stored(history))) == told(over_objects.audit((), RULES, history))
    columns = of_operations(history.operations)
    assert columns is not None
    found = audit((), RULES, replace(history, operations=StoredOperations(columns, never, lambda _: never())))
    assert found.logs.result == "unknown"


def test_a_record_is_named_as_its_docstring_says() -> None:
    """If it failed, the example would be of another form than what stands in reports."""
    row = structs.replace(confirm(1, 9, 7), file="n2/0.xlog")
    assert breaches.text.__doc__ == f"A record for a person: `{breaches.text(row)}`."


class Looked:
    """An array that counts how often it is looked into."""

    def __init__(self, entries: Any) -> None:
        self.entries, self.shape, self.count = entries, entries.shape, 0

    def __getitem__(self, place: Any) -> Any:
        self.count += 1
        return self.entries[place]

    def __setitem__(self, place: Any, value: object) -> None:
        self.entries[place] = value


def test_a_confirm_of_the_first_entry_does_not_look_at_all_that_wait() -> None:
    """Broken, the audit of 8,000 writes that waited, each with a CONFIRM of its own, takes a minute."""
    writes = range(2, 302)
    rows = [promote(1, 1, over=0, until=0, term=1), *(write(1, lsn) for lsn in writes)]
    one = NodeLog(node="n1", records=(*rows, *(confirm(1, 300 + lsn, lsn) for lsn in writes)))
    (node,) = nodes.Logs.of([one], replace(RULES, promotes="at once")).nodes
    queue = nodes._Queue(replace(node, order=numpy.empty_like(node.at)), "at once")
    queue._entries = looked = Looked(queue._entries)
    queue.replay()
    assert looked.count < 20 * len(writes)
