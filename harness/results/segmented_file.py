"""history.jsonl while it is written: a file that becomes a segment when it is full (`checkers.history.segments`).

Segments are compressed in a thread beside the run. Where that fails, as on a full disk, the plain segment stays.
"""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, Final

from checkers.history import segments

SEGMENT_BYTES: Final = 64 << 20
"""The size of a full file: some three minutes with 1,000 operations a second."""
_BUFFER_BYTES = 1 << 18
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
"""Errors of a file system without hard links: the record stays in one file."""


class SegmentedFile:
    """A binary file that is written line by line. An existing file is never overwritten (FileExistsError)."""

    def __init__(self, path: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._path = path
        self._file: BinaryIO = path.open("xb", buffering=_BUFFER_BYTES)
        self._segment_bytes = segment_bytes
        self._room = segment_bytes
        self._count = 0
        self._packing: ThreadPoolExecutor | None = None

    def write(self, line: bytes, /) -> int:
        if self._room <= 0:
            self._hand_over()
        self._room -= len(line)
        return self._file.write(line)

    def flush(self) -> None:
        self._file.flush()

    @property
    def closed(self) -> bool:
        return self._file.closed

    def close(self) -> None:
        """Close the file, and wait until the segments are compressed."""
        self._file.close()
        if self._packing is not None:
            self._packing.shutdown()

    def _hand_over(self) -> None:
        self._room = self._segment_bytes  # first: without hard links it is not tried again at every line
        self._file.flush()  # a reader takes a segment for whole
        folder = self._path.parent / segments.FOLDER
        folder.mkdir(exist_ok=True)
        segment = folder / (segments.name(self._count + 1) + segments.PLAIN)
        # A second name, then the new file in place of the first: no reader misses a byte in between, or after a kill.
        try:
            os.link(self._path, segment)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return
        unfinished = self._path.with_name(f".{self._path.name}.unfinished")
        try:
            fresh = unfinished.open("xb", buffering=_BUFFER_BYTES)
            unfinished.replace(self._path)
        except OSError:
            segment.unlink()
            raise
        self._file.close()
        self._file, self._count = fresh, self._count + 1
        self._packing = self._packing or ThreadPoolExecutor(1, "segments")
        self._packing.submit(segments.pack, segment)  # whatever it raises is dropped with the future
