"""A write is answered first, and goes into the queue when that is empty."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from nodes.kernel.effects import Send
from nodes.kernel.events import Instant
from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions, Queue, Reply

Submit = Callable[[Reply | None, Instant], None]


class SubmitBeforeQueue(Decisions):
    def __init__(self) -> None:
        super().__init__()
        self._answered: deque[tuple[Queue, Submit]] = deque()
        """Transactions that were answered as if they were in the queue."""

    def into_queue(
        self, queue: Queue, submit: Submit, reply: Reply, now: Instant, *, is_detached: bool
    ) -> None:
        if is_detached and queue.limbo.entries:
            queue.out.append(Send(*reply))
            self._answered.append((queue, submit))
        else:
            super().into_queue(queue, submit, reply, now, is_detached=is_detached)

    def clock(self, now: Instant) -> Instant:
        now = super().clock(now)
        while self._answered and not self._answered[0][0].limbo.entries:
            queue, submit = self._answered.popleft()
            if queue.is_writable:
                submit(None, now)
        return now


BUG = Bug(
    decides=SubmitBeforeQueue,
    does="a write that need not wait for its commit is answered before it is in the queue, and goes in when that is "
    "empty",
    seen="a write invoked after its answer, and acknowledged, comes before it and is overwritten by it",
    checkers=("queue-order",),
)
