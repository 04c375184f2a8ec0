"""The verdict that Jepsen itself gave on a test: `:valid?` of `results.edn` beside its record."""

from __future__ import annotations

from pathlib import Path

from checkers.history.errors import HistoryError
from checkers.history.foreign import edn

RESULTS = "results.edn"
BYTES_MAX = 8 << 20
"""A longer file has anomalies by the thousand; its verdict is not read."""
WORDS = {True: "valid", False: "invalid", "unknown": "unknown"}


def said_by_jepsen(record: Path) -> str | None:
    """valid, invalid or unknown, by all of Jepsen's checkers together; None if no file beside the record says so."""
    path = record.parent / RESULTS
    try:
        if path.stat().st_size > BYTES_MAX:
            return None
        (results,) = edn.read(path.read_text(encoding="utf-8")).values
        return WORDS.get(results["valid?"])
    except (OSError, HistoryError, UnicodeDecodeError, ValueError, KeyError, TypeError):
        return None
