"""The logs of servers as checkers read them: what a server has taken back, and bases that were never done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checkers.cuts.logs import KINDS
from harness.systems.twophase.logs import damage_in, finished_in, logs_in, records_in
from nodes.records import framed

SERVERS = ("n1", "n2")
CUT: list[list[Any]] = [["start", "k", 1, 0, [1, 1, *SERVERS]], ["finish", "k", [], []]]


def files(*records: list[Any]) -> dict[str, bytes]:
    return {"wal-000001.log": b"".join(map(framed, records))}


def kinds_in(by_server: Mapping[str, Mapping[str, bytes]]) -> list[str]:
    return [KINDS[kind] for kind in logs_in(by_server, SERVERS).kind]


def test_a_finish_that_was_taken_back_does_not_count() -> None:
    """If it failed, a cut that has failed would count as whole, and a right store be accused of its refusal."""
    left = {"n1": files(*CUT), "n2": files(*CUT, ["void", "k"])}
    assert finished_in(records_in(left, SERVERS)) == {"k": ["n1"]}
    assert kinds_in(left) == ["start", "finish", "start"]
    assert finished_in(records_in({"n1": left["n1"], "n2": left["n1"]}, SERVERS)) == {"k": [*SERVERS]}


def test_a_base_counts_on_all_servers_or_on_none() -> None:
    """If it failed, a log would be judged from rows on that no other server has."""
    base = ["base", "b", "base-000001.snap"]
    assert kinds_in({"n1": files(base), "n2": files(base)}) == []
    assert kinds_in({"n1": files(base, ["base-done", "b"]), "n2": files(base)}) == ["base", "base"]


def test_an_index_without_a_log_is_a_log_that_is_missing() -> None:
    """If it failed, a log that was not copied would be an anomaly: a cut is finished, and its records are not there."""
    files: dict[str, dict[str, bytes]] = {"n1": {"cuts.index": framed(["start", "cut-1", 1])}, "n2": {}}
    assert damage_in(files, ["n1"]) == "n1: cuts.index names records, and there is no log"
    assert damage_in(files, ["n2"]) == "", "it had written nothing yet"
