"""Whether the synchronised queues agree: I1, I2, I3, and the strong prefix.

| rule | a run breaks it if |
|---|---|
| out-of-order | an entry is not above the one before it in (ts, id) |
| twice | a synchronised queue has one id twice |
| entries-removed | a synchronised queue gets shorter, and no recovery is the cause |
| not-behind | a record puts entries behind more than there are |
| skipped | a round adds an entry, and leaves a smaller one behind that the master knew (in a split, see below) |
| diverged | two masters have different entries at the same index of one epoch |
| not-a-prefix | a transaction is in no place of a queue that has greater ones |

Why the last one holds: a transaction u with ts(u) ≤ T from origin k was made before k posted a counter of T or more. It
was then in that POST, or already synchronised. So while no master is left out, a synchronised queue is a prefix of all
transactions that were ever made, sorted by (ts, id). A recovery that works makes it true again: with `simple` all
timestamps stay, with `smart` those outside of the winning branch are above all others.

In a split, a transaction that sorts before the last entry waits until all masters are back. So does one of a missing
master until its updates are here: a part does not wait for what it may never get.

Masters that can have been apart may disagree (`disturbances`), as far as their own records, too, place the entries in a
split. With the strategy `none` nothing repairs that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy

from checkers.logs.txlog import kernels
from checkers.logs.txlog.columns import LogColumns
from checkers.logs.txlog.given import Given
from checkers.logs.txlog.kernels import NEVER
from checkers.logs.txlog.queues import room
from checkers.logs.txlog.records import Life, Recovered
from checkers.logs.txlog.report import Breach, Report

Array = Any  # numpy's

UNREPAIRED = "unrepaired divergence: strategy none goes on with two branches"
APART = "documented: parts of a split cluster go on by themselves"


def judge(given: Given) -> Report:
    report = Report()
    walks = {master: _Walk(given, log) for master, log in given.by_master.items()}
    going, differs, epoch = walks, NEVER, 0
    while going:
        lows = [walk.to_epoch_end(report) for walk in going.values()]
        here = {master: walk for master, walk in going.items() if walk.epoch == epoch}
        differs = _compare(given, here, min(*lows, differs), report)
        going = {master: walk for master, walk in going.items() if not walk.is_over}
        epoch += 1
    _prefixes(given, walks, report)
    lengths = {master: walk.length for master, walk in walks.items()}
    report.count("order", masters=len(walks), transactions=given.made.count, entries=sum(lengths.values()))
    report.count("once", masters=len(walks), entries=sum(lengths.values()))
    if not any(lengths.values()):
        report.nothing["order"] = report.nothing["once"] = "no transaction was synchronised"
    report.proofs["order"] = {"rule": "agree", "lengths": lengths}
    report.proofs["once"] = {"rule": "all once", "lengths": lengths}
    return report


class _Walk:
    """One master's queue, epoch by epoch."""

    def __init__(self, given: Given, log: LogColumns) -> None:
        self.given, self.log, self.master = given, log, log.master
        self.epoch = 0
        rows, ids, entries = log.rows, len(given.columns.names), room(log)
        recoveries = rows.of_kind(kernels.RECOVERED)
        self._ends = [*recoveries.tolist(), len(rows.kind)]
        self._at = 0
        self._epochs = log.over[:, 0].tolist()
        self._state = numpy.zeros(kernels.STATES, dtype=numpy.int64)
        self._synced, self._of_entry, self._left_out = (
            numpy.empty(entries, dtype=numpy.int32) for _ in range(3)
        )
        self._place, self._seen = (numpy.zeros(ids, dtype=numpy.int32) for _ in range(2))
        self._queue = numpy.full(ids, -1, dtype=numpy.int32)
        heard = rows.of_kind(kernels.HEARD)
        arrivals = int((rows.first[heard + 1] - rows.first[heard]).sum()) + len(rows.of_kind(kernels.MADE))
        self._heap = numpy.empty(arrivals + ids + 1, dtype=numpy.int32)
        self._has = numpy.full(ids, kernels.NO_RECORD, dtype=numpy.int32)
        given.kernels.updates(rows, given.columns.id, self._has)
        self._out = numpy.empty((0, kernels.FIELDS), dtype=numpy.int64)
        self._number = 0

    @property
    def is_over(self) -> bool:
        return bool(self._at == self._ends[-1])

    @property
    def length(self) -> int:
        return int(self._state[kernels.LENGTH])

    @property
    def has_split(self) -> bool:
        """Whether entries came while masters were left out, in this epoch."""
        return bool(self._state[kernels.HAS_SPLIT])

    @property
    def place(self) -> Array:
        """By id: how many entries the queue has up to its first occurrence."""
        return self._place

    @property
    def synced(self) -> Array:
        return self._synced[: self.length]

    @property
    def strategy(self) -> str:
        return self.log.strategy_before(self._at + 1)

    def place_of_entry(self, index: int) -> int:
        return int(self._of_entry[index]) + 1

    def left_out(self, index: int) -> Sequence[str]:
        """The masters that were left out when the entry came."""
        return self.log.left_out_by(int(self._left_out[index]))

    def has_added(self, index: int) -> bool:
        """Whether a round of this master added the entry, not a forerunner's difference."""
        return bool(self.log.rows.kind[self._of_entry[index]] != kernels.CAUGHT_UP)

    def to_epoch_end(self, report: Report) -> int:
        """Apply the records up to the end of an epoch. Returns how many first entries never changed meanwhile."""
        end = self._ends[self._number]
        if self._number:
            self.epoch = self._epochs[self._number - 1]
        self._number += 1
        columns = self.given.columns
        out, count = columns.kernels.ordered(
            self.log.rows, columns.id, columns.order, self._at, end, self._state, self._synced, self._of_entry,
            self._left_out, self._place, self._queue, self._heap, self._seen, self._has,
            columns.origin, columns.missing_of, self._out,
        )  # fmt: skip
        report.breaches += (self._breach(*fields) for fields in out[:count].tolist())
        self._at = end
        return int(self._state[kernels.LOW])

    def _breach(self, rule: int, row: int, one: int, two: int, three: int) -> Breach:
        master, ref, index = self.master, self.given.columns.ref, int(self.log.rows.number[row])
        here = (master, row + 1)
        if rule == kernels.NOT_BEHIND:
            return Breach(
                rule="not-behind",
                summary=f"{master} puts entries behind the first {index}, and has {one}",
                records=[here],
            )
        if rule == kernels.ENTRIES_REMOVED:
            return Breach(
                rule="entries-removed",
                summary=f"{master} had {one} synchronised entries, and keeps {index}",
                records=[here],
            )
        if rule == kernels.TWICE:
            name = self.given.columns.names[two]
            has_recovered = any(
                isinstance(each, Recovered) and each.place <= row + 1 for each in self.log.rare
            )
            return Breach(
                rule="twice",
                summary=f"{master} has {name} twice in its synchronised queue",
                records=[(master, one + 1), here],
                facts={"id": name},
                how="after a recovery" if has_recovered else "without a recovery",
            )
        if rule == kernels.OUT_OF_ORDER:
            last, entry = ref(two), ref(three)
            return Breach(
                rule="out-of-order",
                summary=f"{master} has {entry.text} behind {last.text}",
                records=[(master, one + 1), here] if one != row else [here],
                facts={"before": last.id, "id": entry.id},
                price=self._late(entry.origin, row + 1),
            )
        assert rule == kernels.SKIPPED
        greater, waits = ref(one), ref(two)
        return Breach(
            rule="skipped",
            summary=f"{master} added {greater.text}, and knew {waits.text}",
            records=[here],
            facts={"id": waits.id},
            how=self._how(row + 1),
        )

    def _how(self, place: int) -> str:
        lives = sum(isinstance(record, Life) and record.place <= place for record in self.log.rare)
        return "after a restart" if lives > 1 else "in the first life"

    def _late(self, origin: str, place: int) -> str:
        """With `none`, a transaction of a master that was left out comes in late, when that master is back."""
        given = self.given
        is_documented = self.log.strategy_before(place) == "none" and given.has_split
        by_ns = given.clocks[self.master].not_after_ns(place)
        apart = (given.disturbances.may_be_apart(origin, master, by_ns=by_ns) for master in given.masters)
        return UNREPAIRED if is_documented and any(apart) else ""


def _compare(given: Given, walks: Mapping[str, _Walk], low: int, report: Report) -> int:
    """The queues of one epoch, from the index `low` on. Returns the first index where any two differ."""
    first = NEVER
    groups = [[*walks]]
    while groups:
        group = groups.pop()
        queues = {master: walks[master].synced for master in group}
        longest = max(queues.values(), key=len, default=())
        differs = min((_first_difference(longest, queue, low) for queue in queues.values()), default=NEVER)
        report.count("order", pairs_of_queues=len(group) * (len(group) - 1) // 2)
        if differs >= len(longest):
            continue
        by_entry: dict[int, list[str]] = {}
        for master in group:
            if len(queues[master]) > differs:
                by_entry.setdefault(int(queues[master][differs]), []).append(master)
        report.breaches += (
            _divergence(given, walks, one, other, differs)
            for one, other in combinations(by_entry.values(), 2)
        )
        first = min(first, differs)
        groups += by_entry.values()
    return first


def _first_difference(longer: Array, other: Array, low: int) -> int:
    """The first index at which the two have different entries; the length of the longer one if there is none."""
    differs = numpy.flatnonzero(longer[low : len(other)] != other[low:])
    return low + int(differs[0]) if len(differs) else len(longer)


def _divergence(
    given: Given, walks: Mapping[str, _Walk], one: Sequence[str], other: Sequence[str], index: int
) -> Breach:
    """Of the masters `one` and `other`, which have different entries at the index."""
    first, second = walks[one[0]], walks[other[0]]
    price = ""
    adders = [[each for each in group if walks[each].has_added(index)] or group for group in (one, other)]
    if all(_are_apart(given, walks, a, b, index) for a in adders[0] for b in adders[1]):
        price = UNREPAIRED if first.strategy == "none" else APART
    entries = [given.columns.ref(int(each.synced[index])).text for each in (first, second)]
    return Breach(
        rule="diverged",
        summary=f"entry {index + 1} is {entries[0]} on {first.master}, and {entries[1]} on {second.master}",
        records=[(each.master, each.place_of_entry(index)) for each in (first, second)],
        facts={"index": index, "epoch": first.epoch},
        price=price,
    )


def _are_apart(given: Given, walks: Mapping[str, _Walk], one: str, other: str, index: int) -> bool:
    """Whether the two were apart, by the faults and by the record of one that left the other out at this entry."""
    return any(
        given.disturbances.may_be_apart(
            one, other, by_ns=given.clocks[here].not_after_ns(walks[here].place_of_entry(index))
        )
        for here, there in ((one, other), (other, one))
        if there in walks[here].left_out(index)
    )


def _prefixes(given: Given, walks: Mapping[str, _Walk], report: Report) -> None:
    """Each queue of the last epoch, against all transactions that were ever made."""
    if given.missing or (given.strategy == "none" and given.has_split):
        return
    newest = max((walk.epoch for walk in walks.values()), default=0)
    columns, stamped = given.columns, given.stamped
    all_keys = columns.order[stamped[stamped >= 0]]
    for walk in walks.values():
        if walk.epoch < newest or (walk.has_split and given.has_split):
            continue
        report.count("order", prefixes=1)
        queue, keys = _firsts(given, walk)
        # Of different transactions in order: none is left out if there are no more of them up to the last one.
        if not len(keys) or ((keys[1:] > keys[:-1]).all() and int((all_keys <= keys[-1]).sum()) == len(keys)):
            continue
        report.breaches.append(_not_a_prefix(given, walk, queue, keys))


def _firsts(given: Given, walk: _Walk) -> tuple[Array, Array]:
    """The ids of a queue, each at its first place, that masters made; and their newest keys."""
    names = given.columns.id[walk.synced]
    names = names[walk.place[names] == numpy.arange(1, len(names) + 1)]
    names = names[given.stamped[names] >= 0]
    return names, given.columns.order[given.stamped[names]]


def _not_a_prefix(given: Given, walk: _Walk, queue: Array, keys: Array) -> Breach:
    stamped, columns = given.stamped, given.columns
    known = numpy.flatnonzero(stamped >= 0)
    by_key = known[numpy.argsort(columns.order[stamped[known]], kind="stable")]
    index = int(numpy.flatnonzero(by_key[: len(queue)] != queue)[0])
    above = int(queue[index])
    greater, lost = int(walk.place[above]) - 1, int(by_key[index])
    missed = columns.ref(int(stamped[lost]))
    return Breach(
        rule="not-a-prefix",
        summary=f"{walk.master} has {columns.ref(int(stamped[above])).text} as entry {greater + 1}, "
        f"and {missed.text} not before it",
        records=[given.made.place(lost), (walk.master, walk.place_of_entry(greater))],
        facts={"id": missed.id, "above": columns.names[above]},
    )
