"""Updates of the key-value state, the same on every master.

| step | result |
|---|---|
| `["read", space, key]` | the value, None if there is none |
| `["scan", space, first, below]` | [[key, value], …] with first ≤ key < below, sorted, numbers first; None: no bound |
| `["write", space, key, value]` | |
| `["insert", space, key, value]` | refused if there is a value |
| `["cas", space, key, old, new]` | a mismatch if the value is not `old` |

A step that is refused, or does not match, undoes the transaction.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice
from types import NoneType
from typing import Any, Final

from nodes.iproto.packing import pack
from nodes.steps import Step, is_same

Place = tuple[str, str | int]
READS = frozenset({"read", "scan"})
UNDO_MAX = 10_000
"""How many transactions a state can undo."""
NOTHING: Final = object()
"""Stands for a value that did not exist."""
SPURIOUS = {"type": "fail", "error": "spurious-failure"}
"""The answer of a transaction that fails on one master alone."""
Told = dict[str, Any]
"""{"type": "ok", "results"}, {"type": "mismatch", "step", "found"} or {"type": "fail", "error"}."""


def is_known(step: Step) -> bool:
    """Whether a client can ask for this step."""
    match step:
        case ["read", str(), str() | int()] | ["write" | "insert", str(), str() | int(), _]:
            return True
        case ["cas", str(), str() | int(), _, _]:
            return True
        case ["scan", str(), first, below]:
            return all(type(bound) in (int, str, NoneType) for bound in (first, below))
    return False


class State:
    """Place → value, the number of executed transactions, and a hash over their effects."""

    def __init__(self) -> None:
        self.values: dict[Place, object] = {}
        self.index = 0
        self.hash = b""
        self._undo: deque[tuple[bytes, dict[Place, object]]] = deque(maxlen=UNDO_MAX)
        """For each of the last transactions: the hash before it, and the values that it replaced."""

    def copy(self) -> State:
        state = State()
        state.values, state.index, state.hash = dict(self.values), self.index, self.hash
        return state

    def apply(
        self, name: str, steps: list[Step], stored: Callable[[object], object], *, fails: bool = False
    ) -> Told:
        """Execute the next transaction. `stored`: a value → the value that is stored. `fails`: it fails spuriously."""
        answer, changed = (dict(SPURIOUS), {}) if fails else evaluated(steps, self.values, stored)
        self._undo.append((self.hash, {place: self.values.get(place, NOTHING) for place in changed}))
        self.values.update(changed)
        self.index += 1
        # `changed` is in the order of the steps: the same on all masters.
        effect = pack([self.hash, name, answer, [[*place, value] for place, value in changed.items()]])
        self.hash = hashlib.sha256(effect).digest()[:8]
        return answer

    def before(self, index: int) -> State | None:
        """The state behind the first `index` transactions; None if it cannot undo so many, as a fresh copy."""
        back = self.index - index
        if back > len(self._undo):
            return None
        state = self.copy()
        for state.hash, replaced in islice(reversed(self._undo), back):
            state.values.update(replaced)
            for place in [place for place, value in replaced.items() if value is NOTHING]:
                del state.values[place]
        state.index = index
        return state

    def to_list(self) -> list[Any]:
        return [self.index, self.hash, [[*place, value] for place, value in self.values.items()]]

    @classmethod
    def from_list(cls, fields: list[Any]) -> State:
        state = cls()
        state.index, state.hash, rows = fields
        state.values = {(space, key): value for space, key, value in rows}
        return state

    def spaces(self) -> dict[str, list[list[object]]]:
        by_space: dict[str, list[list[object]]] = {}
        for (space, key), value in self.values.items():
            by_space.setdefault(space, []).append([key, value])
        return {space: sorted(rows, key=str) for space, rows in sorted(by_space.items())}


def evaluated(
    steps: list[Step],
    values: Mapping[Place, object],
    stored: Callable[[object], object] = lambda value: value,
) -> tuple[Told, dict[Place, object]]:
    """The answer, and place → new value."""
    changed: dict[Place, object] = {}
    results: list[object] = []
    for number, step in enumerate(steps):
        match step:
            case ["scan", space, first, below]:
                results.append(_scanned({**values, **changed}, space, first, below))
                continue
            case [word, space, key, *rest]:
                place = (space, key)
        there = changed.get(place, values.get(place))
        match word, rest:
            case "read", _:
                results.append(there)
                continue
            case "insert", _ if there is not None:
                return {"type": "fail", "error": "duplicate-key"}, {}
            case "cas", [old, _] if not is_same(there, old):
                return {"type": "mismatch", "step": number, "found": there}, {}
        changed[place] = stored(rest[-1])
        results.append(True)
    return {"type": "ok", "results": results}, changed


def _scanned(values: Mapping[Place, object], space: str, first: Any, below: Any) -> list[list[object]]:
    pairs = [
        [key, value]
        for (there, key), value in values.items()
        if there == space
        and (first is None or _order(key) >= _order(first))
        and (below is None or _order(key) < _order(below))
    ]
    return sorted(pairs, key=lambda row: _order(row[0]))


def _order(key: object) -> tuple[bool, object]:
    """Numbers come before strings."""
    return isinstance(key, str), key
