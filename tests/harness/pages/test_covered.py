"""What the page says of a run's coverage, counted again from the lines of its history."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from harness.pages import material, page
from harness.pages.covered import covered
from harness.pages.fault_bands import fault_bands
from tests.harness.pages.run_folders import FAULTS, SECOND, build


def test_the_tables_count_what_the_history_has(tmp_path: Path) -> None:
    """If it failed, a passing run would claim to have tried what it did not try."""
    folder = build(tmp_path / "run", "valid")
    read = material.read(folder)
    told = covered(read, fault_bands(read))
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()[1:]]
    ended = [
        line
        for line in lines
        if isinstance(line["process"], int) and line["type"] != "invoke" and line["f"] != "dump"
    ]
    counted = Counter((line["f"], line["type"]) for line in ended)
    assert told.kinds == tuple(
        (f, counted[f, "ok"], counted[f, "fail"], counted[f, "info"]) for f in ("cas", "read", "write")
    )
    served = Counter(line["node"] for line in ended if line["f"] == "read" and line["type"] == "ok")
    assert told.reads == tuple((node, "owner", "read-confirmed", served[node]) for node in sorted(served))
    kills = [fault for fault in FAULTS if fault["name"] == "kill"]
    under = sum(
        line["type"] == "ok" and any(_in_effect(fault, line["time_ns"]) for fault in kills) for line in ended
    )
    assert {name: rest for name, *rest in told.faults}["kill"] == [2, 2, under]
    assert {name: rest for name, *rest in told.faults}["one-way"] == [1, 0, 0]
    assert told.keys.startswith("6 keys, with ")


def test_rare_turns_that_came_about_and_those_that_did_not(tmp_path: Path) -> None:
    """If it failed, a passing page would not say which states its run never reached."""
    folder = build(tmp_path / "run", "valid")
    verdict = json.loads((folder / "verdict.json").read_text())
    hostile = "<img src=x onerror=alert(1)>"
    turns = {"split vote": 3, "leader fenced": 0, hostile: 1, "of no number": "many"}
    verdict["evidence"]["rare_turns"] = turns
    (folder / "verdict.json").write_text(json.dumps(verdict))
    read = material.read(folder)
    told = covered(read, fault_bands(read))
    assert told.turns == (("split vote", 3), (hostile, 1))
    assert told.turns_never == ("leader fenced",)
    shown = page.html(folder)
    assert "split vote" in shown and "1 rare turn never came about" in shown and hostile not in shown
    verdict["evidence"]["rare_turns"] = "odd"
    (folder / "verdict.json").write_text(json.dumps(verdict))
    assert "Rare turns" not in page.html(folder)


def _in_effect(fault: dict[str, float], time_ns: int) -> bool:
    """From when all of it is in effect until the heal is asked for, as `run_folders` writes them: so does the evidence
    count what was answered under a fault, and one page has one number for it."""
    return round(fault["from"] * SECOND) + 60_000_000 <= time_ns <= round(fault["to"] * SECOND)


def test_a_run_without_operations_covers_nothing(tmp_path: Path) -> None:
    """If it failed, the page of an empty run could not be written, or would have tables of nothing."""
    assert "No operation ended before the final reads." in page.html(tmp_path)
