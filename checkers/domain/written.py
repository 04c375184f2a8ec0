"""Written: a read shows only what a client asked to write. The least that any store promises.

| model | an answer is wrong if |
|---|---|
| register, cas-register, multi-register | it shows a value that no client asked to write, or to set by a cas |
| list | it has an element that no client asked to append, or of which every append failed |
| rw-register, append | it shows a value, or has an element, that no transaction asked to write |
| kv | it is no value of a put (or the empty text) with values of appends behind it |
| counter | it is no sum of some of the additions that did not fail |

When the client asked does not matter: a read from the future breaks real time, which not every promise includes.

The object's value before the first operation (`History.start`) counts as written. Every read is judged, dirty ones
too, because every promise includes this one. Rule: never-written. Other checkers have a rule like it for their models
(`set_full`, `queues`, `transactional`); `rollback_honesty` has the one for registers whose write was refused.

Cost: n log n; of texts, their length times the number of different lengths of appends; of counters, adds times sums.
Cannot see: a wrong sum among more than SUMS_MAX possible ones; an append that a text or list shows twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkers.domain.counter import amount_of
from checkers.domain.proof import verdict
from checkers.history.errors import ModelError
from checkers.history.history import History, by_key
from checkers.history.operation import READS, Operation, both, micros
from checkers.history.value_rows import NOBODY, Numbers
from checkers.history.values import Number, Value, exact, identity, value_words
from checkers.verdict import Verdict, Witness, witness

NAME = "written"
MODEL = "what is read was written"
SUMS_MAX = 10_000

Key = str | None


@dataclass(slots=True)
class _Outcome:
    """The witnesses, and how many answers were judged."""

    reads: int = 0
    witnesses: list[Witness] = field(default_factory=list)


def check(history: History, *, model: str) -> Verdict:
    """Whether every answer of the operations of `model` (see MODELS) shows what was written.

    `details`: reads. Raises KeyError for a model that is not in MODELS, ModelError for values that it cannot have.
    """
    outcome = MODELS[model](history)
    valid = f"{outcome.reads} answers showed only what some client had asked for"
    return verdict(
        NAME, MODEL, outcome.witnesses, {"reads": outcome.reads}, judged=outcome.reads, valid=valid
    )


NOBODY_ASKED = ", which no client ever asked to write"
ALL_FAILED = ", although every write of it surely failed"


def _wrong(read: Operation, key: Key, words: str, why: str) -> Witness:
    where = f" at {read.node}" if read.node else ""
    summary = f"process {read.process} read {words}{where}{why}"
    return witness("never-written", summary, [read], key=key, node=read.node)


def _answered(operations: Sequence[Operation]) -> list[Operation]:
    return [operation for operation in operations if operation.type == "ok"]


# ---- registers and lists: each value by itself

Values = Iterator[tuple[Key, Any]]
"""Of an operation: keys with values or elements that it would leave there, or that its answer showed."""


def _of_register(operation: Operation, answer: bool) -> Values:
    match operation.f, operation.value:
        case "write", value if not answer:
            yield operation.key, value
        case "read", value if answer:
            yield operation.key, value
        case "cas", _:
            old, new = both(operation)
            if answer or identity(old) != identity(new):
                yield operation.key, old if answer else new


def _of_registers(operation: Operation, answer: bool) -> Values:
    if operation.f != "txn":
        yield from _of_register(operation, answer)
        return
    for f, key, value in micros(operation):
        if f in (READS if answer else ("w", "write")):
            yield key, value


def _of_list(operation: Operation, answer: bool) -> Values:
    if answer:
        shown = operation.value or ()
        if not isinstance(shown, list | tuple):
            came = value_words(shown, 60)
            raise ModelError(expected="a list", came=came, index=operation.invoke_index)
        yield from ((operation.key, element) for element in shown)
    elif operation.f == "append":
        yield operation.key, operation.value


def _of_appends(operation: Operation, answer: bool) -> Values:
    for f, key, value in micros(operation):
        if not answer and f == "append":
            yield key, value
        elif answer and f in READS and isinstance(value, list | tuple):
            yield from ((key, element) for element in value)


def _start_of_register(value: Any) -> set[Value]:
    return {None, identity(value)}


def _start_of_list(value: Any) -> set[Value]:
    return {identity(element) for element in value or ()}


def _values(
    history: History,
    shows: Sequence[str],
    asks: Sequence[str],
    of: Callable[[Operation, bool], Values],
    start: Callable[[Any], set[Value]] = _start_of_register,
    *,
    may_have_failed: bool = True,
) -> _Outcome:
    """Of operations with these names. `of`: what an operation showed, or would write. `start`: the values before it.
    `may_have_failed`: what surely failed was asked for, all the same."""
    columns, numbers = history.columns, Numbers(history)
    is_register = start is _start_of_register
    answered = columns.places(shows, "ok", None, None)
    shown = numbers.rows(
        answered, lambda operation: of(operation, True), names=("read",) * is_register, pair="old"
    )
    changes = numbers.changing(columns.places(asks, None, None, None))
    asked = numbers.rows(changes, lambda operation: of(operation, False), names=("write",) * is_register)
    first, possible = numbers.first_askers(asked, shown)
    is_wrong = (first if may_have_failed else possible) == NOBODY
    wrong = numbers.but(shown.at(is_wrong), lambda key: start(history.start.of(key)))
    asked_first, _ = numbers.first_askers(asked, wrong)
    witnesses = [
        _wrong(
            read,
            numbers.key(key),
            value_words(numbers.value(value)),
            NOBODY_ASKED if asker == NOBODY else ALL_FAILED,
        )
        for read, key, value, asker in zip(
            history.at(wrong.place),
            wrong.key.tolist(),
            wrong.value.tolist(),
            asked_first.tolist(),
            strict=True,
        )
    ]
    return _Outcome(len(answered), witnesses)


# ---- texts


def _texts(history: History) -> _Outcome:
    outcome = _Outcome()
    for key, operations in by_key(history.select(f=("get", "put", "append"))).items():
        pieces = [operation for operation in operations if operation.f != "get" and operation.type != "fail"]
        starts = {
            str(history.start.of(key) or ""),
            *(_text(operation) for operation in pieces if operation.f == "put"),
        }
        appends = {_text(operation) for operation in pieces if operation.f == "append"}
        gets = [operation for operation in _answered(operations) if operation.f == "get"]
        outcome.reads += len(gets)
        for get in gets:
            text = _text(get)
            if not _is_made_of(text, starts, appends):
                why = ", and no puts and appends that may have happened make it"
                outcome.witnesses.append(_wrong(get, key, value_words(text), why))
    return outcome


def _text(operation: Operation) -> str:
    """The text that an operation writes or shows; of a get, null is the empty one. Raises ModelError for no text."""
    text = "" if operation.f == "get" and operation.value is None else operation.value
    if isinstance(text, str):
        return text
    raise ModelError(expected="a text", came=value_words(text, 60), index=operation.invoke_index)


def _is_made_of(text: str, starts: set[str], appends: set[str]) -> bool:
    """Whether the text is one of `starts` with any of `appends` behind it, each any number of times."""
    ends = {len(start) for start in starts if text.startswith(start)}
    lengths = sorted({len(piece) for piece in appends} - {0})
    for place in range(len(text)):
        if place in ends:
            ends.update(place + size for size in lengths if text[place : place + size] in appends)
    return len(text) in ends


# ---- sums


def _sums(history: History) -> _Outcome:
    outcome = _Outcome()
    for key, operations in by_key(history.select(f=("add", "read"))).items():
        sums = _Sums(exact(history.start.of(key)) or 0)
        for add in operations:
            if add.f == "add" and add.type != "fail":
                sums.add(amount_of(add))
        reads = [operation for operation in _answered(operations) if operation.f == "read"]
        outcome.reads += len(reads)
        for read in reads:
            shown = amount_of(read)
            if not sums.may_be(shown):
                why = ", and no additions that may have happened give it"
                outcome.witnesses.append(_wrong(read, key, value_words(shown), why))
    return outcome


class _Sums:
    """The sums of some of the additions; when there are too many to hold, the least and the greatest."""

    def __init__(self, first: Number) -> None:
        self.known: set[Number] = {first}
        self.least = self.greatest = first

    def add(self, amount: Number) -> None:
        self.least, self.greatest = self.least + min(amount, 0), self.greatest + max(amount, 0)
        if self.known:
            more = self.known | {total + amount for total in self.known}
            self.known = more if len(more) <= SUMS_MAX else set()

    def may_be(self, shown: Number) -> bool:
        return shown in self.known if self.known else self.least <= shown <= self.greatest


MODELS: dict[str, Callable[[History], _Outcome]] = {
    "register": lambda history: _values(history, ("read", "cas"), ("write", "cas"), _of_register),
    "cas-register": lambda history: _values(history, ("read", "cas"), ("write", "cas"), _of_register),
    "multi-register": lambda history: _values(history, ("read", "txn"), ("write", "txn"), _of_registers),
    "rw-register": lambda history: _values(history, ("read", "txn"), ("write", "txn"), _of_registers),
    "append": lambda history: _values(history, ("txn",), ("txn",), _of_appends, _start_of_list),
    "list": lambda history: _values(
        history, ("read",), ("append",), _of_list, _start_of_list, may_have_failed=False
    ),
    "kv": _texts,
    "counter": _sums,
}
"""By the names of `models.MODELS`."""
