"""Rules about the order of values, on the smallest histories that show them."""

from __future__ import annotations

from typing import Any

from checkers import sessions
from checkers.replicas import convergence, prefix
from checkers.sessions import staleness
from tests.checkers.history.test_members import CONFIRMED, Record


def replica_reads(record: Record, value: Any) -> None:
    record.ask("read", value, "n2", "replica", key="a", **CONFIRMED)


def writes(record: Record, value: Any, f: str = "write", ended: str = "ok") -> None:
    process = len(record.events)
    record.line("invoke", process, f, value=value, key="a", node="n1")
    record.line(ended, process, f, value=value, key="a", node="n1", role="owner")


def dumps(record: Record, node: str, value: int) -> None:
    rows = {"spaces": {"register": [["a", value]]}}
    record.ask("dump", rows, node, "replica", phase="final")


def test_a_replica_may_show_what_was_there_before() -> None:
    """If it failed, a store that held something from the start would be called one that invents values."""
    record = Record()
    replica_reads(record, 7)
    assert prefix.check(record.history).result == "invalid"
    assert prefix.check(record.history.starting_at(7)).result == "valid"


def test_a_cas_to_itself_writes_nothing() -> None:
    """If it failed, a value from nowhere would be excused by it, and reads that went back would be missed."""
    for pair in ([5, 5], ["x", "x"]):
        record = Record()
        writes(record, pair, f="cas", ended="info")
        replica_reads(record, pair[0])
        assert prefix.check(record.history).witnesses[0].rule == "never-written"
        record = Record()
        writes(record, pair[0])
        writes(record, 6)
        writes(record, pair, f="cas", ended="info")
        replica_reads(record, 6)
        replica_reads(record, pair[0])
        assert prefix.check(record.history).witnesses[0].rule == "went-back"


def test_a_cas_to_itself_is_no_version() -> None:
    """If it failed, a read would be called staler than it is."""
    record = Record()
    writes(record, 5)
    writes(record, 7)
    writes(record, [7, 7], f="cas")
    replica_reads(record, 5)
    assert staleness.check(record.history, versions_max=1).details["stale_versions_max"] == 1


def test_a_write_between_two_dumps_is_lost_by_the_later_one() -> None:
    """If it failed, a lost write would be missed as soon as another node had given its dump before it."""
    record = Record()
    writes(record, 1)
    dumps(record, "n1", 1)
    writes(record, 2)
    dumps(record, "n2", 1)
    (witness,) = convergence.check(record.history).witnesses
    assert (witness.rule, witness.node) == ("lost-write", "n2")


def test_a_failed_write_of_a_fraction_is_named() -> None:
    """If it failed, a value that a client did ask to write would be told as one that nobody asked for."""
    for value in (1.5, True, "x"):
        record = Record()
        writes(record, 1, ended="fail")
        writes(record, value, ended="fail")
        replica_reads(record, value)
        witness = sessions.check(record.history).witnesses[0]
        assert (witness.rule, witness.events[0]) == ("read-of-failed-write", 2)
