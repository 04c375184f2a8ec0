"""The whole run over one time axis: latency (logarithmic), rate by outcome, and the state of every node.

Up to `POINTS_DRAWN` operations are points. Above that the drawing shows quantiles in slices of time, so that
its size does not grow with the history.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from markupsafe import Markup
from numpy.typing import NDArray

from harness.pages import node_states
from harness.pages.fault_bands import FaultBand
from harness.pages.material import Load, Material
from harness.pages.run_columns import INFO, OK, OUTCOMES, parts, slices_of
from harness.pages.svg import Scale, duration, element, joined
from harness.pages.time_lanes import GUTTER, RIGHT, TimeLanes, level

LATENCY_HEIGHT, RATE_HEIGHT = 170, 110
POINTS_DRAWN = 6_000
SLICES = 220
BINS_MS = (250, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000)
BINS_DRAWN = 180

Whole = NDArray[numpy.int64]


@dataclass(frozen=True, slots=True)
class LoadChart:
    """The drawing, and notes for the reader on its making."""

    markup: Markup
    caption: str


def load_chart(material: Material, bands: Sequence[FaultBand], witness: tuple[int, int] | None) -> LoadChart:
    """`witness` is the window of the first witness, marked on the axis to show its place in the run.

    Without times there is no drawing, because places in a file are neither latencies nor rates.
    """
    if not material.has_times:
        return LoadChart(Markup(""), "The record has no times, and so no latencies and no rates.")
    end_ns = max([material.end_ns, 1, *(band.end_ns for band in bands)])
    lanes = TimeLanes((0, end_ns), bands, fault_lanes=3)
    lanes.y = lanes.top + 20  # the panel's title stands above it
    latency, how = _latency(material.load, lanes.scale, lanes.y)
    lanes.add(latency, height=LATENCY_HEIGHT + 30)
    rate, bin_ns = _rate(material.load, lanes.scale, lanes.y)
    lanes.add(rate, height=RATE_HEIGHT + 10)
    lanes.add_nodes(node_states.stories(material, bands))
    if witness:
        lanes.add(_witness_mark(witness, lanes))
    return LoadChart(
        lanes.drawn("Latency, rate and node states over the whole run", "chart"),
        f"{how} Rate in slices of {duration(bin_ns)}, by the time of completion.",
    )


def _witness_mark(witness: tuple[int, int], lanes: TimeLanes) -> Markup:
    start, end = map(lanes.scale.moment, witness)
    x, right = map(lanes.scale, witness)
    at = {"x": x, "y": lanes.top, "width": max(right - x, 2.0), "height": lanes.y + 4 - lanes.top}
    title = element("title", f"the witness: {start} – {end}")
    return element("g", title, element("rect", class_="witness-window", **at))


def _latency(load: Load, scale: Scale, top: float) -> tuple[Markup, str]:
    ended = load.end_ns >= 0
    took_ns = load.end_ns[ended]
    took_ns -= load.start_ns[ended]
    latency_ns = numpy.maximum(took_ns, 1_000, out=took_ns)
    outcome = load.outcome[ended]
    title = element("text", "latency", class_="panel-title", x=0, y=top - 9)
    if not len(latency_ns):
        return joined([title, _empty("no operation ended", top + LATENCY_HEIGHT / 2)]), "No operation ended."
    decades = _decades(latency_ns)
    y = _LogScale(*decades, top)
    frame = _decade_lines(decades, y, scale)
    start_ns = load.start_ns[ended]
    if len(latency_ns) <= POINTS_DRAWN:
        order = numpy.argsort(load.complete[ended], kind="stable")
        groups = (order[outcome[order] == code] for code in range(len(OUTCOMES)))
        marks = joined(
            _points(start_ns[rows], latency_ns[rows], scale, y, word)
            for rows, word in zip(groups, OUTCOMES, strict=True)
        )
        return joined([title, frame, marks]), f"Latency of {len(latency_ns):,} operations, one point each."
    chosen = outcome == OK if (outcome == OK).any() else outcome >= 0
    start_ns, latency_ns = start_ns[chosen], latency_ns[chosen]
    marks = _quantiles(start_ns, latency_ns, scale, y)
    return joined([title, frame, marks]), (
        f"Latency of {int(chosen.sum()):,} operations is too much for points: downsampled to the median (line), "
        f"50–95 % and 95–99 % (shades) and the slowest (dots) in {SLICES} slices of time."
    )


class _LogScale:
    """Latency (ns) to y (px), higher is slower."""

    def __init__(self, low: int, high: int, top: float) -> None:
        self.low, self.high, self.top = low, high, top

    def __call__(self, latency_ns: float) -> float:
        part = (math.log10(max(latency_ns, 1)) - self.low) / (self.high - self.low)
        return self.top + LATENCY_HEIGHT * (1 - min(max(part, 0.0), 1.0))


def _decades(latency_ns: Whole) -> tuple[int, int]:
    low = math.floor(math.log10(int(latency_ns.min())))
    high = math.ceil(math.log10(int(latency_ns.max())))
    return low, max(high, low + 1)


def _decade_lines(decades: tuple[int, int], y: _LogScale, scale: Scale) -> Markup:
    parts = []
    step = max(1, math.ceil((decades[1] - decades[0]) / 6))
    for power in range(decades[0], decades[1] + 1, step):
        parts.append(level(scale, y(10**power), duration(10**power)))
    return joined(parts)


def _points(start_ns: Whole, latency_ns: Whole, scale: Scale, y: _LogScale, word: str) -> Markup:
    """All points of one outcome as one path of dots: ten bytes a point."""
    pairs = zip(start_ns.tolist(), latency_ns.tolist(), strict=True)
    path = "".join(f"M{scale(start):.1f} {y(latency):.1f}h0" for start, latency in pairs)
    return element("path", class_=f"dots {word}", d=path) if path else Markup("")


def _quantiles(start_ns: Whole, latency_ns: Whole, scale: Scale, y: _LogScale) -> Markup:
    slice_of = numpy.empty(len(start_ns), dtype=numpy.int16)
    for rows in parts(len(start_ns)):
        slice_of[rows] = slices_of(start_ns[rows], scale.end_ns, SLICES)
    heights: dict[float, list[float]] = {share: [] for share in (0.5, 0.95, 0.99, 1.0)}
    slices = numpy.unique(slice_of).tolist()
    for time_slice in slices:
        sorted_ns = numpy.sort(latency_ns[slice_of == time_slice])
        for share, ys in heights.items():
            ys.append(y(int(sorted_ns[min(int(len(sorted_ns) * share), len(sorted_ns) - 1)])))
    xs = [scale((number + 0.5) * scale.end_ns / SLICES) for number in slices]
    median = "M" + "L".join(f"{x:.1f} {height:.1f}" for x, height in zip(xs, heights[0.5], strict=True))
    slowest = "".join(f"M{x:.1f} {height:.1f}h0" for x, height in zip(xs, heights[1.0], strict=True))
    return joined(
        [
            element("path", class_="area wide", d=_area(xs, heights[0.95], heights[0.99])),
            element("path", class_="area", d=_area(xs, heights[0.5], heights[0.95])),
            element("path", class_="median", d=median),
            element("path", class_="dots ok", d=slowest),
        ]
    )


def _area(xs: Sequence[float], below: Sequence[float], above: Sequence[float]) -> str:
    there = [f"{x:.1f} {height:.1f}" for x, height in zip(xs, above, strict=True)]
    back = [f"{x:.1f} {height:.1f}" for x, height in zip(reversed(xs), reversed(below), strict=True)]
    return "M" + "L".join(there + back) + "Z"


def _rate(load: Load, scale: Scale, top: float) -> tuple[Markup, int]:
    hours = BINS_MS[-1] * math.ceil(scale.end_ns / (BINS_DRAWN * BINS_MS[-1] * 1e6))
    bin_ns = next((ms for ms in BINS_MS if scale.end_ns / (ms * 1e6) <= BINS_DRAWN), hours) * 1_000_000
    bin_ns = min(bin_ns, scale.end_ns)  # a shorter run has a higher rate than a whole slice would show
    title = element("text", "per second", class_="panel-title", x=0, y=top - 9)
    if not len(load):
        return joined([title, _empty("nothing was recorded", top + RATE_HEIGHT / 2)]), bin_ns
    number = -(-scale.end_ns // bin_ns)
    slice_of = numpy.where(load.end_ns >= 0, load.end_ns, load.start_ns) // bin_ns
    slice_of = numpy.minimum(slice_of, number - 1)  # what ends with the run belongs to its last slice
    counts = [numpy.bincount(slice_of[load.outcome == code], minlength=number) for code in range(INFO + 1)]
    highest = float(sum(counts).max()) / (bin_ns / 1e9)  # type: ignore[union-attr]
    step = _round_step(highest)
    limit = math.ceil(highest / step) * step
    parts = [title]
    for tick in range(0, limit + 1, step):
        parts.append(level(scale, top + RATE_HEIGHT * (1 - tick / limit), f"{tick:,}"))
    for place in range(number):
        parts.append(_stack([int(column[place]) for column in counts], place, bin_ns, scale, top, limit))
    return joined(parts), bin_ns


def _stack(counts: list[int], place: int, bin_ns: int, scale: Scale, top: float, limit: int) -> Markup:
    """One slice of time: ok at the bottom, then fail, then info, and a tooltip over all of it."""
    x, right = scale(place * bin_ns), scale((place + 1) * bin_ns)
    floor = top + RATE_HEIGHT
    parts = [
        element(
            "title",
            f"{scale.moment(place * bin_ns)} – {scale.moment((place + 1) * bin_ns)}\n"
            + ", ".join(f"{count:,} {word}" for count, word in zip(counts, OUTCOMES, strict=True)),
        ),
        element("rect", class_="catch", x=x, y=top, width=right - x, height=RATE_HEIGHT),
    ]
    for count, word in zip(counts, OUTCOMES, strict=True):
        height = count / (bin_ns / 1e9) / limit * RATE_HEIGHT
        if count:
            floor -= height
            width = max(right - x - 0.7, 0.5)
            parts.append(element("rect", class_=f"fill {word}", x=x, y=floor, width=width, height=height))
    return element("g", *parts)


def _round_step(highest: float) -> int:
    """A step of 1, 2 or 5 times a power of ten that gives three or four lines."""
    rough = max(highest / 3, 1)
    power = 10 ** math.floor(math.log10(rough))
    return int(next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough))


def _empty(words: str, y: float) -> Markup:
    return element("text", words, class_="empty", x=(GUTTER + RIGHT) / 2, y=y, text_anchor="middle")
