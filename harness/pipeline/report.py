"""The result of one call of `qsync analyze`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.store import LeftOut


@dataclass(slots=True)
class Report:
    """The tables that one call wrote, and the runs that it found new, changed or skipped."""

    tables: Path
    place: str = ""
    """Where the tables are kept: `tables`, or the address of which that is a copy."""
    new: int = 0
    changed: int = 0
    known: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    foreign: list[LeftOut] = field(default_factory=list)
    changed_files: int = 0
    """How many of `left_out` are runs with a file that is not the one that their hashes are of."""
    seconds: float = 0.0
    spark: Mapping[str, str] = field(default_factory=dict)
