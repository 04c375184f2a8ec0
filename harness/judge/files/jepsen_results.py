"""The verdict that Jepsen itself gave on a test: `:valid?` of its results, in results.edn or test.jepsen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checkers.history.errors import HistoryError
from checkers.history.foreign import edn, jepsen_store

RESULTS = "results.edn"
TEST = "test.jepsen"
BYTES_MAX = 8 << 20
"""A longer results.edn has anomalies by the thousand; its verdict is not read."""
WORDS = {True: "valid", False: "invalid", "unknown": "unknown"}


@dataclass(frozen=True, slots=True)
class Said:
    """`verdict`: valid, invalid or unknown, by all of Jepsen's checkers together. `checkers`: those that are not valid.

    Many a test is invalid by a checker that does not read the history: of crashes in the logs, of rates.
    """

    verdict: str
    checkers: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """The fields of verdict.json."""
        return {"jepsen": self.verdict, "jepsen_checkers": list(self.checkers)}


def said_by_jepsen(record: Path) -> Said | None:
    """What Jepsen said of the test of this record; None if no file says it.

    The results.edn beside the record comes first, then the record itself, then the test.jepsen beside it.
    """
    folder = record.parent
    files: tuple[tuple[Callable[[Path], Any], Path], ...] = (
        (_in_edn, folder / RESULTS),
        (jepsen_store.results, record),
        (jepsen_store.results, folder / TEST),
    )
    for read, path in files:
        try:
            return _said(read(path))
        # A UnicodeDecodeError is a ValueError.
        except (OSError, HistoryError, ValueError, KeyError, TypeError):
            continue
    return None


def _said(results: Mapping[str, Any]) -> Said:
    verdict = WORDS[results["valid?"]]
    parts = {name: part.get("valid?", True) for name, part in results.items() if isinstance(part, dict)}
    return Said(
        verdict, tuple(str(name) for name, valid in parts.items() if valid is not True and verdict != "valid")
    )


def _in_edn(path: Path) -> Any:
    if path.stat().st_size > BYTES_MAX:
        return None
    (results,) = edn.read(path.read_text(encoding="utf-8")).values
    return results
