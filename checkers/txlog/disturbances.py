"""The phase of a run, by the harness's own record of its faults: between which masters a split can have happened.

No word of a master counts here. A fault *touches* a pair of masters if it is about one of them, or about the link
between them. A fault without nodes and links touches all pairs. So does a time in which the harness itself stood still.
A node that crashed is touched from then on. A pair can have been *apart* if faults touched it for the split time-out
without a gap. Clocks may drift, and links take a while to stand again: both shorten what is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from checkers.history.faults import FaultSpan, Span
from checkers.history.history import History

DRIFT = 0.06
"""Monotonic clocks drift by up to 5 %; the harness records its faults a little later than they begin."""
RECONNECT_NS = 1_000_000_000
"""After a fault, until masters hear each other again: a call is tried again, and posts come once an idle round."""
OPEN = 1 << 62


class Disturbances:
    def __init__(self, history: History, masters: Sequence[str], split_ns: int) -> None:
        self._needed_ns = int(split_ns * (1 - DRIFT))
        self._can_split = split_ns > 0
        self._masters = masters
        self._faults = history.faults
        self._everywhere = [
            (stall.time_ns - int(stall.stalled_ms * 1e6), stall.time_ns + RECONNECT_NS)
            for stall in history.stalls
        ]
        self._crashes = [(crash.node, crash.time_ns) for crash in history.crashes]
        self._apart: dict[tuple[str, str], tuple[Span, ...]] = {}

    @property
    def spans(self) -> tuple[Span, ...]:
        """The times in which anything was disturbed, in order."""
        crashed = [(time_ns, OPEN) for _, time_ns in self._crashes]
        return _merged([*map(_span, self._faults), *self._everywhere, *crashed])

    def apart(self, one: str, other: str) -> tuple[Span, ...]:
        """The times in which the two may have taken each other for gone; none if masters never split."""
        key = (min(one, other), max(one, other))
        if key not in self._apart:
            touching = [_span(fault) for fault in self._faults if _touches(fault, *key)]
            crashed = [(time_ns, OPEN) for node, time_ns in self._crashes if node in key]
            merged = _merged([*touching, *crashed, *self._everywhere])
            self._apart[key] = tuple(
                (begin, end) for begin, end in merged if self._can_split and end - begin >= self._needed_ns
            )
        return self._apart[key]

    def may_be_apart(self, one: str, other: str, *, by_ns: int = OPEN) -> bool:
        """Whether the two can have been apart for the split time-out by then."""
        return any(begin + self._needed_ns <= by_ns for begin, _ in self.apart(one, other))

    def may_leave_out(self, missing: Iterable[str], *, by_ns: int = OPEN) -> bool:
        """Whether all other masters can have lost these at one time."""
        missing = [*missing]
        part = [master for master in self._masters if master not in missing]
        return all(
            any(
                all(
                    any(
                        begin < end and begin + self._needed_ns <= by_ns and other[0] < end
                        for begin, end in self.apart(one, each)
                    )
                    for each in part
                )
                for other in self.apart(one, part[0])
            )
            if part
            else False
            for one in missing
        )

    def earliest_ns(self, missing: Iterable[str]) -> int:
        """Before this time none of these can have been left out."""
        begins = [
            begin
            for one in missing
            for each in self._masters
            if each != one
            for begin, _ in self.apart(one, each)
        ]
        return min(begins, default=OPEN) + (self._needed_ns if begins else 0)


def _span(fault: FaultSpan) -> Span:
    return fault.start_ns, OPEN if fault.end_ns is None else fault.end_ns + RECONNECT_NS


def _touches(fault: FaultSpan, one: str, other: str) -> bool:
    if not fault.nodes and not fault.links:
        return True
    return bool({one, other} & {*fault.nodes}) or (one, other) in fault.links or (other, one) in fault.links


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return tuple(merged)
