"""Fingerprints: the form of an anomaly without its values and times, so that two sightings can be recognized as one.

The fingerprint of a witness is made of

- the checker and the rule that was broken
- the shape of the witness: the kind of its last operation (a read, a mutation, a dump), and the role of the
  server that answered. The number of its operations and its phase depend on the seed and do not count
- the state around it: whether the queue's owner changed between the witness's first event and its last
- for a crash how the process ended, and in which function or with which last line: two different crashes differ

A run with several anomalies has several fingerprints; the one nearest to the cause leads, and groups runs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from checkers.history.history import History
from checkers.history.operation import Operation
from harness.causes import ranked

CRASHES = ("crash", "assertion", "out-of-memory")
_FRAME = re.compile(r"#\d+\s+(?:0x[0-9a-f]+ in )?([A-Za-z_]\w*)\+")
_OF_THE_HANDLER = ("print_backtrace", "sig_fatal", "sigaction", "restore_rt", "gsignal", "abort", "raise")
"""Frames of a stack that every death by a signal has."""
_LAST_WORDS = re.compile(r"(?<= F> ).+|^\w*(?:Error|Exception)\b.*")
"""A line that Tarantool marks as fatal, or the last line of a traceback."""
_HEXADECIMAL = re.compile(r"\b(?:0x[0-9a-f]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b", re.IGNORECASE)
"""Addresses and the ids of nodes."""
READS = frozenset({"read", "get", "r"})
DIGITS = 10
FRAMES = 2
WORDS_MAX = 120


@dataclass(frozen=True, slots=True)
class Sighting:
    """One witness: the `number`th of its checker. `shape` is the text that the fingerprint is the hash of."""

    checker: str
    rule: str
    number: int
    shape: str
    summary: str
    is_violation: bool = True

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.shape.encode()).hexdigest()[:DIGITS]


def sightings(verdict: Mapping[str, Any], history: History) -> list[Sighting]:
    """One for every witness in a verdict.json, the one nearest to the cause first (`harness.causes`)."""
    by_event = {index: operation for operation in history.operations for index in operation.events}
    return [
        Sighting(
            checker=each.checker,
            rule=each.rule,
            number=each.number,
            shape=_shape(each.checker, each.witness, by_event, history),
            summary=each.witness["summary"],
            is_violation=each.is_violation,
        )
        for each in ranked(verdict, once=False)
    ]


def _shape(
    checker: str, witness: Mapping[str, Any], by_event: Mapping[int, Operation], history: History
) -> str:
    operations = [by_event[index] for index in sorted(witness["events"]) if index in by_event]
    parts = [f"{checker}: {witness['rule']}"]
    if witness["rule"] in CRASHES:
        return ", ".join((*parts, *_end_of(witness)))
    if operations:
        parts.append(_kind(operations[-1]))
    start_ns, end_ns = witness.get("start_ns"), witness.get("end_ns")
    if start_ns is not None and end_ns is not None:
        parts.append("owner changed" if _owner_changed(history, start_ns, end_ns) else "one owner")
    return ", ".join(parts)


def _end_of(witness: Mapping[str, Any]) -> Iterator[str]:
    """How a process ended, and where, as far as it printed this; without numbers, which differ from run to run."""
    how = str(witness["summary"]).rpartition(": ")[2]
    yield how if witness["rule"] == "crash" else _without_numbers(how)
    lines = [str(line) for line in witness.get("explanation") or ()]
    frames = [found[1] for line in lines if (found := _FRAME.match(line.strip()))]
    frames = [name for name in frames if not any(word in name for word in _OF_THE_HANDLER)]
    if frames:
        yield "in " + " < ".join(frames[:FRAMES])
        return
    words = [found[0] for line in lines if (found := _LAST_WORDS.search(line))]
    if words:
        yield _without_numbers(words[-1])


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "N", _HEXADECIMAL.sub("N", text))[:WORDS_MAX]


def _kind(operation: Operation) -> str:
    what = "dump" if operation.f == "dump" else "read" if operation.f in READS else "mutation"
    return f"{what} at {operation.role}" if operation.role else what


def _owner_changed(history: History, start_ns: int, end_ns: int) -> bool:
    """Whether nodes named more than one owner as theirs from just before the window to its end."""
    before: dict[str, Any] = {}
    owners: list[Any] = []
    for state in history.states:
        owner = state.status.get("owner")
        if not owner or state.time_ns > end_ns:
            continue
        if state.time_ns < start_ns:
            before[state.node] = owner
        else:
            owners.append(owner)
    return len(_different([*before.values(), *owners])) > 1


def _different(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))
