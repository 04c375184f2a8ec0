"""A green light must have something behind it: each run here says nothing good of the store, or says something bad."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers.history import jsonl
from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.logs.wal import LogRules
from harness.errors import StoreError
from harness.faults.fault import Fault
from harness.judge import Case, judge
from harness.judge.promised import rules_of
from harness.plan.plan import Drawn, Operation, Plan
from harness.results import RunFolder
from harness.run.finish import finish
from harness.systems import system_of
from harness.systems.plans import planned
from harness.systems.qsync.promises import FIXED_OWNER

NODES = ("n1", "n2", "n3")
HEADER = Header(system="qsync", cluster="sim", nodes=NODES, quorum=2, owner="n1", heartbeat_ns=250_000_000)
PLAN = planned(cluster="sim", configuration="C", faults=("none",), time_limit_s=1, rate=30)


@dataclass
class Run:
    """A record that is written line by line, one millisecond apart."""

    events: list[Event] = field(default_factory=list)

    def line(self, type_: Any, process: int | str, f: str, **fields: Any) -> None:
        index = len(self.events)
        self.events.append(
            Event(index=index, time_ns=index * 1_000_000, type=type_, process=process, f=f, **fields)
        )

    def ask(self, f: str, value: Any = None, type_: str = "ok", **fields: Any) -> None:
        told = {"key": "a", "node": "n1", **fields}
        asked = {name: told[name] for name in told if name not in ("role", "error")}
        process = len(self.events)
        self.line("invoke", process, f, value=value if f in ("write", "cas") else None, **asked)
        self.line(type_, process, f, value=value, **told)

    def serve(self, count: int = 20) -> None:
        for value in range(1, count + 1):
            self.ask("write", value, role="owner")
            self.ask("read", value, role="owner", mode="read-confirmed")

    def end(self, value: int | None, *, settled: bool = True, reads: bool = True) -> None:
        for node in NODES:
            self.line("info", "monitor", "state", node=node, value={"up": True, "rollbacks": 0})
        self.line("info", "harness", "settled", value=settled)
        if reads:
            self.ask("read", value, role="owner", mode="read-confirmed", phase="final")
        rows = [] if value is None else [["a", value]]
        for node in NODES:
            self.ask("dump", {"spaces": {"register": rows}}, key=None, node=node, phase="final")

    def fault(self, took_effect: bool, name: str = "pause", does: str = "pause") -> None:
        start_ns = len(self.events) * 1_000_000
        number = sum(event.type == "invoke" and event.process == "nemesis" for event in self.events)
        value = {"id": number, "name": name, "does": does, "nodes": ["n2"]}
        self.line("invoke", "nemesis", name, value=value)
        self.serve(1)
        told = {"all_in_effect_ns": start_ns, "heal_asked_ns": len(self.events) * 1_000_000, "healed": True}
        self.line("info", "nemesis", name, value={"id": number, "took_effect": took_effect, **told})

    def verdict(self, plan: Plan = PLAN) -> dict[str, Any]:
        return judge(Case(plan, History.of(HEADER, self.events), given_promise=FIXED_OWNER))


def missing(verdict: dict[str, Any]) -> str:
    assert verdict["outcome"] == "inconclusive", verdict["sentence"]
    return "; ".join(verdict["evidence"]["missing"])


def a_good_run() -> Run:
    run = Run()
    run.serve()
    run.end(20)
    return run


def test_a_good_run_is_valid() -> None:
    """All that follows would be not evidence for another reason than the one that is meant."""
    assert a_good_run().verdict()["outcome"] == "valid"


@pytest.mark.parametrize(
    "told", [{"rollbacks": None}, {"rollbacks": {}}, {"stopped": ["n2"]}, {"stopped": "no"}, {"stopped": 1}]
)
def test_what_another_store_says_of_itself_does_not_break_the_judge(told: dict[str, Any]) -> None:
    """A store's own words in its status would end the run with a traceback, and with no verdict."""
    run = a_good_run()
    run.events[:] = [
        msgspec.structs.replace(event, value={**event.value, **told})
        if event.process == "monitor" and isinstance(event.value, dict)
        else event
        for event in run.events
    ]
    assert run.verdict()["outcome"] == "valid"


def test_failed_final_reads_are_no_evidence() -> None:
    """The final state would be unread, and yet nothing said to be lost. Without the error in the sentence a
    defect of the client would look like one of the store."""
    run = Run()
    run.serve()
    run.end(20, reads=False)
    run.ask("read", None, "fail", error="timeout", mode="read-confirmed", phase="final")
    assert "1 key had no final read" in missing(run.verdict())
    assert "among them: timeout (1 of 1)" in missing(run.verdict())


def test_final_reads_that_a_replica_answered_are_no_evidence() -> None:
    """A replica may be stale: a final read that it answers shows nothing."""
    run = Run()
    run.serve()
    run.end(20, reads=False)
    run.ask("read", 20, role="replica", mode="read-confirmed", phase="final")
    assert "1 key had no final read" in missing(run.verdict())
    assert "among them: a read answered as replica, in mode read-confirmed (1 of 1)" in missing(run.verdict())


def test_a_store_that_refuses_every_write_is_no_evidence() -> None:
    """Reads of nothing at all would make a run valid."""
    run = Run()
    for value in range(1, 21):
        run.ask("write", value, "fail", error="read-only (7)")
        run.ask("read", None, role="owner", mode="read-confirmed")
    run.end(None)
    assert "too few answers to write" in missing(run.verdict())


def test_mismatches_are_answers() -> None:
    """A compare-and-set that is outrun again and again is no reason to distrust the run."""
    run = Run()
    run.serve()
    for value in range(100, 120):
        run.ask("cas", [1, value], "fail", error="mismatch", role="owner")
    run.end(20)
    assert run.verdict()["outcome"] == "valid"


def test_no_operation_under_fault_is_no_evidence_at_a_low_rate() -> None:
    """A twentieth of a few operations is none: a fault that nothing was tried under would count."""
    run = Run()
    run.serve(6)
    run.line("invoke", "nemesis", "pause", value={"id": 0, "name": "pause", "does": "pause"})
    run.line("info", "nemesis", "pause", value={"id": 0, "took_effect": True, "healed": True})
    run.end(6)
    plan = msgspec.structs.replace(PLAN, rate=15.0, faults=("pause",))
    assert "too little load under faults" in missing(run.verdict(plan))


def test_a_fault_of_a_drawn_plan_must_bite_whatever_its_names_say() -> None:
    """A fault that was written into a plan without faults would not need to be felt."""
    run = Run()
    run.serve()
    run.fault(took_effect=False)
    run.end(1)
    assert "took no effect" in missing(run.verdict())


def test_two_nones_are_none() -> None:
    """`--faults none,none` would be blamed for a lack of faults."""
    plan = msgspec.structs.replace(PLAN, faults=("none", "none"))
    assert a_good_run().verdict(plan)["outcome"] == "valid"


def test_a_plan_cut_down_to_little_is_judged_by_what_it_asks() -> None:
    """A regression test of three operations would never be valid: it cannot have the load of a whole run."""
    run = Run()
    run.serve(2)
    run.end(2)
    operations = tuple(Operation(at_ns=0, worker=0, f="write", key="a", value=1, node="n1") for _ in range(4))
    plan = msgspec.structs.replace(PLAN, rate=300.0, drawn=Drawn(faults=(), operations=operations))
    verdict = run.verdict(plan)
    assert verdict["evidence"]["asked"] == 4
    assert verdict["outcome"] == "valid"


def test_an_interrupted_run_stays_interrupted() -> None:
    """`qsync check` would forget that a person ended the run."""
    run = Run()
    run.serve()
    run.line("info", "harness", "interrupted")
    assert "interrupted" in missing(run.verdict())


def test_an_unsettled_run_is_no_anomaly() -> None:
    """A replica that is slow to catch up, which is allowed, would be called diverged."""
    run = Run()
    run.serve()
    run.line("info", "harness", "settled", value=False)
    run.ask("read", 20, role="owner", mode="read-confirmed", phase="final")
    for node, value in zip(NODES, (20, 20, 19), strict=True):
        run.ask("dump", {"spaces": {"register": [["a", value]]}}, key=None, node=node, phase="final")
    assert "not quiet and equal" in missing(run.verdict())


def stored(folder: Path, run: Run) -> RunFolder:
    kept = RunFolder.create(folder, PLAN)
    jsonl.write(kept.history, HEADER, run.events)
    return kept


def an_anomaly() -> Run:
    run = a_good_run()
    run.ask("read", 3, role="owner", mode="read-confirmed", phase="final")
    return run


def block_report(folder: RunFolder) -> None:
    (folder.path / "report.html").mkdir()


def block_columns(folder: RunFolder) -> None:
    (folder.path / "history.parquet").mkdir()


@pytest.mark.parametrize("block", [block_report, block_columns])
def test_what_cannot_be_written_hides_no_anomaly(tmp_path: Path, block: Callable[[RunFolder], None]) -> None:
    """A full disk would turn exit code 1 into another one."""
    folder = stored(tmp_path, an_anomaly())
    block(folder)
    verdict = finish(folder, PLAN)
    assert verdict["outcome"] == "anomaly"
    assert any("cannot write" in finding["summary"] for finding in verdict["findings"])


@pytest.mark.parametrize("block", [block_report, block_columns])
def test_what_cannot_be_written_is_one_line(tmp_path: Path, block: Callable[[RunFolder], None]) -> None:
    """A full disk would look like a bug of the harness."""
    folder = stored(tmp_path, a_good_run())
    block(folder)
    with pytest.raises(StoreError, match="cannot write"):
        finish(folder, PLAN)


def damaged(counters: dict[str, int]) -> dict[str, Any]:
    """n3's files are damaged; in the end n2 has stopped following n1, and holds something old."""
    run = Run()
    run.serve()
    fault = {"id": 0, "name": "bit-flip", "does": "damage", "nodes": ["n3"]}
    run.line("invoke", "nemesis", "bit-flip", value=fault)
    start_ns = len(run.events) * 1_000_000
    run.serve(3)
    told = {"all_in_effect_ns": start_ns, "heal_asked_ns": len(run.events) * 1_000_000, "healed": True}
    run.line(
        "info", "nemesis", "bit-flip", value={"id": 0, "took_effect": True, "counters": counters, **told}
    )
    for node in NODES:
        stopped = {"stopped": {"n1": "split-brain"}} if node == "n2" else {}
        run.line("info", "monitor", "state", node=node, value={"up": True, "rollbacks": 0, **stopped})
    run.line("info", "harness", "settled", value=False)
    run.ask("read", 3, role="owner", mode="read-confirmed", phase="final")
    for node, value in zip(NODES, (3, 19, 3), strict=True):
        run.ask("dump", {"spaces": {"register": [["a", value]]}}, key=None, node=node, phase="final")
    return run.verdict(msgspec.structs.replace(PLAN, cluster="local", faults=("bit-flip",)))


def test_damage_that_a_node_refused_excuses_nobody() -> None:
    """Who refuses damaged files gets them back whole: that another node stopped after that has no reason."""
    assert damaged({})["outcome"] == "valid"
    assert "not quiet and equal" in missing(damaged({"refused_to_start": 1}))


def test_who_was_not_seen_to_leave_has_not_left() -> None:
    """A removal that fails beside another fault need not take effect. Its node would be asked nothing."""
    run = Run()
    run.serve()
    fault = {"id": 0, "name": "remove-node", "does": "remove", "nodes": ["n3"]}
    run.line("invoke", "nemesis", "remove-node", value=fault)
    run.line("invoke", "nemesis", "slow", value={"id": 1, "name": "slow", "does": "slow"})
    run.line("info", "harness", "members", value={"nodes": ["n1", "n2"], "quorum": 2, "settled": False})
    start_ns = len(run.events) * 1_000_000
    run.serve(3)
    told = {"all_in_effect_ns": start_ns, "heal_asked_ns": len(run.events) * 1_000_000, "healed": True}
    run.line("info", "nemesis", "slow", value={"id": 1, "took_effect": True, **told})
    run.line("info", "nemesis", "remove-node", value={"id": 0, "took_effect": False, "healed": False})
    run.end(3)
    plan = msgspec.structs.replace(PLAN, faults=("remove-node", "slow"), overlap=2)
    assert "not all nodes were seen to agree" in missing(run.verdict(plan))


@pytest.mark.parametrize(
    ("configuration", "given"), [("F", {"mvcc": False}), ("I", {"mvcc": False}), ("G", {})]
)
@pytest.mark.parametrize(("held", "expected"), [((18, 18, 18), "anomaly"), ((21, 18, 21), "valid")])
def test_what_every_node_has_lost_is_lost(
    configuration: str, given: dict[str, bool], held: tuple[int, ...], expected: str
) -> None:
    """Where no read is fresh and nodes need not be equal, a run that lost what it had acknowledged would be valid."""
    run = Run()
    run.serve()
    run.ask("cas", [20, 21], role="owner")
    for node in NODES:
        run.line("info", "monitor", "state", node=node, value={"up": True, "rollbacks": 0})
    run.line("info", "harness", "settled", value=True)
    run.ask("read", held[0], role="owner", mode="linearizable", phase="final")
    for node, value in zip(NODES, held, strict=True):
        run.ask("dump", {"spaces": {"register": [["a", value]]}}, key=None, node=node, phase="final")
    plan = PLAN.changed(configuration=configuration, **given)
    header = msgspec.structs.replace(HEADER, owner=None)
    verdict = judge(
        Case(plan, History.of(header, run.events), given_promise=system_of("qsync").promise(plan))
    )
    assert verdict["outcome"] == expected, verdict["sentence"]
    assert verdict["violations"] == (["kept"] if expected == "anomaly" else [])


@pytest.mark.parametrize(("written_s", "waited_ms", "expected"), [(0.1, 95, "valid"), (None, 95, "invalid")])
def test_a_timeout_that_somebody_wrote_into_the_plan_is_what_is_waited_for(
    written_s: float | None, waited_ms: int, expected: str
) -> None:
    """A plan of one's own that makes the timeout ten times shorter would be an anomaly of every store."""
    run = Run()
    run.line("invoke", 0, "write", key="a", value=1, node="n1")
    run.events.append(
        msgspec.structs.replace(
            run.events[0],
            index=1,
            time_ns=waited_ms * 1_000_000,
            type="info",
            error="Quorum collection for a synchronous transaction is timed out (216)",
        )
    )
    options = {} if written_s is None else {"replication_synchro_timeout": written_s}
    fault = Fault(id=0, name="timeouts", does="options", at_ns=0, until_ns=1, nodes=NODES, options=options)
    plan = PLAN.changed(synchro_timeout_s=1.0, drawn=Drawn(faults=(fault,), operations=()))
    (check,) = system_of("qsync").checks(plan)
    assert check.run(History.of(HEADER, run.events)).result == expected


def test_where_the_quorum_alone_changes_the_logs_are_still_counted() -> None:
    """What was acknowledged and every log discarded would be no anomaly in a run with the fault quorum."""
    run = a_good_run()
    run.line("info", "harness", "members", value={"nodes": list(NODES), "quorum": 3, "settled": False})
    run.line("info", "harness", "members", value={"nodes": list(NODES), "quorum": 2, "settled": True})
    rules = rules_of(LogRules(quorum=2, members=3), History.of(HEADER, run.events))
    assert rules == LogRules(quorum=2, members=3)
    run.line("info", "harness", "members", value={"nodes": ["n1", "n2"], "quorum": 2, "settled": True})
    rules = rules_of(LogRules(quorum=2, members=3), History.of(HEADER, run.events))
    assert rules == LogRules(quorum=None, members=None)
