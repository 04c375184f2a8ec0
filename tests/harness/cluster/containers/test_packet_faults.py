"""Faults of the network that overlap on a link, without a kernel."""

from __future__ import annotations

import asyncio
import subprocess
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from harness.cluster.containers import packet_faults
from harness.cluster.containers.packet_faults import PacketFault, PacketIsolation, Packets
from harness.cluster.containers.packet_filter import PacketFilter, Pair
from harness.errors import ClusterError
from harness.faults.fault import Evidence, Fault, Link

PAIR = ("10.0.0.1", "10.0.0.2")
OTHER = ("10.0.0.3", "10.0.0.4")


class SlowToGiveBack(PacketFilter):
    """What is given back takes longer on its way than what is asked for, as threads may have it."""

    def __init__(self) -> None:
        super().__init__("qsync_test")
        self.cut: set[Pair] = set()

    async def change(self, which: str, *, add: Iterable[Pair] = (), remove: Iterable[Pair] = ()) -> None:
        removed = list(remove)
        for _ in range(5 if removed else 1):
            await asyncio.sleep(0)
        assert self.cut.issuperset(removed), "as the kernel: what is not there cannot be deleted"
        self.cut.difference_update(removed)
        self.cut.update(add)


async def not_asked(link: Link) -> None:
    raise AssertionError(link)


class Idle(PacketFilter):
    """Counts packets of links."""

    def __init__(self) -> None:
        super().__init__("qsync_test")
        self.passed: Counter[Pair] = Counter()
        self.grows: Pair | None = None
        """The pair over which a packet passes at each look."""

    async def packets(self, which: str) -> dict[Pair, int]:
        if self.grows is not None:
            self.passed[self.grows] += 1
        return dict(self.passed)


def test_a_link_over_which_nodes_say_nothing_is_dialed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a partition between nodes that only speak when they are asked is never seen to heal, and no run of such a
    store is evidence."""
    monkeypatch.setattr(packet_faults, "_LOOK_AGAIN_S", 0)
    monkeypatch.setattr(packet_faults, "_PROVOKED_AFTER_S", 0)
    kept, dialed = Idle(), list[Link]()

    async def provoke(link: Link) -> None:
        dialed.append(link)
        if len(dialed) > 1:  # a packet may be lost
            kept.passed[PAIR] += 1

    addresses = dict(zip(("n1", "n2"), PAIR, strict=True))
    packets = Packets(kept, addresses, lambda: 0, lambda _node: True, 1, provoke)
    assert asyncio.run(packets.fresh([("n1", "n2")])) == (True, [])
    assert dialed == [("n1", "n2")] * 2


class FailsOnce(SlowToGiveBack):
    """The first look at the packets fails."""

    def __init__(self) -> None:
        super().__init__()
        self.has_failed = False

    async def packets(self, which: str) -> dict[Pair, int]:
        if not self.has_failed:
            self.has_failed = True
            raise ClusterError("nft said nothing")
        return {}


def test_a_fault_that_could_not_begin_gives_no_link_back() -> None:
    """Else the next cut of this link is no cut, or a cut that is under way ends early."""
    addresses = dict(zip(("n1", "n2"), PAIR, strict=True))
    fault = Fault(id=0, name="partition", does="cut", at_ns=0, until_ns=1, links=(("n1", "n2"),))

    async def begin_in_vain_and_again() -> list[set[Pair]]:
        kept = FailsOnce()
        packets = Packets(kept, addresses, lambda: 0, lambda _node: True, 1, not_asked)
        broken = PacketFault(fault, packets)
        with pytest.raises(ClusterError):
            await broken.begin()
        await broken.heal()
        cut = PacketFault(fault, packets)
        await cut.begin()
        while_it_lasts = set(kept.cut)
        await cut.heal()
        return [while_it_lasts, kept.cut]

    assert asyncio.run(begin_in_vain_and_again()) == [{PAIR}, set()]


def test_a_fault_that_ends_does_not_take_the_link_from_one_that_begins() -> None:
    """Else a partition is not there while the history says that it is, and its end is refused by the kernel."""

    async def overlap() -> list[set[Pair]]:
        kept = SlowToGiveBack()
        packets = Packets(kept, {}, lambda: 0, lambda _node: True, 1, not_asked)
        await packets.add("cuts", [PAIR])
        await asyncio.gather(packets.remove("cuts", [PAIR]), packets.add("cuts", [PAIR]))
        while_the_second_lasts = set(kept.cut)
        await packets.remove("cuts", [PAIR])
        return [while_the_second_lasts, kept.cut]

    assert asyncio.run(overlap()) == [{PAIR}, set()]


def test_links_that_nothing_can_pass_are_not_said_to_be_healed() -> None:
    """If it failed, a cut around a dead node would count as healed, and nobody had looked."""
    addresses = {"n1": PAIR[0], "n2": PAIR[1], "n3": "10.0.0.3"}
    kept = Idle()
    packets = Packets(kept, addresses, lambda: 0, lambda node: node != "n1", 1, not_asked)
    both = [("n1", "n2"), ("n2", "n1")]
    untried = ["n1→n2 could not be tried", "n2→n1 could not be tried"]
    assert asyncio.run(packets.fresh(both)) == (None, untried)
    kept.grows = (PAIR[1], "10.0.0.3")
    assert asyncio.run(packets.fresh([*both, ("n2", "n3")])) == (True, untried)


def test_nft_that_does_not_answer_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a busy machine would end a run with a traceback."""

    def hang(words: list[str], **how: Any) -> None:
        raise subprocess.TimeoutExpired(words, how["timeout"])

    monkeypatch.setattr("subprocess.run", hang)
    with pytest.raises(ClusterError, match="nft did not answer within 10 s"):
        asyncio.run(PacketFilter("qsync_test").change("cuts", add=[PAIR]))


class Told(PacketFilter):
    """Counts as they are set. Once `heals`, a packet passes over every link at each look."""

    def __init__(self, met: int, dropped: int, passed: int) -> None:
        super().__init__("qsync_test")
        self.met, self.lost, self.passed, self.heals = met, dropped, passed, False

    async def change(self, which: str, *, add: Iterable[Pair] = (), remove: Iterable[Pair] = ()) -> None: ...

    async def dropped(self, which: str) -> int:
        return self.lost

    async def packets(self, which: str) -> dict[Pair, int]:
        self.passed += self.heals
        return {PAIR: self.passed if which == "links" else self.met}


@pytest.mark.parametrize(
    ("does", "lasted_ns", "met", "dropped", "passed", "took_effect", "used"),
    [
        ("cut", 11, 1, 0, 0, True, 1),
        ("cut", 10, 1, 0, 0, False, 1),
        ("cut", 11, 0, 0, 0, False, 0),
        ("cut", 11, 0, 0, 1, False, 1),
        ("loss", 11, 1, 1, 0, True, 1),
        ("loss", 11, 1, 0, 0, False, 1),
        ("loss", 10, 1, 1, 0, False, 1),
    ],
)
def test_a_fault_took_effect_if_it_met_packets_for_longer_than_a_heartbeat(
    does: str, lasted_ns: int, met: int, dropped: int, passed: int, took_effect: bool, used: int
) -> None:
    """If it failed, a run whose faults met nothing would be a green light."""
    now_ns = 100
    percent = 30 if does == "loss" else None
    links = (("n1", "n2"),)
    fault = Fault(id=0, name="f", does=does, at_ns=0, until_ns=1, links=links, percent=percent)  # type: ignore[arg-type]

    async def evidence() -> Evidence:
        nonlocal now_ns
        told = Told(5, 3, passed)
        addresses = dict(zip(("n1", "n2"), PAIR, strict=True))
        packets = Packets(told, addresses, lambda: now_ns, lambda _node: True, 10, not_asked)
        one = PacketFault(fault, packets)
        await one.begin()
        told.met, told.lost, now_ns = 5 + met, 3 + dropped, 100 + lasted_ns
        await one.heal()
        told.heals = True
        return await one.evidence()

    found = asyncio.run(evidence())
    lost = {} if does == "cut" else {"packets_dropped": dropped}
    counters = {"links": 1, "links_used": used, "links_affected": met, "packets_met": met, **lost}
    assert (found.took_effect, found.healed, found.counters) == (took_effect, True, counters)


def test_packets_that_the_harness_provoked_use_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a cut of a link that no node uses would count as one that could have had an effect."""
    monkeypatch.setattr(packet_faults, "_LOOK_AGAIN_S", 0)
    monkeypatch.setattr(packet_faults, "_PROVOKED_AFTER_S", 0)
    kept = Idle()

    async def provoke(link: Link) -> None:
        kept.passed.update((PAIR, PAIR[::-1]))

    async def uses() -> list[tuple[bool, bool]]:
        packets = Packets(kept, dict(zip(("n1", "n2"), PAIR, strict=True)), int, bool, 1, provoke)
        await packets.fresh([("n1", "n2")])
        await packets.note_used()
        seen = [(packets.is_used(("n1", "n2")), packets.is_used(("n2", "n1")))]
        kept.passed[PAIR] += 1
        await packets.note_used()
        return [*seen, (packets.is_used(("n1", "n2")), packets.is_used(("n2", "n1")))]

    assert asyncio.run(uses()) == [(False, False), (True, False)]


def test_a_link_that_another_fault_cuts_the_other_way_cannot_be_tried() -> None:
    """If it failed, a link on which no answer can come would be said not to heal."""

    async def fresh() -> tuple[bool | None, list[str]]:
        packets = Packets(Idle(), dict(zip(("n1", "n2"), PAIR, strict=True)), int, bool, 1, not_asked)
        packets.asked["cuts"][PAIR[::-1]] += 1
        return await packets.fresh([("n1", "n2")])

    assert asyncio.run(fresh()) == (None, ["n1→n2 could not be tried"])


def test_a_cut_that_is_cancelled_before_its_turn_gives_no_link_back() -> None:
    """If it failed, the next cut of this link would be no cut."""
    fault = Fault(id=0, name="partition", does="cut", at_ns=0, until_ns=1, links=(("n1", "n2"),))

    class Cutting(SlowToGiveBack):
        async def packets(self, which: str) -> dict[Pair, int]:
            return {}

    async def cancelled_and_again() -> list[set[Pair]]:
        kept = Cutting()
        packets = Packets(kept, dict(zip(("n1", "n2"), PAIR, strict=True)), int, bool, 1, not_asked)
        await packets.add("cuts", [OTHER])
        first = PacketFault(fault, packets)
        in_turn = asyncio.create_task(packets.remove("cuts", [OTHER]))
        waits = asyncio.create_task(first.begin())
        for _ in range(2):
            await asyncio.sleep(0)
        waits.cancel()
        await asyncio.wait((waits, in_turn))
        await first.heal()
        cut = PacketFault(fault, packets)
        await cut.begin()
        while_it_lasts = set(kept.cut)
        await cut.heal()
        return [while_it_lasts, kept.cut]

    assert asyncio.run(cancelled_and_again()) == [{PAIR}, set()]


def test_a_node_whose_power_stayed_on_gives_no_link_back() -> None:
    """If it failed, the next power loss of a node would leave it its network."""
    fault = Fault(id=0, name="power", does="power", at_ns=0, until_ns=1, nodes=("n1",))

    async def cancelled_and_again() -> list[set[Pair]]:
        kept = SlowToGiveBack()
        packets = Packets(kept, dict(zip(("n1", "n2"), PAIR, strict=True)), int, bool, 1, not_asked)
        first, second = PacketIsolation(packets), PacketIsolation(packets)
        await first.join(fault)
        await second.cut_off(fault)
        while_it_lasts = set(kept.cut)
        await second.join(fault)
        return [while_it_lasts, kept.cut]

    assert asyncio.run(cancelled_and_again()) == [{PAIR, PAIR[::-1]}, set()]
