"""Queues: each element that is put in comes out once, and elements come out in the order in which they went in.

| f | value |
|---|---|
| enqueue | the element, put in once; a key names the queue if there are several |
| dequeue | ok: the element, null if the queue was empty; fail: nothing was taken |
| drain | ok: [element, …], taken one after the other until the queue was empty |

Only an acknowledged element can be lost, and only if the queue was surely emptied afterwards: by a drain invoked after
the element was in, or by a dequeue that then found it empty (null, or failed with "empty" where such a refusal observes
something); with `fifo` also if an element came out that was put in later. A dequeue of unknown outcome may have taken
one element, so as many missing elements are forgiven. A drain of unknown outcome may have taken all.

Rules: lost, duplicated, never-enqueued, enqueued-by-failure, before-its-enqueue (it came out before it was put in),
reordered (an element that surely went in first surely came out later, or later within one drain; not with `fifo`
false).

Cost: n log n. Cannot see: an answer "empty" that was wrong (the linearizable model `queue` can); the order of elements
put in twice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkers.domain.begun import with_first_elements
from checkers.domain.effects import sights
from checkers.domain.proof import shown, verdict, witness
from checkers.history.errors import ModelError
from checkers.history.history import History, by_key
from checkers.history.operation import Operation
from checkers.history.value_kernels import NEVER
from checkers.history.values import Value, identity, value_words
from checkers.verdict import Verdict, Witness

NAME = "queues"
GONE_MAX = 3
MODEL = "what went in comes out once, in order"


@dataclass(slots=True)
class Queue:
    """One queue: the operations that put in and took out each element, and those that may have emptied it."""

    enqueues: dict[Value, list[Operation]] = field(default_factory=dict)
    failed: dict[Value, Operation] = field(default_factory=dict)
    dequeues: dict[Value, list[Operation]] = field(default_factory=dict)
    emptied: list[Operation] = field(default_factory=list)
    unsure: int = 0
    unsure_drain: bool = False


def check(history: History, *, fifo: bool = True, failed_cas_observes: bool = True) -> Verdict:
    """Whether elements come out once and, if `fifo`, in order. Raises ModelError for a drain that shows no list.

    `failed_cas_observes`: whether a dequeue refused with "empty" surely found no element, as in `linearizable`.
    `details`: enqueued, dequeued, missing, forgiven, recovered (put in by an enqueue of unknown outcome), emptied.
    """
    witnesses: list[Witness] = []
    counts = dict.fromkeys(("enqueued", "dequeued", "missing", "forgiven", "recovered", "emptied"), 0)
    begun = with_first_elements(history, "enqueue")
    for key, operations in by_key(begun.select(f=("enqueue", "dequeue", "drain"))).items():
        queue = _queue(operations, failed_cas_observes)
        last = _last_proof(queue, fifo)
        missing = [] if last is None else _missing(queue, last)
        forgiven = len(missing) if queue.unsure_drain else min(len(missing), queue.unsure)
        witnesses += _from_nowhere(key, queue)
        if last is not None and len(missing) > forgiven:
            witnesses += _lost(key, last, missing, forgiven)
        if fifo:
            witnesses += _reordered(key, queue)
        _count(counts, queue, len(missing), forgiven)
    valid = f"{counts['dequeued']} of {counts['enqueued']} elements came out, once each" + (
        " and in order" if fifo else ""
    )
    details: dict[str, Any] = {**counts, "findings": []}
    if counts["enqueued"] and not counts["emptied"]:
        details["findings"] = [
            "the queue was never seen empty: what is missing cannot be told from what is left in it"
        ]
    judged = counts["enqueued"] + counts["dequeued"]
    return verdict(NAME, MODEL, witnesses, details, judged=judged, valid=valid)


def gone_everywhere(history: History, dumps: Sequence[Operation]) -> Iterator[Witness]:
    """For `kept`: elements that were acknowledged, never came out, and are in no node's final dump. As many are
    forgiven as dequeues of unknown outcome may have taken."""
    there: dict[str | None, set[Value]] = {}
    for dump in dumps:
        for sight in sights(dump):
            there.setdefault(sight.cell, set()).update(sight.values)
    for key, operations in by_key(history.select(f=("enqueue", "dequeue", "drain"))).items():
        queue = _queue(operations, refusals_observe=False)
        gone = [
            puts[0]
            for value, puts in queue.enqueues.items()
            if value not in queue.dequeues
            and value not in there.get(key, ())
            and all(put.type == "ok" and all(put.precedes(dump) for dump in dumps) for put in puts)
        ]
        if len(gone) > queue.unsure and not queue.unsure_drain:
            names = ", ".join(shown(put.value) for put in gone[:GONE_MAX])
            more = f" and {len(gone) - GONE_MAX} more" if len(gone) > GONE_MAX else ""
            forgiven = f", of which dequeues of unknown outcome explain {queue.unsure} at most"
            summary = (
                f"{names}{more} had been acknowledged, never came out of {key}, and no node held it at the end"
                f"{forgiven if queue.unsure else ''}"
            )
            yield witness("lost-element", summary, [*gone[:GONE_MAX], *dumps], key=key)


def _queue(operations: Sequence[Operation], refusals_observe: bool) -> Queue:
    queue = Queue()
    for operation in operations:
        value = identity(operation.value)
        if operation.saw_empty:
            if operation.type == "ok" or refusals_observe:
                queue.emptied.append(operation)
            continue
        match operation.f, operation.type:
            case "enqueue", "fail":
                queue.failed[value] = operation
            case "enqueue", _:
                queue.enqueues.setdefault(value, []).append(operation)
            case "dequeue", "ok":
                queue.dequeues.setdefault(value, []).append(operation)
            case "dequeue", "info":
                queue.unsure += 1
            case "drain", "ok":
                queue.emptied.append(operation)
                for element in _drained(operation):
                    queue.dequeues.setdefault(identity(element), []).append(operation)
            case "drain", "info":
                queue.unsure_drain = True
    return queue


def _drained(drain: Operation) -> list[Any]:
    if drain.value is None:
        return []
    if isinstance(drain.value, list):
        return drain.value
    raise ModelError(
        expected="a list of elements", came=value_words(drain.value, 60), index=drain.invoke_index
    )


def _count(counts: dict[str, int], queue: Queue, missing: int, forgiven: int) -> None:
    counts["enqueued"] += sum(put.type == "ok" for puts in queue.enqueues.values() for put in puts)
    counts["dequeued"] += sum(map(len, queue.dequeues.values()))
    counts["recovered"] += sum(
        value in queue.dequeues and all(put.type == "info" for put in puts)
        for value, puts in queue.enqueues.items()
    )
    counts["missing"] += missing
    counts["forgiven"] += forgiven
    counts["emptied"] += len(queue.emptied)


def _from_nowhere(key: str | None, queue: Queue) -> Iterator[Witness]:
    for value, taken in queue.dequeues.items():
        puts, name = (
            queue.enqueues.get(value, []),
            f"{shown(taken[0].value if taken[0].f == 'dequeue' else value)}",
        )
        if not puts and value in queue.failed:
            summary = f"{name} came out, although its enqueue had surely failed"
            yield witness("enqueued-by-failure", summary, [queue.failed[value], taken[0]], key=key)
        elif not puts:
            yield witness("never-enqueued", f"{name} came out, and was never put in", taken[:1], key=key)
        elif len(taken) > len(puts):
            times = "twice" if len(taken) == 2 else f"{len(taken)} times"
            yield witness("duplicated", f"{name} came out {times}", [*puts, *taken], key=key)
        elif all(taken[0].precedes(put) for put in puts):
            yield witness(
                "before-its-enqueue", f"{name} came out before it was put in", [*puts, taken[0]], key=key
            )


def _last_proof(queue: Queue, fifo: bool) -> Operation | None:
    """The last operation before which all enqueued elements must have come out.

    It found the queue empty, or it enqueued an element that came out. The second kind counts only where dequeues of
    unknown outcome may have taken elements; else `_reordered` names each such element.
    """
    proofs = list(queue.emptied)
    if fifo and queue.unsure:
        proofs += [
            min(puts, key=lambda put: put.invoke_index)
            for value, puts in queue.enqueues.items()
            if value in queue.dequeues
        ]
    return max(proofs, key=lambda proof: proof.invoke_index, default=None)


def _missing(queue: Queue, last: Operation) -> list[Operation]:
    """Acknowledged enqueues of elements that never came out, although they were in before `last`."""
    return [
        puts[0]
        for value, puts in queue.enqueues.items()
        if value not in queue.dequeues and all(put.type == "ok" for put in puts) and puts[0].precedes(last)
    ]


def _lost(key: str | None, last: Operation, missing: Sequence[Operation], forgiven: int) -> Iterator[Witness]:
    if forgiven:
        summary = f"{len(missing)} elements never came out, and dequeues of unknown outcome explain {forgiven} at most"
        yield witness("lost", summary, [*missing[: forgiven + 1], last], key=key)
        return
    for put in missing:
        summary = f"{shown(put.value)} was acknowledged and never came out, and the queue was seen empty"
        yield witness("lost", summary, [put, last], key=key)


@dataclass(frozen=True, slots=True)
class _Passage:
    """An element's way through: in before `entered` (its enqueue's return), out after `left`, if it ever was."""

    value: Value
    put: Operation
    taken: Operation | None

    @property
    def entered(self) -> int:
        returned = self.put.returned_index
        return NEVER if returned is None else returned

    @property
    def left_after(self) -> int:
        return NEVER if self.taken is None else self.taken.invoke_index


def _reordered(key: str | None, queue: Queue) -> Iterator[Witness]:
    """For each element that came out: of the elements surely in before it was put in, the one that came out last.

    The elements of one drain came out in the order in which it lists them.
    """
    passages = [
        _Passage(value, puts[0], queue.dequeues[value][0] if value in queue.dequeues else None)
        for value, puts in queue.enqueues.items()
        if len(puts) == 1 and len(queue.dequeues.get(value, ())) < 2
    ]
    if queue.unsure or queue.unsure_drain:  # those that never came out may have been taken
        passages = [passage for passage in passages if passage.taken is not None]
    passages.sort(key=lambda passage: passage.entered)
    entered = [passage.entered for passage in passages]
    slowest: list[_Passage] = []
    for passage in passages:
        slowest.append(passage if not slowest or passage.left_after > slowest[-1].left_after else slowest[-1])
    for passage in passages:
        place = bisect_left(entered, passage.put.invoke_index)
        if passage.taken is None or not place:
            continue
        first = slowest[place - 1]
        if (passage.taken.complete_index or 0) < first.left_after:
            yield _overtaken(key, first, passage)
    by_value = {passage.value: passage for passage in passages}
    for drain in queue.emptied:
        if drain.f == "drain":
            drained = [by_value[value] for value in map(identity, _drained(drain)) if value in by_value]
            yield from _reordered_within(key, drained)


def _reordered_within(key: str | None, drained: Sequence[_Passage]) -> Iterator[Witness]:
    """For each element of a drain: of the elements that came out behind it, the one that was surely in first."""
    if not drained:
        return
    first = drained[-1]
    for second in reversed(drained):
        if first.entered < second.put.invoke_index:
            yield _overtaken(key, first, second)
        first = min(first, second, key=lambda passage: passage.entered)


def _overtaken(key: str | None, first: _Passage, second: _Passage) -> Witness:
    out = "never came out" if first.taken is None else "came out after it"
    summary = f"{shown(second.put.value)} overtook {shown(first.put.value)}, which went in first and {out}"
    named = [
        operation for operation in (first.put, first.taken, second.put, second.taken) if operation is not None
    ]
    return witness("reordered", summary, named, key=key)
