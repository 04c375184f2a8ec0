"""Numbers for pairs and triples of whole numbers, in the order in which they come: hash tables with open addressing.

Each table is filled with -1 where it is free. Its length must be a power of two, and twice the number of entries.
"""

from __future__ import annotations

from typing import Any

from checkers.compiled import bare_kernel, inlined_kernel

Array = Any  # numpy's


@inlined_kernel
def _hash(one: int, other: int) -> int:
    """Numbers of 64 bits are folded first: a product that overflows is a warning in the plain twin."""
    first = (one ^ (one >> 32)) & 0xFFFFFFFF
    second = (other ^ (other >> 32)) & 0xFFFFFFFF
    mixed = (first * 0x1F3D5B79) ^ (second * 0x2545F491)
    mixed = (mixed ^ (mixed >> 29)) & 0xFFFFFFFF
    return (mixed * 0x3C6EF373) >> 7


@bare_kernel
def number_pairs(one: Array, other: Array, table: Array, firsts: Array, numbers: Array) -> int:
    """Give each pair a number; how many different ones there are. `table` is filled with -1, and has twice the room;
    `firsts` gets where each pair stands first."""
    mask = table.shape[0] - 1
    count = 0
    for place in range(one.shape[0]):
        slot = _hash(one[place], other[place]) & mask
        while table[slot] >= 0:
            known = firsts[table[slot]]
            if one[known] == one[place] and other[known] == other[place]:
                break
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = count
            firsts[count] = place
            count += 1
        numbers[place] = table[slot]
    return count


@bare_kernel
def number_triples(
    one: Array, two: Array, three: Array, table: Array, ones: Array, twos: Array, threes: Array, count: int,
    numbers: Array,
) -> int:  # fmt: skip
    """Give each triple a number; `count` of them have one before. Returns how many have one then. `ones`, `twos`,
    `threes` get the triples by number; `table` has -1 at free places, and twice the room."""
    mask = table.shape[0] - 1
    for place in range(one.shape[0]):
        slot = (_hash(two[place], three[place]) ^ one[place]) & mask
        while table[slot] >= 0:
            known = table[slot]
            if ones[known] == one[place] and twos[known] == two[place] and threes[known] == three[place]:
                break
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = count
            ones[count], twos[count], threes[count] = one[place], two[place], three[place]
            count += 1
        numbers[place] = table[slot]
    return count
