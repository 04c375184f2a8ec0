"""The queues of a run: the values that its system drew (`Pictures` in `harness.systems.parts`), as pictures.

    {"whole": stretch, "stretches": [stretch with "board"], "not_drawn", "damage": [sentence]}

`harness.pages.queue_lanes` has the form of a stretch, `harness.pages.queue_boxes` that of a board.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from harness.pages.fault_bands import FaultBand
from harness.pages.json_door import Json, as_mapping, as_mappings, as_text, as_texts, as_time_ns, as_whole
from harness.pages.material import Material
from harness.pages.node_states import story_of
from harness.pages.queue_boxes import queue_boxes
from harness.pages.queue_lanes import queue_lanes
from harness.pages.svg import moment

STRETCHES_MAX, SENTENCES_MAX = 8, 40


@dataclass(frozen=True, slots=True)
class StretchView:
    title: str
    told: tuple[str, ...]
    lanes: Markup
    boxes: Markup
    is_open: bool


@dataclass(frozen=True, slots=True)
class QueuesView:
    """Without stretches if the run has no such picture; the first one is the whole run."""

    stretches: tuple[StretchView, ...]
    notes: tuple[str, ...]


def queues_view(read: Material, bands: Sequence[FaultBand]) -> QueuesView:
    drawings = as_mapping(read.verdict.get("drawings"))
    drawn, broken = as_mapping(drawings.get("queues")), as_text(drawings.get("broken"))
    whole, some = as_mapping(drawn.get("whole")), as_mappings(drawn.get("stretches"))[:STRETCHES_MAX]
    opened = next((place for place, each in enumerate(some, 1) if _tells_most(each)), 1)
    views = tuple(
        _stretch(each, read, bands, is_open=place in (0, opened)) for place, each in enumerate((whole, *some))
    )
    notes = (broken, *as_texts(drawn.get("damage")), as_text(drawn.get("not_drawn")))
    return QueuesView(tuple(view for view in views if view.lanes), tuple(filter(None, notes)))


def _left_out(told: Json) -> tuple[str, ...]:
    count = sum(as_whole(lane.get("marks_left_out")) or 0 for lane in as_mappings(told.get("lanes")))
    return (f"{count:,} marks found no room, the small ones first.",) if count > 0 else ()


def _tells_most(told: Json) -> bool:
    """The stretch has a violation, or a jump back."""
    marks = (mark for lane in as_mappings(told.get("lanes")) for mark in as_mappings(lane.get("marks")))
    return any("from" in mark or mark.get("kind") == "wrong" for mark in marks)


def _stretch(told: Json, read: Material, bands: Sequence[FaultBand], *, is_open: bool) -> StretchView:
    names = [as_text(lane.get("name"), 60) for lane in as_mappings(told.get("lanes"))]
    stories = {name: story_of(read, name, bands) for name in names}
    start_ns, end_ns = as_time_ns(told.get("start_ns")), as_time_ns(told.get("end_ns"))
    when = "" if start_ns is None or end_ns is None else f", {moment(start_ns)} – {moment(end_ns)}"
    return StretchView(
        title=as_text(told.get("title"), 60) + when,
        told=(*as_texts(told.get("told"), 300)[:SENTENCES_MAX], *_left_out(told)),
        lanes=queue_lanes(told, bands, stories),
        boxes=queue_boxes(told.get("board")),
        is_open=is_open,
    )
