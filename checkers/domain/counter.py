"""Counter: every read lies between what surely was added before it and what may have been added by its end.

| f | value |
|---|---|
| add | by how much, less than zero too; a key names the counter if there are several |
| read | ok: the sum; null is 0, as nobody has added anything yet |

An addition that was answered before a read was invoked counts. One that was invoked before the read ended may count,
also one of unknown outcome. One that surely failed does not count. So the least sum takes the positive additions that
surely count and the negative ones that may count; the greatest sum takes the reverse. Rule: out-of-bounds.

Cost: n log n. Cannot see: wrong reads inside the bounds, which are as wide as additions are concurrent or uncertain
(the linearizable model `counter` is exact). With `final_only` only reads of phase "final" are judged: the promise of a
counter that is only eventually right. Where nodes need not be equal in the end, `gone_everywhere` gives
`checkers.replicas.kept` the sums that no node holds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from checkers.domain.effects import sights
from checkers.domain.proof import is_judged, verdict, while_active
from checkers.history.errors import ModelError
from checkers.history.history import History, by_key
from checkers.history.operation import Operation
from checkers.history.values import Number, exact, in_json, many, value_words
from checkers.verdict import Verdict, Witness, witness

NAME = "counter"
MODEL = "within the bounds of what was added"
GONE_MAX = 20
Reads = Callable[[str | None, str | None], bool]


def check(
    history: History,
    *,
    initial: Any = None,
    final_only: bool = False,
    reads: Reads = lambda role, mode: role != "replica" or mode == "linearizable",
) -> Verdict:
    """Whether every read is within its bounds. `reads(role, mode)`: which are judged; those of replicas may be stale.

    `initial`: the first sum; None: what the history says, mostly 0.

    `details`: reads, width_max (the widest bounds). Raises ModelError for a value that is no number.
    """
    witnesses: list[Witness] = []
    widths: list[Number] = []
    start = history.start if initial is None else history.starting_at(initial).start
    for key, operations in by_key(history.select(f=("add", "read"))).items():
        adds = [add for add in operations if add.f == "add" and add.type != "fail"]
        bounds, answered = _Bounds(adds, _first(start.of(key))), _answered(adds)
        for read in operations:
            is_asked = reads(read.role, read.mode) and (read.phase == "final" or not final_only)
            if read.f != "read" or read.type != "ok" or not is_judged(read) or not is_asked:
                continue
            least, greatest = bounds.at(read)
            widths.append(greatest - least)
            witnesses += _outside(history, key, read, least, greatest, answered)
    details: dict[str, Any] = {"reads": len(widths), "width_max": in_json(max(widths, default=0))}
    valid = f"all reads are within the bounds of what was added ({many(len(widths), 'read')})"
    return verdict(NAME, MODEL, witnesses, details, judged=len(widths), valid=valid)


def gone_everywhere(history: History, dumps: Sequence[Operation]) -> Iterator[Witness]:
    """For `kept`: a sum that no node's final dump holds, with any outcome of the unknown additions.

    A node that holds no sum of a key has the initial one, zero: a key without additions may be on no node.
    """
    held = [{sight.cell: sight.values[0] for sight in sights(dump) if not sight.elements} for dump in dumps]
    for key, adds in by_key(history.select(f="add")).items():
        bounds = _Bounds([add for add in adds if add.type != "fail"], 0)
        outside = []
        for dump, sums in zip(dumps, held, strict=True):
            least, greatest = bounds.at(dump)
            value = 0 if sums.get(key) is None else exact(sums[key])
            if value is not None and not least <= value <= greatest:
                outside.append((dump, value, least, greatest))
        if len(outside) == len(dumps):
            yield _gone(history, key, adds, outside)


def _gone(
    history: History,
    key: str | None,
    adds: Sequence[Operation],
    outside: Sequence[tuple[Operation, Number, Number, Number]],
) -> Witness:
    dump, value, least, greatest = outside[0]
    held = ", ".join(f"{value_words(value)} at {dump.node}" for dump, value, _, _ in outside)
    expected = (
        value_words(least)
        if least == greatest
        else f"something from {value_words(least)} to {value_words(greatest)}"
    )
    without = _as_if_without(value - (least if value < least else greatest), dump, _answered(adds))
    last = [entry for entry in adds if entry.type == "ok" and entry.precedes(dump)][-1:]
    summary = f"no node held what was acknowledged of {key} at the end: {held}, instead of {expected}"
    return witness(
        "lost-sum",
        summary,
        [*(without or last), *(entry[0] for entry in outside)],
        key=key,
        explanation=while_active(history, without[0]) if without else (),
    )


def _first(value: Any) -> Number:
    number = 0 if value is None else exact(value)
    if number is None:
        raise ModelError(expected="a number as the start value", came=value_words(value, 60), index=None)
    return number


class _Bounds:
    """Sums of additions, by the event from which they may count, or surely count."""

    def __init__(self, adds: Sequence[Operation], initial: Number) -> None:
        self._initial = initial
        answered = [add for add in adds if add.type == "ok"]
        self._asked = _Sums([(add.invoke_index, amount_of(add)) for add in adds])
        self._done = _Sums([(add.complete_index or 0, amount_of(add)) for add in answered])

    def at(self, read: Operation) -> tuple[Number, Number]:
        """The least and the greatest sum that the read may show."""
        # A write surely counts if it was over before the read was asked; it may count if it was asked before the read
        # ended. Of the latter the least sum has only the negative ones, the greatest only the positive ones.
        before = self._done.until(read.invoke_index)
        by_end = self._asked.until(read.complete_index or 0)
        return self._initial + before[1] + by_end[0], self._initial + by_end[1] + before[0]


class _Sums:
    """Prefix sums of the negative and of the positive amounts, by event."""

    def __init__(self, amounts: list[tuple[int, Number]]) -> None:
        amounts.sort()
        self._events = [event for event, _ in amounts]
        self._negative: list[Number] = [0, *accumulate(min(amount, 0) for _, amount in amounts)]
        self._positive: list[Number] = [0, *accumulate(max(amount, 0) for _, amount in amounts)]

    def until(self, event: int) -> tuple[Number, Number]:
        """(negative, positive) of all before that event."""
        place = bisect_left(self._events, event)
        return self._negative[place], self._positive[place]


def amount_of(operation: Operation) -> Number:
    """What an addition adds, or the sum that a read shows: 0 if that is null. Raises ModelError for no number."""
    amount = 0 if operation.f == "read" and operation.value is None else exact(operation.value)
    if amount is not None:
        return amount
    raise ModelError(expected="a number", came=value_words(operation.value, 60), index=operation.invoke_index)


def _outside(
    history: History,
    key: str | None,
    read: Operation,
    least: Number,
    greatest: Number,
    answered: Sequence[Operation],
) -> Iterator[Witness]:
    value = amount_of(read)
    if least <= value <= greatest:
        return
    counter = f" of {key}" if key is not None else ""
    returned = "nothing" if read.value is None else value_words(value)
    summary = f"the read{counter} by process {read.process} returned {returned}, " + (
        f"instead of {value_words(least)}"
        if least == greatest
        else f"outside of {value_words(least)} … {value_words(greatest)}"
    )
    without = _as_if_without(value - (least if value < least else greatest), read, answered)
    plural = "s" if len(without) > 1 else ""
    sentences = (
        *(
            (f"It is as if {len(without)} addition{plural} that had been acknowledged before were gone.",)
            if without
            else ()
        ),
        f"What had been added before the read was asked makes at least {value_words(least)}.",
        f"What was asked to be added before it ended makes at most {value_words(greatest)}.",
        *while_active(history, read),
    )
    yield witness("out-of-bounds", summary, [*without, read], key=key, node=read.node, explanation=sentences)


def _completed(add: Operation) -> int:
    return add.complete_index or 0


def _answered(adds: Iterable[Operation]) -> list[Operation]:
    """The acknowledged ones, in the order of their answers."""
    return sorted((add for add in adds if add.type == "ok"), key=_completed)


def _as_if_without(difference: Number, read: Operation, answered: Sequence[Operation]) -> Sequence[Operation]:
    """Successive additions that were `answered` before the read and make the difference if left out; () if none do."""
    before = bisect_left(answered, read.invoke_index, key=_completed)
    for last in range(before, max(before - GONE_MAX, 0), -1):
        total: Number = 0
        for first in range(last - 1, max(last - GONE_MAX, 0) - 1, -1):
            total -= amount_of(answered[first])
            if total == difference:
                return answered[first:last]
    return ()
