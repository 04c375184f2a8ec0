"""The limbo replayed from a log, and its slow and obvious twin."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from checkers.logs.wal import Fate, Id, LogRules, Logs, Node, Record
from checkers.logs.wal.nodes import FATES
from tests.checkers.logs.wal.logs import confirm, log, nop, promote, rollback, write
from tests.checkers.logs.wal.over_objects import replay


def replayed(*records: Record, promotes: str = "at once") -> Node:
    rules = LogRules(promotes=promotes)  # type: ignore[arg-type]
    return Logs.of([log("n1", *records)], rules).nodes[0]


def fates(*records: Record, promotes: str = "at once") -> dict[Id, Fate]:
    node = replayed(*records, promotes=promotes)
    named = ((node.rows.id_of(name), FATES[fate]) for name, fate in enumerate(node.fates.tolist()))
    found = {name: fate for name, fate in named if fate is not None}
    assert found == replay(node.log, promotes).fates  # type: ignore[arg-type]
    return found


def test_confirm_is_cumulative() -> None:
    """Breaks if CONFIRM settled one transaction instead of all up to its lsn."""
    assert set(fates(write(1, 1), write(1, 2), confirm(1, 3, until=2)).values()) == {"confirmed"}


def test_confirm_7_after_rollback_5_is_legal() -> None:
    """Breaks if a later, cumulative CONFIRM brought back what a ROLLBACK had discarded."""
    found = fates(write(1, 5), write(1, 6), rollback(1, 7, start=5), write(1, 8), confirm(1, 9, until=8))
    assert found == {(1, 5): "rolled back", (1, 6): "rolled back", (1, 8): "confirmed"}


def test_an_asynchronous_transaction_waits_behind_a_queue_and_goes_with_it() -> None:
    """Breaks if an asynchronous transaction were committed although what it stands behind is rolled back."""
    found = fates(write(1, 1), write(1, 2, waits=False), rollback(1, 3, start=1), write(1, 4, waits=False))
    assert found == {(1, 1): "rolled back", (1, 2): "rolled back", (1, 4): "committed"}


def test_an_asynchronous_transaction_right_behind_is_committed_by_the_same_confirm() -> None:
    """Breaks if it stayed pending for ever: nothing else would ever confirm it."""
    assert fates(write(1, 1), write(1, 2, waits=False), confirm(1, 3, until=1))[(1, 2)] == "confirmed"


def test_a_promote_at_once_confirms_up_to_its_lsn_and_discards_the_rest() -> None:
    """Breaks if the new owner's PROMOTE decided nothing about the old owner's entries."""
    found = fates(write(1, 1), write(1, 2), promote(2, 1, over=1, until=1, term=2))
    assert found == {(1, 1): "confirmed", (1, 2): "rolled back"}


def test_a_synchronous_promote_waits_for_the_confirm_that_covers_it() -> None:
    """Breaks if PROMOTE took effect without its own quorum where the configuration says that it needs one."""
    rows = (write(1, 1), write(1, 2), promote(2, 1, over=1, until=1, term=2))
    assert set(fates(*rows, promotes="synchronous").values()) == {"pending"}
    found = fates(*rows, confirm(2, 2, until=1), promotes="synchronous")
    assert found == {(1, 1): "confirmed", (1, 2): "rolled back"}


def test_a_promote_that_was_overtaken_comes_to_nothing() -> None:
    """Breaks if the PROMOTE of a leader that never got its quorum decided about entries."""
    found = fates(
        write(1, 1),
        write(1, 2),
        promote(2, 1, over=1, until=0, term=2),
        promote(3, 1, over=1, until=2, term=3),
        confirm(3, 2, until=1),
        promotes="synchronous",
    )
    assert set(found.values()) == {"confirmed"}


def test_a_promote_of_a_term_that_is_over_says_nothing() -> None:
    """Breaks if a late PROMOTE of an old leader discarded what the new one has in its queue."""
    found = fates(promote(2, 1, over=0, until=0, term=3), write(2, 2), promote(3, 1, over=2, until=0, term=2))
    assert found == {(2, 2): "pending"}


def test_what_was_written_without_content_is_void() -> None:
    """Breaks if the row of a deposed owner counted as a transaction that waits."""
    assert fates(nop(1, 4)) == {(1, 4): "nop"}


def test_rows_of_one_transaction_share_its_fate() -> None:
    """Breaks if the first row of a transaction of two were settled by itself."""
    first = Record(kind="write", origin=1, lsn=1, first=1, ends=False, file="row 1")
    last = Record(kind="write", origin=1, lsn=2, first=1, file="row 2", is_synchronous=True)
    assert fates(first, last, confirm(1, 3, until=2)) == {(1, 1): "confirmed"}


def obvious(records: list[Record]) -> dict[Id, Fate]:
    """The twin: for every synchronous transaction the first later decision that is about it."""
    found: dict[Id, Fate] = {}
    for place, row in enumerate(records):
        if row.kind == "write":
            verdicts = (_about(row, decision) for decision in records[place + 1 :])
            found[row.id] = next((verdict for verdict in verdicts if verdict is not None), "pending")
    return found


def _about(row: Record, decision: Record) -> Fate | None:
    is_his = decision.owner == row.origin
    match decision.kind:
        case "confirm" if is_his and row.lsn <= decision.until:
            return "confirmed"
        case "rollback" if is_his and row.lsn >= decision.until:
            return "rolled back"
        case "promote":
            return "confirmed" if is_his and row.lsn <= decision.until else "rolled back"
    return None


def obvious_contradictions(records: list[Record]) -> list[Record]:
    """The twin: what was pending just before each decision, from the whole log up to there."""
    found = []
    for place, row in enumerate(records):
        before = records[:place]
        waiting = {name for name, fate in obvious(before).items() if fate == "pending"}
        decided = max(
            (
                each.until
                for each in before
                if each.kind in ("confirm", "promote") and each.owner == row.owner
            ),
            default=0,
        )
        promoted = {each.id for each in before if each.kind == "promote"}
        named = (row.owner, row.until)
        match row.kind:
            case "confirm" if named not in waiting | promoted and row.until > max(decided, 0):
                found.append(row)
            case "rollback" if named not in waiting and row.until > 0:
                found.append(row)
    return found


@st.composite
def legal_logs(draw: st.DrawFn) -> list[Record]:
    """What one owner at a time may write, PROMOTE taking effect at once."""
    records: list[Record] = []
    owner, term = 1, 1
    lsns = {1: 0, 2: 0, 3: 0}
    confirmed = dict(lsns)
    for _ in range(draw(st.integers(0, 25))):
        step = draw(st.sampled_from(["write", "write", "write", "confirm", "rollback", "promote"]))
        if step == "promote":
            new, term = draw(st.integers(1, 3)), term + 1
            until = draw(st.integers(confirmed[owner], lsns[owner]))
            confirmed[owner] = until
            lsns[new] += 1
            records.append(promote(new, lsns[new], over=owner, until=until, term=term))
            owner = new
            continue
        lsns[owner] += 1
        lsn = lsns[owner]
        until = draw(st.integers(0, lsn))
        if step == "confirm":
            confirmed[owner] = max(until, confirmed[owner])
        records.append(
            write(owner, lsn)
            if step == "write"
            else confirm(owner, lsn, until=until)
            if step == "confirm"
            else rollback(owner, lsn, start=until)
        )
    return records


@given(legal_logs())
def test_the_replay_and_its_twin_say_the_same(records: list[Record]) -> None:
    """Breaks if the queue, however it is kept, gave a transaction another fate than the rules by themselves."""
    assert fates(*records) == obvious(records)


@given(legal_logs())
def test_the_replay_and_its_twin_find_the_same_contradictions(records: list[Record]) -> None:
    """Breaks if the queue let a decision pass that names nothing in it, or blamed one that does."""
    expected = obvious_contradictions(records)
    assert [records[place] for place in replayed(*records).contradictions] == expected
    assert replay(log("n1", *records), "at once").contradictions == expected
