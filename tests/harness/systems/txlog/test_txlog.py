"""The TxLog under test: simulated runs with a verdict; its client; its promises."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Generator
from itertools import pairwise
from typing import Any

import pytest

from checkers.history import jsonl
from checkers.history.history import History
from harness.campaigns.hunt.seeds import try_seed
from harness.clients.operations import Completion, Done, Dump, Insert, Mismatch, Read, Transaction, Write
from harness.clients.reply import Lost, NotSent, Replied
from harness.errors import WrongUse
from harness.faults.directed import Scene
from harness.judge import Case, Left, judge
from harness.plan.plan import SECOND_NS, Plan, to_json
from harness.plan.schedule import draw_faults
from harness.run.assemble import header, parts_of, simulated
from harness.run.conductor import Conductor
from harness.run.execute import in_virtual_time
from harness.systems import system_of
from harness.systems.plans import from_json, planned
from harness.systems.txlog import scenes
from harness.systems.txlog.client import CLIENT
from harness.systems.txlog.options import TxLogOptions
from harness.systems.txlog.promises import promise_of
from nodes.txlog.sometimes import OTHER_ORDER, SPLIT, recovered_by

WHOLE = {"strategy": "none", "split_timeout": 0.0, "max_peer_lag": 2.0, "idle_ms": 500.0}
"""No split can happen. These were the defaults of the first plans that were stored."""


def plan(**fields: Any) -> Plan:
    usual = {
        **WHOLE,
        "cluster": "sim",
        "workload": "register",
        "time_limit_s": 10,
        "rate": 100,
        "workers": 24,
        "least_ok": 150,
        "seed": 1,
    }
    return planned(system="txlog", **{**usual, **fields})


CUT_UP = {
    "nodes": 2,
    "strategy": "smart",
    "split_timeout": 1.1,
    "max_peer_lag": 0.2,
    "worker_loss": 40,
    "backup_ms": 1500.0,
    "busy_ms": 20.0,
}


@pytest.mark.parametrize(
    "fields",
    [
        {"faults": ("none",), "time_limit_s": 4},
        pytest.param({"faults": ("all",), "seed": 2}, marks=pytest.mark.long),
        pytest.param(
            {"faults": ("all",), "workload": "set", "nodes": 4, "worker_loss": 30}, marks=pytest.mark.long
        ),
        {"faults": ("none",), "spurious": 5, "time_limit_s": 4},
        {"faults": ("all",), "strategy": "simple", "split_timeout": 1.2, "max_peer_lag": 0.3},
        pytest.param(
            {"faults": ("all",), "strategy": "smart", "split_timeout": 1.2, "workload": "set", "nodes": 5},
            marks=pytest.mark.nightly,
        ),
        {"faults": ("holds",), **CUT_UP, "rate": 60, "time_limit_s": 14, "seed": 7},
    ],
    ids=["quiet", "under faults", "sets", "spurious", "simple", "smart", "a cas executed anew"],
)
def test_a_correct_cluster_is_not_blamed(fields: dict[str, Any]) -> None:
    """If it failed, a right cluster would be called wrong, or no run of it would come to a verdict."""
    tried = try_seed(plan(**fields))
    assert not tried.violated, tried
    assert tried.outcome in ("valid", "inconclusive"), tried
    if fields["faults"] == ("holds",):
        assert tried.sometimes[recovered_by("smart")] and tried.sometimes[OTHER_ORDER], tried
    if fields == {"faults": ("none",), "time_limit_s": 4}:
        assert tried.outcome == "valid", tried


@pytest.mark.parametrize(
    "seed", [pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.nightly)]
)
def test_a_first_run_comes_to_a_verdict(seed: int) -> None:
    """If it failed, a newcomer's first run would end without one: masters would wait for each other all the time."""
    tried = try_seed(planned(system="txlog", cluster="sim", seed=seed))
    assert tried.outcome == "valid", tried
    assert tried.sometimes[recovered_by("smart")], tried


def test_a_stored_plan_says_every_option() -> None:
    """If it failed, a run of before would be repeated with the defaults of today."""
    asked = planned(system="txlog", **WHOLE)
    stored = json.loads(to_json(asked))
    assert stored["options"].keys() == {*TxLogOptions.__struct_fields__}
    assert from_json(json.dumps(stored).encode(), "a stored plan") == asked


@pytest.mark.parametrize("seed", range(30))
def test_a_late_master_is_added_in_every_schedule_with_time_for_it(seed: int) -> None:
    """If it failed, a hunt would draw a master that never comes, and the run could not be judged."""
    drawn = plan(
        faults=("add-node", "kill", "pause", "isolate-one", "clock"),
        nodes=4,
        late=1,
        seed=seed,
        time_limit_s=30,
    )
    does = [fault.does for fault in draw_faults(drawn, "", system_of("txlog"))]
    assert "add" in does[:4]


@pytest.mark.long
def test_a_master_is_added_under_load() -> None:
    """If it failed, no hunt would ever see a cluster that grows."""
    grown = try_seed(plan(faults=("add-node", "kill"), nodes=3, late=1, time_limit_s=8))
    assert grown.outcome == "valid" and grown.kinds_in_effect == 2, grown
    alone = try_seed(plan(faults=("none",), nodes=3, late=1, time_limit_s=4))
    assert alone.outcome == "unknown" and "not watched: n3" in alone.sentence, alone


@pytest.mark.nightly
def test_two_masters_are_added_one_after_the_other() -> None:
    """If it failed, a newcomer would serve before all masters count it, or wait for one that nobody has added."""
    late = {"nodes": 5, "late": 2, "split_timeout": 0.0, "faults": ("add-node",), "time_limit_s": 7}
    grown, short = (try_seed(planned(system="txlog", cluster="sim", seed=seed, **late)) for seed in (0, 3))
    assert grown.outcome == "valid" and "2 faults that took effect" in grown.sentence, grown
    assert short.violated == () and "not watched: n5" in short.sentence, short


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"late": 3}, "fewer late masters than nodes"),
        ({"late": 1, "split_timeout": 2.0}, "expected --split-timeout 0 with --late"),
    ],
)
def test_masters_that_cannot_be_late_are_refused(fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        plan(nodes=3, **fields)


def test_a_fault_without_anybody_to_add_says_what_to_try() -> None:
    with pytest.raises(WrongUse, match="try: --late 1"):
        try_seed(plan(faults=("add-node",)))


def test_a_bug_is_found_by_what_clients_see() -> None:
    """If it failed, the green light over histories would have nothing behind it."""
    found = try_seed(plan(bugs=("own-value",), faults=("none",), time_limit_s=4))
    assert {"linearizable", "prefix"} <= {*found.violated}, found


@pytest.mark.long
def test_a_bug_is_found_by_what_clients_see_in_the_end() -> None:
    """If it failed, masters that end with different values would go unseen by clients."""
    found = try_seed(plan(bugs=("own-value",), seed=1, faults=("none",)))
    assert "convergence" in found.violated, found


QUIET: dict[str, object] = {
    "ready": True,
    "mode": "normal",
    "base": "n1-1-4",
    "incoming": 0,
    "waiting": 0,
    "strategy": "none",
    "missing": [],
    "executed": 4,
    "synchronised": 4,
    "reaches": ["n2"],
}


@pytest.mark.parametrize(
    ("other", "is_settled"),
    [
        ({}, True),
        ({"mode": "split"}, False),
        ({"waiting": 1}, False),
        ({"executed": 3}, False),
        ({"base": "n1-1-3", "executed": 3, "synchronised": 3}, False),
        ({"reaches": []}, False),
    ],
    ids=["quiet", "split", "a transaction that waits", "execution behind", "lagging", "alone"],
)
def test_masters_are_settled_when_nothing_will_change(other: dict[str, object], is_settled: bool) -> None:
    """If it failed, states would be compared while a master is still on its way."""
    assert parts_of(plan()).system.is_settled({"n1": QUIET, "n2": {**QUIET, **other}}) is is_settled


def test_parts_that_stay_apart_are_settled() -> None:
    """If it failed, no run with the documented divergence would come to a verdict."""
    one = {**QUIET, "mode": "split", "missing": ["n2"]}
    other = {**QUIET, "mode": "split", "missing": ["n1"], "base": "n2-1-9", "incoming": 2}
    is_settled = parts_of(plan()).system.is_settled
    assert is_settled({"n1": one, "n2": other})
    assert not is_settled({"n1": one, "n2": {**other, "waiting": 1}})
    assert not is_settled({"n1": one, "n2": {**QUIET, "base": "n2-1-9"}})
    assert not is_settled({"n1": {**one, "strategy": "simple"}, "n2": {**other, "strategy": "simple"}})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"split_timeout": 0.5}, "above two idle rounds"),
        ({"bugs": ("no-such",)}, "it has: "),
        ({"workload": "append"}, "asks for Append, which the client"),
    ],
)
def test_what_cannot_be_is_refused(fields: dict[str, Any], words: str) -> None:
    """If it failed, masters would end with an error in place of one line."""
    with pytest.raises((WrongUse, ValueError), match=words):
        parts_of(plan(**fields))


def test_a_cluster_that_can_split_promises_less() -> None:
    """If it failed, the documented loss of agreement would count as a violation, or that of a whole cluster as none."""
    whole, none = promise_of("none", can_split=False), promise_of("none", can_split=True)
    smart = promise_of("smart", can_split=True)
    spurious = promise_of("smart", can_split=False, is_deterministic=False)
    assert [each.of_read("replica", "linearizable") for each in (whole, none, smart, spurious)] == [
        "linearizable",
        "",
        "",
        "",
    ]
    registers = promise_of("smart", can_split=True, is_order_free=False)
    for each in (spurious, registers):
        assert not any(c.model == "converged" for c in each.clauses)
    assert [each.submitted for each in (whole, none, smart)] == ["in-turn", "", ""]
    assert [any(c.model == "converged" for c in each.clauses) for each in (whole, none, smart)] == [
        True,
        False,
        True,
    ]


WRITE = Transaction((Write("register", "a", 5),))
FRESH = Transaction((Read("register", "a"),), mode="linearizable")
LOCAL = Transaction((Read("register", "a"),), mode="read-confirmed")


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        (WRITE, "submit"),
        (FRESH, "submit"),
        (LOCAL, "read"),
        (Transaction((Insert("set", 1, "s"),)), "submit"),
    ],
)
def test_what_must_be_in_order_goes_through_the_log(asked: Transaction, word: str) -> None:
    """If it failed, a read that is promised to be fresh would show the state of one master."""
    sent: Any = next(CLIENT.converse(asked, "n1", lambda: 1))
    assert sent.message[0] == word


@pytest.mark.parametrize(
    ("asked", "reply", "outcome"),
    [
        (
            WRITE,
            Replied(["answer", 1, {"type": "ok", "results": [True], "id": "n1-1-1"}]),
            Done([True], "replica", None, transaction="n1-1-1"),
        ),
        (
            LOCAL,
            Replied(["answer", 1, {"type": "ok", "results": [7]}]),
            Done([7], "replica", "read-confirmed"),
        ),
        (
            WRITE,
            Replied(["answer", 1, {"type": "mismatch", "step": 0, "found": 2, "id": "x"}]),
            Mismatch(0, 2, "replica", transaction="x"),
        ),
        (
            WRITE,
            Replied(["answer", 1, {"type": "fail", "error": "loading"}]),
            Completion("fail", None, "loading", "replica"),
        ),
        (WRITE, Lost("timeout"), Completion("info", None, "timeout")),
        (FRESH, Lost("timeout"), Completion("fail", None, "timeout")),
        (WRITE, NotSent("refused"), Completion("fail", None, "refused")),
        (Dump(), Replied(["answer", 1, {"spaces": {}}]), Done(({"spaces": {}},))),
    ],
)
def test_an_answer_is_what_it_says(asked: Any, reply: Any, outcome: Any) -> None:
    """If it failed, a write that happened would count as one that did not, or the reverse."""
    talk: Generator[Any, Any, Any] = CLIENT.converse(asked, "n1", lambda: 1)
    next(talk)
    with pytest.raises(StopIteration) as ended:
        talk.send(reply)
    assert ended.value.value == outcome


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(10, marks=pytest.mark.long),
        *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (5, 8, 9, 11)),
    ],
)
def test_work_goes_on_in_a_drawn_network_without_a_hub(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, masters that reach each other over others would stand still, or leave each other out."""
    monkeypatch.setitem(scenes.SCENES, scenes.HOLDS, ((without_a_hub, 1),))
    asked = plan(
        nodes=4 + seed % 2,
        workload="set",
        strategy=("none", "simple", "smart")[seed % 3],
        split_timeout=(0.0, 1.1)[seed // 3 % 2],
        idle_ms=(100.0, 500.0)[seed // 2 % 2],
        faults=("holds",),
        rate=40,
        calm_s=7.0,
        read="linearizable",
        seed=seed,
    )
    history, verdict = recorded(asked)
    (fault, *_) = history.faults
    assert fault.end_ns is not None and fault.name.removeprefix("cut-") in scenes.NO_HUB
    from_ns = fault.start_ns + 2 * SECOND_NS
    inside = [
        each
        for each in history.operations
        if each.type == "ok" and from_ns < each.invoke_ns and 0 < (each.complete_ns or 0) < fault.end_ns
    ]
    assert len(inside) >= 10, "the network stood for seconds"
    assert verdict["outcome"] == "valid" and not verdict["evidence"]["rare_turns"][SPLIT]


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(4, marks=pytest.mark.long),
        *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2, 3, 5)),
    ],
)
def test_a_connected_majority_goes_on_after_a_second_change(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, masters of parts that meet in a new network would stand still in it."""
    monkeypatch.setitem(scenes.SCENES, scenes.HOLDS, ((two_networks, 1),))
    asked = plan(
        nodes=4 + seed % 2,
        workload="set",
        strategy=("simple", "smart")[seed // 2 % 2],
        split_timeout=1.1,
        max_peer_lag=0.2,
        idle_ms=(100.0, 500.0)[seed // 2 % 2],
        faults=("holds",),
        rate=40,
        calm_s=10.0,
        time_limit_s=24,
        read="linearizable",
        seed=seed,
    )
    history, verdict = recorded(asked)
    _, fault, *_ = history.faults
    assert fault.name == "cut-majority" and fault.end_ns is not None
    assert len(majority_of(fault.links)) > asked.nodes / 2
    from_ns = fault.start_ns + 5 * SECOND_NS
    served = {
        each.node
        for each in history.operations
        if each.type == "ok" and from_ns < each.invoke_ns and 0 < (each.complete_ns or 0) < fault.end_ns
    }
    assert served >= majority_of(fault.links), "each of them executes transactions, and answers"
    assert verdict["outcome"] == "valid" and verdict["evidence"]["rare_turns"][SPLIT]


def two_networks(scene: Scene) -> None:
    """Two parts; then a chain of a majority, with masters of both, beside the others, each alone."""
    names = list(scene.nodes)
    scene.chance.shuffle(names)
    half = len(names) // 2
    scene.add("cut-halves", "hold", 3 * SECOND_NS, links=scenes.between((names[:half], names[half:])))
    scene.at_ns += 3 * SECOND_NS
    chain = names[: len(names) // 2 + 1]
    scene.chance.shuffle(chain)
    scene.add("cut-majority", "hold", 10 * SECOND_NS, links=scenes.all_but(names, pairwise(chain)))


def majority_of(down: Collection[tuple[str, str]]) -> set[str]:
    """The masters of which any link stands."""
    names = {name for link in down for name in link}
    return {one for one in names if any(one != other and (one, other) not in down for other in names)}


def without_a_hub(scene: Scene) -> None:
    scenes._cut(scene, scene.chance.choice([*scenes.NO_HUB]), scene.lasts(3_000, 6_000))


def recorded(asked: Plan) -> tuple[History, Any]:
    """The history of a simulated run, and its verdict."""
    parts = parts_of(asked)
    cluster, record = simulated(parts, None), io.BytesIO()
    writer = jsonl.Writer(record, header(parts))
    in_virtual_time(cluster, Conductor(parts.plan, cluster, parts.system, parts.workload, writer))
    history = jsonl.parse(record.getvalue())
    left = Left.of(parts.plan, cluster.files(), cluster.effects())
    return history, judge(Case(parts.plan, history, left))
