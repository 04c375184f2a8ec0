"""Set: an added element stays, and every later read shows it.

| f | value |
|---|---|
| add | the element; a key names the set if there are several |
| read | ok: [element, …], all of the set |

An element is *known* from when its add was answered, or from the first read that showed it (an add of unknown outcome
may take effect at any later time, or never). A read that was invoked later and lacks the element is *stale*; if all
reads that show the element had ended by then, it is *lost*. If there are final reads (phase "final"), only they decide
what is lost: each must show every element that was known before it. If the record says that the nodes had not settled,
this holds of those at the fixed owner alone. Otherwise reads at replicas count for what they show, not for what they
lack. An element is *never read* if no read showed it, and none that counts lacked it when it was known.

Rules: lost, duplicated (twice in one read), never-added, added-by-failure, before-its-add (the read ended before the
add was invoked); and stale, if not `stale_allowed`. The latencies in the details are, as in Jepsen's set-full, from the
moment an element was known to the moment it was in all reads (stable), or in none (lost).

Cost: linear in the elements of all reads. Cannot see: elements that were removed and added again between two reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from checkers.domain.begun import with_first_elements
from checkers.domain.proof import caught_up, is_judged, listed, shown, verdict
from checkers.history.history import History, by_key
from checkers.history.operation import Operation
from checkers.history.values import Value, identity, many
from checkers.verdict import Verdict, Witness, witness

NAME = "set-full"
MODEL = "what was added stays"
Reads = Callable[[str | None, str | None], bool]


@dataclass(slots=True)
class Element:
    """One element: its add, since when it was surely there, and the last reads that showed and that lacked it.

    `shown_index`: when the last read that showed it ended; `gone`: the read by which it is lost.
    """

    value: Value
    add: Operation
    known_index: int | None = None
    known_ns: int = 0
    present: Operation | None = None
    absent: Operation | None = None
    shown_index: int = -1
    gone: Operation | None = None

    @property
    def missed(self) -> Operation | None:
        """The last read that was invoked when the element was known, and lacked it."""
        if self.known_index is None or self.absent is None or self.absent.invoke_index < self.known_index:
            return None
        return self.absent

    @property
    def never_read(self) -> bool:
        return self.known_index is not None and self.missed is None and self.present is None

    @property
    def latency_ms(self) -> float:
        """From known to the invocation of the last read that lacked it; if it is lost, of the last that showed it."""
        last = self.missed if self.gone is None else self.present
        return 0.0 if last is None else max(0.0, (last.invoke_ns - self.known_ns) / 1e6)


def check(
    history: History,
    *,
    stale_allowed: bool = True,
    reads: Reads = lambda role, mode: role != "replica",
) -> Verdict:
    """Whether every element that was surely added is there. Raises ModelError for a read that shows no list.

    `reads(role, mode)`: which reads count for what they lack, too; those of replicas may be old.
    `details`: added, known, lost, stale, never_read, stable_ms and lost_ms (median, p99, max), findings.
    """
    begun = with_first_elements(history, "add")
    operations = [each for each in begun.select(f=("add", "read")) if each.f == "add" or is_judged(each)]
    witnesses: list[Witness] = []
    elements: list[Element] = []
    count = 0
    is_complete = caught_up(history)
    for key, of_key in by_key(operations).items():
        shows = [
            (each, [*map(identity, listed(each))])
            for each in of_key
            if each.f == "read" and each.type == "ok"
        ]
        adds = [each for each in of_key if each.f == "add"]
        of_set = _elements(adds, shows, reads)
        witnesses += _from_nowhere(key, adds, shows)
        witnesses += _lost(
            key, of_set, [each for each in shows if each[0].phase == "final" and is_complete(each[0])]
        )
        if not stale_allowed:
            witnesses += _stale(key, of_set)
        elements += of_set
        count += len(shows)
    return _verdict(witnesses, elements, count)


Shows = Sequence[tuple[Operation, Sequence[Value]]]


def _elements(adds: Sequence[Operation], shows: Shows, reads: Reads) -> list[Element]:
    elements: dict[Value, Element] = {}
    for add in adds:
        if add.type == "fail":
            continue
        value, end = identity(add.value), add.returned_index
        element = elements.setdefault(value, Element(value, add))
        if end is not None and (element.known_index is None or end < element.known_index):
            element.add, element.known_index, element.known_ns = add, end, add.complete_ns or 0
    for read, values in sorted(shows, key=lambda show: show[0].complete_index or 0):
        for value in values:
            if (element_shown := elements.get(value)) is None:
                continue
            element_shown.shown_index = end = read.complete_index or 0
            if element_shown.known_index is None or end < element_shown.known_index:
                element_shown.known_index, element_shown.known_ns = end, read.complete_ns or 0
    _note_last(elements, shows, reads)
    return list(elements.values())


def _note_last(elements: Mapping[Value, Element], shows: Shows, reads: Reads) -> None:
    """Walk the reads from the last invoked to the first; stop looking at an element once it is settled."""
    always = dict.fromkeys(elements)
    unseen = dict.fromkeys(elements)
    # From behind: the first hit is the last read that showed it, or lacked it.
    for read, values in sorted(shows, key=lambda show: show[0].invoke_index, reverse=True):
        there = set(values)
        lacking = [value for value in always if value not in there] if reads(read.role, read.mode) else []
        for value in lacking:
            elements[value].absent = read
            del always[value]
        for value in there:
            if value in unseen:
                elements[value].present = read
                del unseen[value]


def _from_nowhere(key: str | None, adds: Sequence[Operation], shows: Shows) -> Iterator[Witness]:
    asked: dict[Value, Operation] = {}
    for add in adds:
        if add.type != "fail":
            asked.setdefault(identity(add.value), add)
    failed = {identity(add.value): add for add in adds if add.type == "fail"}
    for read, values in shows:
        there: set[Value] = set()
        for value in values:
            sentence = f"a read by process {read.process} showed {shown(value)}"
            if value in there:
                yield witness("duplicated", f"{sentence} twice", [read], key=key, node=read.node)
            elif value not in asked and value in failed:
                summary = f"{sentence}, although its add had surely failed"
                yield witness("added-by-failure", summary, [failed[value], read], key=key, node=read.node)
            elif value not in asked:
                yield witness(
                    "never-added", f"{sentence}, which was never added", [read], key=key, node=read.node
                )
            elif read.precedes(asked[value]):
                summary = f"{sentence}, which was added only later"
                yield witness("before-its-add", summary, [read, asked[value]], key=key, node=read.node)
            there.add(value)


def _lost(key: str | None, elements: Sequence[Element], finals: Shows) -> Iterator[Witness]:
    final = [(read, set(values)) for read, values in finals]
    for element in elements:
        missing, present = element.missed, element.present
        if final:
            missing = next((read for read, there in final if _lacks(element, read, there)), None)
        elif missing is not None and element.shown_index > missing.invoke_index:
            missing = None  # stale: the other may have come later
        element.gone = missing
        if missing is not None:
            is_ok = element.add.type == "ok"
            known = "acknowledged" if is_ok else "seen, though its add was never acknowledged"
            summary = f"{shown(element.value)} was {known}, and is gone in a later read"
            summary += f" at {missing.node}" if missing.node else ""
            named = [operation for operation in (element.add, present, missing) if operation is not None]
            yield witness("lost", summary, named, key=key, node=missing.node)


def _lacks(element: Element, read: Operation, there: set[Value]) -> bool:
    known = element.known_index is not None and element.known_index < read.invoke_index
    return known and element.value not in there


def _stale(key: str | None, elements: Sequence[Element]) -> Iterator[Witness]:
    for element in elements:
        missed = element.missed
        if missed is not None and element.gone is None:
            summary = (
                f"a read asked {element.latency_ms:.1f} ms after {shown(element.value)} was there lacks it"
            )
            yield witness("stale", summary, [element.add, missed], key=key, node=missed.node)


def _verdict(witnesses: list[Witness], elements: Sequence[Element], reads: int) -> Verdict:
    known = [element for element in elements if element.known_index is not None]
    lost = [element for element in known if element.gone is not None]
    there = [element for element in known if element.gone is None and not element.never_read]
    stale = [element for element in there if element.missed is not None]
    never = len(known) - len(lost) - len(there)
    details: dict[str, Any] = {
        "added": len(elements),
        "known": len(known),
        "reads": reads,
        "lost": len(lost),
        "stale": len(stale),
        "never_read": never,
        "stable_ms": _spread([element.latency_ms for element in there]),
        "lost_ms": _spread([element.latency_ms for element in lost]),
        "findings": [],
    }
    if stale:
        worst = max(element.latency_ms for element in stale)
        details["findings"] = [
            f"missing from a later read, for up to {worst:.1f} ms: {many(len(stale), 'element')}"
        ]
    if never:
        details["findings"] = [
            *details["findings"],
            f"never read, so nothing is known of them: {many(never, 'element')}",
        ]
    valid = f"no element was lost ({many(len(known), 'element')}, {many(reads, 'read')})"
    return verdict(NAME, MODEL, witnesses, details, judged=reads and len(lost) + len(there), valid=valid)


def _spread(latencies_ms: list[float]) -> dict[str, float]:
    if not latencies_ms:
        return {}
    ordered = sorted(latencies_ms)
    places = {"median": len(ordered) // 2, "p99": len(ordered) * 99 // 100, "max": len(ordered) - 1}
    return {name: round(ordered[place], 3) for name, place in places.items()}
