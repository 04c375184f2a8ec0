"""How many attempts of a fault may take no effect, and why; and what else a long run brings with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers.history import jsonl
from checkers.history.history import History
from harness.pages.terminal.last_screen import last_screen
from tests.harness.judge.test_judge_attacks import HEADER, PLAN, Run, missing

REFUSAL = "ER_INTERFERING_PROMOTE (246): Interfering elections started"


def a_run(*faults: dict[str, Any]) -> Run:
    """A run that is evidence but for these faults, one after the other."""
    run = Run()
    run.serve()
    for number, fault in enumerate(faults):
        start = {"id": number, "name": "pause", "does": "pause", "nodes": ["n2"], **fault}
        end = {"id": number, "took_effect": True, "healed": True, "detail": "", "counters": {}, **fault}
        start_ns = len(run.events) * 1_000_000
        run.line("invoke", "nemesis", start["name"], value=start)
        run.serve(1)
        end |= {"all_in_effect_ns": start_ns, "heal_asked_ns": len(run.events) * 1_000_000}
        run.line("info", "nemesis", start["name"], value=end)
    run.end(1)
    return run


def failover(**others: Any) -> dict[str, Any]:
    return {"name": "failover", "does": "failover", **others}


REFUSED = failover(took_effect=False, detail=REFUSAL)
DONE = failover(took_effect=True)
PLAN_ALL = msgspec.structs.replace(PLAN, faults=("all",))


def test_one_refused_attempt_of_many_is_a_fact_of_the_run() -> None:
    """If it failed, no run of fifteen minutes could pass: somewhere in it a store says no."""
    verdict = a_run(*[DONE] * 11, REFUSED).verdict(PLAN_ALL)
    assert verdict["outcome"] == "valid", verdict["sentence"]
    assert verdict["evidence"]["attempts"] == [
        {"name": "failover", "took_effect": 11, "without_effect": {"refused": 1}}
    ]
    (finding,) = [found for found in verdict["findings"] if found["checker"] == "faults"]
    assert finding["summary"] == (
        f"failover took effect in 11 of 12 attempts; fault 11 did not (refused: {REFUSAL})"
    )


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ([REFUSED], f"fault 0 (failover) took no effect (refused: {REFUSAL})"),
        ([DONE, REFUSED, REFUSED], "failover took effect in 1 of 3 attempts; faults 1, 2 did not (refused: "),
        ([{"took_effect": False}], "fault 0 (pause) took no effect"),
        ([{}] * 8 + [{"took_effect": False}], "pause took effect in 8 of 9 attempts; fault 8 did not"),
        (
            [{}] * 18 + [{"took_effect": False}] * 3,
            "pause took effect in 18 of 21 attempts; faults 18, 19, 20 did",
        ),
        (
            [failover(took_effect=False)] + [DONE] * 8,
            "failover took effect in 8 of 9 attempts; fault 0 did not",
        ),
        ([*[DONE] * 11, failover(took_effect=False, detail=REFUSAL, healed=False)], "was not seen to heal"),
        ([*[DONE] * 11, failover(took_effect=False, detail=REFUSAL, healed=None)], "was not seen to heal"),
        ([{}] * 20 + [{"healed": False}], "fault 20 (pause) was not seen to heal"),
    ],
)
def test_a_kind_of_which_too_many_attempts_took_no_effect_is_missing(
    faults: list[dict[str, Any]], words: str
) -> None:
    """If it failed, faults that mostly did nothing would stand behind a green light."""
    assert words in missing(a_run(*faults).verdict(PLAN_ALL))


KILLED, SKEWED, SLOWED = ({"name": name, "does": name} for name in ("kill", "clock", "slow"))
OUTRUN = (
    "The term is outdated: old - 3, new - 4",
    "Interfering elections started",
    "Instance with replica id 2 was promoted first",
)


@pytest.mark.parametrize("said", OUTRUN)
def test_a_promotion_that_lost_a_race_is_noted(said: str) -> None:
    """If it failed, a run on containers with five faults in effect would say nothing (docker, seed 13)."""
    lost = failover(took_effect=False, detail=said)
    verdict = a_run(KILLED, SKEWED, SLOWED, lost).verdict(PLAN_ALL)
    assert verdict["outcome"] == "valid", verdict["sentence"]
    (finding,) = [found for found in verdict["findings"] if found["checker"] == "faults"]
    assert finding["summary"] == f"fault 3 (failover) took no effect (refused: {said})"
    by_name = msgspec.structs.replace(PLAN_ALL, faults=("all", "failover"))
    told = missing(a_run(KILLED, SKEWED, SLOWED, lost).verdict(by_name))
    assert told == "the fault failover was asked for and never took effect: it began once"


@pytest.mark.parametrize(
    "faults",
    [
        (KILLED, SKEWED, failover(took_effect=False, detail=OUTRUN[0])),
        (KILLED, SKEWED, SLOWED, failover(took_effect=False, detail="read-only (7)")),
        (KILLED, SKEWED, SLOWED, failover(took_effect=False)),
        (KILLED, SKEWED, SLOWED, {"took_effect": False, "detail": OUTRUN[0]}),
        (KILLED, SKEWED, SLOWED, failover(took_effect=False, detail=OUTRUN[0], healed=False)),
    ],
    ids=["too few other kinds", "another refusal", "no reason", "no promotion", "not healed"],
)
def test_whatever_else_came_to_nothing_is_missing(faults: tuple[dict[str, Any], ...]) -> None:
    """If it failed, the excuse of a lost race would hold for faults that no race was about."""
    assert missing(a_run(*faults).verdict(PLAN_ALL))


def cut(name: str, took_effect: bool, **counters: int) -> dict[str, Any]:
    links = [["n2", "n3"], ["n3", "n2"]]
    return {"name": name, "does": "cut", "links": links, "took_effect": took_effect, "counters": counters}


ON_UNUSED_LINKS = cut("bridge", took_effect=False, links=2, links_used=0)


def test_a_cut_of_links_without_traffic_is_a_fact_of_the_store() -> None:
    """If it failed, a correct store with a fixed primary could not pass: two of its replicas never talk."""
    verdict = a_run(cut("isolate-one", took_effect=True), ON_UNUSED_LINKS).verdict(PLAN_ALL)
    assert verdict["outcome"] == "valid", verdict["sentence"]
    (finding,) = [found for found in verdict["findings"] if found["checker"] == "faults"]
    assert finding["summary"] == "fault 1 (bridge) took no effect (nothing was sent on its links)"


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ([ON_UNUSED_LINKS, {}], "no partition took effect, because nothing was sent"),
        (
            [cut("isolate-one", took_effect=True), cut("bridge", took_effect=False, links_used=1)],
            "(bridge) took no",
        ),
        ([cut("isolate-one", took_effect=True), cut("bridge", took_effect=False)], "(bridge) took no effect"),
    ],
)
def test_a_cut_without_effect_needs_its_reason_and_another_cut_that_took_effect(
    faults: list[dict[str, Any]], words: str
) -> None:
    """If it failed, nodes that go around the harness's addresses would survive every partition."""
    assert words in missing(a_run(*faults).verdict(PLAN_ALL))


PASSED = (
    {"bytes_delayed": 25_748, "bytes_queued": 0},
    {"packets_held": 73, "packets_queued": 0},
)


def narrow(**counters: int) -> dict[str, Any]:
    return {"name": "bandwidth", "does": "bandwidth", "took_effect": False, "counters": counters}


@pytest.mark.parametrize("counters", PASSED)
def test_a_limit_above_what_the_store_sends_is_a_fact_of_the_store(counters: dict[str, int]) -> None:
    """If it failed, default runs of a store of few messages would be inconclusive (PySyncObj, seed 134605)."""
    verdict = a_run({}, narrow(links_used=6, **counters)).verdict(PLAN_ALL)
    assert verdict["outcome"] == "valid", verdict["sentence"]
    (finding,) = [found for found in verdict["findings"] if found["checker"] == "faults"]
    assert finding["summary"] == (
        "fault 1 (bandwidth) took no effect (its links carried less than it lets through)"
    )
    by_name = msgspec.structs.replace(PLAN, faults=("pause", "bandwidth"))
    told = missing(a_run({}, narrow(links_used=6, **counters)).verdict(by_name))
    assert "the fault bandwidth was asked for and never took effect" in told


@pytest.mark.parametrize(
    "counters", [{}, {"bytes_delayed": 0, "bytes_queued": 0}, {"bytes_delayed": 9}, {"packets_held": 9}]
)
def test_a_limit_that_nothing_passed_through_is_missing(counters: dict[str, int]) -> None:
    """If it failed, a limit that was never set would count as one that the store stayed below."""
    told = missing(a_run({}, narrow(links_used=6, **counters)).verdict(PLAN_ALL))
    assert "fault 1 (bandwidth) took no effect" in told


@pytest.mark.parametrize(("unused", "is_missing"), [(2, False), (1, True), (0, True)])
def test_a_changing_partition_needs_two_shapes_of_links_with_traffic(unused: int, is_missing: bool) -> None:
    """If it failed, a shape that was not carried out would pass for one on links without traffic."""
    counters = {"shapes": 3, "shapes_affected": 1, "shapes_unused": unused, "links_used": 2}
    changing = {
        "name": "changing-partitions",
        "does": "changing-cut",
        "took_effect": False,
        "counters": counters,
    }
    verdict = a_run(cut("isolate-one", took_effect=True), changing).verdict(PLAN_ALL)
    assert any("changing-partitions" in each for each in verdict["evidence"]["missing"]) == is_missing


def test_hardly_any_attempt_of_many_may_take_no_effect_without_a_reason() -> None:
    """If it failed, one late signal of a hundred would make an hour worth nothing."""
    assert a_run(*[{}] * 19, {"took_effect": False}).verdict(PLAN_ALL)["outcome"] == "valid"


def test_a_kind_that_was_asked_for_by_name_and_never_took_effect_is_missing() -> None:
    """If it failed, a store that refuses each failover would have survived failovers."""
    plan = msgspec.structs.replace(PLAN, faults=("pause", "failover"))
    assert "the fault failover was asked for and never" in missing(a_run({}, REFUSED).verdict(plan))


@pytest.mark.parametrize(("nodes", "is_needed"), [(("n1", "n2", "n3"), False), (("n2",), True)])
def test_load_under_faults_is_needed_where_a_node_is_left_to_answer(
    nodes: tuple[str, ...], is_needed: bool
) -> None:
    """If it failed, a store of one node could never pass: nobody answers while its only node is down."""
    run = Run()
    run.serve()
    run.line("invoke", "nemesis", "kill", value={"id": 0, "name": "kill", "does": "kill", "nodes": nodes})
    run.line("info", "nemesis", "kill", value={"id": 0, "took_effect": True, "healed": True})
    run.end(20)
    verdict = run.verdict(msgspec.structs.replace(PLAN, faults=("kill",)))
    assert any("load under faults" in each for each in verdict["evidence"]["missing"]) == is_needed


def test_what_was_skipped_or_left_behind_is_shown() -> None:
    """If it failed, a run that left out half of its load, or processes behind, would look like any other."""
    run = a_run({})
    value = {"worker": 3, "count": 57, "kinds": {"read": 30, "write": 27}, "from_ns": 1, "to_ns": 2}
    run.line("info", "harness", "skipped", value=value)
    run.line("info", "harness", "orphans", node="n2", value={"what": "process 7 (python store.py)"})
    verdict = run.verdict(msgspec.structs.replace(PLAN, faults=("pause",)))
    assert verdict["outcome"] == "valid", verdict["sentence"]
    assert verdict["evidence"]["skipped"] == 57
    screen = last_screen(verdict, Path("run"))
    assert "57 skipped" in screen
    assert "processes of n2 outlived the one that was started, and were killed: process 7" in " ".join(
        screen.split()
    )


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"fault": None, "why": "late"},
        {"fault": {"name": [1]}, "why": "late"},
        {"fault": {"name": "kill"}},
    ],
)
def test_a_skipped_fault_that_is_not_told_is_none(value: dict[str, Any]) -> None:
    """If it failed, a run with such a line would end in a traceback."""
    run = a_run({})
    run.line("info", "harness", "skipped-fault", value=value)
    run.line("info", "harness", "skipped-fault", value={"fault": {"id": 7, "name": "kill"}, "why": "late"})
    skipped = run.verdict(PLAN_ALL)["evidence"]["skipped_faults"]
    assert skipped == [{"id": 7, "name": "kill", "why": "late"}]


def test_a_record_without_lines_of_skipped_operations_is_read_as_before(tmp_path: Path) -> None:
    """If it failed, runs that were stored before could not be judged again; or be read by who knows no such lines."""
    assert a_run({}).verdict(PLAN_ALL)["evidence"]["skipped"] == 0
    run = a_run({})
    run.line("info", "harness", "skipped", value={"count": 1})
    jsonl.write(tmp_path / "history.jsonl", HEADER, run.events)
    assert jsonl.read(tmp_path / "history.jsonl") == History.of(HEADER, run.events)


@pytest.mark.parametrize(
    "fault",
    [
        {"does": "hold", "healed": False},
        {"name": "upgrade", "does": "upgrade", "took_effect": False, "counters": {"refused_to_start": 1}},
    ],
)
def test_a_step_of_a_scene_and_a_refused_version_need_not_heal(fault: dict[str, Any]) -> None:
    """If it failed, no run with directed faults would be evidence, or a refusal would be told of twice."""
    told = "; ".join(a_run({"healed": False, **fault}).verdict(PLAN_ALL)["evidence"]["missing"])
    assert "heal" not in told and "took no effect" not in told
