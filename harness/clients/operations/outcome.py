"""The outcomes of an operation, as a client reports them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

IMPOSSIBLE = ("illegal-parameters", "duplicate-key")
"""How the error of a step begins that cannot be done. Every client calls it so, whatever its store does."""


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
    """It happened: the result of each step. `mode`: the read mode that served it, if the store names it."""

    results: Sequence[object]
    role: str | None = None
    mode: str | None = None
    transaction: str | None = None


class Mismatch(msgspec.Struct, frozen=True, gc=False):
    """It surely did not happen: step `number` found `found`, not what it wanted; None if the store does not say."""

    number: int | None
    found: object
    role: str | None = None
    is_confirmed: bool = True
    """The value that it found cannot be rolled back any more."""
    transaction: str | None = None

    @property
    def error(self) -> str:
        """The word of the history: a plain "mismatch" observes what was there."""
        return "mismatch" if self.is_confirmed else "mismatch with what may be rolled back"


Outcome = Done | Mismatch | Completion


def failed(error: str, *, is_read: bool, role: str | None = None) -> Completion:
    """There is no answer, or one that does not say what happened: unknown for a write."""
    return Completion("fail" if is_read else "info", None, error, role)


def unexpected(data: object, *, is_read: bool, role: str | None = None) -> Completion:
    """The store answered something that makes no sense."""
    return failed(f"unexpected answer {data!r}"[:200], is_read=is_read, role=role)
