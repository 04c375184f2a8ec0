"""A node's data folder at the start: locked by one process, read as a whole."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Mapping
from pathlib import Path


def lock(directory: str) -> None:
    """Lock the folder until this process ends; raises BlockingIOError if another process has locked it."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # held open on purpose
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def contents(directory: str, except_for: Collection[str]) -> Mapping[str, bytes]:
    """File name → bytes. `except_for`: paths of files in the folder that are not the node's data, such as its log."""
    foreign = {os.path.realpath(path) for path in except_for}
    files: dict[str, bytes] = {}
    with os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_file() and os.path.realpath(entry.path) not in foreign:
                files[entry.name] = Path(entry.path).read_bytes()
    return files
