"""Seeded bugs are files: each gives one decision another answer, and the node knows of none."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.qsync import bugs
from nodes.qsync.decisions import Decisions

DECISIONS = [name for name in vars(Decisions) if not name.startswith("_")]
QSYNC = Path(bugs.__file__).parents[1]


def overridden(name: str) -> list[str]:
    decides = bugs.bug(name).decides
    return [each for each in DECISIONS if getattr(decides, each) is not getattr(Decisions, each)]


@pytest.mark.parametrize("name", bugs.NAMES)
def test_a_bug_changes_one_decision(name: str) -> None:
    """If it failed, a bug would be switched on without any effect, or with several."""
    found = overridden(name)
    if name.startswith("confirm-before-wal"):
        found.remove("clock")  # the file holds a record back for a while, and so looks at the clock
    assert len(found) == 1


def test_every_decision_has_its_bug() -> None:
    """If it failed, a call would be left in the node that nothing needs."""
    assert {each for name in bugs.NAMES for each in overridden(name)} == set(DECISIONS)


def test_the_node_mentions_no_bug() -> None:
    """If it failed, the code of the right node would be read with a wrong one in mind."""
    for path in QSYNC.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert [name for name in bugs.NAMES if name in text or name.replace("-", "_") in text] == [], path


def test_bugs_can_be_had_together() -> None:
    """If it failed, `--bug A --bug B` would be one of the two alone."""
    both = bugs.decisions_with(("quorum-without-plus-one", "definite-timeout"))
    for name in ("quorum-without-plus-one", "definite-timeout"):
        (decision,) = overridden(name)
        assert getattr(type(both), decision) is getattr(bugs.bug(name).decides, decision)
    assert bugs.decisions_with(bugs.NAMES)
    assert type(bugs.decisions_with(())) is Decisions


def test_every_bug_says_what_it_is() -> None:
    """If it failed, `qsync list bugs` would have a line that tells nothing."""
    for name in bugs.NAMES:
        assert str(bugs.bug(name)).startswith(bugs.bug(name).does)
        assert bugs.bug(name).seen
