"""The audit of columns says what the audit of objects says, and finds nothing wrong exactly where that one does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from checkers import wal
from checkers.history.columns import of_operations
from checkers.history.history import Header, History
from checkers.history.operation import Event, EventType, Operation
from checkers.history.stored import StoredOperations
from checkers.verdict import WITNESSES_MAX
from checkers.wal import LogRules, NodeLog, Record, agreement, broken, columnar
from checkers.wal.columnar import _replay
from checkers.wal.columns import StoredRecords, of_logs
from checkers.wal.node_columns import of_snapshots
from checkers.wal.record import NotColumns, Snapshot
from checkers.wal.replay import replay
from harness.judge.audit import Audit, audit
from tests import examples
from tests.checkers.wal.logs import confirm, nop, promote, rollback, vote, write

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

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.rows: list[Record] = []
        self.last = dict.fromkeys((1, 2, 3), 0)
        self.owner, self.term = 1, 1
        self.waiting: list[tuple[Record, int]] = []
        """With the place of its operation in `told`."""
        self.told: list[tuple[str, str, Any, EventType]] = []
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
        self.told.append(("write", key, value, "info"))
        if is_synchronous or self.waiting:
            self.waiting.append((row, len(self.told) - 1))

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
        self.rows.append(structs.replace(row, waits=waits))
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
            say("invoke", process, f, key=key, value=value, node=node)
            if told != "info" or self.chance.random() < 0.5:
                say(told, process, f, key=key, value=value, node=node)
            if self.chance.random() < 0.2:
                other = self.chance.choice(self.told)[2]
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


def told(found: Audit) -> object:
    settled = found.settling
    assert settled is not None
    verdicts = [replace(each, seconds=0.0) for each in found.verdicts]
    operations = [(each.invoke_index, each.type, each.error) for each in settled.history.operations]
    return verdicts, operations, settled.happened, settled.did_not, settled.open


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


def both_ways(seed: int) -> tuple[object, object] | None:
    """Audits of one drawn cluster, from objects and from columns; None: its logs have no place in columns."""
    run = Run(Random(seed))
    rules = run.chance.choice(OTHERS)
    logs = [run.log(node) for node in NODES]
    history = run.history()
    expected = audit(logs, rules, history)
    try:
        columns = of_logs(logs)
    except NotColumns:
        return None
    is_fine = all(verdict.result != "invalid" for verdict in expected.verdicts)
    if run.told:
        columns = [replace(log, records=Some(log.records, is_fine=is_fine)) for log in columns]
    if run.chance.random() < 0.1:
        return alone(audit(logs, rules)), alone(audit(columns, rules))
    return told(expected), told(audit(columns, rules, stored(history)))


def alone(found: Audit) -> object:
    return replace(found.logs, seconds=0.0)


@examples.up_to(300)
@given(st.integers(0, 1 << 40))
def test_the_audit_of_columns_says_what_that_of_objects_says(seed: int) -> None:
    """Breaks if a rule, a fate, a join, a witness or a count were another one in columns, or if objects were made of
    more rows than a verdict names."""
    found = both_ways(seed)
    assert found is None or found[0] == found[1]


@given(st.integers(0, 1 << 40))
def test_of_many_breaches_some_are_looked_at_and_all_are_counted(seed: int) -> None:
    """Breaks if a rule that is broken more often than MOST were forgotten, or counted otherwise."""
    run = Run(Random(seed))
    logs, history = [run.log(node) for node in NODES], run.history()
    expected = audit(logs, RULES, history)
    try:
        columns = of_logs(logs)
    except NotColumns:
        return
    with patch.object(broken, "MOST", 1), patch.object(columnar, "MOST", 1):
        found = audit(columns, RULES, stored(history))
    for one, other in zip(found.verdicts, expected.verdicts, strict=True):
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
    """Breaks in `checkers.wal.broken` alone: the rules over objects find each of these."""
    rules = replace(RULES, quorum=None)
    logs = [
        NodeLog(
            node=node, records=tuple(structs.replace(row, waits=True) if row.term else row for row in rows)
        )
        for node, rows in (("n1", one), ("n2", other))
    ]
    expected = audit(logs, rules)
    assert expected.logs.result == "invalid"
    columns = [replace(log, records=Some(log.records, is_fine=False)) for log in of_logs(logs)]
    assert alone(audit(columns, rules)) == alone(expected)


@examples.up_to(400)
@given(st.integers(0, 1 << 40))
def test_snapshots_as_columns_are_judged_as_objects_are(seed: int) -> None:
    """Breaks if a row or a vote were taken at a wrong place, or a snapshot not compared with all that it must be."""
    run = Run(Random(seed))
    logs = [run.log(node, (1, 2, 3)) for node in NODES]
    try:
        nodes = [_replay(log, RULES) for log in of_logs(logs)]
    except NotColumns:
        return
    found = [node for node in nodes if node is not None]
    if len(found) == len(nodes):
        cluster = wal.cluster_of([replay(log, RULES.promotes) for log in logs], RULES)
        assert of_snapshots(found) == {
            "snapshot-differs": list(agreement.snapshot_differs(cluster)),
            "snapshot-forgets": list(agreement.snapshot_forgets(cluster)),
        }


def test_without_a_log_nothing_is_made_of_a_long_history() -> None:
    """Breaks if a run without logs were read as objects: 3.5 million operations took 3 GiB."""
    history = Run(Random(5)).history()

    def never() -> Sequence[Operation]:
        pytest.fail("somebody asked for the operations as objects")

    assert told(audit((), RULES, stored(history))) == told(audit((), RULES, history))
    columns = of_operations(history.operations)
    assert columns is not None
    found = audit((), RULES, replace(history, operations=StoredOperations(columns, never, lambda _: never())))
    assert found.logs.result == "unknown"
