"""Commit wait modes in a run: who is asked how, what the record says of it, and that nothing is judged by less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers.history import History
from checkers.history.operation import SUBMITTED
from harness.campaigns.hunt.seeds import try_seed
from harness.clients.operations import Completion, Insert, Read, Transaction
from harness.clients.reply import Replied
from harness.errors import WrongUse
from harness.judge import Case, judge
from harness.judge.words import repeat_line
from harness.pages.terminal.last_screen import last_screen
from harness.plan.plan import Operation, Plan
from harness.run.assemble import parts_of
from harness.run.draw import MIXED_WAITS, draw
from harness.systems import system_of
from harness.systems.plans import planned
from harness.systems.qsync.calls import call_of, outcome_of
from harness.systems.qsync.promises import FIXED_OWNER
from harness.workloads import WORKLOADS
from nodes.iproto.messages import Answer
from nodes.qsync.configuration import COMMIT_WAITS
from tests.harness.judge.test_judge_attacks import HEADER, PLAN, Run
from tests.harness.runs import recorded, small
from tests.suites import mostly_long

replace = msgspec.structs.replace
SMALL = planned(cluster="sim", time_limit_s=4, rate=60, workers=5, faults=("isolate-one",))
ABLE = tuple(name for name, workload in WORKLOADS.items() if workload.can_submit)


def operations(plan: Plan) -> tuple[Operation, ...]:
    parts = parts_of(plan)
    drawn = draw(parts.plan, parts.system, parts.workload).drawn
    assert drawn is not None
    return drawn.operations


@pytest.mark.parametrize("name", ABLE)
def test_how_writes_wait_changes_nothing_else_that_is_drawn(name: str) -> None:
    """If it failed, runs of two wait modes would differ in their operations, too, and every stored seed would shift."""
    plan = replace(SMALL, workload=name)
    plain, mixed = operations(plan), operations(plan.changed(commit_wait="mixed"))
    assert all(each.wait is None for each in plain)
    assert tuple(replace(each, wait=None) for each in mixed) == plain
    workload = WORKLOADS[name]
    assert workload.can_submit
    assert all((each.wait is not None) == workload.may_submit(each) for each in mixed)
    assert {each.wait for each in mixed} == {None, *MIXED_WAITS}
    assert {each.wait for each in operations(plan.changed(commit_wait="none"))} == {None, "none"}


def test_the_modes_are_those_of_the_node() -> None:
    """If it failed, a plan would ask for a mode that no node knows."""
    assert set(MIXED_WAITS) == set(COMMIT_WAITS)
    call = call_of(Transaction((Read("register", "a"),), wait="submit"), 1)
    assert call.arguments == ([["get", "register", "a"]], {"wait": "submit"})


@pytest.mark.parametrize("name", sorted(set(WORKLOADS) - {*ABLE, "restore"}))
def test_a_workload_in_which_open_writes_would_excuse_others_refuses(name: str) -> None:
    """If it failed, a lost transfer would hide behind one of which nobody knows whether it happened."""
    with pytest.raises(WrongUse, match=r"--commit-wait mixed: .* try one of: register"):
        parts_of(SMALL.changed(workload=name, commit_wait="mixed"))


def test_a_store_without_wait_modes_is_not_asked_for_them() -> None:
    """If it failed, real Tarantool 2.6 would be judged by answers that it never gave."""
    plan = planned(system="tarantool", cluster="docker", configuration="A", commit_wait="submit")
    with pytest.raises(WrongUse, match="without commit wait modes"):
        parts_of(plan)


def test_a_queued_write_is_no_acknowledgement() -> None:
    """If it failed, a store that lost it would be blamed for what it never promised."""
    one, two = (Transaction((Insert("register", "a", 2),) * count) for count in (1, 2))
    reply = Replied(Answer(1, ({"committed": None, "results": [[1, 2]], "role": "owner"},)))
    assert outcome_of(one, reply) == Completion("info", None, SUBMITTED, "owner")
    assert outcome_of(two, reply) != Completion("info", None, SUBMITTED, "owner")


@pytest.mark.long
def test_a_repeat_line_and_a_drawn_plan_ask_for_the_same() -> None:
    """If it failed, a run with wait modes could not be repeated."""
    assert "--commit-wait mixed" in repeat_line(SMALL.changed(commit_wait="mixed"))
    plan = small(seed=5, commit_wait="mixed")
    drawn = draw(*_parts(plan))
    assert drawn.submits
    assert recorded(plan).data == recorded(drawn).data
    assert drawn.drawn is not None
    one = replace(
        drawn.drawn, operations=tuple(each for each in drawn.drawn.operations if each.wait == "none")
    )
    assert drawn.changed(commit_wait="complete", drawn=one).submits


def _parts(plan: Plan) -> tuple[Any, Any, Any]:
    parts = parts_of(plan)
    return parts.plan, parts.system, parts.workload


@pytest.mark.parametrize("name", mostly_long(ABLE, quick=("append", "register")))
@pytest.mark.parametrize("wait", ["mixed", pytest.param("submit", marks=pytest.mark.nightly)])
def test_good_nodes_pass(name: str, wait: Any) -> None:
    """If it failed, a right store would be blamed for losing what it only queued, or nothing would be evidence."""
    tried = try_seed(SMALL.changed(workload=name, commit_wait=wait, seed=1))
    assert (tried.outcome, tried.violated) == ("valid", ()), tried.sentence


def test_who_does_not_wait_for_room_is_refused_and_surely_did_nothing() -> None:
    """If it failed, the two modes that answer at once would be one, and error 289 would mean nothing."""
    history = recorded(
        small(seed=3, commit_wait="mixed", queue_max_size="40", workers=20, rate=200.0)
    ).history
    full = [each for each in history.operations if each.error == "queue-full (289)"]
    assert full
    assert {each.wait for each in full} == {"none"}
    assert {each.type for each in full} == {"fail"}
    answered = {each.wait for each in history.operations if each.is_submitted}
    assert answered == {"submit", "none"}
    assert {each.wait for each in history.operations if each.type == "ok" and each.f == "write"} == {
        "complete"
    }


def test_what_is_shown_before_a_quorum_has_it_is_found_among_submitted_ones() -> None:
    """If it failed, open writes would excuse that reads show what is lost, or that acknowledged writes are.

    Some writes must be waited for: what is submitted alone has no time-out, and one owner never discards it.
    """
    plan = SMALL.changed(time_limit_s=8, rate=100, faults=("isolate-owner",), configuration="C")
    assert any(
        "linearizable"
        in try_seed(plan.changed(commit_wait="mixed", seed=seed, bugs=("confirm-early",))).violated
        for seed in range(6)
    )


def judged(run: Run, **fields: Any) -> dict[str, Any]:
    plan = PLAN.changed(commit_wait="mixed", **fields)
    return judge(Case(plan, History.of(HEADER, run.events), given_promise=FIXED_OWNER))


def test_a_lost_write_is_not_excused_by_one_that_was_submitted_before_it() -> None:
    """If it failed, the store could lose any acknowledged write in a mixed run and show the submitted one instead."""
    run = Run()
    run.serve()
    run.ask("write", 100, "info", role="owner", error=SUBMITTED)
    run.ask("write", 101, role="owner")
    run.end(100)
    verdict = judged(run)
    assert verdict["outcome"] == "anomaly"
    assert verdict["violations"] == ["queue-order"]
    for event in range(len(run.events)):  # what is really open, as before, excuses it
        if run.events[event].error == SUBMITTED:
            run.events[event] = replace(run.events[event], error="timeout")
    assert "queue-order" not in judged(run)["violations"]


def test_answers_at_once_do_not_stand_for_those_that_were_to_wait() -> None:
    """If it failed, a store that never confirms anything could be certified for what it only queues."""
    run = Run()
    for value in range(1, 31):
        run.ask("write", value, "info", role="owner", error=SUBMITTED, wait="submit")
        run.ask("write", 100 + value, "info", error="timeout", wait="complete")
        run.ask("read", value, role="owner", mode="read-confirmed")
    run.end(30)
    assert "too few answers to write: 0 of 30 operations" in str(judged(run)["evidence"]["missing"])


def test_a_run_in_which_nothing_was_submitted_is_no_evidence() -> None:
    """If it failed, a store that ignores the wait mode would be certified for it."""
    run = Run()
    run.serve()
    run.end(20)
    verdict = judged(run)
    assert verdict["outcome"] == "inconclusive"
    assert "no write was answered as submitted" in verdict["sentence"]
    assert verdict["evidence"]["submitted"] == 0


def test_the_screen_says_how_many_were_only_submitted() -> None:
    """If it failed, somebody would take hundreds of answers of unknown outcome for a store that hangs."""
    run = Run()
    run.serve()
    run.ask("write", 100, "info", role="owner", error=SUBMITTED)
    run.end(20)
    text = last_screen(judged(run), Path("run"))
    assert "1 info, 1 of them submitted" in text
    plain = judge(Case(PLAN, History.of(HEADER, run.events), given_promise=FIXED_OWNER))
    assert "of them submitted" not in last_screen(plain, Path("run"))


def test_the_promise_of_submitted_writes_is_told_only_where_there_are_some() -> None:
    """If it failed, every run would tell of a check that judged nothing, or no run which promise it was judged by."""
    run = Run()
    run.serve()
    run.ask("write", 100, "info", role="owner", error=SUBMITTED)
    run.end(20)
    assert judged(run)["promise"]["queue-order"]
    plain = judge(Case(PLAN, History.of(HEADER, run.events), given_promise=system_of("qsync").promise(PLAN)))
    assert "queue-order" not in plain["promise"]
