"""The queue of `checkers.logs.wal.replay` over columns, between the decisions that the caller makes."""

from __future__ import annotations

from typing import Any

from checkers.compiled import bare_kernel, inlined_kernel

Array = Any  # numpy's
POSITION, ORDERED, HEAD, TAIL, OPEN, OPEN_WAITS, OPEN_IS_VOID, FIRST, LAST, HAS_PENDING = range(10)
REGS = 10
ABSENT, NOP, COMMITTED, CONFIRMED, ROLLED_BACK, PENDING = range(6)
DONE, DECISION, NO_ROOM = range(3)
_WRITE, _NOP, _CONFIRM, _VOTE = 0, 1, 2, 6  # places in `columns.KINDS`
_ENDS, _SYNCHRONOUS = 1, 2


@inlined_kernel
def _close(regs: Array, queue: Array, fates: Array, origin: Array, lsn: Array) -> bool:
    """The open transaction ends: it is committed, or it waits. False if the queue has no room for it."""
    name, row = regs[FIRST], regs[LAST]
    if regs[OPEN_IS_VOID]:
        fates[name] = NOP
    # Behind a queue that is not empty an asynchronous transaction waits, too.
    elif regs[OPEN_WAITS] or regs[HEAD] < regs[TAIL]:
        if regs[HEAD] == regs[TAIL]:
            regs[HEAD] = regs[TAIL] = 0
        if regs[TAIL] >= queue.shape[0]:
            return False
        entry = regs[TAIL]
        queue[entry, 0] = name
        queue[entry, 1] = origin[row]
        queue[entry, 2] = lsn[row]
        queue[entry, 3] = regs[OPEN_WAITS]
        regs[TAIL] = entry + 1
        fates[name] = PENDING
    else:
        fates[name] = COMMITTED
    regs[OPEN] = 0
    return True


@bare_kernel
def replay(
    at: Array, kind: Array, bits: Array, origin: Array, owner: Array, lsn: Array, until: Array, transaction: Array,
    regs: Array, begins: Array, confirmed_of: Array, queue: Array, fates: Array, decided: Array, order: Array,
) -> int:  # fmt: skip
    """Read the log from regs[POSITION] on. `queue` has a row for each entry between regs[HEAD] and regs[TAIL]:
    transaction, origin, last lsn, whether it is synchronous. `begins` and `confirmed_of` are by origin. `order` has
    room for every row of the log.

    A transaction without a last row ends where something else begins; at the end of the log it has no fate.
    DONE at the end; DECISION at one that only the caller knows the meaning of; NO_ROOM for the queue.
    """
    while regs[POSITION] < at.shape[0]:
        row = at[regs[POSITION]]
        row_kind = kind[row]
        is_data = row_kind == _WRITE or row_kind == _NOP
        is_over = regs[OPEN] and (not is_data or transaction[row] != regs[FIRST])
        if is_over and not _close(regs, queue, fates, origin, lsn):
            return NO_ROOM
        if is_data:
            if regs[OPEN] == 0:
                regs[FIRST] = transaction[row]
                regs[OPEN_WAITS] = 0
                regs[OPEN_IS_VOID] = 1
            if bits[row] & _SYNCHRONOUS:
                regs[OPEN_WAITS] = 1
            if row_kind == _WRITE:
                regs[OPEN_IS_VOID] = 0
            regs[OPEN] = 1
            regs[LAST] = row
            if bits[row] & _ENDS and not _close(regs, queue, fates, origin, lsn):
                return NO_ROOM  # this row comes again
            regs[POSITION] += 1
            continue
        if row_kind == _VOTE:
            regs[POSITION] += 1
            continue
        if row_kind != _CONFIRM:
            return DECISION
        queue_owner, last = owner[row], until[row]
        # Usual is a CONFIRM of an entry that waits, or of what is confirmed or was before the log. With a PROMOTE that
        # waits, a CONFIRM may make that take effect: `Limbo` knows how.
        names = last <= begins[queue_owner] or last <= confirmed_of[queue_owner]
        entry = regs[HEAD]
        while not names and entry < regs[TAIL]:  # as a rule it is the first one, of thousands perhaps
            names = queue[entry, 1] == queue_owner and queue[entry, 2] == last and queue[entry, 3] != 0
            entry += 1
        if not names or regs[HAS_PENDING]:
            return DECISION
        if last > confirmed_of[queue_owner]:
            confirmed_of[queue_owner] = last
        while regs[HEAD] < regs[TAIL]:
            entry = regs[HEAD]
            # Up to here it is cumulative, and asynchronous entries right behind are committed with it.
            if queue[entry, 3] and (queue[entry, 1] != queue_owner or queue[entry, 2] > last):
                break
            regs[HEAD] = entry + 1
            name = queue[entry, 0]
            fates[name] = CONFIRMED
            decided[name] = regs[POSITION]
            if queue[entry, 3]:
                order[regs[ORDERED]] = name
                regs[ORDERED] += 1
        regs[POSITION] += 1
    return DONE
