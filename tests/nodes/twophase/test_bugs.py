"""Seeded bugs are files: each gives one decision another answer, the node knows of none, and cuts show each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodes.twophase import bugs
from nodes.twophase.decisions import Decisions
from nodes.twophase.restore import NotRestorable, check_restorable
from tests.nodes.twophase.cut_oracle import judge, logs_of
from tests.nodes.twophase.random_run import Run
from tests.nodes.twophase.restored import check_restored
from tests.nodes.twophase.test_cuts import (
    cut_of,
    cut_run,
    good_cuts,
    judged,
    prepared_everywhere,
    settled,
)
from tests.nodes.twophase.test_restore import WHOLE, log

DECISIONS = [name for name in vars(Decisions) if not name.startswith("_")]
TWOPHASE = Path(bugs.__file__).parents[1]


def overridden(name: str) -> list[str]:
    decides = bugs.bug(name).decides
    return [each for each in DECISIONS if getattr(decides, each) is not getattr(Decisions, each)]


@pytest.mark.parametrize("name", bugs.NAMES)
def test_a_bug_changes_one_decision(name: str) -> None:
    """If it failed, a bug would be switched on without any effect, or with several."""
    assert len(overridden(name)) == 1


def test_every_decision_has_its_bug() -> None:
    """If it failed, a call would be left in the node that nothing needs."""
    assert {each for name in bugs.NAMES for each in overridden(name)} == set(DECISIONS)


def test_the_node_mentions_no_bug() -> None:
    """If it failed, the code of the right node would be read with a wrong one in mind."""
    for path in TWOPHASE.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert [name for name in bugs.NAMES if name in text or name.replace("-", "_") in text] == [], path


def test_a_bug_that_there_is_not_is_refused() -> None:
    """If it failed, a node with a mistyped bug would pass for one without any."""
    with pytest.raises(ValueError, match="unknown bug 'no-such-bug'; known: committing-untracked, "):
        bugs.decisions_with(("no-such-bug",))
    assert type(bugs.decisions_with(())) is Decisions
    assert type(bugs.decisions_with(bugs.NAMES[:1] * 2)) is type(bugs.decisions_with(bugs.NAMES[:1]))
    assert isinstance(bugs.decisions_with(bugs.NAMES), Decisions)


ONE_PHASE: dict[str, Any] = {"partitions": 2, "one_phase": True}
TORN: list[tuple[str, dict[str, Any], int]] = [
    ("committing-untracked", {}, 3_001),
    ("each-signs-for-itself", {}, 3_000),
    ("excluded-dropped", {}, 3_033),
    ("finish-at-once", {}, 3_001),
    ("finish-without-sign", {}, 3_000),
    ("included-dropped", {}, 3_000),
    ("near-signs-one-phase", ONE_PHASE, 3_010),
    ("no-markers", {}, 3_000),
    ("no-marker-on-finish", {"one_phase": False}, 3_000),
    ("marker-after-payload", {}, 3_000),
    ("sets-swapped", {}, 3_000),
    ("sign-at-send", {}, 3_004),
    ("idle-not-told", {}, 3_000),
    ("late-marker-restarts", {}, 3_000),
]
"""With the seed of the first run that shows the bug; the search goes on from there."""


def first_found(name: str, settings: dict[str, Any], seeds: range) -> Run:
    """The first run in which the oracle finds anything."""
    for seed in seeds:
        run = cut_run(seed, 100, bugs=(name,), **settings)
        if judged(run):
            return run
    raise AssertionError(f"{name}: nothing found with seeds {seeds}")


QUICK = ("each-signs-for-itself", "included-dropped", "no-markers", "sign-at-send", "idle-not-told")


@pytest.mark.parametrize(
    ("name", "settings", "seed"),
    [pytest.param(*each, marks=() if each[0] in QUICK else pytest.mark.long, id=each[0]) for each in TORN],
)
def test_every_bug_is_found(name: str, settings: dict[str, Any], seed: int) -> None:
    """If it failed, neither the oracle nor a checker would have anything to find."""
    first_found(name, settings, range(seed, seed + 100))


def test_node_loss_ignored() -> None:
    """If it failed, the bug would have no effect."""
    cluster = settled(one_phase=False, bugs=("node-loss-ignored",))
    prepared_everywhere(cluster)
    cluster.client.ask("n1", "cut", "a")
    cluster.run(50)
    cluster.machine("n3").kill()
    cluster.run(300)
    cluster.heal([("c1", server) for server in cluster.servers])
    cluster.run(3_000)
    assert cut_of(cluster, "a").state == "ok"
    logs = logs_of({server: cluster.machine(server).disk.files() for server in cluster.servers})
    assert judge(logs, ["a"], None).forms == ["n3: the cut a has 1 START, 0 FINISH"]


def test_recovery_as_before() -> None:
    """If it failed, the bug would have no effect."""
    cluster = settled(one_phase=False, bugs=("recovery-as-before",))
    prepared_everywhere(cluster)
    cluster.client.ask("n1", "cut", "a")
    cluster.run(2_000)
    assert cut_of(cluster, "a").state == "ok"


def test_restore_of_unfinished() -> None:
    """If it failed, the bug would have no effect."""
    files = {"n1": log(*WHOLE), "n2": log(*WHOLE[:4])}
    check_restorable(files, "k", ["n1", "n2"], bugs.decisions_with(("restore-of-unfinished",)))
    with pytest.raises(NotRestorable, match="no FINISH on n2"):
        check_restorable(files, "k", ["n1", "n2"])


def test_restore_by_start() -> None:
    """If it failed, a restore that ignores both sets would come to the same as the right one."""
    wrong = bugs.decisions_with(("restore-by-start",))
    differs = 0
    for seed in range(3):
        run = cut_run(seed, 100)
        agreed = run.cluster.node("n1").agreed
        for cut in good_cuts(run):
            right = check_restored(run.cluster.files(), cut, agreed)
            try:
                differs += check_restored(run.cluster.files(), cut, agreed, wrong) != right
            except AssertionError:
                differs += 1
        if differs:
            return
    raise AssertionError("all restores came to the same")
