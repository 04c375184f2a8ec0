"""Tarantool's log and snapshot files (`.xlog`, `.snap`) as bytes: encoding what is appended, decoding whole files.

A file is a text header (ended by an empty line), blocks, and, if it was closed in order, an end marker:

    XLOG                                                  d5ba0bab  block of plain rows
    0.13                                                  d5ba0bba  block of rows, packed with zstd
    Version: 3.2.0                                        d510aded  end marker
    Instance: 7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7
    VClock: {1: 7}          (the rows of all older files; the rows of this file are newer)
    PrevVClock: {1: 3}      (the VClock of the file before, if there is one)

A block is written in one go, usually one transaction; it is good or bad as a whole. It begins with 19 bytes:
the magic, the length, 0, the checksum (CRC-32C without the usual inversions) and a string as padding.

`decode` stops at the first wrong byte and describes the damage in one sentence (`Xlog.damage`). It raises only if
the file is not a log. A crash may leave a new file empty, or with a header that is cut off or zeros. This is damage
too, with no `meta` and no good byte. `nodes.iproto.transactions` checks that the rows are whole transactions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import takewhile
from typing import Any, Generic, Literal, TypeVar, overload

from crc32c import crc32c
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from nodes.iproto.errors import MalformedFrame, XlogError
from nodes.iproto.messages import UUID, Row
from nodes.iproto.packing import pack, unpack_some
from nodes.iproto.rows import packed_row, rows_of
from nodes.kernel import vclock as vclocks

Kind = Literal["XLOG", "SNAP"]
LOGS: tuple[Kind, ...] = ("XLOG", "SNAP")
WITHOUT_VCLOCK = ("RUN", "INDEX")
"""Kinds of vinyl's files (`nodes.iproto.vinyl`) that name no vclock."""
R = TypeVar("R")
Unpacks = Callable[[bytes], Sequence[R]]
"""The payload of a block with a good checksum → its rows, in the reader's form. Raises MalformedFrame."""

_PLAIN = bytes.fromhex("d5ba0bab")
_ZSTD = bytes.fromhex("d5ba0bba")
_END = bytes.fromhex("d510aded")
_BLOCK = bytes.fromhex("d5ba0b")
"""The first bytes of a block of rows, packed or not."""
_FIXHEADER_BYTES = 19
_COMPRESS_FROM_BYTES = 2048
_UNPACKED_BYTES_MAX = 1 << 30
_HEADER_BYTES_MAX = 4096

_NUMBER = r"(?:0|[1-9]\d*)"
_VCLOCK = re.compile(rf"\{{\s*({_NUMBER}\s*:\s*{_NUMBER}\s*(,\s*{_NUMBER}\s*:\s*{_NUMBER}\s*)*)?\}}")
_COMPONENT = re.compile(r"(\d+)\s*:\s*(\d+)")


@dataclass(frozen=True, slots=True)
class Meta:
    """The text header."""

    kind: str
    server_version: str
    instance_uuid: str
    vclock: Mapping[int, int]
    previous_vclock: Mapping[int, int] | None

    @property
    def version(self) -> tuple[int, ...]:
        """The version of the server: `2.6.0-0-g47aa4e01e` → (2, 6, 0)."""
        parts = takewhile(str.isdigit, self.server_version.split("-", maxsplit=1)[0].split("."))
        return tuple(map(int, parts))


@dataclass(frozen=True, slots=True)
class Xlog(Generic[R]):
    """The content of a file. Cut it at `good_bytes` before appending; `finished`: it has the end marker.

    `can_be_torn`: the damage is of bytes, as a crash leaves it; else a block was written wrong, or a byte has changed
    that no checksum covers.
    """

    meta: Meta | None
    rows: tuple[R, ...]
    good_bytes: int
    finished: bool
    damage: str | None
    can_be_torn: bool = True


class _Damage(Exception):
    """Ends the reading of one file; never leaves this module."""

    can_be_torn = True


class _WrittenWrong(_Damage):
    """A block with a good checksum."""

    can_be_torn = False


def file_name(vclock: Mapping[int, int], kind: Kind = "XLOG") -> str:
    """`00000000000000000012.xlog`: the sum of the components in 20 digits."""
    return f"{vclocks.signature(vclock):020d}.{kind.lower()}"


def encode_header(
    kind: Kind,
    instance_uuid: str,
    vclock: Mapping[int, int],
    previous_vclock: Mapping[int, int] | None = None,
    server_version: str = "3.2.0",
) -> bytes:
    lines = [
        kind,
        "0.13",
        f"Version: {server_version}",
        f"Instance: {instance_uuid}",
        f"VClock: {vclocks.text(vclock)}",
    ]
    if previous_vclock is not None:
        lines.append(f"PrevVClock: {vclocks.text(previous_vclock)}")
    return ("\n".join(lines) + "\n\n").encode("ascii")


def encode_block(rows: Sequence[Row], level: int = 3) -> bytes:
    """One transaction, or several whole ones. `level` is zstd's, used from 2 KiB on as Tarantool does."""
    return encode_packed([packed_row(row) for row in rows], level)


def encode_packed(rows: Sequence[bytes], level: int = 3) -> bytes:
    """A block of rows that are packed already."""
    assert rows, "Tarantool writes no empty block"
    payload = b"".join(rows)
    if _FIXHEADER_BYTES + len(payload) < _COMPRESS_FROM_BYTES:
        return _fixheader(_PLAIN, payload) + payload
    packed = _compressor(level).compress(payload)
    return _fixheader(_ZSTD, packed) + packed


def encode_eof() -> bytes:
    return _END


@overload
def decode(data: bytes) -> Xlog[Row]: ...
@overload
def decode(data: bytes, unpacked: Unpacks[R], kinds: tuple[str, ...] = ...) -> Xlog[R]: ...
def decode(data: bytes, unpacked: Unpacks[Any] = rows_of, kinds: tuple[str, ...] = LOGS) -> Xlog[Any]:
    """The content of a file of these kinds; `unpacked` decodes a block.

    Raises XlogError if it is no xlog, or has a bad header.
    """
    offset = rows_at(data)
    if offset < 0:
        return _torn_header(data, kinds)
    meta = _meta(data[: offset - 2], kinds)
    rows: list[Any] = []
    finished = False
    try:
        while offset < len(data) and not finished:
            if data[offset : offset + 4] == _END:
                finished, offset = True, offset + 4
            else:
                block, offset = _block(data, offset, unpacked)
                rows += block
        if offset < len(data):
            raise _Damage(f"{len(data) - offset} bytes after the end marker")
    except _Damage as damage:
        where = (
            f"at offset {offset}; the {len(rows)} rows in the first {offset} of {len(data)} bytes are good"
        )
        return Xlog(meta, tuple(rows), offset, finished, f"{damage} {where}", damage.can_be_torn)
    return Xlog(meta, tuple(rows), offset, finished, None)


def rows_in(blocks: bytes) -> tuple[Row, ...]:
    """The rows of whole blocks, and perhaps an end marker, without a header. Raises XlogError if anything is wrong."""
    rows: list[Row] = []
    offset = 0
    try:
        while offset < len(blocks) and blocks[offset : offset + 4] != _END:
            block, offset = _block(blocks, offset, rows_of)
            rows += block
        if offset + len(_END) < len(blocks):
            raise _Damage(f"{len(blocks) - offset - len(_END)} bytes after the end marker")
    except _Damage as damage:
        raise XlogError(f"expected whole blocks of rows, got: {damage}") from None
    return tuple(rows)


def begun(logs: Sequence[bytes]) -> int:
    """The number of logs, oldest first, up to the last one with a whole header; a crash may have torn that log's end.

    The logs behind it are the remains of just created files after a power loss: they had no rows.
    """
    count = len(logs)
    while count and rows_at(logs[count - 1]) < 0:
        count -= 1
    return count


def rows_at(data: bytes) -> int:
    """The offset of the first block of a file; -1 if the header is not whole."""
    end = data.find(b"\n\n", 0, _HEADER_BYTES_MAX)
    return end if end < 0 else end + 2


def plain_block(data: bytes, offset: int) -> tuple[bytes, int] | None:
    """The block at `offset`, unpacked, and the offset of its end; None if it is no block, or damaged."""
    payloads: list[bytes] = []

    def verbatim(payload: bytes) -> list[Row]:
        payloads.append(payload)
        return []

    try:
        _, end = _block(data, offset, verbatim)
    except _Damage:
        return None
    return _fixheader(_PLAIN, payloads[0]) + payloads[0], end


def goes_on(data: bytes, damage: int) -> bool:
    """True if good rows stand behind the damage: a crash tears the end of a file, it does not spare a later block."""
    place = data.find(_BLOCK, damage + 1)
    while place >= 0 and plain_block(data, place) is None:
        place = data.find(_BLOCK, place + 1)
    return place >= 0


def is_torn(data: bytes, log: Xlog[R]) -> bool:
    """True if the damage is a torn end, as a crash leaves it: no good row and no end marker stands behind it."""
    if log.damage is None or not log.can_be_torn or log.finished or data.endswith(_END):
        return False
    return log.meta is None or not goes_on(data, log.good_bytes)


def _checksum(payload: bytes) -> int:
    """CRC-32C with initial value 0 and no final inversion; the library inverts on both ends."""
    return crc32c(payload, 0xFFFFFFFF) ^ 0xFFFFFFFF


def _fixheader(magic: bytes, payload: bytes) -> bytes:
    head = magic + pack(len(payload)) + pack(0) + pack(_checksum(payload))
    return head + pack("\0" * (_FIXHEADER_BYTES - len(head) - 1))


@cache
def _compressor(level: int) -> ZstdCompressor:
    return ZstdCompressor(level=level)


def _torn_header(data: bytes, kinds: tuple[str, ...]) -> Xlog[Any]:
    """A file with a torn header: after a crash it is empty, or a beginning with zeros behind. Others are no xlog."""
    text = data.rstrip(b"\0")
    for kind in (f"{name}\n0.13\n".encode() for name in kinds):
        beginning = text[: len(kind)]
        if kind.startswith(beginning) and len(text) < _HEADER_BYTES_MAX and text.isascii():
            damage = (
                "the header is cut off"
                if text
                else "the file is empty"
                if not data
                else "there are only zeros"
            )
            return Xlog(
                None, (), 0, False, f"{damage} at offset {len(text)}; none of {len(data)} bytes is good"
            )
    raise XlogError(f"expected an xlog, which begins with {' or '.join(kinds)}, got {data[:16]!r}")


def _meta(header: bytes, kinds: tuple[str, ...]) -> Meta:
    try:
        kind, version, *lines = header.decode("ascii").split("\n")
    except ValueError:
        raise XlogError(f"expected the text header of an xlog, got {header[:80]!r}") from None
    if kind not in kinds or version not in ("0.12", "0.13"):
        raise XlogError(f"expected an {' or '.join(kinds)} of version 0.13, got {kind!r:.20} {version!r:.20}")
    fields = dict(_field(line) for line in lines)
    if version == "0.12" and "Instance" in fields:
        raise XlogError("expected 0.13 in the header of an xlog that names its instance, got 0.12")
    previous = fields.get("PrevVClock")
    return Meta(
        kind,
        fields.get("Version", ""),
        _uuid(fields.get("Instance", fields.get("Server", ""))),
        _vclock(fields.get("VClock", "{}" if kind in WITHOUT_VCLOCK else "")),
        None if previous is None else _vclock(previous),
    )


def _field(line: str) -> tuple[str, str]:
    key, colon, value = line.partition(": ")
    if not colon:
        raise XlogError(f"expected 'key: value' in the header of an xlog, got {line!r:.80}")
    return key, value.strip()


def _uuid(text: str) -> str:
    if not UUID.fullmatch(text):
        raise XlogError(f"expected the UUID of an instance in the header of an xlog, got {text!r:.80}")
    return text


def _vclock(text: str) -> dict[int, int]:
    if not _VCLOCK.fullmatch(text):
        raise XlogError(f"expected a vclock such as {{1: 7}} in the header of an xlog, got {text!r:.80}")
    return {int(origin): int(lsn) for origin, lsn in _COMPONENT.findall(text)}


def _block(data: bytes, offset: int, unpacked: Unpacks[R]) -> tuple[Sequence[R], int]:
    """The rows of the block at `offset`, and the offset of its end."""
    begin = offset + _FIXHEADER_BYTES
    head = data[offset:begin]
    magic = head[:4]
    if magic not in (_PLAIN, _ZSTD):
        raise _Damage(_no_block(data, offset))
    if len(head) < _FIXHEADER_BYTES:
        raise _Damage(f"a block is cut off after {len(head)} bytes")
    length, checksum, is_padded = _length_and_checksum(head)
    payload = data[begin : begin + length]
    if len(payload) < length:
        raise _Damage(f"a block of {_FIXHEADER_BYTES + length} bytes is cut off after {len(data) - offset}")
    if _checksum(payload) != checksum:
        raise _Damage(
            f"a block of {_FIXHEADER_BYTES + length} bytes does not have the checksum that it claims"
        )
    if not is_padded:
        raise _WrittenWrong("a block has a good checksum but other padding than zeros")
    try:
        rows = unpacked(payload if magic == _PLAIN else _unpacked(payload))
    except MalformedFrame as error:
        raise _WrittenWrong(f"a block has a good checksum but holds no rows ({error})") from None
    return rows, begin + length


def _no_block(data: bytes, offset: int) -> str:
    """The bytes at the place where a block should begin, in words."""
    rest = data[offset:]
    if not rest.strip(b"\0"):
        return f"{len(rest)} zeros"
    if len(rest) < 4 and any(magic.startswith(rest) for magic in (_PLAIN, _ZSTD, _END)):
        return f"a block is cut off after {len(rest)} bytes"
    return f"no block or end marker but the bytes {rest[:4].hex()}"


def _length_and_checksum(head: bytes) -> tuple[int, int, bool]:
    """`head` holds three integers and, if there is room, one string: zeros, as the second integer is."""
    try:
        match unpack_some(head[4:], usual=4):
            case [int() as length, int() as unused, int() as checksum, *padding] if (
                length >= 0 and len(padding) < 2
            ):
                is_padded = not unused and not "".join(map(str, padding)).strip("\0")
                return length, checksum, is_padded
    except MalformedFrame:
        pass
    raise _Damage("the first 19 bytes of a block are not as they should be")


def _unpacked(payload: bytes) -> bytes:
    try:
        with ZstdDecompressor().stream_reader(BytesIO(payload), read_across_frames=True) as reader:
            unpacked = reader.read(_UNPACKED_BYTES_MAX + 1)
    except ZstdError as error:
        raise _WrittenWrong(f"a block has a good checksum but cannot be unpacked ({error})") from None
    if len(unpacked) > _UNPACKED_BYTES_MAX:
        raise _WrittenWrong(f"a block unpacks to more than {_UNPACKED_BYTES_MAX} bytes")
    return unpacked
