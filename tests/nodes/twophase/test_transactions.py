"""Transactions, alone and together, with and without faults."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.framed import FramedCodec
from nodes.twophase.data import partition_of
from nodes.twophase.sometimes import (
    HANDED_DOWN,
    IN_DOUBT_AT_START,
    NEAR_IS_CLIENT,
    ONE_PHASE,
    REBALANCED,
    RECOVERED_COMMIT,
    RECOVERED_ROLLBACK,
    RESENT,
    TAKEOVER_WAITED,
    TORN_TAIL,
)
from nodes.twophase.states import State
from tests.nodes.test_steps import nested
from tests.nodes.twophase.random_run import Run, begun, calm, check_history, check_stores, disturb, storm
from tests.nodes.twophase.test_copies import FIVE, prepared_only
from tests.nodes.twophase.virtual_cluster import VirtualCluster, answered, key_in, key_of, settled


@pytest.mark.parametrize("concurrency", ["pessimistic", "optimistic"])
@pytest.mark.parametrize("node", ["n2", "c1"])
def test_steps(concurrency: str, node: str) -> None:
    """If it failed, a client would get another result than the step's."""
    cluster = settled(concurrency=concurrency)

    def ask(*steps: list[Any]) -> Any:
        return answered(cluster, cluster.client.txn(node, *steps))

    assert ask(["read", "r", "x"], ["write", "r", "x", 1], ["read", "r", "x"]) == {
        "type": "ok",
        "results": [None, True, 1],
    }
    assert ask(["cas", "r", "x", 1, 2], ["add", "r", 7, 5, None]) == {"type": "ok", "results": [True, 5]}
    assert ask(["add", "r", 7, -9, None], ["cas", "r", "x", 1, 3]) == {
        "type": "mismatch",
        "step": 1,
        "found": 2,
    }
    assert ask(["add", "r", 7, -6, 0]) == {"type": "mismatch", "step": 0, "found": 5}
    assert ask(["insert", "r", "x", 4]) == {"type": "fail", "error": "duplicate-key"}
    assert ask(
        ["append", "l", "x", "a"], ["append", "l", "x", "b"], ["take", "l", "x"], ["take", "l", "y"]
    ) == {
        "type": "ok",
        "results": [True, True, "a", None],
    }
    assert ask(["read", "r", "x"], ["read", "r", 7], ["read", "l", "x"])["results"] == [2, 5, ["b"]]
    assert ask(["add", "l", "x", 1, None])["error"] == "illegal-parameters"
    assert ask(["jump", "l", "x"])["error"].startswith("illegal-parameters: expected a step")


@pytest.mark.parametrize(
    ("steps", "options"),
    [
        ([["write", "r", 1, 1]], {"suspend_ms": "x"}),
        ([["write", "r", 1, 1]], {"suspend_ms": None}),
        ([["write", "r", 1, 1]], {"suspend_ms": 3_600_000}),
        ([["write", "r", 1, 2**62], ["add", "r", 1, 2**62, None]], {}),
        ([["write", "r", 1, 1], ["write", "r", True, 2]], {}),
        ([["write", "r", 1, 1], ["append", "r", 1, 2]], {}),
        ([["write", "r", 1, 1], ["take", "r", 1]], {}),
        ([["write", "r", 1, True], ["add", "r", 1, 1, None]], {}),
        ([["add", "r", 1, True, None]], {}),
        ([["write", "r", 1, nested(99)]], {}),
    ],
    ids=[
        "no number",
        "nothing",
        "an hour",
        "a sum of 65 bits",
        "a key that equals a number",
        "an element beside a number",
        "an element of a number",
        "a sum with a truth",
        "a truth in a sum",
        "a deep value",
    ],
)
def test_what_no_node_can_do_is_refused(steps: list[list[Any]], options: dict[str, Any]) -> None:
    """If it failed, a request would end a node, or a key would have two places."""
    cluster = settled()
    told = answered(cluster, cluster.client.txn("n1", *steps, **options))
    assert (told["type"], told["error"].partition(":")[0]) == ("fail", "illegal-parameters")
    assert not cluster.crashes


def test_the_deepest_value_is_written_added_to_and_copied() -> None:
    """If it failed, a value that a store has taken would end a server that reads it in a log or a copy."""
    cluster = settled()
    for step in (["write", "r", 1, nested(98)], ["append", "r", 1, nested(98)]):
        assert answered(cluster, cluster.client.txn("n1", step))["type"] == "ok"
    for server in cluster.servers[1:]:
        cluster.machine(server).kill()
        cluster.machine(server).start()
        cluster.run(3_000)
    assert not cluster.crashes
    told = answered(cluster, cluster.client.txn("n1", ["read", "r", 1]))
    assert told["results"] == [[*nested(98), nested(98)]]


def test_a_comparison_takes_true_for_no_number() -> None:
    """If it failed, clients would see a comparison succeed with a value that is not there."""
    cluster = settled()
    assert answered(cluster, cluster.client.txn("n1", ["write", "r", 1, [1]]))["type"] == "ok"
    assert answered(cluster, cluster.client.txn("n1", ["cas", "r", 1, [True], 2]))["type"] == "mismatch"


@pytest.mark.parametrize(("old", "new"), [([1], [True]), ([0], [False]), ([1], [1.0])])
def test_a_write_of_a_value_that_only_looks_equal(old: Any, new: Any) -> None:
    """If it failed, an acknowledged write would be dropped: True is 1, in lists too."""
    cluster = settled()
    assert answered(cluster, cluster.client.txn("n1", ["write", "r", 1, old]))["type"] == "ok"
    assert answered(cluster, cluster.client.txn("n1", ["write", "r", 1, new]))["type"] == "ok"
    (found,) = answered(cluster, cluster.client.txn("n1", ["read", "r", 1]))["results"]
    assert [type(each) for each in found] == [type(each) for each in new]


def test_an_entry_that_changes_nothing_hinders_no_transaction() -> None:
    """If it failed, no transaction in two phases would commit until the members change once more."""
    cluster = settled(one_phase=False)
    version = cluster.node("n1").agreed.version
    cluster.node(cluster.coordinator()).discovery.propose(["join", "n2", 1, "server"])
    delivered = cluster.node("n2").discovery.delivered
    cluster.run_until(lambda: cluster.node("n2").discovery.delivered > delivered)
    cluster.run(200)
    assert cluster.node("n1").agreed.version == version
    assert answered(cluster, cluster.client.txn("c1", ["write", "r", "x", 1]))["type"] == "ok"


def test_a_rollback_of_a_life_that_is_not_known_yet_is_answered() -> None:
    """If it failed, the near node would keep the transaction for ever."""
    cluster = settled(lock_ns=50_000_000)
    late = next(server for server in cluster.servers if server != cluster.coordinator())
    key = next(
        key for key in range(99) if cluster.node(late).agreed.primary(partition_of(("r", key), 8)) == late
    )
    network = cluster.world.network
    cluster.machine("c1").kill()
    cluster.machine("c1").start()
    stop = network.stop([(server, late) for server in cluster.servers], ("append",))
    cluster.run_until(lambda: cluster.node("c1").agreed.is_member("c1", 2))
    asked = cluster.client.txn("c1", ["write", "r", key, 1])
    cluster.run(100)
    assert cluster.node(late).agreed.life_of("c1") == 1
    assert (asked.type, asked.answer["error"]) == ("fail", "lock wait timed out")
    network.go_on(stop)
    cluster.run_until(lambda: not cluster.node("c1").deciding.open, within_ms=2_000)


@pytest.mark.parametrize("leaves", [True, False], ids=["new primary leaves", "near node leaves"])
def test_a_new_primary_waits_until_nothing_of_the_former_one_is_undecided(leaves: bool) -> None:
    """If it failed, it would let a client write a key of a transaction that a backup alone commits later."""
    cluster = settled(one_phase=False, backups=2, servers=("n1", "n2", "n3", "n4", "n5"))
    coordinator = cluster.coordinator()
    agreed = cluster.node(coordinator).agreed
    partition, (former, new, backup) = next(
        (each, owners) for each in range(8) if coordinator not in (owners := agreed.owners(each))[:2]
    )
    key = key_in(partition, 8)
    xid = prepared_only(cluster, key, former, backup)
    cluster.world.network.cut([("c1", backup)])
    cluster.run_until(lambda: agreed.in_sync[partition] == [new, backup])
    asked = cluster.client.txn(coordinator, ["write", "r", key, "new"])
    cluster.run(200)
    assert asked.answer is None and not cluster.node(new).takeover.is_over
    if leaves:
        cluster.machine(new).kill()
        cluster.run_until(lambda: agreed.in_sync[partition] == [backup])
    cluster.machine("c1").kill()
    cluster.run_until(lambda: agreed.resolved.get(xid) is leaves)
    assert answered(cluster, asked)["type"] == "fail"
    asked = cluster.client.txn(coordinator, ["read", "r", key])
    assert answered(cluster, asked)["results"] == ["old" if leaves else None]
    assert cluster.count_living()[TAKEOVER_WAITED] > 0


def test_a_key_stays_locked_until_all_backups_have_rolled_back() -> None:
    """If it failed, a client would read the old value, and recovery at the backup would commit the new one later."""
    cluster = settled(one_phase=False, prepare_ns=500_000_000)
    near = cluster.coordinator()
    agreed = cluster.node(near).agreed
    partition, (primary, backup) = next(
        (each, owners) for each in range(8) if near not in (owners := agreed.owners(each))[:1]
    )
    key = key_in(partition, 8)
    network = cluster.world.network
    stops = (
        network.stop([(backup, primary)], ["backup-prepared"]),
        network.stop([(primary, backup)], ["backup-finish"]),
    )
    cluster.client.txn("c1", ["write", "r", key, "old"])
    cluster.run_until(lambda: bool(cluster.node(primary).stock.closing))
    asked = cluster.client.txn(near, ["read", "r", key])
    cluster.run(200)
    (local,) = cluster.node(backup).stock.locals.values()
    assert (asked.answer, local.commits) == (None, None)
    for stop in stops:
        network.go_on(stop)
    assert answered(cluster, asked) == {"type": "ok", "results": [None]}


def test_all_owners_have_it_on_disk_when_it_is_answered() -> None:
    """If it failed, an answered write could be lost with one machine."""
    cluster = settled(backups=2)
    asked = cluster.client.txn("c1", ["write", "r", 1, 1], ["write", "r", 2, 2])
    while asked.answer is None:
        assert cluster.world.agenda.advance()
    for name in cluster.servers:
        again = cluster.replayed(name).data
        assert [again.get(("r", key))[0] for key in (1, 2)] == [1, 2]


def test_a_deadlock_ends() -> None:
    """If it failed, two transactions would wait for each other for ever."""
    cluster = settled(lock_order="steps")
    asked = [
        cluster.client.txn(node, ["write", "r", first, "a"], ["write", "r", second, "a"])
        for key in range(0, 20, 2)
        for node, first, second in (("n1", key, key + 1), ("n2", key + 1, key))
    ]
    cluster.run(1_500)
    assert {each.type for each in asked} == {"ok", "fail"}
    assert {each.answer["error"] for each in asked if each.type == "fail"} == {"lock wait timed out"}
    assert cluster.is_settled()
    assert not any(cluster.node(name).stock.locks._holders for name in cluster.servers)


def test_a_suspended_transaction_keeps_its_locks() -> None:
    """If it failed, a pause would break isolation."""
    cluster = settled()
    first = cluster.client.txn("n1", ["add", "r", 1, 1, None], suspend_ms=300)
    cluster.run(50)
    second = cluster.client.txn("n2", ["add", "r", 1, 1, None])
    cluster.run(150)
    assert (first.answer, second.answer) == (None, None)
    cluster.run(400)
    assert (first.answer["results"], second.answer["results"]) == ([1], [2])


def near_and_participants(cluster: VirtualCluster) -> tuple[list[list[Any]], str]:
    """The steps of a transaction over n1 and n3, which is no backup of n1: only the near node tells it the end."""
    keys = {cluster.node("n1").agreed.primary(partition_of(("r", key), 8)): key for key in range(40)}
    return [["write", "r", keys["n1"], "v"], ["write", "r", keys["n3"], "v"]], "c1"


@pytest.mark.parametrize("is_told", [False, True])
def test_the_near_node_dies_when_all_are_prepared(is_told: bool) -> None:
    """If it failed, prepared transactions would wait for ever, or end differently on two nodes."""
    cluster = settled()
    steps, near = near_and_participants(cluster)
    asked = cluster.client.txn(near, *steps)
    servers = cluster.servers
    while not all(any(local.prepared for local in cluster.node(s).stock.locals.values()) for s in servers):
        assert cluster.world.agenda.advance()
    if is_told:
        cluster.world.network.cut([(near, "n3")])
        while not any(cluster.node(s).stock.closing for s in servers):
            assert cluster.world.agenda.advance()
    cluster.machine(near).kill()
    cluster.run(3_000)
    if is_told:
        cluster.heal([(near, "n3")])
    cluster.machine(near).start()
    cluster.settle()
    assert asked.answer is None
    rows = [cluster.node(s).stock.data.get(("r", step[2]))[0] for s in servers for step in steps]
    assert rows.count("v") == 4
    assert cluster.count_living().get(RECOVERED_COMMIT, 0) >= 1


def test_the_near_node_dies_before_all_are_prepared() -> None:
    """If it failed, half a transaction would be committed."""
    cluster = settled()
    steps, near = near_and_participants(cluster)
    cluster.client.txn(near, *steps)
    cluster.machine("n3").records.hold("prepared")
    while not any(local.prepared for local in cluster.node("n3").stock.locals.values()):
        assert cluster.world.agenda.advance()
    cluster.machine(near).kill()
    cluster.machine("n3").lose_power()
    cluster.run(3_000)
    cluster.machine("n3").start()
    cluster.machine(near).start()
    cluster.settle()
    rows = [cluster.node(s).stock.data.get(("r", step[2]))[0] for s in cluster.servers for step in steps]
    assert set(rows) in ({None}, {None, "v"})
    assert rows.count("v") in (0, 4)


@pytest.mark.parametrize("seed", range(6))
def test_a_node_that_is_in_sync_has_synced_its_whole_log(seed: int) -> None:
    """If it failed, a power loss would take the end of an older file long after a kill, and the node would refuse to
    start: it had died with records for two files under way (seed 94002523)."""
    cluster = VirtualCluster(seed, segment_bytes=64)
    cluster.settle()
    n1 = cluster.machine("n1")
    n1.kill()
    cluster.run(1_500)
    n1.start()
    n1.records.hold("rebalanced")  # one of each of its peers
    while "wal-000002.log" not in n1.disk.files():
        assert cluster.world.agenda.advance()
    n1.kill()
    n1.records.release("rebalanced")
    n1.start()
    cluster.settle()
    assert n1.disk.unsynced_bytes() == 0
    n1.lose_power()
    n1.start()
    assert not cluster.crashes


@pytest.mark.parametrize("isolation", ["repeatable-read", "read-committed", "serializable"])
def test_a_value_that_comes_after_a_mismatch_changes_nothing(isolation: str) -> None:
    """If it failed, a transaction whose client is told that a step did not fit would be committed in part: the value
    made it evaluate the step again, on the old value."""
    cluster = settled(concurrency="optimistic", isolation=isolation)
    key, other, network = key_of(cluster, "n1"), key_of(cluster, "n2"), cluster.world.network
    assert answered(cluster, cluster.client.txn("c1", ["write", "r", key, 10]))["type"] == "ok"
    late = network.stop([("n2", "c1")], ["locked"])
    unheard = network.stop([(server, "c1") for server in cluster.servers], ["confirmed"])
    steps = (["add", "r", key, -8, 0], ["add", "r", key, -5, 0], ["read", "r", other])
    asked = cluster.client.txn("c1", *steps)
    cluster.run(50)
    network.go_on(late)
    cluster.run(50)
    network.go_on(unheard)
    assert answered(cluster, asked) == {"type": "mismatch", "step": 1, "found": 2}
    cluster.run(500)
    assert {cluster.node(server).stock.data.get(("r", key))[0] for server in cluster.servers} <= {10, None}


def test_a_rollback_that_recovery_may_undo_is_no_failure() -> None:
    """If it failed, "fail" would be answered to a transaction that is committed later."""
    cluster = settled(backups=0, one_phase=False)
    key, network = key_of(cluster, "n1"), cluster.world.network
    unheard = network.stop([(server, "c1") for server in cluster.servers], ["confirmed"])
    network.stop([("c1", "n1")], ["finish"])
    asked = cluster.client.txn("c1", ["write", "r", key, "v"])
    cluster.run_until(
        lambda: any(t.state is State.MARKED_ROLLBACK for t in cluster.node("c1").deciding.open.values())
    )
    network.go_on(unheard)
    cluster.machine("n1").kill()
    cluster.run_until(lambda: asked.answer is not None)
    assert asked.type == "info", asked.answer
    cluster.machine("c1").kill()
    cluster.run(2_000)
    cluster.machine("c1").start()
    cluster.machine("n1").start()
    cluster.settle()
    assert cluster.node("n1").stock.data.get(("r", key)) == ("v", 1)


@pytest.mark.parametrize("servers", [("n1", "n2", "n3"), ("n1", "n2", "n3", "n4")])
def test_half_of_the_servers_confirm_no_topology(servers: tuple[str, ...]) -> None:
    """If it failed, a near node would commit by a topology that a majority of the servers has left behind."""
    cluster = settled(servers=servers, one_phase=False)
    heard = len(servers) // 2
    unheard = cluster.world.network.stop([(server, "c1") for server in servers[heard:]], ["confirmed"])
    asked = cluster.client.txn("c1", ["write", "r", 1, "v"])
    cluster.run(200)
    assert asked.answer is None
    (transaction,) = cluster.node("c1").deciding.open.values()
    assert (transaction.state, transaction.confirmed) == (State.PREPARED, {*servers[:heard]})
    cluster.world.network.go_on(unheard)
    assert answered(cluster, asked)["type"] == "ok"


def test_a_backup_that_has_rolled_back_takes_no_late_prepare() -> None:
    """If it failed, a transaction answered "fail" would be prepared again, and recovery could commit it."""
    cluster = settled(one_phase=False)
    key, network = key_of(cluster, "n1"), cluster.world.network
    late = network.stop([("n1", "n2")], ["backup-prepare"])
    network.stop([("c1", "n1")], ["finish"])
    asked = cluster.client.txn("c1", ["write", "r", key, "v"])
    cluster.run_until(
        lambda: any(t.state is State.MARKED_ROLLBACK for t in cluster.node("c1").deciding.open.values())
    )
    cluster.node("n2").dispatch.take(
        "c1", 1, "finish", [next(iter(cluster.node("c1").deciding.open)), False, None]
    )
    network.go_on(late)
    cluster.run(20)
    assert not cluster.node("n2").stock.locals
    assert asked.answer is None


SETTINGS: list[dict[str, Any]] = [
    {"concurrency": "pessimistic", "backups": 1, "lock_order": "steps"},
    {"concurrency": "optimistic", "backups": 2},
    {"concurrency": "optimistic", "backups": 1, "one_phase": False},
    {"concurrency": "pessimistic", "backups": 0},
    {"concurrency": "pessimistic", "backups": 2, "segment_bytes": 5_000},
]


def random_run(seed: int, faults: int) -> Run:
    run = begun(seed, **SETTINGS[seed % len(SETTINGS)])
    for _ in range(faults):
        run.load(60)
        disturb(run)
    calm(run)
    check_history(run, check_stores(run))
    return run


@pytest.mark.parametrize("seed", [5, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3, 4))])
def test_random_runs_with_faults(seed: int) -> None:
    """If it failed, an answered transaction would be lost, half done, or done twice."""
    run = random_run(seed, faults=3)
    types = [asked.type for asked, *_ in run.transfers.values()]
    assert types.count("ok") > 20, types
    assert types.count("fail") > 0, types


@pytest.mark.nightly
def test_random_runs_with_faults_often() -> None:
    """As above; and the rare turns come about."""
    counts: dict[str, int] = {}
    sums = 0
    for seed in range(1_000, 1_150):
        run = random_run(seed, faults=6)
        sums += sum(asked.type == "ok" for asked in run.sums)
        for row, times in run.cluster.count_living().items():
            counts[row] = counts.get(row, 0) + times
    rare = (
        RECOVERED_COMMIT,
        RECOVERED_ROLLBACK,
        IN_DOUBT_AT_START,
        REBALANCED,
        RESENT,
        ONE_PHASE,
        NEAR_IS_CLIENT,
    )
    assert [row for row in (*rare, TORN_TAIL) if not counts.get(row)] == []
    assert sums > 100


def storm_run(seed: int, turns: int) -> None:
    servers = ("n1", "n2", "n3", "n4", "n5")[: 3 + 2 * (seed % 2)]
    run = begun(seed, servers=servers, clients=("c1", "c2"), **SETTINGS[seed % len(SETTINGS)])
    storm(run, turns)
    calm(run)
    check_history(run, check_stores(run))


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.long) for seed in (0, 1))])
def test_several_faults_at_once(seed: int) -> None:
    """If it failed, recovery would decide differently at two participants."""
    storm_run(seed, turns=12)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(6_000, 6_100))
def test_several_faults_at_once_often(seed: int) -> None:
    """As above, with more schedules."""
    storm_run(seed, turns=30)


def test_bytes_on_the_wire() -> None:
    """If it failed, nodes would only understand each other inside one process."""
    cluster = VirtualCluster(7, clients=("c1",), codec=FramedCodec())
    cluster.settle()
    asked = [cluster.client.txn(node, ["add", "r", 1, 1, None]) for node in ("n1", "n2", "c1")]
    cluster.run(500)
    assert sorted(each.answer["results"][0] for each in asked) == [1, 2, 3]


def test_the_same_seed_gives_the_same_run() -> None:
    """If it failed, a failure could not be repeated."""

    def digest() -> str:
        cluster = VirtualCluster(11, clients=("c1",), record_trace=True)
        cluster.run(700)
        for number in range(30):
            cluster.client.txn("n1", ["add", "r", number % 5, 1, None], ["add", "r", number % 3, 1, None])
            cluster.run(3)
        cluster.machine("n2").lose_power()
        cluster.run(1_000)
        return cluster.world.trace_digest()

    assert digest() == digest()


@pytest.mark.parametrize("concurrency", ["pessimistic", "optimistic"])
def test_a_single_read_is_not_older_than_what_was_shown_elsewhere(concurrency: str) -> None:
    """If it failed, a key would show its old value after another key had shown the transaction that replaced it."""
    cluster = settled(concurrency=concurrency, isolation="serializable")
    here, there = key_of(cluster, "n1"), key_of(cluster, "n3")
    held = cluster.world.network.stop([("c1", "n3")], ["finish"])
    both = cluster.client.txn("c1", ["write", "r", here, "new"], ["write", "r", there, "new"])
    cluster.run_until(lambda: cluster.node("n1").stock.data.get(("r", here))[0] == "new")
    assert answered(cluster, cluster.client.txn("n1", ["read", "r", here]))["results"] == ["new"]
    late = cluster.client.txn("n2", ["read", "r", there])
    cluster.run(100)
    assert late.answer is None or late.type == "fail", late.answer
    cluster.world.network.go_on(held)
    assert answered(cluster, both)["type"] == "ok"
    again = answered(cluster, cluster.client.txn("n2", ["read", "r", there]))
    assert again.get("results") == ["new"], again


@pytest.mark.parametrize("concurrency", ["pessimistic", "optimistic"])
def test_a_read_after_a_restart_waits_for_what_may_be_acknowledged(concurrency: str) -> None:
    """If it failed, a server that has come back would show the old value after the new one was acknowledged."""
    cluster = settled(concurrency=concurrency, isolation="read-committed", one_phase=False, backups=0)
    key, network = key_of(cluster, "n1"), cluster.world.network
    network.stop([("c1", "n1")], ["finish"])
    asked = cluster.client.txn("c1", ["write", "r", key, "v"])
    cluster.run(100)
    cluster.machine("n1").kill()
    assert answered(cluster, asked)["type"] == "ok"
    untold = network.stop([("c1", "n1")], ["outcome"])
    cluster.machine("n1").start()
    cluster.run_until(lambda: all(cluster.node(s).agreed.is_member("n1", 2) for s in cluster.servers))
    late = cluster.client.txn("n2", ["read", "r", key])
    cluster.run(100)
    assert late.answer is None, late.answer
    network.go_on(untold)
    assert answered(cluster, late) == {"type": "ok", "results": ["v"]}


@pytest.mark.parametrize("concurrency", ["pessimistic", "optimistic"])
def test_a_read_at_a_new_primary_waits_for_what_the_old_one_may_have_shown(concurrency: str) -> None:
    """If it failed, a key would show its old value again after its primary had shown the new one, and left."""
    cluster = settled(concurrency=concurrency, isolation="read-committed", one_phase=False)
    key, network = key_of(cluster, "n1"), cluster.world.network
    network.stop([("n1", "n2")], ["backup-finish"])
    untold = network.stop([("c1", "n2")], ["finish", "outcome"])
    cluster.client.txn("c1", ["write", "r", key, "v"])
    cluster.run_until(lambda: cluster.node("n1").stock.data.get(("r", key))[0] == "v")
    assert answered(cluster, cluster.client.txn("n3", ["read", "r", key]))["results"] == ["v"]
    cluster.machine("n1").kill()
    cluster.run_until(lambda: cluster.node("n3").agreed.primary(partition_of(("r", key), 8)) == "n2")
    late = cluster.client.txn("n3", ["read", "r", key])
    cluster.run(100)
    assert late.answer is None, late.answer
    assert cluster.node("n2").site.sometimes[HANDED_DOWN] == 1
    network.go_on(untold)
    assert answered(cluster, late) == {"type": "ok", "results": ["v"]}


@pytest.mark.parametrize("concurrency", ["optimistic", "pessimistic"])
def test_one_phase_shows_nothing_that_its_primary_does_not_know_to_be_old(concurrency: str) -> None:
    """If it failed, a value would be shown that was replaced, and acknowledged, before.

    The near node has told the backup what the primary, which has left, would have passed on, and has answered "ok".
    Primary and backup have not heard that the primary has left. The next transaction reads at the primary, and writes
    a different key of the partition.
    """
    cluster = settled(servers=FIVE, partitions=5, concurrency=concurrency, isolation="read-committed")
    client, network = cluster.client, cluster.world.network
    coordinator = cluster.coordinator()
    agreed = cluster.node(coordinator).agreed
    at = FIVE.index(coordinator)
    p, b, r = (FIVE[(at + each) % 5] for each in (1, 2, 3))
    x = key_in(FIVE.index(p), 5)
    y = next(key for key in range(x + 1, 1_000) if partition_of(("r", key), 5) == FIVE.index(p))
    z = key_in(FIVE.index(r), 5)
    network.cut([(p, coordinator), (coordinator, p)])
    cluster.run(400)
    network.stop([("c1", p)], ["finish"])
    first = client.txn("c1", ["write", "r", x, "new"], ["write", "r", z, "new"])
    cluster.run(50)
    network.stop([(coordinator, b)], ["append"])
    while first.answer is None:
        assert cluster.world.agenda.advance()
    assert first.type == "ok" and p not in agreed.members and b in agreed.members
    assert cluster.node(b).agreed.life_of(p) and cluster.node(b).stock.data.get(("r", x))[0] == "new"
    second = client.txn(b, ["read", "r", x], ["write", "r", y, "second"])
    cluster.run(100)
    assert second.answer is None or second.type != "ok" or second.answer["results"][0] == "new", second.answer


@pytest.mark.parametrize("concurrency", ["optimistic", "pessimistic"])
def test_one_phase_reads_at_a_sole_owner_that_has_left(concurrency: str) -> None:
    """The same without a backup: "ok" is answered when the only owner has left, prepared. It serves a client still."""
    cluster = settled(
        servers=FIVE, partitions=5, backups=0, concurrency=concurrency, isolation="read-committed"
    )
    client, network = cluster.client, cluster.world.network
    coordinator = cluster.coordinator()
    agreed = cluster.node(coordinator).agreed
    at = FIVE.index(coordinator)
    p, r = (FIVE[(at + each) % 5] for each in (1, 3))
    x = key_in(FIVE.index(p), 5)
    y = next(key for key in range(x + 1, 1_000) if partition_of(("r", key), 5) == FIVE.index(p))
    network.cut([(p, coordinator), (coordinator, p)])
    cluster.run(400)
    network.stop([("c1", p)], ["finish"])
    first = client.txn("c1", ["write", "r", x, "new"], ["write", "r", key_in(FIVE.index(r), 5), "new"])
    while first.answer is None:
        assert cluster.world.agenda.advance()
    assert first.type == "ok" and p not in agreed.members
    second = client.txn(p, ["read", "r", x], ["write", "r", y, "second"])
    cluster.run(100)
    assert second.answer is None or second.type != "ok" or second.answer["results"][0] == "new", second.answer


@pytest.mark.parametrize("concurrency", ["optimistic", "pessimistic"])
def test_one_phase_shows_nothing_old_at_an_only_owner_that_has_left(concurrency: str) -> None:
    """As above: the first transaction is answered "ok" when the only owner has left, prepared, and it serves on."""
    cluster = settled(
        servers=FIVE, partitions=5, backups=0, concurrency=concurrency, isolation="read-committed"
    )
    client, network = cluster.client, cluster.world.network
    coordinator = cluster.coordinator()
    agreed = cluster.node(coordinator).agreed
    at = FIVE.index(coordinator)
    p, r = (FIVE[(at + each) % 5] for each in (1, 3))
    x = key_in(FIVE.index(p), 5)
    y = next(key for key in range(x + 1, 1_000) if partition_of(("r", key), 5) == FIVE.index(p))
    network.cut([(p, coordinator), (coordinator, p)])
    cluster.run(400)
    network.stop([("c1", p)], ["finish"])
    first = client.txn("c1", ["write", "r", x, "new"], ["write", "r", key_in(FIVE.index(r), 5), "new"])
    while first.answer is None:
        assert cluster.world.agenda.advance()
    assert first.type == "ok" and p not in agreed.members
    second = client.txn(p, ["read", "r", x], ["write", "r", y, "second"])
    cluster.run(100)
    assert second.answer is None or second.type != "ok" or second.answer["results"][0] == "new", second.answer


def test_what_a_one_phase_commit_has_read_is_not_old() -> None:
    """If it failed, a transaction that writes could show a value that was replaced, and acknowledged, before."""
    cluster = VirtualCluster(1, servers=("n1", "n2", "n3", "n4", "n5"), partitions=5, backups=2)
    cluster.settle()
    read, written = key_in(1, 5), key_in(0, 5)  # owned by n2, n3, n4, and by n1, n2, n3
    client = cluster.client
    assert answered(cluster, client.txn("n2", ["write", "r", read, "old"]))["type"] == "ok"
    cluster.machine("n1").kill()
    cluster.run_until(lambda: "n1" not in cluster.node("n2").agreed.members)
    pairs = cluster.isolate("n2", "n3")
    cluster.machine("n1").start()
    cluster.run_until(lambda: cluster.node("n4").agreed.primary(1) == "n4")
    assert answered(cluster, client.txn("n4", ["write", "r", read, "new"]))["type"] == "ok"
    late = client.txn("n2", ["read", "r", read], ["write", "r", written, 1])
    cluster.run(2_000)
    cluster.heal(pairs)
    cluster.run(2_000)
    assert late.type != "ok"


@pytest.mark.parametrize(
    ("concurrency", "isolation", "lock_order", "shown", "at_the_end"),
    [
        ("pessimistic", "serializable", "keys", [0, None, 0, 1], 10),
        ("pessimistic", "repeatable-read", "steps", [0, None, 0, 1], 10),
        ("pessimistic", "read-committed", "steps", [0, None, 10, 11], 11),
        ("pessimistic", "read-committed", "keys", [0, None, 0, 1], 10),
        ("optimistic", "serializable", "keys", "conflict", 10),
        ("optimistic", "repeatable-read", "keys", [0, None, 0, 1], 1),
        ("optimistic", "read-committed", "keys", [0, None, 10, 11], 11),
    ],
)
def test_a_level_reads_as_it_promises(
    concurrency: str, isolation: str, lock_order: str, shown: object, at_the_end: int
) -> None:
    """Two reads and an addition of one key, and a write of 10 between the reads. If it failed, a weaker level would be
    as strong as a stronger one, or the reverse.

    Locks hold the write up; a comparison of versions fails; without both, the write shows or is lost.
    """
    cluster = settled(
        concurrency=concurrency, isolation=isolation, lock_order=lock_order, partitions=3, backups=0
    )
    client = cluster.client
    key, gate = key_in(1, 3), key_in(2, 3, "s")  # of n2, and of n3, which pauses
    assert answered(cluster, client.txn("n1", ["write", "r", key, 0]))["type"] == "ok"
    cluster.machine("n3").pause()
    steps: list[list[Any]] = [["read", "r", key], ["read", "s", gate], ["read", "r", key]]
    asked = client.txn("n1", *steps, ["add", "r", key, 1, None])
    cluster.run(100)
    between = client.txn("n2", ["write", "r", key, 10])
    cluster.run(150)
    cluster.machine("n3").resume()
    told = answered(cluster, asked)
    assert told.get("results", told.get("error")) == shown
    assert answered(cluster, between)["type"] == "ok"
    assert answered(cluster, client.txn("n2", ["read", "r", key]))["results"] == [at_the_end]
