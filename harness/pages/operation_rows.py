"""The places of the bars of operations: a row for each process, with as many lines as its labels need.

No two bars or labels overlap. The operations that prove an anomaly are always drawn. More operations on the same key
only fill free room, so that they never push the proof off the first screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from checkers.history import Operation
from harness.pages.json_door import clipped
from harness.pages.operation_words import operation_label, operation_title
from harness.pages.svg import WIDTH, Scale, element, joined, text_width
from harness.pages.time_lanes import GUTTER, lane_name

LINE_HEIGHT, BAR_HEIGHT, LABEL_SIZE = 25, 19, 12
TAIL = 110
BETWEEN = 6
LINES_WITH_NEIGHBOURS = 7
NEIGHBOURS_DRAWN = 24


@dataclass(frozen=True, slots=True)
class Bar:
    """One operation with its label. `left` to `right` is the room that both take."""

    style: str
    title: str
    label: str
    start: float
    end: float
    tail: float
    label_x: float
    label_ends: bool
    left: float
    right: float


@dataclass(slots=True)
class BarRow:
    """One process; each line holds bars that do not meet."""

    process: int
    lines: list[list[Bar]] = field(default_factory=list)

    def put(self, bar: Bar, *, may_grow: bool) -> bool:
        """Put the bar into the first line with room, else, if the row may grow, into a new one; False if neither."""
        for line in self.lines:
            if all(bar.right + BETWEEN <= other.left or other.right + BETWEEN <= bar.left for other in line):
                line.append(bar)
                return True
        if may_grow:
            self.lines.append([bar])
        return may_grow


@dataclass(frozen=True, slots=True)
class BarRows:
    """All rows from top to bottom, and how many neighbours found no room."""

    rows: tuple[BarRow, ...]
    left_out: int

    @property
    def height(self) -> float:
        return sum(len(row.lines) for row in self.rows) * LINE_HEIGHT

    def drawn(self, y: float) -> Markup:
        parts = []
        for row in self.rows:
            parts.append(lane_name(f"process {row.process}", y + 1))
            for line in row.lines:
                parts += [_drawn(bar, y) for bar in line]
                y += LINE_HEIGHT
        return joined(parts)


def operation_rows(
    proving: Sequence[Operation], neighbours: Iterable[Operation], key: str | None, scale: Scale
) -> BarRows:
    """`proving` in the order of its rows, `neighbours` with the most welcome first."""
    rows: dict[int, BarRow] = {}
    for operation in proving:
        row = rows.setdefault(operation.process, BarRow(operation.process))
        row.put(_bar(operation, key, scale, "op"), may_grow=True)
    drawn, left_out = 0, 0
    for operation in neighbours:
        full = sum(len(row.lines) for row in rows.values()) >= LINES_WITH_NEIGHBOURS
        row = rows.get(operation.process, BarRow(operation.process))
        fits = drawn < NEIGHBOURS_DRAWN and row.put(
            _bar(operation, key, scale, "op near"), may_grow=not full and not row.lines
        )
        if fits:
            rows[operation.process] = row
        drawn, left_out = drawn + fits, left_out + (not fits)
    return BarRows(tuple(rows.values()), left_out)


def _bar(operation: Operation, key: str | None, scale: Scale, style: str) -> Bar:
    start, returned_ns = scale(operation.invoke_ns), operation.complete_ns
    end = start + 4 if returned_ns is None else max(scale(returned_ns), start + 4)
    tail = end
    if operation.type == "info":
        tail = scale.right if returned_ns is None else max(min(end + TAIL, scale.right), end)
    inside = (tail if returned_ns is None else end) - start - 12
    after, before = WIDTH - end - 6, start - 6 - GUTTER
    label = operation_label(operation, key)
    room = next((room for room in (inside, after, before) if text_width(label, LABEL_SIZE) <= room), None)
    if room is None:
        room = max(inside, after, before)
        label = clipped(label, max(int(room / text_width("x", LABEL_SIZE)), 1))
    width = text_width(label, LABEL_SIZE)
    if room == inside:
        label_x, left, right = start + 6, start, tail
    elif room == after:
        label_x, left, right = end + 6, start, max(end + 6 + width, tail)
    else:
        label_x, left, right = start - 6, start - 6 - width, tail
    return Bar(
        style=f"{style} {operation.type}",
        title=operation_title(operation),
        label=label,
        start=start,
        end=end,
        tail=tail,
        label_x=label_x,
        label_ends=label_x < start,
        left=left,
        right=right,
    )


def _drawn(bar: Bar, y: float) -> Markup:
    parts = [element("title", bar.title)]
    place: dict[str, object] = {"y": y + 3, "height": BAR_HEIGHT}
    if bar.tail > bar.end:
        parts.append(
            element("rect", class_="tail", fill="url(#fade)", x=bar.end, width=bar.tail - bar.end, **place)
        )
    parts.append(element("rect", class_="bar", x=bar.start, width=bar.end - bar.start, rx=2.5, **place))
    anchor = "end" if bar.label_ends else None
    parts.append(element("text", bar.label, class_="op-label", x=bar.label_x, y=y + 17, text_anchor=anchor))
    return element("g", *parts, class_=bar.style)
