"""The passes over all records of a log, as plain loops over arrays (`checkers.compiled`).

`rows` is a `columns.Rows`: its docstring says what each column has for each kind of record. A transaction in a queue is
a number, its id another one: `ref_id` leads from the first to the second. `order` has the place of each transaction in
the order of (ts, id); equal keys have equal places. A kernel that finds breaches writes a row for each into `out`: the
rule, the row of the record, and up to three numbers. It returns `out`, or a longer copy, and how many rows are filled.
"""

from __future__ import annotations

from typing import Any

import numpy

from checkers.compiled import bare_kernel, inlined_kernel, kernel

Array = Any  # numpy's

KINDS = 17
(
    LIFE,
    MADE,
    HEARD,
    ACQUIRED,
    ADDED,
    CAUGHT_UP,
    EXECUTED,
    SPLIT,
    REJOINED,
    RECOVERING,
    RECOVERED,
    RESTORED,
    CHOSEN,
    JOINED,
    PASSED,
    THAWED,
    LAGGED,
) = range(KINDS)

NEVER = 1 << 62
NO_RECORD = (1 << 31) - 1
"""`NEVER` as the place of a record, where places have 32 bits."""
FIELDS = 5
"""Of a breach."""

# Rules, in a breach's first field.
(
    NOT_BEHIND,
    ENTRIES_REMOVED,
    TWICE,
    OUT_OF_ORDER,
    SKIPPED,
    COUNTER_FELL,
    NOT_RAISED,
    TOO_LOW,
    TOO_HIGH,
    BOUND_TOO_HIGH,
    ABOVE_THE_BOUND,
    NOT_COUNTED,
    NEVER_MADE,
    NOT_ACQUIRED,
    POSTER_ELSEWHERE,
    POSTER_LACKED,
    WITHOUT_RESTORE,
    OUT_OF_TURN,
    ANOTHER,
    ENTRY_REMOVED,
    STATE_DIFFERS,
) = range(21)


@kernel
def noted(out: Array, place: int, rule: int, row: int, one: int, two: int, three: int) -> Array:
    """`out` with one more breach, at `place`."""
    if place == out.shape[0]:
        longer = numpy.empty((2 * place + 16, FIELDS), dtype=numpy.int64)
        longer[:place] = out
        out = longer
    out[place, 0] = rule
    out[place, 1] = row
    out[place, 2] = one
    out[place, 3] = two
    out[place, 4] = three
    return out


# ---- the order of transactions


@bare_kernel
def is_less(one: int, other: int, first: Array, data: Array) -> bool:
    """Whether one name sorts before the other, by bytes."""
    at, end = first[one], first[one + 1]
    to, stop = first[other], first[other + 1]
    while at < end and to < stop:
        if data[at] != data[to]:
            return bool(data[at] < data[to])
        at += 1
        to += 1
    return bool(at == end and to < stop)


@bare_kernel
def sift(by_key: Array, begin: int, at: int, count: int, ref_id: Array, first: Array, data: Array) -> None:
    """Restore the heap (greatest name on top) of `count` places from `begin` on below the place `at`."""
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and is_less(
            ref_id[by_key[begin + child]], ref_id[by_key[begin + child + 1]], first, data
        ):
            child += 1
        if not is_less(ref_id[by_key[begin + at]], ref_id[by_key[begin + child]], first, data):
            return
        moved = by_key[begin + at]
        by_key[begin + at] = by_key[begin + child]
        by_key[begin + child] = moved
        at = child


@bare_kernel
def places_by_key(ts: Array, ref_id: Array, first: Array, data: Array, by_key: Array, order: Array) -> None:
    """Fill `order`. `by_key`: transactions sorted by ts; those of one ts are sorted by their names here."""
    count = by_key.shape[0]
    begin = 0
    place = -1
    while begin < count:
        end = begin + 1
        while end < count and ts[by_key[end]] == ts[by_key[begin]]:
            end += 1
        size = end - begin
        for at in range(size // 2 - 1, -1, -1):
            sift(by_key, begin, at, size, ref_id, first, data)
        for last in range(size - 1, 0, -1):
            moved = by_key[begin]
            by_key[begin] = by_key[begin + last]
            by_key[begin + last] = moved
            sift(by_key, begin, 0, last, ref_id, first, data)
        for at in range(begin, end):
            if at == begin or ref_id[by_key[at]] != ref_id[by_key[at - 1]]:
                place += 1
            order[by_key[at]] = place
        begin = end


# ---- queues


@inlined_kernel
def comes_in(ref: int, ref_id: Array, place: Array, queue: Array) -> bool:
    """Put a transaction into the incoming queue; False if it is there already, or synchronised."""
    name = ref_id[ref]
    if place[name] != 0 or queue[name] >= 0:
        return False
    queue[name] = ref
    return True


@bare_kernel
def appended(
    rows: Any,
    ref_id: Array,
    row: int,
    count: int,
    length: int,
    synced: Array,
    of_entry: Array,
    place: Array,
    queue: Array,
) -> int:
    """Put the first `count` transactions of a record into the synchronised queue; returns its length."""
    index = rows.number[row]
    for at in range(index, length):
        name = ref_id[synced[at]]
        # An id may stand twice: its earlier place stays.
        if place[name] > index:
            place[name] = 0
    length = min(index, length)
    begin = rows.first[row]
    for at in range(begin, begin + count):  # an id that comes twice keeps its first place
        ref = rows.listed[at]
        name = ref_id[ref]
        synced[length] = ref
        of_entry[length] = row
        length += 1
        if place[name] == 0:
            place[name] = length
        queue[name] = -1
    return length


@bare_kernel
def synchronised(rows: Any, appends: Array, synced: Array) -> int:
    """The synchronised queue behind all records; returns its length. `appends`: the rows that change it."""
    length = 0
    for number in range(appends.shape[0]):
        row = appends[number]
        first = rows.first[row]
        count = rows.other[row] if rows.kind[row] == RECOVERED else rows.first[row + 1] - first
        length = min(length, rows.number[row])
        for at in range(first, first + count):
            synced[length] = rows.listed[at]
            length += 1
    return length


@bare_kernel
def replay(
    rows: Any, ref_id: Array, begin: int, end: int, state: Array, synced: Array, of_entry: Array, place: Array,
    queue: Array, turn: Array,
) -> None:  # fmt: skip
    """The queues behind the records. `state`: the length of the synchronised one, the turns of the incoming one.

    `turn` has when each id came into the incoming queue.
    """
    length, turns = state[0], state[1]
    for row in range(begin, end):
        kind = rows.kind[row]
        if kind == MADE:
            if comes_in(rows.name[row], ref_id, place, queue):
                turn[ref_id[rows.name[row]]] = turns
                turns += 1
        elif kind == HEARD:
            for at in range(rows.first[row], rows.first[row + 1]):
                if comes_in(rows.listed[at], ref_id, place, queue):
                    turn[ref_id[rows.listed[at]]] = turns
                    turns += 1
        elif kind == ADDED or kind == CAUGHT_UP:
            count = rows.first[row + 1] - rows.first[row]
            length = appended(rows, ref_id, row, count, length, synced, of_entry, place, queue)
        elif kind == RECOVERED:
            count = rows.other[row]
            length = appended(rows, ref_id, row, count, length, synced, of_entry, place, queue)
            queue[:] = -1
            for at in range(rows.first[row] + count, rows.first[row + 1]):
                name = ref_id[rows.listed[at]]
                if queue[name] < 0:
                    turn[name] = turns
                    turns += 1
                queue[name] = rows.listed[at]
    state[0] = length
    state[1] = turns


@bare_kernel
def push(heap: Array, size: int, ref: int, order: Array) -> int:
    at = size
    while at > 0 and order[heap[(at - 1) >> 1]] > order[ref]:
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = ref
    return size + 1


@bare_kernel
def pop(heap: Array, size: int, order: Array) -> int:
    size -= 1
    ref = heap[size]
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and order[heap[child + 1]] < order[heap[child]]:
            child += 1
        if order[heap[child]] >= order[ref]:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = ref
    return size


@bare_kernel
def heaped(queue: Array, heap: Array, order: Array) -> int:
    """The whole incoming queue in the heap; returns the heap's size."""
    size = 0
    for name in range(queue.shape[0]):
        if queue[name] >= 0:
            size = push(heap, size, queue[name], order)
    return size


LENGTH, HEAP, MISSING, HAS_SPLIT, LOW, STATES = range(6)
"""Places in the state of `ordered`; MISSING is the row of the split and 1, or 0."""


@kernel
def ordered(
    rows: Any, ref_id: Array, order: Array, begin: int, end: int, state: Array, synced: Array, of_entry: Array,
    left_out: Array, place: Array, queue: Array, heap: Array, seen: Array, has: Array, origin: Array,
    missing_of: Array, out: Array,
) -> Any:  # fmt: skip
    """The rules of one queue (`order`). `seen`: the last row that had an id, and 1. `left_out`: MISSING by entry.

    `has`: by id as `updates` has it. `origin`: by transaction. `missing_of`: by split which masters are left out.
    """
    length, size, missing, has_split = state[LENGTH], state[HEAP], state[MISSING], state[HAS_SPLIT]
    low = length
    breaches = 0
    for row in range(begin, end):
        kind = rows.kind[row]
        if kind == MADE:
            comes_in(rows.name[row], ref_id, place, queue)
            # Even if it did not come in: what does not wait is passed over when it is the smallest.
            size = push(heap, size, rows.name[row], order)
        elif kind == HEARD:
            for at in range(rows.first[row], rows.first[row + 1]):
                comes_in(rows.listed[at], ref_id, place, queue)
                size = push(heap, size, rows.listed[at], order)
        elif kind == ADDED or kind == CAUGHT_UP or kind == RECOVERED:
            index = rows.number[row]
            first = rows.first[row]
            count = rows.other[row] if kind == RECOVERED else rows.first[row + 1] - first
            low = min(low, index)
            # The record is applied all the same: one breach does not hide those behind it.
            if index > length:
                out = noted(out, breaches, NOT_BEHIND, row, length, 0, 0)
                breaches += 1
            if index < length and kind != RECOVERED:
                out = noted(out, breaches, ENTRIES_REMOVED, row, length, 0, 0)
                breaches += 1
            last, of_last = -1, row
            if 0 < index <= length:
                last, of_last = synced[index - 1], of_entry[index - 1]
            rest = 0  # how many ids the record has
            greatest = -1
            for at in range(first, first + count):
                ref = rows.listed[at]
                name = ref_id[ref]
                was = place[name]
                if 0 < was <= index or seen[name] == row + 1:
                    earlier = of_entry[was - 1] if 0 < was <= index else row
                    out = noted(out, breaches, TWICE, row, earlier, name, 0)
                    breaches += 1
                elif last >= 0 and order[last] >= order[ref]:
                    out = noted(out, breaches, OUT_OF_ORDER, row, of_last, last, ref)
                    breaches += 1
                if seen[name] != row + 1:
                    rest += 1
                    seen[name] = row + 1
                if greatest < 0 or order[ref] > order[greatest]:
                    greatest = ref
                last, of_last = ref, row
            if kind == ADDED:
                # From the smallest on: this round must have added all that are smaller than its greatest.
                late = order[synced[length - 1]] if missing > 0 and length > 0 else -1
                while size > 0 and rest > 0:
                    ref = heap[0]
                    name = ref_id[ref]
                    waits = queue[name]
                    if waits < 0 or order[waits] != order[ref]:
                        pass  # it is synchronised, or has another timestamp since a recovery
                    elif seen[name] == row + 1:
                        rest -= 1
                    elif order[ref] <= late:
                        pass  # it comes back with the recovery
                    elif missing > 0 and has[name] > row and missing_of[rows.name[missing - 1], origin[ref]]:
                        pass  # it waits for its updates, and is not looked for again
                    else:
                        if order[greatest] > order[ref]:
                            out = noted(out, breaches, SKIPPED, row, greatest, waits, 0)
                            breaches += 1
                        break  # all others are greater still
                    size = pop(heap, size, order)
            has_split = 1 if kind != RECOVERED and (has_split or missing) else 0
            length = appended(rows, ref_id, row, count, length, synced, of_entry, place, queue)
            if kind == RECOVERED:
                missing = 0
            left_out[length - count : length] = missing
            if kind == RECOVERED:
                # Behind the entries a recovery lists what the incoming queue has from now on, with new timestamps.
                queue[:] = -1
                for at in range(first + count, rows.first[row + 1]):
                    queue[ref_id[rows.listed[at]]] = rows.listed[at]
                size = heaped(queue, heap, order)
        elif kind == REJOINED:
            missing = 0
            size = heaped(queue, heap, order)  # what the split passed over counts again
        elif kind == SPLIT:
            missing = row + 1 if rows.other[row] > 0 else 0
    state[LENGTH], state[HEAP], state[MISSING], state[HAS_SPLIT] = length, size, missing, has_split
    state[LOW] = low
    return out, breaches


@bare_kernel
def bases(
    rows: Any, ref_ts: Array, over: Array, epoch_of: Array, length_of: Array, ends: Array, counter_of: Array
) -> int:
    """By record that appends: epoch, length of the synchronised queue and counter before it, and its place.

    `over`: epoch and counter of each recovery. One more is for the end of the log. Returns how many there are.
    """
    epoch, length, counter, count = 0, 0, 0, 0
    for row in range(rows.kind.shape[0]):
        kind = rows.kind[row]
        if kind == MADE or kind == HEARD:
            counter = rows.number[row]
        elif kind == ADDED or kind == CAUGHT_UP or kind == RECOVERED:
            epoch_of[count] = epoch
            length_of[count] = length
            ends[count] = row + 1
            counter_of[count] = counter
            count += 1
            more = rows.other[row] if kind == RECOVERED else rows.first[row + 1] - rows.first[row]
            length = min(length, rows.number[row]) + more
            if kind == CAUGHT_UP:
                for at in range(rows.first[row], rows.first[row + 1]):
                    counter = max(counter, ref_ts[rows.listed[at]])
            elif kind == RECOVERED:
                epoch = over[rows.name[row], 0]
                counter = over[rows.name[row], 1]
    epoch_of[count] = epoch
    length_of[count] = length
    ends[count] = NO_RECORD
    counter_of[count] = counter
    return count + 1


@bare_kernel
def last_places(keys: Array, wanted: Array, places: Array) -> None:
    """Where each wanted key stands last in the sorted keys; -1: nowhere."""
    count = keys.shape[0]
    at = 0
    for number in range(wanted.shape[0]):
        key = wanted[number]
        if not (at < count and keys[at] <= key and (at + 2 >= count or keys[at + 2] > key)):
            low, high = 0, count
            while low < high:
                middle = (low + high) >> 1
                if keys[middle] <= key:
                    low = middle + 1
                else:
                    high = middle
            at = max(0, low - 1)
        while at + 1 < count and keys[at + 1] <= key:
            at += 1
        places[number] = at if count > 0 and keys[at] == key else -1


# ---- counters


@kernel
def counted(
    rows: Any, ref_ts: Array, over: Array, over_last: Array, own: int, counts_from: Array, groups: Array,
    missing_of: Array, base_counter: Array, out: Array,
) -> Any:  # fmt: skip
    """The rules of counters and rounds. Masters are numbers that sort as their names.

    `counts_from`: by master the row from which every round counts it. `groups`: for each group of posters and absent
    masters 1 for a poster, 2 for an absent one, 3 for both. `missing_of`: by split which masters are left out.
    `base_counter`: by round and poster, -1 for none.
    """
    peers = counts_from.shape[0]
    last = numpy.zeros(peers, dtype=numpy.int64)
    value = numpy.zeros(peers, dtype=numpy.int64)
    missing = -1
    counter, rounds, breaches = 0, 0, 0
    for row in range(rows.kind.shape[0]):
        kind = rows.kind[row]
        if kind == MADE:
            now, ts = rows.number[row], ref_ts[rows.name[row]]
            if now <= counter:
                out = noted(out, breaches, COUNTER_FELL, row, counter, 0, 0)
                breaches += 1
            if ts <= counter:
                out = noted(out, breaches, TOO_LOW, row, counter, 0, 0)
                breaches += 1
            if ts > now:
                out = noted(out, breaches, TOO_HIGH, row, 0, 0, 0)
                breaches += 1
            counter = now
        elif kind == HEARD:
            now, posted = rows.number[row], rows.other[row]
            if now < counter:
                out = noted(out, breaches, COUNTER_FELL, row, counter, 0, 0)
                breaches += 1
            if now < posted:
                out = noted(out, breaches, NOT_RAISED, row, posted, 0, 0)
                breaches += 1
            counter = now
            if posted > last[rows.name[row]]:
                last[rows.name[row]] = posted
        elif kind == ADDED:
            group = rows.name[row]
            bound = rows.other[row]
            # What each master's counter was to this round: of an absent one what it posted last, of a poster what it
            # posted for the round (which counts if a master is both), of the others nothing.
            value[:] = -1
            value[own] = counter
            for peer in range(peers):
                if groups[group, peer] >= 2:
                    value[peer] = last[peer]
            for peer in range(peers):
                if groups[group, peer] & 1:
                    base = base_counter[rounds, peer]
                    value[peer] = counter if base < 0 else base
            rounds += 1
            least = -1
            for peer in range(peers):
                if value[peer] >= 0 and (least < 0 or value[peer] < value[least]):
                    least = peer
            if bound > value[least]:
                out = noted(out, breaches, BOUND_TOO_HIGH, row, least, value[least], 0)
                breaches += 1
            highest = 0
            for at in range(rows.first[row], rows.first[row + 1]):
                highest = max(highest, ref_ts[rows.listed[at]])
            if highest > bound:
                out = noted(out, breaches, ABOVE_THE_BOUND, row, highest, 0, 0)
                breaches += 1
            for peer in range(peers):
                if (
                    row >= counts_from[peer]
                    and value[peer] < 0
                    and (missing < 0 or not missing_of[missing, peer])
                ):
                    out = noted(out, breaches, NOT_COUNTED, row, missing, 0, 0)
                    breaches += 1
                    break
        elif kind == CAUGHT_UP:
            for at in range(rows.first[row], rows.first[row + 1]):
                counter = max(counter, ref_ts[rows.listed[at]])
        elif kind == RECOVERED:
            now = over[rows.name[row], 1]
            highest = 0
            for at in range(rows.first[row], rows.first[row + 1]):
                highest = max(highest, ref_ts[rows.listed[at]])
            if now < counter:
                out = noted(out, breaches, COUNTER_FELL, row, counter, 0, 0)
                breaches += 1
            if now < highest:
                out = noted(out, breaches, NOT_RAISED, row, highest, 0, 0)
                breaches += 1
            counter = now
            # A recovery says anew up to which counter it knows all of each master.
            last[:] = over_last[rows.name[row]]
            missing = -1
        elif kind == SPLIT:
            missing = rows.name[row]
        elif kind == REJOINED:
            # Nothing from before a join counts: other parts may have added below these counters.
            last[:] = 0
            missing = -1
    return out, breaches


# ---- what is acquired


@bare_kernel
def updates(rows: Any, ref_id: Array, has: Array) -> None:
    """Fill `has`: by id the place of the record that brought the updates first."""
    for row in range(rows.kind.shape[0]):
        kind = rows.kind[row]
        if kind == MADE:
            name = ref_id[rows.name[row]]
            has[name] = min(has[name], row + 1)
        elif kind == ACQUIRED:
            for at in range(rows.first[row], rows.first[row + 1]):
                has[rows.listed[at]] = min(has[rows.listed[at]], row + 1)


@kernel
def acquired(
    rows: Any, ref_id: Array, ref_ts: Array, made_ts: Array, own: int, has: Array, groups: Array, is_whole: Array,
    base_ends: Array, out: Array,
) -> Any:  # fmt: skip
    """The rules of rounds (`kept`). `made_ts`: -1 for what no master made. A NEVER_MADE may be a recovery's stamp.

    `has`: by master and id as `updates` has it. `is_whole`: which masters left a whole log. `base_ends`: by round and
    poster, 0 where the poster never had the base.
    """
    peers = is_whole.shape[0]
    rounds, breaches = 0, 0
    for row in range(rows.kind.shape[0]):
        kind = rows.kind[row]
        if kind != ADDED and kind != CAUGHT_UP:
            continue
        first, end = rows.first[row], rows.first[row + 1]
        for at in range(first, end):
            ref = rows.listed[at]
            if made_ts[ref_id[ref]] != ref_ts[ref]:
                out = noted(out, breaches, NEVER_MADE, row, ref, 0, 0)
                breaches += 1
        if kind == CAUGHT_UP:
            continue
        for at in range(first, end):
            name = ref_id[rows.listed[at]]
            if has[own, name] > row + 1:
                out = noted(out, breaches, NOT_ACQUIRED, row, rows.listed[at], 0, 0)
                breaches += 1
        group = rows.name[row]
        for number in range(groups.shape[1]):
            poster = groups[group, number]
            if poster < 0 or poster >= peers or not is_whole[poster]:
                continue
            ends = base_ends[rounds, poster]
            if ends == 0:
                out = noted(out, breaches, POSTER_ELSEWHERE, row, poster, 0, 0)
                breaches += 1
                continue
            for at in range(first, end):
                since = has[poster, ref_id[rows.listed[at]]]
                if since > ends or since == NO_RECORD:
                    out = noted(out, breaches, POSTER_LACKED, row, poster, rows.listed[at], 0)
                    breaches += 1
        rounds += 1
    return out, breaches


# ---- execution

(AT, KEPT, IS_LOST, HAS_OTHER, CHAIN, LIVE, SYNCED, NEXT, SEQUENCES, FOUND, SEVERAL, OWN, PLACES) = range(13)
"""Places in the state of `executed`: see `executed.py`. OWN: the first execution of this master; NEXT: the next one."""


@inlined_kernel
def longer_by(name: int, before: int, state: Array, child: Array, sibling: Array, last_id: Array) -> int:
    """The sequence of transactions that has this one behind another sequence; a new one is put into the tree."""
    sequence = child[before]
    while sequence != 0 and last_id[sequence] != name:
        sequence = sibling[sequence]
    if sequence == 0:
        sequence = state[SEQUENCES]
        state[SEQUENCES] += 1
        sibling[sequence] = child[before]
        child[before] = sequence
        last_id[sequence] = name
    return int(sequence)


@kernel
def executed(
    rows: Any, ref_id: Array, begin: int, end: int, state: Array, synced: Array, chain: Array, hash_of: Array,
    live: Array, child: Array, sibling: Array, last_id: Array, of_sequence: Array, several: Array, digest: Array,
    out: Array,
) -> Any:  # fmt: skip
    """The rules of executions. Sequences of transactions are a tree: `child`, `sibling`, the id of the last one.

    `of_sequence`: the execution that first came to the end of each one, -1 for none.
    """
    index, kept, is_lost, has_other = state[AT], state[KEPT], state[IS_LOST], state[HAS_OTHER]
    length, number = state[SYNCED], state[NEXT]
    breaches = 0
    for row in range(begin, end):
        kind = rows.kind[row]
        if kind == EXECUTED:
            now, name = rows.number[row], rows.name[row]
            if kept < index:
                out = noted(out, breaches, WITHOUT_RESTORE, row, index, kept, 0)
                breaches += 1
                kept, is_lost = NEVER, 1  # said once; its state is not compared any more
            if now != index + 1:
                out = noted(out, breaches, OUT_OF_TURN, row, index, 0, 0)
                breaches += 1
                is_lost = 1
            entry = synced[now - 1] if 0 < now <= length else -1
            if entry != name:
                out = noted(out, breaches, ANOTHER, row, entry, length, 0)
                breaches += 1
            live[state[LIVE]] = number
            state[LIVE] += 1
            index = now
            if not is_lost:
                sequence = longer_by(name, chain[state[CHAIN] - 1], state, child, sibling, last_id)
                chain[state[CHAIN]] = sequence
                hash_of[state[CHAIN]] = number
                state[CHAIN] += 1
                if not has_other:  # a state that differs once differs from then on
                    first = of_sequence[sequence]
                    if first < 0:
                        first = number
                        of_sequence[sequence] = number
                        state[FOUND] += 1
                    # Below OWN: of a master before this one.
                    if first < state[OWN] and not several[sequence]:
                        several[sequence] = 1
                        state[SEVERAL] += 1
                    if digest[first] != digest[number]:
                        out = noted(out, breaches, STATE_DIFFERS, row, first, 0, 0)
                        breaches += 1
                        has_other = 1
            number += 1
        elif kind == ADDED or kind == CAUGHT_UP or kind == RECOVERED:
            now = rows.number[row]
            stays = min(index, kept)
            if kind != RECOVERED and now < stays:
                out = noted(out, breaches, ENTRY_REMOVED, row, stays, 0, 0)
                breaches += 1
            first = rows.first[row]
            count = rows.other[row] if kind == RECOVERED else rows.first[row + 1] - first
            length = min(length, now)
            for at in range(first, first + count):
                synced[length] = ref_id[rows.listed[at]]
                length += 1
    state[AT], state[KEPT], state[IS_LOST], state[HAS_OTHER] = index, kept, is_lost, has_other
    state[SYNCED], state[NEXT] = length, number
    return out, breaches


@bare_kernel
def undone(state: Array, live: Array, index_of: Array, undone_by: Array, index: int, place: int) -> None:
    """Take back what was executed above an index; executions of the master count from OWN on."""
    size = state[LIVE]
    while size > 0 and index_of[live[size - 1] - state[OWN]] > index:
        size -= 1
        undone_by[live[size] - state[OWN]] = place
    state[LIVE] = size


@bare_kernel
def first_two(name: Array, first: Array, second: Array) -> None:
    """By id the first two executions, as numbers; both are -1 before."""
    for number in range(name.shape[0]):
        if first[name[number]] < 0:
            first[name[number]] = number
        elif second[name[number]] < 0:
            second[name[number]] = number


@bare_kernel
def of_parts(rows: Any, left_out: Array, of_part: Array) -> int:
    """Fill `of_part`: which executed entries came while masters were left out. Returns the least index of a part."""
    length, number, missing, least = 0, 0, 0, NEVER
    for row in range(rows.kind.shape[0]):
        kind = rows.kind[row]
        if kind == EXECUTED:
            index = rows.number[row]
            of_part[number] = left_out[index - 1] if index <= length else 0
            number += 1
        elif kind == ADDED or kind == CAUGHT_UP or kind == RECOVERED:
            if kind == RECOVERED:
                missing = 0
            elif missing:
                least = min(least, rows.number[row])
            count = rows.other[row] if kind == RECOVERED else rows.first[row + 1] - rows.first[row]
            length = min(length, rows.number[row])
            left_out[length : length + count] = missing
            length += count
        elif kind == REJOINED:
            missing = 0
        elif kind == SPLIT:
            missing = 1 if rows.other[row] > 0 else 0
    return least


# ---- clients


@kernel
def swept(slots: Array, key: Array, is_soft: Array, out: Array) -> Any:
    """The order of clients. `slots`: by event what begins (the operation's number and 1), or is over (less than 0).

    A breach has the later operation, the earlier one, and whether that is soft. Returns how many operations began
    when others were over, too.
    """
    firm, soft, over, behind, breaches = -1, -1, 0, 0, 0
    for at in range(slots.shape[0]):
        slot = slots[at]
        if slot < 0:
            over += 1
            operation = -slot - 1
            if is_soft[operation]:
                if soft < 0 or key[soft] < key[operation]:
                    soft = operation
            # The greatest of those that are over suffices: if it is not above the one that begins, none is.
            elif firm < 0 or key[firm] < key[operation]:
                firm = operation
        elif slot > 0:
            operation = slot - 1
            if over:
                behind += 1
            if firm >= 0 and key[operation] < key[firm]:
                out = noted(out, breaches, 0, operation, firm, 0, 0)
                breaches += 1
            elif soft >= 0 and key[operation] < key[soft]:
                out = noted(out, breaches, 0, operation, soft, 1, 0)
                breaches += 1
    return out, breaches, behind
