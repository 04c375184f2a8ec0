"""A run's folder: `results/<plan>/<utc>-<seed>/`.

| file | what |
|---|---|
| plan.json | all that is needed to repeat the run |
| history.jsonl | the record, append-only, in event order; a killed harness leaves a checkable prefix |
| history/ | the older part of a long record: `checkers.history.segments` |
| history.parquet | the same in columns |
| nodes/<n>/ | log and files of each node |
| restored/<cut>/nodes/<n>/ | the same of a second cluster that began from that cut |
| nodes/effects.jsonl | of a simulated run: the effects of disks and links, with times |
| verdict.json, report.html | the verdict, and the page that shows it |
| hashes.json | the hashes of what is judged, of its columns and of the verdict: `harness.results.hashes` |

`results/latest` points to the newest run. Files that are not part of the record are written under a temporary name,
synced and renamed, so that a half-written file never looks whole. The files of a judgement are renamed when all of them
are whole; if one cannot be written, the earlier judgement stays. Errors of the file system become `StoreError`s of one
line.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec

from checkers.history.errors import NOT_JSON
from harness.errors import StoreError, WrongUse
from harness.plan.plan import Plan, to_json
from harness.results import hashes
from harness.results.segmented_file import SegmentedFile

PLAN = "plan.json"
HISTORY = "history.jsonl"
COLUMNS = "history.parquet"
VERDICT = "verdict.json"
REPORT = "report.html"
FILES = (PLAN, HISTORY, COLUMNS, VERDICT, REPORT)
"""A path to one of them names the run."""
LATEST = "latest"

Make = Callable[[Path], object]
"""Writes a file of a run to the path that it is given. Raises OSError."""


def is_read(name: str) -> bool:
    """Whether a file of this name in a run's folder is read by a verb; the page is not."""
    return name != REPORT and (name in (*FILES, hashes.HASHES) or hashes.is_of_record(name))


@contextmanager
def _file_system(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _cannot(doing, error) from error


def _cannot(doing: str, error: OSError) -> StoreError:
    where = f" ({error.filename})" if error.filename else ""
    return StoreError(f"cannot {doing}: {error.strerror or error}{where}; try another folder with --results")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run's folder, made with `create` or found with `resolve`."""

    path: Path

    @classmethod
    def create(cls, root: Path, plan: Plan, *, at: datetime | None = None) -> RunFolder:
        """A new folder with the plan in it; `latest` points to it."""
        stamp = (at or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
        with _file_system(f"write results to {root}"):
            folder = _make_new(root / plan.name, f"{stamp}-{plan.seed}")
            try:
                cls(folder)._keep({PLAN: lambda path: path.write_bytes(to_json(plan))})
                point_to(root / LATEST, folder)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)  # a run without a plan is none
                raise
        return cls(folder)

    @property
    def plan_file(self) -> Path:
        return self.path / PLAN

    @property
    def history(self) -> Path:
        return self.path / HISTORY

    @property
    def nodes(self) -> Path:
        return self.path / "nodes"

    def second(self, cut: str) -> RunFolder:
        """The folder of the second cluster that begins from a cut."""
        return RunFolder(self.path / "restored" / cut)

    def put(self, files: Mapping[str, Mapping[str, bytes]]) -> None:
        """Write the files with which nodes begin: node → name → bytes."""
        with _file_system(f"write to {self.nodes}"):
            for node, contents in files.items():
                (self.nodes / node).mkdir(parents=True, exist_ok=True)
                for name, data in contents.items():
                    (self.nodes / node / name).write_bytes(data)

    def open_history(self) -> BinaryIO:
        """A new file for the record; StoreError if there is one."""
        with _file_system(f"write the history to {self.path}"):
            return GuardedFile(SegmentedFile(self.history))  # type: ignore[return-value]

    def keep_judgement(self, making: Mapping[str, Make], record: hashes.Files) -> None:
        """Write the files of a judgement and the list of hashes; `record`: the hashes of the judged files.

        The files take their places in this order, all of them or, if one cannot be written, none: StoreError.
        """
        made: dict[str, hashes.Hashed | None] = {}

        def hashed(name: str, make: Make) -> Make:
            def write(path: Path) -> None:
                make(path)
                made[name] = hashes.of_file(path)

            return write

        listed = {name: hashed(name, make) for name, make in making.items() if name != REPORT}
        page = {name: make for name, make in making.items() if name == REPORT}

        def write_list(path: Path) -> None:
            path.write_bytes(hashes.document({**record, **made}))

        # The page is last: a program that waits for runs waits for it. Columns before the verdict: with a verdict a run
        # counts as finished (`scan`).
        self._keep({**listed, hashes.HASHES: write_list, **page})

    def read_verdict(self) -> dict[str, object] | None:
        """The stored verdict, in the words of this version; None if there is none that can be read."""
        try:
            verdict = msgspec.json.decode((self.path / VERDICT).read_bytes())
        except (OSError, *NOT_JSON):
            return None
        return in_todays_words(verdict) if isinstance(verdict, dict) else None

    def read_verdict_outcome(self) -> str | None:
        """The stored outcome; None if there is none, or it cannot be read."""
        outcome = (self.read_verdict() or {}).get("outcome")
        return outcome if isinstance(outcome, str) else None

    def _keep(self, making: Mapping[str, Make]) -> None:
        with _file_system(f"write to {self.path}"), _alone_in(self.path):
            try:
                for name, make in making.items():
                    with _file_system(f"write {name} to {self.path}"):
                        make(self._unfinished(name))
                        # Before the rename, or a power loss leaves a whole name, empty.
                        _sync(self._unfinished(name))
                for name in making:  # only when all are whole: else the earlier judgement stays
                    self._unfinished(name).replace(self.path / name)
                _sync(self.path)  # after the renames, which last only when the folder is on disk
            except BaseException:
                for name in making:
                    with suppress(OSError):
                        self._unfinished(name).unlink(missing_ok=True)
                raise

    def _unfinished(self, name: str) -> Path:
        return self.path / f".{name}.unfinished"


_OLD_WORDS = {"kinds_that_bit": "kinds_in_effect", "not_felt": "not_observed", "left_out": "skipped_faults"}


def in_todays_words(verdict: Mapping[str, object]) -> dict[str, object]:
    """The verdict of an older version with the words of this one for its outcome and in its evidence."""
    today = dict(verdict)
    if today.get("outcome") == "not-evidence":
        today["outcome"] = "inconclusive"
    if isinstance(evidence := today.get("evidence"), dict):
        today["evidence"] = named = {_OLD_WORDS.get(name, name): value for name, value in evidence.items()}
        if isinstance(faults := named.get("faults"), list):
            named["faults"] = [
                {"took_effect": fault.get("bit"), **fault} for fault in faults if isinstance(fault, dict)
            ]
    return today


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Wait for other processes that put files in place there: unfinished files have one name for all."""
    number = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(number, fcntl.LOCK_EX)
        yield
    finally:
        os.close(number)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


class Appended(Protocol):
    """A file that a record is written to."""

    @property
    def closed(self) -> bool: ...

    def write(self, data: bytes, /) -> int: ...

    def flush(self) -> None: ...

    def close(self) -> None: ...


class GuardedFile:
    """A binary file that raises StoreErrors: a full disk makes a run inconclusive and causes no traceback.

    After one refusal it writes nothing more, because the next line would stand behind a gap or half a line.
    """

    def __init__(self, file: Appended) -> None:
        self._file = file
        self._refused: StoreError | None = None

    def write(self, data: bytes) -> int:
        """Called for every line, and so without `_guard`, which takes longer than the write."""
        if self._refused is not None:
            raise self._refused
        try:
            return self._file.write(data)
        except OSError as error:
            self._refused = _cannot("write the history", error)
            raise self._refused from error

    def flush(self) -> None:
        with self._guard():
            self._file.flush()

    def close(self) -> None:
        if self._file.closed:
            return
        try:
            with self._guard():
                self._file.flush()
        finally:
            with suppress(OSError):
                self._file.close()

    @contextmanager
    def _guard(self) -> Iterator[None]:
        if self._refused is not None:
            raise self._refused
        try:
            with _file_system("write the history"):
                yield
        except StoreError as error:
            self._refused = error
            raise


def _make_new(parent: Path, name: str) -> Path:
    """A folder that was not there before; runs of one second get numbers."""
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = parent / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def point_to(link: Path, folder: Path) -> None:
    """Replace a symbolic link in one step; something else of that name is left alone."""
    if link.exists() and not link.is_symlink():
        return
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(os.path.relpath(folder, link.parent))
    fresh.replace(link)


def resolve(path: Path) -> RunFolder:
    """The run of a path that a user gave: its folder, or a file in it; WrongUse if there is none."""
    if not path.exists():
        raise WrongUse(f"{path} does not exist; try: results/latest, or the path from another folder")
    folder = path if path.is_dir() else path.parent
    is_of_a_run = path.is_dir() or path.name in FILES
    is_run = is_of_a_run and (folder / HISTORY).exists()
    pipes = (part for part in folder.rglob("*") if part.is_fifo() and is_read(str(part.relative_to(folder))))
    # A pipe can be read once, and its bytes are waited for.
    odd = next(pipes if is_run else iter(()), None) if path.is_dir() or path.is_file() else path
    if odd is not None:
        raise WrongUse(f"{odd} is no file and no folder; try: save to a file what it gives, and check that")
    if not is_run:
        raise WrongUse(
            f"{path} is no run: expected a folder with {HISTORY} in it; try: results/latest, or qsync run first"
        )
    return RunFolder(folder.resolve())
