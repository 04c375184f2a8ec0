"""A witness as a list in the order of time, for screens that are too narrow for its picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from checkers.history import Event, Operation
from checkers.history.values import many
from harness.pages.cause_and_effect import Moment
from harness.pages.fault_bands import FaultBand, within
from harness.pages.json_door import as_text, clipped
from harness.pages.operation_words import began, operation_label
from harness.pages.svg import duration, moment
from harness.pages.witness_timeline import Proof

FAULTS_MAX = 12


@dataclass(frozen=True, slots=True)
class Entry:
    """`kind` is the style: ok, fail, info, fault, event, cause or then. `index` is that of an operation, for a link."""

    time_ns: int
    at: str
    words: str
    kind: str
    index: int | None = None


def witness_list(
    shown: Proof, bands: Sequence[FaultBand], moments: Sequence[Moment], *, has_times: bool
) -> tuple[Entry, ...]:
    """The operations, the faults around them, and the lines of the monitor that a witness names.

    `moments`: the cause and its effects, for the leading witness alone; the sentence of the cause stands above.
    """
    entries = [_operation(each, shown.key) for each in shown.operations]
    entries += [_event(each, has_times) for each in shown.events]
    entries += [_moment_entry(each) for each in moments]
    start_ns = min([shown.start_ns, *(each.time_ns for each in moments)])
    end_ns = max([shown.end_ns, *(each.time_ns for each in moments)])
    around = within(bands, start_ns, end_ns)
    for band in around[:FAULTS_MAX]:
        entries += _fault(band, end_ns)
    entries.sort(key=lambda each: each.time_ns)
    if left := len(around[FAULTS_MAX:]):
        entries.append(
            Entry(end_ns, "", f"… and {many(left, 'more fault')}, in the table of faults", "fault")
        )
    return tuple(entries)


def _moment_entry(mark: Moment) -> Entry:
    place = f" at {mark.node}" if mark.node else ""
    summary = clipped(mark.summary.removeprefix(f"{mark.rule}: "), 200)
    words = f"{mark.kind}: {mark.rule}{place}" + ("" if mark.kind == "cause" else f": {summary}")
    return Entry(mark.time_ns, moment(mark.time_ns), words, mark.kind)


def _operation(operation: Operation, key: str | None) -> Entry:
    if operation.complete_ns is None:
        took = "no answer"
    elif not operation.has_times:
        took = operation.type
    else:
        took = f"{operation.type} after {duration(operation.complete_ns - operation.invoke_ns)}"
    words = f"process {operation.process}: {operation_label(operation, key)}, {took}"
    return Entry(operation.invoke_ns, began(operation), words, operation.type, operation.invoke_index)


def _event(event: Event, has_times: bool) -> Entry:
    words = f"{event.f} {event.node or ''} {as_text(event.value, 120)}"
    return Entry(event.time_ns, moment(event.time_ns, has_times), clipped(words, 200), "event")


def _fault(band: FaultBand, end_ns: int) -> list[Entry]:
    targets = clipped(band.targets, 80)
    effect = ", which takes no effect" if band.took_effect is False else ""
    entries = [Entry(band.start_ns, band.since, f"{band.name} {targets} begins{effect}".strip(), "fault")]
    if band.ended and band.end_ns <= end_ns:
        entries.append(Entry(band.end_ns, band.until, f"{band.name} ends", "fault"))
    return entries
