"""The records that masters leave, with their places."""

from __future__ import annotations

from harness.systems.txlog.logs import logs_in
from nodes.records import Record, framed
from nodes.txlog.journal import FILE

RECORDS: list[Record] = [["life", 1, "none"], ["made", 1, 1, "n1-1-1", []], ["life", 2, "none"], ["matched"]]
WHOLE = b"".join(map(framed, RECORDS))


def test_every_record_has_its_place_and_its_life() -> None:
    """If it failed, a checker would compare what a master did in different lives as if it were one."""
    log = logs_in({"n1": {FILE: WHOLE + b"\0\0"}, "n2": {}}, ("n1", "n2", "n3"))
    assert list(log) == ["n1"]
    assert [(each.place, each.life, each.kind) for each in log["n1"].records] == [
        (1, 1, "life"),
        (2, 1, "made"),
        (3, 2, "life"),
        (4, 2, "matched"),
    ]
    assert log["n1"].records[1].fields == RECORDS[1][1:]


def test_a_damaged_log_says_so() -> None:
    """If it failed, a log without records would look like that of a master that did nothing."""
    damaged = bytearray(WHOLE)
    damaged[12] ^= 1
    log = logs_in({"n1": {FILE: bytes(damaged)}}, ("n1",))["n1"]
    assert not log.records and "damaged" in log.damage
