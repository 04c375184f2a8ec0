"""A write is answered first, and goes into the queue when that is empty."""

from __future__ import annotations

from collections import deque

from nodes.iproto.messages import Response
from nodes.kernel.effects import Send
from nodes.kernel.events import Instant
from nodes.qsync.admission import Admission
from nodes.qsync.bugs import Bug
from nodes.qsync.commits import Commits
from nodes.qsync.decisions import Decisions
from nodes.qsync.evaluation import Outcome


class AnswersFirst(Admission):
    """Those whose clients think that they are in the queue wait here until it is empty."""

    def __init__(self, commits: Commits) -> None:
        super().__init__(commits)
        self._answered: deque[tuple[Outcome, bool]] = deque()

    def __len__(self) -> int:
        return super().__len__() + len(self._answered)

    def enter(
        self,
        outcome: Outcome,
        reply: tuple[int, Response] | None,
        now: Instant,
        *,
        is_sync: bool,
        answers_at_once: bool,
    ) -> None:
        if reply is not None and answers_at_once and outcome.drafts and self._commits.limbo.entries:
            self._commits.out.append(Send(*reply))
            self._answered.append((outcome, is_sync))
            return
        super().enter(outcome, reply, now, is_sync=is_sync, answers_at_once=answers_at_once)

    def proceed(self, now: Instant) -> None:
        super().proceed(now)
        while self._answered and not self._commits.limbo.entries:
            outcome, is_sync = self._answered.popleft()
            if self._commits.is_writable:
                super().enter(outcome, None, now, is_sync=is_sync, answers_at_once=True)


class SubmitBeforeQueue(Decisions):
    def admission(self, commits: Commits) -> Admission:
        return AnswersFirst(commits)


BUG = Bug(
    decides=SubmitBeforeQueue,
    does="a write that need not wait for its commit is answered before it is in the queue, and goes in when that is "
    "empty",
    seen="what was asked for after its answer, and acknowledged, comes before it and is replaced by it",
    checkers=("queue-order",),
)
