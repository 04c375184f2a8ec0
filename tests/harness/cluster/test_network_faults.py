"""The evidence of faults that the relay carries out, from its counters."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any, cast

import pytest

from harness.cluster import network_faults
from harness.cluster.network_faults import NetworkFault, RelayLinks, links_around
from harness.cluster.relay.link import Link, LinkName, Slowness, Watch
from harness.cluster.relay.remote import Commands
from harness.errors import WrongUse
from harness.faults.fault import Does, Evidence, Fault

HEARTBEAT_NS, EPOCH_NS = 50, 1_000
LINKS: tuple[LinkName, ...] = (("n1", "n2"), ("n2", "n1"))


def row(link: LinkName, **values: int | None) -> dict[str, Any]:
    """Counters as the relay gives them: a link that passed something after it was healed."""
    plain: Link[Any] = Link(link)
    plain.watches[0] = Watch(begun_ns=EPOCH_NS + 5, passed_base=0)
    return {"link": list(link), "is_reverse_cut": 0, **plain.counters(0), "bytes_fresh": 1, **values}


class FakeRelay(Commands):
    """Gives these rows, one list after the other, the last again and again."""

    def __init__(self, *rows: list[dict[str, Any]]) -> None:
        self.rows = list(rows)
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def ask(self, command: str, /, **arguments: object) -> dict[str, Any]:
        self.asked.append((command, arguments))
        if command == "counters":
            rows = self.rows.pop(0) if len(self.rows) > 1 else self.rows[0]
            return {"links": [dict(each) for each in rows]}
        return {"at_ns": EPOCH_NS + {"cut": 10, "slow": 20, "heal": 90}.get(command, 0), "connections": 0}


class Prober:
    def __init__(self, reach: tuple[LinkName, ...] = LINKS) -> None:
        self.reach = reach
        self.sent: list[LinkName] = []
        self.reverse: list[bool] = []
        self.is_closed = False

    def can_reach(self, link: LinkName, is_reverse_cut: bool) -> bool:
        self.reverse.append(is_reverse_cut)
        return link in self.reach

    def send(self, link: LinkName) -> None:
        self.sent.append(link)

    def close(self) -> None:
        self.is_closed = True


def fault(does: Does = "cut", **fields: Any) -> Fault:
    return Fault(id=3, name="f", does=does, at_ns=0, until_ns=1, seed=7, links=LINKS, **fields)


def evidence_of(relay: FakeRelay, what: Fault, probes: Prober | None = None) -> Evidence:
    async def story() -> Evidence:
        acting = NetworkFault(what, relay, probes or Prober(), HEARTBEAT_NS, EPOCH_NS)
        await acting.begin()
        return await acting.end()

    return asyncio.run(story())


@pytest.mark.parametrize(
    ("does", "values", "took_effect"),
    [
        ("cut", {"longest_withheld_ns": HEARTBEAT_NS + 1}, True),
        ("cut", {"longest_hanging_ns": HEARTBEAT_NS + 1}, True),
        ("cut", {"longest_withheld_ns": HEARTBEAT_NS, "longest_hanging_ns": HEARTBEAT_NS}, False),
        ("cut", {"bytes_delayed": 9, "bytes_queued": 9, "longest_delay_ns": 99}, False),
        ("slow", {"bytes_delayed": 1}, True),
        ("slow", {"bytes_queued": 9, "longest_withheld_ns": 99}, False),
        ("jitter", {"shortest_delay_ns": 2, "longest_delay_ns": 7}, True),
        ("jitter", {"shortest_delay_ns": 3, "longest_delay_ns": 7}, False),
        ("jitter", {"longest_delay_ns": 99}, False),
        ("bandwidth", {"bytes_queued": 1}, True),
        ("bandwidth", {"bytes_delayed": 9, "longest_withheld_ns": 99}, False),
    ],
)
def test_a_fault_took_effect_if_bytes_met_it(does: Does, values: dict[str, int], took_effect: bool) -> None:
    """If it failed, a run would count faults that met no byte, or deny those that did."""
    rows = [row(LINKS[0], **values), row(LINKS[1])]
    evidence = evidence_of(FakeRelay(rows), fault(does, jitter_ns=10))
    assert evidence.took_effect == took_effect
    assert evidence.counters["links_affected"] == took_effect
    assert evidence.detail == f"no effect on {'' if took_effect else 'n1→n2, '}n2→n1"


def test_times_are_those_of_the_run_and_sums_those_of_all_links() -> None:
    """If it failed, a fault would stand at the wrong time in the history, or its numbers be those of one link."""
    first = dict.fromkeys(("bytes_passed", "bytes_withheld", "connections_hanging", "connections_reset"), 1)
    longest = ("longest_withheld_ns", "longest_hanging_ns", "longest_delay_ns", "longest_queued_ns")
    rows = [
        row(LINKS[0], **first, bytes_delayed=4, bytes_queued=5, is_used=1, **dict.fromkeys(longest, 99)),
        row(LINKS[1], **first, begun_ns=EPOCH_NS + 4, shortest_delay_ns=6, longest_delay_ns=100),
    ]
    relay, before_ns = FakeRelay(rows), time.monotonic_ns()
    what = fault("slow", delay_ns=1, jitter_ns=2, bytes_per_s=3)
    evidence = evidence_of(relay, what)
    assert relay.asked[0] == (
        "slow",
        {"fault": 3, "links": list(LINKS), "delay_ns": 1, "jitter_ns": 2, "bytes_per_s": 3, "seed": 7},
    )
    assert relay.asked[1] == ("heal", {"fault": 3, "seed": 7}) and relay.asked[-1] == ("forget", {"fault": 3})
    assert (evidence.first_effect_ns, evidence.all_in_effect_ns, evidence.last_effect_ns) == (4, 20, 90)
    assert evidence.heal_asked_ns is not None
    after_ns = time.monotonic_ns()
    assert before_ns <= evidence.asked_ns + EPOCH_NS <= evidence.heal_asked_ns + EPOCH_NS <= after_ns
    assert evidence.counters == {
        "links": 2,
        "links_used": 1,
        "links_affected": 1,
        **dict.fromkeys(first, 2),
        "bytes_delayed": 4,
        "bytes_queued": 5,
        **dict.fromkeys(longest, 99),
        "longest_delay_ns": 100,
        "shortest_delay_ns": 6,
    }


def test_a_link_is_probed_until_it_passes_bytes_again() -> None:
    """If it failed, a partition that never healed would count as healed, or one between idle nodes as for ever."""
    stale = [row(LINKS[0], bytes_fresh=0), row(LINKS[1])]
    probes = Prober()
    evidence = evidence_of(FakeRelay(stale, stale, [row(LINKS[0]), row(LINKS[1])]), fault(), probes)
    assert evidence.healed is True and probes.sent == [LINKS[0], LINKS[0]] and probes.is_closed


def test_a_link_that_nothing_passes_is_not_healed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run would go on, and be judged, on a network that is still cut."""
    monkeypatch.setattr(network_faults, "_FRESH_WITHIN_S", 0.0)
    probes = Prober()
    evidence = evidence_of(FakeRelay([row(LINKS[0], bytes_fresh=0), row(LINKS[1])]), fault(), probes)
    assert evidence.healed is False and probes.is_closed
    assert evidence.detail == "no effect on n1→n2, n2→n1; nothing passed n1→n2 after healing"


def test_a_link_that_cannot_pass_anything_is_not_waited_for() -> None:
    """If it failed, the end of one fault would be held against another one, or against a dead node."""
    untried = "no effect on n1→n2, n2→n1; n1→n2 could not be tried"
    cut = [row(LINKS[0], bytes_fresh=0, is_cut=1), row(LINKS[1])]
    evidence = evidence_of(FakeRelay(cut), fault())
    assert (evidence.healed, evidence.detail) == (True, untried)
    dead, probes = [row(LINKS[0], bytes_fresh=0, is_reverse_cut=1), row(LINKS[1])], Prober(())
    evidence = evidence_of(FakeRelay(dead), fault(), probes)
    assert (evidence.healed, evidence.detail, probes.reverse) == (True, untried, [True])
    evidence = evidence_of(FakeRelay([row(link, bytes_fresh=0) for link in LINKS]), fault(), Prober(()))
    assert evidence.healed is None and evidence.detail.endswith("n2→n1 could not be tried")


def test_a_node_without_power_is_cut_off_from_all_and_joined_again() -> None:
    """If it failed, bytes of a dead node would reach the others, or it would stay alone."""
    relay = FakeRelay([])
    links = RelayLinks("local", ("client", "n1", "n2"), relay, lambda: cast(Any, Prober()), (1, 0))
    power = Fault(id=3, name="p", does="power", at_ns=0, until_ns=1, seed=7, nodes=("n1",))

    async def story() -> None:
        isolation = links.isolation()
        for step in (isolation.cut_off, isolation.forget, isolation.join):
            await step(power)

    asyncio.run(story())
    around = [("n1", "client"), ("client", "n1"), ("n1", "n2"), ("n2", "n1")]
    assert [command for command, _ in relay.asked] == ["cut", "discard", "reset", "heal", "forget"]
    assert relay.asked[0][1] == {"fault": 3, "links": around}
    assert all(given["node"] == "n1" for _, given in relay.asked[1:3])
    assert links_around(("n1", "n2"), ("n1", "n2")) == [("n1", "n2"), ("n2", "n1")]


def test_what_the_relay_cannot_do_is_refused() -> None:
    """If it failed, packets that should be lost or overtaken would pass in order, and the run say nothing."""
    links = RelayLinks("local", ("n1", "n2"), FakeRelay([]), lambda: cast(Any, Prober()), (1, 0))
    with pytest.raises(WrongUse, match="local cannot do 'reorder'"):
        links.shape(fault("reorder"))
    with pytest.raises(WrongUse, match="local cannot do 'loss'"):
        links.lose(fault("loss"))
    assert isinstance(links.shape(fault("slow")), NetworkFault)


@pytest.mark.parametrize("is_forgotten", [True, False])
def test_the_probes_of_a_fault_are_no_use_of_its_link(is_forgotten: bool) -> None:
    """If it failed, the next fault of a link that no node uses would have to take effect."""
    link: Link[Any] = Link(("n1", "n2"))
    link.cut(1, 0)
    link.heal(1, 5)
    link.passed += 7  # the harness's own
    if is_forgotten:
        link.forget(1)
    link.cut(2, 6)
    assert link.counters(2)["is_used"] == 0
    link.heal(2, 7)
    link.forget(1)
    link.forget(2)
    link.passed += 7
    link.cut(3, 8)
    assert link.counters(3)["is_used"] == 1


def test_bytes_that_waited_before_a_fault_began_are_none_of_its_effect() -> None:
    """If it failed, a jitter would take effect by the delays of the one before it."""
    link: Link[Any] = Link(("n1", "n2"))
    link.slow(1, Slowness(0, 50, random.Random(1)), 0)
    link.slow(2, Slowness(0, 10, random.Random(2)), 5)
    for now_ns in (10, 40):
        link.was_late(1, now_ns)
    first, second = link.counters(1), link.counters(2)
    assert (first["shortest_delay_ns"], first["longest_delay_ns"]) == (9, 39)
    assert (second["shortest_delay_ns"], second["longest_delay_ns"]) == (None, 0)
