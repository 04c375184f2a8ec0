"""Columns of whole numbers and tables of texts, packed for a page: variable-length bytes, deflated, in base64.

The packed form is `[length of the head, 4 bytes, little-endian][head: JSON][column][column]…`, deflated without a
header ("deflate-raw"), in the alphabet of base64 for addresses, which has no slash. The head names the columns and the
number of values in each. timeline_data.js reads it, and tests/harness/pages/unpacking.py.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy
from numpy.typing import NDArray

Whole = NDArray[numpy.int64]


@dataclass(slots=True)
class Coded:
    """Texts as numbers: 0 for a new text, else the length of the table less the place of the text in it.

    Texts that are used again soon, or once only, thus become small numbers.
    """

    table: list[Any] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    _places: dict[Any, int] = field(default_factory=dict)

    def add(self, texts: Iterable[Any]) -> None:
        """`texts`: each a text, None, or a tuple of texts."""
        table, places, codes = self.table, self._places, self.codes
        for text in texts:
            known = len(table)
            place = places.setdefault(text, known)
            codes.append(known - place)
            if place == known:
                table.append(text)


def varints(values: Whole) -> bytes:
    """Each number, none below 0, in groups of seven bits, the lowest first; the top bit says that more follow."""
    left = numpy.asarray(values, dtype=numpy.uint64)
    lengths = numpy.ones(len(left), dtype=numpy.int64)
    for group in range(1, 10):
        lengths += left >= numpy.uint64(1 << 7 * group)
    places = numpy.cumsum(lengths) - lengths
    out = numpy.zeros(int(lengths.sum()), dtype=numpy.uint8)
    for group in range(int(lengths.max(initial=0))):
        chosen = lengths > group
        low = (left[chosen] >> numpy.uint64(7 * group)) & numpy.uint64(0x7F)
        more = numpy.where(lengths[chosen] > group + 1, 0x80, 0)
        out[places[chosen] + group] = low.astype(numpy.uint8) | more.astype(numpy.uint8)
    return out.tobytes()


def differences(values: Whole | NDArray[numpy.int32]) -> Whole:
    """Each number less the one before, with the sign in the lowest bit."""
    whole: Whole = values.astype(numpy.int64)
    return with_sign_last(numpy.diff(whole, prepend=0))


def with_sign_last(values: Whole) -> Whole:
    """No number below 0: 0, -1, 1, -2 become 0, 1, 2, 3."""
    return (values << 1) ^ (values >> 63)


def packed(head: Mapping[str, Any], columns: Mapping[str, Whole | Iterable[int]]) -> str:
    """`columns` hold no number below 0; the head gets their names and lengths as "columns"."""
    arrays = {name: numpy.asarray(values, dtype=numpy.int64) for name, values in columns.items()}
    lengths = [[name, len(values)] for name, values in arrays.items()]
    text = json.dumps({**head, "columns": lengths}, ensure_ascii=False, separators=(",", ":"))
    encoded = text.encode("utf-8", "replace")
    body = b"".join(varints(values) for values in arrays.values())
    deflated = zlib.compress(len(encoded).to_bytes(4, "little") + encoded + body, level=6, wbits=-15)
    return base64.urlsafe_b64encode(deflated).decode().rstrip("=")
