"""Zones as kernels: clusters of a register with values that are each written once, in time linear in their number.

`zones` defines the words. Ranks are below the length of `at`; a call that never returns has NEVER.
"""

from __future__ import annotations

from typing import Any

from checkers.compiled import bare_kernel

Array = Any  # numpy's, of int64
NEVER = 1 << 60
OBSERVE, OVERWRITE = 0, 2

FITS, WRITTEN_TWICE, CONFLICT, NEVER_WRITTEN, FUTURE = 0, 1, 2, 3, 4


@bare_kernel
def clusters(
    invoke: Array, complete: Array, kind: Array, old: Array, new: Array, first_return: Array, last_invoke: Array,
    writer: Array,
) -> int:  # fmt: skip
    """Fill first return, last invocation and writer of every value. WRITTEN_TWICE if that is not one writer each.

    Value 0 counts as written before everything. Calls are read in their order; `first_return` comes filled with NEVER,
    `last_invoke` and `writer` with -1.
    """
    # Before every rank: the value from before the first write has been there all along.
    first_return[0] = -1
    for call in range(invoke.shape[0]):
        if kind[call] == OVERWRITE:
            value = new[call]
            # Also value 0: its reads could then be of two writes, and zones assume one cluster a value.
            if value == 0 or writer[value] >= 0:
                return WRITTEN_TWICE
            writer[value] = call
        else:
            # A read without an answer says nothing.
            if complete[call] >= NEVER:
                continue
            value = old[call]
        if complete[call] < first_return[value]:
            first_return[value] = complete[call]
        if invoke[call] > last_invoke[value]:
            last_invoke[value] = invoke[call]
    return FITS


@bare_kernel
def sweep(
    invoke: Array,
    first_return: Array,
    last_invoke: Array,
    writer: Array,
    at: Array,
    sequence: Array,
    contents: Array,
) -> int:
    """Put the clusters in order, or find two that contradict each other (their values go to `contents`).

    A cluster is taken up where its zone begins: a forward zone at its first return, a backward zone at its last
    invocation. `at` comes filled with -1; `sequence` gets the values in order, `contents[2]` how many. Of values that
    no write explains, the one that a call returned first counts: codes of values say nothing of time.
    """
    odd = -1
    for value in range(first_return.shape[0]):
        first, last = first_return[value], last_invoke[value]
        # No call on it, or a crashed write that no read shows: it may never have happened.
        if last < 0 or first >= NEVER:
            continue
        if value and (writer[value] < 0 or first < invoke[writer[value]]):
            if odd < 0 or first < first_return[odd]:
                odd = value
        elif first >= 0:
            at[first if first < last else last] = value
    if odd >= 0:
        contents[0] = contents[1] = odd
        return NEVER_WRITTEN if writer[odd] < 0 else FUTURE
    placed = 0
    reach, holder = -1, -1
    if last_invoke[0] >= 0:
        sequence[0] = 0
        placed = 1
        reach, holder = last_invoke[0], 0
    for rank in range(at.shape[0]):
        value = at[rank]
        if value < 0:
            continue
        forward = first_return[value] < last_invoke[value]
        # Zones are taken up in the order of their begins, so `reach` is the end of the last forward zone alone.
        # A backward zone is a conflict only if all of it lies within that one: it may stand before or behind.
        if rank < reach and (forward or first_return[value] < reach):
            contents[0], contents[1] = holder, value
            return CONFLICT
        if forward:
            reach, holder = last_invoke[value], value
        sequence[placed] = value
        placed += 1
    contents[2] = placed
    return FITS


@bare_kernel
def lay_out(
    complete: Array, kind: Array, old: Array, writer: Array, sequence: Array, placed: int, start: Array, order: Array,
) -> int:  # fmt: skip
    """The order of a yes: cluster by cluster, the write first. `start` comes filled with 0; how many calls."""
    for call in range(kind.shape[0]):
        if kind[call] == OBSERVE and complete[call] < NEVER:
            start[old[call]] += 1
    total = 0
    for place in range(placed):
        value = sequence[place]
        reads = start[value]
        if writer[value] >= 0:
            order[total] = writer[value]
            total += 1
        start[value] = total
        total += reads
    for call in range(kind.shape[0]):
        if kind[call] == OBSERVE and complete[call] < NEVER:
            order[start[old[call]]] = call
            start[old[call]] += 1
    return total
