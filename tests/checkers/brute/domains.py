"""What the domain checkers promise to find, from what docs/checkers.md and docs/workloads.md say of each.

Each function says whether the history keeps the rules, None where they do not say.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from checkers.history import History, Operation

TOTAL = 10


def bank(history: History) -> bool:
    """Every read that shows accounts shows the total, no balance below zero, and none missing."""
    return all(
        None not in read.value.values()
        and sum(read.value.values()) == TOTAL
        and min(read.value.values()) >= 0
        for read in history.select(f="read", outcome="ok")
        if read.value
    )


def counter(history: History) -> bool:
    """Every read is a sum of what surely counts and some of what may count, or lies between two such sums."""
    for read in history.select(f="read", outcome="ok"):
        adds = [each for each in history.select(f="add") if each.key == read.key and each.type != "fail"]
        surely = [each for each in adds if each.precedes(read)]
        maybe = [each for each in adds if each not in surely and not _asked_after(each, read)]
        sums = [
            sum(each.value for each in (*surely, *some))
            for count in range(len(maybe) + 1)
            for some in combinations(maybe, count)
        ]
        if not min(sums) <= read.value <= max(sums):
            return False
    return True


def grow_set(history: History) -> bool | None:
    """No element twice in a read, from nowhere or from a failed add alone; none that was known is lost.

    Known: its add was answered, or a read showed it. Lost: a read asked later lacks it and no read asked after that
    shows it; if there are final reads, one of those asked later lacks it.
    """
    adds = history.select(f="add")
    reads = history.select(f="read", outcome="ok")
    for read in reads:
        if len(set(read.value)) < len(read.value):
            return False
        for element in read.value:
            added = [each for each in adds if each.value == element and each.key == read.key]
            if all(each.type == "fail" for each in added):
                return False
            if all(_asked_after(each, read) for each in added if each.type != "fail"):
                return None  # the rules do not name an element that is shown before it was added
    for add in adds:
        of_key = [read for read in reads if read.key == add.key]
        known = [add.complete_index] if add.type == "ok" else []
        known += [read.complete_index for read in of_key if add.value in read.value]
        if add.type == "fail" or not known:
            continue
        since = min(index for index in known if index is not None)
        later = [read for read in of_key if read.invoke_index > since]
        judged = [read for read in later if read.phase == "final"]
        if any(read.phase == "final" for read in of_key):
            if any(add.value not in read.value for read in judged):
                return False
        elif later and add.value not in later[-1].value:
            return False
    return True


def queue(history: History) -> bool:
    """Elements come out once, after they were put in, in order; none stays away that surely had to come out.

    An acknowledged element had to come out if the queue was seen empty later, or if one came out that surely was put in
    later. It may have been taken by a dequeue of unknown outcome, which takes one, or by a drain of unknown outcome,
    unless that was asked when the other answer was there. No order is named for elements that were put in twice.
    """
    return all(_queue(history, key) for key in {each.key for each in history.operations})


def _queue(history: History, key: str | None) -> bool:
    operations = [each for each in history.operations if each.key == key]
    enqueues: dict[Any, list[Operation]] = {}
    for each in operations:
        if each.f == "enqueue" and each.type != "fail":
            enqueues.setdefault(each.value, []).append(each)
    out: list[tuple[Any, Operation, int]] = []
    for each in operations:
        if each.type == "ok" and each.f in ("dequeue", "drain") and each.value is not None:
            taken = each.value if each.f == "drain" else [each.value]
            out += [(element, each, place) for place, element in enumerate(taken)]
    came = Counter(element for element, _, _ in out)
    if any(count > len(enqueues.get(element, ())) for element, count in came.items()):
        return False
    for element, taker, _ in out:
        over = taker.returned_index
        assert over is not None
        by_then = sum(one == element and (other.returned_index or 0) <= over for one, other, _ in out)
        if by_then > sum(put.invoke_index < over for put in enqueues[element]):
            return False
    once = [(enqueues[element][0], taker, at) for element, taker, at in out if len(enqueues[element]) == 1]
    for first, its_taker, at in once:
        for second, taker, place in once:
            sooner = place < at if taker is its_taker else taker.precedes(its_taker)
            if first.precedes(second) and sooner:
                return False
    return _is_explained(operations, enqueues, out)


def _is_explained(
    operations: list[Operation],
    enqueues: dict[Any, list[Operation]],
    out: list[tuple[Any, Operation, int]],
) -> bool:
    """Whether all answers that are missing may be those of operations of unknown outcome."""
    emptied = [each for each in operations if each.f == "drain" and each.type == "ok"]
    emptied += [
        each
        for each in operations
        if each.f == "dequeue" and (each.error == "empty" or (each.type == "ok" and each.value is None))
    ]
    unsure = [each for each in operations if each.type == "info" and each.f in ("dequeue", "drain")]

    def ends(put: Operation) -> list[Operation]:
        """The operations that the element's way out, if it was in since `put`, cannot follow."""
        overtook = [
            taker for element, taker, _ in out if all(put.precedes(each) for each in enqueues[element])
        ]
        return [each for each in emptied if put.precedes(each)] + overtook

    def may_be_taken(missing: list[Operation], takers: list[Operation]) -> bool:
        if not missing:
            return True
        put, *rest = missing
        return any(
            may_be_taken(
                rest, takers if taker.f == "drain" else [each for each in takers if each is not taker]
            )
            for taker in takers
            if not any(end.complete_index < taker.invoke_index for end in ends(put) if end.complete_index)
        )

    choices = [
        [*combinations(known, max(0, len(known) - sum(value == element for value, _, _ in out)))]
        for element, puts in enqueues.items()
        if (known := [put for put in puts if put.type == "ok"])
    ]
    return any(
        may_be_taken([put for chosen in choice for put in chosen if ends(put)], unsure)
        for choice in product(*choices)
    )


def long_fork(history: History) -> bool:
    """Of two reads of the same keys, one saw all that the other saw."""
    reads = [{key: value for _, key, value in each.value} for each in history.select(f="read", outcome="ok")]
    for first, second in combinations(reads, 2):
        if set(first) == set(second):
            only_first = [key for key in first if first[key] is not None and second[key] is None]
            only_second = [key for key in first if second[key] is not None and first[key] is None]
            if only_first and only_second:
                return False
    return True


def causal_reverse(history: History) -> bool:
    """A read that shows a write shows all writes that were answered before that one was asked."""
    writes = {each.value: each for each in history.select(f="write")}
    return not any(
        first.type == "ok" and first.precedes(writes[shown]) and first.value not in read.value
        for read in history.select(f="read", outcome="ok")
        for shown in read.value
        for first in writes.values()
    )


def unique_ids(history: History) -> bool:
    """All identifiers differ."""
    given = [each.value for each in history.select(f="generate", outcome="ok")]
    return len(set(given)) == len(given)


def monotonic(history: History) -> bool:
    """Every read shows each row once, in the order of timestamps, along which values never fall; all acknowledged
    rows, none of a failed add, and no more rows that no add made than adds of unknown outcome."""
    adds = history.select(f="add")
    known = {each.value["val"]: each for each in adds if each.value is not None}
    for read in history.select(f="read", outcome="ok"):
        rows = [(Fraction(str(row["sts"])), row["val"]) for row in read.value]
        values = [value for _, value in rows]
        if rows != sorted(rows, key=lambda row: row[0]) or len(set(values)) < len(values):
            return False
        if any(early < late and value > after for early, value in rows for late, after in rows):
            return False
        if any(
            add.type == "ok" and add.precedes(read) and value not in values for value, add in known.items()
        ):
            return False
        if any(known[value].type == "fail" for value in values if value in known):
            return False
        asked = [value for value, add in known.items() if not read.precedes(add)]
        others = [value for value in values if value not in asked and asked and value > min(asked)]
        unknown = [add for add in adds if add.type == "info" and add.value is None]
        if len(others) > sum(not read.precedes(add) for add in unknown):
            return False
    return True


def durability(history: History) -> bool:
    """A final read of a register shows each acknowledged write, or one that may have come after it."""
    writes = {each.value: each for each in history.select(f="write")}
    for read in history.select(f="read", outcome="ok", phase="final"):
        for write in writes.values():
            acknowledged = write.type == "ok" and write.key == read.key and read.value != write.value
            if acknowledged and (read.value not in writes or writes[read.value].precedes(write)):
                return False
    return True


def rollback_honesty(history: History) -> bool:
    """No answer shows what only failed operations wrote, unless one showed it before any of them was asked."""
    writes = history.select(f=("write", "cas"))
    shown = [(each, each.value) for each in history.select(f="read", outcome="ok")]
    shown += [(each, each.value[0]) for each in history.select(f="cas", outcome="ok")]
    for read, value in shown:
        wrote = [each for each in writes if each.key == read.key and _written(each) == value]
        first = [other for other, same in shown if other.key == read.key and same == value]
        was_there = any(all(other.precedes(write) for write in wrote) for other in first)
        if wrote and all(each.type == "fail" for each in wrote) and not was_there:
            return False
    return True


def _written(operation: Operation) -> Any:
    return operation.value[1] if operation.f == "cas" else operation.value


def _asked_after(operation: Operation, read: Operation) -> bool:
    assert read.complete_index is not None
    return operation.invoke_index > read.complete_index
