"""A file that a person named: written whole or not at all.

A link stays one: what it points to is written. A special file (a device, a named pipe) stays one, too: it gets the
bytes when all of them are made.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from harness.errors import StoreError


@contextmanager
def output_file(target: Path, what: str) -> Iterator[BinaryIO]:
    """A file to write, read and seek in. When the block ends without an error, its bytes are at `target`.

    StoreError in one line for every OSError, also of the block. `what` names the file in its message.
    """
    place = Path(os.path.realpath(target))
    unfinished = place.with_name(f".{place.name}.unfinished")
    try:
        if _is_special(target):
            # One cannot seek in a pipe.
            with tempfile.TemporaryFile() as file:
                yield file
                file.seek(0)
                # Without O_CREAT, which Linux may refuse for a pipe of another user.
                with os.fdopen(os.open(target, os.O_WRONLY), "wb") as special:
                    shutil.copyfileobj(file, special)
        else:
            try:
                with unfinished.open("w+b") as file:
                    yield file
                unfinished.replace(place)
            finally:
                with suppress(OSError):
                    unfinished.unlink(missing_ok=True)
    except OSError as error:
        is_ours = error.filename in (None, str(unfinished), str(target))
        where = "" if is_ours else f" ({error.filename})"
        raise StoreError(f"cannot write {what} to {target}: {error.strerror or error}{where}") from error


def write(target: Path, data: bytes, what: str) -> None:
    """Write `data` by the same rule."""
    with output_file(target, what) as file:
        file.write(data)


def _is_special(target: Path) -> bool:
    """Raises OSError, also for a circle of links."""
    try:
        target.stat()
    except FileNotFoundError:
        return False
    return not target.is_file()
