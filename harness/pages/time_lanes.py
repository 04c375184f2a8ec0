"""Lanes over time, which all drawings of a run share.

The names of the faults stand on top, their shades behind everything, round times below. A drawing adds its own parts
from there downwards: each begins at `y` and moves it on. A node's lane shows its states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from harness.pages import node_states
from harness.pages.fault_bands import FaultBand, band_labels, shades, within
from harness.pages.json_door import clipped
from harness.pages.svg import WIDTH, Scale, element, joined, whole_svg

GUTTER, RIGHT = 92, 1148
"""Where time begins and ends (px); left of it stand the names of the lanes."""
BELOW = 24
"""Room for the labels of the axis (px)."""


class TimeLanes:
    """The drawing of an interval (start, end) in nanoseconds, with the faults that reach into it."""

    def __init__(
        self,
        span_ns: tuple[int, int],
        bands: Sequence[FaultBand],
        *,
        above: float = 2,
        fault_lanes: int = 4,
        has_times: bool = True,
    ) -> None:
        self.scale = Scale(*span_ns, GUTTER, RIGHT, has_times)
        self.node_tops: dict[str, float] = {}
        self._bands = within(bands, *span_ns)
        self._fault_names = band_labels(self._bands, self.scale, above, fault_lanes)
        self.top = above + self._fault_names.height
        self.y = self.top + 6
        self._parts: list[str] = []

    def add(self, *parts: str, height: float = 0) -> None:
        self._parts += parts
        self.y += height

    def add_nodes(self, stories: Mapping[str, node_states.NodeStory]) -> None:
        """A lane for each node, under its name."""
        for node, story in stories.items():
            self.add(lane_name(node, self.y))
            self.add_states(story)

    def add_states(self, story: node_states.NodeStory) -> None:
        self.node_tops[story.node] = self.y
        stretches = story.stretches(self.scale.start_ns, self.scale.end_ns)
        self.add(node_states.lane(stretches, self.scale, self.y), height=node_states.LANE_HEIGHT)

    def drawn(self, title: str, class_: str) -> Markup:
        """The whole SVG; `title` is for screen readers. The page's cursor reads the data-… attributes."""
        scale, bottom = self.scale, self.y + 4
        return whole_svg(
            (WIDTH, bottom + BELOW),
            title,
            shades(self._bands, scale, self.top, bottom),
            _round_times(scale, self.top, bottom),
            self._fault_names.markup,
            *self._parts,
            class_=class_,
            data_start_ns=scale.start_ns,
            data_end_ns=scale.end_ns,
            data_left=scale.left,
            data_right=scale.right,
            data_counts=None if scale.has_times else "events",
        )


def lane_name(name: str, y: float) -> Markup:
    return element("text", clipped(name, 13), class_="row-label", x=0, y=y + 15)


def level(scale: Scale, y: float, label: str, label_below: float = 4) -> Markup:
    """A line across at one height of a lane, with its label on the left."""
    line = element("line", class_="grid", x1=scale.left, x2=scale.right, y1=y, y2=y)
    at = {"x": scale.left - 6, "y": y + label_below}
    return joined((line, element("text", label, class_="tick", **at, text_anchor="end")))


def _round_times(scale: Scale, top: float, bottom: float) -> Markup:
    parts = []
    for time_ns, label in scale.ticks(12):
        x = scale(time_ns)
        anchor = "end" if x > scale.right - 20 else "middle"
        parts.append(element("line", class_="grid", x1=x, x2=x, y1=top, y2=bottom))
        parts.append(element("text", label, class_="tick", x=x, y=bottom + 16, text_anchor=anchor))
    return joined(parts)
