"""From a log to the whole order, compiled: `order` has the plain twin, and the words."""

from __future__ import annotations

from typing import Any

from checkers.compiled import bare_kernel, inlined_kernel

Array = Any  # numpy's, of int64
NEVER = 1 << 60
OBSERVE, REFUSE, OVERWRITE = 0, 1, 2


@inlined_kernel
def _observe(
    state: int, kind: Array, old: Array, waiting: Array, waits: int, order: Array, count: int
) -> int:
    """Place the waiting observations that are legal now; how many of them stay."""
    left = 0
    for place in range(waits):
        call = waiting[place]
        if (old[call] == state) == (kind[call] == OBSERVE):
            order[count] = call
            count += 1
        else:
            waiting[left] = call
            left += 1
    return left


@bare_kernel
def place(
    events: Array, ranks: Array, complete: Array, kind: Array, old: Array, new: Array, log: Array, logged: Array,
    waiting: Array, unseen: Array, order: Array,
) -> int:  # fmt: skip
    """Fill `order`; how many calls. `events` (call << 1, and 1 for a return) are in order of `ranks`; see `order`."""
    state, count, waits, hidden, position = 0, 0, 0, 0, 0
    for place_ in range(events.shape[0]):
        call = events[place_] >> 1
        if events[place_] & 1 == 0:
            if kind[call] <= REFUSE:
                waiting[waits] = call
                left = _observe(state, kind, old, waiting, waits + 1, order, count)
                count += waits + 1 - left
                waits = left
            elif kind[call] == OVERWRITE and not logged[call] and complete[call] < NEVER:
                unseen[hidden] = call
                hidden += 1
            continue
        while position < log.shape[0] and log[position, 1] <= ranks[place_]:
            made = log[position, 0]
            position += 1
            if kind[made] == OVERWRITE:
                for index in range(hidden):
                    order[count] = unseen[index]
                    count += 1
                hidden = 0
            order[count] = made
            count += 1
            state = new[made]
            left = _observe(state, kind, old, waiting, waits, order, count)
            count += waits - left
            waits = left
    return count
