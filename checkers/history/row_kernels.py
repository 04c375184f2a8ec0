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
def copy_texts(
    data: Array, more: Array, begins: Array, ends: Array, has_blanks: bool, offsets: Array, text: Array
) -> None:
    """Copy the texts of all rows into one, where that of a row begins at its offset. Places from the end of `data` on
    are those of `more`. Without `has_blanks`, blanks in `data` are left out: they stand between numbers.
    """
    size = data.shape[0]
    at = 0
    for row in range(begins.shape[0]):
        offsets[row] = at
        for place in range(begins[row], ends[row]):
            if place >= size:
                text[at] = more[place - size]
            elif has_blanks or data[place] > 32:
                text[at] = data[place]
            else:
                at -= 1
            at += 1
    offsets[begins.shape[0]] = at
