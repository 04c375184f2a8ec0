"""Coroutines in virtual time: what asyncio's tasks and futures are for the real world.

A coroutine awaits `Pending` values; resolving one runs the coroutine on, at once and in the same moment of
virtual time. There is no loop here: the agenda of the simulator is the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Cancelled(BaseException):
    """Thrown into a coroutine that is cancelled; a BaseException, so that no `except Exception` swallows it."""


class Pending(Generic[T]):
    """A value that will be there: awaited by any number of coroutines, resolved once."""

    __slots__ = ("_callbacks", "_value", "is_resolved")

    def __init__(self) -> None:
        self.is_resolved = False
        self._value: T | None = None
        self._callbacks: tuple[Callable[[], None], ...] = ()

    def resolve(self, value: T) -> None:
        """Give the value; later values are ignored."""
        if self.is_resolved:
            return
        self.is_resolved, self._value = True, value
        callbacks, self._callbacks = self._callbacks, ()
        for callback in callbacks:
            callback()

    def on_resolved(self, callback: Callable[[], None]) -> None:
        self._callbacks = (*self._callbacks, callback)

    def __await__(self) -> Generator[Pending[T], None, T]:
        if not self.is_resolved:
            yield self
        return self._value  # type: ignore[return-value]  # resolved: it is a T


class VirtualTask(Generic[T]):
    """A coroutine that runs beside its caller."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._result: Pending[tuple[T | None, BaseException | None]] = Pending()
        self._waits_for: Pending[Any] | None = None

    def start(self) -> None:
        self._advance(None)

    def done(self) -> bool:
        return self._result.is_resolved

    def cancel(self) -> None:
        if not self.done():
            self._advance(Cancelled())

    def _advance(self, error: BaseException | None) -> None:
        if self.done():
            return
        try:
            waits_for = self._coroutine.throw(error) if error is not None else self._coroutine.send(None)
        except StopIteration as finished:
            self._result.resolve((finished.value, None))
        except (Exception, Cancelled) as raised:  # kept for the coroutine that awaits this task
            self._result.resolve((None, raised))
        else:
            assert isinstance(waits_for, Pending), "a conductor awaits nothing but the cluster"
            self._waits_for = waits_for
            waits_for.on_resolved(lambda: self._resolved(waits_for))

    def _resolved(self, pending: Pending[Any]) -> None:
        """Go on, unless a cancellation made the coroutine leave this value and wait for another."""
        if pending is self._waits_for:
            self._advance(None)

    def result(self) -> T:
        """The coroutine's result; what it raised is raised here."""
        assert self.done(), "the task still runs"
        value, error = self._result._value or (None, None)
        if error is not None:
            raise error
        return value  # type: ignore[return-value]  # no error: it is a T

    def __await__(self) -> Generator[Any, None, T]:
        yield from self._result.__await__()
        return self.result()
