"""Another owner: the fault that promotes one, and the operator where nobody stands for election."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from harness.faults.fault import Fault
from harness.judge import Case, judge
from harness.plan.plan import SECOND_NS
from harness.run.assemble import parts_of
from harness.run.failover import (
    Failover,
    ReelectionOperator,
    fail_over,
    may_keep_owners_away,
    owner_within_ns,
)
from harness.run.nemesis import Nemesis
from harness.systems.plans import planned
from harness.systems.qsync.promises import PROMISES
from harness.systems.status import Status, Statuses
from tests.harness.runs import judged
from tests.suites import mostly_long


@pytest.mark.parametrize("letter", mostly_long("FGHI", quick="H"))
def test_failover_makes_another_node_the_owner(letter: str) -> None:
    """If it failed, the owner would change only when it dies."""
    plan = planned(cluster="sim", configuration=letter, faults=("failover",), time_limit_s=8, rate=60, seed=2)
    history, verdict = judged(plan)
    assert verdict["outcome"] == "valid", verdict["sentence"]
    owners = {state.node for state in history.states if state.status.get("role") == "owner"}
    assert len(owners) > 1
    assert all(fault.took_effect and fault.healed for fault in history.faults)


@pytest.mark.parametrize("has_owner", [True, False, None])
def test_a_failover_is_healed_if_somebody_owns_the_queue(has_owner: bool | None) -> None:
    """If it failed, a store without an owner for good would pass wherever anything else went on beside."""
    assert Failover(asked_ns=1, asked=1, owner_ns=2).evidence(3, 4, has_owner).healed is has_owner


@pytest.mark.parametrize(
    ("owner_from_s", "beside", "is_interrupted", "has_owner"),
    [
        (0.0, (), False, True),
        (0.5, (), False, True),
        (99.0, (), False, False),
        (99.0, (), True, None),
        (99.0, ("n1",), False, None),
        (99.0, ("n3",), False, False),
        (0.0, ("n1",), True, True),
    ],
)
def test_a_failover_waits_for_an_owner_and_not_for_ever(
    owner_from_s: float, beside: tuple[str, ...], is_interrupted: bool, has_owner: bool | None
) -> None:
    """If it failed, a store without a leader after a promotion would pass, or a right one be accused of another
    fault's doing."""
    owned, plan = Owned((0.0, None), (owner_from_s, "n2")), planned()
    failover = Fault(id=0, name="failover", does="failover", at_ns=0, until_ns=1, nodes=("n1",))
    kill = Fault(id=1, name="kill", does="kill", at_ns=0, until_ns=1, nodes=beside)

    async def look() -> Statuses:
        return {}

    nemesis: Any = SimpleNamespace(
        plan=plan,
        cluster=owned,
        system=owned,
        monitor=SimpleNamespace(look=look),
        active={0: failover} | ({1: kill} if beside else {}),
        course=SimpleNamespace(is_interrupted=is_interrupted),
        present=SimpleNamespace(deployed=SimpleNamespace(members=SimpleNamespace(present=plan.node_names))),
    )
    assert asyncio.run(Nemesis._has_owner_again(nemesis, failover)) is has_owner
    assert owned.now_ns() <= owner_within_ns(plan) + SECOND_NS // 10


class Owned:
    """A cluster and its system in one: who owns the queue from which second on; a promotion is accepted, always."""

    def __init__(self, *owners: tuple[float, str | None]) -> None:
        self.owners = owners
        self.time_ns = 0

    def now_ns(self) -> int:
        return self.time_ns

    async def sleep_until(self, time_ns: int) -> None:
        self.time_ns = time_ns

    async def status(self, node: str) -> Status:
        return {}

    def owner_now(self, statuses: Statuses) -> str | None:
        return [owner for since_s, owner in self.owners if since_s * SECOND_NS <= self.time_ns][-1]

    async def promote(self, node: str, cluster: Any) -> None:
        return None


@pytest.mark.parametrize(
    ("owners", "took_effect", "detail"),
    [
        (((0.0, "n1"), (0.5, None), (0.7, "n2")), True, ""),
        (((0.0, "n3"), (0.2, None), (0.7, "n1"), (1.6, "n2")), False, "n1 was promoted first"),
        (((0.0, None), (0.7, "n1")), False, "n1 was promoted first"),
        (((0.0, "n1"),), False, ""),
        (((0.0, "n1"), (0.2, None), (0.7, "n1")), False, ""),
    ],
    ids=["it leads", "another won", "another won where none led", "nothing happened", "the same won again"],
)
def test_a_promotion_that_another_node_won_says_so(
    owners: tuple[tuple[float, str | None], ...], took_effect: bool, detail: str
) -> None:
    """If it failed, a promotion that was accepted, and lost its election, would count as one that did nothing."""
    fault = Fault(id=0, name="failover", does="failover", at_ns=0, until_ns=3 * SECOND_NS // 2, nodes=("n2",))
    world: Any = Owned(*owners)
    told = asyncio.run(fail_over(planned(), world, world, fault)).evidence(1, 2, True)
    assert told.took_effect is took_effect
    assert told.detail.endswith(detail) and bool(told.detail) == bool(detail)


NODES = ("n1", "n2", "n3", "n4", "n5")


@pytest.mark.parametrize(
    ("does", "fields", "may"),
    [
        ("kill", {"nodes": ("n2",)}, True),
        ("kill", {"nodes": ("n3",)}, False),
        ("kill", {"nodes": ("n3", "n4", "n5")}, True),
        ("cut", {"links": (("n2", "n5"),)}, True),
        ("cut", {"links": (("n3", "n4"), ("n4", "n3"))}, False),
        ("clock", {"nodes": ("n2",)}, False),
        ("options", {"nodes": NODES}, False),
    ],
)
def test_only_what_is_done_to_the_promoted_or_to_a_quorum_excuses_that_nobody_leads(
    does: str, fields: dict[str, Any], may: bool
) -> None:
    """If it failed, a slow link at the other end of the cluster would excuse that it has no owner any more."""
    failover = Fault(id=0, name="failover", does="failover", at_ns=0, until_ns=9, nodes=("n2",))
    other = Fault(id=1, name=does, does=does, at_ns=0, until_ns=9, **fields)  # type: ignore[arg-type]
    assert may_keep_owners_away([other], failover, NODES, planned(nodes=5)) is may


def test_the_operator_acts_while_no_candidate_is_a_member() -> None:
    """If it failed, a replaced candidate would leave a cluster without an owner for good, or an operator would promote
    somebody wherever an election takes its time."""
    candidate = {"role": "replica", "vclock": {1: 9}}
    manual = {"role": "replica", "vclock": {1: 7}}
    assert _promoted({"n1": candidate, "n2": manual, "n3": manual}) == []
    assert _promoted({"n1": None, "n2": manual, "n3": manual}) == []  # it is down, and will be back
    assert _promoted({"n2": manual, "n3": manual}) == ["n2"]


def _promoted(statuses: Statuses) -> list[str]:
    """Whom the operator promotes while these are what nodes say, for a second."""
    plan = planned(cluster="sim", election_mode="candidate,manual,voter", faults=("membership",))
    asked: list[str] = []
    cluster: Any = SimpleNamespace(now_ns=lambda: cluster.at_ns, spawn=lambda work: None, at_ns=0)
    system: Any = SimpleNamespace(
        owner_now=lambda told: None,
        can_lead=parts_of(plan).system.can_lead,
        promote=lambda node, _: asked.append(node),
    )
    operator = ReelectionOperator(plan, cluster, system)
    for cluster.at_ns in range(0, SECOND_NS, SECOND_NS // 20):
        operator.look(statuses)
    return [*dict.fromkeys(asked)]


@pytest.mark.parametrize("mode", [pytest.param("manual", marks=pytest.mark.long), "voter,manual,manual"])
def test_the_operator_promotes_when_the_owner_died(mode: str) -> None:
    """If it failed, a cluster in which nobody stands for election would have no owner after its first death."""
    plan = planned(
        cluster="sim", election_mode=mode, faults=("kill", "isolate-owner"), time_limit_s=9, rate=60, seed=4
    )
    history, verdict = judged(plan)
    assert verdict["outcome"] == "valid", verdict["sentence"]
    led = {
        (state.status["term"], state.node) for state in history.states if state.status.get("role") == "owner"
    }
    assert len(led) > 1
    assert not mode.startswith("voter") or all(node != "n1" for _, node in led)


def test_what_is_not_promised_is_told_and_no_violation() -> None:
    """If it failed, a configuration that promises nothing would fail every night, or hide what it lost."""
    given = {"bugs": ("confirm-early",), "time_limit_s": 8, "rate": 60, "seed": 1}
    plan = planned(cluster="sim", configuration="C", **given)
    history, verdict = judged(plan)
    assert verdict["outcome"] == "anomaly"
    unpromised = planned(cluster="sim", configuration="D", **given)
    told = judge(Case(unpromised, history, given_promise=PROMISES["D"]))
    assert told["violations"] == ["quorum"]  # that is promised everywhere
    assert any("not promised here" in finding["summary"] for finding in told["findings"])
