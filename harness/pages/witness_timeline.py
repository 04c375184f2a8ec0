"""The witness drawn to scale: a row a process, a lane a node, the faults behind.

A bar reaches from invocation to completion. The bar of an operation of unknown outcome fades out: after its timeout if
the client reported one, else up to the right edge. More operations on the same key stand, fainter, around those that
prove the anomaly (`operation_rows` finds the places).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from checkers.history import Event, Operation
from harness.pages import node_states
from harness.pages.fault_bands import FaultBand, within
from harness.pages.json_door import Json, as_mapping, as_text, as_time_ns, clipped
from harness.pages.material import Material, witness_indexes
from harness.pages.operation_rows import LABEL_SIZE, LINE_HEIGHT, operation_rows
from harness.pages.svg import WIDTH, Scale, element, joined, text_width
from harness.pages.time_lanes import RIGHT, TimeLanes, lane_name

OPERATIONS_DRAWN, EVENTS_DRAWN = 120, 40
BEFORE_NS, AFTER_NS = 5_000_000_000, 1_000_000_000
"""The drawn interval around an event that no operation belongs to, in a record with real times."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A witness with its operations, its remaining lines by time, and the window of time that shows them."""

    operations: tuple[Operation, ...]
    events: tuple[Event, ...]
    key: str | None
    start_ns: int
    end_ns: int
    left_out: int
    events_left_out: int


def proof(material: Material, witness: Json, bands: Sequence[FaultBand]) -> Proof:
    """The operations and lines that the witness names, in a window a little wider than they are."""
    indexes = dict.fromkeys(witness_indexes(witness))
    named = {op.invoke_index: op for index in indexes if (op := material.operations.get(index))}
    operations = sorted(named.values(), key=lambda operation: operation.invoke_index)
    lines = (*material.nemesis, *material.monitor, *material.harness)
    events = tuple(event for event in lines if event.index in indexes)
    start_ns, end_ns = window(operations, events, witness, material.end_ns)
    beside = sorted((each for each in events if each.process != "nemesis"), key=lambda each: each.time_ns)
    key = witness.get("key")
    half = OPERATIONS_DRAWN // 2
    shown = operations if len(operations) <= 2 * half else operations[:half] + operations[-half:]
    start_ns, end_ns = _reaching_to_edges(start_ns, end_ns, bands)
    return Proof(
        tuple(shown),
        tuple(beside[:EVENTS_DRAWN]),
        key if isinstance(key, str) else None,
        start_ns,
        end_ns,
        len(operations) - len(shown),
        len(beside[EVENTS_DRAWN:]),
    )


def window(
    operations: Sequence[Operation], events: Sequence[Event], witness: Json, run_end_ns: int
) -> tuple[int, int]:
    """(start_ns, end_ns) of the drawing, a little wider than the proof; no wider than a short record needs.

    An event of one node, such as a crash, is shown with the time before it.
    """
    times = [op.invoke_ns for op in operations] + [event.time_ns for event in events]
    times += [op.complete_ns for op in operations if op.complete_ns is not None]
    named = (as_time_ns(witness.get("start_ns")), as_time_ns(witness.get("end_ns")))
    if not times:
        times = [time_ns for time_ns in named if time_ns is not None] or [0, run_end_ns]
    start_ns, end_ns = min(times), max(times)
    if events and not operations and run_end_ns >= AFTER_NS:
        return max(start_ns - BEFORE_NS, 0), max(min(end_ns + AFTER_NS, run_end_ns), end_ns + 1)
    least_ns = min(500_000, run_end_ns // 12)  # some records have no times: lines count as nanoseconds
    margin_ns = max((end_ns - start_ns) // 12, least_ns, 1)
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


@dataclass(frozen=True, slots=True)
class Timeline:
    """The drawing, and how many more operations on the key found no room in it."""

    markup: Markup
    neighbours_left_out: int


def timeline(material: Material, shown: Proof, bands: Sequence[FaultBand]) -> Timeline:
    lanes = TimeLanes((shown.start_ns, shown.end_ns), bands, has_times=material.has_times)
    if shown.events:
        lanes.add(_event_row(shown.events, lanes.scale, lanes.y), height=LINE_HEIGHT)
    rows = operation_rows(shown.operations, _near(material, shown), shown.key, lanes.scale)
    lanes.add(rows.drawn(lanes.y), height=rows.height)
    lanes.add(element("line", class_="rule-line", x1=0, x2=RIGHT, y1=lanes.y + 4, y2=lanes.y + 4), height=8)
    lanes.add_nodes(node_states.stories(material, bands))
    drawing = lanes.drawn("Timeline of the operations that prove the anomaly", "timeline")
    return Timeline(drawing, rows.left_out)


def _near(material: Material, shown: Proof) -> list[Operation]:
    """More operations on the key at that time, nearest to the proof first, without those that surely did nothing."""
    near = [
        op
        for op in material.neighbours
        if op.key == shown.key
        and op.invoke_ns <= shown.end_ns
        and (op.complete_ns is None or op.complete_ns >= shown.start_ns)
        and not (op.type == "fail" and op.error != "mismatch" and not op.found_nothing)
    ]
    moments = [op.invoke_ns for op in shown.operations] or [shown.start_ns]
    return sorted(near, key=lambda op: min(abs(op.invoke_ns - moment_ns) for moment_ns in moments))


def _event_row(events: Sequence[Event], scale: Scale, y: float) -> Markup:
    """Lines of the monitor and the harness that a witness names (a crash, a stall): a mark and a word each."""
    parts = [lane_name("events", y + 1)]
    free_from = float("-inf")
    for event in events:
        x = scale(event.time_ns)
        label = clipped(f"{event.f} {event.node or ''} {_words(event)}", 64)
        fits = x - 5 >= free_from and x + 9 + text_width(label, LABEL_SIZE) <= WIDTH
        text = element("text", label, class_="op-label", x=x + 9, y=y + 17) if fits else ""
        free_from = x + 9 + text_width(label, LABEL_SIZE) + 8 if fits else free_from
        mark = element("path", class_="mark", d=f"M{x - 5:.1f} {y + 8:.1f}l10 10m0 -10l-10 10")
        parts.append(
            element(
                "g",
                element("title", f"{label}\n{scale.moment(event.time_ns)}"),
                mark,
                text,
                class_=f"event {'crash' if event.f == 'crash' else ''}".strip(),
            )
        )
    return joined(parts)


def _words(event: Event) -> str:
    """How a node ended; the role and vclock of a node; else the text of the line."""
    value = as_mapping(event.value)
    if event.f == "crash":
        return as_text(value.get("how"), 40)
    if event.f == "state" and "vclock" in value:
        return f"{as_text(value.get('role'), 12)} at vclock {as_text(value.get('vclock'), 40)}"
    return as_text(event.value, 40)
