"""Writes Fressian and Jepsen's blocks in the most obvious way: the twin of the decoder. `choose` draws among forms."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from checkers.history.foreign.edn import Spelled
from checkers.history.foreign.fressian_tags import BlockRef
from checkers.history.values import Set

Choose = Callable[[int], int]
"""One of 0 … n - 1."""


class Writer:
    """Values as bytes. Keywords' names are cached, and everything else where `choose` says so."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.cache: list[tuple[type, Any]] = []
        self.tags: list[str] = []

    def value(self, value: Any) -> bytes:
        if isinstance(value, str) and not isinstance(value, Spelled) and self.choose(4) == 0:
            return self.cached(value)
        return self.plain(value)

    def plain(self, value: Any) -> bytes:
        match value:
            case None:
                return b"\xf7"
            case bool():
                return b"\xf5" if value else b"\xf6"
            case int():
                return self.whole(value)
            case float():
                return b"\xfa" + struct.pack(">d", value)
            case Spelled():
                space, _, name = str(value).rpartition("/")
                return b"\xca" + (self.cached(space) if space else b"\xf7") + self.cached(name)
            case str():
                return self.text(value)
            case Set():
                if not value and self.choose(2):
                    return self.tag("persistent-hash-set", 1) + b"\xf7"
                written = self.tag("persistent-hash-set", 1) if self.choose(2) else b"\xc1"
                return written + self.list(value)
            case list():
                return self.list(value)
            case dict():
                return b"\xc0" + self.list([part for member in value.items() for part in member])
            case BlockRef():
                return self.tag("block-ref", 1) + self.whole(value.block)
        raise TypeError(value)

    def op(self, entry: dict[str, Any]) -> bytes:
        """A record jepsen.history.Op."""
        return b"".join(
            (
                self.tag("jepsen.history.Op", 7),
                self.whole(entry["index"]),
                self.whole(entry["time"]),
                *(self.value(entry[name]) for name in ("type", "process", "f", "value")),
                b"\xf7",
            )
        )

    def whole(self, number: int) -> bytes:
        if not -(1 << 63) <= number < 1 << 63:
            data = number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
            return b"\xc6\xd9" + self.whole(len(data)) + data
        forms = [b"\xf8" + struct.pack(">q", number)]
        if -1 <= number < 0x40:
            forms.append(bytes([number & 0xFF]))
        for size, zero, upper in (
            (1, 0x50, 16),
            (2, 0x68, 8),
            (3, 0x72, 2),
            (4, 0x76, 2),
            (5, 0x7A, 2),
            (6, 0x7E, 2),
        ):
            above, below = divmod(number, 1 << 8 * size)
            if -upper <= above < upper:
                forms.append(bytes([zero + above]) + below.to_bytes(size, "big"))
        return forms[self.choose(len(forms))]

    def text(self, text: str) -> bytes:
        units = text.encode("utf-16-be", "surrogatepass")
        data = b"".join(
            chr(unit).encode("utf-8", "surrogatepass")
            for unit in struct.unpack(f">{len(units) // 2}H", units)
        )
        if len(data) < 8 and self.choose(2):
            return bytes([0xDA + len(data)]) + data
        cut = self.choose(len(data) + 1)
        first = b"\xe2" + self.whole(cut) + data[:cut] if cut else b""
        return first + b"\xe3" + self.whole(len(data) - cut) + data[cut:]

    def list(self, values: Sequence[Any]) -> bytes:
        form = self.choose(3)
        if form == 0:
            return b"\xed" + b"".join(map(self.value, values)) + b"\xfd"
        if form == 1 and len(values) < 8:
            return bytes([0xE4 + len(values)]) + b"".join(map(self.value, values))
        return b"\xec" + self.whole(len(values)) + b"".join(map(self.value, values))

    def cached(self, value: Any) -> bytes:
        kept = (type(value), value)
        if kept not in self.cache:
            self.cache.append(kept)
            return b"\xcd" + self.plain(value)
        place = self.cache.index(kept)
        return bytes([0x80 + place]) if place < 32 and self.choose(2) else b"\xcc" + self.whole(place)

    def tag(self, tag: str, fields: int) -> bytes:
        if tag not in self.tags:
            written = b"\xef" + self.text(tag) + self.whole(fields)
            self.tags.append(tag)
            return written
        place = self.tags.index(tag)
        return bytes([0xA0 + place]) if place < 16 and self.choose(2) else b"\xf0" + self.whole(place)


FRESSIAN, PARTIAL, STREAM, VECTOR = 2, 3, 4, 5


def block(kind: int, data: bytes) -> bytes:
    length = struct.pack(">Q", 28 + len(data))
    rest = struct.pack(">H", kind) + bytes(14)
    return length + struct.pack(">I", zlib.crc32(data + length + bytes(4) + rest)) + rest + data


def file(blocks: dict[int, tuple[int, bytes]], root: int, version: int = 1) -> bytes:
    """A file of these blocks: (type, data) by their numbers."""
    body, offsets = b"", {}
    for number, (kind, data) in blocks.items():
        offsets[number] = 18 + len(body)
        body += block(kind, data)
    index = struct.pack(">I", root) + b"".join(struct.pack(">IQ", *pair) for pair in offsets.items())
    return b"JEPSEN" + struct.pack(">IQ", version, 18 + len(body)) + body + block(1, index)


def test_file(
    operations: Sequence[bytes], chunk: int, results: dict[str, Any] | None, choose: Choose
) -> bytes:
    """A test whose operations, written by one Writer a chunk, are in a big vector. The results are in two parts."""
    test: dict[str, Any] = {"name": "made", "history": BlockRef(2)}
    blocks: dict[int, tuple[int, bytes]] = {}
    vector = struct.pack(">Q", len(operations))
    for first in range(0, len(operations), chunk):
        number = 10 + first
        blocks[number] = STREAM, b"".join(operations[first : first + chunk])
        vector += struct.pack(">QI", first, number)
    blocks[2] = VECTOR, vector
    if results is not None:
        rest = {key: value for key, value in results.items() if key != "valid?"}
        blocks[3] = PARTIAL, bytes(4) + Writer(choose).value(rest)
        blocks[4] = PARTIAL, struct.pack(">I", 3) + Writer(choose).value({"valid?": results["valid?"]})
        test["results"] = BlockRef(4)
    blocks[1] = FRESSIAN, Writer(choose).value(test)
    return file(blocks, root=1)
