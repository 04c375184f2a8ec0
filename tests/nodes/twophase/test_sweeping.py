"""What nodes forget: transactions that no node can ask for, entries of the discovery log that no member lacks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.iproto.packing import pack, unpack
from nodes.kernel.errors import StartAgain
from nodes.twophase.agreed import ENDED_KEPT, Agreed
from nodes.twophase.configuration import Configuration
from nodes.twophase.kept import Kept
from nodes.twophase.sometimes import STATE_TAKEN, TRIMMED
from nodes.twophase.sweeping import State, Sweeping
from tests.nodes.twophase.virtual_cluster import SERVERS, VirtualCluster

SWEEPS_MS = 1_000
"""Time for more than three sweeps."""


def written(cluster: VirtualCluster, many: int) -> None:
    """So many transactions, some of which roll back, through all nodes."""
    nodes = (*cluster.servers, *cluster.clients)
    for number in range(many):
        steps: list[list[Any]] = [["write", "a", key, number] for key in (number % 7, 50 + number % 5)]
        if number % 5 == 0:
            steps.append(["cas", "a", 90, "never", number])
        cluster.client.txn(nodes[number % len(nodes)], *steps)
        cluster.run(4)


def remembered(cluster: VirtualCluster) -> int:
    """The transactions that nodes have not forgotten."""
    nodes = [cluster.node(name) for name in cluster.world.machines]
    return sum(len(node.stock.outcomes) + len(node.deciding.decided) for node in nodes)


@pytest.mark.parametrize("one_phase", [pytest.param(True, marks=pytest.mark.long), False])
def test_what_is_remembered_does_not_grow(one_phase: bool) -> None:
    """If it failed, a node would need more memory with each transaction."""
    cluster = VirtualCluster(1, clients=("c1",), one_phase=one_phase)
    cluster.settle()
    for many in (40, 160):
        written(cluster, many)
        assert remembered(cluster) > 0
        cluster.run(SWEEPS_MS)
        assert remembered(cluster) == 0


def test_the_discovery_log_does_not_grow() -> None:
    """If it failed, a node would need more memory with each cut."""
    cluster = VirtualCluster(2, clients=("c1",))
    cluster.settle()
    for number in range(80):
        cluster.client.ask("n1", "cut", f"k{number}")
        cluster.run(60)
    cluster.run(SWEEPS_MS)
    for name in SERVERS:
        log = cluster.node(name).discovery.log
        assert log.last_index > 150
        assert len(log.entries) < 20
        assert cluster.node(name).site.sometimes[TRIMMED] > 3


def test_ended_cuts_are_forgotten_from_the_oldest() -> None:
    """If it failed, a node would keep all cuts that there ever were, or forget one that runs."""
    cluster = VirtualCluster(3)
    cluster.settle()
    for number in range(ENDED_KEPT + 40):
        cluster.client.ask("n1", "cut", f"k{number}")
        cluster.run(40)
    cluster.run(SWEEPS_MS)
    cuts = cluster.node("n2").agreed.cuts
    assert list(cuts) == [f"k{number}" for number in range(40, ENDED_KEPT + 40)]
    asked = cluster.client.ask("n2", "cut", "more")
    cluster.run(200)
    assert asked.type == "ok"
    assert cuts["more"].named.number == 1 + max(
        cut.named.number for name, cut in cuts.items() if name != "more"
    )


@pytest.mark.parametrize("away", ["n3", "c1"])
def test_a_node_that_was_away_for_long_gets_the_state(away: str) -> None:
    """If it failed, a trimmed log would keep a node out of the cluster for ever."""
    cluster = VirtualCluster(4, clients=("c1",))
    cluster.settle()
    written(cluster, 20)
    cluster.machine(away).kill()
    cluster.run(1_000)
    for number in range(30):
        cluster.client.ask("n1", "cut", f"k{number}")
        cluster.run(50)
    cluster.run(SWEEPS_MS)
    cluster.machine(away).start()
    cluster.settle()
    assert cluster.node(away).site.sometimes[STATE_TAKEN] == 1
    assert cluster.node(away).agreed.to_state() == cluster.node("n1").agreed.to_state()
    cluster.machine(away).kill()
    cluster.run(50)
    cluster.machine(away).start()  # from its own state, if it is a server
    cluster.settle()
    written(cluster, 20)
    cluster.run(SWEEPS_MS)
    assert remembered(cluster) == 0


def test_a_cut_off_server_gets_the_state_in_its_next_life() -> None:
    """If it failed, a server that has left would go on as a member of a topology that is over."""
    cluster = VirtualCluster(5)
    cluster.settle()
    victim = next(name for name in SERVERS if name != cluster.coordinator())
    pairs = cluster.isolate(victim)
    for number in range(30):
        cluster.client.ask(cluster.coordinator(), "cut", f"k{number}")
        cluster.run(100)
    assert cluster.node(cluster.coordinator()).discovery.log.base > cluster.node(victim).discovery.delivered
    cluster.heal(pairs)
    cluster.settle()
    assert cluster.node(victim).site.life == 2
    assert cluster.node(victim).site.sometimes[STATE_TAKEN] == 1


def test_a_life_that_joined_and_left_unheard_ends() -> None:
    """If it failed, a client would never be ready: it would wait to join in a life that has left."""

    def restarted() -> VirtualCluster:
        cluster = VirtualCluster(3, clients=("c1",))
        cluster.settle()
        cluster.machine("c1").kill()
        cluster.machine("c1").start()
        return cluster

    cluster = restarted()
    cluster.settle()
    cluster.isolate("c1")
    coordinator = cluster.node(cluster.coordinator())
    cluster.run_until(lambda: coordinator.agreed.has_left("c1", 2))
    index, state = coordinator.discovery.delivered, coordinator.agreed.to_state()
    client = restarted().node("c1")
    assert not client.agreed.is_member("c1", 2)
    with pytest.raises(StartAgain, match="life 2 of c1 has left the cluster"):
        client.discovery.take("n1", 1, ["state", 0, 1, index, 1, state])


def test_what_a_server_that_is_away_may_ask_for_is_kept() -> None:
    """If it failed, a server in doubt would come back, and nobody would know how its transaction has ended."""
    cluster = VirtualCluster(6, one_phase=False)
    cluster.settle()
    written(cluster, 20)
    held = remembered(cluster) - _of(cluster, "n3")
    cluster.machine("n3").kill()
    cluster.run(1_000)
    assert "n3" not in cluster.node("n1").agreed.members
    cluster.run(SWEEPS_MS)
    assert cluster.node("n1").agreed.sweeps > 3
    assert _of(cluster, "n1") + _of(cluster, "n2") >= held > 0
    written(cluster, 40)
    cluster.run(SWEEPS_MS)
    assert _of(cluster, "n1") + _of(cluster, "n2") < held + 20  # those on the new topology are forgotten
    cluster.machine("n3").start()
    cluster.settle()
    cluster.run(SWEEPS_MS)
    assert remembered(cluster) == 0


def test_sweeps_of_before_a_restart_forget_nothing() -> None:
    """If it failed, a server would start, read old sweeps, and answer of a committed transaction that it knows none."""
    cluster = VirtualCluster(8, one_phase=False, backups=0, trim_entries=10_000)
    cluster.settle()
    cluster.run(SWEEPS_MS)
    assert cluster.node("n2").agreed.sweeps > 3
    written(cluster, 20)
    known = dict(cluster.node("n2").stock.outcomes.items())
    assert len(known) >= 10
    cluster.machine("n2").kill()
    cluster.machine("n2").start()
    cluster.run_until(lambda: cluster.node("n2").agreed.is_member("n2", 2))
    assert dict(cluster.node("n2").stock.outcomes.items()).items() >= known.items()


def _of(cluster: VirtualCluster, name: str) -> int:
    node = cluster.node(name)
    return len(node.stock.outcomes) + len(node.deciding.decided)


def test_the_state_is_whole() -> None:
    """If it failed, a node with a state would disagree with one that has heard all entries."""
    cluster = VirtualCluster(7, clients=("c1",))
    cluster.settle()
    written(cluster, 10)
    for word, name in (("cut", "k"), ("snapshot", "s"), ("cut", "l")):
        cluster.client.ask("n2", word, name)
    cluster.run(300)
    agreed = cluster.node("n1").agreed
    state: Any = unpack(pack(agreed.to_state()))
    loaded = Agreed(agreed.configuration)
    loaded.load(state)
    assert loaded.to_state() == agreed.to_state() == state
    entries: list[list[Any]] = [["cut", "m", "n1"], ["left", "n3", 1], ["join", "n3", 2, "server"]]
    for index, entry in enumerate(entries, 1_000):
        assert loaded.apply(index, entry) == agreed.apply(index, entry)
    assert loaded.to_state() == agreed.to_state()


class OneMember:
    """The sweeps of one node. The test says which transactions are open, and notes outcomes."""

    def __init__(self) -> None:
        self.agreed = Agreed(Configuration(name="n1", baseline=("n1",), backups=0))
        self.open: set[str] = set()
        self.outcomes: Kept[bool] = Kept()
        self.trimmed: list[tuple[int, State]] = []
        self.sweeping = Sweeping(
            self.agreed,
            self.open.copy,
            lambda: (self.outcomes,),
            lambda *trimmed: self.trimmed.append(trimmed),
        )

    def join(self, index: int) -> None:
        self.agreed.apply(index, ["join", "n1", index, "server"])
        self.sweeping.begin_anew()

    def sweep(self, index: int) -> None:
        assert self.agreed.apply(index, ["sweep", self.agreed.version, self.agreed.sweeps + 1]).is_sweep
        self.sweeping.delivered(index)


@pytest.fixture
def member() -> OneMember:
    member = OneMember()
    member.join(1)
    return member


def test_a_sweep_is_over_when_the_transactions_that_were_open_have_ended(member: OneMember) -> None:
    """If it failed, an outcome would be dropped while a node may ask for it, or sweeps would never be over."""
    member.open.update(("t1", "t2"))
    member.sweep(2)
    member.open.remove("t1")
    member.open.add("later")
    assert member.sweeping.over() == [1, 0]
    member.open.remove("t2")
    assert member.sweeping.over() == [1, 1]
    member.open.add("t1")
    assert member.sweeping.over() == [1, 1], "a sweep that is over was taken back"


def test_a_new_topology_waits_for_no_transaction_of_an_earlier_sweep(member: OneMember) -> None:
    """If it failed, a node would report one sweep too few on the new topology."""
    member.open.add("t1")
    member.sweep(2)
    member.join(3)
    assert member.sweeping.over() == [3, 0]


def test_a_new_topology_counts_no_earlier_sweep_of_an_outcome(member: OneMember) -> None:
    """If it failed, an outcome would be dropped before three sweeps on one topology."""
    member.outcomes.note("t1", True, member.agreed.version)
    member.sweep(2)
    member.sweep(3)
    member.join(4)
    member.sweep(5)
    member.sweep(6)
    assert "t1" in member.outcomes
    member.sweep(7)
    assert "t1" not in member.outcomes


def test_the_log_is_trimmed_at_the_last_sweep_on_this_topology(member: OneMember) -> None:
    """If it failed, the log would lack entries that a member needs, or have the state of another place."""
    member.sweep(2)
    at_2 = member.agreed.to_state()
    assert member.trimmed == []
    member.sweep(3)
    assert member.trimmed == [(2, at_2)]
    member.join(4)
    member.sweep(5)
    assert member.trimmed == [(2, at_2)], "the sweep at 3 was on an earlier topology"
    at_5 = member.agreed.to_state()
    member.sweep(6)
    assert member.trimmed[1:] == [(5, at_5)]


@dataclass
class Plain:
    """The obvious way: each transaction with the sweeps since it was noted."""

    rows: list[list[Any]] = field(default_factory=list)

    def note(self, xid: str, version: int) -> None:
        if all(row[0] != xid for row in self.rows):
            self.rows.append([xid, version, 0])

    def sweep(self, version: int, is_whole: bool) -> None:
        for row in self.rows:
            row[2] += 1
        self.rows = [row for row in self.rows if row[2] < 3 or not (is_whole or row[1] == version)]

    def begin_anew(self) -> None:
        for row in self.rows:
            row[2] = 0


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("note"), st.sampled_from("abcdef"), st.integers(0, 2)),
        st.tuples(st.just("sweep"), st.integers(1, 2), st.booleans()),
        st.tuples(st.just("anew")),
    ),
    max_size=40,
)


@given(STEPS)
def test_three_sweeps_forget(steps: list[tuple[Any, ...]]) -> None:
    """If it failed, a transaction would be forgotten too soon, or never."""
    kept: Kept[int] = Kept()
    plain = Plain()
    for step in steps:
        match step:
            case ("note", xid, version):
                kept.note(xid, version, version)
                plain.note(xid, version)
            case ("sweep", version, is_whole):
                kept.sweep(version, is_whole)
                plain.sweep(version, is_whole)
            case _:
                kept.begin_anew()
                plain.begin_anew()
        assert dict(kept.items()) == {xid: version for xid, version, _ in plain.rows}
        assert len(kept) == len(plain.rows)
        assert all(xid in kept and kept.get(xid) == version for xid, version, _ in plain.rows)
