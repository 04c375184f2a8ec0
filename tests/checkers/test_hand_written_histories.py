"""Every alarm rings: histories written by hand, each with the verdict that it must get.

A file of tests/checkers/histories/<checker>/ tells in its header under "expect" the verdict, the rule of the first
witness, and in a sentence why.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from checkers import CHECKERS, Verdict, run_safely
from checkers.history import jsonl

FOLDER = Path(__file__).parent / "histories"
DOCS = Path(__file__).parents[2] / "docs"
FILES = sorted(FOLDER.glob("*/*.jsonl"))
WITHOUT = {
    "availability": "it is never invalid",
    "acknowledged-early": "it needs the record of a simulator, or logs: tests/checkers/logs/wal/test_early.py",
    "node-state": "the same: tests/checkers/logs/wal/test_state.py",
    "etcd-kv": "tests/checkers/domain/test_etcd.py has its histories",
    "etcd-watch": "the same file",
    "log-cycles": "tests/checkers/transactional/test_log_cycles.py has its histories",
    "offsets": "tests/checkers/domain/test_offsets.py has its histories",
    "queue-order": "tests/checkers/test_submitted.py has its histories",
    "write-once": "tests/checkers/domain/test_write_once.py has its histories",
}
"""Checkers without a folder of histories, and why."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_verdict(path: Path) -> None:
    """A missed bug or a false alarm, in the one situation that the file shows."""
    history = jsonl.read(path)
    expect = history.header.extra["expect"]
    assert expect["checker"] == path.parent.name
    verdict = run_safely(CHECKERS[expect["checker"]], history, **expect.get("options", {}))
    assert verdict.result == expect["result"], f"{expect['why']}: {verdict.summary}"
    rules = [witness.rule for witness in verdict.witnesses]
    assert rules[:1] == ([expect["rule"]] if "rule" in expect else []), verdict.witnesses
    for witness in verdict.witnesses:
        assert witness.events, "a witness points at nothing"
        assert list(witness.events) == sorted(set(witness.events))
        assert all(0 <= event < len(history.events) for event in witness.events)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_one_is_singular(path: Path) -> None:
    """A screen would say "1 keys", or "1 of 1 reads were"."""
    history = jsonl.read(path)
    expect = history.header.extra["expect"]
    verdict = run_safely(CHECKERS[expect["checker"]], history, **expect.get("options", {}))
    for text in (verdict.summary, *verdict.details.get("findings", ())):
        assert re.search(r"\b1 (?!(?:was|of)\b)[a-z]+s\b", text) is None, text


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_verdict_survives_json(path: Path) -> None:
    """verdict.json would not hold what the checker said."""
    history = jsonl.read(path)
    verdict = run_safely(CHECKERS[history.header.extra["expect"]["checker"]], history)
    assert Verdict.from_json(verdict.to_json()) == verdict


@pytest.mark.parametrize("checker", sorted({*CHECKERS} - {*WITHOUT}))
def test_each_checker_both_rings_and_rests(checker: str) -> None:
    """A checker that always says the same would pass unnoticed."""
    expected = {
        jsonl.read(path).header.extra["expect"]["result"] for path in FOLDER.glob(f"{checker}/*.jsonl")
    }
    assert {"valid", "invalid"} <= expected


@pytest.mark.parametrize("checker", CHECKERS)
def test_people_can_read_about_each_checker(checker: str) -> None:
    """A verdict would name a check that no document describes."""
    assert checker in "".join(path.read_text() for path in DOCS.glob("checkers*.md"))
