"""What logs know of operations without an outcome, and when they must say nothing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from checkers import linearizable
from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.logs.wal import LogRules, Logs, NodeLog, Record, Settled, settle
from checkers.logs.wal.settle import Marks, shown
from tests.checkers.logs.wal.logs import confirm, log, nop, rollback, write


def history(*lines: tuple[str, int, str, object]) -> History:
    """Lines as (type, process, f, value), all about the key x."""
    return History.of(
        Header(),
        [
            Event(index=index, time_ns=index, type=kind, process=process, f=f, key="x", value=value)  # type: ignore[arg-type]
            for index, (kind, process, f, value) in enumerate(lines)
        ],
    )


UNKNOWN_WRITE = history(("invoke", 1, "write", 7), ("info", 1, "write", 7))


def settled(past: History, *logs: NodeLog, is_final: bool = True) -> Settled:
    return settle(past, Logs.of(logs, LogRules(promotes="at once")), is_final=is_final)


def test_what_a_log_confirms_happened_at_any_later_time() -> None:
    """Breaks if a settled write got an end: a log does not tell how late it took effect."""
    found = settled(UNKNOWN_WRITE, log("n1", write(1, 1, 7), confirm(1, 2, until=1)), log("n2"))
    assert found.happened == (0,)
    assert found.history.operations[0].returned_index is None


def test_what_every_log_rolled_back_did_not_happen() -> None:
    """Breaks if ROLLBACK decided nothing: then a read of that value would pass."""
    found = settled(UNKNOWN_WRITE, log("n1", write(1, 1, 7), rollback(1, 2, start=1)), log("n2", nop(1, 1)))
    assert found.did_not == (0,)
    assert found.history.operations[0].type == "fail"


def test_what_no_log_holds_did_not_happen_only_if_no_log_was_lost() -> None:
    """Breaks if a missing log were proof."""
    assert settled(UNKNOWN_WRITE, log("n1"), log("n2")).did_not == (0,)
    assert settled(UNKNOWN_WRITE, log("n1"), log("n2"), is_final=False).open == (0,)


def test_what_still_waits_stays_open() -> None:
    """Breaks if a pending transaction were settled: the next leader decides about it."""
    assert settled(UNKNOWN_WRITE, log("n1", write(1, 1, 7))).open == (0,)


def test_logs_that_contradict_each_other_settle_nothing() -> None:
    """Breaks if one of two contradicting logs were believed; that they do is the anomaly."""
    logs = (
        log("n1", write(1, 1, 7), confirm(1, 2, until=1)),
        log("n2", write(1, 1, 7), rollback(1, 2, start=1)),
    )
    assert settled(UNKNOWN_WRITE, *logs).open == (0,)


def deletion(lsn: int) -> Record:
    return replace(write(1, lsn), tuple=(), key="x")


def test_the_only_deletion_of_a_key_is_joined_to_its_row() -> None:
    """Breaks if an acknowledged deletion that every log rolled back went unseen."""
    unknown = history(("invoke", 1, "write", None), ("info", 1, "write", None))
    assert settled(unknown, log("n1", deletion(1), confirm(1, 2, until=1))).happened == (0,)
    done = history(("invoke", 1, "write", None), ("ok", 1, "write", None))
    assert len(settled(done, log("n1", deletion(1), rollback(1, 2, start=1))).lost) == 1
    by_operations = replace(deletion(1), is_whole=False)
    assert settled(done, log("n1", by_operations, rollback(1, 2, start=1))).lost == ()
    twice = history(("invoke", 1, "write", None), ("invoke", 2, "write", None))
    assert settled(twice, log("n1", deletion(1), confirm(1, 2, until=1))).open == (0, 1)


def test_a_deletion_without_a_row_settles_nothing() -> None:
    """Breaks if a deletion of nothing, which writes no row, were said to be lost: a false alarm."""
    done = history(("invoke", 1, "write", None), ("ok", 1, "write", None))
    assert settled(done, log("n1")).lost == ()
    unknown = history(("invoke", 1, "write", None), ("info", 1, "write", None))
    assert settled(unknown, log("n1")).open == (0,)


def test_a_transaction_that_only_deletes_settles_nothing_without_a_row() -> None:
    """Breaks if a deletion of nothing by a transaction were said to be lost, or one with a write went unseen."""

    def lost(*parts: list[object]) -> int:
        asked = list(parts)
        return len(settled(history(("invoke", 1, "txn", asked), ("ok", 1, "txn", asked)), log("n1")).lost)

    assert lost(["w", "x", None]) == 0
    assert lost(["w", "x", None], ["w", "y", 5]) == 1
    compared = history(("invoke", 1, "cas", [3, None]), ("ok", 1, "cas", [3, None]))
    assert len(settled(compared, log("n1")).lost) == 1


def test_a_transaction_with_odd_parts_has_no_marks_of_them() -> None:
    """Breaks if a history of another tool ended the check with a traceback."""
    asked = [["w", "x"], ["w", ["x"], 7], [], "w"]
    past = history(("invoke", 1, "txn", asked), ("info", 1, "txn", asked))
    assert settled(past, log("n1")).did_not == ()


@pytest.mark.parametrize(
    ("f", "value", "row"),
    [
        ("write", [1, 2], write(1, 1, [1, 2])),
        ("write", {"a": 1}, write(1, 1, {"a": 1})),
        ("cas", [3, {"a": 1}], write(1, 1, {"a": 1})),
        ("cas", [3, [1, 2]], write(1, 1, [1, 2])),
        ("txn", [["w", 1, 7]], write(1, 1, 7, key="1")),
        ("txn", [["w", 1, 7]], replace(write(1, 1, 7), tuple=(1, 7))),
        ("txn", [["append", 1, 7]], write(1, 1, [7], key="1")),
        ("txn", [["append", "x", 1.5]], write(1, 1, [1.5])),
        ("txn", [["append", "x", [7]]], write(1, 1, [[7]])),
        ("txn", [["w", "x", [1, 2]]], write(1, 1, [1, 2])),
        ("txn", [["w", "x", 7], ["w", "x", {"a": 1}]], write(1, 1, {"a": 1})),
    ],
)
def test_what_a_log_holds_in_another_form_is_not_lost(f: str, value: object, row: Record) -> None:
    """Breaks if a confirmed write were said to be lost because of the form of its key or value: a false alarm."""
    past = history(("invoke", 1, f, value), ("ok", 1, f, value))
    assert settled(past, log("n1", row, confirm(1, 2, until=1))).lost == ()


def test_a_list_is_known_by_its_end() -> None:
    """Breaks if a lost list went unseen, or the row of one operation decided about another with the same end."""
    past = history(("invoke", 1, "write", [1, 2]), ("ok", 1, "write", [1, 2]))
    assert len(settled(past, log("n1", write(1, 1, [1, 2]), rollback(1, 2, start=1))).lost) == 1
    added = ("invoke", 2, "txn", [["append", "x", 2]]), ("ok", 2, "txn", [["append", "x", 2]])
    both = history(("invoke", 1, "write", [1, 2]), ("ok", 1, "write", [1, 2]), *added)
    assert settled(both, log("n1", write(1, 1, [1, 2]), rollback(1, 2, start=1))).lost == ()


def shown_of(f: str, value: object, *rows: Record, mode: str = "linearizable") -> list[object]:
    """The answer of a confirmed read to a write of 7 that is in these rows."""
    written = history(("invoke", 1, "write", 7), ("ok", 1, "write", 7))
    read = [
        Event(index=index, time_ns=index, type=kind, process=2, f=f, key="x", value=value, mode=mode)  # type: ignore[arg-type]
        for index, kind in enumerate(("invoke", "ok"), start=2)
    ]
    past = History.of(Header(), [*written.events, *read])
    found = shown(Marks.of(past, Logs.of((log("n1", *rows),), LogRules(promotes="at once"))))
    return list(found[2])


def test_a_confirmed_read_shows_whose_value_it_read() -> None:
    """Breaks if a read of what was not confirmed yet went unseen."""
    assert shown_of("read", 7, write(1, 1, 7)) == [(1, 1)]
    assert shown_of("read", 7, write(1, 1, 7), mode="dirty") == []
    assert shown_of("read", None, write(1, 1, 7)) == []
    assert shown_of("txn", [["r", "x", 7]], write(1, 1, 7)) == [(1, 1)]
    assert shown_of("txn", [["r", "x", [3, 7]]], write(1, 1, 7)) == [(1, 1)]
    assert shown_of("txn", [["r", "x", 7], ["w", "y", 1]], write(1, 1, 7)) == []


def test_a_value_in_two_transactions_is_shown_of_neither() -> None:
    """Breaks if a read were held against the one of two transactions whose value it did not read: a false alarm."""
    assert shown_of("read", 7, write(1, 1, 7), write(1, 2, 7)) == []


@pytest.mark.parametrize(
    "part", [[], ["r"], ["r", "x"], 5, None, "r", {"r": 1}, ["r", ["x"], 7], ["r", {}, 7]]
)
def test_a_read_with_odd_parts_is_no_traceback(part: object) -> None:
    """Breaks if a history of another tool ended the check with a traceback."""
    assert shown_of("txn", [part], write(1, 1, 7)) == []


def test_marks_in_two_transactions_settle_nothing() -> None:
    """Breaks if an operation were joined to one of the transactions that wrote its value."""
    one, other = (write(1, 1, 7), confirm(1, 2, until=1)), (write(2, 1, 7), confirm(2, 2, until=1))
    assert settled(UNKNOWN_WRITE, log("n1", *one, *other)).open == (0,)


def test_a_value_that_two_operations_write_settles_neither() -> None:
    """Breaks if the row of one operation decided about another that wrote the same."""
    past = history(
        ("invoke", 1, "write", 7),
        ("info", 1, "write", 7),
        ("invoke", 2, "cas", [3, 7]),
        ("ok", 2, "cas", [3, 7]),
    )
    assert settled(past, log("n1")).did_not == ()


def test_an_acknowledged_write_that_all_logs_discard_is_told() -> None:
    """Breaks if an answer that the logs deny went unseen because nobody read the value."""
    past = history(("invoke", 1, "write", 7), ("ok", 1, "write", 7))
    assert len(settled(past, log("n1", write(1, 1, 7), rollback(1, 2, start=1))).lost) == 1
    assert settled(past, log("n1", write(1, 1, 7), confirm(1, 2, until=1))).lost == ()


def test_a_definite_failure_that_a_log_confirms_is_told() -> None:
    """Breaks if 'surely did not happen' could be wrong unseen."""
    past = history(("invoke", 1, "write", 7), ("fail", 1, "write", 7))
    assert len(settled(past, log("n1", write(1, 1, 7), confirm(1, 2, until=1))).kept) == 1


def test_the_verdict_over_settled_operations_sees_more() -> None:
    """Breaks if settling changed nothing: a read of what was rolled back passes only while nobody knows that."""
    past = history(
        ("invoke", 1, "write", 7), ("info", 1, "write", 7), ("invoke", 2, "read", None), ("ok", 2, "read", 7)
    )
    found = settled(past, log("n1", write(1, 1, 7), rollback(1, 2, start=1)))
    everything = {"reads": lambda role, mode: True}
    assert linearizable.check(past, **everything).result == "valid"
    assert linearizable.check(found.history, **everything).result == "invalid"


def test_a_transaction_is_joined_by_what_it_put_last_under_each_key() -> None:
    """Breaks if transactions over lists could not be settled, or one of several keys were enough to settle by."""
    asked = [["append", "x", 7], ["append", "x", 8], ["w", "y", 9], ["r", "z", None]]
    past = history(("invoke", 1, "txn", asked), ("info", 1, "txn", asked))
    rows = (write(1, 1, [3, 7, 8]), write(1, 2, 9, key="y"))
    one = tuple(replace(row, first=1, ends=row.lsn == 2) for row in rows)
    assert settled(past, log("n1", *one, confirm(1, 3, until=2))).happened == (0,)
    assert settled(past, log("n1", *one, rollback(1, 3, start=1))).did_not == (0,)
    two = (rows[0], confirm(1, 3, until=1), replace(rows[1], lsn=4, first=4))
    assert settled(past, log("n1", *two)).open == (0,)


def refused(found: int | None) -> History:
    """A transfer from x that was refused because of what it found there."""
    asked = {"from": "x", "to": "y", "amount": 9}
    return history(("invoke", 1, "transfer", asked), ("fail", 1, "transfer", {**asked, "found": found}))


DISCARDED = log("n1", write(1, 1, 7), rollback(1, 2, start=1))


def test_a_refused_transaction_may_not_show_what_all_logs_discarded() -> None:
    """Breaks if an error answer that revealed a value which was rolled back passed as no observation."""
    found = settled(refused(7), DISCARDED, log("n2", nop(1, 1)))
    assert [operation.invoke_index for operation in found.revealed] == [0]
    assert settled(refused(7), DISCARDED, is_final=False).revealed == ()


def test_a_refused_transaction_may_show_what_was_confirmed_at_any_time() -> None:
    """Breaks if an old value, or one that no log has, were an alarm: a deposed leader compares with what it has."""
    again = log("n2", write(1, 1, 7), rollback(1, 2, start=1), write(1, 3, 7), confirm(1, 4, until=3))
    assert settled(refused(7), DISCARDED, again).revealed == ()
    assert settled(refused(0), DISCARDED).revealed == ()
    assert settled(refused(None), DISCARDED).revealed == ()


def test_a_refused_compare_and_set_is_such_a_transaction() -> None:
    """Breaks if a compare that failed on what was rolled back passed where failed compares are judged no further."""
    past = history(("invoke", 1, "cas", [5, 6]), ("fail", 1, "cas", [5, 6, 7]))
    assert [operation.key for operation in settled(past, DISCARDED).revealed] == ["x"]
    untold = history(("invoke", 1, "cas", [5, 6]), ("fail", 1, "cas", [5, 6]))
    assert settled(untold, DISCARDED).revealed == ()
    of_another_key = log("n1", write(1, 1, 7, key="y"), rollback(1, 2, start=1))
    assert settled(past, of_another_key).revealed == ()
    nothing = history(("invoke", 1, "cas", [5, 6]), ("fail", 1, "cas", [5, 6, None]))
    assert settled(nothing, log("n1", deletion(1), rollback(1, 2, start=1))).revealed == ()
