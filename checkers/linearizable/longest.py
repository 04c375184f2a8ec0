"""The longest part of a key's record that is linearizable from its beginning, and the operations that end it.

The part is what a file would hold that ends there: an operation that gets its answer later is in progress, and may have
taken effect or not. If a record has an order, so has each of its beginnings. So the answer that leaves none is found by
bisection.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import structs

from checkers.history.operation import TAKES, Operation
from checkers.limits import OutOfTime
from checkers.linearizable import proofs
from checkers.linearizable.decide import decide
from checkers.linearizable.models import Model
from checkers.linearizable.search import Decision, Limits
from checkers.linearizable.shrinking import Subject

OPERATIONS_MAX = 10_000
"""Of a key; a longer record is not cut."""
ORDER_MAX = 1_000
"""Operations of an order that is kept."""
CONFIGURATIONS_MAX, STEPS_MAX = 20_000, 50_000_000
"""Of the search of one beginning: some tenths of a second."""
SHOWS = frozenset({"read", "get", *TAKES})
"""Operations whose values are answers."""

SubjectsOf = Callable[[Sequence[Operation]], Sequence[Subject]]


def longest_prefix(
    model: Model, operations: Sequence[Operation], subjects_of: SubjectsOf, limits: Limits
) -> dict[str, Any] | None:
    """Of operations on one key (or connected ones) that have no order.

    `until`: the event of the answer that leaves no order; `operations`: how many were answered before; `blocked`: the
    operation that got this answer, then those in progress beside it; `order`: of the operations before it, in which
    they took effect, of at most ORDER_MAX (null: more, or no limit left). Operations are named by the events of their
    invocations. None if they are more than OPERATIONS_MAX, or the limits did not suffice.
    """
    if len(operations) > OPERATIONS_MAX:
        return None

    few = Limits(min(limits.configurations, CONFIGURATIONS_MAX), min(limits.steps, STEPS_MAX))

    def decided(until: int) -> tuple[Decision, Sequence[Subject]]:
        subjects = subjects_of([known for each in operations if (known := _known(each, until)) is not None])
        decision = decide(model, [subject.call for subject in subjects], few)
        if not decision.is_decided:
            raise OutOfTime
        return decision, subjects

    answers = sorted(end for each in operations if (end := each.complete_index) is not None)
    try:
        place = bisect_left(answers, True, key=lambda end: decided(end + 1)[0].result == "no")
        if place == len(answers):
            return None
        until = answers[place]
        decision, subjects = decided(until)
    except OutOfTime:
        return None
    order = None
    if decision.result == "yes" and len(subjects) <= ORDER_MAX:
        order = proofs.names_in_order(model, subjects, decision)
    begun = [each for each in operations if each.invoke_index < until]
    beside = [each for each in begun if each.complete_index is None or each.complete_index > until]
    named = next(each for each in begun if each.complete_index == until)
    return {
        "until": until,
        "operations": sum((each.complete_index or until) < until for each in begun if each.type != "info"),
        "blocked": [each.invoke_index for each in (named, *beside)],
        "order": order,
    }


def _known(operation: Operation, until: int) -> Operation | None:
    """The operation as it was known just before an event."""
    if operation.invoke_index >= until:
        return None
    if operation.complete_index is None or operation.complete_index < until:
        return operation
    value = None if operation.f in SHOWS else operation.value
    return structs.replace(
        operation, type="info", value=value, error=None, complete_index=None, complete_ns=None
    )
