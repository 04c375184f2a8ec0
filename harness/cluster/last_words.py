"""The last lines that a node printed: for a crash, often the reason."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_LINES: Final = 60
_WORDS_MAX: Final = 300
_END_BYTES: Final = 1 << 16
"""As much of its end is read: a node may print gigabytes."""


def last_words(output: Path, since: int) -> tuple[str, ...]:
    """The last lines of the file behind the byte `since`; none if the node has removed it.

    Of a long output the first of them may lack its beginning.
    """
    with suppress(OSError), output.open("rb") as file:
        file.seek(max(since, file.seek(0, os.SEEK_END) - _END_BYTES))
        lines = [line.decode(errors="replace").rstrip() for line in file]
        return tuple(line[:_WORDS_MAX] for line in lines if line)[-_LINES:]
    return ()
