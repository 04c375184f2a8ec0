"""Other versions of our nodes, for tests: this checkout's code under another number, and with a fault if asked for."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from nodes.version import VERSION

ROOT = Path(__file__).parents[2]
Patch = tuple[str, str, str]
"""(file, what stands there, what stands there instead)."""

_READ = "        self.files.append(LogFile(name, dict(self.vclock), len(self.rows), log.good_bytes))\n"
INCOMPATIBLE: Patch = (
    "nodes/qsync/stored_log.py",
    _READ,
    '        raise StartRefused(f"{name}: its format is that of the version before")\n' + _READ,
)
"""It starts on no file that is there already."""

FORGETFUL: Patch = (
    "nodes/qsync/stored_log.py",
    "        for row in log.rows:\n",
    (
        "        for row in log.rows:\n"
        "            if row.body.get(16, 0) >= 512 and 33 in row.body:\n"
        "                import dataclasses\n"
        "                row = dataclasses.replace(row, body={**row.body, 33: (*row.body[33][:1], None)})\n"
    ),
)
"""Of each tuple in a log it reads the key, and nothing for the value: what was written before it started is gone."""


def wheel(folder: Path, number: str, *patches: Patch) -> Path:
    """A wheel of the package `nodes` with that number in its version."""
    path = folder / f"qsync_harness-{number}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as packed:
        for name, data in _files(number, patches):
            packed.writestr(name, data)
        packed.writestr(f"qsync_harness-{number}.dist-info/METADATA", f"Version: {number}\n")
    return path


def _files(number: str, patches: tuple[Patch, ...]) -> Iterator[tuple[str, bytes]]:
    changes = (("nodes/version.py", VERSION, number), *patches)
    for path in sorted((ROOT / "nodes").rglob("*")):
        if not path.is_file() or "__pycache__" in path.parts:
            continue
        name, data = path.relative_to(ROOT).as_posix(), path.read_bytes()
        for _, old, new in (change for change in changes if change[0] == name):
            assert data.count(old.encode()) == 1, f"{name} has no longer one place with {old!r}"
            data = data.replace(old.encode(), new.encode())
        yield name, data
