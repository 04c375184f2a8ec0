"""Discovery: one order for all nodes, by a majority, over crashes."""

from __future__ import annotations

import random

import pytest

from nodes.twophase.agreed import Entry
from nodes.twophase.configuration import MILLISECOND
from nodes.twophase.node import TwoPhase
from nodes.twophase.sometimes import STATE_TAKEN
from tests.nodes.twophase.virtual_cluster import SERVERS, VirtualCluster


class Deliveries:
    """What each life of each node has delivered: the entries by their indices."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.by_life: dict[tuple[str, int], dict[int, Entry]] = {}
        deliver = TwoPhase._deliver

        def noted(node: TwoPhase, index: int, entry: Entry) -> None:
            delivered = self.by_life.setdefault((node.site.name, node.site.life), {})
            begins = (
                index == 1 or node.discovery.log.base == index - 1 or node.site.sometimes.get(STATE_TAKEN)
            )
            assert begins or index - 1 in delivered, index
            delivered[index] = entry
            deliver(node, index, entry)

        monkeypatch.setattr(TwoPhase, "_deliver", noted)

    def check_one_order(self) -> None:
        one: dict[int, Entry] = {}
        for life, delivered in self.by_life.items():
            assert list(delivered) == sorted(delivered), life
            for index, entry in delivered.items():
                assert one.setdefault(index, entry) == entry, (life, index)


@pytest.fixture
def deliveries(monkeypatch: pytest.MonkeyPatch) -> Deliveries:
    return Deliveries(monkeypatch)


@pytest.mark.parametrize("servers", [("n1",), SERVERS, ("n1", "n2", "n3", "n4", "n5")])
def test_all_nodes_join(servers: tuple[str, ...], deliveries: Deliveries) -> None:
    """If it failed, a cluster of this size would never serve."""
    cluster = VirtualCluster(1, servers=servers, clients=("c1", "c2"), backups=min(1, len(servers) - 1))
    cluster.settle()
    assert len(cluster.node("c2").agreed.members) == len(servers) + 2
    deliveries.check_one_order()


def test_a_server_that_never_comes_is_left_out() -> None:
    """If it failed, a cluster could not begin without one of its servers."""
    cluster = VirtualCluster(1)
    cluster.machine("n3").kill()
    cluster.run(3_000)
    agreed = cluster.node("n1").agreed
    assert sorted(agreed.members) == ["n1", "n2"]
    assert all(agreed.primary(partition) for partition in range(8))
    cluster.machine("n3").start()
    cluster.settle()


def test_a_minority_agrees_on_nothing(deliveries: Deliveries) -> None:
    """If it failed, two halves of a cluster would go different ways."""
    cluster = VirtualCluster(2)
    cluster.settle()
    minority = cluster.coordinator()
    cluster.isolate(minority)
    before = cluster.node(minority).discovery.delivered
    asked = cluster.client.ask(minority, "cut", "k1")
    cluster.run(3_000)
    assert asked.answer is None
    assert cluster.node(minority).discovery.delivered == before
    deliveries.check_one_order()


def test_a_deposed_coordinator_teaches_clients_what_is_committed_alone(deliveries: Deliveries) -> None:
    """If it failed, a client would believe in members of which no majority knows, and stay behind for good."""
    cluster = VirtualCluster(2, clients=("c1",))
    cluster.settle()
    deposed = cluster.coordinator()
    pairs = cluster.isolate(deposed)
    to_client = [pair for pair in pairs if "c1" in pair]
    cluster.heal(to_client)
    for number in range(40):
        cluster.client.ask(deposed, "cut", f"k{number}")
    cluster.run(3_000)
    assert cluster.node(deposed).discovery.role == "coordinator", "it knows that it was deposed"
    assert cluster.node("c1").discovery.committed > cluster.node(deposed).discovery.committed
    deliveries.check_one_order()
    cluster.heal([pair for pair in pairs if pair not in to_client])
    cluster.settle()
    deliveries.check_one_order()


def test_a_server_that_was_dropped_starts_again(deliveries: Deliveries) -> None:
    """If it failed, an isolated server would come back with old data and serve it."""
    cluster = VirtualCluster(3)
    cluster.settle()
    victim = next(name for name in SERVERS if name != cluster.coordinator())
    pairs = cluster.isolate(victim)
    cluster.run(2_000)
    assert victim not in cluster.node(cluster.coordinator()).agreed.members
    assert cluster.machine(victim).state == "up"
    cluster.heal(pairs)
    cluster.run(1_000)
    assert cluster.crashes == []
    cluster.settle()
    assert cluster.node(victim).site.life == 2
    deliveries.check_one_order()


@pytest.mark.parametrize("seed", range(5))
def test_a_server_that_was_cut_off_deposes_no_coordinator(seed: int) -> None:
    """If it failed, the end of a partition would leave the cluster without a coordinator for one election or more."""
    cluster = VirtualCluster(seed)
    cluster.settle()
    coordinator = cluster.coordinator()
    term = cluster.node(coordinator).discovery.log.term
    pairs = cluster.isolate(next(name for name in SERVERS if name != coordinator))
    cluster.run(3_000)
    cluster.heal(pairs)
    cluster.settle()
    assert cluster.coordinator() == coordinator
    assert cluster.node(coordinator).discovery.log.term == term


@pytest.mark.parametrize("seed", range(5))
def test_the_silence_of_a_dead_coordinator_counts_from_its_last_message(seed: int) -> None:
    """If it failed, its partitions would wait for an election, and then for the whole time of a silent node."""
    cluster = VirtualCluster(seed, servers=("n1", "n2", "n3", "n4", "n5"))
    cluster.settle()
    dead = cluster.coordinator()
    other = next(name for name in SERVERS if name != dead)
    cluster.machine(dead).kill()
    agenda = cluster.world.agenda
    due_ns = agenda.now_ns + cluster.configurations[other].leave_ns
    cluster.run_until(lambda: cluster.node(other).discovery.coordinator not in (dead, None))
    assert dead in cluster.node(other).agreed.members
    cluster.run(max(0, due_ns - agenda.now_ns) / MILLISECOND + 150)
    assert dead not in cluster.node(other).agreed.members


def disturbed(seed: int) -> VirtualCluster:
    """Kills, power losses, pauses and partitions, one upon the other; then quiet."""
    chance = random.Random(seed)
    cluster = VirtualCluster(
        seed, servers=("n1", "n2", "n3", "n4", "n5")[: chance.choice((3, 5))], clients=("c1",)
    )
    cuts = 0
    held: list[list[tuple[str, str]]] = []
    for _ in range(25):
        name = chance.choice(sorted(cluster.world.machines))
        machine = cluster.machine(name)
        match chance.choice(("kill", "power", "isolate", "heal", "cut", "cut", "pause")):
            case "kill" if machine.state != "down":
                machine.kill()
            case "power" if machine.state != "down":
                machine.lose_power()
            case "isolate":
                held.append(cluster.isolate(name))
            case "heal" if held:
                cluster.heal(held.pop(0))
            case "cut" if machine.state == "up":
                cuts += 1
                cluster.client.ask(name, "cut", f"k{cuts}")
            case "pause" if machine.state == "up":
                machine.pause()
        cluster.run(chance.choice((5, 100, 700)))
        for each in cluster.world.machines.values():
            if each.state == "paused" and chance.random() < 0.5:
                each.resume()
            elif each.state == "down" and chance.random() < 0.5:
                each.start()
        cluster.crashes.clear()
    for pairs in held:
        cluster.heal(pairs)
    for each in cluster.world.machines.values():
        if each.state == "paused":
            each.resume()
        if each.state == "down":
            each.start()
    cluster.settle(within_ms=30_000)
    return cluster


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (0, 2))])
def test_one_order_under_faults(seed: int, deliveries: Deliveries) -> None:
    """If it failed, nodes would disagree on members, owners or cuts."""
    cluster = disturbed(seed)
    cluster.run_until(lambda: len({status["delivered"] for status in cluster.statuses().values()}) == 1)
    deliveries.check_one_order()
    states = {
        repr((agreed.version, sorted(agreed.members.items()), agreed.in_sync, list(agreed.cuts.values())))
        for agreed in (cluster.node(name).agreed for name in cluster.world.machines)
    }
    assert len(states) == 1
    assert any(life > 1 for _, life in deliveries.by_life)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_one_order_under_faults_often(seed: int, deliveries: Deliveries) -> None:
    """As above, with more schedules."""
    test_one_order_under_faults(seed, deliveries)
