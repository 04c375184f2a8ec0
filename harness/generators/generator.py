"""What a generator is asked and what it answers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Value: TypeAlias = "bool | int | float | str | tuple[Value, ...] | Mapping[str, Value] | None"
"""Any JSON value, with tuples for lists: what is asked must not change while it is being asked."""


@dataclass(frozen=True, slots=True)
class Context:
    """The moment of the question: whose turn it is, at what time of the run, and this worker's own chance.

    `time_ns` is the time in the plan, not on a clock: it depends on nothing that happened.
    """

    worker: int
    time_ns: int
    chance: random.Random


@dataclass(frozen=True, slots=True)
class Draft:
    """An operation to be: what, on which key, at which node ("@owner", "@replica" or a name)."""

    f: str
    key: str | None = None
    value: Value = None
    node: str = "@owner"
    mode: str | None = None


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing to do before `time_ns`: ask again then."""

    time_ns: int


Answer = Draft | Later | None
Next = tuple[Answer, "Generator"]


class Generator(Protocol):
    def next(self, context: Context) -> Next: ...
