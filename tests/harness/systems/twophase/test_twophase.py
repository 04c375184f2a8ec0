"""The two-phase store under test: simulated runs with cuts, judged level by level; its client; its promises."""

from __future__ import annotations

import io
import json
from collections.abc import Generator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from checkers.history import History, jsonl
from harness.cli.main import main
from harness.clients.operations import Add, Completion, Done, Dump, Mismatch, Read, Transaction
from harness.clients.reply import Lost, NotSent, Replied
from harness.errors import WrongUse
from harness.plan.plan import Plan, to_json
from harness.run.assemble import parts_of
from harness.systems.plans import planned
from harness.systems.twophase.client import CLIENT

LEVELS = ("messages", "transactions", "form", "closure", "acknowledged", "state", "finish")


def plan(**fields: Any) -> Plan:
    usual = {"cluster": "sim", "workload": "bank", "time_limit_s": 12, "nodes": 5, "rate": 150, "seed": 1}
    return planned(system="twophase", **{**usual, **fields})


def kept(plan: Plan, results: Path) -> tuple[dict[str, Any], History]:
    """A run in a folder: its verdict and its history, read back."""
    results.mkdir(exist_ok=True)
    (results / "plan.json").write_bytes(to_json(plan))
    with redirect_stdout(io.StringIO()):
        main(["run", "--plan", str(results / "plan.json"), "--results", str(results)])
    folder = (results / "latest").resolve()
    return json.loads((folder / "verdict.json").read_bytes()), jsonl.read(folder / "history.jsonl")


QUICK: dict[str, Any] = {"faults": ("none",), "nodes": 4, "time_limit_s": 3}

QUIET: dict[str, object] = {
    "ready": True,
    "coordinator": "n1",
    "version": 7,
    "newest_topology": 7,
    "members": {"n1": 1, "n2": 1},
}


@pytest.mark.parametrize(
    ("other", "is_settled"),
    [
        ({}, True),
        ({"coordinator": None}, False),
        ({"newest_topology": 9}, False),
        ({"version": 9, "newest_topology": 9}, False),
        ({"transactions": 1}, False),
        ({"ready": False}, False),
        ({"out_of_sync": 1}, False),
        ({"in_doubt": 1}, False),
        ({"cut": "cut-1"}, False),
        ({"members": {"n1": 1}}, False),
    ],
    ids=lambda each: next(iter(each), "quiet") if isinstance(each, dict) else "",
)
def test_nodes_are_settled_when_nothing_will_change(other: dict[str, object], is_settled: bool) -> None:
    """If it failed, final reads would be refused by a change of the topology that is under way."""
    assert parts_of(plan()).system.is_settled({"n1": QUIET, "n2": {**QUIET, **other}}) is is_settled


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            {"faults": ("all",), "nodes": 3, "time_limit_s": 8, "cut_every_s": 0.5, "seed": 2},
            marks=pytest.mark.long,
        ),
        pytest.param({"faults": ("all",)}, marks=pytest.mark.nightly),
        pytest.param(
            {"faults": ("all",), "near_clients": 2, "variant": "seed-colour", "seed": 2},
            marks=pytest.mark.long,
        ),
        {**QUICK, "concurrency": "optimistic", "variant": "seed-counter", "backups": 2},
        pytest.param(
            {"faults": ("none",), "workload": "append", "backups": 0, "one_phase": False},
            marks=pytest.mark.long,
        ),
        {**QUICK, "near_clients": 2, "variant": "seed-colour"},
    ],
    ids=["faults", "under faults", "near clients", "optimistic", "two phases", "near and quiet"],
)
def test_cuts_of_a_correct_store_hold(fields: dict[str, Any], tmp_path: Path) -> None:
    """If it failed, a right store would be blamed for its cuts, or none of them would be judged."""
    verdict, history = kept(plan(**fields), tmp_path)
    found = {check["checker"]: check for check in verdict["checks"] if check["checker"].startswith("cuts-")}
    assert verdict["violations"] == []
    for level in LEVELS:
        assert found[f"cuts-{level}"]["result"] == "valid", found[f"cuts-{level}"]["summary"]
    finished = [cut for cut in found["cuts-messages"]["details"]["cuts"] if cut["standing"] == "judged"]
    assert len(finished) >= 3
    # A cut that was refused has nothing to judge.
    assert verdict["evidence"]["cuts"]["judged"] == len(finished)
    if fields["faults"] == ("none",):
        ended = [event.value for event in history.events if event.f == "cut-ended"]
        assert {each["state"] for each in ended} == {"ok"}


def test_a_run_without_cuts_has_no_check_of_cuts(tmp_path: Path) -> None:
    """If it failed, a run that was asked for no cut would be inconclusive for the lack of one."""
    verdict, _ = kept(plan(cut_every_s=0, faults=("none",), nodes=3, time_limit_s=3), tmp_path)
    assert not any(check["checker"].startswith("cuts-") for check in verdict["checks"])
    assert verdict["outcome"] == "valid", verdict["sentence"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"nodes": 2, "near_clients": 2}, "at least one server"),
        ({"nodes": 3, "backups": 3}, "fewer backups than servers, got 3 and 3: try --backups 2"),
        ({"nodes": 3, "near_clients": 2}, "fewer backups than servers, got 1 and 1: try --backups 0"),
        ({"nodes": 3, "cuts_at_once": 4}, "cuts at once by at most 3 nodes, got 4"),
        ({"nodes": 3, "delivery_ms": "0,20"}, "for all 3 nodes, as one number or one for each .* got '0,20'"),
        ({"delivery_ms": "60000.1"}, "milliseconds up to 60000 for all"),
        ({"delivery_ms": "9" * 400}, "milliseconds up to 60000 for all"),
        ({"delivery_ms": "-1"}, "milliseconds up to 60000 for all"),
        ({"bugs": ("no-such",)}, "it has: "),
        ({"workload": "set"}, "asks for Scan"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, Any], words: str) -> None:
    """If it failed, nodes would end with an error in place of one line."""
    with pytest.raises((WrongUse, ValueError), match=words):
        parts_of(plan(**fields))


@pytest.mark.parametrize(
    ("fields", "needs_every_node"),
    [
        ({"nodes": 3, "backups": 1}, False),
        ({"nodes": 3, "backups": 0}, True),
        ({"nodes": 2, "backups": 1}, True),
        ({"nodes": 3, "backups": 1, "near_clients": 1}, True),
        ({"nodes": 4, "backups": 1, "near_clients": 1}, False),
        ({"nodes": 1, "backups": 0}, False),
    ],
)
def test_a_store_without_a_spare_server_needs_every_node(
    fields: dict[str, Any], needs_every_node: bool
) -> None:
    """If it failed, a run would be inconclusive because a fault stopped what no store could go on with; or a run in
    which nothing went on would count."""
    assert plan(**fields).expectations.needs_every_node is needs_every_node


ADD = Transaction((Read("bank", "a"), Add("bank", "a", -3, least=0)))


@pytest.mark.parametrize(
    ("asked", "reply", "outcome"),
    [
        (
            ADD,
            Replied(["answer", 1, {"type": "ok", "results": [5, 2], "xid": "n1-1-1"}]),
            Done([5, 2], transaction="n1-1-1"),
        ),
        (
            ADD,
            Replied(["answer", 1, {"type": "mismatch", "step": 1, "found": 2, "xid": "x"}]),
            Mismatch(1, 2, transaction="x"),
        ),
        (
            ADD,
            Replied(["answer", 1, {"type": "fail", "error": "conflict"}]),
            Completion("fail", None, "conflict"),
        ),
        (ADD, Replied(["answer", 1, {"type": "info", "error": "left"}]), Completion("info", None, "left")),
        (ADD, Lost("timeout"), Completion("info", None, "timeout")),
        (ADD, NotSent("refused"), Completion("fail", None, "refused")),
        (
            Dump(),
            Replied(["answer", 1, {"spaces": {"bank": [["a", 1]]}}]),
            Done(({"spaces": {"bank": [["a", 1]]}},)),
        ),
    ],
)
def test_an_answer_is_what_it_says(asked: Any, reply: Any, outcome: Any) -> None:
    """If it failed, a write that happened would count as one that did not, or the reverse."""
    talk: Generator[Any, Any, Any] = CLIENT.converse(asked, "n1", lambda: 1)
    next(talk)
    with pytest.raises(StopIteration) as ended:
        talk.send(reply)
    assert ended.value.value == outcome
