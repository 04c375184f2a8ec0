"""Fressian, the binary notation of Clojure's values: bytes in, the values that `edn` reads from their text out.

A value begins with a byte that is its code. The byte alone is a small number, nil, true or false, a short length or a
place in a cache; of other codes the rest follows.

| codes | value |
|---|---|
| 00–3F, FF | a whole number, the byte itself |
| 40–7F | a whole number: the code has its upper bits, 1 to 6 bytes behind it the rest |
| F8 | a whole number in 8 bytes |
| 80–9F, CC, CD | a value of the cache, by its number; CD puts the value that follows into the cache |
| EF | a struct: its tag, how many fields it has, the fields |
| A0–AF, F0 | a struct of a tag that was there before, by its number |
| B0–B5, C0–CA | a struct whose tag has a code of its own |
| CF | the end of a part, with length and Adler-32; what was cached is forgotten, as it is behind FE |
| D0–D9 | bytes, as a list of numbers |
| DA–E3 | text in CESU-8: a character outside of the basic plane has two surrogates of three bytes |
| E4–EE, FD | a list of known length, or one that FD ends |
| F5, F6, F7; F9–FC | true, false, nil; a float, a double, 0.0, 1.0 |

What the tags of structs stand for is in `fressian_tags`; of an unknown tag a struct is the list of its fields.

Sources: github.com/Datomic/fressian, `impl/Codes.java` and `FressianReader.java`; github.com/clojure/data.fressian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, overload

from checkers.history.foreign.edn import Spelled
from checkers.history.foreign.fressian_tags import MADE, Misfit, text
from checkers.history.nesting import DEPTH_MAX

_FLOAT, _DOUBLE, _INT64, _INT32 = (struct.Struct(form) for form in (">f", ">d", ">q", ">I"))
_SPREAD_MAX: Final = 1_000_000
"""So many values may come from the cache again, beside those that have bytes of their own (counted twice in a list)."""
_FOOTER: Final = b"\xcf" * 4


class Buffer(Protocol):
    """bytes, or a mapped file."""

    @overload
    def __getitem__(self, place: int, /) -> int: ...
    @overload
    def __getitem__(self, place: slice, /) -> bytes: ...
    def __len__(self) -> int: ...


class Damaged(Exception):
    """The bytes are not Fressian. The message says what came."""


class Values:
    """Reads the values in `data[at:end]`, one after the other. Raises Damaged."""

    def __init__(self, data: Buffer, at: int, end: int) -> None:
        self._data, self._at, self._end = data, at, end
        self._part = at
        self._cache: list[tuple[Any, int]] = []
        self._structs: list[tuple[str, int]] = []
        self._read, self._read_max = 0, 2 * (end - at) + _SPREAD_MAX
        self._depth = 0

    def __iter__(self) -> Iterator[Any]:
        """All values up to the end."""
        while self._skips_footer():
            yield self.value()

    def value(self) -> Any:
        """The next value."""
        code = self._byte()
        self._read += 1
        if code < 0x80:
            return self._number(code)
        if code < 0xA0:
            return self._cached(code - 0x80)
        if self._depth > 2 * DEPTH_MAX:  # a map is a struct with a list
            raise Damaged(f"values nested more than {DEPTH_MAX} deep")
        self._depth += 1
        made = self._other(code)
        self._depth -= 1
        return made

    # ---- bytes

    def _byte(self) -> int:
        if self._at >= self._end:
            raise Damaged("a value that is cut off")
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, size: int) -> bytes:
        if not 0 <= size <= self._end - self._at:
            raise Damaged(
                f"a value that is cut off: {size:,} bytes of which {self._end - self._at:,} are there"
            )
        self._at += size
        return self._data[self._at - size : self._at]

    def _number(self, code: int) -> int:
        """Codes under 80. From 40 on the code less the middle of its range stands above the bytes behind it."""
        if code < 0x40:
            return code
        zero, size = next((zero, size) for ends, zero, size in _PACKED if code < ends)
        return ((code - zero) << 8 * size) | int.from_bytes(self._bytes(size), "big")

    def _whole(self) -> int:
        value = self.value()
        if type(value) is not int:
            raise Damaged(f"{value!r:.40} in the place of a whole number")
        return value

    def _size(self) -> int:
        """How many values or bytes follow; each takes at least one."""
        size = self._whole()
        if not 0 <= size <= self._end - self._at:
            raise Damaged(f"a length of {size:,} with {self._end - self._at:,} bytes left")
        return size

    # ---- values

    def _other(self, code: int) -> Any:
        if code < 0xB0:
            return self._struct(code - 0xA0)
        if (known := _SHORT_TAGS.get(code)) is not None:
            return self._tagged(*known)
        if 0xD0 <= code <= 0xD9:
            made = list(self._chunks(code, 0xD0))
            self._read += len(made)
            return made
        if 0xDA <= code <= 0xE3:
            return self._text(code)
        if 0xE4 <= code <= 0xEC:
            return self._list(code - 0xE4 if code < 0xEC else self._size())
        rare = _RARE.get(code)
        if rare is None:
            raise Damaged(f"code {code:02X}, which begins no value, at byte {self._at - 1:,}")
        return rare(self)

    def _cached(self, number: int) -> Any:
        if not 0 <= number < len(self._cache):
            raise Damaged(f"value {number:,} of a cache that holds {len(self._cache):,}")
        value, size = self._cache[number]
        if not size:
            raise Damaged("a value that holds itself")
        self._read += size - 1
        if self._read > self._read_max:
            raise Damaged("values of its cache that repeat each other without end")
        return value

    def _put(self) -> Any:
        cache, place, before = self._cache, len(self._cache), self._read
        cache.append((None, 0))
        value = self.value()
        if cache is not self._cache:
            raise Damaged("a value for the cache in which the cache is cleared")
        cache[place] = value, self._read - before
        return value

    def _struct(self, number: int) -> Any:
        if not 0 <= number < len(self._structs):
            raise Damaged(f"tag {number:,} of {len(self._structs):,} that are known")
        return self._tagged(*self._structs[number])

    def _new_struct(self) -> Any:
        tag, fields = self.value(), self._size()
        if not isinstance(tag, str):
            raise Damaged(f"{tag!r:.40} as the tag of a struct")
        self._structs.append((tag, fields))
        return self._tagged(tag, fields)

    def _tagged(self, tag: str, fields: int) -> Any:
        if tag in _ARRAYS:
            return self._list(self._size())
        made = MADE.get(tag)
        values = self._list(fields)
        try:
            return values if made is None else made(values)
        except Misfit as error:
            raise Damaged(f"{values!r:.60} as the fields of {tag}") from error

    def _chunks(self, code: int, first: int) -> bytes:
        """Codes from `first` on: 8 lengths in the code, a chunk that others follow, the last one."""
        whole = bytearray()
        while code == first + 8:
            whole += self._bytes(self._size())
            code = self._byte()
        if not first <= code <= first + 9:
            raise Damaged(f"code {code:02X} in the middle of a text or bytes, at byte {self._at - 1:,}")
        return bytes(whole) + self._bytes(self._size() if code > first + 8 else code - first)

    def _text(self, code: int) -> str:
        try:
            return text(self._chunks(code, 0xDA))
        except Misfit as error:
            raise Damaged(f"bytes that are no text, before byte {self._at:,}") from error

    def _list(self, size: int) -> list[Any]:
        values = []
        for _ in range(size):
            at = self._at
            if at < self._end and (code := self._data[at]) < 0x40:  # most elements of most lists
                self._at = at + 1
                values.append(code)
            else:
                values.append(self.value())
        self._read += size
        return values

    def _until_end(self) -> list[Any]:
        values = []
        while self._at < self._end and self._data[self._at] != _END:
            values.append(self.value())
        self._byte()
        return values

    def _open_list(self) -> list[Any]:
        """The end of the bytes may end it, too."""
        values = []
        while self._skips_footer():
            if self._data[self._at] == _END:
                self._at += 1
                break
            values.append(self.value())
        return values

    # ---- parts

    def _skips_footer(self) -> bool:
        """Whether anything is left behind the footers that stand here."""
        while self._at < self._end and self._data[self._at] == _FOOTER[0]:
            self._footer()
        return self._at < self._end

    def _footer(self) -> None:
        size = self._at - self._part
        checksum = zlib.adler32(self._data[self._part : self._at] + _FOOTER + size.to_bytes(4, "big"))
        footer = self._bytes(12)
        if footer[:4] != _FOOTER or _INT32.unpack_from(footer, 4)[0] != size:
            raise Damaged(f"a footer that is not of {size:,} bytes")
        if _INT32.unpack_from(footer, 8)[0] != checksum:
            raise Damaged("a checksum that does not fit")
        self._reset()
        self._part = self._at

    def _reset(self) -> None:
        self._cache, self._structs = [], []

    def _behind_reset(self) -> Any:
        self._reset()
        return self.value()


_END: Final = 0xFD
_PACKED: Final = (
    (0x60, 0x50, 1),
    (0x70, 0x68, 2),
    (0x74, 0x72, 3),
    (0x78, 0x76, 4),
    (0x7C, 0x7A, 5),
    (0x80, 0x7E, 6),
)
"""Codes below the first number are the upper bits, more or less than the second one, above so many bytes."""
_RARE: Final[dict[int, Callable[[Values], Any]]] = {
    0xCC: lambda values: values._cached(values._whole()),
    0xCD: Values._put,
    0xCE: Values._put,
    0xED: Values._until_end,
    0xEE: Values._open_list,
    0xEF: Values._new_struct,
    0xF0: lambda values: values._struct(values._whole()),
    0xF5: lambda values: True,
    0xF6: lambda values: False,
    0xF7: lambda values: None,
    0xF8: lambda values: _INT64.unpack(values._bytes(8))[0],
    0xF9: lambda values: _short_float(values._bytes(4)),
    0xFA: lambda values: _float(_DOUBLE.unpack(values._bytes(8))[0]),
    0xFB: lambda values: 0.0,
    0xFC: lambda values: 1.0,
    0xFE: Values._behind_reset,
    0xFF: lambda values: -1,
}
_SHORT_TAGS: Final = {
    0xB0: ("long[]", 2),
    0xB1: ("double[]", 2),
    0xB2: ("boolean[]", 2),
    0xB3: ("int[]", 2),
    0xB4: ("float[]", 2),
    0xB5: ("Object[]", 2),
    0xC0: ("map", 1),
    0xC1: ("set", 1),
    0xC3: ("uuid", 1),
    0xC4: ("regex", 1),
    0xC5: ("uri", 1),
    0xC6: ("bigint", 1),
    0xC7: ("bigdec", 2),
    0xC8: ("inst", 1),
    0xC9: ("sym", 2),
    0xCA: ("key", 2),
}
_ARRAYS: Final = frozenset(tag for tag, _ in _SHORT_TAGS.values() if tag.endswith("[]"))


def _float(number: float) -> float | Spelled:
    if number - number == 0:
        return number
    name = {float("inf"): "Inf", float("-inf"): "-Inf"}.get(number, "NaN")
    return Spelled.of(name, f"##{name}")


def _short_float(data: bytes) -> float | Spelled:
    """As a JVM writes it: with the fewest digits that make this float of 32 bits."""
    number: float = _FLOAT.unpack(data)[0]
    for digits in range(1, 9):
        shorter = float(f"{number:.{digits}g}")
        if shorter - shorter == 0 and abs(shorter) < 3.4e38 and _FLOAT.pack(shorter) == data:
            return shorter
    return _float(number)
