"""The evaluation of steps on values, in order: for clients of stores that can compare and write, but not compute.

Such a client reads the keys of a transaction, evaluates its steps here, and writes what changed if nothing that it
read has changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.clients.operations.outcome import IMPOSSIBLE, Completion, Mismatch
from harness.clients.operations.steps import (
    Add,
    Append,
    Cas,
    Delete,
    Insert,
    Key,
    Read,
    Scan,
    Step,
    Take,
    Write,
)

ILLEGAL, DUPLICATE = IMPOSSIBLE
Place = tuple[str, Key]
"""Space and key."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The result of each step, and the values that are to be written; None: the key is to be deleted."""

    results: Sequence[object]
    changed: Mapping[Place, object]


def places_of(steps: Sequence[Step]) -> tuple[Place, ...]:
    """The keys that the steps read or write, each once. Scans are skipped, because they name no single key."""
    return tuple(dict.fromkeys((step.space, step.key) for step in steps if not isinstance(step, Scan)))


def evaluate(
    steps: Sequence[Step], there: Mapping[Place, object], role: str | None = None
) -> Evaluated | Mismatch | Completion:
    """Evaluate the steps. `there`: the values of `places_of(steps)`, None for a place without a value."""
    now, results = dict(there), list[object]()
    for number, step in enumerate(steps):
        assert not isinstance(step, Scan), "what a range holds is not evaluated here"
        place = (step.space, step.key)
        old = now[place]
        result: object = True
        match step:
            case Read():
                result = old
            case Insert(value=new):
                if old is not None:
                    return Completion("fail", None, DUPLICATE, role)
                now[place] = new
            case Write(value=new):
                now[place] = new
            case Delete():
                result = old is not None
                now[place] = None
            case Cas(old=wanted, new=new):
                if _differ(old, wanted):
                    return Mismatch(number, old, role)
                now[place] = new
            case Append() | Take():
                if not isinstance(old, list | tuple | None):
                    return Completion("fail", None, ILLEGAL, role)
                elements = old or ()
                if isinstance(step, Append):
                    now[place] = [*elements, step.element]
                else:
                    result = elements[0] if elements else None
                    now[place] = list(elements[1:]) if elements else old
            case Add(amount=amount, least=least):
                total = 0 if old is None else old
                if type(amount) is not int or type(total) is not int:
                    return Completion("fail", None, ILLEGAL, role)
                result = total = total + amount
                if least is not None and total < least:
                    return Mismatch(number, total - amount, role)
                now[place] = total
        results.append(result)
    return Evaluated(results, {place: value for place, value in now.items() if _differ(value, there[place])})


def _differ(one: object, other: object) -> bool:
    """To Python 1, 1.0 and True are equal."""
    return one != other or type(one) is not type(other)
