"""Another owner: the fault that promotes one, and the operator where nobody stands for election."""

from __future__ import annotations

import pytest

from harness.failover import Failover
from harness.judge import judge
from harness.plan import Plan
from harness.systems.promises import PROMISES
from tests.harness.cluster.test_elections import run


@pytest.mark.parametrize("letter", ["F", "G", "H", "I"])
def test_failover_makes_another_node_the_owner(letter: str) -> None:
    """If it failed, the owner would change only when it dies."""
    plan = Plan(cluster="sim", configuration=letter, faults=("failover",), time_limit_s=8, rate=60, seed=2)
    history, verdict, _ = run(plan)
    assert verdict["outcome"] == "valid", verdict["sentence"]
    owners = {state.node for state in history.states if state.status.get("role") == "owner"}
    assert len(owners) > 1
    assert all(fault.bit and fault.healed for fault in history.faults)


def test_an_owner_that_is_gone_again_is_no_failed_heal() -> None:
    """If it failed, a failover during which another fault stops the new owner would make the run prove nothing."""
    failover = Failover(asked_ns=1, asked=1, owner_ns=2)
    assert failover.evidence(3, 4, has_owner=True).healed is True
    assert failover.evidence(3, 4, has_owner=False).healed is None


@pytest.mark.parametrize("mode", ["manual", "voter,manual,manual"])
def test_the_operator_promotes_when_the_owner_died(mode: str) -> None:
    """If it failed, a cluster in which nobody stands for election would have no owner after its first death."""
    plan = Plan(
        cluster="sim", election_mode=mode, faults=("kill", "isolate-owner"), time_limit_s=9, rate=60, seed=4
    )
    history, verdict, _ = run(plan)
    assert verdict["outcome"] == "valid", verdict["sentence"]
    led = {
        (state.status["term"], state.node) for state in history.states if state.status.get("role") == "owner"
    }
    assert len(led) > 1
    assert not mode.startswith("voter") or all(node != "n1" for _, node in led)


def test_what_is_not_promised_is_told_and_no_violation() -> None:
    """If it failed, a configuration that promises nothing would fail every night, or hide what it lost."""
    plan = Plan(cluster="sim", configuration="C", bugs=("confirm-early",), time_limit_s=8, seed=1)
    history, verdict, _ = run(plan)
    assert verdict["outcome"] == "anomaly"
    unpromised = Plan(cluster="sim", configuration="D", bugs=("confirm-early",), time_limit_s=8, seed=1)
    told = judge(unpromised, PROMISES["D"], history)
    assert told["violations"] == ["quorum"]  # that is promised everywhere
    assert any("not promised here" in finding["summary"] for finding in told["findings"])
