"""The folder of tables: its files, and how a batch of new rows gets in as a whole or not at all.

    <folder>/<table>/campaign=<plan>/date=<day>/<batch>-<n>.parquet
    <folder>/_state.json      the runs in the tables, the stamp of each when it was read, and the tables' files
    <folder>/_commit.json     a batch that is being put in place
    <folder>/_staging/        where Spark writes
    <folder>/_damaged/        files of the tables that `--anew` found changed

Spark writes a batch to `_staging`. Then `_commit.json` is renamed into place. From this moment the batch
counts: the file lists the files to move in and the ones to take out. If a call is killed before, the batch is lost; if
it is killed after, the next call finishes it. Either way no reader finds half of it for long. A lock lets one call
at a time in.

Nothing is written over tables whose state is lost, of another version, or not theirs. `--anew` is the way out: it takes
stock of the files that are there, reads every run again, and commits the result like any batch. Until then the tables
do not change. The rows of removed runs stay.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import msgspec

from checkers.history.errors import NOT_JSON
from harness.errors import StoreError
from harness.pipeline.stock import State, Stock, taken_stock
from harness.results import hashes
from harness.results.remote_runs import at_once

FORMAT = "qsync-tables"
VERSION = 1
STATE = "_state.json"
COMMIT = "_commit.json"
STAGING = "_staging"
DAMAGED = "_damaged"
LOCK = "_lock"
Kind = TypeVar("Kind")


class Unfit(StoreError):
    """The state of tables does not fit their files. Nothing is lost: `--anew` goes by the files."""


class _Commit(msgspec.Struct, frozen=True):
    """`moves`: files from, and to; `removes`: files; `state`: of the tables afterwards."""

    moves: list[tuple[str, str]]
    removes: list[str]
    state: State


class Tables:
    """The tables under `folder`; use within `opened`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.staging = folder / STAGING
        self.place = str(folder)
        """Where the tables are, for messages."""
        self.stock = Stock(State())
        """The stock of tables that were opened to be made anew."""
        self._sums: Mapping[str, str] = {}

    @contextmanager
    def opened(self, *, anew: bool = False) -> Iterator[State]:
        """Hold the lock, finish a committed batch, drop an uncommitted one; yields the present state.

        StoreError if the state does not fit the files. With `anew` the state is that of the files.
        """
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
            with suppress(*([Unfit] if anew else [])):
                self._finish_commit()
            shutil.rmtree(self.staging, ignore_errors=True)
            if anew:
                self.stock = self._take_stock()
            state = self.stock.state if anew else self._known()
            self._sums = state.sums
            yield state

    def files(self, table: str) -> list[Path]:
        """The data files of a table, those of its partitions too. StoreError if one is not as it was written."""
        return self._verified(self._files(table))

    def partition(self, table: str, campaign: str, date: str) -> list[Path]:
        """The data files of one campaign and day."""
        wanted = f"{table}/campaign={campaign}/date={date}/"
        return self._verified(
            [file for file in self._files(table) if unquote(self._name(file)).startswith(wanted)]
        )

    def _files(self, table: str) -> list[Path]:
        return [self.folder / name for name in self._names() if name.startswith(f"{table}/")]

    def _names(self) -> list[str]:
        """The names of all data files that are part of the tables."""
        there = (self._name(path) for path in self.folder.glob("[!_.]*/**/*.parquet"))
        return sorted({*there}.difference(self.stock.damaged))

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
        """Whether a data file is as it was written; true if no hash was noted."""
        noted = self._sums.get(self._name(file))
        return noted is None or hashes.of_file(file).sha256 == noted

    def _note_sums(self, state: State, written: Mapping[str, Path], gone: Set[str]) -> None:
        """Note the hashes of the future files: `written` by their names-to-be, and the present ones less `gone`."""
        kept = {name: known for name, known in state.sums.items() if name not in gone}
        state.sums = kept | {name: hashes.of_file(path).sha256 for name, path in written.items()}
        self._sums = state.sums

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self.folder))

    def commit(self, state: State, removed: Sequence[Path], replaced: Sequence[str]) -> None:
        """Put the staged files in place. `removed`: files that the batch replaces; `replaced`: whole tables."""
        moves = [
            (self._name(path), self._place(path, state.batch, number))
            for number, path in enumerate(sorted(self.staging.glob("**/*.parquet")))
        ]
        gone = {self._name(path) for path in removed}
        for table in replaced:
            gone |= {self._name(path) for path in self._files(table)}
        # The hashes of the files where they are now: the moves come behind the commit, maybe in another process.
        self._note_sums(state, {to: self.folder / source for source, to in moves}, gone)
        moves += [(name, f"{DAMAGED}/{name}") for name in self.stock.damaged]
        document = {
            "format": FORMAT,
            "version": VERSION,
            "moves": moves,
            "removes": sorted(gone - {to for _, to in moves}),
            "state": asdict(state),
        }
        self._write(COMMIT, document)  # from here on the batch counts, even if this process is killed
        self._finish_commit()

    def _place(self, staged: Path, batch: int, number: int) -> str:
        inside = staged.relative_to(self.staging).parent
        return str(inside / f"{batch:06d}-{number:05d}.parquet")

    def _finish_commit(self) -> None:
        """Carry out a commit; every step may have been done already."""
        document = self._read(COMMIT)
        if document is None:
            return
        commit = self._ours(COMMIT, document, _Commit)
        try:
            for source, target in commit.moves:
                if (self.folder / source).exists():
                    (self.folder / target).parent.mkdir(parents=True, exist_ok=True)
                    (self.folder / source).replace(self.folder / target)
            for name in commit.removes:
                (self.folder / name).unlink(missing_ok=True)
            self._write(STATE, {"format": FORMAT, "version": VERSION, **asdict(commit.state)})
            (self.folder / COMMIT).unlink()  # last: until then every step above can be done again
        except OSError as error:
            raise StoreError(
                f"cannot put the new files of {self.folder} in place: {error}; try: again, the next call goes on there"
            ) from error
        shutil.rmtree(self.staging, ignore_errors=True)

    def _known(self) -> State:
        """The state of the tables. Unfit if their files differ from it."""
        state, there = self._state(), {*self._names()}
        if added := sorted(there.difference(state.sums)):
            raise self._unfit(f"{added[0]} is not listed in {STATE}")
        if missing := sorted({*state.sums} - there):
            raise self._unfit(f"{missing[0]} is listed in {STATE}, and is missing")
        return state

    def _state(self) -> State:
        document = self._read(STATE)
        if document is None:
            if names := self._names():
                raise self._unfit(f"{STATE} is missing, and there are {len(names)} files of tables")
            return State()
        return self._ours(STATE, document, State)

    def _ours(self, name: str, document: Mapping[str, Any], kind: type[Kind]) -> Kind:
        """The content of a file of this version. Unfit if it is none; StoreError if it is of a newer version."""
        form, version = document.get("format"), document.get("version")
        expected = f"{name}: expected {FORMAT} {VERSION}, got {form} {version}"
        if form == FORMAT and isinstance(version, int) and version > VERSION:
            raise StoreError(f"{self.place}: {expected}; try: the qsync that wrote it")
        if (form, version) != (FORMAT, VERSION):
            raise self._unfit(expected)
        try:
            return msgspec.convert(document, kind)
        except msgspec.ValidationError as error:
            raise self._unfit(f"{name} is not ours: {error}") from error

    def _take_stock(self) -> Stock:
        """The stock by the files, even if the state is lost. Changes nothing on the disk."""
        try:
            known = self._state()
        except Unfit:
            known = State()
        return taken_stock(self._names(), known, lambda name: self.folder / name)

    def _unfit(self, why: str) -> Unfit:
        return Unfit(
            f"{self.place}: {why}, so nothing is written there; try: qsync analyze --anew, which reads every run "
            "again and keeps the rows of runs that are gone"
        )

    def _read(self, name: str) -> Mapping[str, Any] | None:
        try:
            document = msgspec.json.decode((self.folder / name).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, *NOT_JSON) as error:
            raise self._unfit(f"{name} cannot be read: {error}") from error
        return document if isinstance(document, dict) else {}

    def _write(self, name: str, document: Mapping[str, Any]) -> None:
        unfinished = self.folder / f"{name}.unfinished"
        try:
            unfinished.write_bytes(msgspec.json.encode(document))
            unfinished.replace(self.folder / name)
        except OSError as error:
            raise StoreError(f"cannot write {self.folder / name}: {error.strerror}") from error
