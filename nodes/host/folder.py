"""A node's data folder at start: locked for one process, read whole."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Mapping
from pathlib import Path


def lock(directory: str) -> None:
    """Make the folder ours until this process ends; raises BlockingIOError if it is another's."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # held open on purpose
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def contents(directory: str, except_for: Collection[str]) -> Mapping[str, bytes]:
    """File name → bytes. `except_for` are paths of files that lie there and are not the node's, as its log."""
    foreign = {os.path.realpath(path) for path in except_for}
    files: dict[str, bytes] = {}
    with os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_file() and os.path.realpath(entry.path) not in foreign:
                files[entry.name] = Path(entry.path).read_bytes()
    return files
