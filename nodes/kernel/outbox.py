"""The order promise, as one small queue that the real host and the virtual world share.

Effects go in with `put`; `take_records` hands out the records that wait for a disk, and `take_released` the
effects that may be done now: everything up to the first record that is not yet durable. The host reports
`persisted` or `failed`.

The host decides by its `Durability` which records count as durable: "synced" is the promise; "written" is the seeded
bug *ack-before-fsync*, in which a record is reported as soon as the operating system has it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Literal

from nodes.kernel.effects import Connect, Disconnect, Persist, Remove, Send

Durability = Literal["synced", "written"]
Queued = Persist | Remove | Send | Connect | Disconnect


class Outbox:
    """The effects of one node that wait, in order."""

    def __init__(self) -> None:
        self._queue: deque[Queued] = deque()
        self._unwritten: list[Persist] = []
        self._durable: set[int] = set()
        self._outstanding: deque[int] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def is_durable(self) -> bool:
        """No record is on its way to the disk."""
        return not self._outstanding

    def put(self, effects: Iterable[Queued]) -> None:
        for effect in effects:
            self._queue.append(effect)
            if type(effect) is Persist:
                self._unwritten.append(effect)
                self._outstanding.append(effect.token)

    def take_records(self) -> list[Persist]:
        """The records not yet handed to the disk, oldest first: one group commit."""
        records, self._unwritten = self._unwritten, []
        return records

    def persisted(self, token: int) -> None:
        """The record of this token is durable. Disks finish in order: it is the oldest outstanding one."""
        assert self._outstanding and self._outstanding[0] == token, (token, self._outstanding)
        self._outstanding.popleft()
        self._durable.add(token)

    def failed(self) -> tuple[int, ...]:
        """The oldest outstanding record failed: drop it, all behind it, and the sends that wait for them."""
        tokens = tuple(self._outstanding)
        lost = set(tokens)
        self._queue = deque(
            effect
            for effect in self._queue
            if not (type(effect) is Persist and effect.token in lost)
            and not (type(effect) is Send and effect.after in lost)
        )
        self._outstanding.clear()
        self._unwritten.clear()
        return tokens

    def take_released(self) -> list[Remove | Send | Connect | Disconnect]:
        """Pop the effects that may be done now, in order."""
        released: list[Remove | Send | Connect | Disconnect] = []
        queue = self._queue
        while queue:
            head = queue[0]
            if type(head) is Persist:
                if head.token not in self._durable:
                    break
                self._durable.discard(head.token)
            else:
                released.append(head)  # type: ignore[arg-type]  # the union less Persist
            queue.popleft()
        return released
