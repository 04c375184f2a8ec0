"""`checkers.sessions.staleness` over objects, key by key: the slow twin of the rule over columns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

from checkers.history.history import History, by_key
from checkers.history.operation import Operation
from checkers.history.value_kernels import NEVER
from checkers.history.values import identity
from checkers.sessions.staleness import Stale
from checkers.sessions.steps import Reads, written
from tests.checkers.history.value_order import ValueOrder


def judged(history: History, reads: Reads) -> tuple[int, list[Stale]]:
    """How many reads are judged, and those that surely were stale."""
    chosen = [each for each in history.select(f="read", outcome="ok") if reads(each.role, each.mode)]
    writers = history.select(f=("write", "cas"))
    for each in writers:
        written(each)
    writes = by_key(writers)
    place = {each.invoke_index: place for place, each in enumerate(history.operations)}
    return len(chosen), [
        Stale(place[read.invoke_index], place[since.invoke_index], versions, _ms(read, since))
        for key, key_reads in by_key(chosen).items()
        for read, since, versions in _stale_reads(writes.get(key, ()), key_reads, history.start.of(key))
    ]


def _ms(read: Operation, since: Operation) -> float:
    return max(0.0, (read.invoke_ns - (since.complete_ns or 0)) / 1e6)


def _stale_reads(
    writes: Sequence[Operation], reads: Sequence[Operation], start: Any
) -> Iterable[tuple[Operation, Operation, int]]:
    """Every read, the first write that it missed, and how many it missed."""
    order = ValueOrder.of(writes, reads, start=identity(start))
    changes = [each for each in writes if each.f == "write" or len({*map(identity, each.value)}) > 1]
    done = sorted((each for each in changes if each.type == "ok"), key=lambda each: each.complete_index or 0)
    ends = [each.complete_index or 0 for each in done]
    for read in reads:
        value = identity(read.value)
        latest = order.latest(value)
        if value not in order.writers or latest >= NEVER:
            continue
        missed = [each for each in done[: bisect_left(ends, read.invoke_index)] if each.invoke_index > latest]
        if missed:
            yield read, missed[0], len(missed)
