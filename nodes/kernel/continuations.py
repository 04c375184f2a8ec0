"""The effects of a step, and the functions to call when a record is on disk or a timer has fired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodes.kernel.effects import CancelTimer, Effect, Log, Persist, SetTimer
from nodes.kernel.errors import StartRefused
from nodes.kernel.events import Instant

Then = Callable[[], None]


class Continuations:
    """The continuations of one node in one life. `out` has the effects of the present step."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.now = Instant(0, 0)
        self.out: list[Effect] = []
        self._last_token = 0
        self._after_record: dict[int, Then] = {}
        self._after_time: dict[str, Then] = {}

    def persist(
        self, file: str, data: bytes, record: str, then: Then | None = None, *, is_whole: bool = False
    ) -> None:
        """Write a record. All later messages leave when it is on disk; `then` is called at that time."""
        self._last_token += 1
        if then is not None:
            self._after_record[self._last_token] = then
        self.out.append(Persist(self._last_token, file, data, record, is_whole))

    def sync(self, file: str) -> None:
        """Sync a file that was read: a killed process may have written it without a sync. All later messages leave when
        it is on disk."""
        self.persist(file, b"", "sync")

    def persisted(self, token: int) -> None:
        then = self._after_record.pop(token, None)
        if then is not None:
            then()

    def persist_failed(self, error: str) -> None:
        raise StartRefused(f"the disk takes no more records ({error}): {self.name} stops")

    def after(self, name: str, after_ns: int, then: Then) -> None:
        """Call `then` after this time, in place of the function that the timer of this name would call."""
        self._after_time[name] = then
        self.out.append(SetTimer(name, after_ns))

    def cancel(self, name: str) -> None:
        if self._after_time.pop(name, None) is not None:
            self.out.append(CancelTimer(name))

    def fired(self, name: str) -> None:
        then = self._after_time.pop(name, None)
        if then is not None:
            then()

    def log(self, message: str, level: str = "info", **fields: Any) -> None:
        self.out.append(Log(level, message, fields))
