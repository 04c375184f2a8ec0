"""The queues of all nodes at some moments, side by side: a column for each moment, a box for each transaction.

The input is JSON of any store; malformed parts are left out:

    {"columns": [name], "origins": {id: node},
     "rows": [{"name", "cells": [{"before": how many first entries have no box, "synced": [id], "more_synced",
                                  "incoming": [id], "more_incoming", "executed", "about"}]}]}

Short ids stand in their boxes. Longer ones would need too much room: then a box has only the colour of its origin.
A frame marks a fork: a log's entries from the first one that differs on another node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from harness.pages.json_door import Json, as_list, as_mapping, as_mappings, as_text, as_whole, clipped
from harness.pages.svg import WIDTH, element, text_width, whole_svg
from harness.pages.time_lanes import lane_name

COLUMNS_MAX, ROWS_MAX, BOXES_MAX, COLOURS = 8, 24, 24, 8
LABEL_MAX = 3
"""Characters of an id that is written into its box."""
TOP, GAP, LINE, ROW_HEIGHT = 30, 26, 26, 74
HEIGHT, SMALL = 20.0, 9.0

Box = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Cell:
    before: int
    synced: Sequence[Box]
    incoming: Sequence[Box]
    more_synced: int
    more_incoming: int
    executed: int
    about: str


@dataclass(frozen=True, slots=True)
class _Sizes:
    box: float
    lead: float
    """The width of the number of entries before the first box."""
    has_labels: bool

    def width(self, count: int, more: int) -> float:
        return self.lead + count * (self.box + 2) + (text_width(_more(more), 11) + 6 if more else 0)


def queue_boxes(board: object) -> Markup:
    """The drawing; empty for a board without columns or rows."""
    fields = as_mapping(board)
    origin_of = as_mapping(fields.get("origins"))
    columns = [as_text(name, 40) for name in as_list(fields.get("columns"))[:COLUMNS_MAX]]
    rows = [
        (
            as_text(row.get("name"), 40),
            [_cell(values, origin_of) for values in as_mappings(row.get("cells"))[: len(columns)]],
        )
        for row in as_mappings(fields.get("rows"))[:ROWS_MAX]
    ]
    if not columns or not rows:
        return Markup("")
    cells = [cell for _, row in rows for cell in row]
    boxes = [box for cell in cells for box in (*cell.synced, *cell.incoming)]
    origins = sorted({origin for _, origin in boxes} | {name for name, _ in rows})
    has_labels = all(len(name) <= LABEL_MAX for name, _ in boxes)
    lead = max((text_width(_before(cell.before), 11) + 6 for cell in cells if cell.before), default=0.0)
    sizes = _Sizes(HEIGHT * 1.4 if has_labels else SMALL, lead, has_labels)
    left = 100.0 + max(text_width(clipped(name, 13), 12) - 30 for name, _ in rows)
    parts: list[Markup] = []
    x, has_fork = left, False
    for number, name in enumerate(columns):
        column = [row[number] for _, row in rows if number < len(row)]
        width = max([text_width(name, 12), *(_width(cell, sizes) for cell in column)])
        has_fork = has_fork or any(_fork(cell, column) is not None for cell in column)
        parts.append(element("text", name, class_="column-name", x=x, y=TOP - 12))
        for place, (_, row) in enumerate(rows):
            if number < len(row):
                parts += _drawn(row[number], column, x, TOP + place * ROW_HEIGHT, sizes, origins)
        x += width + GAP
    for place, (name, _) in enumerate(rows):
        y = TOP + place * ROW_HEIGHT
        parts += [
            lane_name(name, y),
            element("text", "log", class_="tick", x=left - 10, y=y + 15, text_anchor="end"),
            element("text", "incoming", class_="tick", x=left - 10, y=y + LINE + 15, text_anchor="end"),
            element("line", class_="rule-line", x1=0, x2=max(x, WIDTH), y1=y - 5, y2=y - 5),
        ]
    bottom = TOP + len(rows) * ROW_HEIGHT
    parts += _legend(origins, left, bottom + 8, has_fork=has_fork)
    title = "The queues of every node at some moments, a box for each transaction"
    return whole_svg((max(float(WIDTH), x), bottom + 20), title, *parts, class_="queues boxes")


def _cell(values: Json, origin_of: Json) -> _Cell:
    synced, incoming = (_boxes(values.get(name), origin_of) for name in ("synced", "incoming"))
    return _Cell(
        max(as_whole(values.get("before")) or 0, 0),
        synced,
        incoming,
        max(as_whole(values.get("more_synced")) or 0, 0),
        max(as_whole(values.get("more_incoming")) or 0, 0),
        as_whole(values.get("executed")) or 0,
        as_text(values.get("about"), 40),
    )


def _boxes(ids: object, origin_of: Json) -> list[Box]:
    names = [as_text(entry, 40) for entry in as_list(ids)[:BOXES_MAX]]
    return [(name, as_text(origin_of.get(name), 40)) for name in names]


def _width(cell: _Cell, sizes: _Sizes) -> float:
    return max(
        sizes.width(len(cell.synced), cell.more_synced),
        sizes.width(len(cell.incoming), cell.more_incoming),
        text_width(cell.about, 11),
    )


def _before(count: int) -> str:
    return f"{count:,} …"


def _more(count: int) -> str:
    return f"+{count:,}"


def _drawn(
    cell: _Cell, others: Sequence[_Cell], x: float, y: float, sizes: _Sizes, origins: Sequence[str]
) -> list[Markup]:
    parts = []
    if cell.before:
        parts.append(element("text", _before(cell.before), class_="tick", x=x, y=y + 15))
    parts += _row(cell.synced, cell.more_synced, x, y, sizes, origins)
    parts += _row(cell.incoming, cell.more_incoming, x, y + LINE, sizes, origins)
    left = x + sizes.lead
    step = sizes.box + 2
    executed = min(max(cell.executed - cell.before, 0), len(cell.synced))
    if executed:
        title = element("title", f"executed: the first {cell.executed:,}")
        way = f"M{left:.1f} {y + HEIGHT + 3.5:.1f}h{executed * step - 2:.1f}"
        parts.append(element("path", title, class_="executed-line", d=way))
    fork = _fork(cell, others)
    if fork is not None:
        title = element("title", f"a fork: another node has a different entry {cell.before + fork + 1:,}")
        width = (len(cell.synced) - fork) * step + 1
        at = {"x": left + fork * step - 1.5, "y": y - 1.5, "width": width, "height": HEIGHT + 3, "rx": 3}
        parts.append(element("rect", title, class_="fork", **at))
    if cell.about:
        parts.append(element("text", cell.about, class_="span-label", x=x, y=y + 2 * LINE + 10))
    return parts


def _fork(cell: _Cell, others: Sequence[_Cell]) -> int | None:
    """The first box for which another node has a different one; None if there is none."""
    own = dict(enumerate((name for name, _ in cell.synced), cell.before))
    theirs = [dict(enumerate((name for name, _ in other.synced), other.before)) for other in others]
    return next(
        (
            place - cell.before
            for place, name in own.items()
            if any(log.get(place, name) != name for log in theirs)
        ),
        None,
    )


def _row(
    boxes: Sequence[Box], more: int, x: float, y: float, sizes: _Sizes, origins: Sequence[str]
) -> list[Markup]:
    """A path for the boxes of each origin: a box of its own for each would make a page large."""
    x += sizes.lead
    ways: dict[str, list[str]] = {}
    texts = []
    for place, (name, origin) in enumerate(boxes):
        left = x + place * (sizes.box + 2)
        ways.setdefault(origin, []).append(f"M{left:.1f} {y:.1f}h{sizes.box:g}v{HEIGHT:g}h-{sizes.box:g}z")
        if sizes.has_labels:
            middle = left + sizes.box / 2
            texts.append(element("text", name, class_="op-label", x=middle, y=y + 14.5, text_anchor="middle"))
    title = element("title", ", ".join(name for name, _ in boxes))
    parts = [
        element("path", class_=f"box origin-{origins.index(origin) % COLOURS}", d="".join(way))
        for origin, way in ways.items()
    ]
    if more:
        end = x + len(boxes) * (sizes.box + 2) + 3
        texts.append(element("text", _more(more), class_="tick", x=end, y=y + 15))
    return [element("g", title, *parts, *texts)] if boxes else []


def _legend(origins: Sequence[str], x: float, y: float, *, has_fork: bool) -> list[Markup]:
    parts = []
    for number, origin in enumerate(origins):
        words = f"made by {clipped(origin, 13)}"
        parts += [
            element(
                "rect", class_=f"box origin-{number % COLOURS}", x=x, y=y - 9, width=SMALL, height=10, rx=2
            ),
            element("text", words, class_="tick", x=x + 14, y=y),
        ]
        x += text_width(words, 11) + 34
    parts.append(element("path", class_="executed-line", d=f"M{x:.1f} {y - 4:.1f}h16"))
    parts.append(element("text", "executed", class_="tick", x=x + 21, y=y))
    if has_fork:
        x += 41 + text_width("executed", 11)
        parts.append(element("rect", class_="fork", x=x, y=y - 10, width=16, height=11, rx=3))
        parts.append(element("text", "differs from another node's log", class_="tick", x=x + 21, y=y))
    return parts
