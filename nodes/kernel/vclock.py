"""Vector clocks: replica id → the greatest log sequence number of that origin.

A component that is absent counts as 0. Values are plain dicts, kept sorted when written out.
"""

from __future__ import annotations

from collections.abc import Mapping

Vclock = dict[int, int]


def signature(vclock: Mapping[int, int]) -> int:
    """The sum of all components: it names xlog files and distinguishes two growing vclocks."""
    return sum(vclock.values())


def covers(vclock: Mapping[int, int], other: Mapping[int, int]) -> bool:
    """True if every component of `other` is ≤ ours."""
    return all(vclock.get(origin, 0) >= lsn for origin, lsn in other.items())


def text(vclock: Mapping[int, int]) -> str:
    """Tarantool's way to print one: `{1: 7, 2: 3}`."""
    return "{" + ", ".join(f"{origin}: {vclock[origin]}" for origin in sorted(vclock)) + "}"
