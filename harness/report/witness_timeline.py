"""The witness drawn to scale: a row a process, a lane a node, the faults behind.

A bar reaches from invocation to completion. An operation of which nobody knows the end fades out: after its
timeout if the client told one, else up to the right edge. Around the operations that prove the anomaly stand,
fainter, others on the same key. Labels never overlap: what would collide within a process goes one line down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from checkers.history import Event, Operation
from harness.report import node_states
from harness.report.fault_bands import FaultBand, band_labels, shades, within
from harness.report.json_door import Json, as_list, as_mapping, as_text, as_time_ns, clipped
from harness.report.material import Material, witness_indexes
from harness.report.svg import Scale, drawing, duration, element, joined, moment, text_width, time_ticks

WIDTH, GUTTER, RIGHT = 1160, 92, 1148
LINE_HEIGHT, BAR_HEIGHT, LABEL_SIZE = 25, 19, 12
TAIL = 110
OPERATIONS_DRAWN = 120
NEIGHBOURS_DRAWN = 16
ROWS_WITH_NEIGHBOURS = 7


@dataclass(frozen=True, slots=True)
class Proof:
    """A witness with what it names looked up: the operations, the other lines, and the time that shows them."""

    operations: tuple[Operation, ...]
    events: tuple[Event, ...]
    key: str | None
    start_ns: int
    end_ns: int
    left_out: int


def proof(material: Material, witness: Json, bands: Sequence[FaultBand]) -> Proof:
    """Looks the witness's indexes up; the window is a little wider than what it shows."""
    indexes = witness_indexes(witness)
    named = {op.invoke_index: op for index in indexes if (op := material.operations.get(index))}
    operations = sorted(named.values(), key=lambda operation: operation.invoke_index)
    told = (event for event in (*material.nemesis, *material.monitor, *material.harness))
    wanted = set(indexes)
    events = tuple(event for event in told if event.index in wanted)
    start_ns, end_ns = _window(operations, events, witness, material.end_ns)
    key = witness.get("key")
    half = OPERATIONS_DRAWN // 2
    shown = operations if len(operations) <= 2 * half else operations[:half] + operations[-half:]
    start_ns, end_ns = _reaching_to_edges(start_ns, end_ns, bands)
    return Proof(
        tuple(shown),
        tuple(event for event in events if event.process != "nemesis"),
        key if isinstance(key, str) else None,
        start_ns,
        end_ns,
        len(operations) - len(shown),
    )


def _window(
    operations: Sequence[Operation], events: Sequence[Event], witness: Json, run_end_ns: int
) -> tuple[int, int]:
    times = [op.invoke_ns for op in operations] + [event.time_ns for event in events]
    times += [op.complete_ns for op in operations if op.complete_ns is not None]
    told = (as_time_ns(witness.get("start_ns")), as_time_ns(witness.get("end_ns")))
    if not times:
        times = [time_ns for time_ns in told if time_ns is not None] or [0, run_end_ns]
    start_ns, end_ns = min(times), max(times)
    margin_ns = max((end_ns - start_ns) // 12, 500_000)
    return max(start_ns - margin_ns, 0), end_ns + margin_ns


def _reaching_to_edges(start_ns: int, end_ns: int, bands: Sequence[FaultBand]) -> tuple[int, int]:
    """Wider, if a little more time also shows a fault's beginning or end."""
    span_ns = end_ns - start_ns
    for band in within(bands, start_ns, end_ns):
        if start_ns - span_ns // 2 <= band.start_ns < start_ns:
            start_ns = max(band.start_ns - span_ns // 20, 0)
        if end_ns < band.end_ns <= end_ns + span_ns // 4:
            end_ns = band.end_ns + span_ns // 20
    return start_ns, end_ns


def timeline(material: Material, shown: Proof, bands: Sequence[FaultBand]) -> Markup:
    scale = Scale(shown.start_ns, shown.end_ns, GUTTER, RIGHT)
    near = within(bands, shown.start_ns, shown.end_ns)
    strip = band_labels(near, scale, 2)
    top = strip.height + 8
    rows, y = _rows(shown, _neighbours(material, shown), scale, top)
    lanes, bottom = _lanes(material, shown, bands, scale, y + 8)
    return drawing(
        (WIDTH, bottom + 24),
        "Timeline of the operations that prove the anomaly",
        scale,
        shades(near, scale, strip.height + 2, bottom),
        _axis(scale, strip.height + 2, bottom),
        strip.markup,
        element("line", class_="rule-line", x1=0, x2=RIGHT, y1=y + 4, y2=y + 4),
        lanes,
        rows,
        class_="timeline",
    )


def _axis(scale: Scale, top: float, bottom: float) -> Markup:
    parts = []
    for time_ns, label in time_ticks(scale.start_ns, scale.end_ns, 12):
        x = scale(time_ns)
        parts.append(element("line", class_="grid", x1=x, x2=x, y1=top, y2=bottom))
        if scale.left + 20 <= x <= scale.right - 20:
            parts.append(element("text", label, class_="tick", x=x, y=bottom + 16, text_anchor="middle"))
    return joined(parts)


def _neighbours(material: Material, shown: Proof) -> list[Operation]:
    """What else happened to the key then: the nearest few, of few processes, without what surely did nothing."""
    rows = {op.process for op in shown.operations}
    centre_ns = (shown.start_ns + shown.end_ns) // 2
    near = [
        op
        for op in material.neighbours
        if op.key == shown.key
        and op.invoke_ns <= shown.end_ns
        and (op.complete_ns is None or op.complete_ns >= shown.start_ns)
        and not (op.type == "fail" and op.error != "mismatch")
    ]
    found: list[Operation] = []
    for operation in sorted(near, key=lambda op: abs(op.invoke_ns - centre_ns)):
        new = operation.process not in rows
        if len(found) == NEIGHBOURS_DRAWN or (new and len(rows) >= ROWS_WITH_NEIGHBOURS):
            continue
        rows.add(operation.process)
        found.append(operation)
    return found


@dataclass(frozen=True, slots=True)
class _Bar:
    """One drawn thing of a row and the room that it takes with its label."""

    markup_class: str
    title: str
    label: str
    start: float
    end: float
    tail: float
    label_x: float
    anchor: str
    left: float
    right: float


def _rows(shown: Proof, neighbours: Sequence[Operation], scale: Scale, y: float) -> tuple[Markup, float]:
    bars = [(str(op.process), 0, _bar(op, shown, scale, True)) for op in shown.operations]
    bars += [(str(op.process), 1, _bar(op, shown, scale, False)) for op in neighbours]
    first = {process: order for order, (process, _, _) in reversed(list(enumerate(bars)))}
    bars.sort(key=lambda entry: (first[entry[0]], entry[2].left))
    parts = [_event_row(shown.events, scale, y)] if shown.events else []
    y += LINE_HEIGHT if shown.events else 0
    for process, entries in groupby(bars, key=lambda entry: entry[0]):
        row, y = _row(f"process {process}", [bar for _, _, bar in entries], y)
        parts.append(row)
    return joined(parts), y


def _row(name: str, bars: Sequence[_Bar], y: float) -> tuple[Markup, float]:
    """The bars of one process, in as many lines as their labels need."""
    free_from: list[float] = []
    parts = [element("text", clipped(name, 13), class_="row-label", x=0, y=y + 16)]
    for bar in bars:
        line = next((line for line, free in enumerate(free_from) if free <= bar.left), len(free_from))
        free_from[line : line + 1] = [bar.right + 6]
        parts.append(_drawn(bar, y + line * LINE_HEIGHT))
    return joined(parts), y + max(len(free_from), 1) * LINE_HEIGHT


def _bar(operation: Operation, shown: Proof, scale: Scale, proves: bool) -> _Bar:
    start, returned_ns = scale(operation.invoke_ns), operation.complete_ns
    end = start + 4 if returned_ns is None else max(scale(returned_ns), start + 4)
    tail = end
    if operation.type == "info":
        tail = scale.right if returned_ns is None else min(end + TAIL, scale.right)
    label = operation_label(operation, shown.key)
    width = text_width(label, LABEL_SIZE)
    room = tail if returned_ns is None else end
    if width + 12 <= room - start:
        label_x, anchor, left, right = start + 6, "start", start, tail
    elif end + 6 + width <= WIDTH:
        label_x, anchor, left, right = end + 6, "start", start, max(end + 6 + width, tail)
    else:
        label_x, anchor, left, right = start - 6, "end", start - 6 - width, tail
    kind = f"op {operation.type}" + ("" if proves else " near")
    return _Bar(kind, operation_title(operation), label, start, end, tail, label_x, anchor, left, right)


def _drawn(bar: _Bar, y: float) -> Markup:
    parts = [element("title", bar.title)]
    place: dict[str, object] = {"y": y + 3, "height": BAR_HEIGHT}
    if bar.tail > bar.end:
        parts.append(
            element("rect", class_="tail", fill="url(#fade)", x=bar.end, width=bar.tail - bar.end, **place)
        )
    parts.append(element("rect", class_="bar", x=bar.start, width=bar.end - bar.start, rx=2.5, **place))
    anchor = None if bar.anchor == "start" else bar.anchor
    parts.append(element("text", bar.label, class_="op-label", x=bar.label_x, y=y + 17, text_anchor=anchor))
    return element("g", *parts, class_=bar.markup_class)


def _event_row(events: Sequence[Event], scale: Scale, y: float) -> Markup:
    """Lines of the monitor and the harness that a witness names (a crash, a stall): a mark and a word each."""
    parts = [element("text", "events", class_="row-label", x=0, y=y + 16)]
    free_from = float("-inf")
    for event in sorted(events, key=lambda event: event.time_ns)[:40]:
        x = scale(event.time_ns)
        label = clipped(f"{event.f} {event.node or ''} {as_text(event.value, 40)}", 48)
        fits = x - 5 >= free_from and x + 9 + text_width(label, LABEL_SIZE) <= WIDTH
        text = element("text", label, class_="op-label", x=x + 9, y=y + 17) if fits else ""
        free_from = x + 9 + text_width(label, LABEL_SIZE) + 8 if fits else free_from
        mark = element("path", class_="mark", d=f"M{x - 5:.1f} {y + 8:.1f}l10 10m0 -10l-10 10")
        parts.append(
            element(
                "g",
                element("title", f"{label}\n{moment(event.time_ns)}"),
                mark,
                text,
                class_=f"event {'crash' if event.f == 'crash' else ''}".strip(),
            )
        )
    return joined(parts)


def _lanes(
    material: Material, shown: Proof, bands: Sequence[FaultBand], scale: Scale, y: float
) -> tuple[Markup, float]:
    parts = []
    for node in material.nodes:
        story = node_states.node_story(node, material.monitor, bands)
        parts.append(element("text", clipped(node, 13), class_="row-label", x=0, y=y + 15))
        parts.append(node_states.lane(story.stretches(shown.start_ns, shown.end_ns), scale, y))
        y += node_states.LANE_HEIGHT
    return joined(parts), y + 4


def operation_label(operation: Operation, key: str | None) -> str:
    """`write 7 · n1`, `read → 3 · n2`, `cas 3→7 ✗ mismatch · n1`; with its key unless all are about `key`."""
    words = f"{clipped(operation.f, 24)} {operation_value(operation, 24, key)}".rstrip()
    if operation.f == "dump" and key is not None:
        words = f"dump {clipped(key, 16)} = {operation_value(operation, 24, key)}"
    if operation.type == "fail":
        words += f" ✗ {as_text(operation.error, 24)}".rstrip()
    if key is None and operation.key is not None:
        words = f"{clipped(operation.key, 16)}: {words}"
    return f"{words} · {clipped(operation.node, 16)}" if operation.node else words


def operation_value(operation: Operation, limit: int, key: str | None = None) -> str:
    """What was written, `→ 3` for what was read (∅: nothing was there), `3→7` for a compare-and-set."""
    match operation.f:
        case "read" if operation.type == "ok":
            return f"→ {_or_nothing(operation.value, limit)}"
        case "read":
            return "→ ?" if operation.type == "info" else ""
        case "cas" if len(pair := as_list(operation.value)) == 2:
            return f"{_or_nothing(pair[0], limit)}→{_or_nothing(pair[1], limit)}"
        case "dump" if key is not None:
            return _dumped(operation.value, key, limit)
        case _:
            return as_text(operation.value, limit)


def _or_nothing(value: object, limit: int) -> str:
    return "∅" if value is None else as_text(value, limit)


def _dumped(value: object, key: str, limit: int) -> str:
    """What a dump says of one key, in whichever space has it."""
    for rows in as_mapping(as_mapping(value).get("spaces")).values():
        for row in map(as_list, as_list(rows)):
            if len(row) > 1 and row[0] == key:
                return _or_nothing(row[1], limit)
    return "∅"


def operation_title(operation: Operation) -> str:
    """The tooltip: everything that the history says of the operation."""
    where = [f"process {operation.process}", f"at {operation.node}" if operation.node else ""]
    where += [f"which said it was {operation.role}" if operation.role else "", as_text(operation.mode, 30)]
    lines = [
        f"{operation.f} {as_text(operation.key, 40)} {operation_value(operation, 120)}",
        ", ".join(part for part in where if part),
    ]
    if operation.complete_ns is None:
        lines.append(f"invoked at {moment(operation.invoke_ns)}; no answer was recorded")
    else:
        took = duration(operation.complete_ns - operation.invoke_ns)
        lines.append(f"{moment(operation.invoke_ns)} – {moment(operation.complete_ns)} ({took})")
        lines.append(f"{operation.type} {as_text(operation.error, 120)}".rstrip())
    return "\n".join(lines)
