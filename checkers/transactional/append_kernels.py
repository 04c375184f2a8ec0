"""Kernels of list-append: from micro-operations to versions, and the replay that decides a clean history.

The version of a key is the length of its list: the longest list that a transaction read is the order of its appends
(lists only grow). Versions of all keys are numbered through: key k's begin at `base[k]`, which is the empty list.

Arrays are those of `columns.Columns`; per micro-operation m[…], per key k[…], per version v[…].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy
from numpy import int8, int32, int64

from checkers.compiled import bare_kernel, kernel
from checkers.transactional.columns import (
    FAIL,
    INFO,
    OK,
    PREDICATE_READ,
    READ,
    WRITE,
    Int8s,
    Int32s,
    Int64s,
    Micros,
)

NONE = -1
SAMPLES = 16

INTERNAL, FUTURE, G1A, G1B, INCOMPATIBLE, GARBAGE, DUPLICATE, LOST, DIRTY = range(9)
RULES = (
    "internal",
    "future-read",
    "G1a",
    "G1b",
    "incompatible-order",
    "garbage-read",
    "duplicate-elements",
    "lost-update",
    "dirty-update",
)
"""The names of the codes above. A sample of a rule is a pair of micro-operations: the one at fault, and its cause."""


class Survey(NamedTuple):
    """The findings of one pass over the micro-operations.

    owner     int32[m]  the transaction
    previous  int32[m]  the micro-operation before in the same transaction on the same key, or NONE
    last      int8[m]   1 for a transaction's last write of a key
    shown     int32[m]  how much of a list read other transactions made: without its own transaction's appends at its
                        end (no other transaction sees these yet, and they may still move)
    writes    int32[k]  how many writes of a key there are
    longest   int32[k]  the read of a key that shows most, or NONE
    """

    owner: Int32s
    previous: Int32s
    last: Int8s
    shown: Int32s
    writes: Int32s
    longest: Int32s


class Written(NamedTuple):
    """The writes by value, in a hash table: key k has the slots part[k] … part[k+1]-1, a power of two of them."""

    part: Int64s
    table: Int32s


class Order(NamedTuple):
    """The versions of every key, in the order that its longest read shows.

    base   int64[k+1]  where the versions of a key begin
    maker  int32[v]    the append that made a version (NONE: the empty list, or a value without a write)
    made   int32[m]    the version that an append made, or NONE
    bad    int32[k,3]  the first length of the key's order which shows a value of a failed transaction, one that was
                       never written, one that is there twice (a huge number: never)
    """

    base: Int64s
    maker: Int32s
    made: Int32s
    bad: Int32s


class Notes(NamedTuple):
    """How often each rule was broken, and the first SAMPLES cases of each: int64[rule, SAMPLES, 2]."""

    counts: Int64s
    samples: Any


@kernel
def survey(micros: Micros, key_count: int) -> Survey:
    first, outcome, f, key, _, length, _ = micros
    owner = numpy.empty(len(f), int32)
    previous = numpy.empty(len(f), int32)
    last = numpy.zeros(len(f), int8)
    shown = length.copy()
    writes = numpy.zeros(key_count, int32)
    longest = numpy.full(key_count, NONE, int32)
    seen = numpy.full(key_count, NONE, int32)
    written = numpy.full(key_count, NONE, int32)
    for txn in range(len(outcome)):
        begin = first[txn]
        for micro in range(begin, first[txn + 1]):
            on = key[micro]
            owner[micro] = txn
            # `seen` and `written` outlive a transaction: what stands before its first operation is of an earlier one.
            before = seen[on] if seen[on] >= begin else NONE
            previous[micro] = before
            seen[on] = micro
            if f[micro] == WRITE:
                writes[on] += 1
                if written[on] >= begin:
                    last[written[on]] = 0
                last[micro] = 1
                written[on] = micro
            elif outcome[txn] == OK and length[micro] >= 0:
                if before != NONE and written[on] >= begin:
                    shown[micro] = without_own(micros, previous, micro)
                best = longest[on]
                # Not >=: of equally long reads the first stands for the key, as the witness where another does not fit.
                if best == NONE or shown[micro] > shown[best]:
                    longest[on] = micro
    return Survey(owner, previous, last, shown, writes, longest)


@bare_kernel
def without_own(micros: Micros, previous: Int32s, micro: int) -> int:
    """The length of a list without the appends of its own transaction at its end.

    They need not be all that the transaction has appended so far (a store may be slow to show them), but they are in
    their order, and none before them is missing. Else the list stays whole: it is incompatible with any order.
    """
    f, value, length, elements = micros.f, micros.value, micros.length, micros.elements
    begin, place = value[micro], length[micro]
    newest = NONE  # the appends from here backwards stand at the list's end
    before = previous[micro]
    while before != NONE:
        if f[before] == WRITE:
            if newest == NONE and place > 0 and elements[begin + place - 1] == value[before]:
                newest = before
            if newest != NONE:
                if place == 0 or elements[begin + place - 1] != value[before]:
                    for index in range(place):
                        if elements[begin + index] == value[before]:
                            return int(place)
                    return int(length[micro])
                place -= 1
        before = previous[before]
    return int(place)


@bare_kernel
def find(written: Written, value: Int64s, on: int, wanted: int) -> int:
    """The slot of `wanted` among the writes of a key, or the free slot where it belongs."""
    begin, table = written.part[on], written.table
    mask = written.part[on + 1] - begin - 1
    slot = (wanted ^ (wanted >> 15) ^ (wanted >> 31)) & mask
    while table[begin + slot] != NONE and value[table[begin + slot]] != wanted:
        slot = (slot + 1) & mask
    return int(begin + slot)


@kernel
def written_values(micros: Micros, writes: Int32s) -> tuple[Written, Any]:
    """The writes by value, and twin int32[m]: an earlier write of the same value to the same key, or NONE."""
    f, key, value = micros.f, micros.key, micros.value
    twin = numpy.full(len(f), NONE, int32)
    part = numpy.zeros(len(writes) + 1, int64)
    for on in range(len(writes)):
        size = 4
        # At most half full: every walk of `find` ends at a free slot.
        while size < 2 * writes[on]:
            size *= 2
        part[on + 1] = part[on] + size
    table = numpy.full(part[len(writes)], NONE, int32)
    written = Written(part, table)
    for micro in range(len(f)):
        if f[micro] == WRITE:
            slot = find(written, value, key[micro], value[micro])
            twin[micro] = table[slot]
            table[slot] = micro
    return written, twin


@kernel
def writers_of_reads(micros: Micros, written: Written) -> Any:
    """int32[m]: for registers, the write of the value that a read gave, or NONE."""
    f, key, value = micros.f, micros.key, micros.value
    writer = numpy.full(len(f), NONE, int32)
    for micro in range(len(f)):
        if f[micro] != WRITE:
            writer[micro] = written.table[find(written, value, key[micro], value[micro])]
    return writer


@bare_kernel
def note(notes: Notes, rule: int, micro: int, cause: int) -> None:
    """Count one case of `rule`, and keep it if there are few yet."""
    counts, samples = notes.counts, notes.samples
    if counts[rule] < SAMPLES:
        samples[rule, counts[rule], 0] = micro
        samples[rule, counts[rule], 1] = cause
    counts[rule] += 1


@kernel
def version_order(micros: Micros, survey: Survey, written: Written, committed: Int8s, notes: Notes) -> Order:
    """An unsure transaction of which a value was read is marked in `committed`."""
    outcome, value, elements = micros.outcome, micros.value, micros.elements
    owner, shown, longest = survey.owner, survey.shown, survey.longest
    keys = len(longest)
    base = numpy.zeros(keys + 1, int64)
    for on in range(keys):
        base[on + 1] = base[on] + 1 + (shown[longest[on]] if longest[on] != NONE else 0)
    maker = numpy.full(base[keys], NONE, int32)
    made = numpy.full(len(value), NONE, int32)
    bad = numpy.full((keys, 3), 2**31 - 1, int32)
    for on in range(keys):
        micro = longest[on]
        if micro == NONE:
            continue
        failed = NONE
        for place in range(shown[micro]):
            writer = written.table[find(written, value, on, elements[value[micro] + place])]
            if writer == NONE:
                bad[on, 1] = min(bad[on, 1], place + 1)
                continue
            if made[writer] != NONE:
                bad[on, 2] = min(bad[on, 2], place + 1)
                continue
            made[writer] = base[on] + place + 1
            maker[base[on] + place + 1] = writer
            ended = outcome[owner[writer]]
            if ended == FAIL:
                bad[on, 0] = min(bad[on, 0], place + 1)
                failed = writer
            # A read shows one of its writes, so it took effect, and all of it did.
            elif ended == INFO:
                committed[owner[writer]] = 1
            elif failed != NONE:
                note(notes, DIRTY, writer, failed)
                failed = NONE
    return Order(base, maker, made, bad)


@bare_kernel
def is_prefix(elements: Int64s, one: int, other: int, count: int) -> bool:
    for place in range(count):
        if elements[one + place] != elements[other + place]:
            return False
    return True


@bare_kernel
def own_tail(micros: Micros, previous: Int32s, micro: int) -> tuple[int, int, bool]:
    """(earliest, before, right): how a read agrees with its own transaction's earlier operations on the key.

    earliest: its first append (or NONE) since `before`, its read before on that key (or NONE). right: whether the
    read's list ends with just those values, and begins with what was read before.
    """
    f, value, length, elements = micros.f, micros.value, micros.length, micros.elements
    appends, right, earliest = 0, True, NONE
    before = previous[micro]
    while before != NONE and f[before] == WRITE:
        appends += 1
        place = length[micro] - appends
        if place < 0 or elements[value[micro] + place] != value[before]:
            right = False
        earliest = before
        before = previous[before]
    if before != NONE and right and length[before] >= 0:
        right = length[before] + appends == length[micro] and is_prefix(
            elements, value[before], value[micro], length[before]
        )
    return earliest, before, right


@kernel
def any_twice(elements: Int64s) -> bool:
    """Whether a value stands there twice; for values that were never written, which have no write to mark."""
    ordered = numpy.sort(elements)
    for place in range(1, len(ordered)):
        if ordered[place] == ordered[place - 1]:
            return True
    return False


@kernel
def judge_list(
    micros: Micros, survey: Survey, written: Written, micro: int, mark: Int32s, notes: Notes
) -> None:
    """Look closer at every element of a list: never written, written by a failed transaction, or there twice.

    `mark`: by write, the last read in which its value was met.
    """
    value, length, elements, owner, on = (
        micros.value, micros.length, micros.elements, survey.owner, micros.key[micro]
    )  # fmt: skip
    garbage, aborted, twice = False, NONE, NONE
    for place in range(length[micro]):
        writer = written.table[find(written, value, on, elements[value[micro] + place])]
        if writer == NONE:
            garbage = True
            continue
        if mark[writer] == micro:
            twice = writer
        mark[writer] = micro
        if writer > micro and owner[writer] == owner[micro]:
            note(notes, FUTURE, micro, writer)
        if aborted == NONE and micros.outcome[owner[writer]] == FAIL and owner[writer] != owner[micro]:
            aborted = writer
    if garbage:
        note(notes, GARBAGE, micro, NONE)
        if twice == NONE and any_twice(elements[value[micro] : value[micro] + length[micro]]):
            note(notes, DUPLICATE, micro, NONE)
    if aborted != NONE:
        note(notes, G1A, micro, aborted)
    if twice != NONE:
        note(notes, DUPLICATE, micro, twice)


class Reads(NamedTuple):
    """The versions that transactions read.

    version    int32[m]  of a read, the version that it showed (without its own appends), or NONE if that follows from
                         an earlier read or write of its transaction; of an append, the version that it made, or NONE
    readers    int32[v]  how many such reads showed a version
    own_later  int8[m]   of an append, how many of them are its own transaction's, come later, and showed the version
                         before it
    """

    version: Int32s
    readers: Int32s
    own_later: Int8s


@kernel
def judge_reads(
    micros: Micros, survey: Survey, written: Written, order: Order, committed: Int8s, notes: Notes
) -> Reads:
    """The versions that transactions read; the anomalies of single reads and appends are noted."""
    first, f, versions = micros.first, micros.f, len(order.maker)
    own_later = numpy.zeros(len(f), int8)
    reads = Reads(order.made.copy(), numpy.zeros(versions, int32), own_later)
    updater = numpy.full(versions, NONE, int32)
    mark = numpy.full(len(f), NONE, int32)
    for txn in range(len(micros.outcome)):
        if committed[txn] == 0:
            continue
        for micro in range(first[txn], first[txn + 1]):
            if f[micro] == WRITE:
                judge_append(micros, survey, order, reads.version, updater, micro, notes)
            elif micros.length[micro] >= 0 and judge_read(micros, survey, order, reads, micro, notes):
                judge_list(micros, survey, written, micro, mark, notes)
    return reads


@bare_kernel
def judge_append(
    micros: Micros, survey: Survey, order: Order, version: Int32s, updater: Int32s, micro: int, notes: Notes
) -> None:
    """An append behind earlier operations of its transaction on the key.

    `updater`: by version, the first append of a transaction that had read it, and nothing else before.
    """
    f, previous, made = micros.f, survey.previous, order.made
    before = previous[micro]
    if before == NONE:
        return
    wrote = before
    while wrote != NONE and f[wrote] != WRITE:
        wrote = previous[wrote]
    unordered = wrote != NONE and (made[wrote] == NONE or made[wrote] > made[micro])
    if made[micro] != NONE and unordered:
        note(notes, INCOMPATIBLE, micro, wrote)
    reader = before
    while reader != NONE and (f[reader] == WRITE or version[reader] < made[micro]):
        reader = previous[reader]
    if reader != NONE and made[micro] != NONE:
        note(notes, FUTURE, reader, micro)
        return
    alone, origin = f[before] != WRITE, before
    while previous[origin] != NONE:
        origin = previous[origin]
        alone = alone and f[origin] != WRITE
    read_version = version[origin]
    if read_version == NONE or not alone:
        return
    if updater[read_version] == NONE:
        updater[read_version] = micro
    else:
        note(notes, LOST, micro, updater[read_version])


@bare_kernel
def judge_read(micros: Micros, survey: Survey, order: Order, reads: Reads, micro: int, notes: Notes) -> bool:
    """A read beside the order of its key and its own transaction; True if `judge_list` must look at its elements."""
    f, value, length = micros.f, micros.value, micros.length
    owner, previous, made = survey.owner, survey.previous, order.made
    on = micros.key[micro]
    count, top = survey.shown[micro], survey.longest[on]
    fits = micro == top or is_prefix(micros.elements, value[micro], value[top], count)
    if not fits:
        note(notes, INCOMPATIBLE, micro, top)
    earliest, before, right = own_tail(micros, previous, micro)
    read_version = order.base[on] + count
    twice = False  # its own append, and among those of other transactions too
    if count < length[micro]:
        origin = previous[micro]
        while origin != NONE:
            twice = twice or (f[origin] == WRITE and made[origin] != NONE and made[origin] <= read_version)
            origin = previous[origin]
    bad = order.bad
    # Below all three lengths the order of the key shows nothing wrong, and a list that fits in has just its elements.
    is_suspect = not fits or twice or count >= min(bad[on, 0], bad[on, 1], bad[on, 2])
    if not right:
        note(notes, INTERNAL, micro, previous[micro])
    new = before == NONE or not right
    if f[micro] == READ and not new:  # the first that is of the row itself, after reads by predicates
        before = previous[micro]
        while before != NONE and f[before] != READ:
            earliest = before if f[before] == WRITE else earliest
            before = previous[before]
        new = before == NONE
    if not fits or not new:
        return is_suspect
    writer = order.maker[read_version]
    if writer != NONE and owner[writer] != owner[micro] and survey.last[writer] == 0:
        note(notes, G1B, micro, writer)
    reads.version[micro] = read_version
    reads.readers[read_version] += 1
    if earliest != NONE and right:
        # An append that was never read comes after all that was read: before it stands the last version of the key.
        wanted = made[earliest] if made[earliest] != NONE else order.base[on + 1]
        if wanted - 1 == read_version:
            reads.own_later[earliest] += 1
    return is_suspect


@bare_kernel
def can_follow(
    txn: int, micros: Micros, survey: Survey, order: Order, reads: Reads, current: Int32s
) -> tuple[int, bool]:
    """(NONE, …) if `txn` may come next in the replay; else the version it waits for: to be made, or to be drained."""
    first, f, key, owner, previous = micros.first, micros.f, micros.key, survey.owner, survey.previous
    version, own_later, base, maker = reads.version, reads.own_later, order.base, order.maker
    for micro in range(first[txn], first[txn + 1]):
        on = key[micro]
        touched = version[micro]
        if f[micro] != WRITE:
            if touched != NONE and current[on] < touched:
                return touched, False
            continue
        if touched == NONE:
            touched = base[on + 1]  # it was never read: it comes after all that was read
        own = int(own_later[micro])
        origin = previous[micro]
        while origin != NONE:
            if f[origin] != WRITE and version[origin] == touched - 1:
                own += 1
            # It and `micro` both come after all that was read.
            elif f[origin] == WRITE and version[origin] == NONE:
                own += own_later[origin]
            origin = previous[origin]
        is_own = touched - 1 > base[on] and maker[touched - 1] != NONE and owner[maker[touched - 1]] == txn
        if current[on] < touched - 1 and not is_own:
            return touched - 1, False
        # The append ends the version before it: all that read this one must have run, but for the transaction itself.
        if reads.readers[touched - 1] > own:
            return touched - 1, True
    return NONE, False


@kernel
def replay(
    micros: Micros,
    survey: Survey,
    versions: Order,
    reads: Reads,
    committed: Int8s,
    invoke: Int64s,
    completed_at: Int32s,
) -> tuple[Any, int]:
    """(order int32[…], how many of the committed transactions it holds): a serial order within real time.

    Transactions are run one by one against the version orders. Each must find just the versions that it read, and each
    append makes just its version. A transaction runs only after all that ended before it began. A transaction that may
    run stays free to run until it does, so any order of trying finds an order of all if there is one: if some are left,
    the graph of ww, wr, rw and realtime has a cycle. No edge is ever built, and time is linear.

    completed_at[event] is the ok transaction that ended there, or NONE. `reads.readers` is used up.
    """
    first, f, key, version, readers = micros.first, micros.f, micros.key, reads.version, reads.readers
    count = len(committed)
    current = versions.base[:-1].astype(int32)
    order = numpy.empty(count, int32)
    gone = numpy.zeros(count, int8)
    begun, total = 0, 0
    # The transactions that wait for a version to be made, or for its readers to have run: lists, linked by `behind`.
    made_waiting = numpy.full(len(versions.maker), NONE, int32)
    drained_waiting = numpy.full(len(versions.maker), NONE, int32)
    behind = numpy.full(count, NONE, int32)
    stack = numpy.empty(count + 1, int32)
    height, event = 0, 0
    events = len(completed_at)
    while True:
        while event < events and (completed_at[event] == NONE or gone[completed_at[event]] == 1):
            event += 1
        # Not <: what begins at the event at which another one ended is concurrent with it.
        if begun < count and (event == events or invoke[begun] <= event):
            stack[height] = begun
            height += 1
            begun += 1
        if height == 0:
            break
        while height > 0:
            height -= 1
            txn = stack[height]
            if committed[txn] == 0:
                gone[txn] = 1
                continue
            wanted, drained = can_follow(txn, micros, survey, versions, reads, current)
            if wanted != NONE:
                if drained:
                    behind[txn] = drained_waiting[wanted]
                    drained_waiting[wanted] = txn
                else:
                    behind[txn] = made_waiting[wanted]
                    made_waiting[wanted] = txn
                continue
            gone[txn] = 1
            order[total] = txn
            total += 1
            for micro in range(first[txn], first[txn + 1]):
                touched = version[micro]
                if touched == NONE:
                    continue
                if f[micro] == WRITE:
                    if current[key[micro]] < touched:
                        current[key[micro]] = touched
                    waiting = made_waiting[touched]
                    made_waiting[touched] = NONE
                else:
                    readers[touched] -= 1
                    if readers[touched] > 2:  # a waiting one may have read it itself, by a predicate and not
                        continue
                    waiting = drained_waiting[touched]
                    drained_waiting[touched] = NONE
                while waiting != NONE:
                    stack[height] = waiting
                    height += 1
                    waiting = behind[waiting]
    return order[:total], total


@kernel
def dependencies(
    f: Int8s,
    key: Int32s,
    owner: Int32s,
    version: Int32s,
    base: Int64s,
    maker: Int32s,
    committed: Int8s,
    edges_max: int,
) -> tuple[Any, Any, Any, Any, Any, bool]:
    """(source, target int32[…], kind int8[…], their micro-operations int32[…] twice, whether all found room).

    kind: 0 ww, 1 wr, 2 rw, 3 rw by predicate. Versions of transactions that are not committed are passed over.
    """
    versions = len(maker)
    before = numpy.full(versions, NONE, int32)  # the nearest committed version not after this one
    after = numpy.full(versions, NONE, int32)  # the nearest committed version after this one
    keys = len(base) - 1
    for on in range(keys):
        nearest = NONE
        for index in range(base[on], base[on + 1]):
            if maker[index] != NONE and committed[owner[maker[index]]] == 1:
                nearest = index
            before[index] = nearest
        nearest = NONE
        for back in range(base[on + 1] - base[on]):
            index = base[on + 1] - 1 - back
            after[index] = nearest
            if maker[index] != NONE and committed[owner[maker[index]]] == 1:
                nearest = index
    # Appends that were never read come after all that was read: lists of them by key.
    unread = numpy.full(keys, NONE, int32)
    unread_count = numpy.zeros(keys, int64)
    next_unread = numpy.full(len(f), NONE, int32)
    for micro in range(len(f)):
        if f[micro] == WRITE and version[micro] == NONE and committed[owner[micro]] == 1:
            next_unread[micro] = unread[key[micro]]
            unread[key[micro]] = micro
            unread_count[key[micro]] += 1
    size = 0
    for micro in range(len(f)):
        if version[micro] != NONE and committed[owner[micro]] == 1:
            size += 1 + (1 if after[version[micro]] != NONE else unread_count[key[micro]])
    whole = size <= edges_max
    room = min(size, edges_max)
    edges = numpy.empty((4, room), int32)
    kinds = numpy.empty(room, int8)
    size = 0
    for micro in range(len(f)):
        touched, txn = version[micro], owner[micro]
        if touched == NONE or committed[txn] == 0:
            continue
        write = f[micro] == WRITE
        source = NONE if write or before[touched] == NONE else maker[before[touched]]
        if source != NONE and owner[source] != txn and size < room:
            edges[0, size] = owner[source]
            edges[1, size] = txn
            edges[2, size] = source
            edges[3, size] = micro
            kinds[size] = 1
            size += 1
        kind = 0 if write else (3 if f[micro] == PREDICATE_READ else 2)
        many = after[touched] == NONE
        target = unread[key[micro]] if many else maker[after[touched]]
        while target != NONE and size < room:
            if owner[target] != txn:
                edges[0, size] = txn
                edges[1, size] = owner[target]
                edges[2, size] = micro
                edges[3, size] = target
                kinds[size] = kind
                size += 1
            target = next_unread[target] if many else NONE
    return edges[0, :size], edges[1, :size], kinds[:size], edges[2, :size], edges[3, :size], whole
