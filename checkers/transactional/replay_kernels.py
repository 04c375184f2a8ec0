"""Kernels that replay a proof: the answers of the transactions in its order, and whether time allows that order.

They know the columns and the order alone: neither versions nor dependencies, which the search may get wrong.
An order is of nodes: t is transaction t where it reads, n + t where it commits. In a serial order a transaction
stands once, and does both there.
"""

from __future__ import annotations

import numpy
from numpy import int32, int64

from checkers.compiled import kernel
from checkers.transactional.columns import FAIL, NIL, OK, PREDICATE_READ, WRITE, Int8s, Int32s, Int64s

NONE = -1


@kernel
def incomplete(order: Int32s, outcome: Int8s, serial: bool) -> bool:
    """Whether an ok transaction is missing, a failed one is there, one stands twice, or commits before it reads."""
    count = len(outcome)
    at = numpy.full(2 * count, NONE, int32)
    for place in range(len(order)):
        node = order[place]
        if node < 0 or node >= (count if serial else 2 * count) or at[node] != NONE:
            return True
        at[node] = place
    for txn in range(count):
        ends = at[txn] if serial else at[count + txn]
        if (at[txn] == NONE) != (ends == NONE) or ends < at[txn]:
            return True
        if (outcome[txn] == OK and ends == NONE) or (outcome[txn] == FAIL and ends != NONE):
            return True
    return False


@kernel
def early(order: Int32s, invoke: Int64s, ends: Int64s, session: Int64s, sessions: int, serial: bool) -> int:
    """A transaction that reads before one of its session commits that was over before it began, or NONE.

    `session`: 0 … sessions-1; one for all stands for real time.
    """
    count = len(invoke)
    earliest = numpy.full(sessions, 2**62, int64)
    for back in range(len(order)):
        node = order[len(order) - 1 - back]
        txn = node % count
        if node < count and earliest[session[txn]] < invoke[txn]:
            return int(txn)
        if serial or node >= count:
            earliest[session[txn]] = min(earliest[session[txn]], ends[txn])
    return NONE


@kernel
def is_list_right(
    micro: int,
    begin: int,
    f: Int8s,
    key: Int32s,
    value: Int64s,
    length: Int32s,
    elements: Int64s,
    written: Int64s,
    room: int,
    count: int,
) -> bool:
    """Whether a read shows the `count` values that stand in `written` from `room` on, and then its own appends."""
    place = length[micro]
    for back in range(micro - begin):
        other = micro - 1 - back
        if f[other] == WRITE and key[other] == key[micro]:
            place -= 1
            if place < 0 or elements[value[micro] + place] != value[other]:
                return False
    if place != count:
        return False
    for index in range(count):
        if elements[value[micro] + index] != written[room + index]:
            return False
    return True


@kernel
def is_register_right(micro: int, begin: int, f: Int8s, key: Int32s, value: Int64s, state: int) -> bool:
    """Whether a read gives the value that its transaction wrote last, or else `state`."""
    for back in range(micro - begin):
        other = micro - 1 - back
        if f[other] == WRITE and key[other] == key[micro]:
            return bool(value[micro] == value[other])
    return bool(value[micro] == state)


@kernel
def contradicted(
    order: Int32s,
    serial: bool,
    lists: bool,
    predicates: bool,
    first_wins: bool,
    first: Int64s,
    outcome: Int8s,
    f: Int8s,
    key: Int32s,
    value: Int64s,
    length: Int32s,
    elements: Int64s,
    key_count: int,
) -> int:
    """A transaction that would have read a different value, or overwrote a version that it did not see, or NONE.

    `predicates`: whether reads by predicates must show the present state too (repeatable read leaves them free).
    `first_wins`: whether a version must have been seen to be overwritten.
    """
    count = len(outcome)
    room = numpy.zeros(key_count + 1, int64)
    for micro in range(len(f)):
        if f[micro] == WRITE and lists:
            room[key[micro] + 1] += 1
    for on in range(key_count):
        room[on + 1] += room[on]
    written = numpy.zeros(room[key_count], int64)
    state = numpy.zeros(key_count, int64) if lists else numpy.full(key_count, NIL, int64)
    changed = numpy.full(key_count, NONE, int64)
    looked = numpy.full(count, NONE, int64)
    for place in range(len(order)):
        txn = order[place] % count
        begin, end = first[txn], first[txn + 1]
        if order[place] < count:
            looked[txn] = place
            for micro in range(begin, end):
                if f[micro] == WRITE or outcome[txn] != OK or length[micro] < 0:
                    continue
                if f[micro] == PREDICATE_READ and not predicates:
                    continue
                on = key[micro]
                if lists:
                    right = is_list_right(
                        micro, begin, f, key, value, length, elements, written, room[on], state[on]
                    )
                else:
                    right = is_register_right(micro, begin, f, key, value, state[on])
                if not right:
                    return int(txn)
        if serial or order[place] >= count:
            for micro in range(begin, end):
                if f[micro] != WRITE:
                    continue
                on = key[micro]
                if first_wins and changed[on] > looked[txn]:
                    return int(txn)
                if lists:
                    written[room[on] + state[on]] = value[micro]
                    state[on] += 1
                else:
                    state[on] = value[micro]
            for micro in range(begin, end):
                if f[micro] == WRITE:
                    # Behind the check of all its writes: it may write a key twice.
                    changed[key[micro]] = place
    return NONE
