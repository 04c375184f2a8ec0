"""Several relays that are one: who is asked about which link, and what is made of their answers."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from harness.cluster.relay.remote import Relay
from harness.cluster.ssh.machine import Clocks, Machine
from harness.cluster.ssh.relays import Relays


class FakeRelay:
    """Remembers what it was asked; answers with rows of counters."""

    def __init__(self, rows: list[dict[str, Any]] | None = None, ahead_ns: int = 0) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.clocks = Clocks(ahead_ns, 0)
        self._rows = rows or []

    async def ask(self, command: str, /, **arguments: Any) -> dict[str, Any]:
        self.asked.append((command, arguments))
        if command == "counters":
            return {"links": [dict(row) for row in self._rows]}
        return {"at_ns": 1} if command in ("cut", "heal") else {}


def relays(here: FakeRelay, **there: FakeRelay) -> Relays:
    machines = {node: cast(Machine, relay) for node, relay in there.items()}
    return Relays(cast(Relay, here), machines)


def test_a_link_is_cut_wherever_a_connection_can_carry_it() -> None:
    """If it failed, a one-way cut would leave open the connections that the other side dialed."""
    here, one, two, three = FakeRelay(), FakeRelay(), FakeRelay(), FakeRelay()
    asyncio.run(relays(here, n1=one, n2=two, n3=three).cut(7, [("n1", "n2"), ("client", "n1")]))
    assert [given["links"] for _, given in one.asked] == [[("n1", "n2"), ("client", "n1")]]
    assert [given["links"] for _, given in two.asked] == [[("n1", "n2")]]
    assert [given["links"] for _, given in here.asked] == [[("client", "n1")]]
    assert three.asked == []


def test_a_relay_that_serves_two_nodes_is_asked_once() -> None:
    """If it failed, two nodes of one host would be counted twice, and a fault be felt that was not."""
    here, shared, other = FakeRelay(), FakeRelay(), FakeRelay()
    one = relays(here, n1=shared, n2=other, n3=shared)
    asyncio.run(one.cut(7, [("n1", "n3"), ("n3", "n1")]))
    asyncio.run(one.heal(7, 1))
    assert [command for command, _ in shared.asked] == ["cut", "heal"]
    assert [command for command, _ in here.asked] == ["heal"]


def test_counters_of_a_link_are_added_and_times_are_ours() -> None:
    """If it failed, evidence would mix the clocks of several machines, or lose what one of them saw."""
    row = {
        "link": ["n1", "n2"],
        "begun_ns": 1_000,
        "longest_withheld_ns": 5,
        "bytes_withheld": 3,
        "is_cut": 0,
    }
    later = {**row, "begun_ns": 5_100, "longest_withheld_ns": 9, "bytes_withheld": 4, "is_cut": 1}
    here, one, two = FakeRelay(), FakeRelay([row]), FakeRelay([later], ahead_ns=5_000)
    counted = asyncio.run(relays(here, n1=one, n2=two).counters(7))
    assert counted == {
        ("n1", "n2"): {"begun_ns": 100, "longest_withheld_ns": 9, "bytes_withheld": 7, "is_cut": 1}
    }
