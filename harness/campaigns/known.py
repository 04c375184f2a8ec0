"""known.toml: accepted anomalies, each with its issue and the day on which the acceptance ends.

    [[known]]
    fingerprints = ["df7adf2f1a", "915192bec1"]
    issue = "https://…/issues/12"
    expires = 2026-12-31
    note = "the owner confirms early"

A run is *known* only if all its fingerprints are; one new fingerprint makes the run new.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from harness.errors import WrongUse
from harness.wrong_values import in_words

Standing = Literal["new", "known", "expired"]
NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry; it counts up to and including the day `expires`."""

    fingerprints: Annotated[list[NonEmpty], msgspec.Meta(min_length=1)]
    issue: NonEmpty
    expires: datetime.date
    note: str = ""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    known: list[Known] = []


@dataclass(frozen=True, slots=True)
class KnownList:
    """The entries, and the day on which they are read."""

    entries: tuple[Known, ...] = ()
    today: datetime.date = datetime.date.min

    def of(self, fingerprint: str) -> Known | None:
        """The entry of a fingerprint: of several the one with the latest end."""
        fitting = [entry for entry in self.entries if fingerprint in entry.fingerprints]
        return max(fitting, key=lambda entry: entry.expires, default=None)

    def standing(self, fingerprints: Sequence[str]) -> Standing:
        """The standing of a run with an anomaly: new before expired before known; new without fingerprints."""
        entries = [self.of(fingerprint) for fingerprint in fingerprints]
        if not entries or None in entries:
            return "new"
        return "expired" if any(entry.expires < self.today for entry in entries if entry) else "known"


def table_in(path: Path, attempt: str = "") -> dict[str, Any]:
    """The content of a TOML file. WrongUse in one line, with what to `attempt`, if it cannot be read, or is none."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise WrongUse(f"cannot read {path}: {error.strerror}{attempt}") from error
    except (ValueError, RecursionError) as error:
        raise WrongUse(f"{path} is no TOML: {error}") from error


def read(path: Path | None, today: datetime.date) -> KnownList:
    """The list in a file; empty without a file. WrongUse if the file has errors."""
    if path is None:
        return KnownList((), today)
    table = table_in(path)
    try:
        file = msgspec.convert(table, _File)
    except msgspec.ValidationError as error:
        raise WrongUse(
            f"{path}: {in_words(error, table, _File)}; "
            'an entry is [[known]] with fingerprints = […], issue = "…", expires = 2026-12-31'
        ) from error
    return KnownList(tuple(file.known), today)
