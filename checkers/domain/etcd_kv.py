"""etcd's key-value store: every answer agrees with one order of all requests, the order of revisions.

| f | value |
|---|---|
| etcd-range, etcd-txn, etcd-leaseGrant, etcd-leaseRevoke | {request, response} (`etcd_records`) |

Each change raises the revision by one, and each answer names the revision at which it was given. So the order of all
answered requests is known. What is not known is which requests of unknown outcome took effect: where no answered
request made a revision, a search tries those.

| rule | what must not be |
|---|---|
| same-revision | two changes with one revision |
| revision-back-in-time | an answer with a lower revision than one that was given before it was asked |
| two-values | two answers that differ in what a revision wrote to a key |
| wrong-answer | an answer that the requests up to its revision do not give |
| revision-of-nobody | a revision that no request can have made |

Judged are reads (also of older revisions), transactions with their conditions, deletions, versions, counts, and leases.
Not judged are compact, defragment, requests without an answer, and answers without a revision; `not_judged` counts
them. A lease may expire at any time: the files do not say how long it lives.

A history of some clients alone (`etcd_records.has_all_clients`), or of a store that held something before, has
revisions that others made. The contents that follow from these are not judged, and the verdict is unknown at best.

Cost: n log n without requests of unknown outcome; else a try for each answer, and `STEPS` more at most. Source: etcd's
`tests/robustness/model`.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal

from checkers.domain.proof import shown, verdict
from checkers.history.etcd_records import (
    EVERYTHING,
    NAMES,
    PREFIX,
    WATCH,
    Put,
    Range,
    Record,
    Row,
    Rows,
    Step,
    Value,
    has_all_clients,
    record_of,
    watch_of,
)
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.limits import given, look
from checkers.verdict import Verdict, Witness, witness

NAME = "etcd-kv"
MODEL = "linearizable"
STEPS = 1_000_000
NEVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Call:
    """A request with its answer, or one of unknown outcome (`level` 0). `level`: the revision of the answer."""

    operation: Operation
    record: Record
    level: int
    changes: bool
    """Its answer shows that it made the revision."""

    @property
    def invoke(self) -> int:
        return self.operation.invoke_index

    @property
    def complete(self) -> int:
        returned = self.operation.returned_index
        return NEVER if returned is None or not self.level else returned


def check(history: History) -> Verdict:
    """Whether an order of revisions explains all answers. `details`: revisions, gaps, of_others, not_judged,
    tries.
    """
    answered, unsure, not_judged = _calls(history)
    if not answered:
        return verdict(NAME, MODEL, [], _left_out(not_judged), judged=0, valid="")
    witnesses = _without_search(answered)
    details = _left_out(not_judged)
    judged = len(answered)
    if witnesses:
        return verdict(NAME, MODEL, witnesses, details, judged=judged, valid="")
    replay = _Replay(answered, unsure, has_all_clients(history), _watched(history), _perhaps_granted(history))
    outcome = replay.run()
    details |= {
        "revisions": replay.last - replay.base,
        "gaps": replay.gaps,
        "of_others": len(replay.opens),
        "tries": replay.tries,
    }
    if outcome == "no":
        return verdict(NAME, MODEL, [replay.wrong()], details, judged=judged, valid="")
    if outcome == "yes" and replay.is_sure:
        valid = f"{judged:,} answers agree with the order of revisions"
        return verdict(NAME, MODEL, [], details, judged=judged, valid=valid)
    why = replay.why_open() if outcome == "yes" else f"gave up after {replay.tries:,} tries"
    return Verdict(checker=NAME, result="unknown", summary=why, model=MODEL, details=details)


def _left_out(not_judged: Counter[str]) -> dict[str, Any]:
    """The details that say so: `findings` stand on the screen."""
    counts = dict(sorted(not_judged.items()))
    words = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    return {"not_judged": counts, "findings": [f"not judged: {words}"] if words else []}


def _calls(history: History) -> tuple[list[Call], list[Call], Counter[str]]:
    """The answered requests, those of unknown outcome that may have changed something, and how many are not judged."""
    answered: list[Call] = []
    unsure: list[Call] = []
    not_judged: Counter[str] = Counter()
    for operation in history.operations:
        if operation.f not in NAMES or operation.f == WATCH:
            continue
        record = record_of(operation)
        response, kind = record.response, record.request.type
        may_change = kind == "leaseRevoke" or (record.request.txn is not None and record.request.txn.writes)
        if kind in ("compact", "defragment"):
            not_judged[kind] += 1
        elif operation.type == "ok" and response is not None and response.revision > 0:
            answered.append(Call(operation, record, response.revision, _has_changed(record)))
        elif may_change and operation.type != "fail":
            unsure.append(Call(operation, record, 0, changes=False))
        else:
            not_judged[f"{kind} without an answer"] += 1
    return answered, unsure, not_judged


def _has_changed(record: Record) -> bool:
    txn, response = record.request.txn, record.response
    if txn is None or response is None or response.txn is None:
        return False
    steps, results = txn.branch(response.txn.failure), response.txn.results or ()
    return any(step.type == "put-operation" for step in steps) or any(
        step.type == "delete-operation" and result.deleted > 0
        for step, result in zip(steps, results, strict=False)
    )


# ---- what needs no search


def _without_search(answered: Sequence[Call]) -> list[Witness]:
    witnesses: list[Witness] = []
    makers: dict[int, Call] = {}
    for call in answered:
        if call.changes and call.level < 2:
            summary = f"a change has revision {call.level}, and a store without changes has revision 1"
            witnesses.append(_witness("wrong-answer", summary, call))
        elif call.changes:
            first = makers.setdefault(call.level, call)
            if first is not call:
                summary = f"two changes have revision {call.level}"
                witnesses.append(_witness("same-revision", summary, first, call))
    witnesses += _back_in_time(answered)
    seen: dict[tuple[int, str], tuple[Value, int, Call]] = {}
    for call in answered:
        for row, has_value in _rows_of(call):
            if not has_value:
                continue
            found = row.value.identity, row.version, call
            first_seen = seen.setdefault((row.mod_revision, row.key), found)
            if first_seen[:2] != found[:2]:
                summary = (
                    f"{shown(row.key)} of revision {row.mod_revision} is {_value(first_seen[0])} (version "
                    f"{first_seen[1]}) in one answer, and {_value(found[0])} (version {found[1]}) in another"
                )
                witnesses.append(_witness("two-values", summary, first_seen[2], call))
    return witnesses


def _back_in_time(answered: Sequence[Call]) -> Iterator[Witness]:
    """Answers that were asked for after an answer that stands behind them in the order had come."""
    by_level: dict[int, list[Call]] = {}
    for call in answered:
        by_level.setdefault(call.level, []).append(call)
    higher: Call | None = None  # the first that was over of those with higher revisions
    for level in sorted(by_level, reverse=True):
        first = min(by_level[level], key=_complete)
        # A change comes before the other answers of its revision, and these have no order among themselves.
        for call in by_level[level]:
            behind = min(
                (other for other in (higher, first if call.changes else None) if other),
                key=_complete,
                default=None,
            )
            if behind is not None and behind.complete < call.invoke:
                summary = f"revision {level} answered a request that began after an answer of revision {behind.level}"
                yield _witness("revision-back-in-time", summary, behind, call)
        higher = first if higher is None else min(higher, first, key=_complete)


def _complete(call: Call) -> int:
    return call.complete


def _rows_of(call: Call) -> Iterator[tuple[Row, bool]]:
    """The rows that an answer shows, and whether with their values."""
    request, response = call.record.request, call.record.response
    assert response is not None
    if request.range is not None and response.range is not None:
        for row in response.range.kvs or ():
            yield row, not request.range.keys_only
    if request.txn is not None and response.txn is not None:
        steps = request.txn.branch(response.txn.failure)
        for step, result in zip(steps, response.txn.results or (), strict=False):
            if step.type == "range-operation":
                for row in result.kvs or ():
                    yield row, not step.range.keys_only


# ---- the replay


@dataclass(frozen=True, slots=True)
class _Entry:
    """What a key holds from a revision on. value None: nothing; version 0: not known."""

    revision: int
    value: Value | None
    version: int
    lease: int = 0


Maker = tuple[Literal["txn", "revoke", "expire", "others"], Call | None, Any]
"""What may have made a revision: a transaction (with the branch that ran), a lease's end, or other clients."""


@dataclass(slots=True)
class _Replay:
    """Runs requests in the order of revisions, and takes them back where an answer does not fit."""

    answered: Sequence[Call]
    unsure: Sequence[Call]
    all_clients: bool
    watched: dict[int, dict[str, Value | None]]
    perhaps_granted: frozenset[int]
    base: int = 0
    last: int = 0
    gaps: int = 0
    tries: int = 0
    opens: list[int] = field(default_factory=list)
    """Revisions after `base` that others made, ascending: those for which nothing else is left."""
    _makers: dict[int, Call] = field(default_factory=dict)
    _beside: dict[int, list[Call]] = field(default_factory=dict)
    _levels: list[int] = field(default_factory=list)
    """The revisions of answers, ascending."""
    _soonest: list[int] = field(default_factory=list)
    """By place in `_levels`: when the first answer of this revision or a later one had come."""
    _seen: dict[int, dict[str, tuple[Row, bool, Call]]] = field(default_factory=dict)
    """By revision and key: a row of an answer, whether with its value, and the answer."""
    _keys: list[str] = field(default_factory=list)
    _entries: dict[str, list[_Entry]] = field(default_factory=dict)
    _granted: dict[int, bool] = field(default_factory=dict)
    """By lease: whether it lives."""
    _held: dict[int, dict[str, None]] = field(default_factory=dict)
    """By lease: the keys that were put under it at some time."""
    _used: set[int] = field(default_factory=set)
    _undo: list[Callable[[], Any]] = field(default_factory=list)
    _furthest: tuple[int, str, str, tuple[Call, ...]] = (0, "", "", ())

    def __post_init__(self) -> None:
        for call in self.answered:
            if call.changes:
                self._makers[call.level] = call
            else:
                self._beside.setdefault(call.level, []).append(call)
            for row, has_value in _rows_of(call):
                known = self._seen.setdefault(row.mod_revision, {})
                if has_value or row.key not in known:
                    known[row.key] = row, has_value, call
        for beside in self._beside.values():
            beside.sort(key=lambda call: call.invoke)
        self.last = max(call.level for call in self.answered)
        self.base = min(call.level - call.changes for call in self.answered)
        self.gaps = self.last - self.base - len(self._makers)
        self._keys = sorted({key for call in (*self.answered, *self.unsure) for key in _keys_of(call)})
        ends: dict[int, int] = {}
        for call in self.answered:
            ends[call.level] = min(ends.get(call.level, NEVER), call.complete)
        self._levels = sorted(ends)
        self._soonest = list(accumulate((ends[level] for level in reversed(self._levels)), min))[::-1]

    @property
    def is_sure(self) -> bool:
        """Whether nobody else has written: the store held nothing at first, and each revision has its request."""
        return self.base <= 1 and not self.opens

    # -- the search

    def run(self) -> Literal["yes", "no", "unknown"]:
        """Whether there is an order; unknown if the tries did not suffice."""
        if not self._beside_at(self.base):
            return "no"
        most = min(STEPS, given().steps or STEPS)
        frames: list[tuple[Iterator[Maker], int]] = []
        levels = range(self.base + 1, self.last + 1)
        options = self._options(levels[0]) if levels else iter(())
        while len(frames) < len(levels):
            level, mark = levels[len(frames)], len(self._undo)
            for maker in options:
                self.tries += 1
                if self.tries % 1024 == 0:
                    look()
                if self.tries > most + len(self.answered):
                    return "unknown"
                if self._make(level, maker) and self._as_seen(level) and self._beside_at(level):
                    frames.append((options, mark))
                    if len(frames) < len(levels):
                        options = self._options(levels[len(frames)])
                    break
                self._back_to(mark)
            else:
                if not frames:
                    return "no"
                options, mark = frames.pop()
                self._back_to(mark)
        return "yes"

    def _options(self, level: int) -> Iterator[Maker]:
        if level in self._makers:
            call = self._makers[level]
            yield "txn", call, self._failed(call)
            return
        yield from self._candidates(level)
        if not self.all_clients:
            yield "others", None, None
        elif self._furthest[0] < level:
            self._note(level, "revision-of-nobody", f"no request can have made revision {level}")

    def _candidates(self, level: int) -> Iterator[Maker]:
        latest = self._soonest[bisect.bisect_left(self._levels, level)]
        for call in self._beside.get(level, ()):
            if call.record.request.lease_revoke is not None and call.invoke < latest:
                yield "revoke", call, None
        expected = {*self._seen.get(level, ()), *self.watched.get(level, ())}
        unsure = [
            call
            for call in reversed(self.unsure)
            if call.invoke < latest and call.operation.invoke_index not in self._used
        ]
        if expected:  # else the last one that was asked for is the likeliest
            unsure.sort(key=lambda call: expected.isdisjoint(_written_by(call)))
        for call in unsure:
            if call.record.request.lease_revoke is not None:
                yield "revoke", call, None
            else:
                yield "txn", call, False
                if call.record.request.txn is not None and call.record.request.txn.conditions:
                    yield "txn", call, True
        for lease, lives in list(self._granted.items()):
            if lives:
                yield "expire", None, lease

    @staticmethod
    def _failed(call: Call) -> bool:
        response = call.record.response
        assert response is not None and response.txn is not None
        return response.txn.failure

    def _back_to(self, mark: int) -> None:
        while len(self._undo) > mark:
            self._undo.pop()()

    def _note(self, level: int, rule: str, summary: str, *calls: Call) -> bool:
        """Remember what went wrong farthest; always False."""
        if level >= self._furthest[0]:
            self._furthest = level, rule, summary, calls
        return False

    # -- what a maker does

    def _make(self, level: int, maker: Maker) -> bool:
        kind, call, how = maker
        if kind == "others":
            self.opens.append(level)
            self._undo.append(self.opens.pop)
            return True
        if kind == "expire":
            return self._end_lease(level, how)
        assert call is not None
        if not call.level:
            self._used.add(call.operation.invoke_index)
            self._undo.append(lambda: self._used.discard(call.operation.invoke_index))
        if kind == "revoke":
            lease = call.record.request.lease_revoke
            assert lease is not None
            return self._end_lease(level, lease.id)
        return self._transaction(level, call, how)

    def _end_lease(self, level: int, lease: int) -> bool:
        """Remove all keys of the lease; False if it has none."""
        gone = [key for key in self._held.get(lease, ()) if self._now(key).lease == lease]
        for key in gone:
            self._push(key, _Entry(level, None, 0))
        self._set_lease(lease, lives=False)
        return bool(gone)

    def _set_lease(self, lease: int, *, lives: bool) -> None:
        before = self._granted.get(lease)
        self._granted[lease] = lives
        self._undo.append(
            lambda: self._granted.pop(lease) if before is None else self._granted.update({lease: before})
        )

    def _push(self, key: str, entry: _Entry) -> None:
        entries = self._entries.setdefault(key, [])
        entries.append(entry)
        self._undo.append(entries.pop)

    def _transaction(self, level: int, call: Call, failure: bool) -> bool:
        """Run a transaction that has this revision if it changes something."""
        txn, response = call.record.request.txn, call.record.response
        assert txn is not None
        answer = None if response is None or not call.level else response.txn
        holds = self._hold(call)
        if holds is failure:  # its conditions say the opposite
            word = "hold" if holds else "do not all hold"
            return self._note(level, "wrong-answer", f"at revision {level} the conditions of a transaction "
                              f"{word}, and its answer says otherwise", call) if answer else False  # fmt: skip
        steps = txn.branch(failure)
        results = None if answer is None else answer.results or []
        if results is not None and len(results) != len(steps):
            came = f"{len(results)} results for {len(steps)} operations of a transaction"
            return self._note(level, "wrong-answer", came, call)
        changed = False
        for number, step in enumerate(steps):
            result = None if results is None else results[number]
            if step.type == "range-operation":
                if result is not None and not self._is_answer(level, level, step.range, result, call):
                    return False
            elif step.type == "put-operation":
                if not self._has_lease(level, step.put, call):
                    return False
                changed = True
                self._put(level, step.put)
            else:
                did = self._deleted(level, step, None if result is None else result.deleted, call)
                if did is None:
                    return False
                changed |= did
        return changed or call.level > 0

    def _has_lease(self, level: int, put: Put, call: Call) -> bool:
        if not put.lease or self._granted.get(put.lease) or not (self.is_sure and self.all_clients):
            return True
        if put.lease in self.perhaps_granted and put.lease not in self._granted:
            self._set_lease(put.lease, lives=True)
            return True
        if not call.level:
            return False
        came = f"{shown(put.key)} was put under lease {put.lease}, which did not exist"
        return self._note(level, "wrong-answer", came, call)

    def _put(self, level: int, put: Put) -> None:
        now = self._now(put.key)
        version = now.version + 1 if now.version or now.value is None else 0
        self._push(
            put.key, _Entry(level, put.value.identity, 0 if self._is_open(now, level) else version, put.lease)
        )
        if put.lease:
            self._held.setdefault(put.lease, {})[put.key] = None

    def _deleted(self, level: int, step: Step, told: int | None, call: Call) -> bool | None:
        """Delete a key; whether it was there, None if the answer says otherwise."""
        key = step.delete.key
        now = self._now(key)
        maybe = told is None or told > 0
        there = maybe if self._is_open(now, level) else now.value is not None
        if told is not None and bool(told) != there:
            held = _value(now.value)
            came = f"a deletion of {shown(key)} at revision {level} removed {told}, and the key held {held}"
            self._note(level, "wrong-answer", came, *self._with_maker(call, now))
            return None
        if there:
            self._push(key, _Entry(level, None, 0))
        return there

    def _hold(self, call: Call) -> bool | None:
        """Whether the conditions of a transaction hold now; None if others may have decided that."""
        txn = call.record.request.txn
        assert txn is not None
        unknown = False
        for condition in txn.conditions or ():
            now = self._now(condition.key)
            if self._is_open(now, NEVER):
                unknown = True
                continue
            if condition.expected_version > 0:
                if now.version == 0 and now.value is not None:
                    unknown = True
                elif now.version != condition.expected_version:
                    return False
            elif (0 if now.value is None else now.revision) != condition.expected_revision:
                return False
        return None if unknown else True

    # -- what answers show

    def _as_seen(self, level: int) -> bool:
        """Whether the revision wrote what answers show of it."""
        for key, (row, has_value, call) in self._seen.get(level, {}).items():
            showing = tuple(one for one in (self._makers.get(level), call) if one is not None)
            now = self._now(key)
            if now.revision != level:
                if self.opens and self.opens[-1] == level:
                    continue
                return self._note(level, "wrong-answer", f"{shown(key)} was shown as of revision {level}, which "
                                  "did not write it", *showing)  # fmt: skip
            if (has_value and now.value != row.value.identity) or (now.version not in (0, row.version)):
                came = (
                    f"{shown(key)} of revision {level} was shown as {_value(row.value.identity)} (version "
                    f"{row.version}), and {_value(now.value)} (version {now.version}) was written"
                )
                return self._note(level, "wrong-answer", came, *showing)
        return True

    def _beside_at(self, level: int) -> bool:
        """Whether the answers of this revision that changed nothing are right."""
        for call in self._beside.get(level, ()):
            request, response = call.record.request, call.record.response
            assert response is not None
            if request.range is not None:
                at = request.range.revision or level
                if at > level:
                    return self._note(
                        level, "wrong-answer", f"a read of revision {at} was answered at {level}", call
                    )
                if response.range is not None and not self._is_answer(
                    level, at, request.range, response.range, call
                ):
                    return False
            elif request.lease_grant is not None and request.lease_grant.id:
                self._set_lease(request.lease_grant.id, lives=True)
            elif request.lease_revoke is not None:
                if not self._ended(level, request.lease_revoke.id, call):
                    return False
            elif request.txn is not None and not self._transaction(level, call, self._failed(call)):
                return False
        return True

    def _ended(self, level: int, lease: int, call: Call) -> bool:
        """A revocation that changed nothing, or made this revision."""
        left = [key for key in self._held.get(lease, ()) if self._now(key).lease == lease]
        if left and not any(self._is_open(self._now(key), level) for key in left):
            came = f"lease {lease} was revoked at revision {level}, and {shown(left[0])} stayed under it"
            return self._note(level, "wrong-answer", came, *self._with_maker(call, self._now(left[0])))
        self._set_lease(lease, lives=False)
        return True

    def _is_answer(self, level: int, at: int, asked: Range, answer: Rows, call: Call) -> bool:
        """Whether a read shows what its keys held at revision `at`."""
        rows = {row.key: row for row in answer.kvs or ()}
        last = max(rows, default="")
        is_cut = bool(asked.end and asked.limit) and len(rows) >= asked.limit
        count = 0
        for key in dict.fromkeys((*self._in(asked), *rows)):
            entry = self._at(key, at)
            row = rows.get(key)
            count += entry.value is not None
            if row is None and is_cut and key > last:
                continue
            if not asked.holds(key):
                return self._note(level, "wrong-answer", f"{shown(key)} was not asked for", call)
            if why := self._differs(key, entry, row, at, not asked.keys_only):
                return self._note(level, "wrong-answer", why, *self._with_maker(call, entry))
        listed = [row.key for row in answer.kvs or ()]
        if listed != sorted(rows) or (asked.end and asked.limit and len(rows) > asked.limit):
            return self._note(
                level, "wrong-answer", f"the rows {shown(listed)} are not in order, or too many", call
            )
        if answer.count != count and self.is_sure:
            came = f"a read at revision {at} counted {answer.count}, and there were {count}"
            return self._note(level, "wrong-answer", came, call)
        return True

    def _differs(self, key: str, entry: _Entry, row: Row | None, at: int, has_value: bool) -> str:
        """Why a row is not what the key held; "" if it is."""
        held = f"{shown(key)} at revision {at} was {_value(entry.value)} of revision {entry.revision}"
        if row is None:
            return "" if entry.value is None or self._is_open(entry, at) else f"{held}, and was not shown"
        if row.mod_revision != entry.revision or entry.value is None:
            place = bisect.bisect_left(self.opens, row.mod_revision)
            is_of_others = (
                self.opens[place : place + 1] == [row.mod_revision] or 1 < row.mod_revision <= self.base
            )
            if entry.revision < row.mod_revision <= at and is_of_others:
                return ""
            return f"{held}, and was shown as {_value(row.value.identity)} of revision {row.mod_revision}"
        if (has_value and row.value.identity != entry.value) or entry.version not in (0, row.version):
            return (
                f"{held} (version {entry.version}), and was shown as {_value(row.value.identity)} "
                f"(version {row.version})"
            )
        return ""

    # -- keys

    def _now(self, key: str) -> _Entry:
        entries = self._entries.get(key)
        return entries[-1] if entries else _NOTHING

    def _at(self, key: str, revision: int) -> _Entry:
        entries = self._entries.get(key, ())
        # Ascending, because entries are pushed in the order of revisions and popped in the reverse.
        place = bisect.bisect_right(entries, revision, key=lambda entry: entry.revision)
        return entries[place - 1] if place else _NOTHING

    def _in(self, asked: Range) -> Iterable[str]:
        if not asked.end:
            return (asked.start,)
        begin = bisect.bisect_left(self._keys, asked.start)
        end = len(self._keys) if asked.end == EVERYTHING else bisect.bisect_left(self._keys, asked.end)
        return self._keys[begin:end]

    def _is_open(self, entry: _Entry, upto: int) -> bool:
        """Whether others may have written the key since."""
        if entry is _NOTHING and self.base > 1:
            return True
        place = bisect.bisect_right(self.opens, entry.revision)
        return place < len(self.opens) and self.opens[place] <= upto

    def _with_maker(self, call: Call, entry: _Entry) -> tuple[Call, ...]:
        made = self._makers.get(entry.revision)
        return (call,) if made is None else (made, call)

    # -- words

    def wrong(self) -> Witness:
        """The proof that there is no order: what went wrong farthest."""
        level, rule, summary, calls = self._furthest
        calls = calls or tuple(self._beside.get(level, ()) or self.answered)[:1]
        filled = (
            f"; {len(self.unsure)} requests of unknown outcome do not help"
            if self.gaps and self.unsure
            else ""
        )
        return _witness(rule, summary + filled, *calls)

    def why_open(self) -> str:
        """Why an order with revisions of others proves nothing."""
        if self.opens:
            return (
                f"{len(self.opens):,} revisions were made by clients that are not in this file (the first is "
                f"{self.opens[0]}): give the folder with the files of all clients"
            )
        return (
            f"the store was at revision {self.base} when the first answer came, and what it held is not known"
        )


_NOTHING = _Entry(0, None, 0)


def _keys_of(call: Call) -> Iterator[str]:
    for row, _ in _rows_of(call) if call.level else ():
        yield row.key
    yield from _written_by(call)


def _written_by(call: Call) -> Iterator[str]:
    txn = call.record.request.txn
    return (key for key, _, _ in txn.changes) if txn is not None else iter(())


def _watched(history: History) -> dict[int, dict[str, Value | None]]:
    """What watches show of each revision: with these the search begins."""
    watched: dict[int, dict[str, Value | None]] = {}
    for operation in history.operations:
        if operation.f == WATCH:
            for response in watch_of(operation).responses or ():
                for event in response.events or ():
                    watched.setdefault(event.revision, {})[event.key] = event.left
    return watched


def _perhaps_granted(history: History) -> frozenset[int]:
    """The leases that were asked for without an answer: a key that is under one shows that it was granted."""
    asked = (each for each in history.operations if each.f == f"{PREFIX}leaseGrant" and each.type == "info")
    return frozenset(grant.id for each in asked if (grant := record_of(each).request.lease_grant) is not None)


def _value(value: Value | None) -> str:
    if value is None:
        return "nothing"
    return f"a text with hash {value}" if isinstance(value, int) else shown(value)


def _witness(rule: str, summary: str, *calls: Call) -> Witness:
    return witness(rule, summary, [call.operation for call in calls])
