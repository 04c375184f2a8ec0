"""The calls on registers that operations stand for, as columns: for records of a million operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from checkers.history.columns import Columns as Operations
from checkers.history.line_kernels import ABSENT, FAIL, INFO, OK, PAIR, PLAIN
from checkers.history.operation import NOTHING_THERE
from checkers.linearizable.search_kernels import NEVER, OBSERVE, OVERWRITE, REFUSE, UPDATE

Array = Any  # numpy's
Reads = Callable[[str | None, str | None], bool]

NAMES = ("read", "write", "cas")


@dataclass(frozen=True, slots=True, kw_only=True)
class Registers:
    """Calls on many registers, in order of invocation: int64 arrays of one length.

    `key` numbers `keys`; `invoke` and `complete` are indexes of events (NEVER: it may still happen); `kind` is one of
    OBSERVE, REFUSE, OVERWRITE, UPDATE; `old` and `new` are values, ABSENT for none.
    """

    keys: tuple[str | None, ...]
    key: Array
    invoke: Array
    complete: Array
    kind: Array
    old: Array
    new: Array
    reads_not_judged: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls that operations stand for; `registers` makes them for some places: each takes as much as an operation.

    `places` are those of operations that are calls, in order; `kind` has a number for every operation, and
    counts where that is a call; `judged` marks the operations that are judged, calls or not.
    """

    columns: Operations
    places: Array
    kind: Array
    judged: Array
    reads_not_judged: dict[str, int]

    def registers(self, places: Array) -> Registers:
        """The calls at these places."""
        columns, kind = self.columns, self.kind[places].astype(numpy.int64)
        old, new = columns.old[places], columns.new[places]
        is_pair = columns.f[places] == columns.code("cas")
        return Registers(
            keys=tuple(columns.words),
            key=columns.key[places].astype(numpy.int64),
            invoke=columns.invoke[places],
            complete=numpy.where(self.are_answered(places), columns.complete[places], NEVER),
            kind=kind,
            old=numpy.where(kind == OVERWRITE, ABSENT, numpy.where(is_pair, old, new)),
            new=numpy.where(kind <= REFUSE, ABSENT, new),
            reads_not_judged=self.reads_not_judged,
        )

    def are_answered(self, places: Array) -> Array:
        """Whether each call surely has ended."""
        return self.columns.type[places] != INFO


def of_columns(columns: Operations, *, reads: Reads, failed_cas_observes: bool = True) -> Calls | None:
    """The calls of operations. None if columns do not suffice.

    That is if an operation is not a register's, a value is neither a whole number nor a pair of them, or two events
    have the same index.
    """
    if not columns.names <= {*NAMES, "dump"} or not columns.are_ranked:
        return None
    ok, failed = columns.type == OK, columns.type == FAIL
    is_read, is_write, is_cas = (columns.f == columns.code(name) for name in NAMES)
    left_out, counted = _left_out(columns, is_read & ok, reads)
    observed = is_read & ok & ~left_out
    wrote = is_write & ~failed
    if (columns.kind[observed | wrote] != PLAIN).any() or (columns.kind[is_cas] != PAIR).any():
        return None
    refused = is_cas & failed & (columns.error == columns.code("mismatch")) & failed_cas_observes
    nothing = is_write & failed & (columns.error == columns.code(NOTHING_THERE)) & failed_cas_observes
    nothing &= (columns.kind == PLAIN) & (columns.new == ABSENT)
    took = is_cas & ~failed
    same = took & (columns.old == columns.new)
    updates = took & ~same
    kind = numpy.full(len(columns), OBSERVE, dtype=numpy.int8)
    kind[wrote], kind[refused], kind[updates] = OVERWRITE, REFUSE, UPDATE
    return Calls(
        columns=columns,
        places=numpy.flatnonzero(observed | wrote | refused | nothing | updates | (same & ok)),
        kind=kind,
        judged=~left_out & (columns.f != columns.code("dump")),
        reads_not_judged=counted,
    )


def _left_out(columns: Operations, answered: Array, reads: Reads) -> tuple[Array, dict[str, int]]:
    """The answered reads of classes that are not judged, and how many there are of each such class."""
    left_out = numpy.zeros(len(columns), dtype=bool)
    counted: dict[str, int] = {}
    for role, mode, places in columns.by_role_and_mode(numpy.flatnonzero(answered)):
        if not reads(role, mode):
            left_out[places] = True
            counted[f"{mode or 'no mode'} at {role or 'unknown role'}"] = len(places)
    return left_out, dict(sorted(counted.items()))
