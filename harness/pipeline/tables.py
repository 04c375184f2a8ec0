"""The folder of tables: what is in it, and how a batch of new rows gets in as a whole or not at all.

    <folder>/<table>/campaign=<plan>/date=<day>/<batch>-<n>.parquet
    <folder>/_state.json      which runs the tables hold, in what state each was when it was read
    <folder>/_commit.json     a batch that is being put in place
    <folder>/_staging/        where Spark writes

Spark writes a batch to `_staging`. Then `_commit.json` is renamed into place. From this moment the batch
counts: the file lists the files to move in and the ones to take out. If a call is killed before, the batch is lost; if
it is killed after, the next call finishes it. Either way no reader finds half of it for long. A lock lets one call
at a time in.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness.errors import StoreError
from harness.store import hashes
from harness.store.remote_runs import at_once

FORMAT = "qsync-tables"
VERSION = 1
STATE = "_state.json"
COMMIT = "_commit.json"
STAGING = "_staging"
LOCK = "_lock"


@dataclass(slots=True)
class State:
    """run → its stamp; `schema` names the tables' schema: with another one all is made anew.

    `strange` are runs with documents that are not ours: not tried again until they change. `sums`: data file → the
    SHA-256 of its content, by which it is verified before it is read; earlier versions noted none.
    """

    runs: dict[str, str] = field(default_factory=dict)
    sums: dict[str, str] = field(default_factory=dict)
    strange: dict[str, str] = field(default_factory=dict)
    batch: int = 0
    schema: str = ""


class Tables:
    """The tables under `folder`; use within `opened`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.staging = folder / STAGING
        self.place = str(folder)
        """Where they are, for people."""
        self._sums: Mapping[str, str] = {}

    @contextmanager
    def opened(self) -> Iterator[State]:
        """Hold the lock, finish what was committed, forget what was not; gives the present state."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / LOCK).open("w")
        except OSError as error:
            raise StoreError(
                f"cannot write tables to {self.folder}: {error.strerror}; try: --tables FOLDER"
            ) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise StoreError(
                    f"another qsync analyze is at work in {self.folder}; wait for it to end"
                ) from error
            self._finish_commit()
            shutil.rmtree(self.staging, ignore_errors=True)
            state = self._state()
            self._sums = state.sums
            yield state

    def files(self, table: str) -> list[Path]:
        """The data files of a table, those of its partitions too. StoreError if one is not as it was written."""
        return self._verified(self._files(table))

    def partition(self, table: str, campaign: str, date: str) -> list[Path]:
        folder = self.folder / table / f"campaign={campaign}" / f"date={date}"
        return self._verified(sorted(folder.glob("*.parquet")))

    def _files(self, table: str) -> list[Path]:
        return sorted(self.folder.glob(f"{table}/**/*.parquet"))

    def _verified(self, files: list[Path]) -> list[Path]:
        changed = [
            file for file, is_whole in zip(files, at_once(self.is_whole, files), strict=True) if not is_whole
        ]
        if changed:
            raise StoreError(
                f"{changed[0]} has changed since it was written ({len(changed)} of {len(files)} files); "
                "try: the file as it was, or qsync analyze --anew"
            )
        return files

    def is_whole(self, file: Path) -> bool:
        """A data file is as it was written, as far as that was noted."""
        noted = self._sums.get(self._name(file))
        return noted is None or hashes.of_file(file).sha256 == noted

    def _note_sums(self, state: State, written: Mapping[str, Path], gone: Set[str]) -> None:
        """Of the files that will be there: `written` by their names-to-be, and what is not `gone`."""
        kept = {name: known for name, known in state.sums.items() if name not in gone}
        state.sums = kept | {name: hashes.of_file(path).sha256 for name, path in written.items()}
        self._sums = state.sums

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.folder))

    def forget_all(self) -> None:
        """Remove every table: they will be made anew."""
        self._sums = {}
        for path in self.folder.iterdir():
            if path.name != LOCK:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def commit(self, state: State, removed: Sequence[Path], replaced: Sequence[str]) -> None:
        """Put what lies in staging in place. `removed`: files that the batch replaces; `replaced`: whole tables."""
        moves = [
            (self._name(path), self._place(path, state.batch, number))
            for number, path in enumerate(sorted(self.staging.glob("**/*.parquet")))
        ]
        gone = {self._name(path) for path in removed}
        for table in replaced:
            gone |= {self._name(path) for path in self._files(table)}
        self._note_sums(state, {to: self.folder / source for source, to in moves}, gone)
        document = {
            "format": FORMAT,
            "version": VERSION,
            "moves": moves,
            "removes": sorted(gone - {to for _, to in moves}),
            "state": asdict(state),
        }
        self._write(COMMIT, document)
        self._finish_commit()

    def _place(self, staged: Path, batch: int, number: int) -> str:
        inside = staged.relative_to(self.staging).parent
        return str(inside / f"{batch:06d}-{number:05d}.parquet")

    def _finish_commit(self) -> None:
        """Do what a commit says; every step may have been done already."""
        document = self._read(COMMIT)
        if document is None:
            return
        for source, target in document["moves"]:
            if (self.folder / source).exists():
                (self.folder / target).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / source).replace(self.folder / target)
        for name in document["removes"]:
            (self.folder / name).unlink(missing_ok=True)
        self._write(STATE, {"format": FORMAT, "version": VERSION, **document["state"]})
        (self.folder / COMMIT).unlink()
        shutil.rmtree(self.staging, ignore_errors=True)

    def _state(self) -> State:
        found = self._read(STATE)
        if found is None or found.get("version") != VERSION:
            return State()
        return State(**{name: found[name] for name in State.__dataclass_fields__ if name in found})

    def _read(self, name: str) -> Mapping[str, Any] | None:
        try:
            found = msgspec.json.decode((self.folder / name).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise StoreError(
                f"{self.folder / name} cannot be read: {error}; try: qsync analyze --anew"
            ) from error
        return found if isinstance(found, dict) else None

    def _write(self, name: str, document: Mapping[str, Any]) -> None:
        unfinished = self.folder / f"{name}.unfinished"
        try:
            unfinished.write_bytes(msgspec.json.encode(document))
            unfinished.replace(self.folder / name)
        except OSError as error:
            raise StoreError(f"cannot write {self.folder / name}: {error.strerror}") from error
