"""Atomic spaces: writes without a prepare, which cuts do not cover and a restore leaves out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from nodes.twophase.configuration import Configuration
from nodes.twophase.restore import restore, restored_files
from nodes.twophase.wal import read_log
from tests.nodes.twophase.cut_oracle import judge, logs_of
from tests.nodes.twophase.random_run import Run, begun, calm, check_history, check_stores, disturb, storm
from tests.nodes.twophase.restored import check_restored
from tests.nodes.twophase.virtual_cluster import Asked, VirtualCluster, answered, key_in


def settled(**settings: Any) -> VirtualCluster:
    cluster = VirtualCluster(1, clients=("c1",), atomic_spaces=("notes",), **settings)
    cluster.settle()
    return cluster


@pytest.mark.parametrize("node", ["n2", "c1"])
@pytest.mark.parametrize("concurrency", ["pessimistic", "optimistic"])
def test_steps(node: str, concurrency: str) -> None:
    """If it failed, a step on an atomic space would end otherwise than in a transaction."""
    cluster = settled(concurrency=concurrency)

    def ask(*steps: list[Any]) -> Any:
        return answered(cluster, cluster.client.txn(node, *steps))

    assert ask(["write", "notes", 1, 5]) == {"type": "ok", "results": [True]}
    assert ask(["cas", "notes", 1, 4, 6]) == {"type": "mismatch", "step": 0, "found": 5}
    assert ask(["add", "notes", 1, 2, None]) == {"type": "ok", "results": [7]}
    assert ask(["insert", "notes", 1, 2]) == {"type": "fail", "error": "duplicate-key"}
    assert ask(["read", "notes", 1]) == {"type": "ok", "results": [7]}
    refused = ask(["read", "notes", 1], ["write", "bank", 1, 1])
    assert refused["error"] == "illegal-parameters: notes is atomic: expected one step alone, got 2"


def test_a_write_goes_to_the_log_without_a_prepare() -> None:
    """If it failed, an answered write could be lost with one machine, or a cut would have to wait for it."""
    cluster = settled()
    key = key_in(0, 8, "notes")  # of n1 and n2
    assert answered(cluster, cluster.client.txn("c1", ["write", "notes", key, 5]))["type"] == "ok"
    for server in ("n1", "n2"):
        records, _ = read_log(cluster.machine(server).disk.files())
        assert [record[0] for record in records] == ["atomic"]
        assert records[0][2] == ["notes", key, 5, 1]
        assert cluster.replayed(server).data.get(("notes", key)) == (5, 1)


def test_a_primary_without_its_backup_goes_on_alone() -> None:
    """If it failed, a write would wait for a server that has left, or be lost when the backup is back."""
    cluster = settled()
    key = key_in(0, 8, "notes")
    cluster.machine("n2").pause()
    asked = cluster.client.txn("n1", ["write", "notes", key, 5])
    cluster.run(100)
    assert asked.answer is None
    told = answered(cluster, asked)
    assert told["type"] == "ok"
    cluster.machine("n2").resume()
    cluster.settle()
    assert cluster.node("n2").stock.data.get(("notes", key)) == (5, 1)


def test_an_unanswered_write_is_unknown() -> None:
    """If it failed, a write that its backup may keep would count as one that did not happen."""
    cluster = settled()
    key = key_in(0, 8, "notes")
    cluster.world.network.stop([("n2", "n1")], ["atomic-copied"])
    asked = cluster.client.txn("n3", ["write", "notes", key, 5])
    cluster.run(50)
    cluster.machine("n1").kill()
    assert answered(cluster, asked)["type"] == "info"
    shown = answered(cluster, cluster.client.txn("n3", ["read", "notes", key]))
    assert shown == {"type": "ok", "results": [5]}


def test_a_deposed_primary_neither_shows_nor_takes_anything() -> None:
    """If it failed, a client at a server that was cut off would see old values, or lose what was acknowledged."""
    cluster = settled()
    key = key_in(0, 8, "notes")
    assert answered(cluster, cluster.client.txn("n1", ["write", "notes", key, "old"]))["type"] == "ok"
    pairs = cluster.isolate("n1")
    cluster.run_until(lambda: cluster.node("n2").agreed.primary(0) == "n2")
    assert answered(cluster, cluster.client.txn("n2", ["write", "notes", key, "new"]))["type"] == "ok"
    asked = [
        cluster.client.txn("n1", step) for step in (["read", "notes", key], ["write", "notes", key, "x"])
    ]
    asked.append(cluster.client.txn("n1", ["cas", "notes", key, "y", "z"]))
    cluster.run(1_500)
    assert [each.type for each in asked] in (["fail", "info", "info"], ["fail", "info", "fail"])
    cluster.heal(pairs)
    cluster.run(500)
    cluster.settle()
    assert answered(cluster, cluster.client.txn("n1", ["read", "notes", key]))["results"] == ["new"]


def test_a_long_queue_of_refused_writes_ends() -> None:
    """If it failed, a server would end with many clients at one key, when the topology changes."""
    cluster = settled()
    key = key_in(0, 8, "notes")
    cluster.world.network.stop([("n2", "n1")], ["atomic-copied"])
    asked = [cluster.client.txn("n1", ["add", "notes", key, 1, None]) for _ in range(1_000)]
    cluster.run(50)
    cluster.machine("n3").kill()
    cluster.machine("n2").kill()
    cluster.machine("n3").start()
    cluster.machine("n2").start()
    cluster.run(3_000)
    assert not cluster.crashes
    assert Counter(each.type for each in asked) == {"ok": 1, "fail": 999}
    cluster.settle()
    assert answered(cluster, cluster.client.txn("n3", ["read", "notes", key]))["results"] == [1]


def test_more_than_one_backup_is_refused() -> None:
    """If it failed, a primary that died between its copies would leave backups that differ for good."""
    with pytest.raises(ValueError, match="expected at most 1 backup with atomic spaces, got 2"):
        Configuration(name="a", baseline=("a", "b", "c"), backups=2, atomic_spaces=("notes",))


# ---- beside transactions and cuts


@dataclass
class Beside(Run):
    """A bank, with additions to four notes."""

    notes: list[tuple[int, Asked]] = field(default_factory=list)

    def transfer(self) -> None:
        super().transfer()
        key = self.chance.randrange(4)
        self.notes.append((key, self.cluster.client.txn(self.any_node(), ["add", "notes", key, 1, None])))


def beside(seed: int, **settings: Any) -> Beside:
    run = begun(seed, atomic_spaces=("notes",), **settings)
    return Beside(run.cluster, run.chance)


def check_notes(run: Beside, rows: dict[tuple[str, Any], Any]) -> None:
    """Every acknowledged addition is there, no failed one, each unknown one perhaps."""
    for key in range(4):
        types = Counter(asked.type for of, asked in run.notes if of == key)
        assert types["ok"] <= (rows.get(("notes", key)) or 0) <= types["ok"] + types["info"], (key, types)


def is_written_within(log: Sequence[Sequence[Any]], cut: str) -> bool:
    """Whether an atomic write stands between START and FINISH."""
    kinds = [(record[0], record[1]) for record in log]
    first, last = kinds.index(("start", cut)), kinds.index(("finish", cut))
    return any(kind == "atomic" for kind, _ in kinds[first:last])


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.long) for seed in (0, 1, 3))])
def test_cuts_hold_while_atomic_writes_are_in_flight(seed: int) -> None:
    """If it failed, an atomic write would tear a transaction, or a cut would bring back a part of an atomic space."""
    run = beside(seed, record_trace=True, step_ns=2_000_000, one_phase=seed % 2 == 0)
    run.load(250, with_cuts=True, every_ms=2)
    calm(run)
    files = run.cluster.files()
    agreed = run.cluster.node("n1").agreed
    good = [cut.named.id for cut in agreed.cuts.values() if cut.state == "ok"]
    traces = {node: lives[0] for node, lives in run.cluster.world.messages.items()}
    found = judge(logs_of(files), good, traces)
    assert not found, found
    assert found.judged >= 2
    assert any(is_written_within(log, cut) for log in logs_of(files).values() for cut in good)
    for cut in good:
        rows = check_restored(files, cut, agreed)
        assert {space for space, _ in rows} <= {"bank", "log"}
    last = check_stores(run)
    check_history(run, last)
    check_notes(run, last)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 6))])
def test_atomic_writes_with_faults(seed: int) -> None:
    """If it failed, an acknowledged write would be lost, or owners would differ."""
    run = beside(seed)
    for _ in range(3):
        run.load(30)
        disturb(run)
    calm(run)
    rows = check_stores(run)
    check_history(run, rows)
    check_notes(run, rows)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 160))
def test_atomic_writes_with_faults_often(seed: int) -> None:
    """The same, with several faults at once."""
    run = beside(seed)
    storm(run, 25)
    calm(run)
    rows = check_stores(run)
    check_history(run, rows)
    check_notes(run, rows)


def test_a_restore_says_what_it_left_out() -> None:
    """If it failed, a user would take a space that is gone for one that was empty."""
    cluster = settled()
    client = cluster.client
    assert answered(cluster, client.txn("n1", ["write", "notes", 1, "n"]))["type"] == "ok"
    assert answered(cluster, client.txn("n1", ["write", "bank", 1, 100]))["type"] == "ok"
    base = client.ask("n1", "snapshot", "s")
    cluster.run(500)
    assert base.type == "ok"
    client.ask("n2", "cut", "k")
    cluster.run(500)
    files = {server: dict(cluster.machine(server).disk.files()) for server in cluster.servers}
    found = restore(files["n1"], "k")
    assert (found.left_out, [row for row in found.rows if row[0] == "notes"]) == (("notes",), [])
    second = settled()
    for server, its_files in restored_files(files, "k", cluster.configurations["n1"].layout).items():
        machine = second.machine(server)
        machine.kill()
        for file in machine.disk.files():
            machine.disk.remove(file)
        for file, data in its_files.items():
            machine.disk.put_whole(file, data)
        machine.start()
    second.crashes.clear()
    second.settle()
    assert {second.statuses()[server]["not_restored"][0] for server in second.servers} == {"notes"}
    shown = [answered(second, second.client.txn("c1", ["read", space, 1])) for space in ("bank", "notes")]
    assert [each["results"] for each in shown] == [[100], [None]]


def test_a_new_primary_counts_on_from_a_copy_that_is_on_its_way_to_the_disk() -> None:
    """If it failed, an acknowledged write would have the version of the copy, and be dropped."""
    cluster = settled(servers=("n1", "n2", "n3", "n4", "n5"))
    coordinator = cluster.coordinator()
    agreed = cluster.node(coordinator).agreed
    partition, (primary, backup) = next(
        (each, owners) for each in range(8) if coordinator not in (owners := agreed.owners(each))
    )
    key = key_in(partition, 8, "notes")
    cluster.machine(backup).records.hold("atomic")
    before = cluster.node(backup).stock.wal.position
    cluster.client.txn("c1", ["write", "notes", key, "unknown"])
    cluster.run_until(lambda: cluster.node(backup).stock.wal.position > before)
    cluster.machine(primary).kill()
    cluster.run_until(lambda: cluster.node(backup).agreed.primary(partition) == backup)
    asked = cluster.client.txn(coordinator, ["write", "notes", key, "acknowledged"])
    cluster.run(20)
    cluster.machine(backup).records.release("atomic")
    assert answered(cluster, asked)["type"] == "ok"
    read = answered(cluster, cluster.client.txn(coordinator, ["read", "notes", key]))
    assert read["results"] == ["acknowledged"]


def test_a_write_that_waited_for_a_validated_read_is_done() -> None:
    """If it failed, the key would stay locked for ever: a transaction has given back the lock, not an atomic write."""
    cluster = settled(concurrency="optimistic", isolation="serializable")
    network, client = cluster.world.network, cluster.client
    key = key_in(0, 8, "notes")  # of n1 and n2
    assert answered(cluster, client.txn("c1", ["write", "notes", key, 5]))["type"] == "ok"
    late = network.stop([("c1", "n1")], ["finish"])
    read = client.txn("c1", ["read", "notes", key])
    cluster.run(20)
    assert cluster.node("n1").stock.locks.holders(("notes", key)), "the validated read has the lock"
    write = client.txn("n2", ["write", "notes", key, 6])
    cluster.run(20)
    network.go_on(late)
    cluster.run(5_000)
    assert read.type == "ok"
    told = [answered(cluster, client.txn(node, ["read", "notes", key])) for node in (*cluster.servers, "c1")]
    assert ([each["type"] for each in told], write.type) == (["ok"] * 4, "ok"), (told, write.answer)
