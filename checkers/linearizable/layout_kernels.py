"""Lays calls out for the compiled search: events in order, bits for calls, numbers for equal mutators; one pass each.

Before that it makes the history smaller without changing its verdict:

- Values that no call asks about are merged into one, because no call can tell them apart.
- A crashed call is left out if no call asks about what it leaves after it was invoked. Its class is *retired* at the
  last return at which a call could have. A crashed update asks for as long as some call asks about what it leaves. A
  refused compare asks about every value but its own: where one exists, crashed writes that no call reads stay.
"""

from __future__ import annotations

from typing import Any

from checkers.compiled import bare_kernel, inlined_kernel

Array = Any  # numpy's, of int64

# the same as in `search_kernels`: each file of kernels stands alone
NEVER = 1 << 60
OBSERVE, REFUSE, OVERWRITE, UPDATE = 0, 1, 2, 3
INVOKE, RETURN, RETIRE = 0, 1, 2
KIND, OLD, NEW, ACTION, WORD, MASK, RETURNS, BIT = 0, 1, 2, 3, 4, 5, 6, 7
BASE, OP, INVOKED, TRIED_AT, TOTAL = 0, 1, 2, 3, 4
BITS = 62

# places in `sizes`
N_EVENTS, N_LIVE_BITS, N_CRASHED, N_ACTIONS, N_CLASSES, KLASS_AT = 0, 1, 2, 3, 4, 5
SIZES = 6
LEFT_OUT = -2  # in WORD
ABSENT = -(1 << 62)


@bare_kernel
def see(complete: Array, kind: Array, old: Array, new: Array, asked: Array, last: Array) -> None:
    """Fill `asked` (1 for values that some call asks about) and `last` (the rank from which on no call does).

    Both have a place for every value and one more for those that no call asks about; they come filled with 0 and -1.
    """
    calls, values = kind.shape[0], asked.shape[0] - 1
    best, second, best_value = -1, -1, -1
    crashed = 0
    for call in range(calls):
        if complete[call] >= NEVER:
            # It asks, but proves nothing: its `last` comes from those who may see what it leaves.
            crashed += 1
            if kind[call] == UPDATE:
                asked[old[call]] = 1
        elif kind[call] == REFUSE:
            asked[old[call]] = 1
            if old[call] == best_value:
                best = max(best, complete[call])
            elif complete[call] > best:
                best, second, best_value = complete[call], best, old[call]
            else:
                second = max(second, complete[call])
        elif kind[call] != OVERWRITE:
            asked[old[call]] = 1
            last[old[call]] = max(last[old[call]], complete[call])
    # A refused compare sees every value but its own, also those that no call reads.
    if best >= 0:
        for value in range(values + 1):
            last[value] = max(last[value], second if value == best_value else best)
    # To a fixed point, because a crashed update may lead to what another one asks for.
    again = crashed > 0
    while again:
        again = False
        for call in range(calls):
            if complete[call] >= NEVER and kind[call] == UPDATE:
                after = new[call] if asked[new[call]] else values
                if last[after] > last[old[call]]:
                    last[old[call]] = last[after]
                    again = True


@bare_kernel
def number(
    complete: Array, kind: Array, old: Array, new: Array, asked: Array, ops: Array, pairs: Array, first: int
) -> int:
    """Fill `ops`, with one number for equal mutators; how many numbers there are.

    `pairs` is a table by hash of (old, new, number), filled with -1, at least twice as long as there are updates.
    """
    values = asked.shape[0] - 1
    count = first
    for call in range(kind.shape[0]):
        ops[call, KIND] = kind[call]
        ops[call, OLD] = old[call]
        ops[call, WORD] = -1
        ops[call, RETURNS] = complete[call]
        ops[call, NEW] = -1
        ops[call, ACTION] = 0
        if kind[call] <= REFUSE:
            continue
        # No call can tell these values apart, so one place behind all of them stands for them.
        after = new[call] if asked[new[call]] else values
        ops[call, NEW] = after
        ops[call, ACTION] = after
        if kind[call] == OVERWRITE:
            continue
        place = ((old[call] * 40503 + after * 30011) & 0x3FFFFFFF) % pairs.shape[0]
        while pairs[place, 0] >= 0 and (pairs[place, 0] != old[call] or pairs[place, 1] != after):
            place = place + 1 if place + 1 < pairs.shape[0] else 0
        if pairs[place, 0] < 0:
            pairs[place, 0] = old[call]
            pairs[place, 1] = after
            pairs[place, 2] = count
            count += 1
        ops[call, ACTION] = pairs[place, 2]
    return count


@bare_kernel
def number_plainly(complete: Array, kind: Array, action: Array, ops: Array) -> None:
    """Fill `ops` for a model with steps in a table."""
    for call in range(kind.shape[0]):
        ops[call, KIND] = kind[call]
        ops[call, OLD] = ops[call, NEW] = -1
        ops[call, ACTION] = action[call]
        ops[call, WORD] = -1
        ops[call, RETURNS] = complete[call]


@bare_kernel
def lay_out(
    invoke: Array, last: Array, ops: Array, klass: Array, at: Array, ending: Array, events: Array, crashed: Array,
    free: Array, sizes: Array,
) -> None:  # fmt: skip
    """Fill `events`, the bits in `ops`, the classes, and `crashed` (calls by their bits, counted from the live ones').

    `at` has a place for every rank, filled with -1; `ending` the same, or is empty if no class is ever retired.
    """
    n_crashed = n_classes = 0
    for call in range(invoke.shape[0]):
        if ops[call, RETURNS] < NEVER:
            at[invoke[call]] = (call << 2) | INVOKE
            at[ops[call, RETURNS]] = (call << 2) | RETURN
            continue
        # Not only what no call ever asks about: what was asked before it began, and has returned, cannot see it either.
        unseen = ending.shape[0] > 0 and ops[call, KIND] > REFUSE and last[ops[call, NEW]] < invoke[call]
        if ops[call, KIND] <= REFUSE or unseen:
            ops[call, WORD] = LEFT_OUT
            continue
        at[invoke[call]] = (call << 2) | INVOKE
        klass[ops[call, ACTION], TOTAL] += 1
        n_crashed += 1
    for call in range(invoke.shape[0]):
        action = ops[call, ACTION]
        if ops[call, RETURNS] < NEVER or ops[call, WORD] == LEFT_OUT or klass[action, OP] > 0:
            continue
        klass[action, OP] = call + 1  # 0 is none, until the end
        klass[action, BASE] = 0 if n_classes == 0 else sizes[N_CRASHED]
        sizes[N_CRASHED] = klass[action, BASE] + klass[action, TOTAL]
        n_classes += 1
        if ending.shape[0] and last[ops[call, NEW]] < NEVER:
            rank = last[ops[call, NEW]]
            klass[action, TRIED_AT] = ending[rank]  # the next class that ends there, until the end
            ending[rank] = action
    sizes[N_CRASHED] = n_crashed
    sizes[N_CLASSES] = n_classes
    order_events(at, ending, ops, klass, events, crashed, free, sizes)
    for call in range(invoke.shape[0]):
        action = ops[call, ACTION]
        if ops[call, RETURNS] >= NEVER and ops[call, WORD] != LEFT_OUT and klass[action, OP] == call + 1:
            klass[action, OP] = call
            klass[action, BASE] += sizes[N_LIVE_BITS]
            klass[action, INVOKED] = klass[action, TRIED_AT] = 0


@bare_kernel
def order_events(
    at: Array,
    ending: Array,
    ops: Array,
    klass: Array,
    events: Array,
    crashed: Array,
    free: Array,
    sizes: Array,
) -> None:
    """Put the events in order and give live calls bits for as long as they run."""
    count = bits = n_free = 0
    for rank in range(at.shape[0]):
        event = at[rank]
        if event < 0:
            continue
        events[count] = event
        count += 1
        call = event >> 2
        if event & 3 == RETURN:
            # Behind the return: the call that returns here may be the last that could see the class.
            free[n_free] = ops[call, BIT]
            n_free += 1
            action = ending[rank] if ending.shape[0] else -1
            while action >= 0:
                events[count] = ((klass[action, OP] - 1) << 2) | RETIRE
                count += 1
                action = klass[action, TRIED_AT]
        elif ops[call, RETURNS] < NEVER:
            bit = bits
            if n_free:
                n_free -= 1
                bit = free[n_free]
            else:
                bits += 1
            ops[call, BIT] = bit
            ops[call, WORD] = bit // BITS
            ops[call, MASK] = 1 << (bit % BITS)
        else:
            action = ops[call, ACTION]
            crashed[klass[action, BASE] + klass[action, INVOKED]] = call
            klass[action, INVOKED] += 1
    sizes[N_EVENTS] = count
    sizes[N_LIVE_BITS] = bits


@bare_kernel
def regroup(
    key: Array, invoke: Array, complete: Array, old: Array, new: Array, at: Array, begun: Array, bounds: Array,
    table: Array, values: Array,
) -> None:  # fmt: skip
    """Give the calls of many registers ranks and values that count from 0 within each register; all in place.

    Calls stand register by register, `bounds` apart; `at` has a place for every rank, filled with -1, `begun` one for
    every register, filled with 0. ABSENT becomes 0. `table` is one by hash of (value, code,
    register), filled with -1, at least four times as long as a register has calls; `values` becomes how many there are.
    """
    for call in range(key.shape[0]):
        at[invoke[call]] = call << 1
        if complete[call] < NEVER:
            at[complete[call]] = (call << 1) | 1
    for rank in range(at.shape[0]):
        if at[rank] < 0:
            continue
        call = at[rank] >> 1
        register = key[call]
        if at[rank] & 1:
            complete[call] = begun[register]
        else:
            invoke[call] = begun[register]
        begun[register] += 1
    for register in range(bounds.shape[0] - 1):
        count = 1
        for call in range(bounds[register], bounds[register + 1]):
            count = coded(old, call, count, register, table)
            count = coded(new, call, count, register, table)
        values[register] = count


@inlined_kernel
def coded(column: Array, call: int, count: int, register: int, table: Array) -> int:
    """Put a code in place of a value; how many there are."""
    value = column[call]
    if value == ABSENT:
        column[call] = 0
        return count
    place = (((value ^ (value >> 17) ^ (value >> 34)) & 0x3FFFFFFF) * 40503 & 0x3FFFFFFF) % table.shape[0]
    while table[place, 2] == register and table[place, 0] != value:
        place = place + 1 if place + 1 < table.shape[0] else 0
    if table[place, 2] != register:
        table[place, 0] = value
        table[place, 1] = count
        table[place, 2] = register
        count += 1
    column[call] = table[place, 1]
    return count


@bare_kernel
def lay_out_many(
    bounds: Array, values: Array, invoke: Array, complete: Array, kind: Array, old: Array, new: Array, asked: Array,
    last: Array, pairs: Array, at: Array, ending: Array, free: Array, ops: Array, klass: Array, events: Array,
    crashed: Array, sizes: Array,
) -> None:  # fmt: skip
    """Lay out the calls of many registers, each by itself, within `bounds` in `ops` and `crashed`.

    Its part of `events` begins at three times its bound, that of `klass` where KLASS_AT of its row in `sizes` says.
    The arguments before `ops` are working space that each register uses again.
    """
    begins = 0
    for register in range(bounds.shape[0] - 1):
        first, end = bounds[register], bounds[register + 1]
        count, places = end - first, values[register] + 1
        top, crash = 0, False
        for call in range(first, end):
            top = max(top, invoke[call] + 1)
            if complete[call] < NEVER:
                top = max(top, complete[call] + 1)
            else:
                crash = True
        asked[:places] = 0
        last[:places] = -1
        pairs[: 2 * count + 2, 0] = -1
        at[:top] = -1
        ending[:top] = -1
        own = (complete[first:end], kind[first:end], old[first:end], new[first:end])
        own_ops = ops[first:end]
        see(own[0], own[1], own[2], own[3], asked[:places], last[:places])
        actions = number(
            own[0], own[1], own[2], own[3], asked[:places], own_ops, pairs[: 2 * count + 2], places
        )
        own_klass = klass[begins : begins + actions]
        own_klass[:, :] = 0
        sizes[register, :] = 0
        lay_out(
            invoke[first:end], last[:places], own_ops, own_klass, at[:top], ending[: top if crash else 0],
            events[3 * first : 3 * end], crashed[first:end], free, sizes[register],
        )  # fmt: skip
        sizes[register, N_ACTIONS] = actions
        sizes[register, KLASS_AT] = begins
        begins += actions
