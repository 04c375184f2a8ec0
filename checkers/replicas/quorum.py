"""Acknowledged without quorum: a write was answered ok although too few nodes can have acknowledged it.

With one owner a history alone cannot show this, because no node contradicts it. But the faults are known. A write
that began and ended while at least N - Q + 1 other nodes surely could not acknowledge it cannot have had a quorum
of Q. Another node surely could not acknowledge a write of an owner if, from the write's invocation to its ok,

- its link to the owner was cut: no acknowledgement passed;
- its process was dead or stopped: it made none;
- first one and then the other, in this order: it made none while it was down, and when it was up again the link
  was cut already. (The other way round it may have made one, which passes as soon as the link heals.)
- no path led from the owner to it over links that were open at some time and nodes that were up at some time: the
  row itself could not arrive.

Where the owner may change during a run (the header names no fixed one), another node may have collected the quorum: a
node that has the row takes over and its PROMOTE confirms the row; the old owner learns of that and answers its client.
So every such node must have been starved, too: each node that the row could reach and that could report back to the
owner.

Where members leave and come, or the quorum changes, a write is judged only by what holds however each node counted.

Only verified times count (`FaultSpan.sure`), and only of cuts, pauses, and faults that keep a process dead. A slow link
stops no acknowledgement. Where two faults stop one process at the same time, healing one may wake it during the other:
it is taken to be down until the first of the two is healed, or until an operator begins to restart or replace it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from checkers.history.declared import declared, needs_quorum, undeclared
from checkers.history.faults import CUTS, RESTARTS_PROCESSES, STOPS_PROCESSES, FaultSpan, Link, Span
from checkers.history.history import History
from checkers.history.line_kernels import ABSENT, INFO, OK, PAIR, PLAIN
from checkers.history.members import Count, counts
from checkers.history.operation import SUBMITTED, Operation
from checkers.history.spans import Spans, of_faults
from checkers.history.value_rows import is_to_itself
from checkers.history.values import exact, value_words
from checkers.verdict import Verdict, Witness, concluded

NAME = "quorum"
MODEL = "no acknowledgement without a quorum"
Array = Any  # numpy's
InEffect = tuple[Span, FaultSpan]  # the time in which the fault surely did it
NONE = Spans[FaultSpan](())


def check(history: History) -> Verdict:
    """Whether every ok operation that changed something can have had its quorum.

    Needs the header's nodes and quorum, else unknown.

    `details["writes_in_starved_time"]` counts the writes during which no quorum was possible at any time, with any
    outcome. If it is 0, nothing could be tested (`vacuous`).
    """
    header = history.header
    reason = "the header tells no nodes or no quorum" if header.quorum is None or not header.nodes else ""
    if unknown := undeclared(history):
        reason = f"the header does not declare what {', '.join(unknown)} does, so it may have needed a quorum"
    if reason:
        return Verdict(checker=NAME, result="unknown", summary=reason, model=MODEL)
    faults = _Faults.of(history.faults)
    witnesses: list[Witness] = []
    tested = 0
    operations, judged = _to_be_judged(history, faults)
    for operation in operations:
        owner = operation.node
        assert owner is not None and operation.complete_ns is not None
        during = (operation.invoke_ns, operation.complete_ns)
        many = counts(history, during)
        if any(faults.may_be_served(owner, header.owner, counted, during[1]) for counted in many):
            continue
        starved = [_starved(faults, owner, header.owner, counted, during) for counted in many]
        if all(starved):
            tested += 1
            if operation.type == "ok":
                count, silent = starved[0] or (None, [])
                assert count is not None and count.quorum is not None
                witnesses.append(_witness(operation, owner, silent, count.quorum))
    return _verdict(witnesses, judged, tested)


def _to_be_judged(history: History, faults: _Faults) -> tuple[Sequence[Operation], int]:
    """The operations that needed a quorum, without some that may have had one; and how many of the former were
    acknowledged.

    The run's fixed owner is the owner whatever role it reports: else its report could exempt it. Where no node leads,
    each node gathers the quorum for what it is asked, or hands it to one that can. Operations between the same changes
    of the faults and of the members are alike: only one of them is examined.
    """
    columns, header = history.columns, history.header
    needs = _changes(history) & (columns.complete >= 0)
    needs &= numpy.isin(columns.node, [columns.code(node) for node in header.nodes if node in columns.words])
    if header.extra.get("leaderless") is not True:
        is_owner = columns.role == columns.code("owner")
        if header.owner in header.nodes:
            is_owner |= columns.node == columns.code(header.owner)
        needs &= is_owner
    judged = int((needs & (columns.type == OK)).sum())
    needs &= (columns.type != INFO) | (columns.error != columns.code(SUBMITTED))  # queued: that needs none
    places = numpy.flatnonzero(needs)
    begun_ns, ended_ns, node = columns.invoke_ns[places], columns.complete_ns[places], columns.node[places]
    changes_ns = numpy.array(faults.changes_ns, dtype=numpy.int64)
    members_ns = numpy.array([event.time_ns for event in history.told_members], dtype=numpy.int64)
    group = node.astype(numpy.int64)
    for moments, sorted_ns in ((ended_ns, changes_ns), (begun_ns, members_ns), (ended_ns, members_ns)):
        # Both sides: at the moment of a change either state may hold, so it is like no moment beside it.
        for side in ("left", "right"):
            _, group = numpy.unique(
                group * (len(sorted_ns) + 1) + numpy.searchsorted(sorted_ns, moments, side),
                return_inverse=True,
            )
    _, first, group = numpy.unique(group, return_index=True, return_inverse=True)
    served = [
        any(
            faults.may_be_served(str(columns.words[node[at]]), header.owner, count, int(ended_ns[at]))
            for count in counts(history, (int(begun_ns[at]), int(ended_ns[at])))
        )
        for at in first.tolist()
    ]
    return history.at(places[~numpy.array(served, dtype=bool)[group]]), judged


def _changes(history: History) -> Array:
    """Which operations change something that must be replicated. Objects are made only where the value decides."""
    columns, effects = history.columns, declared(history.header)
    changes, is_rich = (numpy.zeros(len(columns), dtype=bool) for _ in range(2))
    for name in columns.names:
        is_named = columns.f == columns.code(name)
        changes |= is_named & (effects.get(name) in ("writes", "both", "micro-operations"))
        if name == "cas":
            is_rich |= is_named & (columns.kind != PAIR)
            changes &= ~(is_named & (columns.kind == PAIR) & (columns.old == columns.new))
        elif name in ("add", "dequeue"):
            is_rich |= is_named & (columns.kind != PLAIN)
            nothing = 0 if name == "add" else ABSENT
            changes &= ~(is_named & (columns.kind == PLAIN) & (columns.new == nothing))
        elif name == "transfer" or effects.get(name) == "micro-operations":
            is_rich |= is_named
    rich = numpy.flatnonzero(changes & is_rich)
    changes[rich] = [
        needs_quorum(history.header, operation) and not _changes_nothing(operation)
        for operation in history.at(rich)
    ]
    return changes


def _starved(
    faults: _Faults, owner: str, fixed_owner: str | None, count: Count, during: Span
) -> tuple[Count, list[Silence]] | None:
    """If these are the members: the silent nodes that left no quorum; None if there may have been one."""
    if count.quorum is None or owner not in count.nodes:
        return None
    silent = faults.silent(owner, owner, count.nodes, during)
    if len(silent) < count.starving:
        return None
    if fixed_owner is None and faults.another_may_have(owner, count.nodes, during, count.starving):
        return None
    return count, silent


def _changes_nothing(operation: Operation) -> bool:
    """Whether the operation needs no quorum, because it changes nothing.

    A deletion needs one: if it found nothing, it is not recorded as done (`Operation.found_nothing`).
    """
    value = operation.value
    match operation.f:
        case "cas":
            return is_to_itself(value)
        case "add":
            return exact(value) == 0
        case "transfer":
            return isinstance(value, dict) and exact(value.get("amount")) == 0
        case "dequeue":
            return value is None
    return False


@dataclass(frozen=True, slots=True)
class Silence:
    """Why a node could not acknowledge, and the faults that made it so."""

    node: str
    reason: str
    faults: tuple[FaultSpan, ...]


@dataclass(slots=True)
class _Faults:
    """When which link surely was cut and which process surely was down."""

    cuts: Mapping[Link, Spans[FaultSpan]]
    downs: Mapping[str, Spans[FaultSpan]]
    changes_ns: Sequence[int] = field(init=False)
    """When a cut or a down time begins or ends, in order."""
    _served_at: dict[tuple[str, Count, int, int], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        spans = (spans_of.spans for spans_of in (*self.cuts.values(), *self.downs.values()))
        self.changes_ns = sorted({moment for spans_of in spans for span in spans_of for moment in span})

    @classmethod
    def of(cls, spans: Iterable[FaultSpan]) -> _Faults:
        cuts: dict[Link, list[InEffect]] = {}
        stopping: dict[str, list[FaultSpan]] = {}
        for span in spans:
            if span.does in CUTS:
                for link, times in span.cut_times.items():
                    cuts.setdefault(link, []).extend((sure, span) for sure in times)
            elif span.does in STOPS_PROCESSES | RESTARTS_PROCESSES:
                for node in span.nodes:
                    stopping.setdefault(node, []).append(span)
        downs: dict[str, Spans[FaultSpan]] = {}
        for node, stops in stopping.items():
            all_stops = of_faults(stops)
            sure = [(_down(span, all_stops), span) for span in stops if span.does in STOPS_PROCESSES]
            downs[node] = _by_id((when, span) for when, span in sure if when is not None)
        return cls({link: _by_id(times) for link, times in cuts.items()}, downs)

    def may_be_served(self, owner: str, fixed_owner: str | None, count: Count, time_ns: int) -> bool:
        """Whether a quorum was possible at that moment; then also in any time that ends there.

        A node that is silent or cut off in a time is so at its end. Between two changes one answer holds for all times.
        """
        between = (bisect_left(self.changes_ns, time_ns), bisect_right(self.changes_ns, time_ns))
        is_served = self._served_at.get((owner, count, *between))
        if is_served is None:
            is_served = _starved(self, owner, fixed_owner, count, (time_ns, time_ns)) is None
            self._served_at[owner, count, *between] = is_served
        return is_served

    def another_may_have(self, owner: str, nodes: Sequence[str], during: Span, starving: int) -> bool:
        """Whether a node that may have taken over may have had the quorum that the owner could not have."""
        heirs = self._reached(owner, nodes, during)
        return any(
            owner in self._reached(heir, nodes, during)
            and len(self.silent(heir, owner, nodes, during)) < starving
            for heir in nodes
            if heir != owner and heir in heirs and not self._is_down(heir, during)
        )

    def silent(self, leader: str, owner: str, nodes: Sequence[str], during: Span) -> list[Silence]:
        """The nodes that surely could not acknowledge a write of `owner` to `leader` in that time."""
        reached = self._reached(owner, nodes, during)
        silences: list[Silence] = []
        for node in nodes:
            if node != leader:
                silence = self._mute(node, leader, during)
                if silence is None and node not in reached:
                    silence = self._unreached(node, during)
                if silence is not None:
                    silences.append(silence)
        return silences

    def _mute(self, node: str, owner: str, during: Span) -> Silence | None:
        """The silence of a node that made no acknowledgement before the link was cut for good."""
        start, end = during
        cut_since, cuts = covered_back(self.cuts.get((node, owner), NONE), start, end)
        if cut_since < start:
            return Silence(node, f"its link to {owner} was cut", cuts)
        down_since, downs = covered_back(self.downs.get(node, NONE), start, cut_since)
        if down_since >= start:
            return None
        if cuts:
            return Silence(node, f"it was down, and then its link to {owner} was cut", (*downs, *cuts))
        return Silence(node, "it was down", downs)

    def _reached(self, owner: str, nodes: Sequence[str], during: Span) -> set[str]:
        """The nodes that a row of the owner may have reached, over links and nodes not stopped all the time."""
        reached = {owner}
        todo = [owner]
        while todo:
            source = todo.pop()
            for target in nodes:
                if target not in reached and not self._closed((source, target), during):
                    reached.add(target)
                    if not self._is_down(target, during):
                        todo.append(target)
        return reached

    def _closed(self, link: Link, during: Span) -> bool:
        return covered_back(self.cuts.get(link, NONE), *during)[0] < during[0]

    def _is_down(self, node: str, during: Span) -> bool:
        return covered_back(self.downs.get(node, NONE), *during)[0] < during[0]

    def _unreached(self, node: str, during: Span) -> Silence:
        closed = [link for link in self.cuts if self._closed(link, during)]
        spans = {span.id: span for link in closed for span in covered_back(self.cuts[link], *during)[1]}
        return Silence(node, "no row could come to it", tuple(spans.values()))


def _by_id(times: Iterable[InEffect]) -> Spans[FaultSpan]:
    """Of faults that begin at once, the one with the smallest id is named."""
    return Spans(sorted(times, key=lambda time: time[1].id))


def _down(span: FaultSpan, stops: Spans[FaultSpan]) -> Span | None:
    """When this fault surely kept its process down; another fault that stopped the process may end that early."""
    if span.sure is None:
        return None
    start, end = span.sure
    for other in stops.touching(*span.sure):
        if other is span or other.start_ns >= end:
            continue
        wakes_ns = None if other.does in RESTARTS_PROCESSES else other.heal_asked_ns
        end = min(end, other.start_ns if wakes_ns is None else wakes_ns)
    return (start, end) if start <= end else None


def covered_back(faults: Spans[FaultSpan], start: int, end: int) -> tuple[int, tuple[FaultSpan, ...]]:
    """From `end` back to where the united faults cover all the time; not further than needed to cover `start`.

    Returns (since, the faults used). All is covered if since < start; nothing, not even the end, if since = end.
    Faults that only touch leave a gap: at that instant either may come first.
    """
    since = end
    used: list[FaultSpan] = []
    while since >= start and (around := faults.first_around(since)) is not None:
        (since, _), fault = around
        used.append(fault)
    return since, tuple(used)


def _witness(operation: Operation, owner: str, silent: Sequence[Silence], quorum: int) -> Witness:
    faults = {fault.id: fault for silence in silent for fault in silence.faults}
    value = value_words(operation.value)
    if operation.f == "cas" and isinstance(operation.value, list | tuple):
        value = " → ".join(map(value_words, operation.value))
    key = f" under key {operation.key}" if operation.key is not None else ""
    words = f"{operation.f} {value[:80]}{key}"
    if operation.is_deletion:
        words = f"the deletion of key {operation.key}"
    names = ", ".join(silence.node for silence in silent)
    window = f"{operation.invoke_ns / 1e9:.4f} s to {(operation.complete_ns or 0) / 1e9:.4f} s"
    return Witness(
        rule="acknowledged-without-quorum",
        summary=f"{owner} confirmed {words} to process {operation.process}, "
        f"while {names} could not acknowledge and {quorum} nodes had to",
        events=tuple(
            sorted((*operation.events, *(event for fault in faults.values() for event in fault.events)))
        ),
        key=operation.key,
        node=owner,
        start_ns=operation.invoke_ns,
        end_ns=operation.complete_ns,
        explanation=tuple(
            f"{silence.node} could not acknowledge from {window}: {silence.reason} "
            f"({', '.join(_named(fault) for fault in silence.faults)})."
            for silence in silent
        ),
    )


def _named(fault: FaultSpan) -> str:
    start, end = fault.sure or (0, 0)
    return f"fault {fault.id}, {fault.name}, surely in effect from {start / 1e9:.4f} s to {end / 1e9:.4f} s"


def _verdict(witnesses: Sequence[Witness], judged: int, tested: int) -> Verdict:
    details: dict[str, Any] = {
        "writes": judged,
        "writes_in_starved_time": tested,
        "violations": len(witnesses),
        "vacuous": tested == 0,
    }
    summary = f"no write asked while no quorum was possible ({tested} in all) was acknowledged"
    if not tested:
        summary = "nothing to judge: no write lay wholly in a time in which no quorum was possible"
    return concluded(NAME, witnesses, summary, model=MODEL, details=details)
