"""The space-time diagram: a line for each node, a dot for each event, an arrow for each message, the cuts across.

The input is JSON of any store; malformed parts are left out:

    {"lanes": [{"name", "about"}],
     "events": [{"lane", "at", "text", "kind"}],
     "arrows": [{"from": {"lane", "at"}, "to": {"lane", "at"}, "text", "kind"}],
     "cuts": [{"name", "at": {lane: at}}],
     "brackets": [{"lane", "from", "to", "text"}],
     "not_drawn": how many events are not drawn}

`at` is a place in one order of all events in which every message is sent before it is received: the drawing has no
scale of time. Kinds of events: "state", "record", "cut", "bad"; of arrows: "message", "marked", "violating". A cut goes
through its place on each lane that it names; the side behind it is shaded. A bracket spans two places of one lane.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from harness.pages.json_door import Json, as_mapping, as_mappings, as_text, as_whole, clipped
from harness.pages.svg import WIDTH, Texts, element, text_width, whole_svg

LANES_MAX, PLACES_MAX = 24, 400
LANE_HEIGHT, TOP, BOTTOM, RIGHT_MARGIN = 74, 34, 18, 20
STEP_LEAST, STEP_MOST = 30.0, 90.0
DOT, BRACKET_BELOW = 4.0, 15.0
LABEL_MAX, NAME_MAX = 34, 16
LEVELS = (-9.0, -21.0, 27.0)
"""Heights from its lane at which the text of an event may stand; it takes the first free one."""
EVENT_KINDS = ("state", "record", "cut", "bad")
ARROW_KINDS = ("message", "marked", "violating")


@dataclass(frozen=True, slots=True)
class _Plane:
    """Lanes to y, places to x."""

    lanes: Mapping[str, float]
    left: float
    step: float
    first: int
    places: int

    @property
    def right(self) -> float:
        return self.left + self.step * (self.places + 1)

    @property
    def bottom(self) -> float:
        return TOP + LANE_HEIGHT * len(self.lanes)

    def x(self, at: int) -> float:
        return self.left + self.step * (at - self.first + 1)

    def point(self, end: object) -> tuple[float, float] | None:
        """(x, y) of {"lane", "at"}; None if it is not on the plane."""
        fields = as_mapping(end)
        y, at = self.lanes.get(as_text(fields.get("lane"))), as_whole(fields.get("at"))
        return None if y is None or at is None or not self.holds(at) else (self.x(at), y)

    def holds(self, at: int) -> bool:
        return self.first <= at < self.first + self.places


def space_time_drawing(picture: object) -> Markup:
    """The drawing; empty for a picture without lanes or events."""
    fields = as_mapping(picture)
    plane = _plane(fields)
    if plane is None:
        return Markup("")
    texts = Texts()
    parts = [
        *_cut_shades(fields, plane),
        *_lane_lines(fields, plane),
        *_brackets(as_mappings(fields.get("brackets")), plane, texts),
        *_cut_lines(fields, plane, texts),
        *_arrows(as_mappings(fields.get("arrows")), plane),
        *_events(as_mappings(fields.get("events")), plane, texts),
        *_arrow_texts(as_mappings(fields.get("arrows")), plane, texts),
    ]
    if not_drawn := as_whole(fields.get("not_drawn")):
        words = f"{not_drawn:,} events of the run are not drawn"
        parts.append(element("text", words, class_="tick", x=plane.left, y=plane.bottom + BOTTOM - 4))
    width = max(float(WIDTH), plane.right + RIGHT_MARGIN)
    title = "Space-time diagram: a line for each node, arrows for the messages between them"
    return whole_svg((width, plane.bottom + BOTTOM), title, *parts, class_="space-time")


def _plane(picture: Json) -> _Plane | None:
    names = [as_text(lane.get("name")) for lane in as_mappings(picture.get("lanes"))][:LANES_MAX]
    ats = [
        at for event in as_mappings(picture.get("events")) if (at := as_whole(event.get("at"))) is not None
    ]
    if not names or not ats:
        return None
    first, places = min(ats), min(max(ats) - min(ats) + 1, PLACES_MAX)
    left = 16 + max(text_width(clipped(name, NAME_MAX), 12) for name in names)
    step = min(max((WIDTH - RIGHT_MARGIN - left) / (places + 1), STEP_LEAST), STEP_MOST)
    lanes = {name: TOP + LANE_HEIGHT * (number + 0.5) for number, name in enumerate(names)}
    return _Plane(lanes, left, step, first, places)


def _lane_lines(picture: Json, plane: _Plane) -> list[Markup]:
    parts = []
    for lane in as_mappings(picture.get("lanes")):
        name = as_text(lane.get("name"))
        y = plane.lanes.get(name)
        if y is not None:
            parts += [
                element("line", class_="lane", x1=plane.left, x2=plane.right, y1=y, y2=y),
                element("text", clipped(name, NAME_MAX), class_="row-label", x=0, y=y + 4),
                element("text", as_text(lane.get("about"), 14), class_="tick", x=0, y=y + 18),
            ]
    return parts


# ---- cuts


def _crossings(cut: Json, plane: _Plane) -> list[tuple[float, float]]:
    """The corners of the cut's line from the top; it runs straight past a lane that it does not name."""
    ats = as_mapping(cut.get("at"))
    crossings = [
        (plane.x(min(max(at, plane.first - 1), plane.first + plane.places)), y)
        for name, y in plane.lanes.items()
        if (at := as_whole(ats.get(name))) is not None
    ]
    if not crossings:
        return []
    return [(crossings[0][0], float(TOP) - 6), *crossings, (crossings[-1][0], plane.bottom)]


def _cut_shades(picture: Json, plane: _Plane) -> list[Markup]:
    """The shaded areas before the first cut and after the last one."""
    cuts = [crossings for cut in as_mappings(picture.get("cuts")) if (crossings := _crossings(cut, plane))]
    if not cuts:
        return []
    before, after = cuts[0], cuts[-1]
    left, right = plane.left, plane.right
    return [
        _area("before", [(left, before[0][1]), *before, (left, before[-1][1])]),
        _area("after", [(right, after[0][1]), *after, (right, after[-1][1])]),
        element("text", "BEFORE", class_="tick", x=left + 4, y=TOP - 12),
        element("text", "AFTER", class_="tick", x=right - 4, y=TOP - 12, text_anchor="end"),
    ]


def _area(class_: str, corners: Sequence[tuple[float, float]]) -> Markup:
    return element(
        "polygon", class_=f"side {class_}", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    )


def _cut_lines(picture: Json, plane: _Plane, texts: Texts) -> list[Markup]:
    parts = []
    for cut in as_mappings(picture.get("cuts")):
        crossings = _crossings(cut, plane)
        if crossings:
            way = "L".join(f"{x:.1f} {y:.1f}" for x, y in crossings)
            name = as_text(cut.get("name"), LABEL_MAX)
            parts += [
                element("path", element("title", name), class_="cut-line", d=f"M{way}"),
                texts.put(name, crossings[0][0], (TOP - 12.0, TOP - 24.0), "cut-name"),
            ]
    return parts


def _brackets(brackets: Sequence[Json], plane: _Plane, texts: Texts) -> list[Markup]:
    parts = []
    for bracket in brackets:
        y = plane.lanes.get(as_text(bracket.get("lane")))
        first, last = as_whole(bracket.get("from")), as_whole(bracket.get("to"))
        if y is None or first is None or last is None or not (plane.holds(first) and plane.holds(last)):
            continue
        left, right, below = plane.x(first), plane.x(last), y + BRACKET_BELOW
        text = as_text(bracket.get("text"), LABEL_MAX)
        parts += [
            element(
                "path",
                element("title", text),
                class_="bracket",
                d=f"M{left:.1f} {below - 6}v6H{right:.1f}v-6",
            ),
            texts.put(text, (left + right) / 2, (below + 12,), "tick"),
        ]
    return parts


# ---- events and messages


def _events(events: Sequence[Json], plane: _Plane, texts: Texts) -> list[Markup]:
    """Events of the kind "bad" get the first choice of places for their texts."""
    parts = []
    for event in sorted(events, key=lambda event: event.get("kind") != "bad"):
        point = plane.point(event)
        if point is None:
            continue
        x, y = point
        kind = as_text(event.get("kind"))
        words = as_text(event.get("text"), 200)
        dot = element("circle", element("title", words), cx=x, cy=y, r=DOT)
        text = texts.put(clipped(words, LABEL_MAX), x, tuple(y + level for level in LEVELS))
        parts.append(element("g", dot, text, class_=f"happening {kind if kind in EVENT_KINDS else 'state'}"))
    return parts


def _ends(arrow: Json, plane: _Plane) -> tuple[float, float, float, float] | None:
    """(x1, y1, x2, y2) of the arrow, which keeps a little off both dots; None if an end is not drawn."""
    begin, end = plane.point(arrow.get("from")), plane.point(arrow.get("to"))
    if begin is None or end is None or begin == end:
        return None
    (x1, y1), (x2, y2) = begin, end
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    dx, dy = (x2 - x1) / length * (DOT + 2), (y2 - y1) / length * (DOT + 2)
    return x1 + dx, y1 + dy, x2 - dx, y2 - dy


def _arrows(arrows: Sequence[Json], plane: _Plane) -> list[Markup]:
    """Violating arrows are drawn last, so that nothing covers them."""
    parts = []
    for arrow in sorted(arrows, key=lambda arrow: arrow.get("kind") == "violating"):
        ends = _ends(arrow, plane)
        if ends is None:
            continue
        x1, y1, x2, y2 = ends
        kind = as_text(arrow.get("kind"))
        length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1.0)
        dx, dy = (x2 - x1) / length * 8, (y2 - y1) / length * 8
        head = f"M{x2:.1f} {y2:.1f}L{x2 - dx - dy / 2:.1f} {y2 - dy + dx / 2:.1f}"
        head += f"L{x2 - dx + dy / 2:.1f} {y2 - dy - dx / 2:.1f}z"
        parts.append(
            element(
                "g",
                element("title", as_text(arrow.get("text"), 200)),
                element("path", class_="shaft", d=f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"),
                element("path", class_="head", d=head),
                class_=f"sent {kind if kind in ARROW_KINDS else 'message'}",
            )
        )
    return parts


def _arrow_texts(arrows: Sequence[Json], plane: _Plane, texts: Texts) -> list[Markup]:
    """The texts of arrows beside their middles, as far as they fit; those of violating arrows first."""
    parts = []
    for arrow in sorted(arrows, key=lambda arrow: arrow.get("kind") != "violating"):
        ends = _ends(arrow, plane)
        if ends is not None:
            x1, y1, x2, y2 = ends
            words = as_text(arrow.get("text"), LABEL_MAX)
            class_ = f"arrow-text {'violating' if arrow.get('kind') == 'violating' else ''}".strip()
            heights = tuple((y1 + y2) / 2 + shift for shift in (-3.0, 10.0))
            parts.append(texts.put(words, (x1 + x2) / 2 + 6, heights, class_))
    return parts
