"""The limits of a judgement: work, memory, and (only if the caller says so) time.

Work and memory are counted, so the same history gives the same verdict on an idle and on a busy machine. The wall
clock is the outermost limit, and there is none by default:

    with within(Limits(timeout_s=60.0)):
        linearizable.check(history)      # what was not decided after 60 s is unknown, and the verdict says why

A step is one comparison, or one call that is tried, of the compiled search for an order: some 200 million a second.

Code that takes long calls `look`, which raises `OutOfTime` behind the limit. Code that reads no clock can be
interrupted from outside: within `until_ended`, outside of `shielded`, an alarm may call `interrupt` at any moment
(`harness.judge.time_limit` does). A checker that catches `OutOfTime` keeps what it has decided by then.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

Found = TypeVar("Found")

STEPS = 10_000_000_000
"""Of one search for an order, all keys together."""
CONFIGURATION_BYTES = 200  # what the search holds of one configuration, roughly
CONFIGURATIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for all checks of a command, MiB and steps for a search. None: no limit of time; else as by default."""

    timeout_s: float | None = None
    memory_mib: float | None = None
    steps: int | None = None

    @property
    def configurations(self) -> int:
        """How many configurations of a search fit into the memory."""
        if self.memory_mib is None:
            return CONFIGURATIONS
        return max(1, int(min(self.memory_mib, 1 << 40) * (1 << 20) / CONFIGURATION_BYTES))


NO_LIMITS = Limits()


class OutOfTime(BaseException):
    """The time limit is over. Not an Exception: no checker may take it for an error of its own."""


@dataclass(slots=True)
class _Scope:
    """One `within`; it ends no later than those around it."""

    limits: Limits
    deadline_s: float
    clock: Callable[[], float]
    source: str
    outer: _Scope | None
    is_section: bool = False
    shields: int = 0

    @property
    def ended(self) -> _Scope | None:
        """The outermost scope that is out of time: this one or one around it."""
        outer = None if self.outer is None else self.outer.ended
        return self if outer is None and self.clock() >= self.deadline_s else outer


_INNERMOST: ContextVar[_Scope | None] = ContextVar("limits", default=None)


@contextmanager
def within(
    limits: Limits,
    *,
    source: str = "",
    left_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[None]:
    """Hold everything inside to `limits`. `source` is the option that they come from, for messages.

    `left_s`: how much of the time is left, if some of it has passed elsewhere. Limits that `limits` does not set are
    those of the enclosing scope.
    """
    outer = _INNERMOST.get()
    seconds = limits.timeout_s if left_s is None else left_s
    around = NO_LIMITS if outer is None else outer.limits
    limits = Limits(
        next((each for each in (limits.timeout_s, left_s, around.timeout_s) if each is not None), None),
        around.memory_mib if limits.memory_mib is None else limits.memory_mib,
        around.steps if limits.steps is None else limits.steps,
    )
    deadline_s = float("inf") if seconds is None else clock() + seconds
    token = _INNERMOST.set(_Scope(limits, deadline_s, clock, source, outer))
    try:
        yield
    finally:
        _INNERMOST.reset(token)


def given() -> Limits:
    """The limits that hold here."""
    scope = _INNERMOST.get()
    return Limits() if scope is None else scope.limits


def left_s() -> float | None:
    """The seconds that are left, not below 0; None if there is no limit of time."""
    scope, least = _INNERMOST.get(), float("inf")
    while scope is not None:
        if scope.deadline_s < float("inf"):
            least = min(least, max(0.0, scope.deadline_s - scope.clock()))
        scope = scope.outer
    return None if least == float("inf") else least


def why_ended() -> str:
    """Which time limit is over, in words; "" if none is."""
    scope = _INNERMOST.get()
    ended = None if scope is None else scope.ended
    if ended is None:
        return ""
    option = f" ({ended.source})" if ended.source else ""
    return f"stopped by the time limit of {ended.limits.timeout_s:g} s{option}"


def look() -> None:
    """Raise OutOfTime if a time limit is over."""
    why = why_ended()
    if why:
        raise OutOfTime(why)


def until_ended(work: Callable[[], Found], otherwise: Callable[[str], Found]) -> Found:
    """The result of `work`; if a time limit ends first, the result of `otherwise` for the reason. An `interrupt` may
    raise here.
    """
    scope = _INNERMOST.get()
    if scope is None:
        return work()
    was_section = scope.is_section
    try:
        try:
            scope.is_section = True
            look()
            return work()
        finally:
            scope.is_section = was_section
    except OutOfTime as over:
        scope.is_section = was_section  # the alarm may have come just before that
        return otherwise(str(over))


@contextmanager
def shielded() -> Iterator[None]:
    """Here `interrupt` does not raise: for the short work of putting a verdict together."""
    scope = _INNERMOST.get()
    if scope is None:
        yield
        return
    scope.shields += 1
    try:
        yield
    finally:
        scope.shields -= 1


def interrupt() -> None:
    """For an alarm: raise OutOfTime if a time limit is over and what runs now may be interrupted."""
    scope, may_raise = _INNERMOST.get(), False
    while scope is not None:
        if scope.shields:
            return
        may_raise = may_raise or scope.is_section
        scope = scope.outer
    if may_raise and not _is_compiling():  # the next alarm comes soon
        look()


def _is_compiling() -> bool:
    """Whether numba makes or loads machine code in this thread: an exception there would leave it half made."""
    numba = sys.modules.get("numba.core.compiler_lock")
    return numba is not None and bool(numba.global_compiler_lock.is_locked())
