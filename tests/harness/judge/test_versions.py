"""Versions in a run, by hand: who ran which when, and what is said of an upgrade that could not be done."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.history.history import History
from harness.faults.rollout import UPGRADE
from harness.judge.evidence.versions import UNTOLD, incompatible, missing_steps, versions_json
from harness.plan.plan import Drawn, Plan
from harness.systems.plans import planned
from tests.harness.judge.test_judge_attacks import HEADER, Run

PLAN = planned(faults=(UPGRADE,))
WHY = "n2 does not start"


def states(*told: tuple[str, dict[str, Any]]) -> History:
    run = Run()
    for node, status in told:
        run.line("info", "monitor", "state", node=node, value=status)
    return History.of(HEADER, run.events)


def up(version: Any) -> dict[str, Any]:
    return {"up": True, "version": version}


def stepped(*steps: tuple[str, str, str]) -> History:
    """Steps one after the other: what, of which node, and how it ended."""
    run = Run()
    for number, (does, node, end) in enumerate(steps):
        fault = {"id": number, "name": UPGRADE, "does": does, "at_ns": 0, "until_ns": 0, "nodes": [node]}
        run.line("invoke", "nemesis", UPGRADE, value=fault)
        evidence = {"id": number, "took_effect": end == "done", "healed": True, "detail": WHY}
        counters = {"counters": {"refused_to_start": int(end == "refused")}}
        run.line("info", "nemesis", UPGRADE, value={**evidence, **counters})
    return History.of(HEADER, run.events)


def missing(history: History, plan: Plan = PLAN) -> list[str]:
    return [*missing_steps(plan, history)]


def test_each_stretch_of_a_version_has_its_row() -> None:
    """If it failed, a reader could not see which node ran which version when."""
    history = states(
        ("n1", up("1")), ("n2", up("1")), ("n1", up("1")), ("n1", {"up": False, "version": "9"}),
        ("n2", up("2")), ("n2", up(3)), ("n2", up("2")), ("n2", up("1")), ("n3", {"up": True}),
    )  # fmt: skip
    rows = [
        (row["node"], row["version"], row["from_ns"] // 10**6, row["until_ns"] // 10**6)
        for row in versions_json(history)
    ]
    assert rows == [
        ("n1", "1", 0, 2),
        ("n2", "1", 1, 1),
        ("n2", "2", 4, 6),
        ("n2", "1", 7, 7),
        ("n3", UNTOLD, 8, 8),
    ]


def test_one_version_is_not_worth_a_row() -> None:
    """If it failed, the page of every run would have a table of versions."""
    assert versions_json(states(("n1", up("1")), ("n2", up("1")))) == []
    assert len(versions_json(states(("n1", up("1")), ("n2", up("2"))))) == 2


@pytest.mark.parametrize("does", ["upgrade", "downgrade"])
def test_a_version_that_does_not_start_is_told(does: str) -> None:
    """If it failed, an upgrade that cannot be done would be green."""
    history = stepped(("upgrade", "n1", "done"), (does, "n2", "refused"))
    assert incompatible(history) == (f"incompatible: {WHY}",)
    assert missing(history) == [f"the {does} could not be done: {WHY}"]
    assert missing(history, PLAN.changed(drawn=Drawn(faults=(), operations=()))) == missing(history)


def test_a_restart_that_is_refused_is_no_matter_of_versions() -> None:
    """If it failed, a node that does not start again would excuse a run by its version."""
    history = stepped(("restart", "n2", "refused"))
    assert incompatible(history) == ()


def test_an_upgrade_that_did_not_come_to_all_is_missing() -> None:
    """If it failed, a run that ended in the middle of an upgrade would be evidence for the new version."""
    steps = [("upgrade", node, "done") for node in ("n1", "n2", "n3")]
    assert missing(stepped(*steps)) == []
    (left_out,) = missing(stepped(*steps[:1], ("upgrade", "n2", "failed"), ("downgrade", "n3", "done")))
    assert left_out.startswith("the rolling upgrade did not come to n2, n3; ")
    rolling = planned(faults=("rolling",))
    assert missing(stepped(), rolling) == []
    assert len(missing(stepped(), rolling.changed(node_from="HEAD"))) == 1
    assert missing(stepped(), PLAN.changed(drawn=Drawn(faults=(), operations=()))) == []
