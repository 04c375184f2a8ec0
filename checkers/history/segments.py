"""The bytes of a record, which may lie in segments: those that are full in the folder `history`, the rest beside it.

    history/00001.jsonl.zst   a full segment, compressed
    history/00002.jsonl       a full one that is still to be compressed
    history.jsonl             what is being written, or the end of the record

The record is all of these, one after another: `zstdcat history/*.zst | cat - history.jsonl`. A short one is
history.jsonl alone. A compressed segment is a sequence of zstd frames with checksums and, as its last, a table of them
(the seekable format of zstd's `contrib`), so that a line is read without what stands before it.

While a segment is handed over, its file has two names, that of the record and that of the segment. Then a new file
takes the first name; when the compressed segment is whole, the plain one goes. So a reader finds all bytes once at any
moment, also after a kill.
"""

from __future__ import annotations

import io
import os
import struct
import weakref
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, Protocol

from checkers.history.errors import HistoryError

FOLDER = "history"
PLAIN, PACKED = ".jsonl", ".jsonl.zst"
PATTERNS = (f"{FOLDER}/[0-9]*{PLAIN}", f"{FOLDER}/[0-9]*{PACKED}")
"""Of the segments in a run's folder."""
FRAME_BYTES = 1 << 18
"""The bytes of lines in a frame, all of which are unpacked to read one line."""
_FRAMES_KEPT = 8
"""Unpacked frames of all segments together."""
_STREAM_BUFFER = 1 << 18
_ROUNDS = 100
"""How often a record that is handed over at every look is looked at again."""
_SKIPPED, _SEEKABLE = 0x184D2A5E, 0x8F92EAB1
"""The magic numbers of the table's frame and of its end."""
_BEGIN, _ENTRY, _END = struct.Struct("<II"), struct.Struct("<II"), struct.Struct("<IBI")


class _Piece(Protocol):
    """A file of the record. `size`: of its bytes as lines."""

    size: int

    def read(self, at: int, length: int) -> bytes:
        """At most `length` bytes from the place on, at least one unless the file has become shorter."""
        ...


class _Plain:
    def __init__(self, file: int) -> None:
        self._file = file
        self.size = os.fstat(file).st_size
        weakref.finalize(self, os.close, file)

    def read(self, at: int, length: int) -> bytes:
        return os.pread(self._file, length, at)

    @property
    def inode(self) -> tuple[int, int]:
        status = os.fstat(self._file)
        return status.st_dev, status.st_ino


_Frames = OrderedDict[tuple[Path, int], bytes]
"""The frames that were unpacked last, by their segments and numbers."""


class _Packed:
    """Opens its file whenever it reads: a day's record has hundreds of these."""

    def __init__(self, path: Path, kept: _Frames) -> None:
        self._path = path
        self._kept = kept
        table = _table(path)
        self._frame_offsets = [0, *accumulate(packed for packed, _ in table)]
        self._content_offsets = [0, *accumulate(plain for _, plain in table)]
        self.size = self._content_offsets[-1]

    def read(self, at: int, length: int) -> bytes:
        frame = bisect_right(self._content_offsets, at) - 1
        begin = at - self._content_offsets[frame]
        return self._frame(frame)[begin : begin + length]

    def _frame(self, frame: int) -> bytes:
        name = self._path, frame
        content = self._kept.get(name)
        if content is None:
            content = self._kept[name] = self._unpacked(frame)
            if len(self._kept) > _FRAMES_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(name)
        return content

    def _unpacked(self, frame: int) -> bytes:
        from zstandard import ZstdDecompressor, ZstdError, frame_content_size

        begin, end = self._frame_offsets[frame : frame + 2]
        size = self._content_offsets[frame + 1] - self._content_offsets[frame]
        try:
            with self._path.open("rb", buffering=0) as file:
                data = os.pread(file.fileno(), end - begin, begin)
            held = frame_content_size(data)  # which is asked for as memory, whatever it is
            content = ZstdDecompressor().decompress(data, max_output_size=size) if held == size else b""
        except (OSError, ZstdError) as error:
            raise _damaged(self._path, str(error)) from error
        if len(content) != size:
            raise _damaged(self._path, f"a frame of {held} bytes in place of {size}")
        return content


class Record:
    """All bytes of a record as they were when it was opened, by their places."""

    def __init__(self, pieces: list[_Piece]) -> None:
        self._pieces = [piece for piece in pieces if piece.size]
        self._begins = [0, *accumulate(piece.size for piece in self._pieces)]
        self.size = self._begins[-1]

    def read(self, at: int, length: int) -> bytes:
        """`length` bytes from the place on, or those up to the end. Raises HistoryError of a damaged segment."""
        parts = list(self._parts(at, length))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_into(self, buffer: bytearray | memoryview, at: int) -> int:
        """Fill the buffer from the place on; returns the number of bytes."""
        filled = 0
        with memoryview(buffer) as room:
            for part in self._parts(at, len(buffer)):
                room[filled : filled + len(part)] = part
                filled += len(part)
        return filled

    def _parts(self, at: int, length: int) -> Iterator[bytes]:
        while length > 0 and at < self.size:
            piece = bisect_right(self._begins, at) - 1
            part = self._pieces[piece].read(
                at - self._begins[piece], min(length, self._begins[piece + 1] - at)
            )
            if not part:
                return  # it has become shorter meanwhile
            yield part
            at, length = at + len(part), length - len(part)


class _Stream(io.RawIOBase):
    """A record as a file that can seek."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._record.size)[whence]
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what BufferedReader gives
        size = self._record.read_into(buffer, self._at)
        self._at += size
        return size


def record(path: Path) -> Record:
    """The record of a history.jsonl. Raises OSError, and HistoryError if one of its segments is missing or damaged."""
    for _ in range(_ROUNDS):
        last = _Plain(os.open(path, os.O_RDONLY))
        full = _full(path)
        now = path.stat()
        if (now.st_dev, now.st_ino) == last.inode:
            break  # nothing was handed over between the two looks
    else:
        raise HistoryError(
            expected=f"{path.name} to be the same file for a moment",
            came=f"another one after each of {_ROUNDS} looks",
            attempt="wait until the run has ended",
        )
    pieces = [piece for piece in full if not (isinstance(piece, _Plain) and piece.inode == last.inode)]
    return Record([*pieces, last])


def stream(path: Path) -> io.BufferedReader:
    """The record of a history.jsonl as a file to read. Raises as `record`."""
    file = path.open("rb")
    # Only now: a writer that hands this file over in between leaves all of it in the opened one.
    if not segments(path):
        return file
    file.close()
    return io.BufferedReader(_Stream(record(path)), _STREAM_BUFFER)


def size(path: Path) -> int:
    """The bytes of a record. Raises as `record`."""
    return record(path).size


def segments(path: Path) -> list[Path]:
    """The files of the full segments, oldest first; of one that is both plain and compressed the compressed one.

    Only history.jsonl has any: other files beside it, such as an export, are whole by themselves.
    """
    if path.name != FOLDER + PLAIN:
        return []
    try:
        entries = os.scandir(path.parent / FOLDER)
        names = [entry.name for entry in entries if not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    packed = {name.removesuffix(PACKED) for name in names if name.endswith(PACKED)}
    plain = {name.removesuffix(PLAIN) for name in names if name.endswith(PLAIN)}
    return [
        path.parent / FOLDER / (number + (PACKED if number in packed else PLAIN))
        for number in sorted(packed | plain)
    ]


def name(number: int) -> str:
    """The file name of this segment, counted from 1, without its ending."""
    return f"{number:05d}"


def _full(path: Path) -> list[_Piece]:
    pieces: list[_Piece] = []
    kept: _Frames = OrderedDict()
    for number, file in enumerate(segments(path), start=1):
        if file.name.split(".")[0] != name(number):
            raise HistoryError(
                expected=f"the record's segment {FOLDER}/{name(number)}",
                came=f"{FOLDER}/{file.name} in its place",
                attempt="restore the folder from a copy: a file was lost or added",
            )
        try:
            is_packed = file.name.endswith(PACKED)
            pieces.append(_Packed(file, kept) if is_packed else _Plain(os.open(file, os.O_RDONLY)))
        except FileNotFoundError:  # it was compressed between the two looks
            pieces.append(_Packed(file.with_name(name(number) + PACKED), kept))
    return pieces


def pack(plain: Path) -> Path:
    """Compress a full segment, put it in the place of the plain one, and return its path. Raises OSError."""
    path = plain.with_name(plain.name.removesuffix(PLAIN) + PACKED)
    unfinished = plain.with_name(f".{path.name}.unfinished")
    try:
        with plain.open("rb") as lines, unfinished.open("wb") as file:
            for part in _compressed(lines):
                file.write(part)
            file.flush()
            os.fsync(file.fileno())  # before the rename: after a crash, a segment with its name is whole
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    plain.unlink()
    return path


def _compressed(lines: BinaryIO) -> Iterator[bytes]:
    from zstandard import ZstdCompressor

    compressor = ZstdCompressor(write_checksum=True)
    table: list[tuple[int, int]] = []
    while data := lines.read(FRAME_BYTES):
        frame = compressor.compress(data)
        table.append((len(frame), len(data)))
        yield frame
    yield _BEGIN.pack(_SKIPPED, len(table) * _ENTRY.size + _END.size)
    yield from (_ENTRY.pack(*sizes) for sizes in table)
    yield _END.pack(len(table), 0, _SEEKABLE)


def _table(path: Path) -> list[tuple[int, int]]:
    """Of each frame of a compressed segment, the bytes that it takes and those that it holds."""
    with path.open("rb") as file:
        whole = file.seek(0, io.SEEK_END)
        file.seek(max(whole - _END.size, 0))
        end = file.read()
        count, _, magic = _END.unpack(end) if len(end) == _END.size else (0, 0, 0)
        place = whole - _END.size - count * _ENTRY.size
        if magic != _SEEKABLE or place < _BEGIN.size:
            raise _damaged(path, "no table of its frames at its end")
        file.seek(place)
        table = list(_ENTRY.iter_unpack(file.read(count * _ENTRY.size)))
    if sum(packed for packed, _ in table) != place - _BEGIN.size or not all(plain for _, plain in table):
        raise _damaged(path, "its table does not fit its length")
    return table


def _damaged(path: Path, why: str) -> HistoryError:
    return HistoryError(
        expected=f"a whole segment of the record in {FOLDER}/{path.name}",
        came=why,
        attempt="restore the file from a copy",
    )
