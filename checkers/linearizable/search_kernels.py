"""The forward search as kernels: numbers in arrays, no Python objects. `forward` prepares and reads them.

It is the search of `search` (read its docstring first): the events one by one, at every position all configurations
that could be true there. The difference is their form:

- A configuration is a row of numbers: state, node of the log, link, gone, then the words of two masks, owed and used.
  A word holds 62 bits, so that no sign gets in the way; there are as many words as the history needs.
- A live call has a bit while it runs. Of equal crashed calls (a class) each has a bit of its own for ever; they lie
  side by side and are used from the first on.
- Of equal live calls the one that returns first is used first: the other can do what it did, for longer.
- A class with a value that no later call can see is retired: its bits are cleared, and rows that differed only there
  merge.
- Rows lie in buckets by state and by the live updates used. Only within a bucket can one row dominate another.
- Every linearized mutator is a node (call, event, node before): the log from which an order is read at the end.

`advance` works until it ends or needs something (an answer below), then stands still and goes on when called again:
what it has begun can be done again without harm.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from checkers.compiled import bare_kernel, inlined_kernel

Array = Any  # numpy's, of int64
Number = Any  # one of an array

# answers of advance
YES, NO, PAUSED, ROWS_FULL, NODES_FULL, UNKNOWN_STEPS, LOST = 0, 1, 2, 3, 4, 5, 6

# kinds of calls. In register mode a REFUSE is an observation that the value is not `old`
OBSERVE, REFUSE, OVERWRITE, UPDATE = 0, 1, 2, 3

# types of events
INVOKE, RETURN, RETIRE = 0, 1, 2

# places in regs
EVENT, HEAD, NOW, N_NOW, N_AFTER, N_SEEN, EPOCH, N_NODES = 0, 1, 2, 3, 4, 5, 6, 7
MOST, N_LIVE, N_WATCHING, N_CLASSES, TRIED, N_MISSES, BUSY, STEPS = 8, 9, 10, 11, 12, 13, 14, 15
TOP, DEPTH, FAR, ALTERNATIVES, KNOWN = 16, 17, 18, 19, 20
REGS = 21

# columns of ops: one row a call. WORD is -1 for a crashed call: its bits belong to its class
KIND, OLD, NEW, ACTION, WORD, MASK, RETURNS, BIT = 0, 1, 2, 3, 4, 5, 6, 7
OPS = 8

# columns of klass: one row an action
BASE, OP, INVOKED, TRIED_AT, TOTAL = 0, 1, 2, 3, 4

# rows of pending (lists with lengths in regs) and of masks
LIVE, WATCHING, CLASSES = 0, 1, 2
OVERWRITES, UPDATES = 0, 1

BITS = 62
NEVER = 1 << 60  # the return of a call that never returns
STATE, NODE, LINK, GONE, MASKS = 0, 1, 2, 3, 4
ILLEGAL, UNKNOWN = -1, -2
MISSES_MAX = 4096
SEEN = 2

# what stands before the row in an entry of a stack
ENTRY_EVENT, ENTRY_NODES, ENTRY_OPEN, ENTRY_TAKEN, ENTRY = 0, 1, 2, 3, 4
AHEAD = 32  # events that a choice looks ahead
ALTERNATIVES_MAX = 2_000  # looked at in one place before the walk is given up
ALTERNATIVE_STEPS = 20_000_000  # to list those of one event, some 0.1 s: no time limit is looked at meanwhile


class Search(NamedTuple):
    """All that a search has, in arrays of int64.

    - `regs`: what it remembers; `events`: call << 2 | type; `ops`: a row a call; `klass`: a row an action
    - `pending`: the calls that run, three lists; `masks`: the bits of live mutators, OVERWRITES and UPDATES
    - `crashed`: crashed calls by their bits
    - `rows`: configurations: those before the event and those after it (which is which alternates: NOW), and SEEN
    - `heads`: for the rows after and those seen, the epoch of each bucket and its first row; an older epoch's is empty
    - `nodes`: the log; `table`: steps that were looked up (one row: there are none); `misses`: the steps to look up
    """

    regs: Array
    events: Array
    ops: Array
    klass: Array
    pending: Array
    masks: Array
    crashed: Array
    rows: Array
    heads: Array
    nodes: Array
    table: Array
    misses: Array


@inlined_kernel
def step(search: Any, op: int, state: int) -> Number:
    """The state after the call, ILLEGAL, or (where steps are looked up) UNKNOWN."""
    ops = search.ops
    if search.table.shape[0] > 1:
        return look_up(search.table, state, ops[op, ACTION])
    kind = ops[op, KIND]
    if kind == OVERWRITE:
        return ops[op, NEW]
    if kind == REFUSE:
        return ILLEGAL if state == ops[op, OLD] else state
    if state != ops[op, OLD]:
        return ILLEGAL
    return ops[op, NEW] if kind == UPDATE else state


@inlined_kernel
def look_up(table: Array, state: int, action: int) -> Number:
    """The step that was noted for the pair."""
    size = table.shape[0]
    place = ((state * 40503 + action * 30011) & 0x3FFFFFFF) % size
    while table[place, 0] >= 0:
        if table[place, 0] == state and table[place, 1] == action:
            return table[place, 2]
        place = place + 1 if place + 1 < size else 0
    return UNKNOWN


@bare_kernel
def note_steps(table: Array, triples: Array) -> None:
    """Put (state, action, state after) into the table, which must have room."""
    size = table.shape[0]
    for row in range(triples.shape[0]):
        place = ((triples[row, 0] * 40503 + triples[row, 1] * 30011) & 0x3FFFFFFF) % size
        while table[place, 0] >= 0:
            place = place + 1 if place + 1 < size else 0
        table[place, 0] = triples[row, 0]
        table[place, 1] = triples[row, 1]
        table[place, 2] = triples[row, 2]


@inlined_kernel
def asked(search: Any, op: int, state: int) -> Number:
    """As `step`; for an UNKNOWN one ILLEGAL, after it was noted in `misses`."""
    result = step(search, op, state)
    if result != UNKNOWN:
        return result
    # ILLEGAL stands in for the step: whoever asks looks at N_MISSES before anything follows from it.
    misses, action = search.misses, search.ops[op, ACTION]
    count = search.regs[N_MISSES]
    for miss in range(count):
        if misses[miss, 0] == state and misses[miss, 1] == action:
            return ILLEGAL
    if count < MISSES_MAX:
        misses[count, 0] = state
        misses[count, 1] = action
        search.regs[N_MISSES] = count + 1
    return ILLEGAL


@inlined_kernel
def keep(search: Any, rows: Array, count: int, heads: Array) -> Number:
    """Keep the row at `count` unless a row that is at least as good is there; mark those that it is better than.

    The new number of rows.
    """
    masks = search.masks
    words = masks.shape[1]
    epoch = search.regs[EPOCH]
    state = rows[count, STATE]
    # A dominated row is in the same bucket: a live update is owed until it is used, so both used the same ones.
    # The hash itself costs time and not truth: rows are compared in full below.
    hashed = state * 0x9E3779B1
    for word in range(words):
        hashed = (hashed ^ (rows[count, MASKS + words + word] & masks[UPDATES, word])) * 0x2545F491
        hashed = hashed ^ (hashed >> 29)
    place = hashed & (heads.shape[0] - 1)
    if heads[place, 0] != epoch:
        heads[place, 0] = epoch
        heads[place, 1] = -1
    before = -1
    other = heads[place, 1]
    while other >= 0:
        search.regs[STEPS] += 1
        after = rows[other, LINK]
        # Different states may share a bucket.
        alike = rows[other, STATE] == state
        worse = alike
        better = alike
        for word in range(words):
            if not alike:
                break
            owed, owed_there = rows[count, MASKS + word], rows[other, MASKS + word]
            used, used_there = rows[count, MASKS + words + word], rows[other, MASKS + words + word]
            alike = ((used ^ used_there) & masks[UPDATES, word]) == 0
            worse = worse and (owed_there & ~owed) == 0 and (used_there & ~used) == 0
            better = better and (owed & ~owed_there) == 0 and (used & ~used_there) == 0
        if alike and worse:
            if before >= 0:  # to the front: it is likely to be better than the next one, too
                rows[before, LINK] = after
                rows[other, LINK] = heads[place, 1]
                heads[place, 1] = other
            return count
        if alike and better:
            # Only marked: HEAD and the links name rows by their places. `packed` closes the gaps.
            rows[other, GONE] = 1
            if before < 0:
                heads[place, 1] = after
            else:
                rows[before, LINK] = after
        else:
            before = other
        other = after
    rows[count, LINK] = heads[place, 1]
    rows[count, GONE] = 0
    heads[place, 1] = count
    return count + 1


@inlined_kernel
def copy_row(rows: Array, place: int, others: Array, other: int) -> None:
    """Copy row `other` of the second array to row `place` of `rows`."""
    for column in range(rows.shape[1]):
        rows[place, column] = others[other, column]


@inlined_kernel
def packed(rows: Array, count: int) -> int:
    """Close the gaps that dominated rows left; the new number of rows."""
    kept = 0
    for row in range(count):
        if rows[row, GONE] == 0:
            if kept < row:
                copy_row(rows, kept, rows, row)
            kept += 1
    return kept


@inlined_kernel
def insert_live(search: Any, op: int) -> None:
    """Live mutators stand in the order in which they return."""
    pending = search.pending
    # `expand` takes of equal actions the first in this list: the others can do the same for longer.
    place = search.regs[N_LIVE]
    while place > 0 and search.ops[pending[LIVE, place - 1], RETURNS] > search.ops[op, RETURNS]:
        pending[LIVE, place] = pending[LIVE, place - 1]
        place -= 1
    pending[LIVE, place] = op
    search.regs[N_LIVE] += 1


@inlined_kernel
def take_out(pending: Array, which: int, count: int, op: int) -> int:
    """Take `op` out of a list of `count`; how many are left."""
    place = 0
    while pending[which, place] != op:
        place += 1
    while place + 1 < count:
        pending[which, place] = pending[which, place + 1]
        place += 1
    return count - 1


@inlined_kernel
def first_unused(rows: Array, place: int, words: int, base: int, invoked: int) -> int:
    """The first unused bit of a class, -1 if every call of it was used."""
    # Not up to TOTAL: the later calls of the class have not been invoked yet.
    for bit in range(base, base + invoked):
        if (rows[place, MASKS + words + bit // BITS] >> (bit % BITS)) & 1 == 0:
            return bit
    return -1


@inlined_kernel
def successor(
    search: Any,
    rows: Array,
    place: int,
    others: Array,
    other: int,
    state: int,
    word: int,
    mask: int,
    overwrites: bool,
) -> None:
    """The row after a mutator with that bit was linearized, but for the observations that it makes legal."""
    words = search.masks.shape[1]
    rows[place, STATE] = state
    rows[place, NODE] = others[other, NODE]
    for index in range(words):
        owed = others[other, MASKS + index]
        # Behind an overwrite the pending ones are optional: each may have stood unseen right before it. Not behind
        # an update, which has seen the state.
        rows[place, MASKS + index] = owed & ~search.masks[OVERWRITES, index] if overwrites else owed
        rows[place, MASKS + words + index] = others[other, MASKS + words + index]
    rows[place, MASKS + word] &= ~mask
    rows[place, MASKS + words + word] |= mask


@bare_kernel
def advance(search: Any, budget: int, rows_max: int, stop: int) -> int:
    """Go on from where `regs` says to event `stop`; about `budget` steps at most. One of the answers above."""
    regs, ops, rows = search.regs, search.ops, search.rows
    words = search.masks.shape[1]
    size = rows.shape[1]
    end = regs[STEPS] + budget
    while regs[EVENT] < stop:
        if regs[STEPS] > end:
            return PAUSED
        event = search.events[regs[EVENT]]
        op = event >> 2
        event_type = event & 3
        regs[STEPS] += 1 + (regs[N_NOW] >> 2)
        if event_type == INVOKE:
            # EVENT stays: the call begins again once its steps are known.
            if not begin(search, op):
                return UNKNOWN_STEPS
            regs[EVENT] += 1
            continue
        if event_type == RETIRE:
            retire(search, op)
            regs[EVENT] += 1
            continue
        word, mask = ops[op, WORD], ops[op, MASK]
        observes = ops[op, KIND] <= REFUSE
        now = rows[regs[NOW]]
        after = rows[1 - regs[NOW]]
        seen = rows[SEEN]
        if regs[BUSY] == 0:
            at = MASKS + word if observes else MASKS + words + word
            done = True
            for row in range(regs[N_NOW]):
                if (now[row, at] & mask == 0) != observes:
                    done = False
                    break
            # Every row has linearized the call by now. An overwrite that is optional and unused is not done: it may be
            # used now, or never.
            if done:
                for row in range(regs[N_NOW]):
                    now[row, MASKS + words + word] &= ~mask
                end_call(search, op)
                regs[EVENT] += 1
                continue
            # Machine code does not check indexes: here and below, room is looked at before rows are written.
            if size < 2 * regs[N_NOW] + 64:
                return ROWS_FULL
            # Before the first `keep`: the buckets still name rows of the event before.
            regs[EPOCH] += 1
            regs[N_AFTER] = 0
            regs[N_SEEN] = 0
            regs[HEAD] = 0
            for row in range(regs[N_NOW]):
                owes = now[row, MASKS + word] & mask
                uses = now[row, MASKS + words + word] & mask
                if owes or not (observes or uses):
                    copy_row(seen, regs[N_SEEN], now, row)
                    regs[N_SEEN] = keep(search, seen, regs[N_SEEN], search.heads[1])
                if not owes:
                    copy_row(after, regs[N_AFTER], now, row)
                    # The bit goes to the next call that begins.
                    after[regs[N_AFTER], MASKS + words + word] &= ~mask
                    regs[N_AFTER] = keep(search, after, regs[N_AFTER], search.heads[0])
            regs[BUSY] = 1
        while regs[HEAD] < regs[N_SEEN]:
            if regs[STEPS] > end or regs[N_AFTER] + regs[N_SEEN] > rows_max:
                return PAUSED
            # What one `expand` adds at most: a row and a node for each pending mutator and the target.
            room = regs[N_LIVE] + regs[N_CLASSES] + 2
            if max(regs[N_AFTER], regs[N_SEEN]) + room >= size:
                return ROWS_FULL
            if regs[N_NODES] + room >= search.nodes.shape[0]:
                return NODES_FULL
            if seen[regs[HEAD], GONE] == 0:
                expand(search, op, after, seen)
                # HEAD stays: the row is expanded again, and `keep` drops what it had added already.
                if regs[N_MISSES]:
                    return UNKNOWN_STEPS
            regs[HEAD] += 1
        regs[N_AFTER] = packed(after, regs[N_AFTER])
        if regs[N_AFTER] == 0:
            return NO
        regs[BUSY] = 0
        regs[NOW] = 1 - regs[NOW]
        regs[N_NOW] = regs[N_AFTER]
        regs[MOST] = max(regs[MOST], regs[N_NOW])
        end_call(search, op)
        regs[EVENT] += 1
    return YES


@bare_kernel
def advance_many(
    bounds: Array,
    klass_at: Array,
    sizes: Array,
    crashed: Array,
    search: Any,
    budget: int,
    rows_max: int,
    results: Array,
) -> None:
    """Search many registers laid out by `layout_kernels.lay_out_many`, those with masks that fit in a word.

    `search` has the events, calls and classes of all registers. `sizes` has of each its events, live bits and crashed
    calls, `crashed` all crashed calls. `results` gets of each an answer of `advance`, the call that failed and the most
    configurations. A register with an answer other than YES and NO is still undecided.
    """
    regs, events, ops, klass, pending, masks, by_bit, rows, heads, nodes, table, misses = search
    for register in range(bounds.shape[0] - 1):
        first, end, begins = bounds[register], bounds[register + 1], klass_at[register]
        n_events, live, n_crashed = sizes[register, 0], sizes[register, 1], sizes[register, 2]
        results[register, 0] = PAUSED
        if live + n_crashed > BITS:
            continue
        epoch = regs[EPOCH]  # older ones stand in heads
        regs[:] = 0
        regs[EPOCH] = epoch
        regs[N_NOW] = regs[MOST] = 1
        masks[:, :] = 0
        rows[0, 0, :] = 0
        rows[0, 0, NODE] = -1
        for bit in range(n_crashed):
            by_bit[live + bit] = crashed[first + bit]
        own_events = events[3 * first : 3 * first + n_events]
        own_klass = klass[begins : klass_at[register + 1]]
        own = Search(
            regs,
            own_events,
            ops[first:end],
            own_klass,
            pending,
            masks,
            by_bit,
            rows,
            heads,
            nodes,
            table,
            misses,
        )
        answer = advance(own, budget, rows_max, n_events)
        results[register, 0] = answer
        results[register, 1] = own_events[regs[EVENT]] >> 2 if answer == NO else -1
        results[register, 2] = regs[MOST]


@inlined_kernel
def begin(search: Any, op: int) -> bool:
    """An invocation. False if it needs steps that are not known; then nothing was done."""
    regs, ops = search.regs, search.ops
    word, mask = ops[op, WORD], ops[op, MASK]
    if word >= 0:
        now = search.rows[regs[NOW]]
        if ops[op, KIND] <= REFUSE:
            # All steps are asked for before a row is changed, because the call may begin again.
            for row in range(regs[N_NOW]):
                state = now[row, STATE]
                asked(search, op, state)
            if regs[N_MISSES]:
                return False
            for row in range(regs[N_NOW]):
                if step(search, op, now[row, STATE]) == ILLEGAL:
                    now[row, MASKS + word] |= mask
        else:
            for row in range(regs[N_NOW]):
                now[row, MASKS + word] |= mask
    begin_call(search, op)
    return True


@inlined_kernel
def begin_call(search: Any, op: int) -> None:
    """From now on the call is pending."""
    regs, ops = search.regs, search.ops
    word, mask = ops[op, WORD], ops[op, MASK]
    if word < 0:
        action = ops[op, ACTION]
        if search.klass[action, INVOKED] == 0:
            search.pending[CLASSES, regs[N_CLASSES]] = action
            regs[N_CLASSES] += 1
        search.klass[action, INVOKED] += 1
    elif ops[op, KIND] <= REFUSE:
        search.pending[WATCHING, regs[N_WATCHING]] = op
        regs[N_WATCHING] += 1
    else:
        insert_live(search, op)
        search.masks[OVERWRITES if ops[op, KIND] == OVERWRITE else UPDATES, word] |= mask


@inlined_kernel
def end_call(search: Any, op: int) -> None:
    """From now on the live call is not pending."""
    regs, ops = search.regs, search.ops
    if ops[op, KIND] <= REFUSE:
        regs[N_WATCHING] = take_out(search.pending, WATCHING, regs[N_WATCHING], op)
        return
    regs[N_LIVE] = take_out(search.pending, LIVE, regs[N_LIVE], op)
    search.masks[OVERWRITES, ops[op, WORD]] &= ~ops[op, MASK]
    search.masks[UPDATES, ops[op, WORD]] &= ~ops[op, MASK]


@bare_kernel
def retire(search: Any, op: int) -> None:
    """Forget which calls of the class of `op` were used: no later call can see what that class leaves."""
    regs, klass = search.regs, search.klass
    action = search.ops[op, ACTION]
    invoked = klass[action, INVOKED]
    if invoked == 0:
        return
    words = search.masks.shape[1]
    regs[N_CLASSES] = take_out(search.pending, CLASSES, regs[N_CLASSES], action)
    klass[action, INVOKED] = 0
    now = search.rows[regs[NOW]]
    touched = False
    for bit in range(klass[action, BASE], klass[action, BASE] + invoked):
        word, mask = MASKS + words + bit // BITS, 1 << (bit % BITS)
        for row in range(regs[N_NOW]):
            if now[row, word] & mask:
                now[row, word] &= ~mask
                touched = True
    if not touched or regs[N_NOW] == 1:
        return
    # The buckets name rows by places that they are about to lose.
    regs[EPOCH] += 1
    count = 0
    for row in range(regs[N_NOW]):
        if count < row:
            copy_row(now, count, now, row)
        count = keep(search, now, count, search.heads[0])
    regs[N_NOW] = packed(now, count)


@inlined_kernel
def settle(search: Any, rows: Array, place: int) -> None:
    """Linearize the owed observations that are legal in the row's state."""
    regs = search.regs
    regs[STEPS] += regs[N_WATCHING]
    state = rows[place, STATE]
    for index in range(regs[N_WATCHING]):
        op = search.pending[WATCHING, index]
        word, mask = MASKS + search.ops[op, WORD], search.ops[op, MASK]
        if rows[place, word] & mask == 0:
            continue
        if asked(search, op, state) != ILLEGAL:
            rows[place, word] &= ~mask


@inlined_kernel
def helps(search: Any, rows: Array, place: int, state: int, word: int, mask: int, words: int) -> bool:
    """Whether the mutator with that bit, which would leave `state`, makes something legal that the row waits for.

    That is an observation that it owes, or an update that it has not used.
    """
    regs, ops, klass, pending = search.regs, search.ops, search.klass, search.pending
    regs[STEPS] += regs[N_WATCHING] + regs[N_LIVE] + regs[N_CLASSES]
    for index in range(regs[N_WATCHING]):
        op = pending[WATCHING, index]
        if rows[place, MASKS + ops[op, WORD]] & ops[op, MASK] == 0:
            continue
        if asked(search, op, state) != ILLEGAL:
            return True
    for index in range(regs[N_LIVE]):
        op = pending[LIVE, index]
        if ops[op, KIND] != UPDATE or rows[place, MASKS + words + ops[op, WORD]] & ops[op, MASK]:
            continue
        if ops[op, WORD] == word and ops[op, MASK] == mask:
            continue
        if asked(search, op, state) != ILLEGAL:
            return True
    for index in range(regs[N_CLASSES]):
        action = pending[CLASSES, index]
        op = klass[action, OP]
        if ops[op, KIND] != UPDATE:
            continue
        if asked(search, op, state) == ILLEGAL:
            continue
        for bit in range(klass[action, BASE], klass[action, BASE] + klass[action, INVOKED]):
            same = bit // BITS == word and 1 << (bit % BITS) == mask
            if not same and (rows[place, MASKS + words + bit // BITS] >> (bit % BITS)) & 1 == 0:
                return True
    return False


@inlined_kernel
def expand(search: Any, target: int, after: Array, seen: Array) -> None:
    """From the row at HEAD, linearize the target, and, in one row each, the pending calls that may help it."""
    regs, ops, klass, heads = search.regs, search.ops, search.klass, search.heads
    words = search.masks.shape[1]
    row = regs[HEAD]
    state = seen[row, STATE]
    target_word, target_mask = ops[target, WORD], ops[target, MASK]
    observes = ops[target, KIND] <= REFUSE
    regs[TRIED] += 1
    if not observes:
        # The target returns first: no equal call is used in its place.
        klass[ops[target, ACTION], TRIED_AT] = regs[TRIED]
        result = asked(search, target, state)
        if result != ILLEGAL:
            place = regs[N_AFTER]
            overwrites = ops[target, KIND] == OVERWRITE
            successor(search, after, place, seen, row, result, target_word, target_mask, overwrites)
            settle(search, after, place)
            after[place, MASKS + words + target_word] &= ~target_mask
            keep_with_log(search, after, N_AFTER, heads[0], target)
    for index in range(regs[N_LIVE] + regs[N_CLASSES]):
        regs[STEPS] += 1
        if index < regs[N_LIVE]:
            op = search.pending[LIVE, index]
            word, mask = ops[op, WORD], ops[op, MASK]
            action = ops[op, ACTION]
            if klass[action, TRIED_AT] == regs[TRIED] or seen[row, MASKS + words + word] & mask:
                continue
            klass[action, TRIED_AT] = regs[TRIED]
            result = asked(search, op, state)
            if result == ILLEGAL:
                continue
        else:
            action = search.pending[CLASSES, index - regs[N_LIVE]]
            op = klass[action, OP]
            if klass[action, TRIED_AT] == regs[TRIED]:
                continue
            result = asked(search, op, state)
            if result == ILLEGAL:
                continue
            bit = first_unused(seen, row, words, klass[action, BASE], klass[action, INVOKED])
            if bit < 0:
                continue
            op = search.crashed[bit]
            word, mask = bit // BITS, 1 << (bit % BITS)
        # An owed update has to stand somewhere before its return, even where nothing waits for what it leaves.
        must = ops[op, KIND] == UPDATE and seen[row, MASKS + word] & mask
        if not must and not helps(search, seen, row, result, word, mask, words):
            continue
        place = regs[N_SEEN]
        successor(search, seen, place, seen, row, result, word, mask, ops[op, KIND] == OVERWRITE)
        # Observations at once, where they are legal: they change nothing, so earlier is never worse.
        settle(search, seen, place)
        if observes and seen[place, MASKS + target_word] & target_mask == 0:
            copy_row(after, regs[N_AFTER], seen, place)
            keep_with_log(search, after, N_AFTER, heads[0], op)
        else:
            keep_with_log(search, seen, N_SEEN, heads[1], op)


@inlined_kernel
def keep_with_log(search: Any, rows: Array, count_at: int, heads: Array, op: int) -> None:
    """Keep the row that stands behind the last, and note how it came about."""
    count = search.regs[count_at]
    if keep(search, rows, count, heads) > count:
        search.regs[count_at] = count + 1
        rows[count, NODE] = noted(search, op, rows[count, NODE])


@inlined_kernel
def noted(search: Any, op: int, before: int) -> Number:
    """A new node of the log: the call was linearized at this event."""
    regs, nodes = search.regs, search.nodes
    node = regs[N_NODES]
    nodes[node, 0] = op
    nodes[node, 1] = regs[EVENT]
    nodes[node, 2] = before
    regs[N_NODES] = node + 1
    return node


@bare_kernel
def walk(search: Any, budget: int, stack: Array, known: Array) -> Number:
    """Go along one configuration, a register's, choosing at every return what seems best; back where that was wrong.

    The quick way to a yes. YES, PAUSED, or LOST: undecided, `advance` must search from the beginning. `stack` (a ring)
    keeps the last alternatives that were not chosen; `known` are hashes of the configurations that were tried since
    the farthest event was reached.
    """
    regs, events, ops = search.regs, search.events, search.ops
    words = search.masks.shape[1]
    end = regs[STEPS] + budget
    while regs[EVENT] < events.shape[0]:
        if regs[STEPS] > end:
            return PAUSED
        if regs[N_NODES] + regs[N_LIVE] + regs[N_CLASSES] + 4 >= search.nodes.shape[0]:
            return LOST
        regs[STEPS] += 1
        event = regs[EVENT]
        op, event_type = events[event] >> 2, events[event] & 3
        now = search.rows[regs[NOW]]
        if event_type == RETIRE:
            retire(search, op)
        elif event_type == INVOKE:
            word = ops[op, WORD]
            if word >= 0 and (ops[op, KIND] > REFUSE or not fits(search, op, now[0, STATE])):
                now[0, MASKS + word] |= ops[op, MASK]
            begin_call(search, op)
        else:
            observes = ops[op, KIND] <= REFUSE
            at = MASKS + ops[op, WORD] if observes else MASKS + words + ops[op, WORD]
            if (now[0, at] & ops[op, MASK] == 0) != observes:
                push(search, stack, now, 0, 1)
                if not choose(search, op, now):
                    if not back(search, stack, known):
                        return LOST
                    continue
                now[0, MASKS + words + ops[op, WORD]] &= ~ops[op, MASK]
                stack[regs[TOP], ENTRY_TAKEN] = hashed(now, 0, event + 1, words)
            now[0, MASKS + words + ops[op, WORD]] &= ~ops[op, MASK]
            end_call(search, op)
        regs[EVENT] += 1
    return YES


@inlined_kernel
def push(search: Any, stack: Array, rows: Array, place: int, open_: int) -> None:
    """Put a row on the stack; `open_`: the alternatives at its event have not been listed yet."""
    regs = search.regs
    top = regs[TOP] + 1 if regs[TOP] + 1 < stack.shape[0] else 0
    regs[TOP] = top
    regs[DEPTH] = min(regs[DEPTH] + 1, stack.shape[0])
    stack[top, ENTRY_EVENT] = regs[EVENT]
    stack[top, ENTRY_NODES] = regs[N_NODES]
    stack[top, ENTRY_OPEN] = open_
    stack[top, ENTRY_TAKEN] = 0
    for column in range(rows.shape[1]):
        stack[top, ENTRY + column] = rows[place, column]


@inlined_kernel
def hashed(rows: Array, place: int, event: int, words: int) -> Number:
    """A number for a configuration at an event, never 0. Two that share one cost an answer, not its truth."""
    mark = event * 0x9E3779B1 + rows[place, STATE]
    for word in range(2 * words):
        mark = (mark ^ rows[place, MASKS + word]) * 0x2545F491
        mark = mark ^ (mark >> 31)
    return mark | 1


@inlined_kernel
def back(search: Any, stack: Array, known: Array) -> bool:
    """Go back to the last alternative that was not tried. False if there is none, or too many were tried already."""
    regs, rows = search.regs, search.rows
    if regs[EVENT] > regs[FAR]:
        regs[FAR] = regs[EVENT]
        regs[ALTERNATIVES] = 0
        if 2 * regs[KNOWN] > known.shape[0] - ALTERNATIVES_MAX:
            known[:] = 0
            regs[KNOWN] = 0
    words = search.masks.shape[1]
    while regs[DEPTH] > 0:
        top = regs[TOP]
        regs[TOP] = top - 1 if top > 0 else stack.shape[0] - 1
        regs[DEPTH] -= 1
        rewind(search, stack[top, ENTRY_EVENT])
        for index in range(rows.shape[2]):
            rows[regs[NOW], 0, index] = stack[top, ENTRY + index]
        regs[N_NODES] = stack[top, ENTRY_NODES]
        regs[N_NOW] = 1
        if stack[top, ENTRY_OPEN] == 0:
            return True
        taken = stack[top, ENTRY_TAKEN]
        answer = advance(search, ALTERNATIVE_STEPS, 1 << 40, regs[EVENT] + 1)
        if answer == NO:
            regs[BUSY] = 0
            continue
        if answer != YES:
            return False
        now = rows[regs[NOW]]
        for index in range(regs[N_NOW]):
            mark = hashed(now, index, regs[EVENT], words)
            if mark == taken:
                continue
            mark ^= regs[FAR] << 1
            # Shifted, so that the lowest bit stays 1: a 0 is a free place.
            place = mark & (known.shape[0] - 1)
            while known[place] != 0 and known[place] != mark:
                place = (place + 1) & (known.shape[0] - 1)
            if known[place] == 0:
                known[place] = mark
                regs[KNOWN] += 1
                regs[ALTERNATIVES] += 1
                push(search, stack, now, index, 0)
            # Within the loop: one event may have more rows than `known` has places, and a full table has no end.
            if regs[ALTERNATIVES] > ALTERNATIVES_MAX:
                return False
    return False


@inlined_kernel
def fits(search: Any, op: int, state: int) -> Number:
    """Whether a register's call is legal in the state."""
    kind = search.ops[op, KIND]
    return kind == OVERWRITE or (search.ops[op, OLD] == state) == (kind != REFUSE)


@inlined_kernel
def choose(search: Any, op: int, now: Array) -> bool:
    """Let the call return: linearize it, after other calls if necessary. False if no way was found."""
    ops = search.ops
    word, mask = ops[op, WORD], ops[op, MASK]
    owed = now[0, MASKS + word] & mask
    if ops[op, KIND] == OVERWRITE:
        if owed or better(search, op, now):
            make(search, op, word, mask, now)
        return True
    if not fits(search, op, now[0, STATE]) and not lead_to(search, op, now):
        return False
    if ops[op, KIND] == UPDATE:
        make(search, op, word, mask, now)
    return True


@inlined_kernel
def better(search: Any, op: int, now: Array) -> bool:
    """Whether to linearize an overwrite that may stay unseen: for the next invocations, or for owed observations."""
    regs, events, ops = search.regs, search.events, search.ops
    value, state = ops[op, NEW], now[0, STATE]
    for event in range(regs[EVENT] + 1, min(events.shape[0], regs[EVENT] + AHEAD)):
        other = events[event] >> 2
        if events[event] & 3 == INVOKE and (ops[other, KIND] == OBSERVE or ops[other, KIND] == UPDATE):
            if ops[other, OLD] == state:
                return False
            if ops[other, OLD] == value:
                return True
    for index in range(regs[N_WATCHING]):
        other = search.pending[WATCHING, index]
        if now[0, MASKS + ops[other, WORD]] & ops[other, MASK] and fits(search, other, value):
            return True
    return False


@inlined_kernel
def make(search: Any, op: int, word: int, mask: int, now: Array) -> None:
    """Linearize a mutator in the one row."""
    ops = search.ops
    words = search.masks.shape[1]
    now[0, NODE] = noted(search, op, now[0, NODE])
    now[0, STATE] = ops[op, NEW]
    if ops[op, KIND] == OVERWRITE:
        for index in range(words):
            now[0, MASKS + index] &= ~search.masks[OVERWRITES, index]
    now[0, MASKS + word] &= ~mask
    now[0, MASKS + words + word] |= mask
    for index in range(search.regs[N_WATCHING]):
        other = search.pending[WATCHING, index]
        if fits(search, other, ops[op, NEW]):
            now[0, MASKS + ops[other, WORD]] &= ~ops[other, MASK]


@inlined_kernel
def lead_to(search: Any, target: int, now: Array) -> bool:
    """Linearize one pending mutator, or two, so that the target is legal. The first to return is used first."""
    regs, ops = search.regs, search.ops
    words = search.masks.shape[1]
    state = now[0, STATE]
    for two in range(2):
        for index in range(regs[N_LIVE] + regs[N_CLASSES]):
            op, word, mask = candidate(search, index, now, words)
            if op < 0 or op == target or not fits(search, op, state):
                continue
            if two == 0:
                if fits(search, target, ops[op, NEW]):
                    make(search, op, word, mask, now)
                    return True
                continue
            for other in range(regs[N_LIVE] + regs[N_CLASSES]):
                then, then_word, then_mask = candidate(search, other, now, words)
                if then < 0 or then in (op, target) or ops[then, KIND] != UPDATE:
                    continue
                if ops[then, OLD] == ops[op, NEW] and fits(search, target, ops[then, NEW]):
                    make(search, op, word, mask, now)
                    make(search, then, then_word, then_mask, now)
                    return True
    return False


@inlined_kernel
def candidate(search: Any, index: int, now: Array, words: int) -> tuple[int, int, int]:
    """The pending mutator at that place, live ones first, with its bit; -1 if it was used."""
    if index < search.regs[N_LIVE]:
        op = search.pending[LIVE, index]
        word, mask = search.ops[op, WORD], search.ops[op, MASK]
        return (-1, 0, 0) if now[0, MASKS + words + word] & mask else (op, word, mask)
    action = search.pending[CLASSES, index - search.regs[N_LIVE]]
    bit = first_unused(now, 0, words, search.klass[action, BASE], search.klass[action, INVOKED])
    if bit < 0:
        return -1, 0, 0
    return search.crashed[bit], bit // BITS, 1 << (bit % BITS)


@bare_kernel
def rewind(search: Any, to: int) -> None:
    """Go back to an event: undo the changes of pending calls since then."""
    regs, klass = search.regs, search.klass
    while regs[EVENT] > to:
        regs[EVENT] -= 1
        op, event_type = search.events[regs[EVENT]] >> 2, search.events[regs[EVENT]] & 3
        action = search.ops[op, ACTION]
        if event_type == RETURN:
            begin_call(search, op)
        elif event_type == RETIRE:
            # All had been invoked: `lay_out` leaves out those that begin behind the last call that could see them.
            klass[action, INVOKED] = klass[action, TOTAL]
            search.pending[CLASSES, regs[N_CLASSES]] = action
            regs[N_CLASSES] += 1
        elif search.ops[op, WORD] >= 0:
            end_call(search, op)
        else:
            klass[action, INVOKED] -= 1
            if klass[action, INVOKED] == 0:
                regs[N_CLASSES] = take_out(search.pending, CLASSES, regs[N_CLASSES], action)


@bare_kernel
def compact(regs: Array, rows: Array, nodes: Array, moved: Array) -> None:
    """Forget the nodes that no row's log leads through. `moved` is as long as `nodes`."""
    count = regs[N_NODES]
    for node in range(count):
        moved[node] = -1
    for table in range(3):
        for row in range(rows_in(regs, table)):
            node = rows[table, row, NODE]
            while node >= 0 and moved[node] < 0:
                moved[node] = 0
                node = nodes[node, 2]
    kept = 0
    for node in range(count):
        if moved[node] == 0:
            moved[node] = kept
            nodes[kept, 0] = nodes[node, 0]
            nodes[kept, 1] = nodes[node, 1]
            before = nodes[node, 2]
            nodes[kept, 2] = moved[before] if before >= 0 else -1
            kept += 1
    for table in range(3):
        for row in range(rows_in(regs, table)):
            if rows[table, row, NODE] >= 0:
                rows[table, row, NODE] = moved[rows[table, row, NODE]]
    regs[N_NODES] = kept


@bare_kernel
def rows_in(regs: Array, table: int) -> Number:
    """How many rows of the table are in use."""
    if table == regs[NOW]:
        return regs[N_NOW]
    if regs[BUSY] == 0:
        return 0
    return regs[N_SEEN] if table == SEEN else regs[N_AFTER]


@bare_kernel
def depth(nodes: Array, node: int) -> int:
    """How many calls the log that ends in `node` holds."""
    count = 0
    while node >= 0:
        count += 1
        node = nodes[node, 2]
    return count


@bare_kernel
def read_log(nodes: Array, node: int, log: Array) -> None:
    """The log that ends in `node`, from its beginning: (call, event) each."""
    place = log.shape[0]
    while node >= 0:
        place -= 1
        log[place, 0] = nodes[node, 0]
        log[place, 1] = nodes[node, 1]
        node = nodes[node, 2]
