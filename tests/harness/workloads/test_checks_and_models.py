"""A workload's checks are as strict as the model of its operations: what `qsync check --model` rejects, a run does not
pass, where the store promises linearizability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import by_model, transactional
from checkers.check import run_here
from checkers.history import Header, History
from harness.systems.qsync.promises import FIXED_OWNER
from harness.workloads import WORKLOADS
from tests import examples
from tests.checkers.brute import tiny_domains, tiny_objects, tiny_transactions
from tests.checkers.brute.histories import Line, history_of

Draw = Callable[[int], list[Line]]

DRAWN: dict[str, Draw] = {
    "register": lambda seed: tiny_objects.drawn(seed, model="cas-register", unique=True),
    "read-write": lambda seed: tiny_objects.drawn(seed, model="register", unique=True),
    "set": lambda seed: tiny_domains.with_final_reads(seed, model="set"),
    "counter": lambda seed: tiny_objects.drawn(seed, model="counter", unique=False),
    "queue": tiny_domains.queue,
    "message-queue": lambda seed: [each for each in tiny_domains.queue(seed) if each.f != "drain"],
    "bank": tiny_domains.bank,
    "restore": tiny_domains.bank,
    "long-fork": tiny_domains.long_fork,
    "unique-ids": tiny_domains.unique_ids,
    "append": lambda seed: tiny_transactions.drawn(seed, workload="append"),
    "rw-register": lambda seed: tiny_transactions.drawn(seed, workload="rw-register"),
}
"""Small histories of a workload's operations, right and wrong; all answers come from the one owner."""

WRONG_EMPTY = [
    Line("invoke", 2, "enqueue", 2, key="q"),
    Line("invoke", 0, "enqueue", 1, key="q"),
    Line("ok", 0, "enqueue", 1, key="q"),
    Line("invoke", 3, "dequeue", key="q"),
    Line("fail", 3, "dequeue", key="q", error="empty"),
    Line("invoke", 1, "dequeue", key="q"),
    Line("ok", 1, "dequeue", 1, key="q"),
    Line("ok", 2, "enqueue", 2, key="q"),
]


def of_the_owner(name: str, lines: list[Line]) -> History:
    """The history as a run of one fixed owner would have it."""
    answered = [replace(line, node="n1", role="owner", mode="read-confirmed") for line in lines]
    header = Header(workload=name, owner="n1", nodes=("n1",), effects=dict(WORKLOADS[name].effects))
    return replace(history_of(answered), header=header)


def is_accepted(name: str, history: History) -> bool:
    """Whether no promised check of the workload finds anything; one that does not decide accepts nothing."""
    checks = WORKLOADS[name].checks(FIXED_OWNER, None)
    return all(
        verdict.details.get("vacuous") or verdict.result == "valid"
        for check in checks
        if check.model and not check.is_of_nodes
        for verdict in (run_here(check, history),)
        if check.name not in ("quorum", "convergence", "kept")  # they judge faults, and dumps
    )


def test_every_workload_is_drawn() -> None:
    """If this fails, a new workload is not compared with its model."""
    assert DRAWN.keys() | {"mixed-spaces"} == WORKLOADS.keys(), (
        "its operations have no model but its own check"
    )


@pytest.mark.parametrize("name", DRAWN)
@examples.up_to(250)
@given(seed=st.integers(0, 100_000))
def test_what_the_model_rejects_the_checks_of_the_workload_do_not_accept(name: str, seed: int) -> None:
    """If this fails, a run is called valid although its history is not what was promised."""
    history = of_the_owner(name, DRAWN[name](seed))
    judged = by_model.judge(history, WORKLOADS[name].model)
    if judged.result == "invalid":
        assert not is_accepted(name, history), judged.violations


@pytest.mark.parametrize("name", ["append", "rw-register"])
@examples.up_to(150)
@given(seed=st.integers(0, 100_000), model=st.sampled_from(list(transactional.MODELS)))
def test_transactions_of_a_run_are_judged_by_the_isolation_that_is_promised(
    name: str, seed: int, model: str
) -> None:
    """If this fails, a store is blamed for what its isolation allows, or passes with what it forbids."""
    history = of_the_owner(name, DRAWN[name](seed))
    checks = {each.name: each for each in WORKLOADS[name].checks(FIXED_OWNER.but(transactions=model), None)}
    assert checks["transactional"].model == model
    found = run_here(checks["transactional"], history)
    judged = by_model.judge(history, WORKLOADS[name].model, promise=model)
    assert found.result == judged.result


@pytest.mark.parametrize(
    ("model", "is_whole"),
    [
        ("as writes", True),
        ("strict-serializable", True),
        ("strong-snapshot-isolation", True),
        ("strong-parallel-snapshot-isolation", True),
        ("strong-update-atomic", False),  # a read may miss a transaction, and show one that came behind it
        ("strong-prefix", False),  # it loses updates
        ("snapshot-isolation", False),  # without real time what was acknowledged need not be seen
        ("strong-read-committed", False),
        ("", False),
    ],
)
def test_transactions_that_are_whole_keep_the_total_and_what_was_acknowledged(
    model: str, is_whole: bool
) -> None:
    """If this fails, money that a snapshot shows twice is a finding only, or a store is blamed that promised less."""
    promise = FIXED_OWNER.but(transactions=model)
    of_bank = {each.name: each.model for each in WORKLOADS["bank"].checks(promise, None)}
    of_lists = {each.name: each.model for each in WORKLOADS["append"].checks(promise, None)}
    assert [bool(of_bank["bank"]), bool(of_lists["durability"])] == [is_whole, is_whole]


@pytest.mark.parametrize("name", ["append", "rw-register", "long-fork"])
@pytest.mark.parametrize(
    ("changed", "is_promised"),
    [
        ({}, True),
        ({"replica_reads": ""}, False),
        ({"transactions": "snapshot-isolation"}, False),
        ({"transactions": "snapshot-isolation", "replica_reads": ""}, False),
    ],
)
def test_no_node_goes_back_where_transactions_are_strict_and_replicas_keep_the_order(
    name: str, changed: dict[str, str], is_promised: bool
) -> None:
    """If this fails, a replica that goes back is a finding only, or is accused where nothing is promised of it."""
    promise = FIXED_OWNER.but(**changed)
    models = {each.name: each.model for each in WORKLOADS[name].checks(promise, None)}
    assert bool(models["snapshots"]) == is_promised
    assert name != "long-fork" or bool(models["long-fork"]) == is_promised


def test_only_writes_that_depend_on_nothing_keep_to_plain_writes() -> None:
    """If this fails, lists would be judged by a promise of blind writes, or registers by none."""
    blind = FIXED_OWNER.but(writes="", plain_writes="linearizable", transactions="snapshot-isolation")
    models = {
        name: {each.name: each.model for each in WORKLOADS[name].checks(blind, None)}["transactional"]
        for name in ("append", "rw-register")
    }
    assert models == {"append": "", "rw-register": "snapshot-isolation"}


def test_of_transactions_those_that_read_are_the_ones_that_were_asked() -> None:
    """If this fails, a run of writes alone would have to say what reads saw, or one of reads would be excused."""
    values = ([["append", "k", 1]], [["append", "k", 2]], [["r", "k", [1, 2]]])
    lines = [Line(type_, 0, "txn", value) for value in values for type_ in ("invoke", "ok")]
    (check,) = [
        each for each in WORKLOADS["append"].checks(FIXED_OWNER, None) if each.name == "transactional"
    ]
    assert run_here(check, of_the_owner("append", lines)).details["asked"] == 1


@pytest.mark.parametrize("name", ["append", "rw-register"])
def test_a_store_of_weak_isolation_may_promise_to_lose_nothing(name: str) -> None:
    """If this fails, a store at read committed that forgets acknowledged transactions is called valid."""
    wrote, nothing = [["append" if name == "append" else "w", "k", 1]], [["r", "k", None]]
    lines = [
        Line("invoke", 0, "txn", wrote),
        Line("ok", 0, "txn", wrote),
        Line("invoke", 1, "txn", nothing, phase="final"),
        Line("ok", 1, "txn", nothing, phase="final"),
    ]
    history = of_the_owner(name, lines)
    weak = FIXED_OWNER.but(transactions="strong-read-committed")
    for promise, is_promised in ((weak, False), (weak.but(acknowledged="stays"), True)):
        checks = {each.name: each for each in WORKLOADS[name].checks(promise, None)}
        assert bool(checks["durability"].model) == is_promised
        assert run_here(checks["durability"], history).result == "invalid"
        assert run_here(checks["transactional"], history).result == "valid"


@pytest.mark.parametrize("name", ["queue", "message-queue"])
def test_a_broker_may_deliver_again_and_must_not_lose(name: str) -> None:
    """If this fails, a broker cannot say what it promises: its second delivery is an anomaly, or its loss is none."""
    put = [Line("invoke", 0, "enqueue", 1, key="q"), Line("ok", 0, "enqueue", 1, key="q")]
    out = [Line("invoke", 0, "dequeue", key="q"), Line("ok", 0, "dequeue", 1, key="q")]
    empty = [Line("invoke", 0, "dequeue", key="q"), Line("fail", 0, "dequeue", key="q", error="empty")]
    empty = [replace(line, phase="final") for line in empty]
    broker = FIXED_OWNER.but(queues="at least once")
    for lines, at_least_once in (((*put, *out, *out, *empty), "valid"), ((*put, *empty), "invalid")):
        history = of_the_owner(name, [*lines])
        for promise, result in ((FIXED_OWNER, "invalid"), (broker, at_least_once)):
            checks = [each for each in WORKLOADS[name].checks(promise, None) if each.model]
            found = [
                run_here(each, history).result for each in checks if each.name in ("queues", "linearizable")
            ]
            assert ("invalid" if "invalid" in found else "valid") == result


def test_a_queue_that_is_wrongly_called_empty_is_an_anomaly() -> None:
    """If this fails, the workload `queue` does not see what its model does; or sees it where nothing is promised."""
    history = of_the_owner("queue", WRONG_EMPTY)
    assert not is_accepted("queue", history)
    stale = FIXED_OWNER.but(owner_reads="stale")
    said = {check.name: run_here(check, history).result for check in WORKLOADS["queue"].checks(stale, None)}
    assert said["linearizable"] == "valid"


@pytest.mark.parametrize(("name", "least"), [("queue", 10), ("set", 10), ("counter", 10), ("register", 10)])
def test_the_drawn_histories_are_right_and_wrong(name: str, least: int) -> None:
    """If this fails, the comparison has nothing to compare."""
    results = [
        by_model.judge(of_the_owner(name, DRAWN[name](seed)), WORKLOADS[name].model).result
        for seed in range(100)
    ]
    assert min(results.count("valid"), results.count("invalid")) >= least
