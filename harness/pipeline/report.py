"""The result of one call of `qsync analyze`."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from harness.results import LeftOut


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
    damaged_tables: tuple[str, ...] = ()
    """Files of the tables that had changed since they were written, and are not part of them any more."""
    lost: tuple[str, ...] = ()
    """Removed runs with rows in such files."""
    changed_files: int = 0
    """How many runs of `left_out` have a file that differs from its hash."""
    seconds: float = 0.0

    @property
    def reasons(self) -> str:
        """The counts of left-out runs by reason: `2 half-written, 1 damaged`."""
        kinds = Counter(re.split("[:;]", entry.why)[0].removeprefix("it ") for entry in self.left_out)
        return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))

    @property
    def says(self) -> list[str]:
        """Sentences on the rows that are not in the tables."""
        sentences = []
        if self.left_out:
            sentences.append(f"{len(self.left_out)} left out of the tables: {self.reasons}")
        if self.damaged_tables:
            sentences.append(
                f"{len(self.damaged_tables)} files of the tables were damaged, such as {self.damaged_tables[0]}: "
                "their rows are made anew from the runs that are there"
            )
        if self.lost:
            sentences.append(
                f"{len(self.lost)} runs are gone, and so are their rows: {', '.join(self.lost[:5])}"
            )
        return sentences
