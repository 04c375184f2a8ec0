"""The entries of results/: finished runs, unfinished runs, and entries that are not runs.

A run is finished when its verdict stands beside its plan and its record; only its hashes and the page take their places
after the verdict. A run without a verdict is active, or its harness was killed: the scan skips it and names it.
`stamp` changes whenever an input file of the tables changes, so a run that was judged again counts as new.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.results.objects import Address
from harness.results.run_folder import COLUMNS, HISTORY, LATEST, PLAN, VERDICT

_FOLDER = re.compile(r"(\d{8}T\d{6}Z)-\d+(-\d+)?", re.ASCII)
_TIME = "%Y%m%dT%H%M%SZ"
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
        """Its folder or its address."""
        return str(self.path if self.address is None else self.address)

    @property
    def campaign(self) -> str:
        """The name of its plan: runs of one campaign share it."""
        return self.name.partition("/")[0]

    @property
    def started(self) -> datetime:
        """When it began."""
        return _started(self.path.name)

    @property
    def date(self) -> str:
        """The day (UTC) on which it began, as 2026-11-21."""
        return self.started.date().isoformat()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A skipped entry of results/, with the reason."""

    path: Path | Address
    why: str

    @property
    def place(self) -> str:
        """Its folder or its address, printable: a folder's name need not be UTF-8."""
        return os.fsencode(str(self.path)).decode(errors="backslashreplace")


@dataclass(frozen=True, slots=True)
class Scan:
    """The entries of results/ in order of names."""

    runs: tuple[StoredRun, ...]
    unfinished: tuple[LeftOut, ...]
    foreign: tuple[LeftOut, ...]


def scan(root: Path) -> Scan:
    """The runs under results/; an unreadable entry does not hide the remaining ones."""
    entries: list[StoredRun | LeftOut] = []
    for campaign in _entries(root, entries):
        if is_own(campaign.name):
            continue
        if not os.path.isdir(campaign):  # noqa: PTH112  # says no where a link leads in a circle
            entries.append(LeftOut(Path(campaign.path), NO_RUNS_FILE))
            continue
        entries += [
            _local_entry(Path(entry.path), campaign.name, os.path.isdir(entry))  # noqa: PTH112
            for entry in _entries(Path(campaign.path), entries)
        ]
    return scan_of(entries)


def is_own(name: str) -> bool:
    """Whether an entry of results/ is ours and holds no runs of a plan."""
    return name in _OWN or name.startswith(("_", "."))


def scan_of(entries: Iterable[StoredRun | LeftOut]) -> Scan:
    """Finished runs, unfinished runs, and entries that are not runs."""
    left_out = [entry for entry in entries if isinstance(entry, LeftOut)]
    foreign = [entry for entry in left_out if entry.why.startswith(("no run", NO_RUNS_FILE))]
    return Scan(
        tuple(entry for entry in entries if isinstance(entry, StoredRun)),
        tuple(entry for entry in left_out if entry not in foreign),
        tuple(foreign),
    )


def _entries(folder: Path, left_out: list[StoredRun | LeftOut]) -> list[os.DirEntry[str]]:
    """The entries of a folder in order of names. A folder that cannot be listed is added to `left_out`."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        left_out.append(LeftOut(folder, f"it cannot be listed: {error.strerror}"))
        return []


def _local_entry(path: Path, campaign: str, is_folder: bool) -> StoredRun | LeftOut:
    stamps = {name: stamp for name in _LOOKED_AT if (stamp := _stamp(path / name)) is not None}
    return entry_of(path, campaign, is_folder, stamps)


def entry_of(
    path: Path, campaign: str, is_folder: bool, stamps: Mapping[str, str], address: Address | None = None
) -> StoredRun | LeftOut:
    """An entry of a campaign as a finished run, or left out with the reason. `stamps`: existing file → its stamp."""
    place = address or path
    if not is_folder or not _FOLDER.fullmatch(path.name):
        return LeftOut(place, "no run: its name is not <utc>-<seed>" if is_folder else "no run: a file")
    if PLAN not in stamps:
        return LeftOut(place, f"no run: {PLAN} is missing")
    try:
        _started(path.name)
    except ValueError:
        return LeftOut(place, f"damaged: expected a name that begins with a time, got {path.name}")
    if any("\ud800" <= letter <= "\udfff" for letter in campaign):
        return LeftOut(place, "damaged: the name of its plan's folder is not UTF-8")
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


def _started(name: str) -> datetime:
    """When the run of that name began. Raises ValueError if there is no such moment."""
    return datetime.strptime(name.partition("-")[0], _TIME).replace(tzinfo=UTC)


def _stamp(path: Path) -> str | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return f"{status.st_size}.{status.st_mtime_ns}"
