"""Spaces and keys in a store that has one flat row of sorted keys: "register/:r0-1", "set/00000000000000000042"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.clients.operations import Done, Scan, Step

_DIGITS = 20
_BEHIND = "0"
"""Sorts right behind the "/"."""


def flat(space: str, key: str | int) -> str:
    """The flat key of a space and a key; integers from 0 to 10²⁰ − 1 sort as numbers."""
    return f"{space}/{key:0{_DIGITS}d}" if isinstance(key, int) else f"{space}/:{key}"


def place_of(flat_key: str) -> tuple[str, str | int]:
    """Space and key."""
    space, _, key = flat_key.partition("/")
    return space, key[1:] if key.startswith(":") else int(key)


def bounds(scan: Scan) -> tuple[str, str]:
    """The first flat key of a scan, and the bound below which all its keys are."""
    first = f"{scan.space}/" if scan.first is None else flat(scan.space, scan.first)
    return first, scan.space + _BEHIND if scan.below is None else flat(scan.space, scan.below)


def shown(step: Step, rows: Sequence[tuple[str, object, *tuple[object, ...]]]) -> object:
    """The result of a Read or a Scan, from the rows of its answer: flat key, value, and more.

    No caller looks at the result of any other step.
    """
    if isinstance(step, Scan):
        return [(place_of(row[0])[1], row[1]) for row in rows]
    return rows[0][1] if rows else None


def dumped(pairs: Iterable[tuple[str, object]]) -> Done:
    """The outcome of a Dump, from all flat keys and their values."""
    spaces: dict[str, list[list[object]]] = {}
    for flat_key, value in pairs:
        space, key = place_of(flat_key)
        spaces.setdefault(space, []).append([key, value])
    return Done([{"spaces": spaces}])
