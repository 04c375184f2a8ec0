"""Queues: each element that is put in comes out once, and elements come out in the order in which they went in.

| f | value |
|---|---|
| enqueue | the element; a key names the queue if there are several |
| dequeue | ok: the element, null if the queue was empty; fail: nothing was taken |
| drain | ok: [element, …], taken one after the other until the queue was empty |

Only an acknowledged element can be lost, and only if there is a proof that it had come out:

- The queue was surely empty after the element was in: a drain emptied it, or a dequeue found it empty (null, or failed
  with "empty" where such a refusal observes something).
- With `fifo`, an element came out that was surely put in later.

A dequeue of unknown outcome may have taken one missing element, and a drain of unknown outcome all, if it was invoked
before the proof was complete. So many missing elements are forgiven. An element may be put in several times: as many of
it are missing as were acknowledged and did not come out.

Rules: lost, duplicated, never-enqueued, enqueued-by-failure, before-its-enqueue (it came out before it was put in, or
more often than it was put in by then), reordered (an element that surely went in first surely came out later, or later
within one drain; not with `fifo` false).

A store may promise less: that each comes out at least once (`again`). A second or a late delivery is a finding then. A
later element that came out is no proof of a loss, nor is an "empty" before all was quiet: elements that a consumer has
not acknowledged come back, as do those of a node that is away.

Cost: n log n. Cannot see: an answer "empty" that was wrong (the linearizable model `queue` can); the order in which
elements put in twice came out.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any

from checkers.domain.begun import with_first_elements
from checkers.domain.effects import sights
from checkers.domain.proof import caught_up, listed, shown, verdict
from checkers.history.history import History, by_key
from checkers.history.operation import Operation
from checkers.history.value_kernels import NEVER
from checkers.history.values import Value, identity, many, often
from checkers.verdict import Verdict, Witness, witness

NAME = "queues"
GONE_MAX = 3
MODEL = "what went in comes out once, in order"
AT_LEAST_ONCE = "what went in comes out at least once"
ALLOWED_AGAIN = ("duplicated", "reordered")


@dataclass(slots=True)
class Queue:
    """One queue: the operations that put in and took out each element, and those that may have emptied it.

    `failed`: the first failed enqueue of each element. `unsure` and `unsure_drains`: the events that invoked dequeues
    and drains of unknown outcome.
    """

    enqueues: dict[Value, list[Operation]] = field(default_factory=dict)
    failed: dict[Value, Operation] = field(default_factory=dict)
    dequeues: dict[Value, list[Operation]] = field(default_factory=dict)
    emptied: list[Operation] = field(default_factory=list)
    unsure: list[int] = field(default_factory=list)
    unsure_drains: list[int] = field(default_factory=list)

    @property
    def is_sure(self) -> bool:
        """Whether every dequeue and drain has an outcome."""
        return not (self.unsure or self.unsure_drains)

    def is_ordered(self, value: Value) -> bool:
        """Whether the element was put in once, and came out once or never: `_reordered` judges its place."""
        return len(self.enqueues[value]) == 1 and len(self.dequeues.get(value, ())) < 2

    def may_have_taken(self, until: int) -> float:
        """How many elements the operations of unknown outcome may have taken before this event, at most."""
        if self.unsure_drains and self.unsure_drains[0] < until:
            return math.inf
        return bisect_left(self.unsure, until)


@dataclass(frozen=True, slots=True)
class _Proof:
    """An element that was in before event `since` had come out before event `until`: these operations show it."""

    since: int
    until: int
    shows: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class _Missing:
    """An acknowledged enqueue of a missing element. `proof`: the first to end of the proofs that it had come out."""

    put: Operation
    proof: _Proof


def check(
    history: History, *, fifo: bool = True, again: bool = False, failed_cas_observes: bool = True
) -> Verdict:
    """Whether elements come out once and, if `fifo`, in order. Raises ModelError for a drain that shows no list.

    `again`: they may come out again, and in another order; `findings` then say that some did.
    `failed_cas_observes`: whether a dequeue refused with "empty" surely found no element, as in `linearizable`. At the
    end it did, if the nodes had settled: none of them was behind.
    `details`: enqueued, dequeued, missing, forgiven, recovered (put in by an enqueue of unknown outcome), emptied.
    """
    witnesses: list[Witness] = []
    counts = dict.fromkeys(("enqueued", "dequeued", "missing", "forgiven", "recovered", "emptied"), 0)
    names: list[str] = []
    begun, is_whole = with_first_elements(history, "enqueue"), caught_up(history)
    for key, operations in by_key(begun.select(f=("enqueue", "dequeue", "drain"))).items():
        queue = _queue(operations, failed_cas_observes, is_settled=history.settled is True)
        if again:
            queue.emptied = [each for each in queue.emptied if each.phase == "final" and is_whole(each)]
        missing = _missing(queue, fifo and not again)
        lost = _unexplained(queue, missing)
        names += [shown(each.put.value) for each in missing]
        witnesses += _from_nowhere(key, queue)
        witnesses += _lost(key, queue, missing, lost)
        if fifo:
            witnesses += _reordered(key, queue)
        _count(counts, queue, len(missing), len(missing) - len(lost))
    came_out = f"{many(counts['dequeued'], 'element')} of {counts['enqueued'] + counts['recovered']} came out"
    is_once = counts["dequeued"] and not again
    once = f", once each{' and in order' if fifo else ''}" if is_once else ""
    forgiven = f"; operations of unknown outcome may have taken {_listed(names)}" if names else ""
    details: dict[str, Any] = {**counts, "findings": []}
    if counts["enqueued"] and not counts["emptied"]:
        when = " in quiet" if again else ""
        details["findings"] = [
            f"the queue was never seen empty{when}: what is missing cannot be told from what is left in it"
        ]
    if again:
        for rule in ALLOWED_AGAIN:
            found = [each.summary for each in witnesses if each.rule == rule]
            details["findings"] += [f"{many(len(found), rule + ' element')}: {found[0]}"] if found else []
        witnesses = [each for each in witnesses if each.rule not in ALLOWED_AGAIN]
    judged = counts["enqueued"] + counts["dequeued"]
    return verdict(
        NAME,
        AT_LEAST_ONCE if again else MODEL,
        witnesses,
        details,
        judged=judged,
        valid=came_out + once + forgiven,
    )


def gone_everywhere(history: History, dumps: Sequence[Operation]) -> Iterator[Witness]:
    """For `kept`: elements that were surely in, never came out, and are in no node's final dump.

    As many are forgiven as dequeues of unknown outcome may have taken before the last dump was complete.
    """
    there: dict[str | None, set[Value]] = {}
    for dump in dumps:
        for sight in sights(dump):
            there.setdefault(sight.cell, set()).update(sight.values)
    end = max(map(_over, dumps), default=0)
    begun = with_first_elements(history, "enqueue")
    for key, operations in by_key(begun.select(f=("enqueue", "dequeue", "drain"))).items():
        queue = _queue(operations, refusals_observe=False)
        gone = [
            puts[0]
            for value, puts in queue.enqueues.items()
            if value not in queue.dequeues
            and value not in there.get(key, ())
            and all(put.type == "ok" and all(put.precedes(dump) for dump in dumps) for put in puts)
        ]
        most = queue.may_have_taken(end)
        if len(gone) > most:
            forgiven = f", of which dequeues of unknown outcome explain {most} at most" if most else ""
            summary = (
                f"{_listed([shown(put.value) for put in gone])} had been acknowledged, never came out of {key}, and no "
                f"node held it at the end{forgiven}"
            )
            yield witness("lost-element", summary, [*gone[:GONE_MAX], *dumps], key=key)


def _listed(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    more = f" and {len(names) - GONE_MAX} more" if len(names) > GONE_MAX else ""
    return f"{', '.join(names[:GONE_MAX])}{more}"


def _over(operation: Operation) -> int:
    """The event by which the operation was surely over; NEVER if its outcome is unknown."""
    returned = operation.returned_index
    return NEVER if returned is None else returned


def _queue(operations: Sequence[Operation], refusals_observe: bool, *, is_settled: bool = False) -> Queue:
    queue = Queue()
    for operation in operations:
        value = identity(operation.value)
        if operation.saw_empty:
            is_last = is_settled and operation.phase == "final"
            if operation.type == "ok" or refusals_observe or is_last:
                queue.emptied.append(operation)
            continue
        match operation.f, operation.type:
            case "enqueue", "fail":
                queue.failed.setdefault(value, operation)
            case "enqueue", _:
                queue.enqueues.setdefault(value, []).append(operation)
            case "dequeue", "ok":
                queue.dequeues.setdefault(value, []).append(operation)
            case "dequeue", "info":
                queue.unsure.append(operation.invoke_index)
            case "drain", "ok":
                queue.emptied.append(operation)
                for element in listed(operation):
                    queue.dequeues.setdefault(identity(element), []).append(operation)
            case "drain", "info":
                queue.unsure_drains.append(operation.invoke_index)
    return queue


def _count(counts: dict[str, int], queue: Queue, missing: int, forgiven: int) -> None:
    for value, puts in queue.enqueues.items():
        acknowledged = sum(put.type == "ok" for put in puts)
        counts["enqueued"] += acknowledged
        counts["recovered"] += max(0, min(len(puts), len(queue.dequeues.get(value, ()))) - acknowledged)
    counts["dequeued"] += sum(map(len, queue.dequeues.values()))
    counts["missing"] += missing
    counts["forgiven"] += forgiven
    counts["emptied"] += len(queue.emptied)


def _from_nowhere(key: str | None, queue: Queue) -> Iterator[Witness]:
    for value, taken in queue.dequeues.items():
        puts = queue.enqueues.get(value, [])
        name = shown(taken[0].value if taken[0].f == "dequeue" else value)
        if not puts and value in queue.failed:
            summary = f"{name} came out, although its enqueue had surely failed"
            yield witness("enqueued-by-failure", summary, [queue.failed[value], taken[0]], key=key)
        elif not puts:
            yield witness("never-enqueued", f"{name} came out, and was never put in", taken[:1], key=key)
        elif len(taken) > len(puts):
            summary = f"{name} came out {often(len(taken))}"
            yield witness("duplicated", summary, [*puts, *taken], key=key)
        else:
            ended, begun = sorted(taken, key=_over), sorted(put.invoke_index for put in puts)
            for count, (last, at) in enumerate(zip(ended, begun, strict=False), start=1):
                if _over(last) < at:
                    times = "" if count == 1 else f" {often(count)}"
                    summary = f"{name} came out{times} before it was put in{times}"
                    yield witness("before-its-enqueue", summary, [*puts, *ended[:count]], key=key)
                    break


def _missing(queue: Queue, fifo: bool) -> list[_Missing]:
    """The acknowledged enqueues of elements that had to come out and did not, in the order in which their proofs end.

    Where every outcome is known, `_reordered` names the elements in and out once that overtook another such element.
    """
    emptied = [_Proof(each.invoke_index, _over(each), (each,)) for each in queue.emptied]
    overtaken = dict(_overtakings(queue)) if fifo else {}
    all_kinds = _Proofs([*emptied, *overtaken.values()])
    left_over = _Proofs(
        [*emptied, *(proof for value, proof in overtaken.items() if not queue.is_ordered(value))]
    )
    missing = []
    for value, puts in queue.enqueues.items():
        proofs = left_over if queue.is_sure and queue.is_ordered(value) else all_kinds
        acknowledged = sorted((put for put in puts if put.type == "ok"), key=_over)
        # Which of equal elements are missing is not known. Of the last ones the fewest proofs speak.
        for put in acknowledged[len(queue.dequeues.get(value, ())) :]:
            proof = proofs.first_to_end(put)
            if proof is not None:
                missing.append(_Missing(put, proof))
    return sorted(missing, key=lambda each: each.proof.until)


def _overtakings(queue: Queue) -> Iterator[tuple[Value, _Proof]]:
    """For each element that came out: what was in before its first enqueue was out before it."""
    for value, taken in queue.dequeues.items():
        first = min(taken, key=_over)
        for put in queue.enqueues.get(value, ())[:1]:
            if not first.precedes(put):
                yield value, _Proof(put.invoke_index, _over(first), (put, first))


class _Proofs:
    """Of the proofs that are about an element, finds the one that ends first."""

    def __init__(self, proofs: Iterable[_Proof]) -> None:
        ordered = sorted(proofs, key=lambda proof: proof.since)
        self._since = [proof.since for proof in ordered]
        self._first = list(accumulate(reversed(ordered), partial(min, key=lambda proof: proof.until)))[::-1]

    def first_to_end(self, put: Operation) -> _Proof | None:
        # The proof is about elements that were in before it began: what was put in beside it may come out later.
        place = bisect_right(self._since, _over(put))
        return self._first[place] if place < len(self._first) else None


def _unexplained(queue: Queue, missing: Sequence[_Missing]) -> list[int]:
    """The places in `missing` of the elements that no operation of unknown outcome can have taken in time.

    An operation that may have taken an element before one proof ended may have taken any whose proof ends later, so the
    first proofs to end choose first.
    """
    places = []
    explained = 0
    for place, each in enumerate(missing):
        if explained < queue.may_have_taken(each.proof.until):
            explained += 1
        else:
            places.append(place)
    return places


def _lost(
    key: str | None, queue: Queue, missing: Sequence[_Missing], unexplained: Sequence[int]
) -> Iterator[Witness]:
    """A witness for each element that nothing can have taken, and one for those of which some may have been taken."""
    alone = [each for each in missing if not queue.may_have_taken(each.proof.until)]
    for value, each in {identity(each.put.value): each for each in alone}.items():
        taken = queue.dequeues.get(value, ())
        puts = [put for put in queue.enqueues[value] if put.type == "ok"]
        counted = "" if len(puts) == 1 else f" {often(len(puts))}"
        came_out = f"came out {often(len(taken))}" if taken else "never came out"
        summary = (
            f"{shown(each.put.value)} was acknowledged{counted} and {came_out}, and {_words(each.proof)}"
        )
        yield witness("lost", summary, [*puts, *taken, *each.proof.shows], key=key)
    if unexplained and (most := queue.may_have_taken(missing[unexplained[-1]].proof.until)):
        named = missing[: int(most) + 1]
        operations = [operation for each in named for operation in (each.put, *each.proof.shows)]
        counted = f"{unexplained[-1] + 1} elements never came out"
        summary = f"{counted}, and dequeues of unknown outcome explain {most} at most"
        yield witness("lost", summary, operations, key=key)


def _words(proof: _Proof) -> str:
    if len(proof.shows) == 1:
        return "the queue was seen empty"
    return f"{shown(proof.shows[0].value)}, which was put in later, came out"


@dataclass(frozen=True, slots=True)
class _Passage:
    """An element's way through: in before `entered` (its enqueue's return), out after `left_after`, if it ever was."""

    value: Value
    put: Operation
    taken: Operation | None

    @property
    def entered(self) -> int:
        return _over(self.put)

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
        if queue.is_ordered(value)
    ]
    if not queue.is_sure:  # those that never came out may have been taken: `_missing` counts them
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
            drained = [by_value[value] for value in map(identity, listed(drain)) if value in by_value]
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
