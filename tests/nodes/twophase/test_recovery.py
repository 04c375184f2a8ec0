"""Recovery commits only what no participant has refused, and believes no answer that is old."""

from __future__ import annotations

from zlib import crc32

import pytest

from nodes.twophase.sometimes import CHECK_WAITED
from nodes.twophase.stock import Local
from tests.nodes.twophase.test_copies import FIVE
from tests.nodes.twophase.virtual_cluster import VirtualCluster, answered, key_in, key_of, settled


def test_a_transaction_that_has_failed_its_validation() -> None:
    """If it failed, two transactions would write, each on the condition that the other one does not."""
    cluster = settled(concurrency="optimistic", isolation="serializable")
    x, y = key_of(cluster, "n1"), key_of(cluster, "n3")
    network = cluster.world.network
    late = network.stop([("c1", "n1"), ("c1", "n3")], ["prepare"])
    cluster.client.txn("c1", ["cas", "r", x, None, None], ["insert", "r", y, "c1's"])
    cluster.run(50)  # it has read both keys
    asked = cluster.client.txn("n2", ["cas", "r", y, None, None], ["insert", "r", x, "n2's"])
    assert answered(cluster, asked)["type"] == "ok"
    stop = network.stop([("c1", server) for server in cluster.servers], ["finish"])
    network.go_on(late)
    cluster.run(20)
    assert any(local.prepared for local in cluster.node("n3").stock.locals.values()), "its write is prepared"
    cluster.machine("c1").kill()
    cluster.run(2_000)
    network.go_on(stop)
    cluster.machine("c1").start()
    cluster.settle()
    both = answered(cluster, cluster.client.txn("n2", ["read", "r", x], ["read", "r", y]))["results"]
    assert both == ["n2's", None]


def test_a_transaction_that_has_lost_a_lock() -> None:
    """If it failed, recovery would commit a transaction though a key that it has read was written since.

    The near node leaves. The server of `x` lets go of the lock, and serves "second". The server of `y` hears of it
    later, serves "third", and lets the first transaction prepare.
    """
    cluster = settled(servers=FIVE, backups=0)
    client, network = cluster.client, cluster.world.network
    coordinator = cluster.coordinator()
    one, two = [name for name in FIVE if name != coordinator][:2]
    x, y = sorted((key_of(cluster, one), key_of(cluster, two)), key=str)
    of_x, of_y = (one, two) if x == key_of(cluster, one) else (two, one)
    network.cut([("c1", coordinator), (coordinator, "c1")])
    cluster.run(400)
    lock = network.stop([("c1", of_y)], ["lock"])
    first = client.txn("c1", ["cas", "r", x, None, None], ["append", "r", y, "first"])
    cluster.run(100)
    late = network.stop([(coordinator, of_y)], ["append"])
    cluster.run_until(lambda: not cluster.node(of_x).agreed.life_of("c1"))
    assert cluster.node(of_y).agreed.life_of("c1")
    assert answered(cluster, client.txn(coordinator, ["write", "r", x, "second"]))["type"] == "ok"
    assert answered(cluster, client.txn(of_y, ["append", "r", y, "third"]))["type"] == "ok"
    network.stop([("c1", of_y)], ["finish"])
    network.go_on(lock)
    cluster.run_until(lambda: any(local.prepared for local in cluster.node(of_y).stock.locals.values()), 300)
    cluster.machine("c1").kill()
    network.go_on(late)
    cluster.run(1_000)
    assert first.answer is None
    found = answered(cluster, client.txn(coordinator, ["read", "r", x], ["read", "r", y]))["results"]
    assert found == ["second", ["third"]]


@pytest.mark.parametrize("concurrency", ["pessimistic", "optimistic"])
def test_a_transaction_of_a_primary_that_has_left_and_does_not_know_it(concurrency: str) -> None:
    """If it failed, recovery would commit a transaction that has read what was replaced, and acknowledged, before.

    `p` is the primary of `x`, and the only owner in sync of `y`. It is cut off from the coordinator, like c1, and both
    leave. Its backup serves a write of `x`. Then c1 begins a transaction, and `p` prepares it.
    """
    # Partition i: FIVE[i], FIVE[i + 1].
    cluster = settled(servers=FIVE, partitions=5, concurrency=concurrency)
    client, network = cluster.client, cluster.world.network
    coordinator = cluster.coordinator()
    agreed = cluster.node(coordinator).agreed
    at = FIVE.index(coordinator)
    z, p, b = (FIVE[(at + each) % 5] for each in (1, 2, 3))
    of_z, of_p = map(FIVE.index, (z, p))
    y, x = key_in(of_z, 5), key_in(of_p, 5)
    cluster.machine(z).kill()
    cluster.run_until(lambda: agreed.in_sync[of_z] == [p])
    cluster.run(100)
    away = [(p, coordinator), (coordinator, p), ("c1", coordinator), (coordinator, "c1")]
    network.cut(away)
    cluster.run_until(lambda: not {p, "c1"} & agreed.members.keys())
    assert agreed.primary(of_p) == b
    told = answered(cluster, client.txn(coordinator, ["write", "r", x, "second"]))
    assert told["type"] == "ok", told
    assert cluster.node("c1").agreed.life_of(p) and cluster.node(p).agreed.life_of("c1")
    network.stop([("c1", p)], ["finish"])
    first = client.txn("c1", ["cas", "r", x, None, None], ["append", "r", y, "first"])
    cluster.run_until(lambda: any(local.prepared for local in cluster.node(p).stock.locals.values()), 300)
    cluster.run(20)
    cluster.machine("c1").kill()
    cluster.machine(p).kill()
    network.heal(away, cluster.world.streams["heal"])
    cluster.machine(p).start()
    cluster.machine("c1").start()
    cluster.machine(z).start()
    cluster.settle()
    assert first.answer is None
    found = answered(cluster, client.txn("c1", ["read", "r", x], ["read", "r", y]))["results"]
    assert found == ["second", None]


def next_xid(cluster: VirtualCluster) -> str:
    """Of the next transaction of c1, which takes a lane other than that of copies."""
    while True:
        xid = f"c1-1-{cluster.node('c1').near._last + 1}"
        lanes = cluster.configurations["c1"].lanes
        if crc32(xid.encode()) % lanes != crc32(b"copy") % lanes:
            return xid
        assert answered(cluster, cluster.client.txn("c1", ["read", "r", 77]))


def test_an_answer_is_old_when_its_sender_has_got_a_copy() -> None:
    """If it failed, one transaction would write one key and not the other.

    `n` says that two partitions are prepared, and gets a copy of one of them, in which the transaction never was. The
    source of the copy leaves before it can say so, too.
    """
    cluster = settled(servers=FIVE, partitions=5)  # partition i: owners FIVE[i], FIVE[i + 1]
    client, network = cluster.client, cluster.world.network
    q = cluster.coordinator()
    at = FIVE.index(q)
    second, z, n, source = (FIVE[(at + each) % 5] for each in (1, 2, 3, 4))
    of_z, of_n, of_q = map(FIVE.index, (z, n, q))
    agreed = cluster.node(q).agreed
    cluster.machine(z).kill()
    cluster.run_until(lambda: agreed.in_sync[of_z] == [n])
    keys = [key_in(partition, 5) for partition in (of_z, of_n, of_q)]
    xid = next_xid(cluster)
    network.stop([(n, source)], ["backup-prepare"])
    client.txn("c1", *[["append", "r", key, "first"] for key in keys])

    def prepared(server: str) -> set[int]:
        return {each for local in cluster.node(server).stock.locals.values() for each in local.prepared}

    while not (prepared(n) == {of_z, of_n} and prepared(q) == prepared(second) == {of_q}):
        assert cluster.world.agenda.advance()
    network.stop([("c1", server) for server in FIVE], ["finish"])
    network.stop([(source, server) for server in FIVE], ["checked"])
    copies = network.stop([(source, n)], ["copy"])
    cluster.run(10)
    cluster.machine(n).kill()
    cluster.machine("c1").kill()
    cluster.run_until(lambda: agreed.primary(of_n) == source and "c1" not in agreed.members)
    cluster.run(100)
    assert answered(cluster, client.txn(q, ["append", "r", keys[1], "second"]))["type"] == "ok"
    cluster.machine(n).start()
    doubt = cluster.node(q).recovery.doubts[xid]
    cluster.run_until(lambda: (n, 2) in doubt.answers)
    network.go_on(copies)
    cluster.run_until(lambda: n in agreed.in_sync[of_n])
    cluster.machine(source).kill()
    cluster.run_until(lambda: xid in agreed.resolved)
    cluster.run(500)
    found = answered(cluster, client.txn(q, *[["read", "r", key] for key in keys]))["results"]
    assert found == [None, ["second"], None]


def test_an_answer_is_old_when_its_sender_has_learned_of_a_commit() -> None:
    """If it failed, a transaction that one server has committed would be rolled back by the others.

    `n` says that one partition is prepared, gets a copy of the other one, and with it the news that its source has
    committed. The source leaves before it can say so.
    """
    cluster = settled(servers=FIVE, partitions=5)
    client, network = cluster.client, cluster.world.network
    q = cluster.coordinator()
    at = FIVE.index(q)
    z, n, source = (FIVE[(at + each) % 5] for each in (2, 3, 4))
    of_z, of_n, of_q = map(FIVE.index, (z, n, q))
    agreed = cluster.node(q).agreed
    cluster.machine(n).kill()
    cluster.run_until(lambda: agreed.in_sync[of_n] == [source])
    asks = network.stop([(n, source)], ["copy?"])
    cluster.machine(n).start()
    cluster.run_until(lambda: agreed.in_sync[of_z] == [z, n])
    cluster.run(100)
    keys = [key_in(partition, 5) for partition in (of_z, of_n, of_q)]
    xid = next_xid(cluster)
    network.stop([("c1", server) for server in FIVE if server != source], ["finish"])
    network.stop([(source, server) for server in FIVE], ["checked"])
    client.txn("c1", *[["append", "r", key, "first"] for key in keys])
    cluster.run_until(lambda: cluster.node(source).stock.outcomes.get(xid) is True)
    cluster.machine("c1").kill()
    cluster.run_until(lambda: "c1" not in agreed.members)
    doubt = cluster.node(q).recovery.doubts[xid]
    cluster.run_until(lambda: (n, 2) in doubt.answers and (z, 1) in doubt.answers)
    network.go_on(asks)
    cluster.run_until(lambda: n in agreed.in_sync[of_n])
    cluster.machine(source).kill()
    cluster.run_until(lambda: xid in agreed.resolved)
    cluster.run(500)
    found = answered(cluster, client.txn(q, *[["read", "r", key] for key in keys]))["results"]
    assert found == [["first"]] * 3


def test_an_answer_that_comes_when_the_topology_is_newer_does_not_count() -> None:
    """If it failed, a question would be answered by a node that was no owner in sync when it looked."""
    cluster = settled()
    node = cluster.node("n2")
    recovery, version = node.recovery, node.agreed.version
    recovery.doubt(Local("x", "c1", cluster.node("c1").site.life, version))
    recovery.doubts["x"].begin_anew(version)
    recovery.take_checked("n3", 1, "x", version - 1, "absent", [])
    assert not recovery.doubts["x"].answers
    recovery.take_checked("n3", 1, "x", version, "absent", [])
    assert recovery.doubts["x"].answers


def test_a_rollback_ends_a_prepare_that_waits_for_the_topology() -> None:
    """If it failed, the prepare would be taken behind its rollback, and nothing would end it."""
    cluster = settled()
    node, near = cluster.node("n2"), cluster.node("c1").site
    for xid in ("rolled-back", "committed"):
        payload = [xid, node.agreed.version + 1, "r", key_of(cluster, "n2"), "lock"]
        node.dispatch.take(near.name, near.life, "lock", payload)
        node.dispatch.take(near.name, near.life, "finish", [xid, xid == "committed", None])
    assert [payload[0] for *_, payload in node.dispatch._held] == ["committed"]


def test_a_clear_for_a_former_takeover_does_not_count() -> None:
    """If it failed, a new primary would serve while a transaction of the former one is undecided."""
    cluster = settled()
    takeover, agreed = cluster.node("n2").takeover, cluster.node("n2").agreed
    partition = next(p for p in range(8) if agreed.owners(p) == ["n1", "n2"])
    agreed.in_sync[partition] = ["n2", "n3"]
    agreed.since[partition] += 1
    takeover.changed()
    takeover.take_clear("n3", agreed.since[partition] - 1, [partition])
    assert not takeover.is_over
    takeover.take_clear("n3", agreed.since[partition], [partition])
    assert takeover.is_over


def test_a_backup_says_that_it_has_committed_when_its_record_is_written() -> None:
    """If it failed, one partition of a one-phase commit would have it and the other one not.

    The backup takes a long step. It tells the primary, which has started again, that it has committed, and dies before
    it writes that down.
    """
    cluster = settled(servers=FIVE, partitions=5, step_ns=60_000_000)
    network, client = cluster.world.network, cluster.client
    coordinator = cluster.coordinator()
    at = FIVE.index(coordinator)
    z, primary, backup = (FIVE[(at + each) % 5] for each in (1, 2, 3))
    of_z, of_primary = map(FIVE.index, (z, primary))
    agreed = cluster.node(coordinator).agreed
    cluster.machine(z).kill()
    cluster.run_until(lambda: agreed.in_sync[of_z] == [primary])
    cluster.run(100)
    keys = [key_in(partition, 5) for partition in (of_z, of_primary)]
    network.cut([(primary, backup)])
    client.txn("c1", *[["append", "r", key, "T"] for key in keys])
    stock = cluster.node(primary).stock
    cluster.run_until(lambda: any(each.prepared and not each.unwritten for each in stock.locals.values()))
    (xid,) = stock.locals
    append = network.stop([(coordinator, backup)], ["append"])
    cluster.machine(primary).kill()
    cluster.machine(primary).start()
    cluster.run_until(
        lambda: (
            cluster.node(primary).agreed.is_member(primary, 2)
            and xid in cluster.node(primary).recovery.doubts
        )
    )
    cluster.run(120)
    network.heal([(primary, backup)], WithoutReset())
    while xid not in cluster.node(backup).stock.locals:
        assert cluster.world.agenda.advance()
    network.go_on(append)
    doubt = cluster.node(primary).recovery.doubts[xid]
    while (backup, 1) not in doubt.answers:
        assert cluster.world.agenda.advance()
    cluster.machine(backup).kill()
    cluster.run_until(lambda: xid in agreed.resolved)
    cluster.run(1_000)
    cluster.machine(backup).start()
    cluster.run(2_000)
    found = answered(cluster, client.txn(coordinator, *[["read", "r", key] for key in keys]))["results"]
    assert found[0] == found[1]
    assert cluster.count_living()[CHECK_WAITED] > 0


class WithoutReset:
    """Connections go on behind a cut."""

    def random(self) -> float:
        return 1.0
