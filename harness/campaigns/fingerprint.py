"""Fingerprints: the form of an anomaly without its values and times, so that two sightings can be recognized as one.

A run has one fingerprint for each cause: for the witness that leads (`harness.judge.causes`), and for each further one
that cannot have followed from it. Consequences have none of their own. The fingerprint is made of

- the version of the form, `FORM`: the same anomaly has different fingerprints under different forms
- the checker and the rule that was broken
- how it was broken, where the checker says so (`Witness.how`): of all witnesses of the rule the first by the alphabet,
  because the first one in time depends on the seed
- elsewhere the shape of the witness: the kind of its last operation (a read, a mutation, a dump) and the role of the
  server that answered, where it tells something. The number of its operations, its phase and changes of the owner
  depend on the seed and do not count
- for a crash how the process ended, and in which function or with which last line: two different crashes differ
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from checkers.history.history import History
from checkers.history.operation import Operation
from harness.judge.causes import SETTLED, RankedWitness, own_causes, ranked

CRASHES = ("crash", "assertion", "out-of-memory")
_FRAME = re.compile(r"#\d+\s+(?:0x[0-9a-f]+ in )?([A-Za-z_]\w*)\+")
_OF_THE_HANDLER = re.compile(
    r"print_backtrace|sig_fatal_cb|_ZL?15print_backtrace\w*|_ZL?12sig_fatal_cb\w*"
    r"|_*(?:(?:GI|libc)_+)?(?:sigaction|restore_rt|gsignal|raise|abort|assert_fail(?:_base)?)"
    r"|_*pthread_kill(?:_implementation|_internal)?"
)
"""Whole names of frames that every death by a signal has. A store's own functions may contain the same words."""
_LAST_WORDS = re.compile(r"(?<= F> ).+|^[\w.]*(?:Error|Exception)\b.*")
"""A line that Tarantool marks as fatal, or the last line of a traceback of which the beginning is not there."""
_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(r"[\w.<>]+(?:: .*)?$")
"""The last line of a traceback: the exception's name, whatever it ends with, with its module unless it is built in."""
_HEXADECIMAL = re.compile(r"\b(?:0x[0-9a-f]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b", re.IGNORECASE)
"""Addresses and the ids of nodes."""
FORM = 2
SAID_OF_TERMS = ("term-not-durable", "vote-not-durable")
"""Rules of a node that claims terms which its disk does not hold. If it claims rows as well, its disk is the cause."""
OF_TRANSACTIONS = ("transactional", "snapshots")
NO_ORDER = ("lost-update", "incompatible-order", "fractured-read", "G0", "G1c", "G2", "G-")
"""Prefixes of the rules of which one cause breaks one or another, by the transactions that happen to meet."""
SEEN_ANYWHERE = ("bank",)
"""Checks that find what a write has spoilt: which server is read first afterwards depends on the seed."""
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

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(f"{FORM}: {self.shape}".encode()).hexdigest()[:DIGITS]


def sightings(verdict: Mapping[str, Any], history: History) -> list[Sighting]:
    """A sighting for every witness in a verdict.json, the one nearest to the cause first."""
    return _sightings(ranked(verdict, once=False), history)


def causes(verdict: Mapping[str, Any], history: History) -> list[Sighting]:
    """A sighting for each cause of the anomaly, the leading one first."""
    return _sightings(own_causes(verdict), history)


def _sightings(witnesses: Iterable[RankedWitness], history: History) -> list[Sighting]:
    by_event = {index: operation for operation in history.operations for index in operation.events}
    return [
        Sighting(witness.checker, witness.rule, witness.number, _shape(witness, by_event))
        for witness in witnesses
    ]


def _shape(witness: RankedWitness, by_event: Mapping[int, Operation]) -> str:
    content, rules = witness.witness, [other["rule"] for other in witness.check["witnesses"]]
    if witness.checker.removesuffix(SETTLED) in OF_TRANSACTIONS:
        return f"transactions: {'no order' if witness.rule.startswith(NO_ORDER) else witness.rule}"
    parts = [f"{witness.checker}: {witness.rule}"]
    if witness.rule in CRASHES:
        return ", ".join((*parts, *_end_of(content)))
    if witness.rule in SAID_OF_TERMS and "claimed-before-durable" in rules:
        return ", ".join((*parts, "and rows as well"))
    ways = [other.get("how") for other in witness.check["witnesses"] if other["rule"] == witness.rule]
    if ways := [how for how in ways if how]:
        return ", ".join((*parts, min(ways)))
    operations = [by_event[index] for index in sorted(content["events"]) if index in by_event]
    if operations:
        parts.append(_kind(operations[-1], anywhere=witness.checker in SEEN_ANYWHERE))
    return ", ".join(parts)


def _end_of(witness: Mapping[str, Any]) -> Iterator[str]:
    """How a process ended, and where, as far as it printed this; without numbers, which differ from run to run."""
    how = str(witness["summary"]).rpartition(": ")[2]
    yield how if witness["rule"] == "crash" else _without_numbers(how)
    lines = [str(line) for line in witness.get("explanation") or ()]
    frames = [match[1] for line in lines if (match := _FRAME.match(line.strip()))]
    frames = [name for name in frames if not _OF_THE_HANDLER.fullmatch(name)]
    if frames:
        yield "in " + " < ".join(frames[:FRAMES])
        return
    words, is_traceback = "", False
    for line in lines:
        if match := _LAST_WORDS.search(line) or (_RAISED.match(line) if is_traceback else None):
            words = match[0]
        is_traceback = line.startswith(_TRACEBACK) or (is_traceback and match is None)
    if words:
        yield _without_numbers(words)


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "N", _HEXADECIMAL.sub("N", text))[:WORDS_MAX]


def _kind(operation: Operation, *, anywhere: bool) -> str:
    kind = "dump" if operation.f == "dump" else "read" if operation.f in READS else "mutation"
    return kind if anywhere or not operation.role else f"{kind} at {operation.role}"
