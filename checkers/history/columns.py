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
from checkers.history.line_kernels import ABSENT, FAIL, INFO, OK, PAIR
from checkers.history.operation import Operation, Outcome

Array = Any  # numpy's
VALUES_MAX = 1 << 60
FEW = 5_000  # rows that are sorted without a kernel: loading one takes longer
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
    if not _have_places(events.process):
        return None
    count = int((events.info & 3 == 0).sum())
    numbers = numpy.empty((4, count), dtype=numpy.int64)
    types, kind = (numpy.empty(count, dtype=numpy.int8) for _ in range(2))
    f, key, role, mode, error = (numpy.empty(count, dtype=numpy.int32) for _ in range(5))
    is_final = numpy.empty(count, dtype=numpy.bool_)
    found = load(pairing_kernels).pair_columns(
        events.index, events.process, events.info, events.f, events.key, events.role, events.mode, events.error,
        events.old, events.new, _nobody(events.process), numbers, types, f, key, role, mode, error, is_final, kind,
    )  # fmt: skip
    if found < 0:
        return None
    return Columns(
        invoke=numbers[0], complete=numbers[1], type=types, f=f, key=key, role=role, mode=mode, error=error,
        is_final=is_final, kind=kind, old=numbers[2], new=numbers[3], words=events.words,
    )  # fmt: skip


def _have_places(process: Array) -> bool:
    """Whether the numbers of processes are small enough to have a place each."""
    return not len(process) or (process.min() >= 0 and process.max() <= 4 * len(process) + 1_000_000)


def _nobody(process: Array) -> Array:
    return numpy.full(int(process.max(initial=0)) + 1, -1, dtype=numpy.int64)


def grouped(key: Array, keys: int) -> tuple[Array, Array]:
    """Rows in order of their keys, and the bounds of each key's rows in that order."""
    if len(key) < FEW:
        order = numpy.argsort(key, kind="stable")
        return order, numpy.searchsorted(key[order], numpy.arange(keys + 1))
    order, bounds = numpy.empty(len(key), dtype=numpy.int64), numpy.zeros(keys + 2, dtype=numpy.int64)
    load(pairing_kernels).group(key, bounds, order)
    return order, bounds[:-1]


def partners(process: Array, invokes: Array) -> Array | None:
    """Of each event that is an invocation the row of its completion (-1: none), of others -2. None if processes do not
    take turns."""
    if not _have_places(process):
        return None
    partner = numpy.empty(len(process), dtype=numpy.int64)
    answer = load(pairing_kernels).pair(process, invokes.astype(numpy.int64), _nobody(process), partner)
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
