"""Each change of the owner: the rate of writes before it, the pause without acknowledged writes, the rate after it.

The monitor asks for the owner of the queue about twice a second; of several nodes that report to be the owner, the one
of the highest term counts. The pause is the longest time between two acknowledged writes around the first report of the
new owner. The rates, in writes per second, are those of the two seconds before and after that pause.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from checkers.history import Event
from harness.pages.json_door import as_mapping, as_text, as_whole
from harness.pages.material import Material
from harness.pages.run_columns import OK
from harness.pages.svg import duration, moment

AROUND_NS = 2_000_000_000
SEEN_LATE_NS = 600_000_000
"""The monitor asks about twice a second, so a handover may be so much earlier than its reports."""
LEAST_NS = 200_000_000
"""No rate is computed over a shorter time."""
ROWS = 40

Times = NDArray[numpy.int64]


@dataclass(frozen=True, slots=True)
class OwnerChange:
    """A row of the table, in words."""

    at: str
    owners: str
    before: str
    pause: str
    after: str


@dataclass(frozen=True, slots=True)
class Handover:
    """The last report of the old owner was at `last_ns`, the first one of the new owner at `first_ns`."""

    old: str
    new: str
    last_ns: int
    first_ns: int


def owner_changes(material: Material) -> list[OwnerChange]:
    """The first changes of a run, in the order of time; none without two acknowledged writes."""
    load = material.load
    acknowledged = numpy.sort(load.end_ns[(load.outcome == OK) & load.writes & (load.end_ns >= 0)])
    if len(acknowledged) < 2:
        return []
    return [_row(change, acknowledged) for change in handovers(material.monitor)[:ROWS]]


def handovers(monitor: Iterable[Event]) -> list[Handover]:
    """The times when the owner of the highest term changed."""
    changes: list[Handover] = []
    owner, term, last_ns = "", -1, 0
    for event in monitor:
        state = as_mapping(event.value)
        if event.f != "state" or event.node is None or as_text(state.get("role")) != "owner":
            continue
        of_term = as_whole(state.get("term")) or 0
        if of_term < term:
            continue  # an old owner that does not know it yet
        if owner and event.node != owner:
            changes.append(Handover(owner, event.node, last_ns, event.time_ns))
        owner, term, last_ns = event.node, of_term, event.time_ns
    return changes


def _row(change: Handover, acknowledged: Times) -> OwnerChange:
    start_ns, end_ns = _pause(change, acknowledged)
    return OwnerChange(
        at=moment(start_ns),
        owners=f"{change.old} → {change.new}",
        before=_rate(acknowledged, start_ns - AROUND_NS, start_ns + 1),
        pause=duration(end_ns - start_ns),
        after=_rate(acknowledged, end_ns, end_ns + AROUND_NS),
    )


def _pause(change: Handover, acknowledged: Times) -> tuple[int, int]:
    """The longest time without an acknowledged write that touches the handover."""
    first = max(int(numpy.searchsorted(acknowledged, change.last_ns - SEEN_LATE_NS)) - 1, 0)
    last = min(int(numpy.searchsorted(acknowledged, change.first_ns)) + 1, len(acknowledged) - 1)
    first = min(first, last - 1)
    gaps = numpy.diff(acknowledged[first : last + 1])
    place = first + int(gaps.argmax())
    return int(acknowledged[place]), int(acknowledged[place + 1])


def _rate(acknowledged: Times, start_ns: int, end_ns: int) -> str:
    """Writes per second between these times, clipped to the load of the run; "–" if that leaves too little."""
    start_ns, end_ns = max(start_ns, int(acknowledged[0])), min(end_ns, int(acknowledged[-1]) + 1)
    if end_ns - start_ns < LEAST_NS:
        return "–"
    begin, end = numpy.searchsorted(acknowledged, [start_ns, end_ns])
    return f"{(int(end) - int(begin)) * 1_000_000_000 / (end_ns - start_ns):,.0f}/s"
