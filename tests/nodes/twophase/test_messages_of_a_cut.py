"""What a cut costs: messages between nodes, on an idle cluster, counted between two beats."""

from __future__ import annotations

from collections import Counter

import pytest

from nodes.kernel.trace import Envelope
from nodes.twophase.configuration import MILLISECOND
from tests.nodes.twophase.virtual_cluster import VirtualCluster


def messages_of_a_cut(servers: int, clients: int = 0) -> Counter[str]:
    """By word; the request of the operator and its answer are not counted."""
    cluster = VirtualCluster(
        1,
        servers=[f"n{number}" for number in range(1, servers + 1)],
        clients=[f"c{number}" for number in range(1, clients + 1)],
        beat_ns=1_000 * MILLISECOND,
        election_ns=4_000 * MILLISECOND,
        leave_ns=20_000 * MILLISECOND,
        sweep_ns=10**15,
    )
    cluster.settle(120_000)
    cluster.run(30)  # the beat is over
    network, counts = cluster.world.network, Counter[str]()
    send = network.send

    def counted(link: int, sender: object, message: object) -> None:
        inner = message.message if isinstance(message, Envelope) else message
        assert isinstance(inner, list)
        if sender is not cluster.client and inner[0] != "answer":
            counts[inner[0]] += 1
        send(link, sender, message)  # type: ignore[arg-type]

    network.send = counted  # type: ignore[method-assign, assignment]
    cluster.run(300)
    assert not counts, "a beat is among what is counted"
    cluster.client.ask("n2", "cut", "k")
    nodes = [cluster.node(name) for name in (*cluster.servers, *cluster.clients)]
    cluster.run(50)
    assert {node.agreed.cuts["k"].state for node in nodes} == {"ok"}
    assert all(node.cuts.running is None for node in nodes)
    return counts


@pytest.mark.parametrize("servers", [3, 6, 9, pytest.param(18, marks=pytest.mark.long)])
def test_the_messages_of_a_cut_grow_with_the_servers(servers: int) -> None:
    """If it failed, a cut would cost more than the linear number of messages that its design states."""
    counts = messages_of_a_cut(servers)
    peers = servers - 1
    assert counts == {"propose": servers, "append": 4 * peers, "appended": 4 * peers}
    assert counts.total() == {3: 19, 6: 46, 9: 73, 18: 154}[servers]


def test_a_client_costs_a_report_and_two_lessons() -> None:
    """If it failed, clients would make a cut dear again, one entry each."""
    counts, without = messages_of_a_cut(3, clients=2), messages_of_a_cut(3)
    assert counts - without == {"propose": 2, "learn": 4}
