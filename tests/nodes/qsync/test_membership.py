"""Who is a member: removals, nodes that come back under a new identity, and the quorum that follows from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nodes.iproto.messages import Answer, Refusal
from nodes.qsync.configuration import Identity
from nodes.qsync.replica import Replica
from tests.nodes.qsync.conversation import UUID
from tests.nodes.qsync.virtual_cluster import Asked, VirtualCluster

FORMULA = "N / 2 + 1"


def asked(cluster: VirtualCluster, node: str, name: str, *arguments: object) -> Asked:
    found = cluster.client.ask(node, name, *arguments)
    cluster.run(150)
    return found


def removed(cluster: VirtualCluster, number: int) -> Asked:
    return asked(cluster, "n1", "box.space._cluster:delete", number)


def written(cluster: VirtualCluster, key: str, value: int) -> Asked:
    return asked(cluster, "n1", "qsync.transaction", [("replace", "register", (key, value))])


def come_back(cluster: VirtualCluster, name: str, number: int) -> None:
    """The node comes with an empty disk and a new UUID, at the same address."""
    old = cluster.configurations[name]
    me = Identity(id=0, name=name, uuid=UUID.format(number))
    members = tuple(me if member.name == name else member for member in old.members)
    conf = replace(old, joins=True, members=members)
    machine = cluster.machine(name)
    if machine.state != "down":
        machine.kill()
    machine.replace(lambda: Replica(conf))
    machine.start()


def status(cluster: VirtualCluster, name: str) -> dict[str, object]:
    return dict(cluster.node(name).status())


@pytest.mark.parametrize("election_mode", ["off", "manual"])
def test_the_quorum_follows_the_members(election_mode: str) -> None:
    """Broken, three nodes that lost one for good still wait for it, or two that got a third confirm alone."""
    cluster = VirtualCluster(3, settings={"quorum": FORMULA, "election_mode": election_mode})
    cluster.run(200)
    cluster.promote()
    cluster.run(200)
    cluster.machine("n3").kill()
    assert isinstance(removed(cluster, 3).reply, Answer)
    for name in ("n1", "n2"):
        assert status(cluster, name)["members"] == [1, 2]
        assert status(cluster, name)["quorum"] == 2
    cluster.machine("n2").kill()
    assert not isinstance(written(cluster, "alone", 1).reply, Answer)
    cluster.machine("n2").start()
    cluster.run(600)
    asked(cluster, "n1", "box.ctl.promote")  # a leader that heard nobody has resigned
    cluster.run(200)
    come_back(cluster, "n3", 9)
    cluster.run(600)
    for name in ("n1", "n2", "n3"):
        assert len(status(cluster, name)["members"]) == 3  # type: ignore[arg-type]
        assert status(cluster, name)["quorum"] == 2
        assert len(status(cluster, name)["following"]) == 2  # type: ignore[arg-type]
    assert cluster.crashes == []


def test_the_vote_of_a_node_that_came_back_under_a_new_identity_counts() -> None:
    """Broken, nodes hear it under the identity that it has lost, and a cluster of three stands still with one dead."""
    cluster = VirtualCluster(5, settings={"quorum": FORMULA, "election_mode": "candidate"})
    cluster.run(3_000)
    leader = next(name for name in ("n1", "n2", "n3") if status(cluster, name)["role"] == "owner")
    lost, other = (name for name in ("n1", "n2", "n3") if name != leader)
    cluster.machine(lost).kill()
    number = int(lost[1:])
    assert isinstance(asked(cluster, leader, "box.space._cluster:delete", number).reply, Answer)
    come_back(cluster, lost, 9)
    cluster.run(1_500)
    assert status(cluster, lost)["role"] == "replica"
    cluster.machine(leader).kill()
    cluster.run(5_000)
    assert "owner" in {status(cluster, lost)["role"], status(cluster, other)["role"]}
    assert cluster.crashes == []


def test_a_restarted_node_learns_who_sits_at_an_address_now() -> None:
    """Broken, a node whose configuration still names the lost identity never counts the new one again."""
    cluster = VirtualCluster(7, settings={"quorum": FORMULA})
    cluster.promote()
    cluster.run(100)
    cluster.machine("n3").kill()
    removed(cluster, 3)
    come_back(cluster, "n3", 9)
    cluster.run(600)
    cluster.machine("n2").kill()
    cluster.machine("n2").start()
    cluster.run(600)
    (named,) = [member for member in cluster.node("n2").configuration.members if member.name == "n3"]
    assert named.uuid == UUID.format(9)
    assert named.id == cluster.node("n3").configuration.me.id != 0


def test_a_node_cannot_remove_itself_and_a_removed_one_neither_writes_nor_stands() -> None:
    """Broken, a node that nobody counts any more takes part in elections, and calls terms that disturb the others."""
    cluster = VirtualCluster(9, settings={"quorum": FORMULA, "election_mode": "candidate"})
    cluster.run(3_000)
    leader = next(name for name in ("n1", "n2", "n3") if status(cluster, name)["role"] == "owner")
    own = int(leader[1:])
    refused = asked(cluster, leader, "box.space._cluster:delete", own).reply
    assert isinstance(refused, Refusal) and refused.code == 128
    gone = next(name for name in ("n1", "n2", "n3") if name != leader)
    asked(cluster, leader, "box.space._cluster:delete", int(gone[1:]))
    assert cluster.node(gone).membership.is_expelled
    term = status(cluster, leader)["election_term"]
    cluster.machine(gone).kill()
    cluster.machine(gone).start()
    cluster.run(3_000)
    assert status(cluster, gone)["ro"]
    assert status(cluster, leader)["election_term"] == term
    assert cluster.crashes == []


def test_an_owner_that_is_cut_off_cannot_change_who_counts() -> None:
    """Broken, an isolated owner removes the others one by one, and then confirms alone."""
    cluster = VirtualCluster(11, settings={"quorum": FORMULA})
    cluster.promote()
    cluster.run(100)
    cluster.machine("n2").kill()
    cluster.machine("n3").kill()
    assert not isinstance(removed(cluster, 3).reply, Answer)
    assert status(cluster, "n1")["members"] == [1, 2, 3]


def test_what_is_no_member_is_refused() -> None:
    """Broken, a slip of an operator's hand puts a member into the cluster that can never be one."""
    cluster = VirtualCluster(13)
    cluster.promote()
    cluster.run(100)
    for row in ([4, "no uuid"], [4, UUID.format(4).replace("-", "")], [32, UUID.format(4)]):
        assert isinstance(asked(cluster, "n1", "box.space._cluster:insert", row).reply, Refusal)
