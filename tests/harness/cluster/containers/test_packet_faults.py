"""Faults of the network that overlap on a link, without a kernel."""

from __future__ import annotations

import asyncio
import subprocess
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from harness.cluster.containers import packet_faults
from harness.cluster.containers.packet_faults import PacketFault, Packets
from harness.cluster.containers.packet_filter import PacketFilter, Pair
from harness.errors import ClusterError
from harness.faults.fault import Fault, Link

PAIR = ("10.0.0.1", "10.0.0.2")


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
