"""The words that nodes of qsync, and Tarantool with our Lua, report beside the common words of a status."""

from __future__ import annotations

from collections.abc import Mapping

from harness.systems.parts import Reports
from harness.systems.status import Status


class QsyncReports(Reports):
    def headline(self, status: Status) -> tuple[str, ...]:
        words = ((word, status.get(word)) for word in ("term", "limbo"))
        return tuple(f"{word} {number}" for word, number in words if isinstance(number, int))

    def stopped(self, status: Status) -> Mapping[str, str]:
        return stopped_of(status)

    def rollbacks(self, status: Status) -> int | None:
        count = status.get("rollbacks")
        return count if isinstance(count, int) else None


def stopped_of(status: Status) -> Mapping[str, str]:
    """The peers that the node follows no more, and why."""
    peers = status.get("stopped")
    return peers if isinstance(peers, Mapping) else {}
