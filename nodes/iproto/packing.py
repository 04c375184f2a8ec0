"""The one place that calls msgpack, with one set of options for links and files.

Tarantool's strings are any bytes: those that are not UTF-8 become lone surrogates and turn back into the same
bytes. Arrays become lists, maps become dicts (a map with an array or a map as its key is refused), extension
types become `msgpack.ExtType` and survive a round trip. Type -1 becomes a `msgpack.Timestamp`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from math import isfinite
from typing import TypeGuard

from msgpack import OutOfData, Packer, Timestamp, Unpacker, unpackb  # type: ignore[import-untyped]  # it ships no types

from nodes.iproto.errors import MalformedFrame

_NIL = b"\xc0"
_TIMESTAMP = -1
"""The extension type of a time in msgpack's own format."""
_ARRAY = 0x90
"""The first byte of an array, plus the number of its values, at most 15."""
pack: Callable[[object], bytes] = Packer(unicode_errors="surrogateescape").pack


def unpack(data: bytes) -> object:
    """Exactly one value. Raises MalformedFrame."""
    try:
        value: object = unpackb(data, strict_map_key=False, unicode_errors="surrogateescape")
    except (ValueError, TypeError) as error:  # TypeError: a map with a list or a map as a key
        raise MalformedFrame(f"expected one msgpack value in {len(data)} bytes: {error}") from None
    return value


def unpack_some(data: bytes, count: int | None = None, usual: int = 0) -> list[object]:
    """The first `count` consecutive values in `data`, or all. Raises MalformedFrame.

    `usual`: the usual number of values, at most 15; if it is right, unpacking takes a fifth of the time.
    """
    if count is None:
        whole = (_array_of(usual, data) if usual else None) or _all_in(data)
        if whole is not None:
            return whole
    return [value for value, _ in islice(unpack_each(data), count)]


def unpack_each(data: bytes) -> Iterator[tuple[object, int]]:
    """All consecutive values in `data`, each with the offset behind it. Raises MalformedFrame."""
    unpacker = _unpacker(len(data))
    unpacker.feed(data)
    end = 0
    while end < len(data):
        try:
            value = unpacker.unpack()
        except (ValueError, TypeError, OutOfData) as error:
            why = str(error) or "it is cut off"
            raise MalformedFrame(f"expected a msgpack value {end} bytes into {len(data)}: {why}") from None
        end = unpacker.tell()
        yield value, end


def _array_of(count: int, data: bytes) -> list[object] | None:
    """All values at once; None if there are not `count` of them."""
    try:
        values: list[object] = unpackb(
            bytes((_ARRAY | count,)) + data, strict_map_key=False, unicode_errors="surrogateescape"
        )
    except (ValueError, TypeError):
        return None
    return values


def _all_in(data: bytes) -> list[object] | None:
    """All values at once; None if the last one is cut off, or the bytes are malformed."""
    unpacker = _unpacker(len(data) + 1)
    unpacker.feed(data)
    unpacker.feed(_NIL)  # an object that is cut off takes it in
    values: list[object] = []
    with suppress(ValueError, TypeError):
        values += unpacker
    return values[:-1] if values and values[-1] is None and unpacker.tell() == len(data) + 1 else None


def _unpacker(size: int) -> Unpacker:
    return Unpacker(strict_map_key=False, unicode_errors="surrogateescape", max_buffer_size=max(size, 1))


def in_json(value: object) -> object:
    """The value as JSON can have it: bytes as hex, an extension as type and bytes, keys that JSON lacks as text.

    So are floats that are no numbers or infinite. A value that is nested too deep for Python is the hex of its msgpack.
    """
    try:
        return _in_json(value)
    except RecursionError:
        return pack(value).hex()


def _in_json(value: object) -> object:
    match value:
        case bytes():
            return value.hex()
        case float() if not isfinite(value):
            return str(value)
        case Timestamp():
            return [_TIMESTAMP, value.to_bytes().hex()]
        case list() | tuple():
            return [_in_json(part) for part in value]
        case dict():
            return {_key_in_json(key): _in_json(part) for key, part in value.items()}
    return value


def _key_in_json(key: object) -> object:
    plain = _in_json(key)
    return plain if plain is None or isinstance(plain, str | int | float) else str(plain)


def packed_vclock(vclock: Mapping[int, int]) -> dict[int, int]:
    """In order of replica id and without component 0: its rows are local and concern no other node."""
    return {origin: vclock[origin] for origin in sorted(vclock) if origin != 0}


def is_vclock(value: object) -> TypeGuard[dict[int, int]]:
    """True for a map from replica id to lsn."""
    return type(value) is dict and all(
        type(origin) is int and type(lsn) is int and origin >= 0 and lsn >= 0 for origin, lsn in value.items()
    )
