"""The state of each node at each moment (owner, replica, paused, down, cut off), and the lane that draws it.

There are two sources. The monitor's lines have a node's own report, about twice a second; each holds until the next.
The faults have the actions on the node, to the nanosecond. Faults take precedence, because a stopped process reports
nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from markupsafe import Markup

from checkers.history import Event
from checkers.history.faults import CUTS, ENDS_PROCESSES, SETS_CLOCKS, STOPS_PROCESSES
from checkers.history.spans import Spans
from harness.pages.fault_bands import FaultBand
from harness.pages.json_door import as_mapping, as_text
from harness.pages.svg import Scale, element, joined, moment, text_width

if TYPE_CHECKING:
    from harness.pages.material import Material

Links = tuple[tuple[str, str], ...]

LANE_HEIGHT = 22
LABEL_SIZE = 11


@dataclass(frozen=True, slots=True)
class Stretch:
    """A node in one state. `kind` is the style class: owner, replica, silent, down, paused or unseen."""

    start_ns: int
    end_ns: int
    kind: str
    words: str
    cut: bool

    @property
    def look(self) -> tuple[str, str, bool]:
        return self.kind, self.words, self.cut


@dataclass(frozen=True, slots=True)
class NodeStory:
    """A node's reports (style, words) with their times, and the faults that touched it. `made` is a cache."""

    node: str
    reported_ns: tuple[int, ...]
    reports: tuple[tuple[str, str], ...]
    faults: tuple[FaultBand, ...]
    made: dict[tuple[int, int], list[Stretch]] = field(default_factory=dict, compare=False, repr=False)

    def stretches(self, start_ns: int, end_ns: int) -> list[Stretch]:
        """The states between two times; neighbours that look the same are one."""
        if (start_ns, end_ns) not in self.made:
            self.made[start_ns, end_ns] = self._stretches(start_ns, end_ns)
        return self.made[start_ns, end_ns]

    def _stretches(self, start_ns: int, end_ns: int) -> list[Stretch]:
        turns = {start_ns}
        every = Spans(((band.start_ns, band.end_ns), place) for place, band in enumerate(self.faults))
        for band in self.faults:
            times = (band.start_ns, band.end_ns, *(ns for s in band.shapes for ns in (s.start_ns, s.end_ns)))
            turns.update(time_ns for time_ns in times if start_ns < time_ns < end_ns)
        reported = (time_ns for time_ns in self.reported_ns if start_ns < time_ns < end_ns)
        stretches: list[Stretch] = []
        for first, last in pairwise(sorted({*turns, *reported, end_ns})):
            if first in turns:  # until the next turn the faults stay the same
                faults = self._faults_then(every, first, last)
            look = self._look(first, faults)
            begin = stretches.pop().start_ns if stretches and stretches[-1].look == look else first
            stretches.append(Stretch(begin, last, *look))
        return stretches

    def _faults_then(self, every: Spans[int], start_ns: int, end_ns: int) -> _Faults:
        around = (self.faults[place] for place in sorted(every.touching(start_ns, end_ns)))
        active = [band for band in around if band.start_ns <= start_ns and band.end_ns >= end_ns]
        cuts = [links for band in active for links in _cut_then(band, start_ns, end_ns)]
        cuts = [links for links in cuts if any(self.node in link for link in links)]
        clocks = [band.clock for band in active if band.clock]
        words = _cut_words(self.node, cuts) + (f", clock {clocks[-1]}" if clocks else "")
        is_paused = any(band.does == "pause" for band in active)
        return _Faults(any(band.does in ENDS_PROCESSES for band in active), is_paused, words, bool(cuts))

    def _look(self, start_ns: int, faults: _Faults) -> tuple[str, str, bool]:
        if faults.is_down:
            return "down", "down", False
        if faults.is_paused:
            return "paused", "paused" + faults.words, faults.is_cut
        position = bisect_right(self.reported_ns, start_ns) - 1
        kind, words = self.reports[position] if position >= 0 else ("unseen", "not seen yet")
        return kind, words + faults.words, faults.is_cut


@dataclass(frozen=True, slots=True)
class _Faults:
    """The effect of the active faults on a node; `words` describe its cuts and its clock."""

    is_down: bool
    is_paused: bool
    words: str
    is_cut: bool


def story_of(material: Material, node: str, bands: Sequence[FaultBand]) -> NodeStory:
    """The story of a node of a run, made once."""
    if node not in material.stories:
        material.stories[node] = node_story(node, material.monitor, bands)
    story: NodeStory = material.stories[node]
    return story


def stories(material: Material, bands: Sequence[FaultBand]) -> dict[str, NodeStory]:
    """The stories of all nodes, by name."""
    return {node: story_of(material, node, bands) for node in material.nodes}


def node_story(node: str, monitor: Iterable[Event], bands: Sequence[FaultBand]) -> NodeStory:
    shown = _shows_versions(monitor)
    states = [
        (event.time_ns, _report(event, shown))
        for event in monitor
        if event.node == node and event.f == "state"
    ]
    touching = (band for band in bands if node in band.nodes or any(node in link for link in band.links))
    return NodeStory(
        node,
        tuple(time_ns for time_ns, _ in states),
        tuple(report for _, report in states),
        tuple(
            band
            for band in touching
            if band.does in CUTS | STOPS_PROCESSES | SETS_CLOCKS and band.took_effect is not False
        ),
    )


def _shows_versions(monitor: Iterable[Event]) -> bool:
    """Whether nodes reported more than one version in this run."""
    states = (as_mapping(event.value) for event in monitor if event.f == "state")
    versions = (status.get("version") for status in states if status.get("up") is True)
    words = {version if isinstance(version, str) else as_text(version, 40) for version in versions}
    return len({as_text(word, 40) for word in words}) > 1


def _report(event: Event, shows_versions: bool) -> tuple[str, str]:
    status = as_mapping(event.value)
    if status.get("up") is False:
        return "silent", "no answer"
    role = as_text(status.get("role"), 20) or "up"
    term = f" · term {as_text(status.get('term'), 10)}" if role == "owner" and "term" in status else ""
    version = as_text(status.get("version"), 40) if shows_versions else ""
    words = role + term + (f" · {version}" if version else "")
    return ("owner" if role == "owner" else "replica"), words


def _cut_then(band: FaultBand, start_ns: int, end_ns: int) -> list[Links]:
    """The links that a fault cut between these times, within which its shape does not change."""
    if band.does not in CUTS:
        return []
    if not band.shapes:
        return [band.links]
    return [s.links for s in band.shapes if s.took_effect and s.start_ns <= start_ns and s.end_ns >= end_ns]


def _cut_words(node: str, cuts: Sequence[Links]) -> str:
    """The peers that the node could not reach or hear, as ", cut from n2, n3"; clients only without such a peer."""
    peers = dict.fromkeys(
        end for links in cuts for link in links if node in link for end in link if end != node
    )
    nodes = [peer for peer in peers if peer != "client"] or list(peers)
    if not cuts:
        return ""
    return f", cut from {', '.join(nodes)}" if nodes else ", cut"


def lane(stretches: Sequence[Stretch], scale: Scale, y: float) -> Markup:
    """One node's states as a row of blocks; words where they fit, a tooltip everywhere."""
    parts = []
    for stretch in _wide_enough(stretches, scale):
        x, right = scale(stretch.start_ns), scale(stretch.end_ns)
        title = f"{stretch.words}\n{moment(stretch.start_ns)} – {moment(stretch.end_ns)}"
        inside = [element("title", title)]
        box = {"x": x, "y": y + 2, "width": max(right - x, 1.0), "height": LANE_HEIGHT - 4}
        inside.append(element("rect", class_=f"state {stretch.kind}", **box))
        if stretch.cut:
            strip = {**box, "y": y + LANE_HEIGHT - 6, "height": 4}
            inside.append(element("rect", class_="state-cut", fill="url(#hatch)", **strip))
        words = _fitting(stretch.words, right - x)
        if words:
            inside.append(
                element("text", words, class_=f"state-label {stretch.kind}", x=x + 6, y=y + LANE_HEIGHT - 8)
            )
        parts.append(element("g", *inside))
    return joined(parts)


def _wide_enough(stretches: Sequence[Stretch], scale: Scale) -> list[Stretch]:
    """Drops stretches narrower than a fifth of a pixel, so that the drawing's size has a bound."""
    smallest_ns = (scale.end_ns - scale.start_ns) / max(scale.right - scale.left, 1) / 5
    return [stretch for stretch in stretches if stretch.end_ns - stretch.start_ns >= smallest_ns]


def _fitting(words: str, width: float) -> str:
    """All the words, or the part before a comma or a dot that fits, or nothing."""
    for candidate in (words, words.partition(",")[0], words.rpartition(" · ")[0], words.partition(" · ")[0]):
        if text_width(candidate, LABEL_SIZE) + 10 <= width:
            return candidate
    return ""


HATCH = element(
    "pattern",
    element("path", class_="hatch-line", d="M-1 7L7 -1M5 13L13 5M-1 1L1 -1", stroke_width="1.6"),
    id="hatch",
    width=6,
    height=6,
    patternUnits="userSpaceOnUse",
)
