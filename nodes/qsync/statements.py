"""Statements of a transaction, and their effects on spaces.

A transaction is a list of statements, each a list:

| statement | result |
|---|---|
| `["get", space, key]` | the tuple, or nil |
| `["insert", space, tuple]` | the tuple; error 3 if the key exists |
| `["replace", space, tuple]` | the tuple |
| `["update", space, key, operations]` | the new tuple, or nil if there is none |
| `["upsert", space, tuple, operations]` | nil |
| `["delete", space, key]` | the tuple that was deleted, or nil |
| `["cas", space, key, old, new]` | true, or a mismatch: then nothing of the whole transaction happens |
| `["append", space, key, value]` | true; the list in the second field has the value at its end |
| `["take", space, key]` | the first element of that list, which is no longer there; nil if there is none |
| `["add", space, key, amount, least]` | the sum in the second field after adding; or a mismatch, if it were < least |
| `["scan", space, from, below]` | the tuples with from ≤ key < below, in key order; nil: no bound |

`space` is an id or a name; a key of several parts is a list. `cas` compares the second field of the tuple (nil if
there is no tuple), `append` and `add` begin with an empty list and 0, and `least` may be left out. These and `take`
replace a tuple as a whole, in a space with the first field as its key. `nodes.qsync.updates` defines operations.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from nodes.iproto.codes import Code
from nodes.iproto.messages import Type
from nodes.qsync.evaluation import Evaluation, Outcome
from nodes.qsync.keys import Order, Rejected, Truth, Tuple, exact_key, order_of_key
from nodes.qsync.spaces import Space
from nodes.steps import is_same

_WRITES = frozenset({"insert", "replace", "update", "upsert", "delete", "cas", "append", "take", "add"})
_OF_STRINGS = ("scalar", "string")


def run(evaluation: Evaluation, statements: Sequence[object]) -> Outcome:
    """Evaluate all statements, in order; raises Rejected if one cannot be done."""
    for number, statement in enumerate(statements):
        if not _run(evaluation, number, statement):
            break
    return evaluation.outcome


def _run(evaluation: Evaluation, number: int, statement: object) -> bool:
    """Evaluate one statement; False if the rest of the transaction is not evaluated."""
    results = evaluation.outcome.results
    match statement:
        case ["get", name, key]:
            space = evaluation.space(name)
            results.append(evaluation.read(space, _exact(space, key)))
        case ["scan", name, low, below]:
            results.append(_scan(evaluation, evaluation.space(name), low, below))
        case [("insert" | "replace" | "upsert") as verb, name, (list() | tuple()) as value, *rest]:
            return _put(evaluation, number, verb, evaluation.to_write(name), tuple(value), rest)
        case [str(verb), name, key, *rest] if verb in _WRITES:
            space = evaluation.to_write(name)
            return _write(evaluation, number, verb, space, _exact(space, key), rest)
        case _:
            raise _malformed(number, statement)
    return True


def _put(
    evaluation: Evaluation, number: int, verb: str, space: Space, value: Tuple, rest: Sequence[object]
) -> bool:
    match verb, rest:
        case "insert", []:
            return evaluation.insert(space, value)
        case "replace", []:
            return evaluation.replace(space, value)
        case "upsert", [operations]:
            return evaluation.upsert(space, value, operations)
    raise _malformed(number, (verb, *rest))


def _write(
    evaluation: Evaluation, number: int, verb: str, space: Space, key: Hashable, rest: Sequence[object]
) -> bool:
    match verb, rest:
        case "update", [operations]:
            return evaluation.update(space, key, operations)
        case "delete", []:
            evaluation.delete(space, key)
        case "cas", [old, new]:
            return _compare_and_set(evaluation, number, space, key, old, new)
        case "append", [value]:
            elements = _list(evaluation, number, space, key)
            _set(evaluation, space, key, (*elements, value), True)
        case "take", []:
            _take(evaluation, number, space, key)
        case "add", [int(amount), *least] if type(amount) is int:
            return _add(evaluation, number, space, key, amount, _least(number, least))
        case _:
            raise _malformed(number, (verb, *rest))
    return True


def _malformed(number: int, statement: object) -> Rejected:
    return Rejected(Code.ILLEGAL_PARAMS, f"statement {number}: {statement!r}"[:200])


def _set(evaluation: Evaluation, space: Space, key: Hashable, value: object, result: object) -> None:
    """Replace the tuple of a key that is its first field alone; its second field is the value."""
    if [part.field for part in space.primary_parts] != [0]:
        raise Rejected(
            Code.ILLEGAL_PARAMS, f"the key of space '{space.definition.name}' is not the first field"
        )
    made = (key.value if isinstance(key, Truth) else key, value)
    evaluation.put(space, space.key_of(made), made, Type.REPLACE)
    evaluation.outcome.results.append(result)


def _second(evaluation: Evaluation, space: Space, key: Hashable, otherwise: object) -> object:
    row = evaluation.read(space, key)
    return row[1] if row is not None and len(row) > 1 else otherwise


def _compare_and_set(
    evaluation: Evaluation, number: int, space: Space, key: Hashable, old: object, new: object
) -> bool:
    value = _second(evaluation, space, key, None)
    if is_same(value, old):
        _set(evaluation, space, key, new, True)
        return True
    evaluation.outcome.mismatch = (number, value)
    return False


def _list(evaluation: Evaluation, number: int, space: Space, key: Hashable) -> Tuple:
    """The list in the second field of a key's tuple."""
    elements = _second(evaluation, space, key, ())
    if not isinstance(elements, list | tuple):
        raise Rejected(Code.ILLEGAL_PARAMS, f"statement {number}: {elements!r} is no list"[:200])
    return tuple(elements)


def _take(evaluation: Evaluation, number: int, space: Space, key: Hashable) -> None:
    elements = _list(evaluation, number, space, key)
    if elements:
        _set(evaluation, space, key, elements[1:], elements[0])
    else:
        evaluation.outcome.results.append(None)


def _add(
    evaluation: Evaluation, number: int, space: Space, key: Hashable, amount: int, least: int | None
) -> bool:
    before = _second(evaluation, space, key, 0)
    if type(before) is not int:
        raise Rejected(Code.ILLEGAL_PARAMS, f"statement {number}: {before!r} is no whole number"[:200])
    total = before + amount
    if least is not None and total < least:
        evaluation.outcome.mismatch = (number, before)
        return False
    if not -(1 << 63) <= total < 1 << 64:
        raise Rejected(Code.ILLEGAL_PARAMS, f"statement {number}: the sum {total} does not fit 64 bits")
    _set(evaluation, space, key, total, total)
    return True


def _scan(evaluation: Evaluation, space: Space, low: object, below: object) -> tuple[Tuple, ...]:
    shown = space.source or space
    own = [key for number, key in evaluation.own if number == shown.definition.id]
    keys = dict.fromkeys((*shown.confirmed, *shown.prepared, *own))
    if type(low) is int and type(below) is int:  # most are plain numbers, and comparing those is quick
        keys = {key: None for key in keys if type(key) is not int or low <= key < below}
    first, end = (None if key is None else order_of_key(_exact(space, key)) for key in (low, below))
    within = [key for key in sorted(keys, key=order_of_key) if _is_within(order_of_key(key), first, end)]
    return tuple(row for key in within if (row := evaluation.read(space, key)) is not None)


def _is_within(place: Order, low: Order | None, below: Order | None) -> bool:
    return (low is None or low <= place) and (below is None or place < below)


def writes(statements: Sequence[object]) -> bool:
    """True if any statement may change something."""
    return any(
        isinstance(statement, list | tuple)
        and statement
        and type(statement[0]) is str
        and statement[0] in _WRITES
        for statement in statements
    )


def _exact(space: Space, key: object) -> Hashable:
    parts = space.primary_parts
    if type(key) is str and len(parts) == 1 and parts[0].type in _OF_STRINGS:
        return key
    return exact_key(key if isinstance(key, list | tuple) else (key,), parts)


def _least(number: int, rest: Sequence[object]) -> int | None:
    """The value that a sum may not fall below, if one is given."""
    match rest:
        case [] | [None]:
            return None
        case [int() as least] if type(least) is int:
            return least
    raise Rejected(Code.ILLEGAL_PARAMS, f"statement {number}: the least sum is {rest!r}"[:200])
