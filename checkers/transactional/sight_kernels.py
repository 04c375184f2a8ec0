"""Kernels of causal consistency: what each transaction saw of each session, as a vector clock.

Sessions are chains, so all that a transaction saw of one is a beginning of it, and a number says how much (AWDIT,
PLDI 2025). The cost is that of transactions and reads times sessions.
"""

from __future__ import annotations

from typing import Any

import numpy
from numpy import int32

from checkers.compiled import kernel
from checkers.transactional.columns import Int32s, Int64s

NONE = -1


@kernel
def clocks(
    ranked: Int32s, offsets: Int64s, source: Int32s, session: Int32s, place: Int32s, sessions: int
) -> Any:
    """int32[n, sessions]: the last transaction of each session, by its place there, that each one saw, or NONE.

    `ranked`: transactions in an order in which each stands behind those that it saw; these are, for t,
    source[offsets[t]] … source[offsets[t+1]-1]. `place`: where in its session a transaction stands.
    """
    seen = numpy.full((len(session), sessions), NONE, int32)
    for at in range(len(ranked)):
        txn = ranked[at]
        for edge in range(offsets[txn], offsets[txn + 1]):
            one = source[edge]
            for on in range(sessions):
                seen[txn, on] = max(seen[txn, on], seen[one, on])
            seen[txn, session[one]] = max(seen[txn, session[one]], place[one])
    return seen


@kernel
def newer(
    reader: Int32s,
    key: Int32s,
    writer: Int32s,
    seen: Any,
    begin: Int64s,
    group: Int64s,
    of: Int32s,
    wrote: Int32s,
    place: Int32s,
    room: int,
) -> tuple[Any, Any, bool]:
    """(one, other int32[…], whether all found room): a reader saw `one`, a writer of the key, and read of `other`.

    Only the last of each session, as the earlier ones come before it; and none that the other one saw itself. The
    writers of key k are in the groups begin[k] … begin[k+1]-1, each of one session `of`; those of group g are
    wrote[group[g]] … wrote[group[g+1]-1], in the order of the session.
    """
    ones = numpy.empty(room, int32)
    others = numpy.empty(room, int32)
    size = 0
    for read in range(len(reader)):
        txn, other = reader[read], writer[read]
        for part in range(begin[key[read]], begin[key[read] + 1]):
            on = of[part]
            last, low, high = seen[txn, on], group[part], group[part + 1]
            while low < high:
                middle = (low + high) // 2
                if place[wrote[middle]] <= last:
                    low = middle + 1
                else:
                    high = middle
            if low == group[part]:
                continue
            one = wrote[low - 1]
            # If the other one saw it, the graph has their order.
            if one == other or (other != NONE and seen[other, on] >= place[one]):
                continue
            if size == room:
                return ones, others, False
            ones[size] = one
            others[size] = other
            size += 1
    return ones[:size], others[:size], True
