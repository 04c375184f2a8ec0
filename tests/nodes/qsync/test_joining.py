"""Nodes that come without data: they join, at whatever moment something dies, and only confirmed data reaches them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nodes.iproto.messages import (
    Answer,
    Ballot,
    Join,
    JoinMeta,
    JoinSnapshot,
    RaftState,
    Refusal,
    Rows,
    Stage,
)
from nodes.kernel.effects import Connect, Effect, Persist
from nodes.kernel.events import Connected, ConnectFailed, Event, Instant, PersistFailed, Received, Started
from nodes.qsync.bootstrap import first_tuples, insert_row
from nodes.qsync.configuration import CLEANUP_DELAY_NS, Configuration, Identity
from nodes.qsync.joining import REPLICAS_MAX
from nodes.qsync.replica import Replica
from nodes.world.network import MILLISECOND
from tests.nodes.qsync.conversation import UUID, Conversation, configuration
from tests.nodes.qsync.virtual_cluster import NAMES, Asked, VirtualCluster, memory

JOINER = "n4"


def joiner(number: int = 4, **settings: object) -> Configuration:
    """A node that the others have never heard of."""
    base = configuration("n1", synchro_timeout_ns=200 * MILLISECOND, replication_timeout_ns=50 * MILLISECOND)
    me = Identity(id=0, name=JOINER, uuid=UUID.format(number))
    fields: dict[str, object] = {"name": JOINER, "members": (*base.members, me), "joins": True, **settings}
    return replace(base, **fields)  # type: ignore[arg-type]


def cluster_with(seed: int, conf: Configuration, **settings: object) -> VirtualCluster:
    cluster = VirtualCluster(seed, settings=settings, more=[conf])
    cluster.promote()
    return cluster


def write(cluster: VirtualCluster, *pairs: tuple[str, int], space: str = "register") -> Asked:
    statements = [("replace", space, pair) for pair in pairs]
    return cluster.client.ask("n1", "qsync.transaction", statements)


def written(cluster: VirtualCluster, *pairs: tuple[str, int], space: str = "register") -> None:
    asked = write(cluster, *pairs, space=space)
    cluster.run(100)
    assert isinstance(asked.reply, Answer), asked


def same_everywhere(cluster: VirtualCluster, *names: str) -> None:
    first = memory(cluster.node("n1"))
    for name in names:
        assert memory(cluster.node(name)) == first, name
        assert memory(cluster.replayed(name)) == first, name


@pytest.mark.parametrize(
    "seed",
    [
        *(0, 1, 5),
        *(pytest.param(s, marks=pytest.mark.long) for s in (2, 3, 4)),
        *(pytest.param(s, marks=pytest.mark.nightly) for s in range(6, 24)),
    ],
)
def test_a_node_joins_whatever_dies_on_the_way(seed: int) -> None:
    """Broken, a crash in the middle of a join leaves a node that has half of the data and thinks it has all."""
    cluster = cluster_with(seed, joiner())
    written(cluster, *((f"k{number}", number) for number in range(20)))
    machine = cluster.machine(JOINER)
    machine.start()
    for moment_ms in (0.3, 0.5, 0.7, 0.9, 1.3, 2, 4):
        cluster.run(moment_ms * (1 + seed / 4))
        write(cluster, (f"m{moment_ms}", seed))
        victim = machine if seed % 3 else cluster.machine("n1" if seed % 2 else "n2")
        if seed % 2:
            victim.kill()
        else:
            victim.lose_power()
        cluster.run(5)
        victim.start()
    cluster.run(1_500)
    assert cluster.crashes == []
    same_everywhere(cluster, *NAMES, JOINER)
    assert cluster.node(JOINER).configuration.me.id == 4
    assert cluster.node("n1").schema.members()[4] == UUID.format(4)


def test_one_that_joined_counts_for_the_quorum() -> None:
    """Broken, a cluster that was enlarged still needs its first members, or counts nodes that it does not know."""
    cluster = cluster_with(1, joiner())
    cluster.machine(JOINER).start()
    cluster.run(500)
    for name in ("n2", "n3"):
        cluster.machine(name).kill()
    written(cluster, ("r1", 1))
    cluster.machine(JOINER).kill()
    asked = write(cluster, ("r1", 2))
    cluster.run(600)
    assert isinstance(asked.reply, Refusal)


def test_an_anonymous_replica_follows_and_counts_for_nothing() -> None:
    """Broken, a node that nobody knows makes a quorum, or can write."""
    cluster = cluster_with(2, joiner(is_anonymous=True))
    written(cluster, ("r1", 1))
    cluster.machine(JOINER).start()
    cluster.run(500)
    assert memory(cluster.node(JOINER))[0] == memory(cluster.node("n1"))[0]
    assert 4 not in cluster.node("n1").schema.members()
    refused = cluster.client.ask(JOINER, "qsync.transaction", [("replace", "notes", ("a", 1))])
    for name in ("n2", "n3"):
        cluster.machine(name).kill()
    asked = write(cluster, ("r1", 2))
    cluster.run(600)
    assert isinstance(asked.reply, Refusal)
    assert isinstance(refused.reply, Refusal) and refused.reply.code == 7


def test_an_anonymous_replica_deposes_nobody() -> None:
    """Broken, whoever asks it to be promoted begins a term that nobody can lead, and freezes a healthy owner."""
    cluster = cluster_with(2, joiner(is_anonymous=True))
    cluster.machine(JOINER).start()
    cluster.run(500)
    calls = [("box.ctl.promote", ()), ("box.ctl.demote", ()), ("box.cfg", ({"election_mode": "candidate"},))]
    asked = [cluster.client.ask(JOINER, name, *arguments) for name, arguments in calls]
    cluster.run(1_000)
    codes = [each.reply.code for each in asked if isinstance(each.reply, Refusal)]
    assert codes == [5, 5, 59]
    assert cluster.node("n1").status()["election_term"] == cluster.node("n1").status()["term"]
    written(cluster, ("r1", 1))


def test_what_is_not_confirmed_does_not_leave_by_a_join() -> None:
    """Broken (#5097), a node that joins during a rollback keeps for ever what was rolled back."""
    cluster = cluster_with(3, joiner())
    written(cluster, ("r1", 1))
    for name in ("n2", "n3"):
        cluster.machine(name).pause()
    cluster.machine(JOINER).start()
    asked = write(cluster, ("r2", 2))
    cluster.run(150)
    assert not cluster.node(JOINER).has_data
    cluster.run(400)
    assert isinstance(asked.reply, Refusal)
    for name in ("n2", "n3"):
        cluster.machine(name).resume()
    cluster.run(800)
    same_everywhere(cluster, *NAMES, JOINER)
    spaces = memory(cluster.node(JOINER))[0]
    assert isinstance(spaces, dict)
    assert spaces["register"] == ([("r1", 1)], [("r1", 1)])


def test_a_second_join_on_a_link_takes_the_place_of_the_first() -> None:
    """Broken, any client that asks twice while transactions wait ends the node."""
    conversation = Conversation()
    for line in ("owner n1", "c1 replace register r1 1", "n4 joins anonymously"):
        conversation.happen(line)
    conversation.step(Received(conversation.links["n4"], Join(7, "", is_anonymous=True)))
    conversation.happen("written all")
    conversation.happen("n2 acks 2")
    sent = [line for line in conversation.happen("written all") if line.startswith("send n4")]
    assert len([line for line in sent if "all data:" in line]) == 1


def test_a_snapshot_waits_for_the_limbo_and_begins_again_after_a_rollback() -> None:
    """Broken (#5167), a snapshot holds what is rolled back later: the row comes back at the next start."""
    cluster = cluster_with(4, joiner())
    written(cluster, ("r1", 1))
    for name in ("n2", "n3"):
        cluster.machine(name).pause()
    write(cluster, ("r2", 2))
    cluster.run(10)
    asked = cluster.client.ask("n1", "box.snapshot")
    cluster.run(100)
    assert asked.reply is None
    cluster.run(400)
    assert isinstance(asked.reply, Answer)
    for name in ("n2", "n3"):
        cluster.machine(name).resume()
    cluster.run(300)
    same_everywhere(cluster, *NAMES)
    assert sum(name.endswith(".snap") for name in cluster.machine("n1").disk.files()) == 2


@pytest.mark.parametrize("dies", [False, True])
def test_a_replica_behind_the_collected_logs_joins_anew(dies: bool) -> None:
    """Broken, a replica that was away for long never comes back, or comes back with a hole."""
    cluster = cluster_with(5, joiner(), checkpoint_count=1, wal_cleanup_delay_ns=0)
    written(cluster, ("r1", 1))
    cluster.machine("n3").kill()
    for name in ("n1", "n2"):  # who was here in this life is waited for: so both forget n3
        cluster.machine(name).kill()
        cluster.machine(name).start()
    cluster.run(300)
    for number in range(3):
        written(cluster, ("r1", 10 + number))
        for name in ("n1", "n2"):
            cluster.client.ask(name, "box.snapshot")
        cluster.run(100)
    assert cluster.node("n1").journal.first_vclock[1] > 3
    cluster.machine("n3").start()
    for _ in range(8 if dies else 0):
        cluster.run(55)
        cluster.machine("n3").lose_power()
        cluster.machine("n3").start()
    cluster.run(600)
    same_everywhere(cluster, *NAMES)
    assert cluster.node("n3").configuration.me.id == 3
    assert cluster.crashes == []


def test_who_was_to_join_anew_follows_when_another_has_brought_what_it_lacked() -> None:
    """Broken, owner and replica wait for each other for ever: it must be joined, and the owner, which needs it for a
    quorum, lets nobody join before its queue is empty (seed 1882 of `simulate` did)."""
    cluster = cluster_with(
        *(9, joiner()),
        checkpoint_count=1,
        wal_cleanup_delay_ns=0,
        synchro_timeout_ns=100_000 * MILLISECOND,
    )
    written(cluster, ("r1", 1))
    cluster.machine("n3").kill()
    cluster.machine("n1").kill()  # who was here in this life is waited for: so it forgets n3
    cluster.machine("n1").start()
    cluster.run(300)
    for number in range(3):
        written(cluster, ("r1", 10 + number))
        cluster.client.ask("n1", "box.snapshot")
        cluster.run(100)
    cluster.world.network.cut([("n2", "n1")])
    asked = write(cluster, ("r1", 20))
    cluster.run(5)
    cluster.machine("n3").start()
    cluster.run(2_000)
    assert isinstance(asked.reply, Answer), "n2 has brought all to n3, and n1 hears of it from n3 alone"
    assert cluster.node("n3").newcomer.joining is None


@pytest.mark.parametrize("delay_ns", [0, 500 * MILLISECOND, CLEANUP_DELAY_NS])
def test_who_has_just_started_keeps_what_absent_members_need(delay_ns: int) -> None:
    """Broken, an owner that came back drops the logs of its followers and waits for their acknowledgements, while they
    wait to join anew until its queue is empty: for ever, where nothing is rolled back (seed 76000763 did)."""
    settings = {"checkpoint_count": 1, "rollback_on_timeout": False, "wal_cleanup_delay_ns": delay_ns}
    cluster = cluster_with(5, joiner(), **settings)
    written(cluster, ("r1", 1))
    for name in ("n2", "n3"):
        cluster.machine(name).kill()
    cluster.machine("n1").lose_power()
    cluster.machine("n1").start()
    for number in range(2):
        written(cluster, ("k", number), space="notes")
        cluster.client.ask("n1", "box.snapshot")
        cluster.run(100)
    cluster.run(500)
    asked = write(cluster, ("r1", 20))
    for name in ("n2", "n3"):
        cluster.machine(name).start()
    cluster.run(2_000)
    joining = [cluster.node(name).newcomer.joining for name in ("n2", "n3")]
    if delay_ns < CLEANUP_DELAY_NS:  # the delay was over: an operator asked for that
        assert isinstance(asked.reply, Refusal)
        assert None not in joining
        return
    assert isinstance(asked.reply, Answer)
    assert joining == [None, None]
    same_everywhere(cluster, *NAMES)
    cluster.client.ask("n1", "box.snapshot")
    cluster.run(200)
    assert len(cluster.node("n1").journal.snapshots) == 1, (
        "all have connected: nothing is kept for them any more"
    )


def test_a_node_that_lost_its_disk_comes_back_under_a_new_identity() -> None:
    """Broken, a node that forgot what it wrote writes other rows under the same numbers."""
    cluster = cluster_with(6, joiner())
    written(cluster, ("r1", 1))
    machine = cluster.machine("n1")
    machine.kill()
    for name in list(machine.disk.files()):
        machine.disk.remove(name)
    machine.start()
    cluster.run(400)
    assert cluster.node("n1").status()["following"] == []  # refused: its rows are still there, it is not
    machine.kill()
    log = cluster.node("n2").journal.vclock
    assert log[1] >= 2
    me = Identity(id=0, name="n1", uuid=UUID.format(7))
    old = cluster.configurations["n1"]
    conf = replace(old, joins=True, members=(me, *old.members[1:]))
    assert (
        conf.as_registered({1: UUID.format(1), 2: UUID.format(2), 3: UUID.format(3), 4: UUID.format(7)}).me.id
        == 4
    )


def test_a_cluster_with_all_ids_takes_no_more_members() -> None:
    """If it failed, the node that is asked would end, and every one that is asked after it."""
    cluster = cluster_with(1, joiner(40))
    for number in range(4, REPLICAS_MAX + 1):
        written(cluster, *[(number, f"{UUID[:-3]}{50 + number}")], space="_cluster")  # type: ignore[list-item]
    cluster.machine(JOINER).start()
    cluster.run(500)
    assert not cluster.crashes
    assert not cluster.node(JOINER).has_data
    assert any("refused with 73" in applier.last_error for applier in cluster.node(JOINER).appliers.values())


def joins_anew() -> Conversation:
    """A voter of term 3 that has asked n1 to join it anew, while it follows n3; all of the answer has come."""
    conversation = Conversation()
    for line in (
        *("node n2 elections=voter", "n1 answers", "n1 is candidate in term 3 with {}", "written all"),
        *("n1 is lost", "n3 answers", "beat", "n1 takes the call", "n1 refuses with 219", "beat"),
        *("n1 takes the call", "n1 is writable at {1: 9}"),
    ):
        lines = conversation.happen(line)
    assert lines == ["send n1: join"]
    link = conversation.followed["n1"]
    rows = Rows(tuple(insert_row(pair, 0) for pair in first_tuples(conversation.conf)))
    state = RaftState(0, 2, 0, 1, 0, False)
    answer = (Stage(0, {1: 9}), JoinMeta(0), state, JoinSnapshot(0), rows, *[Stage(0, {1: 9})] * 2)
    conversation.lines = []
    for message in answer:
        conversation.step(Received(link, message))
    return conversation


def test_joined_data_replace_the_old_files_when_all_of_them_are_on_disk() -> None:
    """If it failed, a crash could leave the old files gone and the new ones in part, or a row of a peer be lost."""
    conversation = joins_anew()
    kinds = [line.split()[0] for line in conversation.lines]
    assert kinds.index("persist") > max(place for place, kind in enumerate(kinds) if kind == "hang")
    assert [record.record for record in conversation.unwritten] == ["snapshot", "header"]
    assert conversation.unwritten[0].token > 3, "the tokens of the old log are used again"
    assert not any(line.startswith("remove") for line in conversation.happen("written"))
    assert any(line.startswith("remove") for line in conversation.happen("written"))


def test_a_vote_holds_when_its_node_joins_anew() -> None:
    """If it failed, the node would vote twice in one term: its vote stood in the files that the join replaces."""
    conversation = joins_anew()
    conversation.happen("written all")
    conversation.happen("n3 answers")
    assert conversation.happen("n3 is candidate in term 3 with {1: 9}") == []
    assert conversation.node.election.vote == 1


def test_a_node_whose_join_cannot_be_written_calls_every_peer_again() -> None:
    """Broken, a peer that was called before a full disk is never called again: a cluster waits for it for good."""
    node, now_ns = Replica(joiner()), 1_000_000_000

    def step(event: Event) -> list[Effect]:
        return list(node.step(event, Instant(now_ns, now_ns)))

    def called(effects: list[Effect]) -> list[str]:
        return [effect.peer for effect in effects if isinstance(effect, Connect)]

    assert called(step(Started({}))) == list(NAMES)
    step(Connected(1, "n1"))
    rows = Rows(tuple(insert_row(pair, 0) for pair in first_tuples(configuration("n1"))))
    answers = (
        Ballot(0, False, {1: 1}, {}, False),
        Stage(0, {1: 1}),
        rows,
        Stage(0, {1: 1}),
        Stage(0, {1: 1}),
    )
    effects = [effect for message in answers for effect in step(Received(1, message))]
    records = tuple(effect.token for effect in effects if isinstance(effect, Persist))
    assert len(records) == 2
    step(ConnectFailed("n2", "connection refused"))
    assert called(step(PersistFailed(records, "no space left on device"))) == list(NAMES)
