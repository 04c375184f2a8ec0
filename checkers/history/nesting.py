"""How deep lists and maps may stand in each other in a history.

Each reader refuses what is deeper, with its line. Without this limit the same file would be judged by one version of
Python and refused by the next: 3.11 gives up at some 1,000 levels, 3.13 at some 10,000, and pure Python in between.
"""

from __future__ import annotations

from typing import Any

from checkers.history.errors import HistoryError

DEPTH_MAX = 100


def is_deep(value: Any) -> bool:
    """Whether more than `DEPTH_MAX` lists and maps stand in each other."""
    if not isinstance(value, list | dict):
        return False
    level: list[Any] = [value]
    for _ in range(DEPTH_MAX):
        level = [
            child
            for parent in level
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, (list, dict))  # a union takes twice as long
        ]
        if not level:
            return False
    return True


def too_deep(line: int) -> HistoryError:
    return HistoryError(
        expected=f"at most {DEPTH_MAX} lists and maps in each other",
        came="more",
        attempt="leave the value out, or write it as a string",
        line=line,
    )
