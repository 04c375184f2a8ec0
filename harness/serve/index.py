"""The runs of results/, in memory: the folder of a judged run is read again only if its time has changed.

A verdict is renamed into its folder, so the folder's time changes with it. A look costs one `stat` for each such run,
and no more than one look a second happens, however many pages are asked for. Links are skipped: a run lies in
results/ itself.
"""

from __future__ import annotations

import functools
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from checkers.history.errors import NOT_JSON
from harness.campaigns import journal
from harness.campaigns.journal import Journal
from harness.results.run_folder import HISTORY, PLAN, VERDICT
from harness.results.scan import is_own

T = TypeVar("T")

LOOK_EVERY_S = 1.0
UNDER_WAY_S = 30.0
"""A run without a verdict goes on if its record grew in this time."""
NO_VERDICT, GOES_ON = "no-verdict", "under way"
_SINCE = re.compile(r"(\d{4})(\d{2})(\d{2})T(\d{2})(\d{2})(\d{2})Z")


class _Evidence(msgspec.Struct):
    ok: int = 0
    fail: int = 0
    info: int = 0
    kinds_in_effect: list[str] = []
    kinds_that_bit: list[str] = []
    """As older versions said (`harness.results.run_folder.in_todays_words`)."""


class _Verdict(msgspec.Struct):
    """The parts of verdict.json that a list shows; msgspec skips the rest."""

    outcome: str = NO_VERDICT
    sentence: str = ""
    evidence: _Evidence = msgspec.field(default_factory=_Evidence)


class _Plan(msgspec.Struct):
    system: str = ""
    cluster: str = ""
    workload: str = ""
    seed: int = 0
    options: msgspec.Raw = msgspec.Raw()
    """The options of its system."""

    @property
    def configuration(self) -> str:
        options = decoded(bytes(self.options), dict[str, Any])
        name = (options or {}).get("configuration")
        return name if isinstance(name, str) else ""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the list. `plan`, `name`: its folder is `<plan>/<name>`."""

    plan: str
    name: str
    path: Path
    began: str
    """2026-11-23 02:17:05, in UTC; empty if the folder's name does not say."""
    outcome: str
    sentence: str = ""
    system: str = ""
    cluster: str = ""
    workload: str = ""
    configuration: str = ""
    seed: int = 0
    ok: int = 0
    kinds: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.plan}/{self.name}"

    @functools.cached_property
    def text(self) -> str:
        """The text that a search looks in, in lower case."""
        words = (self.id, self.outcome, self.system, self.cluster, self.workload, self.configuration)
        return " ".join((*words, *self.kinds, self.sentence)).lower()


@dataclass(slots=True)
class Index:
    """The runs and campaigns of results/, in memory. `look` reads the changed ones."""

    results: Path
    clock: Callable[[], float] = time.monotonic
    _runs: dict[str, Run] = field(default_factory=dict)
    _stamps: dict[str, int] = field(default_factory=dict)
    _books: dict[Path, tuple[tuple[int, ...], Journal]] = field(default_factory=dict)
    _looked_s: float = -LOOK_EVERY_S
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self) -> None:
        """Read what has changed, at most once a second."""
        with self._lock:
            if self.clock() - self._looked_s < LOOK_EVERY_S:
                return
            folders = {f"{plan}/{entry.name}": (plan, entry) for plan, entry in _folders(self.results)}
            for gone in self._runs.keys() - folders.keys():
                del self._runs[gone]
                self._stamps.pop(gone, None)
            for name, (plan, entry) in folders.items():
                self._read(name, plan, entry)
            self._looked_s = self.clock()

    def _read(self, name: str, plan: str, entry: os.DirEntry[str]) -> None:
        try:
            # Before the files: a change during the read gives a newer stamp, and is read at the next look.
            stamp = entry.stat(follow_symlinks=False).st_mtime_ns
        except OSError:
            return
        known = self._runs.get(name)
        # A record that grows, or begins to grow again, leaves the folder's time as it is.
        is_over = known is not None and known.outcome not in (GOES_ON, NO_VERDICT)
        if is_over and self._stamps.get(name) == stamp:
            return
        run = read_run(plan, Path(entry.path))
        if run is not None:
            self._runs[name], self._stamps[name] = run, stamp
        elif known is not None:
            del self._runs[name], self._stamps[name]

    def runs(self) -> list[Run]:
        """All runs, newest first."""
        self.look()
        with self._lock:
            return sorted(self._runs.values(), key=lambda run: (run.name, run.plan), reverse=True)

    def run(self, plan: str, name: str) -> Run | None:
        self.look()
        with self._lock:
            return self._runs.get(f"{plan}/{name}")

    def named(self, name: str) -> list[Run]:
        """The runs whose folder has this name, of any plan."""
        self.look()
        with self._lock:
            return [run for run in self._runs.values() if run.name == name]

    def campaigns(self) -> list[Journal]:
        """All readable campaigns, newest first."""
        root = self.results / journal.FOLDER
        books = [book for folder in _campaign_folders(root) if (book := self._book(folder)) is not None]
        return sorted(books, key=lambda book: book.head.begun, reverse=True)

    def campaign(self, name: str, begun: str) -> Journal | None:
        matching = (
            book for book in self.campaigns() if (book.folder.parent.name, book.folder.name) == (name, begun)
        )
        return next(matching, None)

    def _book(self, folder: Path) -> Journal | None:
        if any((folder / name).is_symlink() for name in (journal.HEAD, journal.RUNS, journal.SUMMARY)):
            return None
        stamp = tuple(_stamp(folder / name) for name in (journal.HEAD, journal.RUNS))
        known = self._books.get(folder)
        if known is not None and known[0] == stamp:
            return known[1]
        book = journal.load(folder)
        if book is not None:
            self._books[folder] = (stamp, book)
        return book


def goes_on(book: Journal) -> bool:
    """Whether the same command continues the campaign, which may be under way: it has no summary yet."""
    return not (book.folder / journal.SUMMARY).exists()


def read_run(plan: str, path: Path) -> Run | None:
    """A run by its folder; None if it has no plan, or a file of it is a link, which may lead anywhere."""
    settings = decoded(path / PLAN, _Plan)
    if settings is None or any((path / name).is_symlink() for name in (PLAN, HISTORY, VERDICT)):
        return None
    verdict = decoded(path / VERDICT, _Verdict) or _Verdict()
    outcome = "inconclusive" if verdict.outcome == "not-evidence" else verdict.outcome
    if outcome == NO_VERDICT and time.time() - _stamp(path / HISTORY) / 1e9 < UNDER_WAY_S:
        outcome = GOES_ON
    return Run(
        plan=plan,
        name=path.name,
        path=path,
        began=_SINCE.sub(r"\1-\2-\3 \4:\5:\6", path.name[:16]) if _SINCE.match(path.name) else "",
        outcome=outcome,
        sentence=verdict.sentence,
        system=settings.system,
        cluster=settings.cluster,
        workload=settings.workload,
        configuration=settings.configuration,
        seed=settings.seed,
        ok=verdict.evidence.ok,
        kinds=(*verdict.evidence.kinds_in_effect, *verdict.evidence.kinds_that_bit),
    )


def _folders(results: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    for plan in _entries(results):
        if not is_own(plan.name):
            for entry in _entries(Path(plan.path)):
                yield plan.name, entry


def _campaign_folders(root: Path) -> Iterator[Path]:
    for name in () if root.is_symlink() else _entries(root):
        for entry in _entries(Path(name.path)):
            yield Path(entry.path)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """The folders in `folder` that are not links and have printable names, which a URL can carry."""
    try:
        with os.scandir(folder) as entries:
            yield from (
                entry for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name.isprintable()
            )
    except OSError:
        return


def _stamp(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def decoded(given: Path | bytes, kind: type[T]) -> T | None:
    """The document of this kind in a file or in bytes; None if there is none."""
    try:
        data = given if isinstance(given, bytes) else given.read_bytes()
        return msgspec.json.decode(data, type=kind)
    except (OSError, *NOT_JSON):
        return None
