"""Where JSON of unknown shape comes in: each function returns a value of the wanted type for any input.

A report must open even if a run was killed half-way or a checker wrote something odd, so a wrong type here
becomes an empty value of the right type and never an exception.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.pages.visible import visible

Json = Mapping[str, Any]

TIME_LIMIT_NS = 10**18
"""Thirty years: no run is longer, and arithmetic on a time below it stays exact enough to draw."""


def as_mapping(value: object) -> Json:
    return value if isinstance(value, Mapping) else {}


def as_list(value: object) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def as_mappings(value: object) -> tuple[Json, ...]:
    return tuple(entry for entry in as_list(value) if isinstance(entry, Mapping))


def as_whole(value: object) -> int | None:
    """A number without its fraction, if that fits into 62 bits, or None. True and False do not count as numbers."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if abs(value) < 1 << 62 else None


def as_time_ns(value: object) -> int | None:
    """A time since the run began that can be drawn, or None."""
    time_ns = as_whole(value)
    return time_ns if time_ns is not None and 0 <= time_ns <= TIME_LIMIT_NS else None


_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode


def as_text(value: object, limit: int = 400) -> str:
    """Text as it is, anything else as JSON on one line; None is empty. Longer than `limit` is cut with an ellipsis."""
    if value is None:
        return ""
    if isinstance(value, str):
        return clipped(value, limit)
    # Most values of a history are whole numbers, and json.dumps takes ten times as long for one.
    text = str(value) if type(value) is int else _encode(value)
    return clipped(text, limit)


def as_texts(value: object, limit: int = 400) -> tuple[str, ...]:
    return tuple(as_text(entry, limit) for entry in as_list(value))


def clipped(text: str, limit: int) -> str:
    text = visible(text)
    return text if len(text) <= limit else text[: limit - 1] + "…"
