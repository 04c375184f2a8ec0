"""Directed faults: what they hold, when they come, whom they mean, and that a stored plan repeats them."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from checkers.history.history import History
from harness.errors import WrongUse
from harness.faults.directed import draw_directed, in_place
from harness.faults.fault import Fault, Moment
from harness.plan.plan import SECOND_NS, Drawn, Plan, to_json
from harness.run.assemble import parts_of
from harness.run.draw import draw
from harness.systems.plans import from_json, planned
from harness.systems.qsync.scenes import READY_MADE
from tests.harness.runs import judged, recorded

NODES = ("n1", "n2", "n3")


def fault(does: str, at_s: float, lasts_s: float, **given: Any) -> Fault:
    at_ns, lasts_ns = int(at_s * SECOND_NS), int(lasts_s * SECOND_NS)
    fields = {"id": 0, "name": does, "does": does, "at_ns": at_ns, "until_ns": at_ns + lasts_ns, **given}
    return Fault(**fields)


def directed(*faults: Fault, seconds: float = 6.0, **given: Any) -> Plan:
    plan = planned(cluster="sim", faults=("none",), time_limit_s=seconds, rate=60, seed=3, **given)
    parts = parts_of(plan)
    drawn = draw(plan, parts.system, parts.workload).drawn
    assert drawn is not None
    numbered = tuple(msgspec.structs.replace(each, id=number) for number, each in enumerate(faults))
    return msgspec.structs.replace(plan, drawn=Drawn(faults=numbered, operations=drawn.operations))


def owners(history: History) -> list[str]:
    seen = [state.node for state in history.states if state.status.get("role") == "owner"]
    return list(dict.fromkeys(seen))


def test_a_promote_that_is_held_makes_no_owner() -> None:
    """If it failed, holding a PROMOTE would hold nothing, and a hunt around it would hunt for nothing."""
    failover = fault("failover", 1.0, 1.0, nodes=("n2",))
    hold = fault("hold", 0.5, 1.4, links=(("n2", "*"),), kinds=("promote",))
    history, _ = judged(directed(failover, hold))
    held = next(each for each in history.faults if each.does == "hold")
    assert held.took_effect
    assert held.evidence["counters"]["stopped"] >= 2
    early = [state for state in history.states if 1.1e9 < state.time_ns < 1.8e9]
    assert early
    assert all(state.status.get("role") != "owner" for state in early if state.node == "n2")
    assert owners(history)[:2] == ["n1", "n2"]


def test_who_dies_when_a_record_is_synced_has_told_nobody() -> None:
    """If it failed, no plan could kill a node between fsync and send."""
    failover = fault("failover", 1.0, 1.0, nodes=("n2",))
    dies = fault("kill", 0.5, 1.0, nodes=("@it",), on=Moment(does="wrote", what="promote", node="n2"))
    history, _ = judged(directed(failover, dies))
    killed = next(each for each in history.faults if each.does == "kill")
    assert killed.nodes == ("n2",)
    until_ns = killed.heal_asked_ns or 0
    others = [s.status for s in history.states if s.node != "n2" and killed.start_ns < s.time_ns < until_ns]
    assert others
    assert all(status["vclock"].get("2", 0) == 0 for status in others)


def test_a_slow_disk_acknowledges_nothing() -> None:
    """If it failed, a WAL could not be made to wait."""
    slow = fault("slow-disk", 1.0, 1.0, nodes=("n2", "n3"))
    history, verdict = judged(directed(slow))
    assert verdict["outcome"] == "valid", verdict["sentence"]
    acknowledged = [
        one.complete_ns
        for one in history.select(f="write", outcome="ok")
        if one.invoke_ns > 1.01e9 and (one.complete_ns or 0) < 1.99e9
    ]
    assert acknowledged == []
    assert history.select(f="write", outcome="ok")


def test_a_stored_plan_with_holds_runs_the_same() -> None:
    """If it failed, what a hunt found could not be kept as a regression test."""
    plan = planned(cluster="sim", faults=("all", "holds"), time_limit_s=12, rate=40, seed=12)
    parts = parts_of(plan)
    stored = from_json(to_json(draw(plan, parts.system, parts.workload)), "the plan")
    assert stored.drawn is not None
    assert any(each.on is not None for each in stored.drawn.faults)
    first, second = (recorded(each, record_trace=True).trace_digest for each in (stored, plan))
    assert first == second


def test_placeholders_mean_who_it_was_about() -> None:
    """If it failed, a fault that waits for a leader would hit a bystander."""
    hold = fault("hold", 1, 1, links=(("@it", "@others"), ("*", "@owner")), nodes=("@it",))
    placed = in_place(hold, "n2", "n1", NODES)
    assert placed.nodes == ("n2",)
    assert placed.links == (("n2", "n1"), ("n2", "n3"), ("n3", "n1"))
    assert in_place(fault("kill", 1, 1, nodes=("@others",)), "", "n1", NODES).nodes == ("n2", "n3")


def test_scenes_are_drawn_from_the_seed_alone() -> None:
    """If it failed, a seed would not repeat, or every seed would be the same."""
    one, again, other = (
        list(draw_directed(NODES, random.Random(seed), SECOND_NS, 20 * SECOND_NS, 5, scenes=READY_MADE))
        for seed in (1, 1, 2)
    )
    assert one == again != other
    assert [each.id for each in one] == list(range(5, 5 + len(one)))
    assert all(each.is_directed for each in one)


def test_with_a_fixed_owner_nobody_else_is_promoted() -> None:
    """If it failed, a run of one owner would be judged by a promise that its own scenes break."""
    for fails_over in (True, False):
        drawn = draw_directed(
            NODES, random.Random(1), SECOND_NS, 200 * SECOND_NS, 0, scenes=READY_MADE, fails_over=fails_over
        )
        assert any(each.does == "failover" for each in drawn) == fails_over


@pytest.mark.parametrize(
    ("cluster", "given", "words"),
    [
        ("local", fault("hold", 1, 1, links=(("n1", "n2"),)), "--cluster local cannot do 'hold'"),
        (
            "local",
            fault("kill", 1, 1, nodes=("n1",), on=Moment(does="wrote", what="row")),
            "only --cluster sim",
        ),
        ("sim", fault("kill", 1, 1, nodes=("@it",)), "no node is called '@it'"),
        ("sim", fault("hold", 1, 1, nodes=("n1",)), "needs links"),
    ],
)
def test_what_cannot_be_done_is_refused(cluster: str, given: Fault, words: str) -> None:
    """If it failed, a plan would run on without the fault that it is there for."""
    plan = planned(cluster=cluster, drawn=Drawn(faults=(given,), operations=()))
    with pytest.raises(WrongUse) as refused:
        parts_of(plan)
    assert words in refused.value.message
