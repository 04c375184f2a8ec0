"""Tables at an address of an object store, where nothing can be renamed, and readers hold no lock.

    <address>/_manifest.json    the files of the tables, and the runs in them: only these count
    <address>/<table>/campaign=<plan>/date=<day>/<batch>-<n>-<token>.parquet

A batch is made here, then its files are sent under names that were never used before, then the manifest is put in
place: one object, which is the old one or the new one. A reader of the files that it names sees a batch whole or not
at all. Files that it no longer names are removed an hour later, so that a reader of the old manifest can finish; files
of a killed call are removed after a day. Of two calls at once, the one that comes second to the manifest gives up, and
has changed nothing. (Were both to come in the same moment, the later manifest counts, and the runs that only the
earlier one had are read again by the next call.)
"""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import msgspec

from checkers.history.errors import NOT_JSON
from harness.errors import StoreError, WrongUse
from harness.pipeline.stock import State, Stock, taken_stock
from harness.pipeline.tables import STAGING, Tables
from harness.results.objects import Address, ObjectStore, address_of
from harness.results.remote_runs import at_once

MANIFEST = "_manifest.json"
FORMAT = "qsync-tables-manifest"
VERSION = 1
READERS_NEED_S = 3_600.0
KILLED_LEAVE_S = 86_400.0
_OURS = re.compile(r"\w+/(campaign=[^/]+/date=[^/]+/)?\d+-\d+-[0-9a-f]+\.parquet")


class Manifest(msgspec.Struct, kw_only=True):
    """`files`: name below the address → size in bytes; `gone`: name → when it was left out (seconds since 1970)."""

    format: str = FORMAT
    version: int = VERSION
    files: dict[str, int] = {}
    gone: dict[str, float] = {}
    state: State = msgspec.field(default_factory=State)


class RemoteTables(Tables):
    """The tables at `address`; `folder` is the local copy of the files that were needed so far."""

    def __init__(self, address: Address, folder: Path, store: ObjectStore | None = None) -> None:
        super().__init__(folder)
        self.address = address
        self.place = str(address)
        self._store = store or ObjectStore(address)
        self._read_as: bytes | None = None
        self._manifest = Manifest()

    def _known(self) -> State:
        return self._state()

    def _state(self) -> State:
        self._read_as = self._store.read(self.address / MANIFEST)
        self._manifest = self._none_yet() if self._read_as is None else _decoded(self.address, self._read_as)
        for file in self.folder.glob("*/**/*.parquet"):
            if self._name(file) not in self._manifest.files:
                file.unlink()
        return self._manifest.state

    def _none_yet(self) -> Manifest:
        """An empty manifest. StoreError if there are files: the first batch writes a manifest before any file, so this
        one is lost, and no file shows whether it counted."""
        files = [file.name for file in self._store.objects(self.address) if _OURS.fullmatch(file.name)]
        if files:
            raise StoreError(
                f"{self.address}: {MANIFEST} is missing, and there are {len(files)} files of tables, so nothing is "
                "written there; try: the manifest from a copy, or another --tables"
            )
        return Manifest()

    def _take_stock(self) -> Stock:
        known, names = self._state(), self._names()
        self._sums = known.sums
        at_once(self._is_fetched, names)
        return taken_stock(names, known, lambda name: self.folder / name)

    def _names(self) -> list[str]:
        return sorted({*self._manifest.files}.difference(self.stock.damaged))

    def files(self, table: str) -> list[Path]:
        return self._copied(f"{table}/")

    def partition(self, table: str, campaign: str, date: str) -> list[Path]:
        return self._copied(f"{table}/campaign={campaign}/date={date}/")

    def _copied(self, prefix: str) -> list[Path]:
        """The local files below a prefix; those that are missing are fetched."""
        names = [name for name in self._names() if unquote(name).startswith(prefix)]
        at_once(self._copy, names)
        return [self.folder / name for name in names]

    def _is_here(self, name: str) -> bool:
        file = self.folder / name
        try:
            return file.stat().st_size == self._manifest.files[name] and self.is_whole(file)
        except FileNotFoundError:
            return False

    def _is_fetched(self, name: str) -> bool:
        """Fetch the file unless it is here; whether it is as it was written."""
        if self._is_here(name):
            return True
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        return self._store.fetch(self.address / name, file) and self._is_here(name)

    def _copy(self, name: str) -> None:
        if not self._is_fetched(name):
            raise StoreError(
                f"{self.address / name} is missing, torn, or has changed since it was written; "
                "try: qsync analyze --anew"
            )

    def commit(self, state: State, removed: Sequence[Path], replaced: Sequence[str]) -> None:
        """Send the staged files, then put the manifest in place."""
        # Here too: the first manifest must not take the place of one that another call has written.
        self._must_be_as_read()
        if self._read_as is None:
            self._put(Manifest())
        staged = sorted(self.staging.glob("**/*.parquet"))
        token = secrets.token_hex(4)
        sent = {
            str(
                PurePosixPath(path.relative_to(self.staging).parent)
                / f"{state.batch:06d}-{number:05d}-{token}.parquet"
            ): path
            for number, path in enumerate(staged)
        }
        at_once(lambda name: self._store.send(sent[name], self.address / name), list(sent))
        self._tidy_up()
        gone = {self._name(path) for path in removed} | {*self.stock.damaged}
        gone |= {name for name in self._manifest.files if name.partition("/")[0] in replaced}
        files = {name: size for name, size in self._manifest.files.items() if name not in gone}
        self._note_sums(state, sent, gone)
        fresh = Manifest(
            files=files | {name: path.stat().st_size for name, path in sent.items()},
            gone=self._manifest.gone | dict.fromkeys(sorted(gone), time.time()),
            state=state,
        )
        # Once more: sending took its time, and another call may have been quicker.
        self._must_be_as_read()
        self._put(fresh)
        self._keep_here(sent, gone)

    def _must_be_as_read(self) -> None:
        if self._store.read(self.address / MANIFEST) != self._read_as:
            raise StoreError(
                f"another qsync analyze has written {self.address} meanwhile; this one has changed nothing; try: again"
            )

    def _put(self, manifest: Manifest) -> None:
        data = msgspec.json.encode(manifest)
        self._store.write(self.address / MANIFEST, data)
        self._manifest, self._read_as = manifest, data

    def _keep_here(self, sent: Mapping[str, Path], gone: set[str]) -> None:
        for name, path in sent.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            path.replace(self.folder / name)
        for name in gone:
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / STAGING, ignore_errors=True)

    def _tidy_up(self) -> None:
        """Remove files that no reader needs any more. Files that cannot be removed now wait for the next batch."""
        now_s = time.time()
        manifest = self._manifest
        old = [name for name, at_s in manifest.gone.items() if now_s - at_s > READERS_NEED_S]
        try:
            left = [
                file.name
                for file in self._store.objects(self.address, now_s)
                if _OURS.fullmatch(file.name)
                and file.age_s > KILLED_LEAVE_S
                and file.name not in manifest.files
                and file.name not in manifest.gone
            ]
            at_once(lambda name: self._store.remove(self.address / name), [*old, *left])
        except StoreError:
            return
        for name in old:
            del manifest.gone[name]


def _decoded(address: Address, data: bytes) -> Manifest:
    """The manifest in these bytes. Raises StoreError."""
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except NOT_JSON as error:
        raise StoreError(f"{address / MANIFEST} is not ours: {error}; try: another --tables") from error
    if (manifest.format, manifest.version) != (FORMAT, VERSION):
        raise StoreError(
            f"{address / MANIFEST}: expected {FORMAT} {VERSION}, got {manifest.format} {manifest.version}; "
            "try: the qsync that wrote it"
        )
    return manifest


def files_of(address: Address, table: str) -> list[str]:
    """The files of one table, as the manifest at an address names them now: addresses."""
    data = ObjectStore(address).read(address / MANIFEST)
    if data is None:
        raise WrongUse(f"there are no tables at {address}; try: qsync analyze --tables {address}")
    manifest = _decoded(address, data)
    return [str(address / name) for name in sorted(manifest.files) if name.startswith(f"{table}/")]


def opened(place: str, table: str) -> dict[str, Any]:
    """The arguments of `pyarrow.dataset.dataset` for one table at an address: `dataset(**opened("s3://…", "runs"))`."""
    from pyarrow.dataset import ParquetFileFormat, ParquetFragmentScanOptions

    address = address_of(place)
    if address is None:
        raise WrongUse(f"expected an address such as s3://bucket/results/_tables, got {place}")
    keys = [file.removeprefix(f"{address}/") for file in files_of(address, table)]
    return {
        "source": [f"{address.key}/{key}" for key in keys],
        "filesystem": ObjectStore(address).files,
        "partitioning": "hive",
        "format": ParquetFileFormat(
            default_fragment_scan_options=ParquetFragmentScanOptions(page_checksum_verification=True)
        ),
    }
