"""Session guarantees of registers, key by key, where every value is written once.

Terry et al., *Session Guarantees for Weakly Consistent Replicated Data*, PDIS 1994: the writes of a key have one order
(null first; what a cas wrote after what it replaced), and in it

| guarantee | for the operations of each process |
|---|---|
| monotonic-reads | no read is older than an earlier read |
| read-your-writes | no read is older than an earlier own write |
| monotonic-writes | the writes keep their order; and monotonic-reads, because readers show it |
| writes-follow-reads | every write is newer than what was read before it; and monotonic-reads |

Coherence is sequential consistency of each key by itself (Lamport 1979): one order of the operations on it keeps that
of every process and explains every answer. A refused cas is not taken as a look at the value; a write without answer
counts if a read showed it. Every order is tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from checkers.history import History
from tests.checkers.brute.linear import has_order
from tests.checkers.brute.objects import Call, calls_of

GUARANTEES = ("coherence", "monotonic-reads", "monotonic-writes", "read-your-writes", "writes-follow-reads")


def holds(guarantee: str, history: History) -> bool | None:
    """None where the definition says nothing: a read of what nobody wrote, or readers that go back."""
    calls = [call for call in calls_of(history) if call.f != "mismatch"]
    answers = [
        _holds(guarantee, [c for c in calls if c.key == key]) for key in sorted({str(c.key) for c in calls})
    ]
    if False in answers:
        return False
    return None if None in answers else True


def _holds(guarantee: str, calls: Sequence[Call]) -> bool | None:
    if guarantee == "coherence":
        return has_order("cas-register", calls, _same_process_before)
    steps = list(_steps(calls))
    written = [step.wrote for step in steps if step.wrote is not None]
    if any(step.read is not None and step.read not in written for step in steps):
        return None
    orders = [order for order in permutations(written) if _cas_goes_forward(order, steps)]
    if guarantee in ("monotonic-writes", "writes-follow-reads"):
        orders = [order for order in orders if _keeps("monotonic-reads", order, steps)]
        if not orders:
            return None
    return any(_keeps(guarantee, order, steps) for order in orders)


def _same_process_before(first: Call, second: Call) -> bool:
    return first.process == second.process and first.precedes(second)


@dataclass(frozen=True, slots=True)
class _Step:
    """What a call read and wrote. `looked`: whether it read at all; what it read may be null."""

    call: Call
    looked: bool
    read: Any
    wrote: Any


def _steps(calls: Sequence[Call]) -> Iterator[_Step]:
    shown = [call.value for call in calls if call.f == "read" and call.answered]
    shown += [call.value[0] for call in calls if call.f == "cas" and call.answered]
    for call in calls:
        if call.f == "read":
            if call.answered:
                yield _Step(call, True, call.value, None)
        else:
            old, new = call.value if call.f == "cas" else (None, call.value)
            if call.answered or new in shown:
                yield _Step(call, call.f == "cas", old, new)


def _at(order: Sequence[Any], value: Any) -> int:
    return -1 if value is None else order.index(value)


def _cas_goes_forward(order: Sequence[Any], steps: Sequence[_Step]) -> bool:
    return all(
        _at(order, step.read) < _at(order, step.wrote)
        for step in steps
        if step.looked and step.wrote is not None
    )


def _keeps(guarantee: str, order: Sequence[Any], steps: Sequence[_Step]) -> bool:
    for first in steps:
        for second in steps:
            if not _same_process_before(first.call, second.call):
                continue
            read, wrote = _at(order, first.read), _at(order, first.wrote)
            then_read, then_wrote = _at(order, second.read), _at(order, second.wrote)
            both_wrote = first.wrote is not None and second.wrote is not None
            broken = {
                "monotonic-reads": first.looked and second.looked and then_read < read,
                "read-your-writes": first.wrote is not None and second.looked and then_read < wrote,
                "monotonic-writes": both_wrote and then_wrote < wrote,
                "writes-follow-reads": first.looked and second.wrote is not None and then_wrote <= read,
            }
            if broken[guarantee]:
                return False
    return True
