"""Seeded bugs are files: each gives one decision another answer, and the node knows of none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nodes.qsync import bugs
from nodes.qsync.decisions import Decisions
from nodes.qsync.replica import Replica
from tests.nodes.qsync.conversation import configuration

DECISIONS = [name for name in vars(Decisions) if not name.startswith("_")]
QSYNC = Path(bugs.__file__).parents[1]


def overridden(name: str) -> list[str]:
    decides = bugs.bug(name).decides
    return [each for each in DECISIONS if getattr(decides, each) is not getattr(Decisions, each)]


@pytest.mark.parametrize("name", bugs.NAMES)
def test_a_bug_changes_one_decision(name: str) -> None:
    """If it failed, a bug would be switched on without any effect, or with several."""
    found = overridden(name)
    assert len([each for each in found if each != "clock" or len(found) == 1]) == 1  # some look at it to wait


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


def test_a_bug_that_there_is_not_is_refused() -> None:
    """If it failed, a node with a mistyped bug would pass for one without any."""
    with pytest.raises(ValueError, match="unknown bug 'no-such-bug'; known: ack-before-fsync, "):
        Replica(replace(configuration("n1"), bugs=("no-such-bug",)))


def test_every_bug_says_what_it_is() -> None:
    """If it failed, `qsync list bugs` would have a line that tells nothing."""
    for name in bugs.NAMES:
        assert str(bugs.bug(name)).startswith(bugs.bug(name).does)
        assert bugs.bug(name).seen
