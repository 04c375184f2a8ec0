"""The lines of a record that may still grow: by number, without reading the file each time, and only the new ones.

The count of lines before every block of 256 KiB is kept: a record of a million operations has a thousand blocks. A
line is found in the block that holds its beginning. A record only grows; a record that became shorter, or has
a different beginning, is read anew. A torn last line does not count.
"""

from __future__ import annotations

import io
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from checkers.history import segments

T = TypeVar("T")
R = TypeVar("R")

BLOCK_BYTES = 1 << 18
BEGIN_BYTES = 1 << 10
LINE_BYTES_MAX = 1 << 20
"""A longer line is cut, because no page shows so much."""


@dataclass(slots=True)
class Lines:
    """The lines of one record, counted from 0."""

    path: Path
    block_bytes: int = BLOCK_BYTES
    _before: list[int] = field(default_factory=lambda: [0])
    """_before[i]: the newlines before block i; the last entry: of all blocks."""
    _size: int = 0
    _begin: bytes = b""
    """Its first bytes: the header tells one run from another."""

    def count(self) -> int:
        """The whole lines. OSError or HistoryError if the record cannot be read."""
        self._extend()
        return self._before[-1]

    def read(self, first: int, count: int) -> list[bytes]:
        """Lines from `first` on, without their newlines; fewer at the end of the record. Raises as `count`."""
        self._extend()
        last = min(first + count, self._before[-1])
        if first < 0 or first >= last:
            return []
        # The newline that ends line first - 1 is number `first` of all; line 0 begins with the file.
        block = max(bisect_right(self._before, first - 1) - 1, 0) if first else 0
        lines: list[bytes] = []
        with segments.stream(self.path) as file:
            file.seek(block * self.block_bytes)
            for _ in range(first - self._before[block] if first else 0):
                _read_line(file.readline)
            for _ in range(last - first):
                lines.append(_read_line(file.readline))
        return lines

    def _extend(self) -> None:
        with segments.stream(self.path) as file:
            begin = file.read(BEGIN_BYTES)
            size = file.seek(0, io.SEEK_END)
            if size < self._size or not begin.startswith(self._begin):
                self._before, self._size, self._begin = [0], 0, b""
            if size == self._size:
                return
            self._begin = begin
            whole = self._size // self.block_bytes  # the last block may have been partial: count it again
            del self._before[whole + 1 :]
            file.seek(whole * self.block_bytes)
            left = size - whole * self.block_bytes
            while left > 0 and (data := file.read(min(self.block_bytes, left))):
                self._before.append(self._before[-1] + data.count(b"\n"))
                left -= len(data)
            self._size = size


def _read_line(readline: Callable[[int], bytes]) -> bytes:
    line = part = readline(LINE_BYTES_MAX)
    while part and not part.endswith(b"\n"):
        part = readline(LINE_BYTES_MAX)
    return line.removesuffix(b"\n")


class Kept(Generic[T]):
    """The last few values that were made of files, by their paths."""

    def __init__(self, make: Callable[[Path], T], most: int = 16) -> None:
        self._make, self._most = make, most
        self._kept: OrderedDict[Path, tuple[threading.Lock, T]] = OrderedDict()
        self._lock = threading.Lock()

    def use(self, path: Path, use: Callable[[T], R]) -> R:
        """The result of `use` on the value of a path. Only one thread at a time uses a value."""
        with self._lock:
            if path not in self._kept:
                self._kept[path] = (threading.Lock(), self._make(path))
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(path)
            lock, value = self._kept[path]
        with lock:
            return use(value)
