"""Nodes of two protocols in one cluster: who cannot read the others' rows says so in one line and takes none of them.

| among | a node of | says |
|---|---|---|
| 3.2 without elections | 2.6 | it does not know a row of PROMOTE |
| 3.2 with elections | 2.6 | the others refuse it: their PROMOTEs wait, which it cannot read |
| 2.6 | 3.2 that is promoted | the others do not know its PROMOTE; its writes find no quorum |
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nodes.iproto.messages import Answer
from tests.nodes.qsync.virtual_cluster import NAMES, VirtualCluster

OFF: Mapping[str, object] = {"election_mode": "off"}
MIXES = {
    "one of 2.6 without elections": (OFF, {"n3": {"protocol": "2.6"}}, {"n3"}, "2.6 does not know"),
    "one of 2.6 beside candidates": (
        {"election_mode": "candidate"},
        {"n3": {"protocol": "2.6", **OFF}},
        {"n1", "n2", "n3"},
        "PROMOTE waits for a quorum",
    ),
    "one of 3.2 among 2.6": (
        {"protocol": "2.6", "quorum": 2, **OFF},
        {"n1": {"protocol": "3.2"}},
        {"n2", "n3"},
        "2.6 does not know",
    ),
}


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("seed", range(2))
def test_a_mix_is_refused_and_loses_nothing(seed: int, mix: str) -> None:
    """If it failed, a node would follow rows that it cannot read, and say nothing of it."""
    settings, of_node, telling, words = MIXES[mix]
    cluster = VirtualCluster(seed, settings=settings, of_node=of_node)  # type: ignore[arg-type]
    cluster.run(300)
    if settings["election_mode"] == "off":
        cluster.client.ask("n1", "box.ctl.promote")
    cluster.run(2_000)
    asked: dict[str, int] = {}
    for number in range(5):
        for name in NAMES:
            if cluster.node(name).commits.is_writable:
                key = f"{name}-{number}"
                cluster.client.ask(name, "qsync.transaction", (("replace", "register", (key, 1)),))
                asked[key] = len(cluster.client.asked) - 1
        cluster.run(100)
    cluster.run(1_000)
    assert not cluster.crashes
    told = {
        name: [f"{each.message} {each.last_error}" for each in cluster.node(name).appliers.values()]
        for name in NAMES
    }
    assert {name for name, lines in told.items() if any(words in line for line in lines)} == telling
    replies = list(cluster.client.asked.values())
    answered = {key for key, place in asked.items() if isinstance(replies[place].reply, Answer)}
    held = {name: _keys(cluster, name) for name in NAMES}
    assert sum(answered <= keys for keys in held.values()) >= (2 if answered else 0), held
    for name in telling & set(of_node):
        assert not held[name] & answered, "it took rows of which it says that it cannot read them"


def _keys(cluster: VirtualCluster, name: str) -> set[str]:
    spaces = cluster.node(name).schema.user_spaces()
    register = next(space for space in spaces if space.definition.name == "register")
    return {str(key[0]) for key in register.scan(dirty=False)}
