"""What lies under results/: runs that are finished, runs that are not (yet), and what is no run at all.

A run is finished when its verdict stands beside its plan and its record; the verdict is written last but for the
columns and the page. One without a verdict is going on, or its harness was killed: it is left alone, and named.
`stamp` changes whenever a file changes that the tables are made of, so a run that was judged again is seen as new.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.store.run_folder import COLUMNS, HISTORY, LATEST, PLAN, VERDICT

_FOLDER = re.compile(r"(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z-\d+(-\d+)?")
_OWN = frozenset({LATEST, "README.md", ".gitignore", ".gitkeep"})


@dataclass(frozen=True, slots=True, order=True)
class StoredRun:
    """A finished run. `name` is `<plan>/<utc>-<seed>`, unique under results/; `stamp` says in what state it is."""

    name: str
    path: Path
    stamp: str

    @property
    def campaign(self) -> str:
        """The name of its plan: runs of one campaign share it."""
        return self.name.partition("/")[0]

    @property
    def date(self) -> str:
        """The day (UTC) on which it began, as 2026-11-21."""
        found = _FOLDER.fullmatch(self.path.name)
        assert found is not None, self.path
        return "-".join(found.groups()[:3])


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something under results/ that is not taken, and why."""

    path: Path
    why: str


@dataclass(frozen=True, slots=True)
class Scan:
    """All that was found, in order of names."""

    runs: tuple[StoredRun, ...]
    unfinished: tuple[LeftOut, ...]
    foreign: tuple[LeftOut, ...]


def scan(root: Path) -> Scan:
    """Look at results/; nothing that is wrong with one entry keeps the others from being seen."""
    runs: list[StoredRun] = []
    unfinished: list[LeftOut] = []
    foreign: list[LeftOut] = []
    for campaign in _entries(root):
        if campaign.name in _OWN or campaign.name.startswith(("_", ".")):
            continue
        if not campaign.is_dir():
            foreign.append(LeftOut(Path(campaign.path), "a file that is no run's"))
            continue
        for entry in _entries(Path(campaign.path)):
            found = _look(Path(entry.path), campaign.name, entry.is_dir())
            match found:
                case StoredRun():
                    runs.append(found)
                case LeftOut(why=why) if why.startswith("no run"):
                    foreign.append(found)
                case LeftOut():
                    unfinished.append(found)
    return Scan(tuple(runs), tuple(unfinished), tuple(foreign))


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from sorted(found, key=lambda entry: entry.name)
    except OSError:
        return


def _look(path: Path, campaign: str, is_folder: bool) -> StoredRun | LeftOut:
    if not is_folder or not _FOLDER.fullmatch(path.name):
        return LeftOut(path, "no run: its name is not <utc>-<seed>" if is_folder else "no run: a file")
    if not (path / PLAN).exists():
        return LeftOut(path, f"no run: {PLAN} is missing")
    if not (path / HISTORY).exists():
        return LeftOut(path, f"half-written: {HISTORY} is missing")
    if not (path / VERDICT).exists():
        return LeftOut(path, "half-written: it has no verdict (yet)")
    stamps = [_stamp(path / name) for name in (PLAN, VERDICT, COLUMNS)]
    return StoredRun(f"{campaign}/{path.name}", path, " ".join(stamps))


def _stamp(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "-"
    return f"{found.st_size}.{found.st_mtime_ns}"
