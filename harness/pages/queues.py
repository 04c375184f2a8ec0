"""The queues of a run as pictures, from the values of its system (`Pictures` in `harness.systems.parts`).

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


def queues_view(material: Material, bands: Sequence[FaultBand]) -> QueuesView:
    drawings = as_mapping(material.verdict.get("drawings"))
    drawn, broken = as_mapping(drawings.get("queues")), as_text(drawings.get("broken"))
    whole, stretches = as_mapping(drawn.get("whole")), as_mappings(drawn.get("stretches"))[:STRETCHES_MAX]
    opened = next((place for place, stretch in enumerate(stretches, 1) if _is_worth_opening(stretch)), 1)
    views = tuple(
        _stretch(stretch, material, bands, is_open=place in (0, opened))
        for place, stretch in enumerate((whole, *stretches))
    )
    notes = (broken, *as_texts(drawn.get("damage")), as_text(drawn.get("not_drawn")))
    return QueuesView(tuple(view for view in views if view.lanes), tuple(filter(None, notes)))


def _left_out(stretch: Json) -> tuple[str, ...]:
    count = sum(as_whole(lane.get("marks_left_out")) or 0 for lane in as_mappings(stretch.get("lanes")))
    return (f"{count:,} marks found no room, the small ones first.",) if count > 0 else ()


def _is_worth_opening(stretch: Json) -> bool:
    """The stretch has a violation, or a jump back."""
    marks = (mark for lane in as_mappings(stretch.get("lanes")) for mark in as_mappings(lane.get("marks")))
    return any("from" in mark or mark.get("kind") == "wrong" for mark in marks)


def _stretch(stretch: Json, material: Material, bands: Sequence[FaultBand], *, is_open: bool) -> StretchView:
    names = [as_text(lane.get("name"), 60) for lane in as_mappings(stretch.get("lanes"))]
    stories = {name: story_of(material, name, bands) for name in names}
    start_ns, end_ns = as_time_ns(stretch.get("start_ns")), as_time_ns(stretch.get("end_ns"))
    when = "" if start_ns is None or end_ns is None else f", {moment(start_ns)} – {moment(end_ns)}"
    return StretchView(
        title=as_text(stretch.get("title"), 60) + when,
        told=(*as_texts(stretch.get("told"), 300)[:SENTENCES_MAX], *_left_out(stretch)),
        lanes=queue_lanes(stretch, bands, stories),
        boxes=queue_boxes(stretch.get("board")),
        is_open=is_open,
    )
