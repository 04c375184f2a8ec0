"""Pairs the events of a record without making an object of any."""

from __future__ import annotations

from typing import Any

from checkers.compiled import bare_kernel

Array = Any  # numpy's, of int64
OK, INFO, FINAL, NO_CLIENT, ABSENT = 1, 3, 16, 64, -(1 << 62)  # as in `line_kernels`
INVOKE_AT, COMPLETE_AT, INVOKE_NS, COMPLETE_NS, OLD, NEW = range(6)
F, NODE, ROLE, MODE, ERROR = range(5)
TYPE, KIND, IS_FINAL, ANSWER = range(4)
PAIR, OTHER, TRIPLE = 1, 2, 3  # as in `line_kernels`
CHANGED, UNTOLD, TRIMMED = 1, 2, 3
"""An answer has another value than the question; columns may not tell; it has the same two, and a third behind them."""


@bare_kernel
def pair_columns(
    events: Any,
    running: Array,
    count: int,
    numbers: Array,
    codes: Array,
    bits: Array,
    process: Array,
    key: Array,
) -> int:
    """Add operations to `count` of them from more events; how many there are then, -1 if events do not add up.

    `running` has a place for every process: the number of its open operation, from 1 on; 0 if it has none. `numbers`,
    `codes` and `bits` have a row for each of the names above. An answer with another value than the question is noted.
    """
    for row in range(events.process.shape[0]):
        if events.info[row] & NO_CLIENT:
            continue
        client = events.process[row]
        packed = events.info[row]
        place = running[client] - 1
        if packed & 3 == 0:
            if place >= 0:
                return -1
            numbers[INVOKE_AT, count], numbers[INVOKE_NS, count] = events.index[row], events.time_ns[row]
            numbers[COMPLETE_AT, count] = numbers[COMPLETE_NS, count] = -1
            numbers[OLD, count], numbers[NEW, count] = events.old[row], events.new[row]
            codes[F, count], codes[NODE, count] = events.f[row], events.node[row]
            codes[ROLE, count], codes[MODE, count] = events.role[row], events.mode[row]
            codes[ERROR, count] = 0
            bits[TYPE, count] = INFO
            bits[KIND, count] = min(packed >> 2 & 3, OTHER)
            bits[IS_FINAL, count] = packed & FINAL != 0
            bits[ANSWER, count] = 0
            process[count] = client
            key[count] = events.key[row]
            count += 1
            running[client] = count
            continue
        if (
            place < 0
            or events.f[row] != codes[F, place]
            or (events.key[row] != 0 and events.key[row] != key[place])
        ):
            return -1
        running[client] = 0
        numbers[COMPLETE_AT, place], numbers[COMPLETE_NS, place] = events.index[row], events.time_ns[row]
        bits[TYPE, place] = packed & 3
        codes[ERROR, place] = events.error[row]
        if events.node[row]:
            codes[NODE, place] = events.node[row]
        if events.role[row]:
            codes[ROLE, place] = events.role[row]
        if events.mode[row]:
            codes[MODE, place] = events.mode[row]
        answer, asked = packed >> 2 & 3, bits[KIND, place]
        if not answer and events.new[row] == ABSENT:
            if packed & 3 == OK and asked == OTHER:
                bits[ANSWER, place] = UNTOLD
            continue
        is_same = numbers[OLD, place] == events.old[row] and numbers[NEW, place] == events.new[row]
        if asked or numbers[NEW, place] != ABSENT or packed & 3 == OK:
            if answer == OTHER or asked == OTHER or (answer == TRIPLE and packed & 3 == OK):
                bits[ANSWER, place] = UNTOLD
            elif answer == TRIPLE and asked == PAIR:
                bits[ANSWER, place] = TRIMMED if is_same else CHANGED
            elif asked == answer:
                bits[ANSWER, place] = 0 if is_same else CHANGED
            elif packed & 3 == OK:
                bits[ANSWER, place] = CHANGED
        if packed & 3 == OK:
            bits[KIND, place] = min(answer, OTHER)
            numbers[OLD, place] = events.old[row] if answer != TRIPLE else ABSENT
            numbers[NEW, place] = events.new[row] if answer != TRIPLE else ABSENT
    return count


@bare_kernel
def group(key: Array, bounds: Array, order: Array) -> None:
    """Put rows in order of their keys, within a key in their own: those of k stand from bounds[k] to bounds[k + 1].

    `bounds` comes filled with 0, and has two places more than there are keys.
    """
    for row in range(key.shape[0]):
        bounds[key[row] + 2] += 1
    for place in range(2, bounds.shape[0]):
        bounds[place] += bounds[place - 1]
    for row in range(key.shape[0]):
        # `bounds[k + 1]` is the next place of key k while rows are put in order, and in the end where k + 1 begins.
        at = bounds[key[row] + 1]
        order[at] = row
        bounds[key[row] + 1] = at + 1
