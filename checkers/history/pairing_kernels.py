"""Pairs the events of a record without making an object of any."""

from __future__ import annotations

from typing import Any

from checkers.compiled import bare_kernel

Array = Any  # numpy's, of int64
PAIRED, ODD = 0, 1


@bare_kernel
def pair(process: Array, invokes: Array, running: Array, partner: Array) -> int:
    """Fill `partner`: of an invocation the row of its completion (-1: none), of a completion -2.

    `running` has a place for every process, filled with -1. ODD if some process does not take turns.
    """
    for row in range(process.shape[0]):
        who = process[row]
        if invokes[row]:
            if running[who] >= 0:
                return ODD
            running[who] = row
            partner[row] = -1
        else:
            if running[who] < 0:
                return ODD
            partner[running[who]] = row
            partner[row] = -2
            running[who] = -1
    return PAIRED
