"""The state machine of Hypothesis finds seeded bugs of each node, shrinks them, and stays silent without them."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from harness.campaigns.hunt import try_seed
from harness.errors import WrongUse
from harness.run.assemble import parts_of
from harness.stateful import ClusterMachine, Stepped
from harness.stateful.machine import Anomaly, NothingSucceeds, groups
from harness.systems import plans
from tests import examples

ROOT = Path(__file__).parents[3]
ECHO = str(ROOT / "tests" / "systems" / "echo" / "echo.py")
QSYNC = {"system": "qsync", "workload": "register", "nodes": 3}
TWOPHASE = {
    "system": "twophase",
    "workload": "bank",
    "nodes": 4,
    "near_clients": 1,
    "cut_every_s": 0.3,
    "step_ms": 2.0,
    "delivery_ms": "10",
}
TXLOG = {"system": "txlog", "workload": "register", "nodes": 3}
BUGS = [
    pytest.param(QSYNC, "confirm-early", "acknowledged-early", id="qsync"),
    pytest.param(TWOPHASE, "no-markers", "cuts-messages", id="twophase"),
    pytest.param(TXLOG, "own-value", "txlog-state", id="txlog"),
]


def run(
    plan: Mapping[str, Any], *, number: int, steps: int = 15, shrinks: bool = False, **own: Any
) -> type[ClusterMachine]:
    """Run a machine over this plan; `own` are attributes of its class."""
    machine = type("Machine", (ClusterMachine,), {"plan": plan, **own})
    phases = [Phase.generate, *([Phase.shrink] if shrinks else [])]
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=number,
            stateful_step_count=steps,
            phases=phases,
            derandomize=True,
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return machine


@pytest.mark.parametrize(("plan", "bug", "checker"), BUGS)
def test_a_seeded_bug_is_found(plan: Mapping[str, Any], bug: str, checker: str) -> None:
    """If it failed, the machine would pass on a node with this bug."""
    with pytest.raises(Anomaly, match=f"violated: .*{checker}"):
        run({**plan, "bugs": (bug,)}, number=10)


@pytest.mark.parametrize(
    ("plan", "bug", "checker"),
    [
        pytest.param(*bug.values, id=bug.id, marks=pytest.mark.nightly if place else pytest.mark.long)
        for place, bug in enumerate(BUGS)
    ],
)
def test_a_failure_is_shrunk_to_a_readable_script(
    plan: Mapping[str, Any], bug: str, checker: str, tmp_path: Path
) -> None:
    """If it failed, a person would have to find the few steps that matter among dozens, and could not run them."""
    with pytest.raises(Anomaly, match=f"violated: .*{checker}") as failure:
        run({**plan, "bugs": (bug,)}, number=20, steps=20, shrinks=True, keep=tmp_path)
    told = "\n".join(failure.value.__notes__).splitlines()
    steps = [line for line in told if line.startswith("state.")]
    assert steps[-1] == "state.teardown()"
    assert len(steps) <= 5, told
    assert any(" at " in line for line in told), "what each operation was, and its answer"
    assert "./qsync run --plan" in str(failure.value)
    plans.read(tmp_path / "Machine.json")


@pytest.mark.parametrize("plan", [QSYNC, TWOPHASE, TXLOG], ids=["qsync", "twophase", "txlog"])
def test_nodes_in_order_break_nothing(plan: Mapping[str, Any]) -> None:
    """If it failed, an author would look for a bug in a correct node."""
    run(plan, number=examples.times(100) // 12, steps=20)


def test_a_store_of_ones_own() -> None:
    """If it failed, the machine would be for the reference nodes alone. Echo keeps the nothing that a read found."""
    run({"system": ECHO, "workload": "read-write", "nodes": 3}, number=3, steps=10)


def test_the_same_steps_are_the_same_run() -> None:
    """If it failed, Hypothesis could neither shrink nor repeat a failure."""

    def steps() -> tuple[Any, ...]:
        run = Stepped(**QSYNC)
        run.ask("write", "x", 1, patience_ms=50)
        kill = run.begin("kill", "kill", nodes=("n1",))
        assert kill is not None
        run.ask("write", "x", 2)
        run.run_for(200)
        run.end(kill)
        run.ask("read", "x", patience_ms=500)
        return run.finish()["outcome"], run.history.events

    assert steps() == steps()


def test_the_end_of_a_run_goes_on_by_no_assertion(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run would never end in a Python without assertions (`python -O`), in which time stood still."""
    run = Stepped(**QSYNC)
    monkeypatch.setattr(type(run.cluster.world.agenda), "advance", lambda agenda: False)
    with pytest.raises(RuntimeError, match="nothing is left to happen"):
        run.finish()
    run.close()


def test_operations_faults_and_time_are_as_told() -> None:
    """If it failed, a rule would do nothing, and the machine would find nothing."""
    run = Stepped(**QSYNC)
    began_ns = run.now_ns()
    done = run.ask("write", "x", 1, patience_ms=100)
    assert done is not None and done.type == "ok"
    run.run_for(30)
    cut = run.begin("partition", "cut", links=tuple((a, b) for a in ("n2", "n3") for b in ("n1",)))
    assert cut is not None and [fault.name for fault in run.active] == ["partition"]
    assert run.ask("write", "x", 2, node="n1", patience_ms=100) is None, "n1 gets no acknowledgement"
    run.run_for(400)  # longer than a heartbeat
    parts_of(run.drawn)  # the steps so far are a plan, too: none of its faults goes on behind its load
    kill = run.begin("kill", "kill", nodes=("n3",))
    assert run.begin("pause", "pause", nodes=("n3",)) is None, "it is down"
    assert kill is not None
    run.end(cut)
    run.end(kill)
    run.run_for(3_000)
    assert run.active == ()
    read = run.ask("read", "x", patience_ms=500)
    assert read is not None and read.value in (1, 2)
    verdict = run.finish()
    assert {fault["name"]: fault["took_effect"] for fault in verdict["evidence"]["faults"]} == {
        "partition": True,
        "kill": True,
    }
    assert verdict["violations"] == []
    assert verdict["evidence"]["ok"] >= 2
    assert run.drawn.drawn is not None
    assert [operation.f for operation in run.drawn.drawn.operations] == ["write", "write", "read"]
    assert run.now_ns() - began_ns > 3_000_000_000


def test_a_failover_that_cannot_succeed_is_given_up() -> None:
    """If it failed, a machine that promotes a node which is cut off would hang for hours."""
    run = Stepped(**QSYNC)
    for node in ("n1", "n2"):
        run.begin("partition", "cut", links=(("n3", node), (node, "n3")))
    began_ns = run.now_ns()
    failover = run.begin("failover", "failover", nodes=("n3",))
    assert failover is not None
    assert 1_000_000_000 < run.now_ns() - began_ns < 10_000_000_000
    run.end(failover)
    verdict = run.finish()
    assert verdict["violations"] == []
    (found,) = (fault for fault in verdict["evidence"]["faults"] if fault["name"] == "failover")
    assert not found["took_effect"]


def test_the_steps_are_a_plan_that_runs() -> None:
    """If it failed, the plan that is kept of a failure could not be looked at."""
    run = Stepped(**QSYNC, bugs=("confirm-early",))
    for value in (1, 2, 3):
        run.ask("write", "x", value)
    run.run_for(50)
    assert run.finish()["outcome"] == "anomaly"
    again = try_seed(run.drawn)
    assert again.outcome == "anomaly", again.sentence


def test_wrong_operations_and_plans_are_refused() -> None:
    """If it failed, an author's mistake would be a traceback from deep inside, or silence."""
    run = Stepped(**QSYNC)
    with pytest.raises(WrongUse, match="has no 'dequeue'"):
        run.ask("dequeue")
    with pytest.raises(WrongUse, match="no node is called 'n9'; try one of: n1"):
        run.ask("read", "k", node="n9")
    run.finish()
    for late in (lambda: run.ask("read", "k"), lambda: run.begin("kill", "kill", nodes=("n1",))):
        with pytest.raises(WrongUse, match=r"behind the end of the run; try: before finish\(\)"):
            late()
    for fields, says in (
        ({"workload": "nothing"}, "unknown workload"),
        ({"nodez": 3}, "nodez"),
        ({"nodes": 0}, "nodes"),
    ):
        with pytest.raises(WrongUse, match=says):
            Stepped(**{**QSYNC, **fields})


def test_a_fault_that_cannot_be_is_told_when_it_begins() -> None:
    """If it failed, a slip in a rule would begin no fault, and the run would be inconclusive, which fails no test."""
    run_ = Stepped(**QSYNC)
    for does, nodes, says in (
        ("cuts", ("n1",), "'cuts' is unknown; try one of: cut"),
        ("kill", ("n9",), "no node is called 'n9'"),
        ("changing-cut", (), "'changing-cut' needs links"),
    ):
        with pytest.raises(WrongUse, match=says):
            run_.begin("a slip", does, nodes=nodes)
    run_.close()


def test_a_machine_under_which_nothing_succeeds_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a machine that asks a dead cluster would pass for ever: a green light with nothing behind it."""
    monkeypatch.setattr("harness.stateful.machine.TRIED_WITHOUT_SUCCESS", 1)

    def asks_nothing(*_: Any, **__: Any) -> None: ...

    monkeypatch.setattr(Stepped, "ask", asks_nothing)
    with pytest.raises(NothingSucceeds, match="nothing is tested"):
        run(QSYNC, number=1, steps=2)


@pytest.mark.parametrize(("every", "looks"), [(0, []), (5, [5, 10]), (1, [*range(1, 13)])])
def test_the_checkers_look_after_each_so_many_steps(every: int, looks: list[int]) -> None:
    """If it failed, a run of as many steps as lie between two looks would be looked at before its last step."""
    machine = type("Machine", (ClusterMachine,), {"plan": QSYNC, "check_every": every})()
    asked = [machine._is_due() for _ in range(13)]  # Hypothesis asks before the first step, and after each
    machine.run.close()
    assert [step for step, is_due in enumerate(asked) if is_due] == looks


def test_groups_are_one_side_of_each_partition() -> None:
    """If it failed, some partitions would never be drawn, or a cut would cut nothing."""
    assert groups(("n1", "n2", "n3")) == [("n1",), ("n2",), ("n3",)]
    assert groups(("n1", "n2")) == [("n1",), ("n2",)]
    assert ("n1", "n3") in groups(("n1", "n2", "n3", "n4", "n5"))
    assert len(groups(tuple(f"n{number}" for number in range(31)))) == 64


def test_without_hypothesis_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, an author without the tests' group would get a traceback that names no remedy."""
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    for name in ("harness.stateful", "harness.stateful.machine"):
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(WrongUse, match=r"harness.stateful needs Hypothesis.*\./qsync test FILE"):
        importlib.import_module("harness.stateful")


@pytest.mark.long
def test_the_example_of_the_docs_runs() -> None:
    """If it failed, the first thing that a newcomer tries would not work."""
    done = subprocess.run(
        [str(ROOT / "qsync"), "test", "docs/mymachine.py", "-n0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
