"""Temporary folders named after the process that made them, so that those of killed processes can be found.

qsync-<purpose>-<process>@<its start>-<random>
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from harness.cluster.ownership import lives, this_harness

_NAME: Final = re.compile(r"^qsync-[a-z-]+-(\d+@\d+\.\d+)-[a-z0-9_]+$")


@contextmanager
def scratch(purpose: str) -> Iterator[Path]:
    """A temporary folder of this process, which is removed at the end."""
    prefix = f"qsync-{purpose}-{this_harness()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        assert _NAME.match(Path(folder).name), folder
        yield Path(folder)


def remove_leftovers() -> list[str]:
    """Remove the folders of dead processes; returns what was removed, in words, or what is still there."""
    removed: list[str] = []
    for folder in sorted(Path(tempfile.gettempdir()).glob("qsync-*")):
        match = _NAME.match(folder.name)
        if match and folder.is_dir() and not folder.is_symlink() and not lives(match[1]):
            shutil.rmtree(folder, ignore_errors=True)
            still = ": no, it is still there" if folder.exists() else ""
            removed.append(f"temporary folder {folder}{still}")
    return removed
