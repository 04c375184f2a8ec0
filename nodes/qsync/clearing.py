"""`box.ctl.clear_synchro_queue` of Tarantool 2.6: a node takes over the queue of another one, by hand.

It waits until the queue empties by itself, for twice the synchro timeout. Then it decides alone. Of the former owner's
entries, it confirms those that a quorum of the connected nodes has, as far as it knows, and rolls back the rest. So 2.6
loses confirmed writes if their CONFIRM did not arrive here and the nodes that have them are not connected.

An operator that fails over calls `qsync.take_over` with a number that grows (real 2.6 gets this function from a small
Lua file): it empties the queue in this way, and then the node is writable. `qsync.step_down` makes it read-only again.
The number is kept in memory alone: after a restart it is 0 until the operator chooses the node again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from nodes.iproto.codes import Code
from nodes.iproto.messages import Response
from nodes.kernel.effects import Effect, Log, Send
from nodes.kernel.events import Instant
from nodes.qsync.commits import Commits
from nodes.qsync.keys import Rejected, Tuple
from nodes.qsync.service import Caller, Function


@dataclass(slots=True, eq=False)
class Waiting:
    """A caller, and the time until which the queue may empty by itself."""

    link: int
    response: Response
    deadline_ns: int
    generation: int = 0
    """The number of a `qsync.take_over`, else 0."""


class Clearing:
    """The callers that wait for an empty queue. `vclocks`: of each connected member, this node included."""

    def __init__(
        self,
        commits: Commits,
        vclocks: Callable[[], Sequence[Mapping[int, int]]],
        changed: Callable[[Instant], None],
        out: list[Effect],
    ) -> None:
        self.generation = 0
        """The number of the last `qsync.take_over` of this life."""
        self._changed = changed
        self._commits = commits
        self._vclocks = vclocks
        self._out = out
        self._waiting: list[Waiting] = []
        self._decided = 0
        """The number of the newest transaction that the last decision was about."""
        self._failures = 0
        """The journal's failures at that time."""
        self.functions: dict[str, Function] = {
            "box.ctl.clear_synchro_queue": lambda caller, _, now: self._begin(caller, now),
            "qsync.take_over": self._take_over,
            "qsync.step_down": self._step_down,
        }
        """The functions that can be called."""

    def __len__(self) -> int:
        return len(self._waiting)

    def _begin(self, caller: Caller, now: Instant, generation: int = 0) -> None:
        """Wait for an empty queue; the node's own queue is not cleared."""
        waiting = Waiting(caller.link, caller.answer(), self._deadline_ns(now), generation)
        if self._commits.is_owner:
            self._end(waiting, now)
        else:
            self._waiting.append(waiting)

    def _deadline_ns(self, now: Instant) -> int:
        return now.monotonic_ns + 2 * self._commits.options.synchro_timeout_ns

    def _take_over(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        number = arguments[0] if arguments else None
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            why = f"expected the number of a generation, 1 or more, got {number!r}"
            raise Rejected(Code.ILLEGAL_PARAMS, why[:100])
        self._begin(caller, now, number)

    def _step_down(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        """Make the node read-only; the entries of the queue go on waiting."""
        self._set_read_only(True, now)
        self._out.append(Send(caller.link, caller.answer()))

    def _end(self, waiting: Waiting, now: Instant) -> None:
        if waiting.generation:
            self.generation = waiting.generation
            self._set_read_only(False, now)
        self._out.append(Send(waiting.link, waiting.response))

    def _set_read_only(self, is_read_only: bool, now: Instant) -> None:
        self._commits.options.set({"read_only": is_read_only})
        self._changed(now)

    def proceed(self, now: Instant) -> None:
        """Answer when the queue is empty; clear it when its time is over."""
        limbo = self._commits.limbo
        if not limbo.entries:
            waiting, self._waiting = self._waiting, []
            for call in waiting:
                self._end(call, now)
            return
        due = [call for call in self._waiting if call.deadline_ns <= now.monotonic_ns]
        is_lost = self._commits.journal.failures > self._failures
        is_under_way = not self._commits.has_settled(self._decided)
        if is_under_way and is_lost:  # the disk may still be full: not again with every event
            self._decided = 0
            for call in due:
                call.deadline_ns = self._deadline_ns(now)
        elif due and not is_under_way:
            self._decided, self._failures = self._commits.last_waiting, self._commits.journal.failures
            self._force(limbo.owner_id, now)

    def _force(self, owner: int, now: Instant) -> None:
        lsns = sorted((vclock.get(owner, 0) for vclock in self._vclocks()), reverse=True)
        quorum = self._commits.options.quorum_size
        lsn = lsns[quorum - 1] if len(lsns) >= quorum else 0
        self._out.append(Log("warning", "clearing the queue", {"owner": owner, "confirmed_to": lsn}))
        self._commits.clear_queue(owner, lsn, now)
