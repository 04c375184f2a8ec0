"""Linearizable reads, on any node: ask enough nodes what they have written, then wait until we have it decided.

A write that was acknowledged is in the log of a quorum of Q nodes. N − Q + 1 nodes, we among them, therefore hold it
somewhere (`replication_linearizable_quorum` can name another number). Each is asked for its *written* vclock after the
read began: a heartbeat with a number, which its acknowledgement repeats. When our own log has all of that, and all that
waited in our limbo at that moment is committed or rolled back, the confirmed view holds every write that was
acknowledged before the read began.

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
    """`limbo_number` is set when the log has everything: then the limbo is waited for."""

    number: int
    deadline_ns: int
    answer: Callable[[], None]
    give_up: Callable[[], None]
    heard: dict[int, None] = field(default_factory=dict)
    target: dict[int, int] = field(default_factory=dict)
    limbo_number: int | None = None


class LinearizableReads:
    """Reads that wait. `others_needed` nodes must answer besides ourselves."""

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
        """Another node can be asked now: the answers of those that were asked before still count."""
        self.must_ask = bool(self._waiting) and self.others_needed > 0

    def ask_anew(self) -> None:
        """The members have changed: the nodes asked before may not be enough now."""
        for read in self._waiting:
            self.number += 1
            read.number, read.limbo_number = self.number, None
            read.heard.clear()
            read.target.clear()
        self.ask_again()

    def heard(self, replica_id: int, number: int, vclock: Mapping[int, int]) -> None:
        """A node says what it has written; it was asked by the read of this number or before."""
        for read in self._waiting:
            if read.number <= number and replica_id not in read.heard:
                read.heard[replica_id] = None
                for origin, lsn in vclock.items():
                    read.target[origin] = max(read.target.get(origin, 0), lsn)

    def proceed(
        self, vclock: Mapping[int, int], last_in_limbo: int, has_settled: Callable[[int], bool]
    ) -> None:
        """Answer what can be answered now."""
        for read in list(self._waiting):
            if read.limbo_number is None:
                if len(read.heard) < self.others_needed or not covers(vclock, read.target):
                    continue
                read.limbo_number = last_in_limbo
                if not has_settled(last_in_limbo):
                    self.sometimes.note(rare.READ_WAITED)
            if has_settled(read.limbo_number):
                self._waiting.remove(read)
                read.answer()

    def give_up(self, now_ns: int) -> None:
        """Refuse what waited for too long."""
        for read in list(self._waiting):
            if read.deadline_ns <= now_ns:
                self._waiting.remove(read)
                self.sometimes.note(rare.READ_GIVEN_UP)
                read.give_up()

    def __len__(self) -> int:
        return len(self._waiting)
