"""The longest orders of a witness of linearizability, to be stepped through, and the values its reads could return.

The verdict's proof names the operations of the witness and the write that fixed the value before them. Possible values
of a read need all writes on the key: these come from history.jsonl. Both searches have limits; over a limit the page
says "not computed".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from checkers.history import HistoryError, Operation
from checkers.history.errors import ModelError
from checkers.history.start import Start
from checkers.history.values import Composite
from checkers.linearizable.models import Model, Register, State
from checkers.linearizable.partial import Partial, longest_orders, possible_values
from checkers.linearizable.search import Call
from checkers.linearizable.table import MODELS
from harness.judge.causes import ranked
from harness.pages.json_door import Json, as_list, as_mapping, as_mappings, as_text, as_whole, clipped
from harness.pages.material import WITNESSES_DRAWN, Material, witness_indexes
from harness.pages.operation_words import operation_label
from harness.pages.run_columns import INFO, operations_at

WITNESSES_MAX = 3
ORDERS_MAX = 4
OPERATIONS_MAX = 24
KEY_OPERATIONS_MAX = 5_000


@dataclass(frozen=True, slots=True)
class Step:
    index: int
    words: str
    state: str


@dataclass(frozen=True, slots=True)
class Order:
    """`number` is its place among all orders of the page; `then` says why no further operation fits.

    `refused`: the operations that real time would allow next, by the events of their invocations.
    """

    number: int
    steps: tuple[Step, ...]
    then: str
    refused: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Possible:
    """A read, what it returned, and in words what it could have returned."""

    index: int
    words: str
    could: str


@dataclass(frozen=True, slots=True)
class OrdersOfWitness:
    title: str
    start: str
    operations: int
    orders: tuple[Order, ...]
    left_out: int
    possible: tuple[Possible, ...]
    prefix: str
    """How far the record of the key is linearizable, in a sentence; "": the verdict does not say."""


@dataclass(frozen=True, slots=True)
class _Subject:
    operation: Operation
    call: Call


def orders_of_witnesses(material: Material) -> tuple[OrdersOfWitness, ...]:
    """The orders of the first witnesses whose proof is about orders; empty without such a proof."""
    views: list[OrdersOfWitness] = []
    for sighted in ranked(material.verdict)[:WITNESSES_DRAWN]:
        if len(views) == WITNESSES_MAX:
            break
        try:
            number = sum(len(earlier.orders) for earlier in views)
            view = _view(material, as_mapping(sighted.check.get("details")), sighted.witness, number)
        except (ModelError, HistoryError, AssertionError, TypeError, ValueError, LookupError, RecursionError):
            continue  # a verdict or a history that no checker of this version wrote
        if view is not None:
            views.append(view)
    return tuple(views)


def for_the_canvas(orders: Sequence[OrdersOfWitness]) -> list[dict[str, Any]]:
    return [
        {
            "operations": [step.index for step in order.steps],
            "states": [step.state for step in order.steps],
            "then": order.then,
            "refused": list(order.refused),
        }
        for witness in orders
        for order in witness.orders
    ]


def _view(material: Material, details: Json, witness: Json, number: int) -> OrdersOfWitness | None:
    proof = _proof(details, witness)
    if proof is None:
        return None
    model: Model = MODELS[details["model"]](
        failed_cas_observes=bool(details.get("failed_cas_observes", True))
    )
    if "initial" in details:
        start = Start.from_json(details["initial"])
        model = model.beginning({key: start.of(key) for key in proof["keys"]})
    named = [
        material.operations.get(index) for index in map(as_whole, proof["operations"]) if index is not None
    ]
    operations = sorted({each.invoke_index: each for each in named if each is not None}.items())
    place, until = as_whole(proof.get("after")), as_whole(proof.get("until"))
    after = None if place is None else material.operations.get(place)
    subjects = _subjects(model, (each for _, each in operations), until)
    if len(subjects) != len(proof["operations"]) or (after is None) != (proof.get("after") is None):
        return None
    first = model.initial if after is None else _left_by(model, after)
    title = as_text(witness.get("summary"), 300)
    prefix = _prefix(material, details, proof)
    begun = _text(model.shown(first))
    if len(subjects) > OPERATIONS_MAX:
        return OrdersOfWitness(title, begun, len(subjects), (), 0, (), prefix)
    partial = longest_orders(model, [each.call for each in subjects], first) or ()
    orders = tuple(
        _order(number + place, each, model, subjects, first)
        for place, each in enumerate(partial[:ORDERS_MAX])
    )
    possible = (
        _possible(material, model, subjects, first, after, until) if isinstance(model, Register) else ()
    )
    return OrdersOfWitness(
        title, begun, len(subjects), orders, len(partial) - len(orders), tuple(possible), prefix
    )


def _prefix(material: Material, details: Json, proof: Json) -> str:
    """How far the record of the proof's keys is linearizable from its beginning, in sentences."""
    for prefix in as_mappings(details.get("longest_prefix")):
        if prefix.get("keys") == proof.get("keys"):
            until, count = as_whole(prefix.get("until")), as_whole(prefix.get("operations"))
            blocked = material.operations.get(as_whole(next(iter(as_list(prefix.get("blocked"))), None)) or 0)
            by = "" if blocked is None else f": {_words(blocked)}"
            many = f"{count} operation{'s were' if count != 1 else ' was'} answered before"
            return (
                f"The record is linearizable up to event {until}; {many}. The answer at that event leaves no "
                f"order{by}."
            )
    return ""


def _proof(details: Json, witness: Json) -> Json | None:
    """The proof whose operations the witness names."""
    events = set(witness_indexes(witness))
    for proof in as_mappings(details.get("proofs")):
        operations = as_list(proof.get("operations"))
        if (
            proof.get("kind") in ("witness", "zones", "element")
            and operations
            and events.issuperset(operations)
        ):
            return proof
    return None


def _subjects(model: Model, operations: Iterable[Operation], until: int | None) -> list[_Subject]:
    """An operation that completed after `until` counts as still running, as in the proof."""
    subjects = []
    for operation in operations:
        action = model.action(operation)
        returned = operation.returned_index
        if returned is not None and until is not None and returned > until:
            returned = None
        if action is not None:
            subjects.append(_Subject(operation, Call(action, operation.invoke_index, returned)))
    return subjects


def _left_by(model: Model, operation: Operation) -> State:
    action = model.action(operation)
    assert action is not None
    return action.values[-1]


def _order(number: int, partial: Partial, model: Model, subjects: Sequence[_Subject], start: State) -> Order:
    steps = tuple(
        Step(
            subjects[place].operation.invoke_index,
            _words(subjects[place].operation),
            _text(model.shown(state)),
        )
        for place, state in zip(partial.order, partial.states, strict=True)
    )
    value = _text(model.shown(partial.states[-1] if partial.states else start))
    refused = [_words(subjects[place].operation) for place in partial.refused[:4]]
    if not refused:
        return Order(number, steps, "Every operation has its place.")
    others = f" Nor does any of {len(partial.refused) - 4} more." if len(partial.refused) > 4 else ""
    then = f"Next could only be: {'; '.join(refused)}. That does not fit the value {value}.{others}"
    places = tuple(subjects[place].operation.invoke_index for place in partial.refused)
    return Order(number, steps, then, places)


def _possible(
    material: Material,
    model: Register,
    subjects: Sequence[_Subject],
    start: State,
    after: Operation | None,
    until: int | None,
) -> Iterable[Possible]:
    """One for each read of the witness. The last answer to complete has no place, so it binds no other read."""
    reads = [
        subject
        for subject in subjects
        if subject.call.action.word == "read" and subject.call.complete is not None
    ]
    failing = max(subjects, key=lambda subject: subject.call.complete or -1)
    writes = _writes(material, model, failing.operation.key, after, until)
    for subject in reads:
        index, words = subject.operation.invoke_index, _words(subject.operation)
        others = [other for other in reads if other is not failing or other is subject]
        if writes is None or subject.operation.f != "read":
            yield Possible(index, words, "not computed: too many operations on the key")
            continue
        calls = [*writes, *(other.call for other in others)]
        values = possible_values(model, calls, len(writes) + others.index(subject), start)
        if values is None:
            yield Possible(index, words, "not computed: the search met its limit")
        elif not values:
            yield Possible(index, words, "nothing: the other answers have no order either")
        else:
            yield Possible(index, words, " or ".join(_text(value) for value in values))


def _writes(
    material: Material, model: Register, key: str | None, after: Operation | None, until: int | None
) -> list[Call] | None:
    """The calls that may change the key, invoked before the proof ends and not over before it begins.

    None if there are more than KEY_OPERATIONS_MAX.
    """
    columns = material.columns
    chosen = columns.of_keys([key]) if key is not None else columns.key < 0
    chosen &= columns.index <= (until if until is not None else numpy.iinfo(numpy.int64).max)
    if after is not None and after.complete_index is not None:
        chosen &= (columns.index > after.complete_index) | (columns.outcome == INFO)
    rows = numpy.flatnonzero(chosen & columns.writes)
    if len(rows) > KEY_OPERATIONS_MAX:
        return None
    subjects = _subjects(
        model, (each for _, each in operations_at(material.folder / "history.jsonl", columns, rows)), until
    )
    changing = [each.call for each in subjects if each.call.action.kind != "observe"]
    return sorted(changing, key=lambda call: call.invoke)


def _words(operation: Operation) -> str:
    return f"process {operation.process}: {operation_label(operation, operation.key)}"


def _text(state: State) -> str:
    """A state in words: "∅" for no value, else as JSON."""
    if state is None:
        return "∅"
    if isinstance(state, Composite):
        return clipped(repr(state), 120)
    return as_text(state, 120)
