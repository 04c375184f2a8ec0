"""The checker: one guarantee over all keys, and what proves that it does not hold.

A violation is a cycle of "must be older" edges: no order of the versions fits them. Only readers show monotonic-writes
and writes-follow-reads, so both are judged only on keys where all readers go forward. Where all edges together have no
cycle, every guarantee holds. Only where they have one does read-your-writes need the edges from all own writes
(`own_writes`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.history.values import identity, many, value_words
from checkers.limits import Limits, OutOfTime, look, within
from checkers.sessions.own_writes import READ_YOUR_WRITES, cycle_of_own_writes
from checkers.sessions.steps import Key, Reads, all_but_dirty, keys_of
from checkers.sessions.version_graph import Chains, Edge, Kind, chain_graph, chains, cycle, edges_of, graph
from checkers.verdict import WITNESSES_MAX, Result, Verdict, Witness, witness

Skipped = tuple[Key, str]
"""A key that is not judged, and the reason."""

COHERENCE = "coherence"
_KINDS: dict[str, frozenset[Kind]] = {
    COHERENCE: frozenset({"monotonic-reads", "monotonic-writes", "read-your-writes", "writes-follow-reads"}),
    "monotonic-reads": frozenset({"monotonic-reads"}),
    "read-your-writes": frozenset({"read-your-writes"}),
    "monotonic-writes": frozenset({"monotonic-writes", "monotonic-reads"}),
    "writes-follow-reads": frozenset({"writes-follow-reads", "monotonic-reads"}),
}
GUARANTEES = tuple(_KINDS)
"""Their names; the first implies the rest."""

THROUGH_READERS = ("monotonic-writes", "writes-follow-reads")
"""Not judged on keys where monotonic-reads does not hold."""


def check(
    history: History,
    *,
    guarantee: str = COHERENCE,
    initial: Any = None,
    reads: Reads = all_but_dirty,
    timeout_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """Whether `guarantee` holds on every key. `reads(role, mode)` says which reads are judged.

    `initial`: what each key held before, or a `Start`; None: what the history says.

    `details`: keys, keys_invalid, keys_not_judged (by key the reason), steps, observations. Keys on which a value was
    written twice (or the first one again) are not judged; the verdict is then unknown, unless another key is invalid.
    `timeout_s` is the outermost limit, by `clock`; None: the verdict depends on no clock.
    Raises KeyError for an unknown guarantee, ModelError for a cas without two values.
    """
    kinds = _KINDS[guarantee]
    history = history if initial is None else history.starting_at(initial)
    with within(Limits(timeout_s), clock=clock):
        keys = keys_of(history, reads)
        outcomes: list[Witness | str | None] = []
        try:
            for key in keys:
                look()
                outcomes.append(_outcome(key, guarantee, kinds))
        except OutOfTime as over:
            outcomes += [str(over)] * (len(keys) - len(outcomes))
        witnesses = [outcome for outcome in outcomes if isinstance(outcome, Witness)]
        skipped = [
            (key, reason) for key, reason in zip(keys, outcomes, strict=True) if isinstance(reason, str)
        ]
        return _verdict(guarantee, keys, witnesses, skipped)


def _outcome(key: Key, guarantee: str, kinds: frozenset[Kind]) -> Witness | str | None:
    """A witness if the guarantee does not hold on the key; a reason if the key is not judged; None if it holds."""
    if key.repeated:
        return key.repeated
    edges = list(edges_of(key))
    if guarantee == COHERENCE:
        if key.impossible:
            return _impossible(key, key.impossible[0])
        return _incoherent(key, edges)
    if guarantee in THROUGH_READERS and cycle(graph(edges, frozenset({"monotonic-reads"}))) is not None:
        return "monotonic-reads does not hold there"
    circle = cycle(graph(edges, kinds))
    if (
        circle is None
        and guarantee == READ_YOUR_WRITES
        and cycle(graph(edges, _KINDS[COHERENCE])) is not None
    ):
        circle = cycle_of_own_writes(key)
    return None if circle is None else _witness(guarantee, key, circle, ())


def _incoherent(key: Key, edges: Sequence[Edge]) -> Witness | None:
    circle = cycle(graph(edges, _KINDS[COHERENCE]))
    if circle is not None:
        return _narrowest(key, edges, circle)
    if not any(edge.kind == "replaced" for edge in edges):
        return None
    linked = chains(edges, dict.fromkeys([key.start, *key.writers]))
    if linked.twice is not None:
        return _replaced_twice(key, *linked.twice)
    circle = cycle(chain_graph(edges, linked))
    if circle is None:
        return None
    return _witness("between-compare-and-set", key, circle, _links(circle, linked))


def _narrowest(key: Key, edges: Sequence[Edge], whole: Sequence[Edge]) -> Witness:
    """The witness of the first session guarantee that is broken by itself; of all together if none is."""
    for guarantee in GUARANTEES[1:]:
        circle = cycle(graph(edges, _KINDS[guarantee]))
        if circle is not None:
            return _witness(guarantee, key, circle, ())
    return _witness(COHERENCE, key, whole, ())


def _links(circle: Sequence[Edge], linked: Chains) -> tuple[Edge, ...]:
    """The compare-and-sets that join where one edge of a cycle ends with where the next begins."""
    links: dict[int, Edge] = {}
    for edge, following in zip(circle, [*circle[1:], circle[0]], strict=True):
        for link in linked.between(edge.newer, following.older):
            links[id(link)] = link
    return tuple(links.values())


def _witness(rule: str, key: Key, circle: Sequence[Edge], links: Sequence[Edge]) -> Witness:
    named = [operation for edge in (*circle, *links) for operation in edge.because]
    values = list(dict.fromkeys(value_words(edge.older) for edge in circle))
    summary = f"no order of the values {', '.join(values[:6])} of {_name(key)} fits what its clients saw"
    steps = [edge for edge in circle if edge.because]
    if len(steps) == 1 and len(circle) <= 2:
        summary = f"of {_name(key)}: {_sentence(steps[0])}"
    explanation = [_because(edge) for edge in (*circle, *links)]
    return witness(rule, summary, named, key=key.key, explanation=explanation)


def _name(key: Key) -> str:
    return "the register" if key.key is None else f"key {key.key}"


def _replaced_twice(key: Key, first: Operation, second: Operation) -> Witness:
    old = first.value[0]
    is_initial = identity(old) == key.start
    named = f"the initial value ({value_words(old)})" if is_initial else f"the value {value_words(old)}"
    new = " and by ".join(value_words(cas.value[1]) for cas in (first, second))
    why = "No client wrote that value a second time, so one compare-and-set alone can have replaced it."
    summary = f"{named} of {_name(key)} was replaced by {new}"
    return witness("lost-update", summary, (first, second), key=key.key, explanation=(why,))


def _impossible(key: Key, read: Operation) -> Witness:
    value = read.value[0] if read.f == "cas" else read.value
    failed = key.failed.get(identity(value))
    rule, why = "never-written", "which no client ever asked to write"
    if failed is not None:
        rule, why = "read-of-failed-write", "although the write of it had surely failed"
    named = [read] if failed is None else [failed, read]
    summary = f"of {_name(key)}: process {read.process} saw {value_words(value)}, {why}"
    return witness(rule, summary, named, key=key.key)


def _because(edge: Edge) -> str:
    if not edge.because:
        return f"{value_words(edge.newer)} was written, so it is newer than the initial value."
    return f"{_sentence(edge)}: so {value_words(edge.newer)} is the newer of the two."


_VERBS = {
    "monotonic-reads": ("read", "read"),
    "monotonic-writes": ("wrote", "wrote"),
    "read-your-writes": ("wrote", "read"),
    "writes-follow-reads": ("read", "wrote"),
}


def _sentence(edge: Edge) -> str:
    if edge.kind == "replaced":
        operation = edge.because[0]
        return f"process {operation.process} replaced {value_words(edge.older)} by {value_words(edge.newer)}"
    first, second = _VERBS[edge.kind]
    process = edge.because[0].process
    return f"process {process} {first} {value_words(edge.older)} and then {second} {value_words(edge.newer)}"


def _verdict(
    guarantee: str, keys: Sequence[Key], witnesses: Sequence[Witness], skipped: Sequence[Skipped]
) -> Verdict:
    observed = sum(key.observed for key in keys)
    result, summary = _conclusion(guarantee, len(keys), observed, witnesses, skipped)
    details: dict[str, Any] = {
        "keys": len(keys),
        "keys_invalid": [str(witness.key) for witness in witnesses],
        "keys_not_judged": {"no key" if key.key is None else key.key: reason for key, reason in skipped},
        "steps": sum(len(steps) for key in keys for steps in key.sessions.values()),
        "observations": observed,
        "vacuous": not observed,
    }
    return Verdict(
        checker=guarantee,
        result=result,
        summary=summary,
        model=guarantee,
        witnesses=tuple(sorted(witnesses, key=lambda witness: witness.events)[:WITNESSES_MAX]),
        details=details,
    )


def _conclusion(
    guarantee: str, keys: int, observed: int, witnesses: Sequence[Witness], skipped: Sequence[Skipped]
) -> tuple[Result, str]:
    if witnesses:
        others = "" if len(witnesses) == 1 else f" ({len(witnesses)} keys in all)"
        return (
            "invalid",
            f"not {guarantee}: {min(witnesses, key=lambda witness: witness.events).summary}{others}",
        )
    if skipped:
        key, reason = skipped[0]
        return (
            "unknown",
            f"{many(len(skipped), 'key')} of {keys} could not be judged: {_name(key)}, where {reason}",
        )
    if not observed:
        return "unknown", "no answer says anything about a value: there is nothing to judge"
    counts = f"{many(keys, 'key')}, {many(observed, 'observation')}"
    return "valid", f"the versions of each key have an order that fits ({counts})"
