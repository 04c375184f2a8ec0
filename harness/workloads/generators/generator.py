"""The request to a generator, and its answers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Protocol, TypeAlias

import msgspec

Value: TypeAlias = "bool | int | float | str | tuple[Value, ...] | Mapping[str, Value] | None"
"""Any JSON value, with tuples for lists: what is asked must not change while it is being asked."""


class Context(msgspec.Struct, frozen=True, gc=False):
    """A request for an operation: the worker, the time in the run, and the worker's own random stream.

    `time_ns` is the time in the plan, not of a clock: it does not depend on earlier events.
    """

    worker: int
    time_ns: int
    chance: random.Random


class Draft(msgspec.Struct, frozen=True, gc=False):
    """A future operation: its name, its key, and its node ("@owner", "@replica" or a name)."""

    f: str
    key: str | None = None
    value: Value = None
    node: str = "@owner"
    mode: str | None = None


class Later(msgspec.Struct, frozen=True, gc=False):
    """Nothing to do before `time_ns`: ask again then."""

    time_ns: int


Answer = Draft | Later | None
Next = tuple[Answer, "Generator"]


class Generator(Protocol):
    def next(self, context: Context) -> Next: ...
