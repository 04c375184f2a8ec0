"""Nodes of two protocols in one cluster: the node that breaks the cluster stops with one line, and nothing is lost.

| among | a node of | stops, because |
|---|---|---|
| 3.2, with elections or without | 2.6 | it does not know a row of PROMOTE |
| 2.6 | 3.2 | the others do not know its PROMOTE; their writes have none |

A newcomer of the other protocol stops before it has an id.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nodes.iproto.messages import Answer
from nodes.kernel.errors import StartRefused
from nodes.qsync.mixes import Mixes, refusal_of_join
from tests.nodes.qsync.test_joining import JOINER, joiner, written
from tests.nodes.qsync.virtual_cluster import NAMES, VirtualCluster

OFF: Mapping[str, object] = {"election_mode": "off"}
MIXES = {
    "one of 2.6 without elections": (OFF, "n3", {"protocol": "2.6"}, "of protocol 2.6, and 2 of 3 members"),
    "one of 2.6 beside candidates": (
        {"election_mode": "candidate"},
        "n3",
        {"protocol": "2.6", **OFF},
        "of protocol 2.6, and 2 of 3 members",
    ),
    "one of 3.2 among 2.6": (
        {"protocol": "2.6", "quorum": 2, **OFF},
        "n1",
        {"protocol": "3.2"},
        "of protocol 3.2, and 2 of 3 members",
    ),
}


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("seed", range(2))
def test_the_node_that_breaks_the_cluster_stops(seed: int, mix: str) -> None:
    """Broken, a node follows rows that it cannot read, or is idle for ever, and says nothing of it."""
    settings, name, other, words = MIXES[mix]
    cluster = VirtualCluster(seed, settings=settings, of_node={name: other})
    cluster.run(300)
    assert [who for who, _ in cluster.crashes] == [name]
    (_, how) = cluster.crashes[0]
    assert how.startswith("refused to start: ")
    assert words in how
    assert "\n" not in how
    rest = [each for each in NAMES if each != name]
    if settings["election_mode"] == "off":
        cluster.client.ask(rest[0], "box.ctl.promote")
    cluster.run(2_000)
    writable = [each for each in rest if cluster.node(each).commits.is_writable]
    for number in range(5):
        cluster.client.ask(writable[0], "qsync.transaction", (("replace", "register", (f"k{number}", 1)),))
    cluster.run(1_000)
    answered = list(cluster.client.asked.values())[-5:]
    assert all(isinstance(each.reply, Answer) for each in answered), "the others do not serve without it"
    assert len(cluster.crashes) == 1
    for each in rest:
        register = next(s for s in cluster.node(each).schema.user_spaces() if s.definition.name == "register")
        assert {str(key[0]) for key in register.scan(dirty=False)} == {f"k{number}" for number in range(5)}


@pytest.mark.parametrize(
    ("own", "theirs", "members", "stops"),
    [
        ("3.2", {2: 0x020600}, 3, False),
        ("3.2", {2: 0x020600, 3: 0x020600}, 3, True),
        ("3.2", {2: 0x020600}, 2, True),
        ("2.6", {1: 0x030200}, 2, False),
        ("2.6", {1: 0x030200, 2: 0x030200}, 4, False),
        ("2.6", {1: 0x030200, 2: 0x030200, 3: 0x030200}, 4, True),
        ("2.6", {1: 0x020600, 2: 0x020600}, 3, False),
        ("2.6", {1: 0, 2: 0}, 3, False),
    ],
)
def test_the_smaller_part_stops(own: str, theirs: dict[int, int], members: int, stops: bool) -> None:
    """Broken, a single newcomer ends the cluster that was there."""
    mixes = Mixes(own)  # type: ignore[arg-type]
    stopped = False
    for member, version in theirs.items():
        try:
            mixes.hear(member, version, range(1, members + 1))
        except StartRefused:
            stopped = True
    assert stopped is stops


def test_a_member_that_comes_back_with_our_protocol_is_counted_no_more() -> None:
    """Broken, a node stops although the member that did not fit was mended."""
    mixes = Mixes("3.2")
    assert mixes.hear(2, 0x020600, (1, 2, 3)) == "replica 2 is of protocol 2.6, and this node of 3.2"
    assert mixes.hear(2, 0x030200, (1, 2, 3)) is None
    assert mixes.hear(3, 0x020600, (1, 2, 3)) is not None


@pytest.mark.parametrize("is_anonymous", [False, True])
@pytest.mark.parametrize(("own", "theirs"), [("3.2", "2.6"), ("2.6", "3.2")])
def test_a_newcomer_of_the_other_protocol_stops_before_it_has_an_id(
    own: str, theirs: str, is_anonymous: bool
) -> None:
    """Broken, a node that can never follow is registered, counts for the quorum, and calls again for ever."""
    other = joiner(protocol=theirs, election_mode="off", is_anonymous=is_anonymous)
    readers = {name: {"read_only": True} for name in NAMES[1:]} if own == "2.6" else {}
    cluster = VirtualCluster(1, settings={"protocol": own, **OFF}, of_node=readers, more=[other])
    if own == "2.6":
        cluster.run(500)
    else:
        cluster.promote()
    cluster.machine(JOINER).start()
    cluster.run(500)
    assert [who for who, _ in cluster.crashes] == [JOINER]
    assert (
        f"a node of protocol {theirs} cannot join one of {own}; start it with protocol {own}"
        in cluster.crashes[0][1]
    )
    assert 4 not in cluster.node("n1").schema.members()
    written(cluster, ("k", 1))


def test_a_newcomer_that_names_no_version_is_let_in() -> None:
    """Broken, a later version that does not send one in JOIN (2.7 and 2.8) cannot join."""
    assert refusal_of_join("3.2", 0) is None
    assert refusal_of_join("3.2", 0x020700) is None
