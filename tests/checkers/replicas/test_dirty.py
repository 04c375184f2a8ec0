"""Dirty reads that the store answers in another mode."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.replicas import dirty
from tests.checkers.history.test_members import Record


def test_reads_that_are_answered_in_another_mode_are_not_missed() -> None:
    """If it failed, a store without dirty reads would be inconclusive as soon as one such read is lost."""
    record = Record()
    record.line("invoke", 0, "read", key="a", node="n1", mode="dirty")
    record.line("ok", 0, "read", key="a", node="n1", role="replica", mode="read-confirmed")
    record.line("invoke", 1, "read", key="a", node="n1", mode="dirty")
    record.line("fail", 1, "read", key="a", node="n1", error="timeout")
    verdict = dirty.check(record.history)
    assert (verdict.result, verdict.details["asked"]) == ("unknown", 0)


def test_dirty_reads_that_are_all_lost_leave_the_run_open() -> None:
    """If it failed, a run would be valid in which no dirty read was answered, or none of those in that mode."""
    record = Record()
    record.line("invoke", 0, "read", key="a", node="n1", mode="dirty")
    record.line("fail", 0, "read", key="a", node="n1", error="timeout")
    record.ask("read", None, "n1", "owner", key="a", mode="read-confirmed")
    verdict = dirty.check(record.history)
    assert (verdict.result, verdict.details["asked"]) == ("unknown", 1)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (("txn", [["w", 1, 5]]), ("txn", [["r", 1, 5]])),
        (("txn", [["write", "a", 1]]), ("read", 1)),
        (("append", 1), ("read", [1])),
        (("add", 1), ("read", [1])),
        (("write", [1, 2]), ("read", [1, 2])),
    ],
)
def test_what_was_asked_in_other_words_may_be_shown(asked: tuple[str, Any], shown: tuple[str, Any]) -> None:
    """If it failed, a dirty read of what a client did write would be called invented."""
    record = Record()
    record.ask(asked[0], asked[1], "n1", "owner", key="a", asked=asked[1])
    record.ask(shown[0], shown[1], "n2", "replica", key="a", mode="dirty")
    assert dirty.check(record.history).result == "valid"


def test_what_was_there_before_may_be_shown() -> None:
    """If it failed, a dirty read of a value that the store held from the start would be called invented."""
    record = Record()
    record.ask("read", 7, "n2", "replica", key="a", mode="dirty")
    assert dirty.check(record.history).result == "invalid"
    assert dirty.check(record.history.starting_at(7)).result == "valid"


def test_a_transaction_that_writes_is_no_dirty_read() -> None:
    """If it failed, a run without one dirty read would be valid."""
    record = Record()
    micros = [["w", "a", 1]]
    record.ask("txn", micros, "n1", "owner", asked=micros, mode="dirty")
    assert (dirty.check(record.history).result, dirty.check(record.history).details["asked"]) == (
        "unknown",
        0,
    )


def test_every_element_of_a_list_is_judged() -> None:
    """If it failed, a dirty read of a list could show values that nobody wrote, as long as its last one was asked."""
    for shown, expected in ([99, 1], ["never-written"]), ([1], []):
        record = Record()
        record.ask("txn", [["append", "a", 1]], "n1", "owner", asked=[["append", "a", 1]])
        record.ask("txn", [["r", "a", shown]], "n2", "replica", asked=[["r", "a", None]], mode="dirty")
        assert [witness.rule for witness in dirty.check(record.history).witnesses] == expected
