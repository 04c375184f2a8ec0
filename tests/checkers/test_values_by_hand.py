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


def told(record: Record) -> list[str]:
    return [f"{witness.rule}: {witness.summary}" for witness in prefix.check(record.history).witnesses]


def cas_saw(process: int, value: int) -> str:
    saw = f"the compare-and-set of key a at n1 by process {process} saw {value}"
    return f"compare-from-the-future: {saw}, before that can have been written"


def overlapping(*parts: tuple[str, str, Any]) -> Record:
    """Invocations and ends of writes in the order given, and reads. Each write is known by its process."""
    record, asked = Record(), dict[str, Any]()
    replica_reads(record, None)
    for name, how, value in parts:
        if how == "read":
            replica_reads(record, value)
            continue
        asked[name] = value if how == "invoke" else asked[name]
        f = "cas" if isinstance(asked[name], list) else "write"
        record.line(how, int(name), f, value=asked[name], key="a", node="n1")
    return record


def test_a_cas_that_saw_the_future_is_named_and_no_replica_is_blamed_for_it() -> None:
    """If it failed, a replica would be said to go back, or a dump to have lost a write, by a write that came later."""
    for ended in ("ok", "info"):
        record = Record()
        writes(record, [5, 6], f="cas", ended=ended)
        if ended == "info":
            replica_reads(record, 6)
        writes(record, 7)
        replica_reads(record, 7)
        writes(record, 5)
        replica_reads(record, 5)
        for node in ("n1", "n2", "n3"):
            dumps(record, node, 5)
        assert "lost-write" not in {witness.rule for witness in convergence.check(record.history).witnesses}
        answer = "the read of key a at n2 by process 2 returned 6"
        future = f"read-from-the-future: {answer}, before that can have been written"
        assert told(record)[0] == (cas_saw(0, 5) if ended == "ok" else future)
        assert not any("returned 5" in each for each in told(record)), "n2 showed it once it was there"


def test_which_cas_saw_the_future() -> None:
    """If it failed, a witness would name a compare-and-set that did nothing wrong, or none."""
    first_alone = Record()
    writes(first_alone, [1, 2], f="cas")
    writes(first_alone, [2, 3], f="cas")
    writes(first_alone, 1)
    replica_reads(first_alone, 3)
    assert told(first_alone) == [cas_saw(0, 1)]
    any_writer = Record()
    writes(any_writer, [1, 2], f="cas")
    writes(any_writer, 1)
    writes(any_writer, 1)
    replica_reads(any_writer, 1)
    assert told(any_writer) == [cas_saw(0, 1)]
    second = [("1", "invoke", [1, 2]), ("2", "invoke", [2, 3]), ("2", "ok", None)]
    late = [("3", "invoke", 1), ("3", "ok", None), ("1", "ok", None)]
    newer = [("4", "invoke", 7), ("4", "ok", None), ("n2", "read", 7)]
    assert told(overlapping(*second, *newer, *late, ("n2", "read", 2))) == [cas_saw(2, 2)]
    assert told(overlapping(late[0], *second, *late[1:])) == []


def test_compare_and_sets_that_made_what_each_other_saw() -> None:
    """If it failed, none of those would be named of which one was the first, or one that may never have happened."""
    for ended, named in (("ok", [cas_saw(1, 1), cas_saw(2, 2)]), ("info", [cas_saw(1, 1)])):
        record = overlapping(
            ("1", "invoke", [1, 2]), ("2", "invoke", [2, 1]), ("2", ended, None), ("1", "ok", None)
        )
        assert told(record) == named
        replica_reads(record, 2)
        replica_reads(record, 1)
        assert told(record) == named


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
