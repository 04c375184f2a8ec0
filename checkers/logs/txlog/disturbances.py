"""The phase of a run, by the harness's own record of its faults: between which masters a split can have happened.

Only the harness's record counts here, no log of a master. A fault *touches* a pair of masters if it is about one of
them, or about the link between them. A fault without nodes and links touches all pairs, and so does a stall of the
harness. A crash touches all pairs of the node from then on. A pair can have been *apart* if faults touched it for the
split time-out without a gap. Clocks drift, and links need time to reconnect: both shorten the time that is needed.

Links that are down *hinder* nothing while all masters reach each other over the others: masters pass POSTs on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from checkers.history.faults import CUTS, FaultSpan, Span
from checkers.history.history import History

DRIFT = 0.06
"""Monotonic clocks drift by up to 5 %; the harness records its faults a little later than they begin."""
RECONNECT_NS = 1_000_000_000
"""After a fault, until masters hear each other again: a call is tried again, and posts come once an idle round."""
OPEN = 1 << 62


class Disturbances:
    def __init__(self, history: History, masters: Sequence[str], split_ns: int, idle_ns: int = 0) -> None:
        """`idle_ns`: silence may begin an idle round before the fault, when the master was last heard."""
        self._idle_ns = idle_ns
        self._needed_ns = max(0, int(split_ns * (1 - DRIFT)) - idle_ns)
        self._can_split = split_ns > 0
        self._masters = masters
        self._faults = history.faults
        self._everywhere = [
            (stall.time_ns - int(stall.stalled_ms * 1e6), stall.time_ns + RECONNECT_NS)
            for stall in history.stalls
        ]
        self._crashes = [(crash.node, crash.time_ns) for crash in history.crashes]
        self._apart: dict[tuple[str, str], tuple[Span, ...]] = {}

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """The times in which anything was disturbed, in order."""
        crashed = [(time_ns, OPEN) for _, time_ns in self._crashes]
        return _merged([*map(_span, self._faults), *self._everywhere, *crashed])

    @cached_property
    def hindrances(self) -> tuple[Span, ...]:
        """The times in which masters may have been unable to agree, in order: all but cuts that leave them connected.

        After a change of the links, masters need `RECONNECT_NS` and two idle rounds until they pass POSTs on.
        """
        cuts = [fault for fault in self._faults if _is_of_links(fault)]
        others = [_span(fault) for fault in self._faults if not _is_of_links(fault)]
        crashed = [(time_ns, OPEN) for _, time_ns in self._crashes]
        changes = sorted({time_ns for fault in cuts for time_ns in (fault.start_ns, fault.end_ns or OPEN)})
        settles_ns = RECONNECT_NS + 2 * self._idle_ns
        hindered = [(begin, begin + settles_ns) for begin in changes]
        for begin, end in pairwise(changes):
            down = {
                link
                for fault in cuts
                if fault.start_ns <= begin < (fault.end_ns or OPEN)
                for link in fault.links
            }
            if not self._are_connected(down):
                hindered.append((begin, end + RECONNECT_NS))
        return _merged([*others, *hindered, *self._everywhere, *crashed])

    def _are_connected(self, down: Collection[tuple[str, str]]) -> bool:
        """Whether all masters reach each other over links that stand both ways."""
        first, *rest = self._masters
        reached, lonely = [first], {*rest}
        for one in reached:
            met = [other for other in sorted(lonely) if (one, other) not in down and (other, one) not in down]
            reached += met
            lonely -= {*met}
        return not lonely

    def apart(self, one: str, other: str) -> tuple[Span, ...]:
        """The times in which each of the two may have left the other out; none if masters never split."""
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
        """Whether all other masters can have lost each of these at one time, up to `by_ns`."""
        gone = [*missing]
        part = [master for master in self._masters if master not in gone]
        return all(
            any(self._lost(one, part, begin, by_ns) for begin in self._begins(one, part)) for one in gone
        )

    def _begins(self, one: str, part: Sequence[str]) -> Iterator[int]:
        return (begin for other in part for begin, _ in self.apart(one, other))

    def _lost(self, one: str, part: Sequence[str], since_ns: int, by_ns: int) -> bool:
        """Whether all of the part were apart from the master `one` for a split time-out from `since_ns` on."""
        at_ns = since_ns + self._needed_ns
        return at_ns <= by_ns and all(
            any(begin <= since_ns and at_ns <= end for begin, end in self.apart(one, other)) for other in part
        )

    def not_left_out_before_ns(self, missing: Iterable[str], since_ns: int) -> int:
        """The first time from `since_ns` on at which each of these can have been left out.

        `since_ns` for one that no fault touched: why it was left out is not known, so that excuses and blames nobody.
        """
        return max((self._earliest_ns(one, since_ns) for one in missing), default=since_ns)

    def _earliest_ns(self, one: str, since_ns: int) -> int:
        times = (
            max(since_ns, begin + self._needed_ns)
            for other in self._masters
            if other != one
            for begin, end in self.apart(one, other)
            if end >= since_ns
        )
        return min(times, default=since_ns)

    def cause(self, begin_ns: int, end_ns: int) -> str:
        """The faults that may have stopped execution between these times; "" if none was active."""
        active = [fault for fault in self._faults if fault.start_ns < end_ns and _span(fault)[1] > begin_ns]
        crashed = [node for node, time_ns in self._crashes if time_ns < end_ns]
        if not active and not crashed:
            return ""
        cut = {link for fault in active if fault.does in CUTS for link in fault.links}
        gone = {node for fault in active for node in fault.nodes} | {*crashed}
        names = ", ".join(
            dict.fromkeys((*(fault.name for fault in active), *(f"the crash of {node}" for node in crashed)))
        )
        is_whole = bool(gone) or self._are_connected(cut)
        return names if is_whole else f"{names}: not all masters could reach each other"


def _span(fault: FaultSpan) -> Span:
    return fault.start_ns, OPEN if fault.end_ns is None else fault.end_ns + RECONNECT_NS


def _is_of_links(fault: FaultSpan) -> bool:
    """It keeps messages of some links back, all or some of them, and does nothing else."""
    return fault.does in ("cut", "hold") and bool(fault.links) and not fault.nodes


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
