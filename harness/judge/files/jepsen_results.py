"""The verdict that Jepsen itself gave on a test: `:valid?` of its results, in results.edn or test.jepsen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from checkers.history.errors import HistoryError
from checkers.history.foreign import edn, jepsen_store

RESULTS = "results.edn"
TEST = "test.jepsen"
BYTES_MAX = 8 << 20
"""A longer results.edn has anomalies by the thousand; its verdict is not read."""
WORDS = {True: "valid", False: "invalid", "unknown": "unknown"}


def said_by_jepsen(record: Path) -> str | None:
    """valid, invalid or unknown, by all of Jepsen's checkers together; None if no file says so.

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
            return WORDS[read(path)["valid?"]]
        except (
            OSError,
            HistoryError,
            ValueError,
            KeyError,
            TypeError,
        ):  # a UnicodeDecodeError is a ValueError
            continue
    return None


def _in_edn(path: Path) -> Any:
    if path.stat().st_size > BYTES_MAX:
        return None
    (results,) = edn.read(path.read_text(encoding="utf-8")).values
    return results
