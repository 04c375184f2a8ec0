"""A stretch of a run in a log that grows in rounds: a lane for each node, over time.

The input is JSON of any store, with times in nanoseconds of the run; malformed parts are left out:

    {"title", "start_ns", "end_ns",
     "lanes": [{"name", "points": "µs,synchronised,incoming,executed …", "rounds": "µs …",
                "spans": [{"from_ns", "to_ns", "kind", "text"}],
                "marks": [{"at_ns", "kind", "label", "text", "from", "to"}], "marks_left_out"}],
     "told": [sentence]}

Points and rounds are one text each, because a run has many; their µs count from the start of the stretch. A lane shows,
from the top: how many entries the log has (line) and how many of these are executed (area); how many wait; what faults
did to the node. Kinds of spans: "split", "recovering"; of marks: "wrong", "restored", "vote", "split", "backup",
"start"; "worker" and "caught-up" are small. A mark with "from" and "to" is an arrow from one entry to the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from harness.pages import node_states
from harness.pages.fault_bands import FaultBand
from harness.pages.json_door import Json, as_mapping, as_mappings, as_text, as_time_ns, as_whole
from harness.pages.svg import TEXT_SIZE, Scale, Texts, element, text_width
from harness.pages.time_lanes import TimeLanes, lane_name, level

TEXT_MAX = 200_000
LANES_MAX, POINTS_MAX, MARKS_MAX, SPANS_MAX, ROUNDS_MAX = 24, 2_000, 80, 80, 400
LOG_HEIGHT, WAITING_HEIGHT, GAP = 92, 22, 16
SPAN_KINDS = ("split", "recovering")
SMALL_KINDS = ("worker", "caught-up")
MARK_KINDS = ("wrong", "restored", "vote", "split", "backup", "start", *SMALL_KINDS)
LABELS_MAX = 8
"""In a lane with more labels only violations keep theirs; other marks have tooltips."""
ROUNDS_APART = 3.0
"""Rounds that are closer on average (px) are not drawn."""

Point = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Lane:
    name: str
    points: Sequence[Point]
    fields: Json


@dataclass(frozen=True, slots=True)
class _Entries:
    """Entries of the log to y."""

    low: int
    high: int
    top: float

    def __call__(self, index: float) -> float:
        part = (index - self.low) / max(self.high - self.low, 1)
        return self.top + LOG_HEIGHT * (1 - min(max(part, 0.0), 1.0))


def queue_lanes(
    stretch: object, bands: Sequence[FaultBand], stories: Mapping[str, node_states.NodeStory]
) -> Markup:
    """The drawing; empty for a stretch without lanes. `stories`: by node."""
    fields = as_mapping(stretch)
    start_ns, end_ns = as_time_ns(fields.get("start_ns")), as_time_ns(fields.get("end_ns"))
    if start_ns is None or end_ns is None or end_ns <= start_ns:
        return Markup("")
    lanes = [_lane(values, start_ns) for values in as_mappings(fields.get("lanes"))[:LANES_MAX]]
    lanes = [lane for lane in lanes if lane.points]
    if not lanes:
        return Markup("")
    drawing = TimeLanes((start_ns, end_ns), bands)
    low = min(min(synced, executed) for lane in lanes for _, synced, _, executed in lane.points)
    high = max(max(synced, executed) for lane in lanes for _, synced, _, executed in lane.points)
    most = max(incoming for lane in lanes for _, _, incoming, _ in lane.points)
    for lane in lanes:
        _draw(lane, drawing, _Entries(low, high, drawing.y + 4), most, stories.get(lane.name))
    return drawing.drawn(
        "The queues of every node over time, with splits, recoveries and faults", "timeline queues"
    )


def _lane(fields: Json, start_ns: int) -> _Lane:
    points: list[Point] = []
    for text in as_text(fields.get("points"), TEXT_MAX).split()[:POINTS_MAX]:
        numbers = text.split(",")
        if len(numbers) == 4 and all(number.isdecimal() and len(number) < 16 for number in numbers):
            time_us, synced, incoming, executed = map(int, numbers)
            points.append((start_ns + time_us * 1000, synced, incoming, executed))
    points.sort(key=lambda point: point[0])
    return _Lane(as_text(fields.get("name"), 60), points, fields)


def _draw(
    lane: _Lane, drawing: TimeLanes, entries: _Entries, most: int, story: node_states.NodeStory | None
) -> None:
    scale, top = drawing.scale, entries.top
    floor = top + LOG_HEIGHT
    waiting_floor = floor + 6 + WAITING_HEIGHT
    texts = Texts()
    drawing.add(
        lane_name(lane.name, top - 3),
        level(scale, floor, f"{entries.low:,}", 0),
        level(scale, top, f"{entries.high:,}", 10) if entries.high > entries.low else "",
        *_spans(lane.fields, scale, top, texts),
        *_rounds(lane.fields, scale, top, floor),
        *_areas(lane.points, scale, entries),
        _steps([(ns, entries(synced)) for ns, synced, _, _ in lane.points], scale, "synced-line"),
        *_waiting(lane.points, scale, waiting_floor, most),
        *_marks(lane.fields, scale, entries, texts),
        height=waiting_floor + 4 - drawing.y,
    )
    if story is not None:
        drawing.add_states(story)
    drawing.y += GAP


def _steps(places: Sequence[tuple[int, float]], scale: Scale, class_: str) -> Markup:
    """Each height holds until the next one."""
    way = f"M{scale(places[0][0]):.1f} {places[0][1]:.1f}"
    way += "".join(f"H{scale(time_ns):.1f}V{y:.1f}" for time_ns, y in places[1:])
    return element("path", class_=class_, d=f"{way}H{scale.right:.1f}")


def _areas(points: Sequence[Point], scale: Scale, entries: _Entries) -> list[Markup]:
    """The executed entries; a second colour where entries are executed again, after a restore."""
    usual: list[str] = []
    again: list[str] = []
    most = points[0][3]
    floor = entries(entries.low)
    ends = [ns for ns, *_ in points[1:]] + [scale.end_ns]
    for (start_ns, _, _, executed), end_ns in zip(points, ends, strict=True):
        x, right, y = scale(start_ns), scale(end_ns), entries(executed)
        if right - x > 0.05 and y < floor:
            (again if executed < most else usual).append(
                f"M{x:.1f} {floor:.1f}V{y:.1f}H{right:.1f}V{floor:.1f}z"
            )
        most = max(most, executed)
    return [
        element("path", class_=class_, d="".join(way))
        for class_, way in (("executed-area", usual), ("executed-area again", again))
        if way
    ]


def _waiting(points: Sequence[Point], scale: Scale, floor: float, most: int) -> list[Markup]:
    height = WAITING_HEIGHT / max(most, 1)
    ends = [ns for ns, *_ in points[1:]] + [scale.end_ns]
    ways = []
    for (start_ns, _, incoming, _), end_ns in zip(points, ends, strict=True):
        x, right = scale(start_ns), scale(end_ns)
        if incoming and right - x > 0.05:
            ways.append(f"M{x:.1f} {floor:.1f}v-{incoming * height:.1f}H{right:.1f}V{floor:.1f}z")
    return [
        level(scale, floor, f"waiting ≤ {most:,}", -2),
        *([element("path", class_="waiting-area", d="".join(ways))] if ways else []),
    ]


def _rounds(fields: Json, scale: Scale, top: float, floor: float) -> list[Markup]:
    words = as_text(fields.get("rounds"), TEXT_MAX).split()[:ROUNDS_MAX]
    times = [scale.start_ns + int(word) * 1000 for word in words if word.isdecimal() and len(word) < 16]
    times = sorted(ns for ns in times if ns <= scale.end_ns)
    if not times or len(times) * ROUNDS_APART > scale.right - scale.left:
        return []
    way = "".join(f"M{scale(ns):.1f} {top:.1f}V{floor:.1f}" for ns in times)
    return [element("path", element("title", "a round that added entries"), class_="round-line", d=way)]


def _spans(fields: Json, scale: Scale, top: float, texts: Texts) -> list[Markup]:
    parts = []
    for span in as_mappings(fields.get("spans"))[:SPANS_MAX]:
        from_ns, to_ns = as_time_ns(span.get("from_ns")), as_time_ns(span.get("to_ns"))
        if from_ns is None or to_ns is None or to_ns < scale.start_ns or from_ns > scale.end_ns:
            continue
        x, right = scale(from_ns), max(scale(to_ns), scale(from_ns) + 2)
        kind, words = as_text(span.get("kind")), as_text(span.get("text"), 60)
        parts.append(
            element(
                "rect",
                element("title", words),
                class_=f"span {kind if kind in SPAN_KINDS else SPAN_KINDS[0]}",
                x=x,
                y=top,
                width=right - x,
                height=LOG_HEIGHT,
            )
        )
        if kind == SPAN_KINDS[0]:
            parts.append(_beside(words, x, right, (top + 11,), scale, texts, "span-label"))
    return parts


def _marks(fields: Json, scale: Scale, entries: _Entries, texts: Texts) -> list[Markup]:
    parts = []
    floor = entries.top + LOG_HEIGHT
    marks = as_mappings(fields.get("marks"))[:MARKS_MAX]
    is_crowded = sum(bool(mark.get("label")) for mark in marks) > LABELS_MAX
    for mark in marks:
        at_ns, kind = as_time_ns(mark.get("at_ns")), as_text(mark.get("kind"))
        if at_ns is None or not scale.start_ns <= at_ns <= scale.end_ns:
            continue
        kind = kind if kind in MARK_KINDS else "start"
        words = as_text(mark.get("text"), 200)
        x = scale(at_ns)
        begin, end = as_whole(mark.get("from")), as_whole(mark.get("to"))
        top = floor - 9 if kind in SMALL_KINDS else entries.top
        line = element("path", class_="mark-line", d=f"M{x:.1f} {top:.1f}V{floor:.1f}")
        inside = [element("title", words), line]
        if begin is not None and end is not None:
            inside.append(_fall(x, entries(begin), entries(end)))
        parts.append(element("g", *inside, class_=f"queue-mark {kind}"))
        label = as_text(mark.get("label"), 64)
        if label and (kind == MARK_KINDS[0] or not is_crowded):
            heights = tuple(entries.top + 24 + 13 * level for level in range(5))
            parts.append(_beside(label, x, x, heights, scale, texts, f"mark-label {kind}"))
    return parts


def _fall(x: float, begin: float, end: float) -> Markup:
    head = f"M{x - 4:.1f} {end - 6:.1f}L{x:.1f} {end:.1f}L{x + 4:.1f} {end - 6:.1f}"
    return element("path", class_="fall", d=f"M{x:.1f} {begin:.1f}V{end:.1f}{head}")


def _beside(
    words: str, x: float, right: float, ys: Sequence[float], scale: Scale, texts: Texts, class_: str
) -> Markup:
    """Right of x, or left of `right`: where there is room, and within the drawing."""
    width = text_width(words, TEXT_SIZE) + 4
    written = Markup("")
    if x + width <= scale.right:
        written = texts.put(words, x + 4, ys, class_, "start")
    if not written and right - width >= scale.left:
        written = texts.put(words, right - 4, ys, class_, "end")
    return written
