"""Faults of the network that overlap on a link, without a kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from harness.cluster.containers.packet_faults import Packets
from harness.cluster.containers.packet_filter import PacketFilter, Pair

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


def test_a_fault_that_ends_does_not_take_the_link_from_one_that_begins() -> None:
    """Else a partition is not there while the history says that it is, and its end is refused by the kernel."""

    async def overlap() -> list[set[Pair]]:
        kept = SlowToGiveBack()
        packets = Packets(kept, {}, lambda: 0, lambda _node: True, 1)
        await packets.add("cuts", [PAIR])
        await asyncio.gather(packets.remove("cuts", [PAIR]), packets.add("cuts", [PAIR]))
        while_the_second_lasts = set(kept.cut)
        await packets.remove("cuts", [PAIR])
        return [while_the_second_lasts, kept.cut]

    assert asyncio.run(overlap()) == [{PAIR}, set()]
