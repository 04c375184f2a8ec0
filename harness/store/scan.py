"""The entries of results/: finished runs, unfinished runs, and entries that are not runs.

A run is finished when its verdict stands beside its plan and its record; only the columns and the page are written
after the verdict. A run without a verdict is active, or its harness was killed: the scan skips it and names it.
`stamp` changes whenever an input file of the tables changes, so a run that was judged again counts as new.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.store.objects import Address
from harness.store.run_folder import COLUMNS, HISTORY, LATEST, PLAN, VERDICT

_FOLDER = re.compile(r"(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z-\d+(-\d+)?")
_LOOKED_AT = (PLAN, HISTORY, VERDICT, COLUMNS)
NO_RUNS_FILE = "a file that is no run's"
_OWN = frozenset({LATEST, "README.md", ".gitignore", ".gitkeep"})


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A finished run. `name` is `<plan>/<utc>-<seed>`, unique under results/; `stamp` identifies its state.

    A run in an object store has an `address`; `path` is the target for fetching its files.
    """

    name: str
    path: Path
    stamp: str
    address: Address | None = None

    @property
    def place(self) -> str:
        """Where it is kept."""
        return str(self.path if self.address is None else self.address)

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
    """A skipped entry of results/, with the reason."""

    path: Path | Address
    why: str


@dataclass(frozen=True, slots=True)
class Scan:
    """All that was found, in order of names."""

    runs: tuple[StoredRun, ...]
    unfinished: tuple[LeftOut, ...]
    foreign: tuple[LeftOut, ...]


def scan(root: Path) -> Scan:
    """The runs under results/; an unreadable entry does not hide the remaining ones."""
    found: list[StoredRun | LeftOut] = []
    for campaign in _entries(root):
        if is_own(campaign.name):
            continue
        if not campaign.is_dir():
            found.append(LeftOut(Path(campaign.path), NO_RUNS_FILE))
            continue
        found += [
            _look(Path(entry.path), campaign.name, entry.is_dir()) for entry in _entries(Path(campaign.path))
        ]
    return sorted_out(found)


def is_own(name: str) -> bool:
    """Whether an entry of results/ is ours and holds no runs of a plan."""
    return name in _OWN or name.startswith(("_", "."))


def sorted_out(found: Iterable[StoredRun | LeftOut]) -> Scan:
    """Finished runs, unfinished runs, and entries that are not runs."""
    left_out = [each for each in found if isinstance(each, LeftOut)]
    foreign = [each for each in left_out if each.why.startswith(("no run", NO_RUNS_FILE))]
    return Scan(
        tuple(each for each in found if isinstance(each, StoredRun)),
        tuple(each for each in left_out if each not in foreign),
        tuple(foreign),
    )


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from sorted(found, key=lambda entry: entry.name)
    except OSError:
        return


def _look(path: Path, campaign: str, is_folder: bool) -> StoredRun | LeftOut:
    stamps = {name: stamp for name in _LOOKED_AT if (stamp := _stamp(path / name)) is not None}
    return looked_at(path, campaign, is_folder, stamps)


def looked_at(
    path: Path, campaign: str, is_folder: bool, stamps: Mapping[str, str], address: Address | None = None
) -> StoredRun | LeftOut:
    """The kind of an entry of a campaign. `stamps`: of the run's existing files."""
    place = address or path
    if not is_folder or not _FOLDER.fullmatch(path.name):
        return LeftOut(place, "no run: its name is not <utc>-<seed>" if is_folder else "no run: a file")
    if PLAN not in stamps:
        return LeftOut(place, f"no run: {PLAN} is missing")
    if HISTORY not in stamps:
        return LeftOut(place, f"half-written: {HISTORY} is missing")
    if VERDICT not in stamps:
        return LeftOut(place, "half-written: it has no verdict (yet)")
    return StoredRun(
        f"{campaign}/{path.name}",
        path,
        " ".join(stamps.get(name, "-") for name in (PLAN, VERDICT, COLUMNS)),
        address,
    )


def _stamp(path: Path) -> str | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return f"{found.st_size}.{found.st_mtime_ns}"
