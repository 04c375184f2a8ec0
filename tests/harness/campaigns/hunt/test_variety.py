"""Variety: what a seed decides, what the command line keeps, and that a bug brings its own configuration."""

from __future__ import annotations

from functools import cache

import pytest

from harness.campaigns.hunt import hunted
from harness.campaigns.hunt import variety as shared
from harness.campaigns.hunt.variety import survived_by
from harness.errors import WrongUse
from harness.plan.plan import Plan
from harness.run.assemble import parts_of
from harness.systems.plans import planned
from harness.systems.qsync import variety
from harness.systems.qsync.bug_plans import BUG_PLANS
from harness.systems.qsync.options import settings_of
from harness.workloads import WORKLOADS
from nodes.qsync import bugs

NOTHING: frozenset[str] = frozenset()


@cache
def usual(seed: int) -> Plan:
    """What a hunt makes of the default plan."""
    return hunted(planned(cluster="sim", seed=seed), NOTHING)


def test_seeds_differ_in_more_than_chance() -> None:
    """If it failed, a hunt would try one configuration a thousand times."""
    plans = [usual(seed) for seed in range(200)]
    assert plans[:20] == [hunted(planned(cluster="sim", seed=seed), NOTHING) for seed in range(20)]
    assert {plan.nodes for plan in plans} == {1, 2, 3, 4, 5}
    assert {plan.expectations.configuration for plan in plans} == {"C", "H", "I"}
    assert {plan.options.election_fencing for plan in plans} == {"off", "soft", "strict"}
    assert {mode for plan in plans for mode in settings_of(plan).election_modes} == {
        "off",
        "voter",
        "manual",
        "candidate",
    }
    assert {"holds" in plan.faults for plan in plans} == {True, False}
    assert {"replace-node" in plan.faults for plan in plans} == {True, False}
    assert {plan.workload for plan in plans} == set(WORKLOADS) - {"read-write", "restore", "message-queue"}
    assert {plan.overlap for plan in plans} == {1, 2, 3}
    for name in ("moments", "membership", "rolling-restart", "timeouts", "quorum"):
        assert {name in plan.faults for plan in plans} == {True, False}
    for field in ("stray_writes", "roaming", "failing", "write_once", "deletes"):
        assert {getattr(plan, field) > 0 for plan in plans} == {True, False}
    for plan in plans:
        parts_of(plan)


@pytest.mark.parametrize(
    "name", ["halves", "bridge", "failover", "membership", "quorum", "replace-node", "moments"]
)
def test_a_fault_that_is_asked_for_steers_the_draw(name: str) -> None:
    """If it failed, the first seed that draws too few nodes for a fault would end the whole hunt."""
    for seed in range(60):
        plan = hunted(planned(cluster="sim", seed=seed, faults=(name,)), frozenset(("faults",)))
        assert plan.faults == (name,)
        parts_of(plan)
    alone = frozenset(("faults", "nodes"))
    with pytest.raises(WrongUse, match="needs at least 3 nodes, got 1"):
        hunted(planned(cluster="sim", nodes=1, faults=("bridge",)), alone)


def test_an_option_that_only_some_workloads_know_steers_the_draw() -> None:
    """If it failed, `--commit-wait mixed` would end the hunt at the first seed that draws a bank."""
    plans = [
        hunted(planned(cluster="sim", seed=seed, commit_wait="mixed"), frozenset(("commit_wait",)))
        for seed in range(60)
    ]
    assert {plan.commit_wait for plan in plans} == {"mixed"}
    assert 3 < len({plan.workload for plan in plans}) < len(WORKLOADS)


def test_asynchronous_spaces_are_drawn_where_they_are_promised_something() -> None:
    """If it failed, rows that wait behind synchronous ones would hardly ever be judged as strictly as they can be."""
    fixed = [plan for plan in map(usual, range(300)) if plan.expectations.configuration == "C"]
    assert sum(plan.workload == "mixed-spaces" for plan in fixed) > len(fixed) / 4


def test_no_workload_is_drawn_whose_search_finds_no_end() -> None:
    """If it failed, seeds of two nodes with reads and writes of registers would be inconclusive (2 of 100 were)."""
    drawn = [usual(seed) for seed in range(300)]
    assert any(plan.nodes == 2 for plan in drawn)
    assert any(plan.workload == "rw-register" for plan in drawn)
    assert not any(plan.nodes == 2 and plan.workload == "rw-register" for plan in drawn)
    asked = hunted(planned(cluster="sim", nodes=2, workload="rw-register"), frozenset(("nodes", "workload")))
    assert (asked.nodes, asked.workload) == (2, "rw-register")


def test_no_seed_is_drawn_in_which_nothing_can_be_shown() -> None:
    """If it failed, seeds would be wasted on runs in which every fault stops everything, or nobody has load enough."""
    for seed in range(300):
        plan = usual(seed)
        assert {"all", *survived_by(plan)} & set(plan.faults), plan.faults
        assert plan.least_ok == 250
        assert plan.rate * plan.time_limit_s >= 4 * plan.least_ok


def test_a_system_that_draws_nothing_itself_is_drawn_over_all_the_same() -> None:
    """If it failed, a hunt of another store would try one plan again and again, or plans that its nodes cannot run."""
    system = "tests/systems/echo/echo.py"
    plans = [hunted(planned(cluster="sim", seed=seed, system=system), NOTHING) for seed in range(40)]
    assert {plan.nodes for plan in plans} == {1, 2, 3, 4, 5}
    assert len({plan.faults for plan in plans}) > 10
    assert {"rolling-restart" in plan.faults for plan in plans} == {True, False}
    assert not any({"holds", "moments", "failover", "reconfigure"} & {*plan.faults} for plan in plans)
    assert len({(plan.rate, plan.overlap, plan.roaming) for plan in plans}) > 10
    for plan in plans:
        parts_of(plan)


def test_what_is_said_stays() -> None:
    """If it failed, an option would be taken back by chance."""
    plan = planned(cluster="sim", seed=3, nodes=5, rate=33.0, faults=("kill",))
    for seed in range(30):
        varied = hunted(
            planned(cluster="sim", nodes=5, rate=33.0, faults=("kill",), seed=seed),
            frozenset(("nodes", "rate", "faults")),
        )
        assert (varied.nodes, varied.rate, varied.faults) == (plan.nodes, plan.rate, plan.faults)
    assert (
        hunted(planned(cluster="sim", time_limit_s=5.0, seed=3), frozenset(("time_limit_s",))).least_ok == 0
    )
    kept = hunted(planned(cluster="sim", configuration="F", seed=3), frozenset(("configuration",)))
    assert kept.expectations.configuration == "F"
    assert kept.nodes == 3


def test_what_is_drawn_fits_the_election_mode_that_is_said() -> None:
    """If it failed, a seed's own line would be refused: it would say how a leader is fenced where there is none."""
    for seed in range(30):
        plan = planned(cluster="sim", seed=seed, election_mode="off")
        varied = hunted(plan, frozenset(("election_mode",)))
        assert (
            varied.expectations.configuration,
            varied.options.election_fencing,
            varied.options.election_mode,
        ) == ("C", "soft", "off")


@pytest.mark.parametrize("bug", bugs.NAMES)
def test_a_bug_is_hunted_where_it_can_show(bug: str) -> None:
    """If it failed, a hunt for a bug would look where it cannot be."""
    plan = hunted(planned(cluster="sim", seed=1, bugs=(bug,)), NOTHING)
    parts_of(plan)
    assert set(BUG_PLANS) <= set(bugs.NAMES)
    known = bugs.bug(bug)
    assert known.does
    assert known.seen
    assert known.checkers


def test_what_came_to_the_draw_later_changes_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, every seed that was ever found would be another one."""
    late = [usual(seed) for seed in range(200)]
    for name in ("SIZES_APART", "LOG_QUEUES", "SHORT_DELAYS", "STARTS"):
        monkeypatch.setattr(variety, name, 0.0)
    monkeypatch.setattr(shared, "DELETES", ("deletes", 0.0, (0.1,)))
    for plan in late:
        before = hunted(planned(cluster="sim", seed=plan.seed), NOTHING)
        own = {
            "deletes": 0.0,
            "queue_max_size": before.options.queue_max_size,
            "node_options": before.options.node_options,
            "checkpoint_interval_s": before.options.checkpoint_interval_s,
            "start": None,
        }
        assert plan.changed(**own) == before
    sizes = [plan for plan in late if len(set(settings_of(plan).queue_sizes)) > 1]
    logs = [plan for plan in late if any("wal_queue_max_size" in each for each in plan.options.node_options)]
    starts = [plan for plan in late if plan.options.start is not None]
    assert min(len(sizes), len(logs), len(starts)) >= 4
    assert max(len(sizes), len(logs), len(starts)) <= 24


def test_deletions_are_drawn_where_they_can_be() -> None:
    """If it failed, hunts would not delete, or a seed would end because its client cannot say a deletion."""
    plans = [hunted(planned(cluster="sim", seed=seed, workload="register"), frozenset(("workload",)))
             for seed in range(100)]  # fmt: skip
    assert 25 < sum(plan.deletes > 0 for plan in plans) < 55
    asked = [
        hunted(planned(cluster="sim", seed=seed, deletes=0.3), frozenset(("deletes",))) for seed in range(20)
    ]
    assert {(plan.workload, plan.deletes) for plan in asked} == {("register", 0.3)}
    others = [hunted(planned(system="twophase", cluster="sim", seed=seed), NOTHING) for seed in range(40)]
    assert {plan.deletes for plan in others} == {0.0}


def test_followers_are_forgotten_only_where_time_outs_empty_the_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If it failed, a write without a time-out and a follower that must join would wait for each other for ever."""
    monkeypatch.setattr(variety, "SHORT_DELAYS", 1.0)
    plans = [hunted(planned(cluster="sim", seed=seed), NOTHING) for seed in range(300)]
    short = [plan for plan in plans if any("wal_cleanup_delay" in each for each in plan.options.node_options)]
    assert len(short) > 10
    assert not any(plan.submits or plan.has_elections for plan in short)
    assert any(plan.submits and not plan.has_elections for plan in plans)


def test_a_start_that_is_asked_for_steers_the_draw() -> None:
    """If it failed, a hunt from stored logs would end at the first seed that draws too few nodes for them."""
    for seed in range(60):
        plan = hunted(planned(cluster="sim", seed=seed, start="unmarked-by-hand@9"), frozenset(("start",)))
        assert plan.options.start == "unmarked-by-hand@9"
        assert plan.nodes >= 3
        parts_of(plan)
