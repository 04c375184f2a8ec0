"""The seal of a Parquet file, by which every reader notices that it has changed.

Each page has its checksum, as Parquet has it, so a reader of some row groups verifies only those. The footer has none
in Parquet: a wrong statistic, offset or text there gives other content. So a hash of the whole file, the seal, lies
between the pages and the footer, where no reader of Parquet looks; the metadata says that there is one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

SEALED: Final[Mapping[bytes, bytes]] = {b"qsync-seal": b"1"}
"""The metadata of a file that is to be sealed."""
_SEAL = b"qsync-seal-sha256:"
_SEAL_BYTES = len(_SEAL) + hashlib.sha256().digest_size
_TAIL_BYTES = 8
"""At the end of the file: the footer's length, and PAR1."""
_CHUNK_BYTES = 1 << 20


class Changed(ValueError):
    """The file is another one than was sealed."""


def opened_sealed(path: Path, **options: Any) -> Any:
    """A `pyarrow.parquet.ParquetFile` that verifies its pages; `options` are passed on. Raises Changed, and as pyarrow.

    A file without a seal that does not say that it has one is opened too.
    """
    import pyarrow.parquet

    is_sealed = _is_sealed(path)
    file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True, **options)
    if says_sealed(file) and not is_sealed:
        raise Changed("it has lost its seal")
    return file


def says_sealed(file: Any) -> bool:
    """Whether the metadata of an open file says that it is sealed: it was written of a paired history, or a trace."""
    return SEALED.keys() <= (file.schema_arrow.metadata or {}).keys()


def seal(path: Path) -> None:
    """Put the hash of all that is there before the footer."""
    with path.open("r+b") as file:
        footer_at = _footer_at(file)
        digest = _digest(file, footer_at, footer_at)
        file.seek(footer_at)
        footer = file.read()
        file.seek(footer_at)
        file.write(_SEAL + digest + footer)


def _is_sealed(path: Path) -> bool:
    """Whether there is a seal; Changed if the file is another one than was sealed."""
    with path.open("rb") as file:
        footer_at = _footer_at(file)
        seal_at = footer_at - _SEAL_BYTES
        if seal_at < 0:
            return False
        file.seek(seal_at)
        seal = file.read(_SEAL_BYTES)
        if not seal.startswith(_SEAL):
            return False
        if _digest(file, seal_at, footer_at) != seal.removeprefix(_SEAL):
            raise Changed("its hash differs from its seal")
    return True


def _footer_at(file: IO[bytes]) -> int:
    """Where the footer begins; before the file's beginning if that cannot be."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL_BYTES))
    return size - _TAIL_BYTES - int.from_bytes(file.read(4), "little")


def _digest(file: IO[bytes], until: int, again_from: int) -> bytes:
    """The SHA-256 of a file without the bytes from `until` to `again_from`."""
    digest = hashlib.sha256()
    file.seek(0)
    while chunk := file.read(min(_CHUNK_BYTES, until - file.tell())):  # b"" also if it has become shorter
        digest.update(chunk)
    file.seek(again_from)
    while chunk := file.read(_CHUNK_BYTES):
        digest.update(chunk)
    return digest.digest()
