"""Sweeps at one node: when its part of a sweep is over, and which outcomes it drops (`kept.py` has the reason).

    "sweep" ──▶ drop outcomes that are two sweeps old, note the open transactions ──▶ all have ended: report
    all members have reported, and some time has passed ──▶ the coordinator proposes the next one

All members have delivered the previous sweep, so none asks for entries of the discovery log up to there. The log keeps
the state at that place instead. A node that is not a member gets this state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nodes.twophase.agreed import Agreed
from nodes.twophase.kept import Kept

State = dict[str, Any]
"""`Agreed.to_state`."""


class Sweeping:
    def __init__(
        self,
        agreed: Agreed,
        open_here: Callable[[], set[str]],
        kept: Callable[[], Sequence[Kept[Any]]],
        trim: Callable[[int, State], None],
    ) -> None:
        """`trim(index, state)`: the log may begin behind this index, at which all nodes agree on this state."""
        self._agreed = agreed
        self._open_here = open_here
        self._kept = kept
        self._trim = trim
        self._open: set[str] = set()
        self._last: tuple[int, State] | None = None
        """Index and state of the last sweep on this topology."""

    def delivered(self, index: int) -> None:
        if self._last is not None:
            self._trim(*self._last)
        self._last = index, self._agreed.to_state()
        for outcomes in self._kept():
            outcomes.sweep(self._agreed.version, self._agreed.is_whole)
        self._open = self._open_here()

    def begin_anew(self) -> None:
        """The topology has changed: earlier sweeps do not count."""
        self._last, self._open = None, set()
        for outcomes in self._kept():
            outcomes.begin_anew()

    def over(self) -> list[int]:
        """The version of the topology, and the last sweep on it that is over at this node."""
        self._open &= self._open_here()
        return [self._agreed.version, self._agreed.sweeps - bool(self._open)]
