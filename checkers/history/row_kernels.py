"""Columns of a table from those of lines: words by numbers of their own, texts behind each other."""

from __future__ import annotations

from typing import Any

from checkers.compiled import bare_kernel

Array = Any  # numpy's


@bare_kernel
def renumber(codes: Array, places: Array, met: Array, found: Array) -> int:
    """Fill `found` with the place of each code among those of the column in the order in which they are met, which go
    to `met`; returns how many these are. The place of code 0 is 0.

    `places` has room for every code, and is filled with -1 before and after.
    """
    count = 0
    for row in range(codes.shape[0]):
        code = codes[row]
        if code == 0:
            found[row] = 0
            continue
        if places[code] < 0:
            places[code] = count
            met[count] = code
            count += 1
        found[row] = places[code]
    for place in range(count):
        places[met[place]] = -1
    return count


@bare_kernel
def copy_texts(data: Array, more: Array, begins: Array, ends: Array, text: Array) -> None:
    """Copy the texts of all rows into one. Places from the end of `data` on are those of `more`."""
    size = data.shape[0]
    at = 0
    for row in range(begins.shape[0]):
        for place in range(begins[row], ends[row]):
            text[at] = data[place] if place < size else more[place - size]
            at += 1
