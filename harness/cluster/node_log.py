"""Node logs of real clusters: brought to the run's own beginning, and read for rare turns."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from nodes.kernel.node import RARE_TURN

_NO_LINE = (ValueError, TypeError, KeyError, RecursionError)
"""Errors in a line of a user's own store, which may log anything."""


def shift_log(path: Path, by_ns: int) -> None:
    """Subtract `by_ns` from the `time_ns` of every line; a line that is no JSON stays as it is.

    Raises OSError, and leaves the log as it was, if the disk is full.
    """
    if not by_ns or not path.exists():
        return
    fresh = path.with_name(f"{path.name}.new")
    try:
        with path.open("rb") as lines, fresh.open("wb") as shifted:
            shifted.writelines(_shifted(line, by_ns) for line in lines)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _shifted(line: bytes, by_ns: int) -> bytes:
    with suppress(*_NO_LINE):
        fields = json.loads(line)
        fields["time_ns"] -= by_ns
        end = b"\n" if line.endswith(b"\n") else b""
        shifted = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
        return shifted.encode(errors="backslashreplace") + end
    return line


def rare_turns(logs: Iterable[Path]) -> dict[str, int]:
    """Rare turn → in how many lives of these nodes it occurred. A missing log counts none."""
    turns: Counter[str] = Counter()
    for path in logs:
        with suppress(OSError), path.open("rb") as lines:
            for line in lines:
                if RARE_TURN.encode() in line:
                    turns.update(_rows(line))
    return dict(turns)


def _rows(line: bytes) -> list[str]:
    with suppress(*_NO_LINE):
        fields = json.loads(line)
        if fields["message"] == RARE_TURN:
            return [str(fields["row"])]
    return []
