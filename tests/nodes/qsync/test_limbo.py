"""The limbo's bookkeeping, against counting by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodes.qsync.limbo import UNWRITTEN, Entry, Limbo
from nodes.qsync.spaces import Transaction

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.booleans(), st.integers(1, 3)),
        st.tuples(st.just("written"), st.just(False), st.just(0)),
        st.tuples(st.just("ack"), st.booleans(), st.integers(0, 40)),
        st.tuples(st.just("confirm"), st.just(False), st.just(0)),
    ),
    max_size=60,
)


@given(steps=STEPS, quorum=st.integers(1, 3))
def test_what_is_confirmed_is_on_a_quorum_and_nothing_is_left_behind(
    steps: list[tuple[str, bool, int]], quorum: int
) -> None:
    """Broken, an entry commits that too few nodes have, or one that enough nodes have waits for nothing."""
    limbo, lsn = Limbo(), 0
    submitted: list[tuple[Entry, int]] = []
    taken: list[Entry] = []
    acks = {1: 0, 2: 0, 3: 0}
    for step, flag, number in steps:
        if step == "submit" and (flag or limbo.entries):
            lsn += number
            submitted.append((Entry(Transaction(()), wait_ack=flag), lsn))
            limbo.append(submitted[-1][0])
        elif step == "written" and (left := [pair for pair in submitted if pair[0].lsn == UNWRITTEN]):
            left[0][0].lsn = acks[1] = left[0][1]
            limbo.acknowledge(1, acks[1])
            taken += limbo.settled()
        elif step == "ack":
            node, known = 2 + flag, min(number, lsn)
            assert limbo.acknowledge(node, known) == (known > acks[node])
            acks[node] = max(acks[node], known)
        elif step == "confirm" and (upto := limbo.confirmable(quorum)) is not None:
            assert sum(ack >= upto for ack in acks.values()) >= quorum
            taken += limbo.confirm(upto)
            assert limbo.confirmable(quorum) is None
    assert taken == [entry for entry, _ in submitted[: len(taken)]], (
        "entries leave in the order of the journal"
    )
    for entry, entry_lsn in submitted[len(taken) :]:
        if limbo.confirmable(quorum) is None and entry.wait_ack and entry.lsn != UNWRITTEN:
            assert sum(ack >= entry_lsn for ack in acks.values()) < quorum


def test_an_acknowledgement_during_a_rollback_says_nothing() -> None:
    """Broken, an entry whose ROLLBACK is being written is confirmed as well."""
    limbo = Limbo()
    limbo.append(Entry(Transaction(()), wait_ack=True, lsn=5))
    limbo.is_in_rollback = True
    assert not limbo.acknowledge(2, 5) and limbo.acknowledged == {}


def test_an_entry_that_is_still_being_written_is_not_confirmed() -> None:
    """Broken, the CONFIRM of an entry commits and answers those behind it that are on no disk yet."""
    for wait_ack in (True, False):
        limbo = Limbo()
        written = Entry(Transaction(()), wait_ack=True, lsn=5)
        behind = Entry(Transaction(()), wait_ack=wait_ack)
        limbo.append(written)
        limbo.append(behind)
        assert limbo.confirm(5) == [written]
        assert list(limbo.entries) == [behind]


def test_a_new_owner_has_rolled_back_nothing() -> None:
    """Broken, its CONFIRM of an lsn that the former owner rolled back would count as a split-brain."""
    limbo = Limbo()
    limbo.owner_id = 1
    for lsn in (1, 2):
        limbo.append(Entry(Transaction(()), wait_ack=True, lsn=lsn))
    limbo.roll_back(2)
    assert limbo.rolled_back == {2}
    limbo.promote(2, 2, 0, 2)
    assert not limbo.rolled_back


def test_a_promote_names_the_newest_entry_even_if_it_is_still_being_written() -> None:
    """Broken, a PROMOTE would roll back what a quorum may have, because its own node's disk was the slowest."""
    limbo = Limbo()
    limbo.confirmed_lsn = 4
    assert limbo.last_synchronous_lsn() == 4
    limbo.append(Entry(Transaction(()), wait_ack=True, lsn=5, promised_lsn=5))
    limbo.append(Entry(Transaction(()), wait_ack=True, promised_lsn=6))
    limbo.append(Entry(Transaction(()), wait_ack=False, promised_lsn=7))
    assert limbo.last_synchronous_lsn() == 6


def test_the_size_is_that_of_the_entries_that_wait() -> None:
    """Broken, a queue that was full once stays full, and every client waits for room without end."""
    limbo = Limbo()
    entries = [Entry(Transaction(()), wait_ack=True, lsn=lsn, size=10**lsn) for lsn in range(5)]
    for entry in entries:
        limbo.append(entry)
    assert limbo.size == 11_111
    limbo.drop_newest(entries[4])
    assert limbo.size == 1_111
    assert limbo.confirm(1) == entries[:2]
    assert limbo.size == 1_100
    assert limbo.roll_back(3) == [entries[3]]
    assert limbo.size == 100
    limbo.owner_id = 1
    assert limbo.promote(2, 2, 2, 5) == ([entries[2]], [])
    assert limbo.size == 0
