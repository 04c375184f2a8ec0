"""Operations as columns: what a checker of a million operations reads in place of objects.

`Columns` are paired operations. `paired` makes them of events that were read as columns, `of_operations` of objects;
`checkers.history.as_columns` gives those of a history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy

from checkers.compiled import load
from checkers.history import pairing_kernels
from checkers.history.line_kernels import ABSENT, FAIL, FINAL, INFO, OK, PAIR, PLAIN
from checkers.history.operation import Operation, Outcome

Array = Any  # numpy's
VALUES_MAX = 1 << 60
TYPES = ("invoke", "ok", "fail", "info")


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Operations in order of invocation: arrays of one length.

    `invoke` and `complete` are indexes of events (complete -1: none was recorded); `type` is OK, FAIL or INFO; `f`,
    `key`, `role`, `mode` and `error` are places in `words`, of which the first is None; `is_final` tells the phase. Of
    the value `kind` says whether it is PLAIN (`new`: the number, ABSENT for nothing), a PAIR (`old`, `new`) or OTHER.
    """

    invoke: Array
    complete: Array
    type: Array
    f: Array
    key: Array
    role: Array
    mode: Array
    error: Array
    is_final: Array
    kind: Array
    old: Array
    new: Array
    words: Sequence[str | None]

    def __len__(self) -> int:
        return len(self.invoke)

    def code(self, word: str) -> int:
        """The place of a word; -1 if no operation has it."""
        return self.words.index(word) if word in self.words else -1

    @property
    def names(self) -> set[str]:
        """All f."""
        return {str(self.words[code]) for code in numpy.flatnonzero(numpy.bincount(self.f)).tolist()}

    @property
    def outcomes(self) -> Counter[Outcome]:
        """How many operations ended in which way."""
        many = numpy.bincount(self.type, minlength=len(TYPES)).tolist()
        return Counter({"ok": many[OK], "fail": many[FAIL], "info": many[INFO]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Clients' events in their order. `info` is as `line_kernels` has it; the other columns are those of `Columns`."""

    index: Array
    process: Array
    info: Array
    f: Array
    key: Array
    role: Array
    mode: Array
    error: Array
    old: Array
    new: Array
    words: Sequence[str | None]


def paired(events: Events) -> Columns | None:
    """The operations; None if the events do not add up."""
    type_ = events.info & 3
    partner = partners(events.process, type_ == 0)
    if partner is None:
        return None
    asked = numpy.flatnonzero(partner != -2)
    ended = partner[asked]
    whole = numpy.flatnonzero(ended >= 0)
    begins, ends = asked[whole], ended[whole]
    other_key = (events.key[ends] != 0) & (events.key[ends] != events.key[begins])
    if (events.f[begins] != events.f[ends]).any() or other_key.any():
        return None
    info = events.info[asked]
    found = numpy.full(len(asked), INFO, dtype=numpy.int8)
    found[whole] = type_[ends]
    kind = ((info >> 2) & 3).astype(numpy.int8)
    old, new = events.old[asked], events.new[asked]
    there = numpy.flatnonzero((events.info[ends] >> 2 & 3 != PLAIN) | (events.new[ends] != ABSENT))
    there = there[type_[ends[there]] == OK]
    places, answers = whole[there], ends[there]
    kind[places] = events.info[answers] >> 2 & 3
    old[places], new[places] = events.old[answers], events.new[answers]
    complete = numpy.full(len(asked), -1, dtype=numpy.int64)
    complete[whole] = events.index[ends]

    def either(column: Array) -> Array:
        of_asked, of_ended = column[asked], column[ends]
        of_asked[whole] = numpy.where(of_ended == 0, of_asked[whole], of_ended)
        return of_asked

    error = numpy.zeros(len(asked), dtype=numpy.int32)
    error[whole] = events.error[ends]
    return Columns(
        invoke=events.index[asked], complete=complete, type=found, f=events.f[asked], key=events.key[asked],
        role=either(events.role), mode=either(events.mode), error=error, is_final=(info & FINAL) != 0, kind=kind,
        old=old, new=new, words=events.words,
    )  # fmt: skip


def partners(process: Array, invokes: Array) -> Array | None:
    """Of each event that is an invocation the row of its completion (-1: none), of others -2. None if processes do not
    take turns."""
    if len(process) and (process.min() < 0 or process.max() > 4 * len(process) + 1_000_000):
        return None
    running = numpy.full(int(process.max(initial=0)) + 1, -1, dtype=numpy.int64)
    partner = numpy.empty(len(process), dtype=numpy.int64)
    answer = load(pairing_kernels).pair(process, invokes.astype(numpy.int64), running, partner)
    return None if answer == pairing_kernels.ODD else partner


_CLASS = attrgetter("f", "type", "key", "role", "mode", "error", "phase")


def of_operations(operations: Sequence[Operation]) -> Columns | None:
    """The columns of operations that are there; None if a value is no number, or two events have one index."""
    values = _values([operation.value for operation in operations])
    if values is None:
        return None
    times = _times(operations)
    if times is None:
        return None
    each = list(map(_CLASS, operations))
    classes = {found: place for place, found in enumerate(dict.fromkeys(each))}
    of = numpy.fromiter(map(classes.__getitem__, each), dtype=numpy.int64, count=len(each))
    if any(type_ != "info" for _, type_, *_ in classes) and (times[1][_answered(classes, of)] < 0).any():
        return None
    words: dict[str | None, int] = {None: 0}
    table = numpy.zeros((7, max(1, len(classes))), dtype=numpy.int32)
    for place, (f, type_, key, role, mode, error, phase) in enumerate(classes):
        codes = [words.setdefault(word, len(words)) for word in (f, key, role, mode, error)]
        table[:, place] = (*codes, TYPES.index(type_), phase == "final")
    f, key, role, mode, error, type_, final = (column[of] for column in table)
    return Columns(
        invoke=times[0], complete=times[1], type=type_, f=f, key=key, role=role, mode=mode, error=error,
        is_final=final == 1, kind=values[0], old=values[1], new=values[2], words=tuple(words),
    )  # fmt: skip


def _answered(classes: Iterable[tuple[Any, ...]], of: Array) -> Array:
    return numpy.array([type_ != "info" for _, type_, *_ in classes], dtype=bool)[of]


def _times(operations: Sequence[Operation]) -> tuple[Array, Array] | None:
    count = len(operations)
    invoke = numpy.fromiter(map(attrgetter("invoke_index"), operations), dtype=numpy.int64, count=count)
    ends = [operation.complete_index for operation in operations]
    complete = numpy.array([-1 if end is None else end for end in ends], dtype=numpy.int64)
    ranks = numpy.concatenate((invoke, complete[complete >= 0]))
    if count and (
        (invoke[1:] <= invoke[:-1]).any() or invoke[0] < 0 or len(numpy.unique(ranks)) < len(ranks)
    ):
        return None
    return invoke, complete


def _values(values: list[Any]) -> tuple[Array, Array, Array] | None:
    """(kind, old, new) of values as Python has them."""
    types = set(map(type, values))
    count = len(values)
    kind, old = numpy.zeros(count, dtype=numpy.int8), numpy.full(count, ABSENT, dtype=numpy.int64)
    if not types <= {int, type(None), list, tuple}:
        return None
    plain: list[Any] = values
    if list in types or tuple in types:
        places = [place for place, value in enumerate(values) if isinstance(value, list | tuple)]
        pairs = [values[place] for place in places]
        if set(map(len, pairs)) != {2} or not {type(each) for pair in pairs for each in pair} <= {
            int,
            type(None),
        }:
            return None
        at = numpy.array(places)
        first = _numbers([pair[0] for pair in pairs])
        if first is None:
            return None
        kind[at], old[at] = PAIR, first
        plain = values.copy()
        for place, pair in zip(places, pairs, strict=True):
            plain[place] = pair[1]
    new = _numbers(plain)
    return None if new is None else (kind, old, new)


def _numbers(values: list[int | None]) -> Array | None:
    try:
        found = numpy.array([ABSENT if value is None else value for value in values], dtype=numpy.int64)
    except OverflowError:
        return None
    large = (found > VALUES_MAX) | ((found < -VALUES_MAX) & (found != ABSENT))
    return None if large.any() else found
