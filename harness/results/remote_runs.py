"""Runs at an address of an object store: listing, fetching and uploading them.

    <address>/<plan>/<utc>-<seed>/…      as under results/

A run is uploaded file by file, its verdict last, so a reader in between finds an unfinished run. If a different
machine has uploaded a run of the same second and seed, ours gets a number, as two of one second get on one machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import TypeVar

from harness.errors import StoreError, WrongUse
from harness.results.bundle import content_of
from harness.results.objects import Address, ObjectStore, StoredObject, on_disk
from harness.results.run_folder import HISTORY, VERDICT
from harness.results.scan import NO_RUNS_FILE, LeftOut, Scan, StoredRun, entry_of, is_own, scan_of

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 8


class WentAway(StoreError):
    """A run was removed or rewritten during a read."""

    def __init__(self, run: Address) -> None:
        self.why = "it went away, or was written, while it was read; try: again"
        super().__init__(f"{run}: {self.why}")


def scan_address(store: ObjectStore, root: Address, to: Path) -> Scan:
    """All runs below an address, as `scan` lists those of results/; `to`: the folder for fetching them."""
    entries: list[StoredRun | LeftOut] = []
    for campaign, is_folder in store.entries(root):
        if is_own(campaign):
            continue
        if not is_folder:
            entries.append(LeftOut(root / campaign, NO_RUNS_FILE))
            continue
        entries += _of_campaign(store, root / campaign, to / campaign)
    return scan_of(entries)


def _of_campaign(store: ObjectStore, place: Address, to: Path) -> Iterator[StoredRun | LeftOut]:
    entries: dict[str, dict[str, str]] = {}
    files: list[str] = []
    for stored in store.objects(place):
        name, is_below, rest = stored.name.partition("/")
        if is_below:
            entries.setdefault(name, {})[rest] = stored.stamp
        else:
            files.append(name)
    for name in sorted([*entries, *files]):
        yield entry_of(to / name, to.name, name in entries, entries.get(name, {}), place / name)


def fetch_run(
    store: ObjectStore, run: Address, target: Path, wanted: Callable[[str], bool] = lambda name: True
) -> list[StoredObject]:
    """Copy the `wanted` files of a run (by their names in its folder); returns all of its files.

    WentAway if a file vanished meanwhile or has not its listed length: the run was written during the read.
    """
    objects = [stored for stored in store.objects(run) if _is_plain(stored.name)]
    for stored in objects:
        if not wanted(stored.name):
            continue
        file = target / stored.name
        if not store.fetch(run / stored.name, file) or file.stat().st_size != stored.size:
            raise WentAway(run)
    return objects


def copy_of_run(run: Address, folder: Path) -> Path:
    """A run at an address, whole, as `<plan>/<run>` below `folder`, replacing an earlier copy. Raises WrongUse."""
    store = ObjectStore(run)
    if HISTORY not in {stored.name for stored in store.objects(run)}:
        raise WrongUse(
            f"{run} is no run: expected an address with {HISTORY} below it; try: {run.scheme}://bucket/results/PLAN/RUN"
        )
    target = folder / run.parent.name / run.name
    fresh = target.with_name(f".{run.name}.unfinished")
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        fetch_run(store, run, fresh)
        with on_disk(target):
            if target.exists():
                shutil.rmtree(target)
            fresh.replace(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def _is_plain(name: str) -> bool:
    """Whether a file of this name stays below its folder."""
    return bool(name) and ".." not in PurePosixPath(name).parts and not name.startswith("/")


def at_once(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """The results of `work`, in parallel threads because it mostly waits. The first exception ends all."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        return list(pool.map(work, items))
    finally:
        pool.shutdown(cancel_futures=True)


def put_run(store: ObjectStore, root: Address, path: Path) -> Address:
    """Upload a finished run below `root`; returns its place. If its verdict is there, nothing is sent."""
    if not (path / VERDICT).exists():
        raise StoreError(f"{path} has no verdict, so it must not pass for a finished run")
    place = _place_of(store, root / path.parent.name, path)
    there = {stored.name: stored.size for stored in store.objects(place)}
    verdict = (path / VERDICT).read_bytes()
    if VERDICT in there:
        if store.read(place / VERDICT) == verdict:
            return place
        store.remove(place / VERDICT)  # from here on it is not finished, as what follows is not all there
    names = content_of(path)[0].keys()
    if HISTORY not in there:
        store.send(path / HISTORY, place / HISTORY)  # first: it reserves the address
    for name in sorted(names - {HISTORY, VERDICT}):
        store.send(path / name, place / name)
    store.write(place / VERDICT, verdict)
    return place


def _place_of(store: ObjectStore, campaign: Address, path: Path) -> Address:
    """The place of the run: of its own name, or with a number if a different run has that name."""
    number = 1
    while True:
        place = campaign / (path.name if number == 1 else f"{path.name}-{number}")
        there = store.objects(place)
        history = next((stored for stored in there if stored.name == HISTORY), None)
        if not there or (history is not None and _is_same(store, place, history, path)):
            return place
        number += 1


def _is_same(store: ObjectStore, place: Address, history: StoredObject, path: Path) -> bool:
    ours = path / HISTORY
    return history.size == ours.stat().st_size and store.read(place / HISTORY) == ours.read_bytes()
