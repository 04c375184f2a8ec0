"""Operations as columns: what a checker of a million operations reads in place of objects.

`Columns` are paired operations. `Pairing` makes them of events that are read as columns, some at a time;
`of_operations` makes them of objects. `History.columns` are those of a history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy

from checkers.compiled import load
from checkers.history import pairing_kernels
from checkers.history.errors import HistoryError
from checkers.history.line_kernels import ABSENT, FAIL, INFO, OK, OTHER, PAIR
from checkers.history.operation import ASKED, Operation, Outcome, Phase
from checkers.history.spilled import Rooms

Array = Any  # numpy's
VALUES_MAX = 1 << 60
WORDS_MAX = (1 << 15) - 2  # words that codes of 16 bits can tell apart, one more that a reader adds included
PROCESS_MAX = (1 << 31) - 1
TYPES = ("invoke", "ok", "fail", "info")
_OUTCOMES: dict[int, Outcome] = {OK: "ok", FAIL: "fail", INFO: "info"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Operations in order of invocation: arrays of one length.

    `invoke` and `complete` are indexes of events (complete -1: none was recorded), `invoke_ns` and `complete_ns` their
    times; `process` the client; `type` is OK, FAIL or INFO; `f`, `key`, `node`, `role`, `mode` and `error` are places
    in `words`, of which the first is None; `is_final` tells the phase. Of the value `kind` says whether it is PLAIN
    (`new`: the number, ABSENT for nothing), a PAIR (`old`, `new`) or OTHER. `words` has those of `wait` as well, but no
    column tells which operations have them.

    Numbers of events, times and values have 64 bits. The others have as few as they need: mind that numpy's sums and
    products of them have no more.
    """

    invoke: Array
    complete: Array
    invoke_ns: Array
    complete_ns: Array
    process: Array
    type: Array
    f: Array
    key: Array
    node: Array
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

    def places(
        self, names: Iterable[str] | None, outcome: Outcome | None, phase: Phase | None, node: str | None
    ) -> Array:
        """The places of the operations that match all arguments (of `names` one); None matches all."""
        chosen = numpy.ones(len(self), dtype=bool)
        if names is not None:
            chosen &= numpy.isin(self.f, [self.code(name) for name in names])
        if outcome is not None:
            chosen &= self.type == TYPES.index(outcome)
        if phase is not None:
            chosen &= self.is_final == (phase == "final")
        if node is not None:
            chosen &= self.node == self.code(node)
        return numpy.flatnonzero(chosen)

    def keys(self, places: Array) -> set[str | None]:
        """The keys of the operations at these places."""
        return {self.words[code] for code in numpy.unique(self.key[places]).tolist()}

    def alike(self, chosen: Array) -> tuple[Array, list[int]]:
        """Groups the chosen operations (an array of truths) by f, and by which parts of their values are numbers.

        Gives each operation's group (-1: not chosen), and the place of the first operation of each group, in order.
        """
        has_old, has_new = self.old != ABSENT, self.new != ABSENT
        form = (self.kind << 2) | (has_old << 1).astype(numpy.int8) | has_new
        group = numpy.where(chosen, (self.f.astype(numpy.int32) << 4) | form, -1)
        firsts = {
            int(numpy.argmax(group == code)): code for code in numpy.unique(group).tolist() if code >= 0
        }
        number = numpy.full(len(self), -1, dtype=numpy.int32)
        for count, first in enumerate(sorted(firsts)):
            number[group == firsts[first]] = count
        return number, sorted(firsts)

    def at(self, places: Array) -> Columns:
        """The operations at these places."""
        return Columns(
            **{
                field.name: getattr(self, field.name)[places]
                for field in fields(self)
                if field.name != "words"
            },
            words=self.words,
        )

    def by_role_and_mode(self, places: Array) -> Iterator[tuple[str | None, str | None, Array]]:
        """Each role and mode of these operations, with the places of those that have it."""
        both = self.role[places].astype(numpy.int64) * len(self.words) + self.mode[places]
        for number in numpy.unique(both).tolist():
            role, mode = divmod(number, len(self.words))
            yield self.words[role], self.words[mode], places[both == number]

    def by_keys(self, at_once: int) -> Iterator[tuple[int, int, Array]]:
        """The places of the operations of some keys at a time, some `at_once` of them: with the code of the first of
        these keys, and the first code that comes next."""
        if len(self) <= at_once:
            yield 0, len(self.words), numpy.arange(len(self))
            return
        until = numpy.cumsum(numpy.bincount(self.key, minlength=len(self.words)))
        first = before = 0
        while before < len(self):
            end = min(int(numpy.searchsorted(until, before + at_once)) + 1, len(until))
            yield first, end, numpy.flatnonzero((self.key >= first) & (self.key < end))
            first, before = end, int(until[end - 1])

    @property
    def are_ranked(self) -> bool:
        """Whether all events have indexes of their own, and what was answered has an answer's."""
        ranks = numpy.concatenate((self.invoke, self.complete[self.complete >= 0]))
        if len(ranks) == 0:
            return True
        if self.invoke[0] < 0 or (self.invoke[1:] <= self.invoke[:-1]).any():
            return False
        if ((self.complete < 0) & (self.type != INFO)).any():
            return False
        if ranks.max() <= 8 * len(ranks):
            return bool(numpy.bincount(ranks).max() == 1)
        return len(numpy.unique(ranks)) == len(ranks)

    @property
    def names(self) -> set[str]:
        """The f of all operations."""
        return {str(self.words[code]) for code in numpy.flatnonzero(numpy.bincount(self.f)).tolist()}

    @property
    def outcomes(self) -> Counter[Outcome]:
        """How many operations ended in which way."""
        many = numpy.bincount(self.type, minlength=len(TYPES)).tolist()
        return Counter({"ok": many[OK], "fail": many[FAIL], "info": many[INFO]})


class Events(NamedTuple):
    """Some events in their order. `info` is as `line_kernels` has it; the other columns are those of `Columns`."""

    index: Array
    time_ns: Array
    process: Array
    info: Array
    f: Array
    key: Array
    node: Array
    role: Array
    mode: Array
    error: Array
    old: Array
    new: Array

    @property
    def is_other(self) -> Array:
        """Whether the value is OTHER, by event."""
        return self.info >> 2 & 3 == OTHER


class Pairing:
    """Operations of events that come some at a time: open operations are carried on."""

    def __init__(self, most: int) -> None:
        """`most`: events at the most. Room that no operation fills is never touched, and so takes no memory."""
        self._most = most
        self._rooms = Rooms(most)
        self._numbers = self._rooms.empty((6, most), numpy.int64)
        self._codes: Array = self._rooms.empty((5, most), numpy.int16)
        self._bits = self._rooms.empty((4, most), numpy.int8)
        self._process, self._key = (self._rooms.empty(most, numpy.int32) for _ in range(2))
        self._running = numpy.zeros(1 << 12, dtype=numpy.int64)
        self._count = 0
        self.untold: Array = numpy.zeros(0, dtype=numpy.int64)

    def take(self, events: Events, words: int) -> bool:
        """The next events, with codes of so many words; False if they do not add up."""
        if words > WORDS_MAX and self._codes.dtype == numpy.int16:
            self._widen()
        if not self._made_places(events.process):
            return False
        count = load(pairing_kernels).pair_columns(
            events,
            self._running,
            self._count,
            self._numbers,
            self._codes,
            self._bits,
            self._process,
            self._key,
        )
        self._count = max(count, 0)
        return bool(count >= 0)

    def columns(self, words: Sequence[str | None]) -> Columns | None:
        """All operations. None if an answer has another value than was asked for (`operation.answers`).

        For the operations at `untold`, only their lines can answer that.
        """
        invoke, complete, invoke_ns, complete_ns, old, new = self._numbers[:, : self._count]
        f, node, role, mode, error = self._codes[:, : self._count]
        type_, kind, is_final, answer = self._bits[:, : self._count]
        asked = numpy.array([word in ASKED or word == "txn" for word in words])
        if ((answer == pairing_kernels.CHANGED) & asked[f]).any():
            return None
        is_longer = (answer == pairing_kernels.TRIMMED) & numpy.array([word != "cas" for word in words])[f]
        self.untold = numpy.flatnonzero(((answer == pairing_kernels.UNTOLD) | is_longer) & asked[f])
        return Columns(
            invoke=invoke, complete=complete, invoke_ns=invoke_ns, complete_ns=complete_ns,
            process=self._process[: self._count], type=type_, f=f, key=self._key[: self._count], node=node, role=role,
            mode=mode, error=error, is_final=is_final.view(numpy.bool_), kind=kind, old=old, new=new, words=words,
        )  # fmt: skip

    def _widen(self) -> None:
        wider = self._rooms.empty((5, self._most), numpy.int32)
        wider[:, : self._count] = self._codes[:, : self._count]
        self._codes = wider

    def _made_places(self, process: Array) -> bool:
        """Whether the numbers of processes are small enough to have a place each; they have it then."""
        if not len(process):
            return True
        last = int(process.max())
        if process.min() < 0 or last > min(4 * self._most + 1_000_000, PROCESS_MAX):
            return False
        if last >= len(self._running):
            wider = numpy.zeros(1 << last.bit_length(), dtype=numpy.int64)
            wider[: len(self._running)] = self._running
            self._running = wider
        return True


def grouped(key: Array, keys: int) -> tuple[Array, Array]:
    """Rows in order of their keys, and the bounds of each key's rows in that order."""
    order, bounds = numpy.empty(len(key), dtype=numpy.int64), numpy.zeros(keys + 2, dtype=numpy.int64)
    load(pairing_kernels, len(key)).group(key, bounds, order)
    return order, bounds[:-1]


def of_operations(operations: Sequence[Operation]) -> Columns:
    """Columns of operations in order of invocation. Raises HistoryError of a time or a process beyond 64 bits."""
    invoke_ns, complete_ns, process = (
        _numbers_of(operations, name) for name in ("invoke_ns", "complete_ns", "process")
    )
    kind, old, new = _values([operation.value for operation in operations])
    ends = [operation.complete_index for operation in operations]
    words: dict[str | None, int] = {None: 0}
    f, key, node, role, mode, error, _ = (
        _coded([getattr(operation, name) for operation in operations], words)
        for name in ("f", "key", "node", "role", "mode", "error", "wait")
    )
    final = _coded([operation.phase for operation in operations], {"load": 0, "final": 1})
    return Columns(
        invoke=numpy.array([operation.invoke_index for operation in operations], dtype=numpy.int64),
        complete=numpy.array([-1 if end is None else end for end in ends], dtype=numpy.int64),
        invoke_ns=invoke_ns, complete_ns=complete_ns, process=process,
        type=_coded([operation.type for operation in operations], {word: at for at, word in enumerate(TYPES)}),
        f=f, key=key, node=node, role=role, mode=mode, error=error, is_final=final == 1, kind=kind, old=old, new=new,
        words=tuple(words),
    )  # fmt: skip


def operations_at(columns: Columns, places: Array) -> list[Operation]:
    """Objects of the operations at these places, as far as columns know them: without `wait` and `transaction`, and
    with None for a value that is neither a number nor two."""
    words, at = columns.words, columns.at(places)
    return [
        Operation(
            type=_OUTCOMES[type_], process=process, f=words[f], key=words[key],
            value=[_number(old), _number(new)] if kind == PAIR else _number(new),
            invoke_index=invoke, invoke_ns=invoke_ns, complete_index=None if complete < 0 else complete,
            complete_ns=None if complete < 0 else complete_ns, node=words[node], role=words[role], mode=words[mode],
            error=words[error], phase="final" if is_final else "load",
        )
        for invoke, complete, invoke_ns, complete_ns, process, type_, f, key, node, role, mode, error, is_final,
            kind, old, new in zip(
            *(getattr(at, field.name).tolist() for field in fields(at) if field.name != "words"), strict=True
        )
    ]  # fmt: skip


def _number(code: int) -> int | None:
    return None if code == ABSENT else code


def _numbers_of(operations: Sequence[Operation], name: str) -> Array:
    """One of their numbers; -1 for None."""
    numbers = [getattr(operation, name) for operation in operations]
    try:
        return numpy.array([-1 if number is None else number for number in numbers], dtype=numpy.int64)
    except OverflowError as error:
        odd = next(at for at, number in enumerate(numbers) if number is not None and abs(number) >= 1 << 63)
        raise HistoryError(
            expected=f"a {name} that 64 bits hold",
            came=f"{numbers[odd]} of the operation that event {operations[odd].invoke_index} begins",
            attempt="count times in nanoseconds since the run began, and number the clients from 0 on",
        ) from error


def _coded(column: list[Any], words: dict[Any, int]) -> Array:
    """A number for each word; new ones are noted."""
    count = len(column)
    if count and column.count(column[0]) == count:
        return numpy.full(count, words.setdefault(column[0], len(words)), dtype=numpy.int32)
    for word in dict.fromkeys(column):
        words.setdefault(word, len(words))
    return numpy.fromiter(map(words.__getitem__, column), dtype=numpy.int32, count=count)


def _values(values: list[Any]) -> tuple[Array, Array, Array]:
    """(kind, old, new) of values as Python has them."""
    count = len(values)
    kind, old = numpy.zeros(count, dtype=numpy.int8), numpy.full(count, ABSENT, dtype=numpy.int64)
    plain: list[int] = []
    for place, value in enumerate(values):
        if value is None:
            plain.append(ABSENT)
        elif _is_plain(value):
            plain.append(value)
        elif type(value) in (list, tuple) and len(value) == 2 and all(map(_is_plain, value)):
            kind[place], old[place] = PAIR, ABSENT if value[0] is None else value[0]
            plain.append(ABSENT if value[1] is None else value[1])
        else:
            kind[place] = OTHER
            plain.append(ABSENT)
    return kind, old, numpy.array(plain, dtype=numpy.int64)


def _is_plain(value: Any) -> bool:
    return value is None or (type(value) is int and -VALUES_MAX <= value <= VALUES_MAX)
