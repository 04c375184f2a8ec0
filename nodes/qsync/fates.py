"""How transactions end: committed and answered, or discarded and refused."""

from __future__ import annotations

from collections.abc import Iterable

from nodes.iproto.codes import Code
from nodes.iproto.messages import Refusal, Response
from nodes.kernel.effects import Effect, Send
from nodes.qsync.limbo import Entry
from nodes.qsync.spaces import Transaction, commit, prepare, roll_back


class Fates:
    """The ends of one node's transactions. Answers are appended to `out`."""

    def __init__(self, out: list[Effect]) -> None:
        self._out = out
        self._submitted = 0
        self.committed_count = 0
        self.now_ns = 0
        """The moment of the present event, by the node's monotonic clock."""
        self.confirm_lag_ns = 0
        """For how long the synchronous entry that committed last had been in the queue."""

    def prepare(self, transaction: Transaction) -> None:
        """Put its changes on top of the prepared view."""
        # In the order of the queue: `has_settled` and `looked_at` compare these numbers.
        self._submitted += 1
        transaction.number = self._submitted
        prepare(transaction)

    def commit_entries(self, entries: Iterable[Entry]) -> None:
        """Oldest first."""
        for entry in entries:
            if entry.wait_ack:
                self.confirm_lag_ns = self.now_ns - entry.inserted_ns
            self.commit(entry.transaction)

    def commit(self, transaction: Transaction) -> None:
        """Its changes are confirmed: answer its client."""
        commit(transaction)
        self.committed_count += 1
        self.answer(transaction)

    def answer(self, transaction: Transaction) -> None:
        """Answer the client of a committed transaction."""
        for link, response in transaction.replies:
            self._out.append(Send(link, response))
        transaction.replies.clear()

    def discard(self, transaction: Transaction, code: Code) -> None:
        """Roll back its changes and refuse its client."""
        roll_back(transaction)
        self.refuse(transaction.replies, code)

    def refuse(self, replies: list[tuple[int, Response]], code: Code, *arguments: object) -> None:
        """Answer these clients with an error."""
        for link, response in replies:
            self._out.append(Send(link, Refusal(response.sync, code, code.text(*arguments))))


def answer_later(waits_for: Transaction | None, link: int, response: Response, out: list[Effect]) -> None:
    """Answer at once, or when `waits_for` has committed: the answer reveals the effect of that transaction."""
    if waits_for is None:
        out.append(Send(link, response))
    else:
        waits_for.replies.append((link, response))
