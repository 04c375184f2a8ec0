"""The results of a campaign: counts, anomalies by fingerprint joined with earlier sightings, the exit code.

A group is all runs with the same leading fingerprint. Its standing is that of its runs: new before expired before
known. Exit 1 only if a group is new or expired; a known anomaly is counted and shown, and hides nothing.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from checkers.history.errors import NOT_JSON
from checkers.history.values import many
from harness.campaigns.coverage import Covered, covered
from harness.campaigns.journal import OUTCOMES, SUMMARY, CheckResult, Ended, Journal, Task
from harness.campaigns.known import KnownList, Standing
from harness.run.finish import BROKEN, INTERRUPTED

NO_FINGERPRINT = "none"
_STANDINGS: tuple[Standing, ...] = ("new", "expired", "known")
NAMED = 20
"""Cells that the sentence names, at most."""
CODES = {"anomaly": 1, "broken": BROKEN, "inconclusive": 3, "unknown": 2, "valid": 0}
"""By gravity, as `harness.cli.exit_codes` has it."""
OUTCOME_OF = {code: word for word, code in CODES.items()}


def tone(exit_code: int) -> str:
    """The colour of a campaign on all pages; a broken one has that of an anomaly."""
    return OUTCOME_OF[exit_code].replace("broken", "anomaly")


class Stored(msgspec.Struct, frozen=True):
    """The result in the summary.json of a campaign that is over."""

    exit_code: int
    sentence: str


def stored(folder: Path) -> Stored | None:
    """The result of the campaign in this folder; None if it has no summary yet, or none that can be read."""
    try:
        found = msgspec.json.decode((folder / SUMMARY).read_bytes(), type=Stored)
    except (OSError, *NOT_JSON):
        return None
    return found if found.exit_code in OUTCOME_OF else None


@dataclass(frozen=True, slots=True)
class Earlier:
    """Sightings of a fingerprint in earlier campaigns."""

    runs: int = 0
    first: str = ""

    def __str__(self) -> str:
        return f"{many(self.runs, 'run')} since {self.first[:10]}" if self.runs else "never"


@dataclass(frozen=True, slots=True)
class Group:
    """Anomalies that look the same."""

    fingerprint: str
    shape: str
    standing: Standing
    runs: tuple[Ended, ...]
    seen_with: tuple[str, ...]
    """Other fingerprints of the same runs."""
    earlier: Earlier
    issue: str = ""
    expires: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run.cell for run in self.runs))


@dataclass(frozen=True, slots=True)
class Kind:
    """The violations, or the findings, of one check in some runs. `found` is the result in the first of the runs."""

    found: CheckResult
    runs: tuple[Ended, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A cell of which nothing ran, because this machine lacks something; `why` is a sentence."""

    cell: str
    why: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The results of a finished campaign, or of one so far."""

    name: str
    begun: str
    ended: tuple[Ended, ...]
    left: tuple[Task, ...]
    interrupted: tuple[Task, ...]
    groups: tuple[Group, ...]
    excluded: int
    spent_s: float
    covered: Covered
    notes: tuple[str, ...] = ()
    too_long: tuple[str, ...] = ()
    """Cells of which no run can be reached on any night: one takes longer than the whole budget."""
    left_out: tuple[LeftOut, ...] = ()
    """The cells that need what this machine lacks."""
    unpublished: str = ""
    """Why this campaign, which should be published, is not."""
    is_interrupted: bool = False
    today: datetime.date = datetime.date.min
    """The day on which known.toml was read."""

    @property
    def counts(self) -> dict[str, int]:
        """outcome → runs; all words are there."""
        counts: Counter[str] = Counter(run.outcome for run in self.ended)
        return {word: counts[word] for word in OUTCOMES}

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """All results of checks, also in runs without an anomaly: violations first, then the most frequent."""
        runs: dict[tuple[str, str], list[Ended]] = {}
        first: dict[tuple[str, str], CheckResult] = {}
        for run in self.ended:
            for result in run.found:
                kind = (result.standing, result.checker)
                first.setdefault(kind, result)
                runs.setdefault(kind, []).append(run)
        kinds = [Kind(first[kind], tuple(runs_of_kind)) for kind, runs_of_kind in runs.items()]
        return tuple(
            sorted(
                kinds,
                key=lambda kind: (kind.found.standing == "finding", -len(kind.runs), kind.found.checker),
            )
        )

    @property
    def exit_code(self) -> int:
        """1 for a new or expired anomaly, else 130 if interrupted, else the gravest code of the runs; 3 if nothing ran
        at all, a cell can never run or was left out, or the upload failed.
        """
        if any(group.standing != "known" for group in self.groups):
            return 1
        if self.is_interrupted:
            return INTERRUPTED
        counts = self.counts
        if sum(counts.values()) < len(self.ended):
            return BROKEN  # an unknown outcome is not a pass
        for word in ("broken", "inconclusive", "unknown"):
            if counts[word] or (word == "inconclusive" and self.is_partial):
                return CODES[word]
        return 0 if self.ended else 3

    @property
    def is_partial(self) -> bool:
        """A part of the campaign has no result: a cell that never ran, or an upload that failed."""
        return bool(self.unpublished or self.too_long or self.left_out)

    @property
    def sentence(self) -> str:
        counts = self.counts
        text = ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "nothing ran"
        standings = Counter(group.standing for group in self.groups)
        if self.groups:
            text += "; fingerprints: " + ", ".join(
                f"{standings[each]} {each}" for each in _STANDINGS if standings[each]
            )
        if self.left:
            text += f"; {len(self.left)} not reached"
        if self.left_out:
            reasons = "; ".join(dict.fromkeys(each.why for each in self.left_out))
            text += f"; {many(len(self.left_out), 'cell')} left out, of which nothing can be said: {reasons}"
        if self.too_long:
            more = f" and {len(self.too_long) - NAMED} more" if len(self.too_long) > NAMED else ""
            text += (
                f"; cells that take longer than the whole budget: {', '.join(self.too_long[:NAMED])}{more}"
            )
        return f"{text}; not published: {self.unpublished}" if self.unpublished else text

    def to_json(self) -> dict[str, Any]:
        return {
            "format": "qsync-campaign-summary",
            "version": 1,
            "name": self.name,
            "begun": self.begun,
            "exit_code": self.exit_code,
            "sentence": self.sentence,
            "counts": self.counts,
            "not_reached": [{"cell": task.cell, "seed": task.seed} for task in self.left],
            "interrupted": [{"cell": task.cell, "seed": task.seed} for task in self.interrupted],
            "excluded": self.excluded,
            "seconds": round(self.spent_s, 3),
            "groups": [
                {
                    "fingerprint": group.fingerprint,
                    "shape": group.shape,
                    "standing": group.standing,
                    "runs": [run.run for run in group.runs],
                    "cells": list(group.cells),
                    "seen_with": list(group.seen_with),
                    "seen_before": group.earlier.runs,
                    "issue": group.issue,
                    "expires": group.expires,
                }
                for group in self.groups
            ],
            "found": [
                {
                    **msgspec.to_builtins(kind.found),
                    "runs": [run.run for run in kind.runs],
                }
                for kind in self.kinds
            ],
            "covered": self.covered.to_json(),
            "notes": list(self.notes),
            "too_long": list(self.too_long),
            "left_out": [msgspec.to_builtins(cell) for cell in self.left_out],
            "unpublished": self.unpublished,
        }


def summarize(
    journal: Journal,
    known: KnownList,
    earlier: Iterable[Sequence[Ended]],
    *,
    excluded: int = 0,
    notes: Sequence[str] = (),
) -> Summary:
    """`earlier`: the runs of earlier campaigns of the same name, oldest first: a first sighting keeps its date."""
    return Summary(
        name=journal.head.name,
        begun=journal.head.begun,
        ended=tuple(journal.ended),
        left=tuple(journal.left()),
        interrupted=tuple(journal.interrupted),
        groups=tuple(_groups(journal.ended, known, _sightings(earlier))),
        excluded=excluded,
        spent_s=journal.spent_s,
        covered=covered(journal),
        notes=tuple(notes),
        today=known.today,
    )


def _groups(ended: Iterable[Ended], known: KnownList, earlier: Mapping[str, Earlier]) -> list[Group]:
    by_leading: dict[str, list[Ended]] = {}
    for run in ended:
        if run.outcome == "anomaly":
            by_leading.setdefault((*run.fingerprints, NO_FINGERPRINT)[0], []).append(run)
    groups = [_group(fingerprint, runs, known, earlier) for fingerprint, runs in by_leading.items()]
    return sorted(
        groups, key=lambda group: (_STANDINGS.index(group.standing), -len(group.runs), group.fingerprint)
    )


def _group(fingerprint: str, runs: list[Ended], known: KnownList, earlier: Mapping[str, Earlier]) -> Group:
    entry = known.of(fingerprint)
    others = [other for run in runs for other in run.fingerprints[1:]]
    return Group(
        fingerprint=fingerprint,
        shape=(*runs[0].shapes, runs[0].sentence)[0],
        standing=min((known.standing(run.fingerprints) for run in runs), key=_STANDINGS.index),
        runs=tuple(runs),
        seen_with=tuple(dict.fromkeys(others)),
        earlier=earlier.get(fingerprint, Earlier()),
        issue="" if entry is None else entry.issue,
        expires="" if entry is None else entry.expires.isoformat(),
    )


def _sightings(campaigns: Iterable[Sequence[Ended]]) -> dict[str, Earlier]:
    sightings: dict[str, Earlier] = {}
    for run in (run for ended in campaigns for run in ended):
        for fingerprint in run.fingerprints:
            before = sightings.get(fingerprint, Earlier())
            sightings[fingerprint] = Earlier(before.runs + 1, before.first or run.at)
    return sightings
