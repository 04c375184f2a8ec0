"""How deep lists and maps may stand in each other in a history.

Each reader refuses what is deeper, with its line. Without this limit the same file would be judged by one version of
Python and refused by the next: 3.11 gives up at some 1,000 levels, 3.13 at some 10,000, and pure Python in between.
"""

from __future__ import annotations

from typing import Any

from checkers.history.errors import HistoryError

DEPTH_MAX = 100


def is_deep(value: Any, levels: int = DEPTH_MAX) -> bool:
    """Whether more than `levels` lists and maps stand in each other."""
    match value:
        case list():
            return levels == 0 or any(is_deep(each, levels - 1) for each in value)
        case dict():
            return levels == 0 or any(is_deep(each, levels - 1) for each in value.values())
    return False


def too_deep(line: int) -> HistoryError:
    return HistoryError(
        expected=f"at most {DEPTH_MAX} lists and maps in each other",
        came="more",
        attempt="leave the value out, or write it as a string",
        line=line,
    )
