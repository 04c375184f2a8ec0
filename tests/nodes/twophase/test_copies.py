"""Full copies of partitions: one that comes too late, or counts twice, costs no acknowledged write."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.twophase.agreed import Agreed
from nodes.twophase.configuration import MILLISECOND
from nodes.twophase.sometimes import COPY_TOO_LATE
from tests.nodes.twophase.virtual_cluster import VirtualCluster, answered, key_in, settled

FIVE = ("n1", "n2", "n3", "n4", "n5")


def prepared_only(cluster: VirtualCluster, key: int, *servers: str) -> str:
    """The xid of a write of "old" that these have prepared. The first, the primary, dies; the near node c1 lives."""
    network = cluster.world.network
    alone = servers[0]
    others = [server for server in cluster.servers if server not in servers]
    network.stop([(alone, server) for server in others], ["backup-prepare"])
    cluster.client.txn("c1", ["write", "r", key, "old"])

    def has_prepared(server: str) -> bool:
        return any(local.prepared for local in cluster.node(server).stock.locals.values())

    while not all(map(has_prepared, servers)):
        assert cluster.world.agenda.advance()
    (xid,) = cluster.node(alone).stock.locals
    network.cut([("c1", alone)])
    network.stop([("c1", server) for server in cluster.servers], ["finish"])
    cluster.machine(alone).kill()
    return xid


def test_a_full_copy_takes_the_place_of_what_was_prepared() -> None:
    """If it failed, a server would commit the old transaction once it is the only one in sync (seed 94004545)."""
    cluster = settled(one_phase=False)
    keeper = cluster.coordinator()
    agreed = cluster.node(keeper).agreed
    late, partition = next(
        (owners[0], each) for each in range(8) if keeper not in (owners := agreed.owners(each))
    )
    source = agreed.owners(partition)[1]
    key = key_in(partition, 8)
    xid = prepared_only(cluster, key, late)
    cluster.run_until(lambda: agreed.in_sync[partition] == [source])
    assert answered(cluster, cluster.client.txn(keeper, ["write", "r", key, "new"]))["type"] == "ok"
    cluster.machine(late).start()
    cluster.run_until(lambda: late in agreed.in_sync[partition])
    assert xid in cluster.node(late).recovery.doubts, "the near node lives and cannot answer"
    assert cluster.replayed(late).locals[xid].replaced == {partition}
    cluster.machine(source).kill()
    cluster.run_until(lambda: agreed.in_sync[partition] == [late])
    cluster.machine("c1").kill()
    cluster.run_until(lambda: agreed.resolved.get(xid) is not None and not cluster.node(late).stock.locals)
    stock = cluster.replayed(late)
    assert (stock.data.get(("r", key))[0], stock.outcomes.get(xid)) == ("new", False)


def test_a_full_copy_decides_nothing_alone() -> None:
    """If it failed, a server would call a transaction rolled back that the log commits later."""
    cluster = settled(one_phase=False, backups=2)
    last = cluster.coordinator()
    agreed = cluster.node(last).agreed
    partition, (late, source, _) = next(
        (each, owners) for each in range(8) if (owners := agreed.owners(each))[2] == last
    )
    key = key_in(partition, 8)
    xid = prepared_only(cluster, key, late, last)
    cluster.run_until(lambda: agreed.in_sync[partition] == [source, last])
    stop = cluster.world.network.stop([(late, last)], ["propose"])
    cluster.machine(late).start()
    cluster.run_until(lambda: bool(cluster.node(late).recovery.doubts[xid].local.replaced))
    cluster.machine(source).kill()
    cluster.run_until(lambda: agreed.in_sync[partition] == [last])
    cluster.machine("c1").kill()
    cluster.run_until(lambda: agreed.resolved.get(xid) is True)
    cluster.world.network.go_on(stop)
    cluster.run_until(lambda: late in agreed.in_sync[partition])
    for server in (late, last):
        stock = cluster.replayed(server)
        assert (stock.data.get(("r", key))[0], stock.outcomes.get(xid)) == ("old", True)


@pytest.mark.parametrize("other_stays", [True, False], ids=["in sync by then", "primary once more"])
def test_a_copy_that_was_on_its_way_for_long_counts_no_more(other_stays: bool) -> None:
    """If it failed, an acknowledged write would be lost: overwritten by the old rows, or not in a copy that counts."""
    cluster = settled(servers=FIVE, backups=2)
    keeper = cluster.coordinator()
    agreed, network = cluster.node(keeper).agreed, cluster.world.network
    partition, (other, source, late) = next(
        (each, owners) for each in range(8) if keeper not in (owners := agreed.owners(each))
    )
    key = key_in(partition, 8)
    for name in (other, late):
        cluster.machine(name).kill()
    cluster.run_until(lambda: agreed.in_sync[partition] == [source])
    held = network.stop([(source, late)], ["copy"])
    cluster.machine(late).start()
    cluster.run_until(lambda: held.stopped > 0)
    if not other_stays:
        network.stop([(other, late)], ["copy"])
    cluster.machine(other).start()
    in_sync = [other, source, late] if other_stays else [other, source]
    cluster.run_until(lambda: agreed.in_sync[partition] == in_sync)
    assert answered(cluster, cluster.client.txn(keeper, ["write", "r", key, "new"]))["type"] == "ok"
    if not other_stays:
        cluster.machine(other).kill()
        cluster.run_until(lambda: agreed.in_sync[partition] == [source])
    network.go_on(held)
    cluster.run_until(lambda: late in agreed.in_sync[partition])
    cluster.run(500)
    assert cluster.node(late).stock.data.get(("r", key))[0] == "new"
    assert cluster.count_living()[COPY_TOO_LATE] > 0


def test_an_entry_counts_only_if_its_source_was_the_primary_all_the_time() -> None:
    """If it failed, the owner would be in sync without what a different primary has committed meanwhile."""
    cluster = settled(backups=2)
    source = cluster.coordinator()
    agreed, network = cluster.node(source).agreed, cluster.world.network
    partition, (late, other, _) = next(
        (each, owners) for each in range(8) if (owners := agreed.owners(each))[2] == source
    )
    key = key_in(partition, 8)
    cluster.machine(other).kill()
    cluster.run_until(lambda: agreed.in_sync[partition] == [late, source])
    unsaid = network.stop([(late, source)], ["propose"])
    network.stop([(late, other)], ["copy?"])
    cluster.machine(late).kill()
    cluster.machine(late).start()
    cluster.run_until(lambda: unsaid.stopped > 0)
    cluster.machine(other).start()
    cluster.run_until(lambda: agreed.in_sync[partition] == [other, source])
    assert answered(cluster, cluster.client.txn(source, ["write", "r", key, "new"]))["type"] == "ok"
    network.stop([(source, other)], ["copy"])
    cluster.machine(other).kill()
    cluster.machine(other).start()
    cluster.run_until(lambda: agreed.in_sync[partition] == [source])
    assert agreed.is_member(late, 2), "the copy, its source and its receiver are those of the entry"
    network.go_on(unsaid)
    cluster.run_until(lambda: late in agreed.in_sync[partition])
    assert cluster.node(late).stock.data.get(("r", key))[0] == "new"


def test_an_entry_that_comes_twice_does_not_end_a_later_copy() -> None:
    """If it failed, the source would let a client write while the copy without that write is on its way."""
    servers = FIVE[:4]
    cluster = settled(servers=servers, partitions=4, backups=2, one_phase=False)
    coordinator = cluster.coordinator()
    agreed, network = cluster.node(coordinator).agreed, cluster.world.network
    at = servers.index(coordinator)
    other, source, late = (servers[(at + each) % 4] for each in (1, 2, 3))
    partition = servers.index(other)
    assert agreed.owners(partition) == [other, source, late]
    log = cluster.node(coordinator).discovery.log

    def entries() -> int:
        """About copies of this source."""
        return sum(entry[0] == "rebalanced" and entry[3] == source for _, entry in log.behind(log.base))

    def advance_until(holds: Any) -> None:
        while not holds():
            assert cluster.world.agenda.advance()

    network.stop([(other, late)], ["copy"])
    network.stop([(other, source)], ["copy?"])
    cluster.machine(late).kill()
    cluster.machine(late).start()
    advance_until(entries)
    deaf = network.stop([(coordinator, late)], ["append"])  # so it proposes the entry once more
    cluster.machine(other).kill()
    cluster.machine(other).start()
    at_source = cluster.node(source)
    advance_until(lambda: at_source.agreed.is_member(other, 2))
    before = entries()
    slow = network.stop([(coordinator, source)], ["append"])
    advance_until(lambda: entries() > before)
    network.go_on(deaf)
    advance_until(lambda: partition in at_source.preparing.copying)
    unsaid = network.stop([(late, coordinator)], ["propose"])
    cluster.run(5)
    network.go_on(slow)
    cluster.run(10)
    assert agreed.in_sync[partition] == [source]
    key = key_in(partition, 4)
    told = answered(cluster, cluster.client.txn(coordinator, ["write", "r", key, "new"]))
    assert told["type"] == "fail" and "copied" in told["error"], told
    network.go_on(unsaid)
    cluster.run_until(lambda: agreed.in_sync[partition] == [source, late])


def test_a_copy_of_a_former_life_ends_no_request_to_the_next_one() -> None:
    """If it failed, two copies would be on their way: one replaces what was written since, or keeps all from writing.

    The record of the first copy is slow. Its source starts again meanwhile, and is asked once more.
    """
    slow = {"beat_ns": 100 * MILLISECOND, "leave_ns": 3_000 * MILLISECOND, "election_ns": 600 * MILLISECOND}
    cluster = settled(servers=FIVE, partitions=5, **slow)
    network, coordinator = cluster.world.network, cluster.coordinator()
    agreed = cluster.node(coordinator).agreed
    at = FIVE.index(coordinator)
    source, late, other = (FIVE[(at + each) % 5] for each in (1, 2, 3))
    partition = FIVE.index(source)  # owners: source, late
    machine = cluster.machine(late)
    machine.kill()
    cluster.run_until(lambda: agreed.in_sync[partition] == [source])
    cluster.run(100)
    network.stop([(other, late), (coordinator, source)], ["copy"])  # of their other partitions
    machine.start()
    machine.records.hold("rebalanced")
    cluster.run_until(lambda: cluster.node(late).rebalance._asked.get(source) is not None)
    cluster.run(10)
    assert partition in cluster.node(source).preparing.copying
    copies = network.stop([(source, late)], ["copy"])
    entry = network.stop([(late, coordinator)], ["propose"])
    cluster.machine(source).kill()
    cluster.machine(source).start()
    cluster.run_until(lambda: cluster.node(late).rebalance._asked.get(source, (0,))[0] == 2, 400)
    cluster.run_until(lambda: cluster.node(late).agreed.version == agreed.version, 400)
    cluster.run(20)
    machine.records.release("rebalanced")
    cluster.run_until(lambda: copies.stopped > 0, 400)
    cluster.run(50)
    assert entry.stopped == 0
    for stop in (copies, entry):
        network.go_on(stop)
    cluster.run_until(lambda: late in agreed.in_sync[partition])


def test_a_copy_tells_of_no_rollback() -> None:
    """If it failed, the source of a copy would decide for its receiver, and the log would decide otherwise.

    `s` alone hears of the rollback, and leaves. It comes back as the only owner in sync of a partition that the
    transaction does not write; recovery does not ask it, and commits. Meanwhile `n` gets a copy of that partition.
    """
    # Partition i: owners FIVE[i], FIVE[i + 1].
    cluster = settled(servers=FIVE, partitions=5, prepare_ns=300_000_000)
    coordinator = cluster.coordinator()
    agreed, network = cluster.node(coordinator).agreed, cluster.world.network
    at = FIVE.index(coordinator)
    q, n, s, b = (FIVE[(at + each) % 5] for each in (1, 2, 3, 4))
    of_q, of_n, of_s = map(FIVE.index, (q, n, s))
    cluster.machine(n).kill()
    cluster.run_until(lambda: agreed.in_sync[of_n] == [s])
    asks = network.stop([(n, s)], ["copy?"])
    cluster.machine(n).start()
    cluster.run_until(lambda: agreed.in_sync[of_q] == [q, n])
    cluster.run(100)
    network.stop([(q, "c1")], ["prepared"])
    network.stop([("c1", q)], ["finish"])
    network.stop([(s, b)], ["backup-finish"])
    cluster.client.txn("c1", *[["append", "r", key_in(partition, 5), "T"] for partition in (of_q, of_s)])
    cluster.run_until(lambda: len(cluster.node(s).stock.outcomes) > 0)
    ((xid, commits),) = cluster.node(s).stock.outcomes.items()
    assert not commits
    checked = network.stop([(b, q), (b, n), (q, b), (n, b)], ["checked"])
    cluster.machine("c1").kill()
    cluster.machine(s).kill()
    cluster.run_until(lambda: not {"c1", s} & agreed.members.keys())
    cluster.machine(s).start()
    cluster.run_until(lambda: agreed.primary(of_n) == s)
    cluster.run(100)
    network.stop([(n, coordinator)], ["propose"])
    network.go_on(asks)
    cluster.run_until(lambda: bool(cluster.replayed(n).is_flagged and cluster.node(n).rebalance._entries))
    network.go_on(checked)
    cluster.run_until(lambda: agreed.resolved.get(xid) is True)
    cluster.run(500)
    assert [cluster.replayed(server).outcomes.get(xid) for server in (q, n, b)] == [True] * 3


def test_a_copy_waits_for_the_topology_of_its_source() -> None:
    """If it failed, a node would end: a copy says that a transaction is committed, and a rollback comes of its near
    node, which has left. The receiver of both lags behind the discovery log."""
    cluster = settled(servers=FIVE, partitions=5, backups=2, one_phase=False, prepare_ns=10_000_000_000)
    client, network = cluster.client, cluster.world.network
    coordinator = cluster.coordinator()
    agreed = cluster.node(coordinator).agreed
    at = FIVE.index(coordinator)
    q, s, p = (FIVE[(at + each) % 5] for each in (1, 2, 3))
    of_q = FIVE.index(q)
    assert agreed.in_sync[of_q] == agreed.owners(of_q)
    network.stop([(q, "c1")], ["prepared"])
    network.stop([("c1", s)], ["finish", "outcome"])
    late = network.stop([("c1", p)], ["finish", "outcome"])
    client.txn("c1", ["write", "r", key_in(of_q, 5), "T"])
    cluster.run(50)
    (xid,) = cluster.node(q).stock.locals
    assert all(cluster.replayed(server).locals for server in (q, s, p))
    cluster.machine(p).kill()
    cluster.machine(p).start()
    cluster.run_until(lambda: agreed.is_member(p, 2))
    cluster.machine(q).kill()
    cluster.run_until(lambda: agreed.in_sync[of_q] == [s])
    cluster.run_until(lambda: cluster.node("c1").deciding.decided.get(xid) is not None)
    cluster.run(100)
    assert xid in cluster.node(p).recovery.doubts
    network.cut([("c1", coordinator), (coordinator, "c1")])
    cluster.run(400)
    cluster.machine(p).records.hold("committed")
    deaf = network.stop([(coordinator, p)], ["append"])
    cluster.run_until(lambda: agreed.resolved.get(xid) is True, 500)
    cluster.run(50)
    assert cluster.node(p).agreed.life_of("c1") and p in agreed.members
    network.go_on(late)
    cluster.run(20)
    assert not cluster.crashes
    network.go_on(deaf)
    cluster.machine(p).records.release("committed")
    cluster.run_until(lambda: p in agreed.in_sync[of_q])
    assert cluster.node(p).stock.data.get(("r", key_in(of_q, 5)))[0] == "T"


def test_no_owner_serves_before_all_owners_in_sync_are_members() -> None:
    """If it failed, an owner that joins later would be the primary without what was committed before."""
    agreed = Agreed(settled().configurations["n1"])
    partition = next(p for p in range(8) if agreed.owners(p) == ["n1", "n2"])
    agreed.apply(1, ["join", "n2", 1, "server"])
    assert agreed.primary(partition) is None
    agreed.apply(2, ["join", "n1", 1, "server"])
    assert agreed.primary(partition) == "n1"
