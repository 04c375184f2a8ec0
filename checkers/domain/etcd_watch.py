"""etcd's watches keep their guarantees.

| f | value |
|---|---|
| etcd-watch | {Request, Responses}: what was asked for, and the lists of events that came (`etcd_records`) |
| etcd-txn | which events there were: a transaction's answer shows what it wrote at which revision |

| rule | what must not be |
|---|---|
| filter | an event of a key that was not asked for |
| ordered | an event of a lower revision than one before it |
| unique | an event of a key and revision twice |
| atomic | the events of one revision in two lists |
| bookmarkable | an event of a revision up to which a progress notification has said that all came |
| invented | an event that no request can have made |
| differs | two watches with different events of a key and revision |
| resumable | a watch that begins at a revision: an event from before it, or the first one from there on left out |
| reliable | an event left out between those that came |
| created | an event marked as creation of a key that was there, or not marked, of one that was not |
| previous | a previous value that the key did not hold at that revision |

The events that a watch must show are those that an answer, or another watch, shows. An event that no client learned of
is not missed. Cost: n log n, and the events between the first and the last of each watch. Source: etcd's guarantees of
watches, and `tests/robustness/validate/watch.go`, which takes the events from the members' logs.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from checkers.domain.proof import shown, verdict
from checkers.history.etcd_records import (
    PREFIX,
    WATCH,
    Record,
    Value,
    Watch,
    WatchEvent,
    has_all_clients,
    record_of,
    watch_of,
)
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.history.values import many
from checkers.verdict import Verdict, Witness, witness

NAME = "etcd-watch"
MODEL = "watch guarantees"


def check(history: History) -> Verdict:
    """Whether all watches keep their guarantees. `details`: watches, events."""
    watches = [
        _Seen(operation, watch_of(operation)) for operation in history.operations if operation.f == WATCH
    ]
    known = _Known.of(history, watches)
    of_each = (found for watch in watches for found in (*_of_itself(watch), *_of_all(watch, known)))
    witnesses = [*known.conflicts, *of_each]
    details: dict[str, Any] = {"watches": len(watches), "events": sum(len(watch.events) for watch in watches)}
    of = "1 watch" if len(watches) == 1 else f"{len(watches):,} watches"
    valid = f"etcd's guarantees hold for {many(details['events'], 'event')} of {of}"
    return verdict(NAME, MODEL, witnesses, details, judged=details["events"], valid=valid)


@dataclass(frozen=True)
class _Seen:
    """A watch with all its events."""

    operation: Operation
    watch: Watch

    @cached_property
    def events(self) -> tuple[WatchEvent, ...]:
        return tuple(event for response in self.watch.responses or () for event in response.events or ())

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The revisions of which it must show all: the first and the last one; (1, 0) for none."""
        first = last = 0
        for response in self.watch.responses or ():
            if response.is_progress_notify:
                first, last = first or response.revision + 1, response.revision
            elif response.events:
                first, last = first or response.events[0].revision, response.events[-1].revision
        first = self.watch.request.revision or first
        return (first, last) if last else (1, 0)


def _of_itself(seen: _Seen) -> Iterator[Witness]:
    """What a watch alone shows: the first breach of each rule."""
    found: dict[str, str] = {}
    shown_before: set[tuple[int, str]] = set()
    latest = bookmark = 0
    for response in seen.watch.responses or ():
        events = response.events or ()
        if events and events[0].revision == latest:
            found.setdefault("atomic", f"the events of revision {latest} came in two lists")
        for event in events:
            name = f"{shown(event.key)} of revision {event.revision}"
            if not seen.watch.request.matches(event.key):
                found.setdefault("filter", f"{name} came, and {shown(seen.watch.request.key)} was asked for")
            if event.revision < seen.watch.request.revision:
                why = f"{name} came, and the watch was to begin at revision {seen.watch.request.revision}"
                found.setdefault("resumable", why)
            if event.revision < latest:
                found.setdefault("ordered", f"{name} came after revision {latest}")
            if event.revision <= bookmark:
                why = f"{name} came after the notification that all up to {bookmark} had come"
                found.setdefault("bookmarkable", why)
            if (event.revision, event.key) in shown_before:
                found.setdefault("unique", f"{name} came twice")
            shown_before.add((event.revision, event.key))
            latest = event.revision
        if response.is_progress_notify:
            if response.revision < max(bookmark, latest):
                why = f"a notification of revision {response.revision} came after revision {max(bookmark, latest)}"
                found.setdefault("bookmarkable", why)
            bookmark = response.revision
    for rule, summary in found.items():
        yield witness(rule, summary, [seen.operation])


@dataclass(frozen=True, slots=True)
class _Event:
    """An event that an answer or a watch shows. `left`: what the key held from then on; None: nothing."""

    left: Value | None
    source: Operation


@dataclass(frozen=True)
class _Known:
    """All events that answers and watches show, by revision and key. `whole`: revisions of which all is known."""

    events: dict[tuple[int, str], _Event]
    whole: frozenset[int]
    asked: Mapping[tuple[str, Value | None], Set[int]] | None
    """By each change that requests can have made to a key, the revisions at which they can have made it (0: at any).
    None if others may have made any change."""
    conflicts: tuple[Witness, ...]

    @classmethod
    def of(cls, history: History, watches: Iterable[_Seen]) -> _Known:
        events: dict[tuple[int, str], _Event] = {}
        conflicts: list[Witness] = []
        whole: set[int] = set()
        asked: dict[tuple[str, Value | None], set[int]] = {}
        for operation in history.operations:
            if operation.f != PREFIX + "txn":
                continue
            record = record_of(operation)
            response = record.response if operation.type == "ok" else None
            answered = response.revision if response is not None else 0
            for key, left, lease in record.request.txn.changes if record.request.txn is not None else ():
                asked.setdefault((key, left), set()).add(answered)
                if lease:  # its end deletes the key, at any revision
                    asked.setdefault((key, None), set()).add(0)
            if answered and (written := dict(_written(record))):
                whole.add(answered)
                for key, left in written.items():
                    events.setdefault((answered, key), _Event(left, operation))
        for seen in watches:
            for event in seen.events:
                place = event.revision, event.key
                known = events.setdefault(place, _Event(event.left, seen.operation))
                if known.left != event.left and known.source.f == WATCH:
                    came = f"{shown(event.key)} of revision {event.revision} is {_left(event.left)}"
                    summary = f"{came} in one watch, and {_left(known.left)} in another"
                    conflicts.append(witness("differs", summary, [known.source, seen.operation]))
        requests = asked if has_all_clients(history) else None
        return cls(events, frozenset(whole), requests, tuple(conflicts))

    @cached_property
    def order(self) -> Sequence[tuple[int, str]]:
        return sorted(self.events)

    @cached_property
    def of_key(self) -> dict[str, list[int]]:
        """The revisions of each key's events, ascending."""
        revisions: dict[str, list[int]] = {}
        for revision, key in self.order:
            revisions.setdefault(key, []).append(revision)
        return revisions

    @cached_property
    def _whole(self) -> list[int]:
        return sorted(self.whole)

    def before(self, revision: int, key: str) -> tuple[int, _Event | None] | None:
        """The event of the key before that revision (0 and None: there was none); None if that is not known."""
        revisions = self.of_key.get(key, [])
        place = bisect.bisect_left(revisions, revision)
        at = revisions[place - 1] if place else 0
        between = bisect.bisect_left(self._whole, revision) - bisect.bisect_right(self._whole, max(at, 1))
        if between < revision - max(at, 1) - 1:
            return None
        return at, self.events[at, key] if at else None


def _written(record: Record) -> Iterator[tuple[str, Value | None]]:
    """What an answered transaction left under which keys."""
    txn, response = record.request.txn, record.response
    if txn is None or response is None or response.txn is None:
        return
    results = response.txn.results or ()
    for step, result in zip(txn.branch(response.txn.failure), results, strict=False):
        if step.type == "put-operation":
            yield step.put.key, step.put.value.identity
        elif step.type == "delete-operation" and result.deleted:
            yield step.delete.key, None


def _of_all(seen: _Seen, known: _Known) -> Iterator[Witness]:
    """What a watch shows against all that is known: the first breach of each rule."""
    found: dict[str, Witness] = {}

    def add(rule: str, summary: str, *others: Operation) -> None:
        found.setdefault(rule, witness(rule, summary, [seen.operation, *others]))

    for event in seen.events:
        name = f"{shown(event.key)} of revision {event.revision}"
        real = known.events[event.revision, event.key]
        if real.source.f != WATCH and real.left != event.left:
            summary = f"{name} came as {_left(event.left)}, and {_left(real.left)} was written"
            add("invented", summary, real.source)
        elif real.source.f == WATCH and event.revision in known.whole:
            add("invented", f"{name} came, and the request of that revision did not write it")
        elif known.asked is not None:
            asked = known.asked.get((event.key, event.left), frozenset())
            if not asked & {0, event.revision}:
                other = f" at this revision, but at {', '.join(map(str, sorted(asked)[:3]))}" if asked else ""
                add("invented", f"{name} came as {_left(event.left)}, which no request made{other}")
        before = known.before(event.revision, event.key)
        was_there = before is not None and before[1] is not None and before[1].left is not None
        if before is not None and event.left is not None and event.is_create is was_there:
            came = (
                "a creation, and the key was there"
                if event.is_create
                else "a change, and the key was not there"
            )
            add("created", f"{name} came as {came}")
        if event.prev_value is not None:
            at = event.prev_value.mod_revision
            previous = known.events.get((at, event.key))
            if before is not None and before[0] != at:
                add("previous", f"{name} came with a previous value of revision {at}, and the key was last written at "
                    f"revision {before[0]}")  # fmt: skip
            elif previous is not None and previous.left != event.prev_value.value.identity:
                held = _left(event.prev_value.value.identity)
                add("previous", f"{name} came with the previous value {held} of revision {at}, which was "
                    f"{_left(previous.left)}", previous.source)  # fmt: skip
    shown_here = {(event.revision, event.key) for event in seen.events}
    first, last = seen.bounds
    begun = min((event.revision for event in seen.events), default=last + 1)
    place, end = (bisect.bisect_left(known.order, (revision, "")) for revision in (first, last + 1))
    for revision, key in known.order[place:end]:
        if seen.watch.request.matches(key) and (revision, key) not in shown_here:
            rule = "resumable" if seen.watch.request.revision and revision <= begun else "reliable"
            summary = (
                f"{shown(key)} of revision {revision} did not come, and the watch went from {first} to {last}"
            )
            add(rule, summary, known.events[revision, key].source)
    yield from found.values()


def _left(left: Value | None) -> str:
    if left is None:
        return "a deletion"
    return f"a text with hash {left}" if isinstance(left, int) else f"a put of {shown(left)}"
