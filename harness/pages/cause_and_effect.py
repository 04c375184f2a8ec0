"""The cause of an anomaly and its effects on one time axis: node states, faults, and the places of witnesses.

The picture begins a margin before the faults that were in effect at the cause or had just ended, and before the last
change of the owner, but at most the margin and `BEFORE_NS` before the cause. It ends behind the last effect. If the
first effect is near and the last one far, the far one stands at the right edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from harness.judge.causes import RankedWitness, consequences, seconds
from harness.pages import node_states
from harness.pages.fault_bands import FaultBand
from harness.pages.json_door import as_mapping, as_text, as_time_ns, clipped
from harness.pages.material import Material
from harness.pages.owner_changes import handovers
from harness.pages.svg import Texts, element, joined
from harness.pages.time_lanes import GUTTER, RIGHT, TimeLanes

BEFORE_NS = 10_000_000_000
"""How far before the cause the picture begins at most, without its margin."""
JUST_NS = 2_000_000_000
"""A fault that ended at most so long before the cause may have led to it."""
LEAST_NS = 100_000_000
MARKS_HEIGHT = 31
LABEL_YS = (25, 12)
FAR = 8
"""A later effect is far if it is so many times as far as the first one."""
EFFECTS_DRAWN = 3
CRASHES_DRAWN = 20


@dataclass(frozen=True, slots=True)
class Moment:
    """A witness on the axis. `kind`: cause or then."""

    kind: str
    time_ns: int
    node: str
    rule: str
    summary: str


def moments(ranking: Sequence[RankedWitness]) -> list[Moment]:
    """The cause and its effects with known times, without effects that are earlier than the cause."""
    if not ranking or ranking[0].time_ns is None:
        return []
    lead, on_axis = ranking[0], []
    for kind, sighted in (
        ("cause", lead),
        *(("then", sighted) for sighted in consequences(ranking)[:EFFECTS_DRAWN]),
    ):
        time_ns = as_time_ns(sighted.time_ns)
        if time_ns is not None and (sighted is lead or time_ns >= ranking[0].time_ns):
            on_axis.append(
                Moment(kind, time_ns, clipped(sighted.node, 60), clipped(sighted.rule, 60), sighted.summary)
            )
    return on_axis if on_axis and on_axis[0].kind == "cause" else []


def cause_and_effect(
    material: Material, ranking: Sequence[RankedWitness], bands: Sequence[FaultBand]
) -> Markup:
    """The picture; empty without nodes, without times, or without a cause whose time is known."""
    marked = moments(ranking)
    if not marked or not material.nodes or not material.has_times:
        return Markup("")
    lanes = TimeLanes(window(marked, material, bands), bands, above=MARKS_HEIGHT, fault_lanes=3)
    lanes.add_nodes(node_states.stories(material, bands))
    lanes.add(_crashes(material, lanes), _marks(marked, lanes))
    return lanes.drawn("From the cause to its effects", "timeline")


def window(moments: Sequence[Moment], material: Material, bands: Sequence[FaultBand]) -> tuple[int, int]:
    """(start_ns, end_ns) of the picture."""
    cause_ns = moments[0].time_ns
    last_ns = max(each.time_ns for each in moments)
    well_ns = min(
        (band.start_ns for band in bands if band.start_ns <= cause_ns <= band.end_ns + JUST_NS),
        default=cause_ns,
    )
    changes = [each.last_ns for each in handovers(material.monitor) if each.first_ns <= cause_ns]
    if changes and cause_ns - changes[-1] <= BEFORE_NS:
        well_ns = min(well_ns, changes[-1])
    well_ns = max(well_ns, cause_ns - BEFORE_NS, 0)
    first_ns = min((each.time_ns for each in moments[1:]), default=last_ns)
    last_ns = min(last_ns, cause_ns + max(FAR * (first_ns - well_ns), BEFORE_NS // 5))
    margin_ns = max((last_ns - well_ns) // 16, LEAST_NS)
    return max(well_ns - margin_ns, 0), last_ns + margin_ns


def _marks(moments: Sequence[Moment], lanes: TimeLanes) -> Markup:
    """A line for each moment, with its words above and a mark in the lane of its node."""
    texts, parts = Texts(), []
    for moment in moments:
        x = lanes.scale(moment.time_ns)
        title = element("title", f"{moment.kind}: {moment.summary}\n{seconds(moment.time_ns)}")
        line = element("line", class_="moment-line", x1=x, x2=x, y1=MARKS_HEIGHT - 4, y2=lanes.y)
        is_outside = moment.time_ns > lanes.scale.end_ns
        mark = ""
        if moment.node in lanes.node_tops and not is_outside:
            mark = element("circle", class_="moment-dot", cx=x, cy=_middle(lanes, moment.node), r=5)
        words = f"{moment.kind}: {moment.rule}, {seconds(moment.time_ns)}{' →' if is_outside else ''}"
        anchor = "end" if x > (GUTTER + RIGHT) / 2 else "start"
        label = texts.put(words, x + (-5 if anchor == "end" else 5), LABEL_YS, "moment-label", anchor)
        parts.append(element("g", title, line, mark, label, class_=f"moment {moment.kind}"))
    return joined(parts)


def _crashes(material: Material, lanes: TimeLanes) -> Markup:
    """A cross where a process ended by itself; the monitor's line about it may come later."""
    parts: list[Markup] = []
    for event in (line for line in material.monitor if line.f == "crash"):
        value = as_mapping(event.value)
        at_ns = as_time_ns(value.get("at_ns"))
        at_ns = event.time_ns if at_ns is None else at_ns
        is_here = lanes.scale.start_ns <= at_ns <= lanes.scale.end_ns and len(parts) < CRASHES_DRAWN
        if event.node in lanes.node_tops and is_here:
            x, y = lanes.scale(at_ns), _middle(lanes, event.node)
            title = element("title", f"{event.node}: {as_text(value.get('how'), 200)}")
            cross = element("path", class_="mark", d=f"M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10")
            parts.append(element("g", title, cross, class_="event crash"))
    return joined(parts)


def _middle(lanes: TimeLanes, node: str) -> float:
    return lanes.node_tops[node] + node_states.LANE_HEIGHT / 2
