"""SVG elements as escaped markup, with the scales and ticks that every drawing needs.

`element("rect", x=1.5, class_="ok")` is `<rect x="1.5" class="ok"/>`. Attribute values and text are escaped; only
results of `element` go in as markup. Colours live in the page's style sheet, so that light, dark and
paper are one drawing.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

WIDTH = 1160
"""Of the drawings of a page, in pixels."""
TEXT_SIZE = 12
CHARACTER_WIDTH = 0.61
"""Of a monospaced font, in parts of its size; a hair more than the usual 0.60, so that estimates are safe."""


def element(name: str, *children: str, **attributes: object) -> Markup:
    """One element. `class_` is class, `stroke_width` is stroke-width; an attribute that is None is omitted."""
    written = "".join(
        f' {_attribute_name(key)}="{escape(_attribute_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = joined(children)
    return Markup(f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>")


def joined(parts: Iterable[str]) -> Markup:
    return Markup("".join(escape(part) for part in parts))


def whole_svg(
    size: tuple[float, float],
    title: str,
    *children: str,
    class_: str,
    role: str = "img",
    **attributes: object,
) -> Markup:
    """A whole SVG; `title` is for screen readers. One that is wider than the page keeps its width and scrolls."""
    width, height = size
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        class_=class_,
        width=None if width <= WIDTH else f"{width:.0f}",
        role=role,
        aria_label=title,
        **attributes,
    )


def text_width(text: str, size: float) -> float:
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return (len(text) + wide) * size * CHARACTER_WIDTH


@dataclass(slots=True)
class Texts:
    """Texts that do not overlap: (left, right, y) of those that stand."""

    taken: list[tuple[float, float, float]] = field(default_factory=list)

    def put(
        self, text: str, x: float, ys: Sequence[float], class_: str = "op-label", anchor: str = "middle"
    ) -> Markup:
        """At x (its middle, "start" or "end"), on the first of these heights that is free; empty if none is."""
        width = text_width(text, TEXT_SIZE)
        left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * width
        for y in ys:
            near = [(start, end) for start, end, other in self.taken if abs(y - other) <= TEXT_SIZE]
            if all(left + width < start or left > end for start, end in near):
                self.taken.append((left, left + width, y))
                return element("text", text, class_=class_, x=x, y=y, text_anchor=anchor)
        return Markup("")


def _attribute_name(key: str) -> str:
    return key if key in ("viewBox", "patternUnits", "textLength") else key.rstrip("_").replace("_", "-")


def _attribute_value(value: object) -> object:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value


@dataclass(frozen=True, slots=True)
class Scale:
    """Time (ns) to x (px); times outside are put on the edge."""

    start_ns: int
    end_ns: int
    left: float
    right: float
    has_times: bool = True
    """False of a log without times: then a place is the number of an event."""

    def moment(self, time_ns: float) -> str:
        return moment(time_ns, self.has_times)

    def ticks(self, count: int) -> list[tuple[int, str]]:
        """As `time_ticks`; in a log without times, with numbers of events as labels."""
        ticks = time_ticks(self.start_ns, self.end_ns, count)
        return ticks if self.has_times else [(place, f"#{place}") for place, _ in ticks]

    def __call__(self, time_ns: float) -> float:
        span_ns = max(self.end_ns - self.start_ns, 1)
        part = min(max((time_ns - self.start_ns) / span_ns, 0.0), 1.0)
        return self.left + part * (self.right - self.left)


def time_ticks(start_ns: int, end_ns: int, count: int) -> list[tuple[int, str]]:
    """About `count` round times between the two, with labels in one unit and enough decimals to distinguish them."""
    step_ns = _round_step_ns((end_ns - start_ns) / max(count, 1))
    first = -(-start_ns // step_ns) * step_ns
    return [(time_ns, _tick_label(time_ns, step_ns)) for time_ns in range(first, end_ns + 1, step_ns)]


def _round_step_ns(rough_ns: float) -> int:
    seconds = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400)
    if rough_ns > 86400e9:
        return math.ceil(rough_ns / 86400e9) * 86400 * 10**9
    if rough_ns > 1e9 / 2:
        return next(step for step in seconds if step * 1e9 >= rough_ns) * 10**9
    power = int(10 ** math.floor(math.log10(max(rough_ns, 1))))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough_ns)


def _tick_label(time_ns: int, step_ns: int) -> str:
    if step_ns < 1000:
        return f"#{time_ns}"  # no clock is as fine: a log without times, and places in it
    if step_ns >= 60 * 10**9:
        return f"{time_ns // (60 * 10**9)} min"
    decimals = max(0, 9 - int(math.log10(step_ns))) if step_ns < 10**9 else 0
    return f"{time_ns / 1e9:.{decimals}f} s"


def moment(time_ns: float, has_times: bool = True) -> str:
    """A point of time in a run: 3.412 s. In a log without times it is the number of an event."""
    return f"{time_ns / 1e9:,.3f} s" if has_times else f"event {time_ns:.0f}"


def duration(span_ns: float) -> str:
    """A length of time, to three digits or so: 340 µs, 1.2 ms, 2.31 s, 3 min 20 s."""
    if span_ns < 999.5e3:
        return f"{span_ns / 1e3:.0f} µs"
    if span_ns < 999.5e6:
        return f"{span_ns / 1e6:.3g} ms"
    if span_ns < 100e9:
        return f"{span_ns / 1e9:.3g} s"
    minutes, seconds = divmod(round(span_ns / 1e9), 60)
    return f"{minutes} min {seconds} s" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
