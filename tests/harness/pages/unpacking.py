"""Packed columns of a page, read as timeline_data.js reads them."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any


def unpacked(text: str) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """(head, columns) of a packed text."""
    data = zlib.decompress(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), wbits=-15)
    place = 4 + int.from_bytes(data[:4], "little")
    head = json.loads(data[4:place])
    columns: dict[str, list[int]] = {}
    for name, length in head["columns"]:
        columns[name] = []
        for _ in range(length):
            value = shift = 0
            while data[place] & 0x80:
                value |= (data[place] & 0x7F) << shift
                shift, place = shift + 7, place + 1
            columns[name].append(value | data[place] << shift)
            place += 1
    return head, columns
