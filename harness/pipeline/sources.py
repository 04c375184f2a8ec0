"""Where runs come from: a folder, or an address of an object store, from which they are fetched as they are needed.

Spark reads files in a folder that it and its workers see. Of runs at an address only the files that the tables need are
fetched, a portion at a time, to the spool; they are removed as soon as their rows are in place.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from checkers.history import segments
from harness.errors import StoreError, WrongUse
from harness.results import LeftOut, RunFolder, Scan, StoredRun, hashes
from harness.results.objects import Address, ObjectStore
from harness.results.remote_runs import WentAway, at_once, fetch_run, scan_address
from harness.results.run_folder import COLUMNS, HISTORY, PLAN, VERDICT
from harness.results.scan import scan

PORTION = 200
RUNS = "runs"

Fetched = Callable[[str], None]
"""Reports progress, in words."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Runs with their files here, and the runs that could not be fetched."""

    runs: Sequence[StoredRun]
    left_out: Sequence[LeftOut] = ()


class Source(Protocol):
    """Something that holds runs."""

    def scan(self) -> Scan:
        """All runs that are there."""
        ...

    def portions(self, runs: Sequence[StoredRun], tell: Fetched) -> Iterator[Portion]:
        """These runs, with their files here for as long as the portion is at work."""
        ...

    def has(self, name: str) -> bool:
        """Whether a portion has the file of that name of every run that has one."""
        ...


class FolderSource:
    """results/ on this machine."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise WrongUse(f"{folder} is no folder; try: qsync run first, or --results FOLDER")
        self.folder = folder

    def scan(self) -> Scan:
        return scan(self.folder)

    def portions(self, runs: Sequence[StoredRun], tell: Fetched) -> Iterator[Portion]:
        yield Portion(runs)

    def has(self, name: str) -> bool:
        return True


class AddressSource:
    """results/ in an object store. `spool`: the folder to which runs are fetched."""

    def __init__(self, address: Address, spool: Path, store: ObjectStore | None = None) -> None:
        self.address = address
        self.spool = spool / RUNS
        self._store = store or ObjectStore(address)

    def scan(self) -> Scan:
        return scan_address(self._store, self.address, self.spool)

    def portions(self, runs: Sequence[StoredRun], tell: Fetched) -> Iterator[Portion]:
        for start in range(0, len(runs), PORTION):
            portion = runs[start : start + PORTION]
            tell(f"fetching {start + len(portion)} of {len(runs)} runs")
            try:
                left_out = [skipped for skipped in at_once(self._fetch, portion) if skipped is not None]
                gone = {skipped.path for skipped in left_out}
                yield Portion([run for run in portion if run.address not in gone], left_out)
            finally:
                shutil.rmtree(self.spool, ignore_errors=True)

    def has(self, name: str) -> bool:
        return _is_wanted(name)

    def _fetch(self, run: StoredRun) -> LeftOut | None:
        """Fetch the files that the tables are made of. The history itself is fetched only for runs with witnesses,
        without columns, or without hashes.
        """
        assert run.address is not None
        try:
            there = fetch_run(self._store, run.address, run.path, _is_wanted)
            names = {file.name for file in there}
            if not {COLUMNS, hashes.HASHES} <= names or _has_witnesses(RunFolder(run.path)):
                fetch_run(self._store, run.address, run.path, _is_history)
            lacking = [name for name in (PLAN, VERDICT) if not (run.path / name).exists()]
            if lacking:
                raise WentAway(run.address)
        except WentAway as error:
            return LeftOut(run.address, error.why)
        return None


def _is_wanted(name: str) -> bool:
    return name in (PLAN, VERDICT, COLUMNS, hashes.HASHES) or (
        hashes.is_of_record(name) and not _is_history(name)
    )


def _has_witnesses(run: RunFolder) -> bool:
    checks = (run.read_verdict() or {}).get("checks")
    listed = checks if isinstance(checks, list) else []
    return any(isinstance(check, dict) and check.get("result") == "invalid" for check in listed)


def _is_history(name: str) -> bool:
    return name == HISTORY or name.startswith(f"{segments.FOLDER}/")


def source_of(results: Path | Address, spool: Path | None) -> Source:
    """Where the runs under `results` come from."""
    if isinstance(results, Path):
        return FolderSource(results)
    if spool is None:
        raise StoreError(f"runs of {results} need a folder to be fetched to; try: --spool FOLDER")
    return AddressSource(results, spool)
