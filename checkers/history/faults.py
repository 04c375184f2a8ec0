"""Faults as a history tells them: a start line, an end line, and the evidence between.

A start line (process "nemesis", type invoke) carries the fault, an end line (type info) what is known of it.
They are joined by the `id` in their values. Checkers may draw conclusions only from `sure`: the time in which
all of the fault surely was in effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import msgspec

from checkers.history.errors import HistoryError
from checkers.history.operation import Event

Link = tuple[str, str]
Span = tuple[int, int]


class _Start(msgspec.Struct, frozen=True):
    """The value of a start line, as far as checkers care."""

    id: int
    name: str
    does: str
    nodes: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    options: dict[str, Any] = {}


_Ns = Annotated[int, msgspec.Meta(le=(1 << 63) - 1)]


class _Shape(msgspec.Struct, frozen=True):
    """One shape of a partition that changed."""

    links: tuple[Link, ...]
    asked_ns: _Ns | None = None
    in_effect_ns: _Ns | None = None
    until_ns: _Ns | None = None
    took_effect: bool = False


class _End(msgspec.Struct, frozen=True):
    """The value of an end line, as far as checkers care. Times are nanoseconds since the run began."""

    id: int
    took_effect: bool = False
    asked_ns: _Ns | None = None
    first_effect_ns: _Ns | None = None
    all_in_effect_ns: _Ns | None = None
    heal_asked_ns: _Ns | None = None
    last_effect_ns: _Ns | None = None
    healed: bool | None = None
    counters: dict[str, int] = {}
    shapes: tuple[_Shape, ...] = ()


# Effects of faults on the nodes that they name (`FaultSpan.does`), for checkers and pages. A new fault in
# none of these sets excuses nothing.
CUTS = frozenset({"cut", "changing-cut"})
"""Actions of faults that cut links: `links` all the while, or one shape after the other."""
ENDS_PROCESSES = frozenset({"kill", "terminate", "power", "damage", "oom"})
"""Actions: a process is dead while they last."""
STOPS_PROCESSES = ENDS_PROCESSES | {"pause"}
"""Actions: a process does nothing while they last."""
RESTARTS_PROCESSES = frozenset({"restart", "upgrade", "downgrade", "remove", "add", "replace"})
"""Actions that end and start processes at moments of their own."""
SLOWS_PROCESSES = frozenset({"cpu-limit", "memory-limit"})
SETS_CLOCKS = frozenset({"clock"})
"""A node's own times are not the right ones then."""
LOSES_TIME = STOPS_PROCESSES | SLOWS_PROCESSES | RESTARTS_PROCESSES - {"remove"}
"""Actions after which a node may notice late that time has passed."""
HOLDS_UP_NOBODY = frozenset({"clock", "failover", "options"})
"""Actions that stop neither a node nor its disk nor its clock."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Directed links that surely passed nothing, from and to when."""

    links: tuple[Link, ...]
    sure: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSpan:
    """One fault from its start line to its end line.

    `does` is what was carried out ("cut", "slow", "kill", "power", …); `links` are directed (source, target).
    Without an end line the fault is assumed to have had no effect: nothing is known of it.
    """

    id: int
    name: str
    does: str
    start_index: int
    start_ns: int
    end_index: int | None = None
    end_ns: int | None = None
    nodes: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    took_effect: bool = False
    first_effect_ns: int | None = None
    all_in_effect_ns: int | None = None
    heal_asked_ns: int | None = None
    last_effect_ns: int | None = None
    healed: bool | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    asked: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    shapes: tuple[_Shape, ...] = ()

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """The sure cuts: one for a partition, one for each shape of a changing partition that took effect."""
        if self.does == "cut" and self.sure is not None:
            return (Cut(self.links, self.sure),)
        if self.does != "changing-cut" or not self.took_effect:
            return ()
        return tuple(
            Cut(shape.links, (shape.in_effect_ns, shape.until_ns))
            for shape in self.shapes
            if shape.took_effect and shape.in_effect_ns is not None and shape.until_ns is not None
            if shape.in_effect_ns <= shape.until_ns
        )

    @property
    def cut_times(self) -> Mapping[Link, tuple[Span, ...]]:
        """When each link surely was cut. A link of two shapes in a row passed nothing between them either."""
        known = self.cuts
        followed = {
            shape.in_effect_ns: other.in_effect_ns
            for shape, other in zip(self.shapes, self.shapes[1:], strict=False)
        }
        times: dict[Link, list[Span]] = {}
        last: dict[Link, int] = {}
        for cut in known:
            for link in cut.links:
                before = times.setdefault(link, [])
                if before and followed.get(last[link]) == cut.sure[0]:
                    before[-1] = (before[-1][0], cut.sure[1])
                else:
                    before.append(cut.sure)
                last[link] = cut.sure[0]
        return {link: tuple(spans) for link, spans in times.items()}

    def links_between(self, start_ns: int, end_ns: int) -> tuple[Link, ...]:
        """The links of the fault in that time: of a partition that changed, those of the shapes of that time."""
        if not self.shapes:
            return self.links
        then = (
            shape.links
            for shape in self.shapes
            if (shape.asked_ns or 0) <= end_ns and (shape.until_ns is None or shape.until_ns >= start_ns)
        )
        return tuple(dict.fromkeys(link for links in then for link in links))

    @property
    def events(self) -> tuple[int, ...]:
        """The indexes of its lines."""
        return (self.start_index,) if self.end_index is None else (self.start_index, self.end_index)

    @property
    def sure(self) -> Span | None:
        """[from, to] in which all of it surely was in effect; None if no such time is known."""
        start, end = self.all_in_effect_ns, self.heal_asked_ns
        if not self.took_effect or start is None or end is None or start > end:
            return None
        return (start, end)


_NO_SPACE: Final = ("ENOSPC", "EDQUOT")
MAY_END_NODES: Final[Mapping[str, Callable[[FaultSpan], str]]] = {
    "disk-error": lambda fault: (
        "filled its disk" if fault.asked.get("error") in _NO_SPACE else "made its disk fail"
    ),
    "slow-fsync": lambda fault: "made its disk slow",
    "cpu-limit": lambda fault: "took most of its processor time",
    "memory-limit": lambda fault: "took its memory",
    "clock": lambda fault: "changed its clock",
}
"""Actions under which a node goes on running, and may end as a consequence; what they did to it."""


def in_todays_words(value: Any) -> Any:
    """The value of a nemesis line; older versions wrote "bit" in place of "took_effect"."""
    if not isinstance(value, dict):
        return value
    named = {"took_effect" if name == "bit" else name: member for name, member in value.items()}
    if isinstance(shapes := named.get("shapes"), list):
        named["shapes"] = [in_todays_words(shape) for shape in shapes]
    return named


def _read(event: Event, struct: type[Any], line: int) -> Any:
    try:
        return msgspec.convert(in_todays_words(event.value), struct)
    except msgspec.ValidationError as error:
        raise HistoryError(
            expected=f"a fault's value on a nemesis line of type {event.type}",
            came=str(error),
            attempt="check that the line was written by this version's harness",
            line=line,
        ) from error


def fault_spans(events: list[Event], first_line: int) -> tuple[FaultSpan, ...]:
    """Join the nemesis's lines into spans, in order of their start."""
    starts: dict[int, tuple[Event, _Start]] = {}
    ends: dict[int, tuple[Event, _End]] = {}
    for event in events:
        line = event.index + first_line
        if event.type == "invoke":
            start: _Start = _read(event, _Start, line)
            if start.id in starts:
                raise _unpaired(
                    f"a new fault id, fault {start.id} has already begun",
                    "a second beginning",
                    start.id,
                    line,
                )
            starts[start.id] = (event, start)
        else:
            end: _End = _read(event, _End, line)
            if end.id not in starts:
                raise _unpaired(
                    "the end of a fault that has begun", "an end without a beginning", end.id, line
                )
            if end.id in ends:
                raise _unpaired("one end for each fault", "a second end", end.id, line)
            ends[end.id] = (event, end)
    return tuple(_span(event, start, ends.get(id_)) for id_, (event, start) in starts.items())


def _unpaired(expected: str, came: str, id_: int, line: int) -> HistoryError:
    return HistoryError(
        expected=expected,
        came=f"{came} of fault {id_}",
        attempt="give every fault of a run an id of its own, and one line of type invoke before its end",
        line=line,
    )


def _span(event: Event, start: _Start, ended: tuple[Event, _End] | None) -> FaultSpan:
    end = _End(id=start.id) if ended is None else ended[1]
    return FaultSpan(
        id=start.id,
        name=start.name,
        does=start.does,
        start_index=event.index,
        start_ns=event.time_ns,
        end_index=None if ended is None else ended[0].index,
        end_ns=None if ended is None else ended[0].time_ns,
        nodes=start.nodes,
        links=start.links,
        took_effect=end.took_effect,
        first_effect_ns=end.first_effect_ns,
        all_in_effect_ns=end.all_in_effect_ns,
        heal_asked_ns=end.heal_asked_ns,
        last_effect_ns=end.last_effect_ns,
        healed=end.healed,
        counters=end.counters,
        shapes=end.shapes,
        asked=event.value,
        evidence={} if ended is None else in_todays_words(ended[0].value),
    )
