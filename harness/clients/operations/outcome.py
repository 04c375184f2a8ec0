"""The outcomes of an operation, as a client reports them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from harness.clients.operations.steps import Asked, Dump, Scan, Transaction

IMPOSSIBLE = ("illegal-parameters", "duplicate-key")
"""How the error of an impossible step begins. Every client uses these words, whatever its store answers."""
_DUMP_FORM = 'Done([{"spaces": {space: [[key, value], …]}}])'
_RESULTS_FORM = "Done([one result for each step; of a Scan: [[key, value], …]])"


class Completion(msgspec.Struct, frozen=True, gc=False):
    """How the operation ended. `fail`: surely not done; `info`: unknown.

    `value` and `error` go into the history as they are.

    `role` is the role that the server gave itself when it served the operation: "owner" or "replica". `transaction`,
    here and below, is the store's own name for what it did, if it tells one.
    """

    type: Literal["ok", "fail", "info"]
    value: object = None
    error: str | None = None
    role: str | None = None
    transaction: str | None = None


class Done(msgspec.Struct, frozen=True, gc=False):
    """The operation happened: the result of each step. `mode`: the read mode that served it, if the store names it."""

    results: Sequence[object]
    role: str | None = None
    mode: str | None = None
    transaction: str | None = None


class Mismatch(msgspec.Struct, frozen=True, gc=False):
    """The operation surely did not happen: step `number` found `found`. `number` is None if the store names none."""

    number: int | None
    found: object
    role: str | None = None
    is_confirmed: bool = True
    """The value `found` cannot be rolled back any more."""
    transaction: str | None = None

    @property
    def error(self) -> str:
        """The word of the history: a plain "mismatch" observes the value."""
        return "mismatch" if self.is_confirmed else "mismatch with what may be rolled back"


Outcome = Done | Mismatch | Completion


def failed(error: str, *, is_read: bool, role: str | None = None) -> Completion:
    """The completion without an answer, or with one that leaves the outcome open: unknown for a write."""
    return Completion("fail" if is_read else "info", None, error, role)


def unexpected(data: object, *, is_read: bool, role: str | None = None, instead_of: str = "") -> Completion:
    """The completion for an answer that makes no sense. `instead_of`: the form of one that does."""
    try:
        text = f"unexpected answer{instead_of and f', not {instead_of}:'} {data!r}"[:200]
    except Exception:  # nested too deep, or a class of a user's own
        text = f"unexpected answer, of type {type(data).__name__}, which cannot be shown"
    return failed(text, is_read=is_read, role=role)


def fitting(outcome: object, asked: Asked) -> Outcome:
    """The outcome that a client of a user's own gave; "unexpected" in place of one that does not fit what was asked,
    or that no record can hold."""
    if isinstance(outcome, Done | Mismatch | Completion) and _fits(outcome, asked):
        return outcome
    form = _DUMP_FORM if isinstance(asked, Dump) else _RESULTS_FORM
    return unexpected(outcome, is_read=asked.is_read, instead_of=form)


def can_be_recorded(value: object, as_type: type) -> bool:
    """Whether a line of a record can hold the value, and be read as this type. What JSON lacks is another value there:
    bytes are text, and a NaN is null."""
    try:
        msgspec.json.decode(msgspec.json.encode(value), type=as_type)
    except (TypeError, ValueError, OverflowError, RecursionError):  # every error of msgspec is a ValueError
        return False
    return True


def _fits(outcome: Outcome, asked: Asked) -> bool:
    if not can_be_recorded(outcome, type(outcome)):
        return False
    match outcome, asked:
        case Done(results), Transaction(steps):
            pairs = zip(steps, results, strict=False)
            return len(results) == len(steps) and all(
                _are_pairs(result) for step, result in pairs if isinstance(step, Scan)
            )
        case Done(results), Dump():
            match results:
                case [{"spaces": dict() as spaces}]:
                    return all(map(_are_pairs, spaces.values()))
            return False
    return True


def _are_pairs(rows: object) -> bool:
    return isinstance(rows, list | tuple) and all(
        isinstance(row, list | tuple) and len(row) == 2 for row in rows
    )
