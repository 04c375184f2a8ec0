"""L5, state: the state of a restored cut against the expected one. Values are the same as `history.values` says.

| rule | breach |
|---|---|
| differs-from-oracle | the primaries' rows are not those of an oracle that replayed BEFORE |
| half-restored | the restore takes the cut, and a node cannot: nothing may be restored then |
| replica-differs | a backup's rows of a partition are not those of its primary |
| invariant | what the workload says of every state (a bank's total, say) does not hold |
| differs-from-delta | the state is not that of an earlier restored cut with the changes between them |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from checkers.cuts.trace import name_of
from checkers.history.values import Composite, Number, exact, value_words

Rows = Mapping[Any, Any]
"""Key → value; keys and values are JSON (tuples for lists in keys)."""
Invariant = Callable[[Rows], str]
"""The fault of a state, in a sentence; "" if it has none."""
DELETED = object()
"""In a delta: the key is gone."""
SHOWN_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """One restored cut.

    rows      by node and partition the rows that the node holds
    primary   by partition the node that is its primary
    oracle    the state of a replay of BEFORE; None: there is none
    since     the cut that `delta` starts from, "" if there is none
    delta     key → value, or DELETED
    refused   by node why it cannot be restored to this cut, while other nodes can
    """

    cut: str
    rows: Mapping[str, Mapping[int, Rows]]
    primary: Mapping[int, str]
    oracle: Rows | None = None
    since: str = ""
    delta: Mapping[Any, Any] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def state(self) -> dict[Any, Any]:
        """The rows of all primaries."""
        return {
            key: value
            for partition, node in sorted(self.primary.items())
            for key, value in self.rows.get(node, {}).get(partition, {}).items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A breach: its rule, a sentence, and the first keys that differ, each with both values in JSON."""

    rule: str
    summary: str
    keys: tuple[str, ...] = ()


def differences(one: Rows, other: Rows, excluded: Collection[str] = ()) -> list[str]:
    """The keys on which two states differ, in order of their JSON: `"a": 1, and 2`. Absent: nothing.

    `excluded`: names of keys that are not compared.
    """
    left, right = _coded(one, excluded), _coded(other, excluded)
    differing = [key for key in sorted(left.keys() | right.keys()) if left.get(key) != right.get(key)]
    return [f"{key}: {left.get(key, 'nothing')}, and {right.get(key, 'nothing')}" for key in differing]


def judge(
    restored: Restored, invariant: Invariant | None, earlier: Rows | None, excluded: Collection[str] = ()
) -> Iterator[Difference]:
    """All breaches. `earlier`: the state of the cut that the delta starts from, None if it was not restored.

    `excluded`: names of keys whose values have a cause that was reported already. They are in no comparison, and an
    invariant over all keys is not asked.
    """
    for node, why in restored.refused.items():
        summary = f"{restored.cut} is restored, and {node} cannot be: {why}"
        yield Difference(rule="half-restored", summary=summary)
    if restored.refused:
        return
    yield from _differing_replicas(restored, excluded)
    if restored.oracle is not None:
        title = "the restored state differs from the replay of BEFORE"
        keys = differences(restored.state, restored.oracle, excluded)
        yield from _difference("differs-from-oracle", title, keys)
    if invariant is not None and not excluded and (why := invariant(restored.state)):
        yield Difference(rule="invariant", summary=why)
    if restored.since and earlier is not None:
        changed = {**earlier, **restored.delta}
        expected = {key: value for key, value in changed.items() if value is not DELETED}
        title = f"the restored state differs from that of {restored.since} with the changes since"
        yield from _difference("differs-from-delta", title, differences(restored.state, expected, excluded))


def _differing_replicas(restored: Restored, excluded: Collection[str]) -> Iterator[Difference]:
    """Only copies that a node holds are compared: which nodes must hold one is not known here."""
    for partition, primary in sorted(restored.primary.items()):
        if partition not in restored.rows.get(primary, {}):
            summary = f"{primary} is the primary of partition {partition} and restored nothing of it"
            yield Difference(rule="replica-differs", summary=summary)
            continue
        rows = restored.rows[primary][partition]
        for node, partitions in restored.rows.items():
            if node != primary and partition in partitions:
                title = f"partition {partition} differs on {node} and its primary {primary}"
                keys = differences(partitions[partition], rows, excluded)
                yield from _difference("replica-differs", title, keys)


def not_judged(restored: Restored, invariant: Invariant | None, earlier: Rows | None) -> list[str]:
    """The rules for which material is missing."""
    has_copies = any(
        partition in partitions and node != primary
        for partition, primary in restored.primary.items()
        for node, partitions in restored.rows.items()
    )
    missing = {
        "differs-from-oracle": restored.oracle is None,
        "replica-differs": not has_copies,
        "invariant": invariant is None,
        "differs-from-delta": not restored.since or earlier is None,
    }
    return [rule for rule, is_missing in missing.items() if is_missing]


def total(expected: int | float, values: Callable[[Rows], Any] = lambda rows: rows.values()) -> Invariant:
    """The invariant of a bank: what `values` takes of a state sums up to `expected`. Sums are exact: see `exact`."""
    wanted = exact(expected)

    def breach_of(rows: Rows) -> str:
        actual: Number = 0
        for value in values(rows):
            amount = exact(value)
            if amount is None:
                return f"{value_words(value)} is no number, and the total must be {value_words(wanted)}"
            actual += amount
        return (
            "" if actual == wanted else f"the total is {value_words(actual)}, expected {value_words(wanted)}"
        )

    return breach_of


def _difference(rule: str, title: str, keys: list[str]) -> Iterator[Difference]:
    if keys:
        more = f", and {len(keys) - SHOWN_MAX} more" if len(keys) > SHOWN_MAX else ""
        summary = f"{title} on {len(keys)} keys: {'; '.join(keys[:SHOWN_MAX])}{more}"
        yield Difference(rule=rule, summary=summary, keys=tuple(keys[:SHOWN_MAX]))


def _coded(rows: Rows, excluded: Collection[str]) -> dict[str, str]:
    """By the JSON of keys and values: 1, 1.0, true and "1" are four values, 0.0 and -0.0 are one."""
    return {
        repr(Composite(key)): repr(Composite(value))
        for key, value in rows.items()
        if not excluded or name_of(key) not in excluded
    }
