"""Several relays that are one: who is asked about which link, and what is made of their answers."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from harness.cluster.probe import Probes
from harness.cluster.relay.link import LinkName
from harness.cluster.relay.remote import Relay
from harness.cluster.ssh.machine import Clocks, Machine
from harness.cluster.ssh.relays import Relays, SshProbes


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
        return (
            {"at_ns": 1} if command in ("cut", "heal") else {"connections": 2} if command == "reset" else {}
        )

    def tell(self, command: str, /, **arguments: Any) -> None:
        self.asked.append((command, arguments))


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


def test_a_value_that_only_one_relay_has_is_that_of_the_link() -> None:
    """If it failed, the times of a link on which one relay carries nothing would be lost."""
    row = {"link": ["n1", "n2"], "first_withheld_ns": None, "last_delayed_ns": 3, "shortest_delay_ns": None}
    other = {"link": ["n1", "n2"], "first_withheld_ns": 9, "last_delayed_ns": None, "shortest_delay_ns": 4}
    for rows in (row, other), (other, row):
        one, two = (FakeRelay([each]) for each in rows)
        counted = asyncio.run(relays(FakeRelay(), n1=one, n2=two).counters(7))
        assert counted == {
            ("n1", "n2"): {"first_withheld_ns": 9, "last_delayed_ns": 3, "shortest_delay_ns": 4}
        }


def test_of_times_the_extremes_count() -> None:
    """If it failed, a link would count as healed before its second relay had let go."""
    row = {"link": ["n1", "n2"], "begun_ns": 5, "healed_ns": 8, "last_delayed_ns": 7, "shortest_delay_ns": 3}
    other = {name: value if name == "link" else value + 1 for name, value in row.items()}  # type: ignore[operator]
    counted = asyncio.run(relays(FakeRelay(), n1=FakeRelay([other]), n2=FakeRelay([row])).counters(7))
    assert counted == {
        ("n1", "n2"): {"begun_ns": 5, "healed_ns": 9, "last_delayed_ns": 8, "shortest_delay_ns": 3}
    }


def test_connections_that_were_reset_are_counted_at_every_relay() -> None:
    """If it failed, a reset would seem to have met nothing."""
    assert asyncio.run(relays(FakeRelay(), n1=FakeRelay(), n2=FakeRelay()).reset("n1")) == 6


class HereProbes:
    """The probes that are dialed from here."""

    data = b"\0p"

    def __init__(self) -> None:
        self.done: list[object] = []

    def can_reach(self, link: LinkName, is_reverse_cut: bool) -> bool:
        self.done.append((link, is_reverse_cut))
        return True

    def send(self, link: LinkName) -> None:
        self.done.append(link)

    def close(self) -> None:
        self.done.append("close")


def test_a_probe_is_dialed_from_where_its_link_begins() -> None:
    """If it failed, a link of two other hosts would never be seen to pass bytes again, or their probes stay open."""
    here, one, two = HereProbes(), FakeRelay(), FakeRelay()
    machines = {"n1": cast(Machine, one), "n2": cast(Machine, two)}
    probes = SshProbes(cast(Probes, here), {("client", "n1"): 11, ("n1", "n2"): 12}, machines)
    probe = ("probe", {"source": "n1", "target": "n2", "port": 12, "data": "0070"})
    for link in ("client", "n1"), ("n1", "client"), ("n1", "n2"), ("n2", "n1"):
        probes.send(link)
    assert here.done == [("client", "n1"), ("n1", "client")]
    assert one.asked == [probe, probe] and not two.asked
    assert probes.can_reach(("n1", "n2"), True) and here.done[2:] == [(("n1", "n2"), True)]
    for _ in range(2):
        probes.close()
    assert here.done[3:] == ["close", "close"]
    assert one.asked[2:] == [("probed", {})] and not two.asked
