"""A file on a disk that gets full."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import Any


class FullDisk(io.FileIO):
    """Takes so many bytes, the last of them from the middle of a write, and refuses what comes after."""

    def __init__(self, path: Path, limit: int) -> None:
        super().__init__(path, "xb")
        self.limit = limit

    @classmethod
    def buffered(cls, path: Path, limit: int, buffer: int = 1 << 18) -> io.BufferedWriter:
        """As the store opens its files."""
        return io.BufferedWriter(cls(path, limit), buffer)

    def write(self, data: Any, /) -> int:
        room = self.limit - self.tell()
        if room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(bytes(data)[:room])
