"""Linearizable reads, on any node: ask enough nodes for their written vclocks, then wait until those rows are decided.

An acknowledged write is in the log of a quorum of Q members. So at least one of any N − Q + 1 members has it
(`replication_linearizable_quorum` can name another number); this node counts as one of them, unless it is anonymous.
Each is asked for its *written* vclock after the read began: a heartbeat carries a number, which the acknowledgement
repeats. The read waits until the own log has all these rows, and until the entries in the own limbo at that moment are
committed or rolled back. Then the confirmed view has every write that was acknowledged before the read began.

Confirmed vclocks would not do: an acknowledged write can be confirmed on its owner alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nodes.kernel.vclock import covers
from nodes.qsync import sometimes as rare
from nodes.qsync.sometimes import Sometimes


@dataclass(slots=True, eq=False)
class WaitingRead:
    """`limbo_number` is set when the log has all rows: from then on the read waits for the limbo."""

    number: int
    deadline_ns: int
    answer: Callable[[], None]
    give_up: Callable[[], None]
    heard: dict[int, None] = field(default_factory=dict)
    target: dict[int, int] = field(default_factory=dict)
    limbo_number: int | None = None


class LinearizableReads:
    """The waiting reads. `others_needed` members must answer besides this node."""

    def __init__(self, others_needed: int) -> None:
        self.others_needed = others_needed
        self._waiting: list[WaitingRead] = []
        self.number = 0
        self.must_ask = False
        self.sometimes = Sometimes()

    def begin(self, deadline_ns: int, answer: Callable[[], None], give_up: Callable[[], None]) -> None:
        self.number += 1
        self._waiting.append(WaitingRead(self.number, deadline_ns, answer, give_up))
        self.must_ask = self.others_needed > 0

    def ask_again(self) -> None:
        """Another node has connected: ask it too. The answers of the nodes that were asked before still count."""
        self.must_ask = bool(self._waiting) and self.others_needed > 0

    def ask_anew(self) -> None:
        """The members have changed: ask again, because the nodes asked before may not be enough."""
        for read in self._waiting:
            # A new number for each: answers to the question before are still on their way.
            self.number += 1
            read.number, read.limbo_number = self.number, None
            read.heard.clear()
            read.target.clear()
        self.ask_again()

    def heard(self, replica_id: int, number: int, vclock: Mapping[int, int]) -> None:
        """A node reports its written vclock, in answer to the reads up to this number."""
        for read in self._waiting:
            if read.number <= number and replica_id not in read.heard:
                read.heard[replica_id] = None
                for origin, lsn in vclock.items():
                    read.target[origin] = max(read.target.get(origin, 0), lsn)

    def proceed(
        self, vclock: Mapping[int, int], last_in_limbo: int, has_settled: Callable[[int], bool]
    ) -> None:
        """Answer the reads that have all that they wait for."""
        for read in list(self._waiting):
            if read.limbo_number is None:
                if len(read.heard) < self.others_needed or not covers(vclock, read.target):
                    continue
                # Noted once: what is queued later was not acknowledged before the read began, and need not be awaited.
                read.limbo_number = last_in_limbo
                if not has_settled(last_in_limbo):
                    self.sometimes.note(rare.READ_WAITED)
            if has_settled(read.limbo_number):
                self._waiting.remove(read)
                read.answer()

    def give_up(self, now_ns: int) -> None:
        """Refuse the reads whose deadline has passed."""
        for read in list(self._waiting):
            if read.deadline_ns <= now_ns:
                self._waiting.remove(read)
                self.sometimes.note(rare.READ_GIVEN_UP)
                read.give_up()

    def __len__(self) -> int:
        return len(self._waiting)
