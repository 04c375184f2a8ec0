"""What all roles of a node share: its identity, the effects of this step, what follows on a record or a timer."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from nodes.kernel.effects import CancelTimer, Effect, Log, Persist, SetTimer
from nodes.kernel.errors import StartRefused
from nodes.kernel.events import Instant
from nodes.twophase.configuration import Configuration
from nodes.twophase.decisions import Decisions
from nodes.twophase.sometimes import Sometimes

Then = Callable[[], None]


class Site:
    """One node in one life."""

    def __init__(self, configuration: Configuration, decisions: Decisions) -> None:
        self.configuration = configuration
        self.decisions = decisions
        self.name = configuration.name
        self.is_server = configuration.role == "server"
        self.life = 0
        """Counts the starts of the process, from 1; on disk before any message leaves."""
        self.chance = random.Random(0)
        self.now = Instant(0, 0)
        self.out: list[Effect] = []
        self.sometimes = Sometimes()
        self._last_token = 0
        self._after_record: dict[int, Then] = {}
        self._after_time: dict[str, Then] = {}

    def begin(self, life: int) -> None:
        self.life = life
        self.chance = random.Random(f"{self.configuration.seed}/{self.name}/{life}")

    def persist(
        self, file: str, data: bytes, record: str, then: Then | None = None, *, is_whole: bool = False
    ) -> None:
        """Everything that is sent from here on leaves when the record is on disk; `then` is called at that time."""
        self._last_token += 1
        if then is not None:
            self._after_record[self._last_token] = then
        self.out.append(Persist(self._last_token, file, data, record, is_whole))

    def sync(self, file: str) -> None:
        """What was read of a file may be written and not synced by a process that was killed: nothing that rests on it
        leaves before it is on disk."""
        self.persist(file, b"", "sync")

    def persisted(self, token: int) -> None:
        then = self._after_record.pop(token, None)
        if then is not None:
            then()

    def persist_failed(self, error: str) -> None:
        raise StartRefused(f"the disk takes no more records ({error}): {self.name} stops")

    def after(self, name: str, after_ns: int, then: Then) -> None:
        self._after_time[name] = then
        self.out.append(SetTimer(name, after_ns))

    def soon(self, name: str, then: Then) -> None:
        """In an event of its own: other messages may come first."""
        self.after(name, self.chance.randrange(self.configuration.step_ns + 1), then)

    def cancel(self, name: str) -> None:
        if self._after_time.pop(name, None) is not None:
            self.out.append(CancelTimer(name))

    def fired(self, name: str) -> None:
        then = self._after_time.pop(name, None)
        if then is not None:
            then()

    def log(self, message: str, level: str = "info", **fields: Any) -> None:
        self.out.append(Log(level, message, fields))
