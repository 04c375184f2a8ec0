"""A file that a person named: written whole or not at all.

A link stays one: what it points to is written. A special file (a device, a named pipe) stays one, too, and so does a
file that is standard output or error: it gets the bytes when all of them are made.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from harness.errors import StoreError


@contextmanager
def output_file(target: Path, what: str) -> Iterator[BinaryIO]:
    """A file to write, read and seek in. When the block ends without an error, its bytes are at `target`.

    StoreError in one line for every OSError, also of the block. `what` names the file in its message.
    """
    place = Path(os.path.realpath(target))
    unfinished = place.with_name(f".{place.name}.{token_hex(4)}.unfinished")  # two may write one file
    try:
        if is_special(target):
            # One cannot seek in a pipe.
            with tempfile.TemporaryFile() as file:
                yield file
                file.seek(0)
                number = _open_number(target)
                # Without O_CREAT, which Linux may refuse for a pipe of another user.
                opened = os.open(target, os.O_WRONLY) if number is None else os.dup(number)
                with os.fdopen(opened, "wb") as special:
                    shutil.copyfileobj(file, special)
        else:
            try:
                with unfinished.open("x+b") as file:
                    yield file
                with suppress(FileNotFoundError):  # what only its owner may read stays so
                    shutil.copymode(place, unfinished)
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


def is_special(target: Path) -> bool:
    """Whether it is written to, and not replaced. Raises OSError, also for a circle of links."""
    try:
        return _open_number(target) is not None or not target.is_file()
    except FileNotFoundError:
        return False


def _open_number(target: Path) -> int | None:
    """1 or 2 of a file that is standard output or error, and has a place up to which it was written. Raises OSError."""
    status = target.stat()
    return next((number for number in (1, 2) if os.path.samestat(status, os.fstat(number))), None)
