"""Removes runs at the end of a campaign: old ones, then the oldest until the rest is small enough.

A run with an anomaly or with an unreadable verdict stays, whatever its age and size. Retention looks only at runs of
the campaign's own name. Tables that `qsync analyze` has made keep the rows of removed runs.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.campaigns.plan import Retention
from harness.results import RunFolder
from harness.results.scan import scan

DAY_S = 86_400
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Removed:
    """How many runs were removed, and how many bytes that freed."""

    runs: int = 0
    bytes: int = 0


def retain(
    results: Path,
    name: str,
    rule: Retention,
    *,
    keep: Sequence[str] = (),
    now: Callable[[], float] = time.time,
) -> Removed:
    """Apply the rule; `keep` names runs (`<plan>/<run>`) that must stay: those of the last campaign."""
    if rule.days is None and rule.gib is None:
        return Removed()
    runs = [run for run in scan(results).runs if run.campaign == name]
    sizes = {run.name: _size(run.path) for run in runs}
    kept = {run.name for run in runs if RunFolder(run.path).read_verdict_outcome() in ("anomaly", None)}
    old = set()
    for run in runs:
        with suppress(FileNotFoundError):  # a campaign beside this one has removed it
            if rule.days is not None and now() - run.path.stat().st_mtime > rule.days * DAY_S:
                old.add(run.name)
    total = sum(sizes.values())
    gone = 0
    freed = 0
    for run in sorted(runs, key=lambda run: (run.name not in old, run.path.name)):
        is_too_much = rule.gib is not None and total - freed > rule.gib * GIB
        if run.name in kept or run.name in keep or not (run.name in old or is_too_much):
            continue
        if not run.path.exists():
            continue
        shutil.rmtree(run.path, ignore_errors=True)
        if not run.path.exists():
            gone += 1
            freed += sizes[run.name]
    return Removed(gone, freed)


def _size(folder: Path) -> int:
    """The bytes of its files; without those that go meanwhile."""
    size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                size += Path(path, name).lstat().st_size
    return size
