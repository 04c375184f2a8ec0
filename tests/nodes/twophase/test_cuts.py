"""Cuts: consistent on the right node, by a plain oracle over logs and messages; failed where they must fail."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from nodes.kernel.errors import StartRefused
from nodes.kernel.events import Instant, Started
from nodes.twophase.agreed import Agreed, Cut
from nodes.twophase.cut_index import FILE as INDEX
from nodes.twophase.node import TwoPhase
from nodes.twophase.restore import NotRestorable, check_restorable, restored_files
from nodes.twophase.sometimes import (
    CUT_OF_FLAG,
    CUT_OF_RECOVERY,
    CUT_OVERTAKEN,
    CUT_REFUSED,
    CUT_WAITED,
    EXCLUDED,
    INCLUDED,
    MARKER_FIRST,
    MARKER_HELD,
    ONE_PHASE_IN_CUT,
    RECORDED,
    RECOVERED_ROLLBACK,
)
from nodes.twophase.variants import NO_VERSION
from nodes.twophase.wal import read_log
from tests.nodes.twophase.cut_oracle import Findings, judge, logs_of
from tests.nodes.twophase.random_run import Run, begun, calm, disturb
from tests.nodes.twophase.restored import check_restored
from tests.nodes.twophase.virtual_cluster import VirtualCluster, key_in

UNEVEN: dict[str, Any] = {"step_ns": 300_000, "delivery_ns": 2_000_000}
"""Steps and deliveries take their time: messages come in between."""

SETTINGS: list[dict[str, Any]] = [
    {"concurrency": "pessimistic", "backups": 1},
    {"concurrency": "optimistic", "backups": 2, "one_phase": False},
    {"concurrency": "optimistic", "partitions": 2, "variant": "seed-counter"},
    {"concurrency": "pessimistic", "partitions": 2, "variant": "seed-colour"},
    {"concurrency": "optimistic", "backups": 1, "one_phase": False},
    {"concurrency": "pessimistic", "backups": 0, "variant": "seed-colour"},
]


def cut_run(seed: int, milliseconds: int = 250, **settings: Any) -> Run:
    run = begun(seed, **{**SETTINGS[seed % len(SETTINGS)], **UNEVEN, **settings})
    run.load(milliseconds, with_cuts=True, every_ms=2)
    calm(run)
    return run


def good_cuts(run: Run) -> list[str]:
    cuts = run.cluster.node(run.cluster.servers[0]).agreed.cuts.values()
    return [cut.named.id for cut in cuts if cut.state == "ok"]


def judged(run: Run) -> Findings:
    traces = {node: lives[0] for node, lives in run.cluster.world.messages.items()}
    return judge(logs_of(run.cluster.files()), good_cuts(run), traces)


@pytest.mark.parametrize(
    "seed", [2, 5, *(pytest.param(seed, marks=pytest.mark.long) for seed in (0, 1, 3, 4))]
)
def test_no_transaction_is_torn(seed: int) -> None:
    """If it failed, a cut would hold half a transaction, or a message from its future."""
    run = cut_run(seed)
    found = judged(run)
    assert not found, found
    assert found.judged >= 2
    for cut in good_cuts(run):
        check_restored(run.cluster.files(), cut, run.cluster.node("n1").agreed)


@pytest.mark.nightly
def test_no_transaction_is_torn_in_many_runs() -> None:
    """As above; and the rare turns come about."""
    counts: dict[str, int] = {}
    for seed in range(1_000, 1_300):
        run = cut_run(seed, 400)
        found = judged(run)
        assert not found, (seed, found)
        for row, times in run.cluster.count_living().items():
            counts[row] = counts.get(row, 0) + times
    rare = (INCLUDED, EXCLUDED, RECORDED, MARKER_FIRST, MARKER_HELD, ONE_PHASE_IN_CUT, CUT_REFUSED)
    assert [row for row in rare if not counts.get(row)] == []


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2_000, 2_040))
def test_cuts_between_faults(seed: int) -> None:
    """If it failed, a cut that is reported as good would restore to a state that never was."""
    run = begun(seed, **SETTINGS[seed % len(SETTINGS)], **UNEVEN)
    for number in range(4):
        run.load(50, with_cuts=True)
        disturb(run)
        run.load(200, with_cuts=True)
        calm(run)
        run.cluster.client.ask("n1", "snapshot", f"s{number}")
        run.cluster.run(300)
        run.load(200, with_cuts=True)
    calm(run)
    cuts = good_cuts(run)
    assert len(cuts) > 2
    for cut in cuts:
        check_restored(run.cluster.files(), cut, run.cluster.node("n1").agreed)


# ---- cuts that fail, and those after them


def settled(**settings: Any) -> VirtualCluster:
    cluster = VirtualCluster(5, clients=("c1",), **settings)
    cluster.settle()
    return cluster


def cut_of(cluster: VirtualCluster, name: str) -> Cut:
    return cluster.node("n1").agreed.cuts[name]


def test_a_second_cut_is_refused_and_the_next_one_works() -> None:
    """If it failed, two cuts would run into each other, or one would block all others."""
    cluster = settled(delivery_ns=5_000_000)
    asked = [cluster.client.ask(node, "cut", name) for node, name in (("n1", "a"), ("n2", "b"), ("c1", "c"))]
    cluster.run(400)
    assert sorted(each.type for each in asked) == ["fail", "fail", "ok"]
    refused = next(each for each in asked if each.type == "fail")
    assert refused.answer["error"].startswith("cut refused: the cut ")
    again = cluster.client.ask("n3", "cut", "d")
    cluster.run(400)
    assert again.type == "ok"
    assert cut_of(cluster, "d").state == "ok"
    listed = cluster.client.ask("c1", "cuts")
    cluster.run(100)
    assert [cut["state"] for cut in listed.answer].count("ok") == 2


def prepared_everywhere(cluster: VirtualCluster) -> None:
    """A transaction of c1 is prepared on all its participants, and c1 can say no more."""
    cluster.client.txn("c1", *[["write", "r", key, 1] for key in range(6)])
    machines = [cluster.node(server) for server in cluster.servers]
    while not all(any(local.prepared for local in node.stock.locals.values()) for node in machines):
        assert cluster.world.agenda.advance()
    cluster.world.network.cut([("c1", server) for server in cluster.servers])


def test_a_server_that_leaves_makes_the_cut_fail() -> None:
    """If it failed, a cut without a server would be reported as good."""
    cluster = settled(one_phase=False)
    prepared_everywhere(cluster)
    asked = cluster.client.ask("n1", "cut", "a")
    cluster.run(50)
    assert asked.type == "ok"
    assert cut_of(cluster, "a").state == "runs"
    cluster.machine("n3").kill()
    cluster.run(1_500)
    assert (cut_of(cluster, "a").state, cut_of(cluster, "a").why) == ("failed", "server n3 left")
    cluster.machine("n3").start()
    cluster.heal([("c1", server) for server in cluster.servers])
    cluster.settle()
    logs = logs_of({server: cluster.machine(server).disk.files() for server in cluster.servers})
    assert all(["start", "a"] in [record[:2] for record in log] for log in logs.values())
    assert not any(record[0] == "finish" for log in logs.values() for record in log)


def test_a_server_that_joins_makes_the_cut_fail() -> None:
    """If it failed, a cut would lack a server, or hold what a former life of it knew."""
    cluster = settled()
    agreed = Agreed(cluster.configurations["n1"])
    for index, entry in enumerate((["join", "n1", 1, "server"], ["join", "n2", 1, "server"]), start=1):
        agreed.apply(index, entry)
    agreed.apply(3, ["join", "n3", 1, "server"])
    agreed.apply(4, ["cut", "a", "n1", 500])
    assert agreed.cuts["a"].state == "runs"
    agreed.apply(5, ["join", "n3", 2, "server"])
    assert (agreed.cuts["a"].state, agreed.cuts["a"].why) == ("failed", "server n3 joined")
    agreed.apply(6, ["cut", "b", "n1", 600])
    assert agreed.cuts["b"].state == "runs"


def test_a_cut_waits_for_a_client_that_joins_while_it_runs() -> None:
    """If it failed, the others would mark no message any more, and the client would have the colour of before."""
    agreed = Agreed(settled().configurations["n1"])
    joins: list[Any] = [["join", name, 1, "server"] for name in ("n1", "n2", "n3")]
    done: list[Any] = [["cut-done", "a", name, 1, True, ""] for name in ("n1", "n2", "n3")]
    entries: list[Any] = [*joins, ["cut", "a", "n1", 500], ["join", "c1", 1, "client"], *done]
    for index, entry in enumerate(entries, start=1):
        agreed.apply(index, entry)
    assert (agreed.cuts["a"].state, agreed.cuts["a"].waiting) == ("runs", ["c1"])
    agreed.apply(9, ["cut-done", "a", "c1", 1, True, ""])
    assert agreed.cuts["a"].state == "ok"


def test_a_cut_that_fails_behind_all_finishes_is_taken_back() -> None:
    """If it failed, the logs would have the cut as whole: nodes that heard of the failure mark no message any more, and
    a slow node might take one of these and begin the cut only then (seeds 92000411 and 93100986)."""
    cluster = settled()
    cluster.world.network.stop([("c1", server) for server in cluster.servers], ["propose"])
    cluster.client.ask("n1", "cut", "a")
    cluster.run(100)

    def kinds() -> list[list[str]]:
        files = {server: cluster.machine(server).disk.files() for server in cluster.servers}
        return [[record[0] for record in log if record[1:2] == ["a"]] for log in logs_of(files).values()]

    finished = ["start", "finish"]
    assert kinds() == [finished] * 3
    assert cut_of(cluster, "a").state == "runs", "the client's report is missing"
    cluster.machine("n3").kill()
    cluster.run(1_500)
    assert cut_of(cluster, "a").why == "server n3 left"
    taken_back = [*finished, "void"]
    assert kinds() == [taken_back, taken_back, finished]
    cluster.machine("n3").start()
    cluster.settle()
    assert kinds() == [taken_back] * 3
    files = {server: cluster.machine(server).disk.files() for server in cluster.servers}
    for each in files.values():
        with pytest.raises(NotRestorable, match="the cut a has failed, and n1 has taken its FINISH back"):
            check_restorable(files, "a", cluster.servers)
        each[INDEX] = b""  # what it may lack stands in the log


def test_a_server_begins_no_cut_of_an_earlier_life() -> None:
    """If it failed, a marked message that comes before the discovery log would make a server write START of a cut a
    second time (seeds 92000706 and 92001209)."""
    cluster = settled()
    cluster.world.network.stop([("c1", server) for server in cluster.servers], ["propose"])
    cluster.client.ask("n1", "cut", "a")
    cluster.run(100)
    marker = cluster.node("n1").cuts.marker()
    cluster.machine("n3").kill()
    cluster.machine("n3").start()
    assert marker is not None
    assert not cluster.node("n3").cuts.meet(marker)
    cluster.run(1_500)
    records, _ = read_log(cluster.machine("n3").disk.files())
    assert [record[0] for record in records].count("start") == 1


def test_a_commit_by_recovery_makes_the_cut_fail() -> None:
    """If it failed, a transaction without a sign would be BEFORE at one node and AFTER at another."""
    cluster = settled(one_phase=False)
    prepared_everywhere(cluster)
    cluster.client.ask("n1", "cut", "a")
    cluster.run(2_000)
    assert cut_of(cluster, "a").state == "failed"
    assert "was committed by recovery" in cut_of(cluster, "a").why
    assert cluster.count_living()[CUT_OF_RECOVERY] > 0
    cluster.client.ask("n1", "cut", "b")
    cluster.run(400)
    assert cut_of(cluster, "b").state == "ok"


def test_a_newer_cut_ends_one_that_a_server_does_not_know_to_have_failed() -> None:
    """If it failed, a server would take what it collected for one cut into the FINISH of another, or be stuck."""
    cluster = settled(one_phase=False)
    coordinator = cluster.coordinator()
    agreed = cluster.node(coordinator).agreed
    late = next(server for server in cluster.servers if server != coordinator)
    partitions = cluster.configurations[late].partitions
    partition = next(each for each in range(partitions) if agreed.owners(each)[0] == late)
    participants = [cluster.node(server) for server in agreed.owners(partition)]
    key = key_in(partition, partitions)
    cluster.client.txn("c1", ["write", "r", key, 1])
    while not all(any(local.prepared for local in node.stock.locals.values()) for node in participants):
        assert cluster.world.agenda.advance()
    of_client = [("c1", server) for server in cluster.servers]
    cluster.world.network.cut(of_client)
    cluster.client.ask(coordinator, "cut", "a")
    cluster.run_until(lambda: bool(cluster.node(late).recovery.doubts))
    news = cluster.world.network.stop([(server, late) for server in cluster.servers], ["append"])
    cluster.run_until(lambda: agreed.cuts["a"].state == "failed")
    cluster.client.ask(coordinator, "cut", "b")
    cluster.run(20)
    read = cluster.client.txn(coordinator, ["read", "r", key])  # its messages carry the marker of b
    cluster.run(30)
    cluster.world.network.go_on(news)
    cluster.run_until(lambda: read.answer is not None)
    assert read.answer["results"] == [1]
    assert cluster.count_living()[CUT_OVERTAKEN] == 1
    cluster.heal(of_client)
    cluster.settle()
    assert agreed.cuts["b"].state == "failed", "the write was committed by recovery, without a sign"
    cluster.client.ask(coordinator, "cut", "c")
    cluster.run(400)
    assert agreed.cuts["c"].state == "ok"
    logs = logs_of({server: cluster.machine(server).disk.files() for server in cluster.servers})
    told = [record[:2] for record in logs[late] if record[0] in ("start", "finish")]
    assert told == [["start", "a"], ["start", "b"], ["start", "c"], ["finish", "c"]]


def test_a_backup_hears_from_its_primary_that_recovery_commits() -> None:
    """If it failed, a cut would count the transaction BEFORE at this backup, and be over at the primary already."""
    cluster = settled(one_phase=False)
    prepared_everywhere(cluster)
    backup = next(server for server in cluster.servers if server != cluster.coordinator())
    while not cluster.node(backup).recovery.doubts:
        assert cluster.world.agenda.advance()
    others = [(server, backup) for server in cluster.servers if server != backup]
    cluster.world.network.stop(others, ["append"])
    cluster.run_until(lambda: not cluster.node(backup).stock.locals)
    assert cluster.node(backup).recovery.doubts, "it has the outcome from the discovery log"
    records = cluster.node(backup).stock.wal.read(cluster.machine(backup).disk.files())
    assert [record[3] for record in records if record[0] == "committed"] == [True]


@pytest.mark.parametrize("fails", [False, True])
def test_a_rollback_by_recovery(fails: bool) -> None:
    """If it failed, the option would have no effect."""
    cluster = settled(one_phase=False, recovery_rollback_fails_cut=fails)
    network = cluster.world.network
    network.stop([("c1", "n2")], ["prepare"])
    cluster.client.txn("c1", *[["write", "r", key, 1] for key in range(6)])
    machines = [cluster.node(server) for server in ("n1", "n3")]
    while not all(any(local.prepared for local in node.stock.locals.values()) for node in machines):
        assert cluster.world.agenda.advance()
    cluster.client.ask("n1", "cut", "a")
    cluster.run(20)
    cluster.machine("c1").lose_power()
    cluster.run(2_000)
    assert cluster.count_living()[RECOVERED_ROLLBACK] > 0
    assert cut_of(cluster, "a").state == ("failed" if fails else "ok"), cut_of(cluster, "a")


def test_a_rebalanced_server_takes_part_after_a_base_snapshot() -> None:
    """If it failed, a cut would rest on a log that does not hold all of its data."""
    cluster = settled()
    filled = cluster.client.txn("n1", *[["write", "r", key, key] for key in range(20)])
    cluster.run(300)
    assert filled.type == "ok"
    cluster.machine("n2").lose_power()
    cluster.run(1_000)
    refused = [cluster.client.ask("n1", "cut", "away"), cluster.client.ask("n1", "snapshot", "away")]
    cluster.run(300)
    assert [each.answer["error"] for each in refused] == [
        "cut refused: server n2 is away",
        "snapshot refused: server n2 is away",
    ]
    cluster.machine("n2").start()
    cluster.settle()
    cluster.client.ask("n1", "cut", "a")
    cluster.run(300)
    assert cut_of(cluster, "a").why == "n2: a partition was rebalanced since the last base snapshot"
    asked = cluster.client.ask("n3", "snapshot", "s")
    cluster.run(500)
    assert asked.type == "ok"
    assert cluster.node("n1").agreed.snapshots["s"].state == "ok"
    more = cluster.client.txn("c1", ["write", "r", 3, "new"])
    cluster.run(100)
    cluster.client.ask("n1", "cut", "b")
    cluster.run(300)
    assert (more.type, cut_of(cluster, "b").state) == ("ok", "ok")
    assert cluster.count_living()[CUT_OF_FLAG] == 1
    files = {server: cluster.machine(server).disk.files() for server in cluster.servers}
    rows = check_restored(files, "b", cluster.node("n1").agreed)
    assert rows == {("r", key): "new" if key == 3 else key for key in range(20)}


def test_an_old_base_snapshot_counts_once() -> None:
    """If it failed, a server that restarts would write a base into its log where none was taken, and take part in cuts
    over copies that no base holds."""
    cluster = settled()
    asked = cluster.client.ask("n1", "snapshot", "s")
    cluster.run(500)
    assert asked.type == "ok"
    cluster.machine("n2").kill()
    cluster.run(1_000)
    cluster.machine("n2").start()
    cluster.settle()
    records, _ = read_log(cluster.machine("n2").disk.files())
    kinds = [record[0] for record in records]
    assert kinds.count("base-done") == 1 < kinds.index("rebalanced")
    assert cluster.node("n2").stock.is_flagged


def test_a_cluster_begins_with_a_cut() -> None:
    """If it failed, what was restored could not be used."""
    run = cut_run(1)
    cut = good_cuts(run)[-1]
    agreed = run.cluster.node("n1").agreed
    rows = check_restored(run.cluster.files(), cut, agreed)
    again = VirtualCluster(1, clients=("c1",), restore=cut, **{**SETTINGS[1], **UNEVEN})
    restored = restored_files(run.cluster.files(), cut, again.configurations["n1"].layout)
    for name, machine in again.world.machines.items():
        machine.kill()
        for file in machine.disk.files():
            machine.disk.remove(file)
        for file, data in restored.get(name, {}).items():
            machine.disk.put_whole(file, data)
        machine.start()
    again.crashes.clear()
    again.settle()
    for server in again.servers:
        stored = again.node(server).stock.data
        owned = [p for p in range(8) if server in agreed.owners(p)]
        assert all(value == rows[space, key] for p in owned for space, key, value, _ in stored.rows(p))
    asked = again.client.txn("c1", ["add", "bank", 0, 1, None])
    again.client.ask("n1", "cut", "fresh")
    again.run(500)
    assert asked.answer["results"] == [rows["bank", 0] + 1]
    assert cut_of(again, "fresh").state == "ok"
    for server in again.servers:
        again.machine(server).lose_power()
        again.machine(server).start()
    again.settle()
    read = again.client.txn("c1", ["read", "bank", 0])
    again.run(200)
    assert read.answer["results"] == [rows["bank", 0] + 1]


def test_a_node_without_the_cut_does_not_begin() -> None:
    """If it failed, a cluster would be restored by half."""
    cluster = settled()
    node = TwoPhase(VirtualCluster(1, restore="gone").configurations["n1"])
    with pytest.raises(StartRefused, match="expected a log that begins with the rows of the cut gone"):
        node.step(Started(cluster.files()["n1"]), Instant(0, 0))


def test_the_name_of_a_forgotten_cut_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, logs would have two cuts of one name, and none of them could be restored."""
    monkeypatch.setattr("nodes.twophase.agreed.ENDED_KEPT", 2)
    cluster = settled()
    agreed = cluster.node("n1").agreed

    def ended(name: str) -> Cut:
        cluster.client.ask("n1", "cut", name)
        cluster.run_until(lambda: name in agreed.cuts and agreed.cuts[name].state != "runs")
        return agreed.cuts[name]

    assert ended("a").state == "ok"
    cluster.machine("n2").kill()
    cluster.machine("n2").start()  # it does not know how "a" ended
    cluster.settle()
    cluster.client.ask("n1", "snapshot", "s")
    cluster.run(200)
    for name in ("b", "c", "d"):
        assert ended(name).state == "ok"
    cluster.run_until(lambda: "a" not in agreed.cuts)
    again = ended("a")
    assert (again.state, "the log has an earlier cut of the name a" in again.why) == ("failed", True)
    check_restored(cluster.files(), "a", agreed)


def test_a_server_finishes_no_cut_with_what_its_former_life_knew() -> None:
    """If it failed, the cut would lack a write that was acknowledged while the server was away.

    `again` has started again, and has not delivered its own join. It has in its log that it is in sync. A message with
    the marker of a cut reaches it. The cut cannot end meanwhile, because of a transaction in doubt.
    """
    names = ("n1", "n2", "n3", "n4", "n5")
    cluster = settled(servers=names, partitions=5, backups=1, one_phase=False)
    network, coordinator = cluster.world.network, cluster.coordinator()
    agreed = cluster.node(coordinator).agreed
    at = names.index(coordinator)
    first, backup, absent, other, again = (names[(at + each) % 5] for each in range(5))
    one, two, its = map(names.index, (first, absent, again))
    network.stop([(again, absent)], ["prepare"])
    slow = network.stop([(backup, first)], ["backup-prepared"])
    unsaid = network.stop([(absent, first), (absent, backup)], ["checked"])
    cluster.client.txn(again, *[["write", "r", key_in(partition, 5), "T"] for partition in (one, two)])
    cluster.run_until(lambda: slow.stopped > 0)
    log = cluster.node(coordinator).discovery.log
    cluster.machine(again).kill()
    cluster.machine(again).start()
    while log.at(log.last_index)[1] != ["join", again, 2, "server"]:
        assert cluster.world.agenda.advance()
    deaf = network.stop([(server, again) for server in names], ["append", "state"])
    others = (first, backup, absent, other)
    cluster.run_until(lambda: all(cluster.node(server).agreed.is_member(again, 2) for server in others))
    assert not cluster.node(again).agreed.is_member(again, 2)
    asked = cluster.client.txn(first, ["write", "r", key_in(its, 5), "new"])
    cluster.run_until(lambda: asked.type == "ok")
    cluster.client.ask(first, "cut", "a")
    cluster.run_until(lambda: cluster.node(first).cuts.running is not None)
    network.go_on(slow)
    cluster.run(60)
    for stop in (unsaid, deaf):
        network.go_on(stop)
    cluster.run_until(lambda: agreed.cuts["a"].state != "runs")
    assert cluster.count_living()[CUT_WAITED] > 0
    assert agreed.cuts["a"].why == f"{again}: a partition was rebalanced since the last base snapshot"


def test_a_cut_behind_a_base_snapshot_does_not_fail() -> None:
    """If it failed, a cut would fail without a fault. `late` meets its marker before it hears of the end of it."""
    cluster = settled()
    coordinator, network = cluster.coordinator(), cluster.world.network
    agreed = cluster.node(coordinator).agreed
    late = next(server for server in cluster.servers if server != coordinator)
    cluster.machine(late).kill()
    cluster.machine(late).start()
    cluster.settle()
    cluster.client.ask(coordinator, "snapshot", "s")
    while not has_record(cluster, late, "base"):
        assert cluster.world.agenda.advance()
    news = network.stop([(coordinator, late)], ["append"])
    cluster.run_until(lambda: agreed.snapshots["s"].state == "ok")
    partition = next(each for each in range(8) if agreed.owners(each)[0] == late)
    cluster.client.ask(coordinator, "cut", "b")
    cluster.run_until(lambda: cluster.node(coordinator).cuts.running is not None)
    cluster.client.txn(coordinator, ["read", "r", key_in(partition, 8)])
    cluster.run(20)
    network.go_on(news)
    cluster.run_until(lambda: agreed.cuts["b"].state != "runs")
    assert (agreed.cuts["b"].state, cluster.count_living()[CUT_WAITED] > 0) == ("ok", True)


def has_record(cluster: VirtualCluster, server: str, kind: str) -> bool:
    return any(record[0] == kind for record in read_log(cluster.files()[server])[0])


def test_a_cut_ends_though_a_client_starts_again() -> None:
    """If it failed, no cut would begin any more, or one would end without c1. The former life of c1 has reported that
    it is done, and the new one reports before it delivers its own join."""
    cluster = settled(one_phase=False)
    coordinator, network = cluster.coordinator(), cluster.world.network
    agreed = cluster.node(coordinator).agreed
    at = cluster.servers.index(coordinator)
    backup, other = (cluster.servers[(at + each) % 3] for each in (1, 2))
    keys = [
        key_in(next(each for each in range(8) if agreed.owners(each)[0] == server), 8)
        for server in (coordinator, other)
    ]
    network.stop([("c1", other)], ["prepare"])
    slow = network.stop([(backup, coordinator)], ["backup-prepared"])
    unsaid = network.stop([(coordinator, backup)], ["checked"])
    cluster.client.txn("c1", *[["write", "r", key, "T"] for key in keys])
    cluster.run_until(lambda: slow.stopped > 0)
    cluster.client.ask(coordinator, "cut", "a")
    reports = cluster.node(coordinator).discovery
    cluster.run_until(lambda: ["cut-done", "a", "c1", 1, True, ""] in reports._reports)
    deaf = network.stop([(server, "c1") for server in cluster.servers], ["learn", "state"])
    cluster.machine("c1").kill()
    cluster.machine("c1").start()
    cluster.run_until(lambda: agreed.is_member("c1", 2))
    assert "c1" in agreed.cuts["a"].waiting
    cluster.run(150)
    network.go_on(slow)
    cluster.run_until(lambda: cluster.node("c1").cuts.running is not None)
    for stop in (deaf, unsaid):
        network.go_on(stop)
    cluster.run_until(lambda: agreed.cuts["a"].state == "ok")


class Slowest(random.Random):
    """Every entry is delivered as late as it may be."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return (start if stop is None else stop) - 1


def test_a_client_hears_no_end_of_a_cut_before_the_coordinator() -> None:
    """If it failed, a failed cut could be restored, with one half of a transaction.

    c1 hears that the cut has failed, and sends a finish without a marker to `slow`, which has not begun the cut. Then
    all servers die: each has its FINISH in the log, and no server has taken it back.
    """
    names = ("n1", "n2", "n3", "n4", "n5")
    cluster = VirtualCluster(
        1,
        servers=names,
        clients=("c1",),
        partitions=5,
        backups=0,
        one_phase=False,
        prepare_ns=10_000_000_000,
        delivery_ns=150_000_000,
    )
    configuration = replace(cluster.configurations["c1"], delivery_ns=0)
    cluster.machine("c1").kill()
    cluster.machine("c1").configure(lambda: TwoPhase(configuration))
    cluster.machine("c1").start()
    cluster.settle()
    network, coordinator = cluster.world.network, cluster.coordinator()
    at = names.index(coordinator)
    first, slow, again, other = (names[(at + each) % 5] for each in range(1, 5))
    fast = (coordinator, first, again, other)
    held = network.stop([("c1", first)], ["prepare"])
    keys = [key_in(names.index(server), 5) for server in (first, slow)]
    cluster.client.txn("c1", *[["write", "r", key, "T"] for key in keys])
    cluster.run_until(lambda: has_record(cluster, slow, "prepared") and held.stopped > 0)
    network.stop([(server, slow) for server in names], ["append"])
    cluster.client.ask(coordinator, "cut", "a")
    cluster.run_until(lambda: all(has_record(cluster, server, "finish") for server in fast))
    network.stop([("c1", server) for server in names], ["confirm"])
    network.go_on(held)
    cluster.node(coordinator).site.chance = Slowest()
    cluster.machine(again).kill()
    cluster.machine(again).start()
    while cluster.node("c1").agreed.cuts["a"].state == "runs":
        assert cluster.world.agenda.advance()
    assert cluster.node("c1").agreed.cuts["a"].state == "failed"
    assert has_record(cluster, coordinator, "void")


@pytest.mark.parametrize("variant", ["seed-counter", "seed-colour"])
@pytest.mark.parametrize("name", ["n3", "c1"])
def test_a_node_that_starts_again_has_no_colour_before_the_next_cut(variant: str, name: str) -> None:
    """If it failed, docs/seeds.md and decision 48 would say something else than what a node signs with."""
    cluster = settled(variant=variant)
    cluster.client.ask("n1", "cut", "a")
    cluster.run(300)
    colour = cluster.node("n1").cuts.sign()
    assert cut_of(cluster, "a").state == "ok" and colour is not None
    assert cluster.node(name).cuts.sign() == colour
    cluster.machine(name).kill()
    cluster.run(1_500)
    cluster.machine(name).start()
    cluster.settle()
    assert cluster.node("n1").cuts.sign() == colour
    assert cluster.node(name).cuts.sign() is None
    assert not cluster.node(name).cuts.variant.is_after(None, NO_VERSION, cut_of(cluster, "a").named)
    cluster.client.ask("n1", "snapshot", "s")
    cluster.run(500)
    cluster.client.ask("n1", "cut", "b")
    cluster.run(300)
    assert cut_of(cluster, "b").state == "ok"
    assert cluster.node(name).cuts.sign() == cluster.node("n1").cuts.sign() != colour


@pytest.mark.parametrize(
    ("variant", "signs"),
    [
        ("shipped", ["a", None, "b", None]),
        ("seed-counter", [1, 1, 2, 2]),
        ("seed-colour", [["white", 1], ["white", 1], ["red", 2], ["red", 2]]),
    ],
)
def test_a_sign_names_a_cut(variant: str, signs: list[object]) -> None:
    """If it failed, docs/seeds.md and decision 48 would say something else than how a cut is named, and how long."""
    cluster = settled(variant=variant)
    cuts = cluster.node("n2").cuts
    assert cuts.sign() is None
    seen = []
    for name in ("a", "b"):
        cluster.client.ask("n1", "cut", name)
        for is_running in (True, False):
            while (cuts.running is not None) != is_running:
                assert cluster.world.agenda.advance()
            seen.append(cuts.sign())
        cluster.run(100)
        assert cut_of(cluster, name).state == "ok"
    assert seen == signs


def test_committing_transactions_are_tracked_while_a_cut_runs() -> None:
    """If it failed, docs/seeds.md and decision 48 would say something else: the design tracks them all the time."""
    run = begun(2, **SETTINGS[2], **UNEVEN)
    run.load(150, every_ms=2)
    assert run.cluster.count_living().get(RECORDED, 0) == 0
    assert any(asked.type == "ok" for asked, _, _ in run.transfers.values())
    run.load(250, with_cuts=True, every_ms=2)
    calm(run)
    tracked = run.cluster.count_living()[RECORDED]
    run.load(150, every_ms=2)
    assert run.cluster.count_living()[RECORDED] == tracked > 0
