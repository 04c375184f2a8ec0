"""Room for the columns of a long record, which may be larger than the memory that is free.

Such columns lie in files without a name that are mapped into memory: the system writes their pages to the disk where
other work needs the memory, and reads them again.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy

Array = Any  # numpy's
LARGE = 10_000_000
"""Rows from which on columns are mapped: a record of half a gigabyte, which has some two million operations."""
BYTES_OF_A_ROW = 70
FOLDER = Path("/var/tmp")
"""Where files of this size belong: /tmp is memory on many systems."""


class Rooms:
    """Makes arrays that are to be filled. Pages that stay empty take no memory, and no disk."""

    def __init__(self, rows: int) -> None:
        """`rows`: at the most, in each array."""
        self._folder = _folder() if rows >= LARGE else None
        if self._folder is not None and _free_bytes(self._folder) < rows * BYTES_OF_A_ROW:
            self._folder = None  # a full disk would end the process

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:
        """As numpy's."""
        if self._folder is None:
            return numpy.empty(shape, dtype=dtype)
        size = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
        with tempfile.TemporaryFile(dir=self._folder) as file:
            os.truncate(file.fileno(), size)
            return numpy.asarray(numpy.memmap(file, dtype=dtype, mode="r+", shape=shape))


def _folder() -> Path | None:
    """The first of these that can be written to."""
    folders = (FOLDER, Path(tempfile.gettempdir()))
    return next((folder for folder in folders if os.access(folder, os.W_OK)), None)


def _free_bytes(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize
