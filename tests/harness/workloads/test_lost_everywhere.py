"""What was acknowledged and is gone from every node alike: each workload sees it under each promise about writes."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.check import run_here
from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.replicas import kept
from checkers.verdict import Verdict
from harness.campaigns.hunt.seeds import try_seed
from harness.judge.outcome import without_reads
from harness.plan.plan import Plan
from harness.systems import system_of
from harness.systems.plans import planned
from harness.workloads import WORKLOADS
from harness.workloads.reads import final_mode

NODES = ("n1", "n2", "n3")
Asked = tuple[str, Any, Any]
"""f, key, value."""

TOLD: dict[str, tuple[list[Asked], Asked, list[Any]]] = {
    "append": (
        [("txn", None, [["append", "x", 1]]), ("txn", None, [["append", "x", 2]])],
        ("txn", None, [["r", "x", [1]]]),
        [["x", [1]]],
    ),
    "bank": (
        [
            ("open", None, {"a1": 40, "a2": 40}),
            ("transfer", None, {"from": "a1", "to": "a2", "amount": 7}),
        ],
        ("read", None, {"a1": 40, "a2": 40}),
        [["a1", 40], ["a2", 40]],
    ),
    "counter": ([("add", "c", 4), ("add", "c", 3)], ("read", "c", 4), [["c", 4]]),
    "long-fork": (
        [("txn", None, [["w", "x", 1]]), ("txn", None, [["w", "y", 2]])],
        ("txn", None, [["r", "x", 1], ["r", "y", None]]),
        [["x", 1]],
    ),
    "queue": ([("enqueue", "q", 1), ("enqueue", "q", 2)], ("drain", "q", [1]), [["q", []]]),
    "register": ([("write", "x", 1), ("write", "x", 2)], ("read", "x", 1), [["x", 1]]),
    "rw-register": (
        [("txn", None, [["w", "x", 1]]), ("txn", None, [["w", "x", 2]])],
        ("txn", None, [["r", "x", 1]]),
        [["x", 1]],
    ),
    "set": ([("add", "s", 1), ("add", "s", 2)], ("read", "s", [1]), [[["s", 1], "s"]]),
}
"""By workload: two acknowledged writes, a final read that shows the first alone, and what all nodes hold in the end."""


def record(name: str, plan: Plan, answered_by: str) -> History:
    """`answered_by`: the mode in which a server says that it read."""
    asked, (f, key, shown), rows = TOLD[name]
    events: list[Event] = []

    def line(type_: Any, **fields: Any) -> None:
        events.append(Event(index=len(events), time_ns=len(events) * 1_000_000, type=type_, **fields))

    for process, (of, to, value) in enumerate(asked):
        line("invoke", process=process, f=of, key=to, value=value, node="n1")
        line("ok", process=process, f=of, key=to, value=value, node="n1", role="owner")
    for node in NODES:
        line("info", process="monitor", f="state", node=node, value={"up": True})
    line("info", process="harness", f="settled", value=True)
    last: dict[str, Any] = {"process": 50, "f": f, "key": key, "node": "n1", "phase": "final"}
    blank = [[what, of, None] for what, of, _ in shown] if f == "txn" else None
    line("invoke", value=blank, mode=final_mode(plan), **last)
    line("ok", value=shown, mode=answered_by, role="owner", **last)
    for number, node in enumerate(NODES):
        for type_, value in (("invoke", None), ("ok", {"spaces": {name: rows}})):
            line(type_, process=100 + number, f="dump", node=node, value=value, phase="final")
    return History.of(Header(nodes=NODES, quorum=2, owner="n1"), events)


PROMISED = [
    *((letter, True, "as asked") for letter in "ACFGHI"),
    *((letter, True, "dirty") for letter in "AG"),
    *((letter, False, answered_by) for letter in "ACFGHI" for answered_by in ("dirty", "as asked")),
]
"""Configuration, MVCC, and how reads are answered: dirty only where no fresh one is promised."""


@pytest.mark.parametrize("name", TOLD)
@pytest.mark.parametrize(("letter", "mvcc", "answered_by"), PROMISED)
def test_what_is_gone_from_all_nodes_is_seen(name: str, letter: str, mvcc: bool, answered_by: str) -> None:
    """If it failed, a store that keeps its nodes equal could lose what it acknowledged, and no check would say so."""
    plan = planned(cluster="sim", workload=name, configuration=letter, mvcc=mvcc)
    promise = system_of("qsync").promise(plan)
    mode = (final_mode(plan) or "read-confirmed") if answered_by == "as asked" else answered_by
    history = record(name, plan, mode)
    checks = [check for check in WORKLOADS[name].checks(promise, None) if check.model]
    found = {check.name: run_here(check, history) for check in checks}
    assert "invalid" in {each.result for each in found.values()}, found


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("counter", {"configuration": "A"}),
        ("bank", {"configuration": "C", "mvcc": False}),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (
                ("set", {"configuration": "H", "mvcc": False}),
                ("set", {"configuration": "H", "read": "dirty"}),
                ("set", {"configuration": "H", "node_options": ("n1:memtx_use_mvcc_engine=false",)}),
                ("long-fork", {"configuration": "G"}),
            )
        ),
    ],
)
def test_a_good_run_without_fresh_reads_is_valid_all_the_same(name: str, options: dict[str, Any]) -> None:
    """If it failed, whoever promises no fresh reads could never pass with these workloads, whatever it kept."""
    plan = planned(cluster="sim", workload=name, faults=("none",), time_limit_s=4, rate=60, seed=3, **options)
    found = try_seed(plan)
    assert found.outcome == "valid", found.sentence


def a_verdict(checker: str, *, vacuous: bool) -> Verdict:
    is_kept = checker == kept.NAME
    return Verdict(
        checker=checker, result="valid" if is_kept else "unknown", summary="", details={"vacuous": vacuous}
    )


def test_nothing_is_excused_that_nothing_stands_for() -> None:
    """If it failed, a run in which neither reads nor final states were judged would be green."""
    plan = planned(cluster="sim", workload="counter", configuration="A")
    promise = system_of("qsync").promise(plan)
    counter, judged = a_verdict("counter", vacuous=True), a_verdict(kept.NAME, vacuous=False)
    assert without_reads(plan, promise, [counter, judged]) == {"counter"}
    assert not without_reads(plan, promise, [counter, a_verdict(kept.NAME, vacuous=True)])
    assert not without_reads(plan, promise, [counter])
    assert not without_reads(plan, promise, [a_verdict("counter", vacuous=False), judged])
    assert not without_reads(plan, promise, [a_verdict("crash", vacuous=True), judged])
    fresh = planned(cluster="sim", workload="counter", configuration="C")
    assert not without_reads(fresh, system_of("qsync").promise(fresh), [counter, judged])
    stricter = planned(cluster="sim", workload="counter", configuration="A", promise="linearizable")
    assert not without_reads(stricter, promise, [counter, judged])
