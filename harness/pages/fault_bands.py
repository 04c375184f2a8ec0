"""Faults as stretches of time, from the history's nemesis lines: the drawings shade them and the table lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from checkers.history import FaultSpan, HistoryError
from checkers.history.faults import CUTS, SETS_CLOCKS, fault_spans
from harness.pages.json_door import Json, as_mapping, as_text, as_time_ns, as_whole, clipped
from harness.pages.material import Material
from harness.pages.svg import Scale, element, joined, moment, text_width

LANE_HEIGHT = 17
LABEL_SIZE = 11


@dataclass(frozen=True, slots=True)
class Shape:
    """The links that a changing partition cut in an interval."""

    links: tuple[tuple[str, str], ...]
    start_ns: int
    end_ns: int
    took_effect: bool

    @property
    def words(self) -> str:
        effect = "" if self.took_effect else " (no effect)"
        return f"{moment(self.start_ns)} – {moment(self.end_ns)} {_arrows(self.links, is_cut=True)}{effect}"


@dataclass(frozen=True, slots=True)
class FaultBand:
    """One fault. `start_ns` to `end_ns`: it may have been in effect; `sure`: all of it surely was in effect."""

    id: int
    name: str
    does: str
    nodes: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    start_ns: int
    end_ns: int
    sure: tuple[int, int] | None
    ended: bool
    took_effect: bool | None
    healed: bool | None
    evidence: Json
    shapes: tuple[Shape, ...] = ()
    clock: str = ""
    """A clock fault's setting: `+2235 s`, `drift −45 ms a second`."""
    has_times: bool = True
    """False of a log without times."""

    @property
    def targets(self) -> str:
        """The nodes, and the links with both directions of a link written once; a cut link's arrow is struck out."""
        if self.shapes:
            return "; ".join(shape.words for shape in self.shapes)
        return ", ".join(filter(None, (*self.nodes, _arrows(self.links, is_cut=self.does in CUTS))))

    @property
    def title(self) -> str:
        effect = {True: "it took effect", False: "it had no effect", None: "its effect is unknown"}[
            self.took_effect
        ]
        until = self.until if self.ended else "the end of the record"
        return f"fault {self.id}: {self.name} ({self.does}) {self.targets}\n{self.since} – {until}; {effect}"

    @property
    def since(self) -> str:
        return moment(self.start_ns, self.has_times)

    @property
    def until(self) -> str:
        return moment(self.end_ns, self.has_times)


def _arrows(links: Sequence[tuple[str, str]], *, is_cut: bool) -> str:
    pairs = dict.fromkeys(links)
    one_way, both_ways = ("↛", "↮") if is_cut else ("→", "↔")
    return ", ".join(
        f"{source} {both_ways if (target, source) in pairs else one_way} {target}"
        for source, target in pairs
        if (target, source) not in pairs or source < target
    )


def parts_of(links: Sequence[tuple[str, str]]) -> str:
    """The parts that cut links leave, the smallest first: "n4 | n1 n2 n3"; "" if all nodes still reach each other."""
    nodes = {name for link in links for name in link if name != "client"}
    both_ways = {frozenset(link) for link in links if link[::-1] in links}
    parts: list[list[str]] = []
    while nodes:
        part = [nodes.pop()]
        for node in part:
            reached = {other for other in nodes if frozenset((node, other)) not in both_ways}
            nodes -= reached
            part += reached
        parts.append(sorted(part))
    return " | ".join(map(" ".join, sorted(parts, key=lambda part: (len(part), part)))) if parts[1:] else ""


def fault_bands(material: Material) -> tuple[FaultBand, ...]:
    """A band for every fault that began; without a recorded end it reaches to the end of the run.

    If the lines of the faults do not pair up, there are no bands, and the material's notes say so.
    """
    try:
        spans = fault_spans(list(material.nemesis), 2)
    except HistoryError as refusal:
        material.notes.append(f"The faults of history.jsonl cannot be shown: {refusal}.")
        return ()
    return tuple(_band(span, material) for span in spans)


def _band(span: FaultSpan, material: Material) -> FaultBand:
    run_end_ns = material.end_ns
    start_ns = _first_time(span.first_effect_ns, span.start_ns)
    end_ns = _first_time(span.last_effect_ns, span.end_ns, run_end_ns)
    return FaultBand(
        id=span.id,
        name=clipped(span.name, 60) or "fault",
        does=clipped(span.does, 20),
        nodes=span.nodes,
        links=span.links,
        start_ns=start_ns,
        end_ns=max(end_ns, start_ns),
        sure=span.sure,
        ended=span.end_ns is not None,
        # Tools that record no such thing, as Jepsen, say neither that it did nor that it did not.
        took_effect=span.took_effect if "took_effect" in span.evidence else None,
        healed=span.healed,
        evidence=span.evidence,
        clock=_clock(as_mapping(span.asked)) if span.does in SETS_CLOCKS else "",
        shapes=_shapes(span, run_end_ns),
        has_times=material.has_times,
    )


def _clock(asked: Json) -> str:
    jump_ns, drift_ppm = as_whole(asked.get("jump_ns")), as_whole(asked.get("drift_ppm"))
    words = [f"{jump_ns / 1e9:+.4g} s"] if jump_ns else []
    words += [f"drift {drift_ppm / 1e3:+.3g} ms a second"] if drift_ppm else []
    return ", ".join(words).replace("-", "−")


def _shapes(span: FaultSpan, run_end_ns: int) -> tuple[Shape, ...]:
    """Each shape until the next one; links that both cut stay cut in between."""
    starts = [_first_time(shape.in_effect_ns, shape.asked_ns, span.start_ns) for shape in span.shapes]
    ends = [*starts[1:], _first_time(span.heal_asked_ns, span.end_ns, run_end_ns)]
    return tuple(
        Shape(shape.links, start, max(start, end), shape.took_effect)
        for shape, start, end in zip(span.shapes, starts, ends[: len(starts)], strict=True)
    )


def _first_time(*candidates: int | None) -> int:
    times = (as_time_ns(candidate) for candidate in candidates)
    return next((time_ns for time_ns in times if time_ns is not None), 0)


def within(bands: Sequence[FaultBand], start_ns: int, end_ns: int) -> tuple[FaultBand, ...]:
    return tuple(band for band in bands if band.start_ns <= end_ns and band.end_ns >= start_ns)


def shades(bands: Sequence[FaultBand], scale: Scale, top: float, bottom: float) -> Markup:
    """The bands behind a drawing; where a fault surely was in effect the shade is deeper."""
    parts = []
    for band in bands:
        spans = [("band", band.start_ns, band.end_ns)]
        if band.shapes:  # what changes at once leaves a thin line of its own
            spans += [("band sure", shape.start_ns, shape.end_ns) for shape in band.shapes]
        elif band.sure:
            spans.append(("band sure", *band.sure))
        for class_, start_ns, end_ns in spans:
            x, right = scale(start_ns), scale(end_ns)
            parts.append(
                element("rect", class_=class_, x=x, y=top, width=max(right - x, 1.0), height=bottom - top)
            )
    return joined(parts)


@dataclass(frozen=True, slots=True)
class BandLabels:
    """The strip above a drawing with the names of the shaded faults; `height` depends on how many lanes it needs."""

    markup: Markup
    height: float


def band_labels(bands: Sequence[FaultBand], scale: Scale, top: float, lanes: int = 4) -> BandLabels:
    """One labelled bar a fault, put into lanes so that no two labels meet; a fault without a lane is only shaded."""
    free_from = [float("-inf")] * lanes
    parts, used = [], 0
    for band in sorted(bands, key=lambda band: band.start_ns):
        x, right = scale(band.start_ns), scale(band.end_ns)
        label = _label(band, scale)
        width = text_width(label, LABEL_SIZE) + 10
        left = max(scale.left, min(x, scale.right - width))
        lane = next((lane for lane in range(lanes) if free_from[lane] <= left), None)
        if lane is None:
            continue
        used = max(used, lane + 1)
        free_from[lane] = max(right, left + width) + 4
        parts.append(_labelled_bar(band, label, (x, right, left), top + lane * LANE_HEIGHT))
    return BandLabels(joined(parts), used * LANE_HEIGHT)


def _label(band: FaultBand, scale: Scale) -> str:
    """The name; if the fault began before the window also its start, because the drawing does not show it."""
    since = f" since {band.start_ns / 1e9:.2f} s" if band.start_ns < scale.start_ns else ""
    where = f" {', '.join(band.nodes)}" if band.nodes and not band.links else ""
    parts = parts_of(band.links) if band.does in CUTS and not band.shapes else ""
    where = where or (f" {parts}" if parts else "")
    clock = f" {band.clock.partition(',')[0]}" if band.clock else ""
    return band.name + where + clock + since + (" (took no effect)" if band.took_effect is False else "")


def _labelled_bar(band: FaultBand, label: str, place: tuple[float, float, float], y: float) -> Markup:
    x, right, left = place
    return element(
        "g",
        element("title", band.title),
        element(
            "rect", class_="band-bar", x=x, y=y + 1, width=max(right - x, 2.0), height=LANE_HEIGHT - 3, rx=2
        ),
        element("text", label, class_="band-label", x=left + 4, y=y + LANE_HEIGHT - 5),
        class_=f"fault {'idle' if band.took_effect is False else ''}".strip(),
    )


def evidence_words(band: FaultBand) -> str:
    """The counters and the detail of a fault's evidence in one line."""
    counters = as_mapping(band.evidence.get("counters"))
    pairs = list(counters.items())[:12]
    words = [f"{clipped(name, 40).replace('_', ' ')} {as_text(count, 30)}" for name, count in pairs]
    detail = as_text(band.evidence.get("detail"), 200)
    healed = {True: "healed", False: "not seen to heal", None: ""}[band.healed]
    return " · ".join(word for word in (*words, detail, healed) if word)
