"""What `bench.txlog_tables` needs compiled: numbers for the names of transactions, and pairs of events."""

from __future__ import annotations

from typing import Any

import numpy

from checkers.compiled import bare_kernel

Array = Any  # numpy's


@bare_kernel
def hashed(first: int, end: int, data: Array) -> Any:
    """FNV-1a, with its upper bits mixed in."""
    value = numpy.uint64(14695981039346656037)
    for at in range(first, end):
        value = (value ^ numpy.uint64(data[at])) * numpy.uint64(1099511628211)
    value ^= value >> numpy.uint64(29)
    return value


@bare_kernel
def is_same(first: Array, data: Array, one: int, other_first: Array, other_data: Array, other: int) -> bool:
    at, to = first[one], other_first[other]
    size = first[one + 1] - at
    if other_first[other + 1] - to != size:
        return False
    for step in range(size):
        if data[at + step] != other_data[to + step]:
            return False
    return True


@bare_kernel
def filed(first: Array, data: Array, table: Array) -> int:
    """Fill a table of numbers of names by their hashes (size: a power of two; -1: free); how many names come twice."""
    mask = numpy.uint64(table.shape[0] - 1)
    twice = 0
    for name in range(first.shape[0] - 1):
        at = hashed(first[name], first[name + 1], data) & mask
        while table[at] >= 0 and not is_same(first, data, name, first, data, table[at]):
            at = (at + numpy.uint64(1)) & mask
        if table[at] >= 0:
            twice += 1
        else:
            table[at] = name
    return twice


@bare_kernel
def followed(first: Array, data: Array, in_first: Array, in_data: Array, found: Array) -> int:
    """The number of each name that follows the one before it in the other names, else -1; -2 for "". How many -1."""
    last, strange = -1, 0
    for name in range(first.shape[0] - 1):
        if first[name] == first[name + 1]:
            found[name] = -2
        elif last + 2 < in_first.shape[0] and is_same(first, data, name, in_first, in_data, last + 1):
            last += 1
            found[name] = last
        else:
            found[name] = -1
            strange += 1
    return strange


@bare_kernel
def looked_up(first: Array, data: Array, table: Array, in_first: Array, in_data: Array, found: Array) -> None:
    """The number of each name with a -1, by a table of the names in `in_first` and `in_data`; -1: it is not there."""
    mask = numpy.uint64(table.shape[0] - 1)
    for name in range(first.shape[0] - 1):
        if found[name] == -1:
            at = hashed(first[name], first[name + 1], data) & mask
            while table[at] >= 0 and not is_same(first, data, name, in_first, in_data, table[at]):
                at = (at + numpy.uint64(1)) & mask
            found[name] = table[at]


@bare_kernel
def pair(process: Array, invokes: Array, running: Array, partner: Array) -> bool:
    """Fill `partner`: of an invocation the row of its completion (-1: none), of a completion -2.

    `running` has a place for every process, filled with -1. False if some process does not take turns.
    """
    for row in range(process.shape[0]):
        who = process[row]
        if invokes[row]:
            if running[who] >= 0:
                return False
            running[who] = row
            partner[row] = -1
        else:
            if running[who] < 0:
                return False
            partner[running[who]] = row
            partner[row] = -2
            running[who] = -1
    return True
