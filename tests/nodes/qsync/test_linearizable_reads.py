"""Linearizable reads wait for enough nodes, then for the log, then for the limbo; and no longer than they may."""

from __future__ import annotations

from nodes.qsync.linearizable_reads import LinearizableReads


class Told:
    """What became of a read."""

    def __init__(self, reads: LinearizableReads, deadline_ns: int = 100) -> None:
        self.answered = self.gave_up = False
        reads.begin(deadline_ns, self._answer, self._give_up)

    def _answer(self) -> None:
        self.answered = True

    def _give_up(self) -> None:
        self.gave_up = True


def test_it_waits_for_nodes_then_log_then_limbo() -> None:
    """Broken, a read misses a write that was acknowledged before it began."""
    reads = LinearizableReads(1)
    told = Told(reads)
    assert reads.must_ask
    waiting = {7}

    def has_settled(number: int) -> bool:
        return all(entry > number for entry in waiting)

    reads.proceed({1: 9}, 7, has_settled)
    reads.heard(2, reads.number, {1: 12})
    reads.proceed({1: 11}, 7, has_settled)
    assert not told.answered
    reads.proceed({1: 12}, 7, has_settled)
    assert not told.answered
    waiting.clear()
    reads.proceed({1: 12}, 9, has_settled)
    assert told.answered
    assert len(reads) == 0


def test_an_answer_to_an_older_question_does_not_count() -> None:
    """Broken, a vclock from before the read began is taken for a fresh one."""
    reads = LinearizableReads(1)
    first, second = Told(reads), Told(reads)
    reads.heard(2, 1, {1: 5})
    reads.proceed({1: 5}, 0, lambda number: True)
    assert first.answered
    assert not second.answered


def test_one_node_counts_once() -> None:
    """Broken, the same node is taken for several."""
    reads = LinearizableReads(2)
    told = Told(reads)
    reads.heard(2, 1, {})
    reads.heard(2, 1, {})
    reads.proceed({}, 0, lambda number: True)
    assert not told.answered
    reads.heard(3, 1, {})
    reads.proceed({}, 0, lambda number: True)
    assert told.answered


def test_it_gives_up_at_its_deadline() -> None:
    """Broken, a read at an isolated node hangs for ever."""
    reads = LinearizableReads(1)
    told = Told(reads, deadline_ns=100)
    reads.give_up(99)
    assert not told.gave_up
    reads.give_up(100)
    assert told.gave_up
    assert len(reads) == 0


def test_alone_it_asks_nobody() -> None:
    """Broken, a read with a quorum of all nodes waits for answers that it does not need."""
    reads = LinearizableReads(0)
    told = Told(reads)
    assert not reads.must_ask
    reads.proceed({}, 0, lambda number: True)
    assert told.answered


def test_an_answer_from_before_the_members_changed_does_not_count() -> None:
    """Broken, a read takes the nodes that were asked before for enough of the members of today."""
    reads = LinearizableReads(1)
    told = Told(reads)
    asked_before = reads.number
    reads.ask_anew()
    assert reads.must_ask
    reads.heard(2, asked_before, {1: 5})
    reads.proceed({1: 5}, 0, lambda number: True)
    assert not told.answered
    reads.heard(2, reads.number, {1: 5})
    reads.proceed({1: 5}, 0, lambda number: True)
    assert told.answered
