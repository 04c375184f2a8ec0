"""Slow, jitter, reorder and bandwidth: links deliver late, at ever other times, out of order, or little."""

from __future__ import annotations

from collections.abc import Mapping

from harness.faults.action import (
    MILLISECOND_NS,
    Action,
    Fields,
    Kind,
    Situation,
    links_of_one_or_all,
)
from harness.faults.fault import Evidence, Fault
from harness.faults.hands import AtWork, Hands
from harness.faults.virtual import VirtualFault, VirtualHands
from harness.faults.where import DOCKER, LOCAL, REAL, SIM, SSH, by_name, no
from nodes.world.shaping import Shaping

MICROSECOND_NS = 1_000
ONE_STREAM = no(
    LOCAL | SSH,
    "the relay passes on byte streams, in which nothing can overtake: packets can, see --cluster docker",
)


class VirtualShaping(VirtualFault):
    """Took effect if messages were late, differently late, overtaken or queued, as the fault says."""

    def __init__(self, fault: Fault, hands: VirtualHands) -> None:
        super().__init__(fault, hands)
        self.shaping = Shaping(
            delay_ns=fault.delay_ns,
            jitter_ns=fault.jitter_ns,
            percent=fault.percent if fault.does == Reorder.does else 100,
            bytes_per_s=fault.bytes_per_s,
        )

    async def begin(self) -> None:
        self.hands.network.shape(self.fault.links, self.shaping)

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        network = self.hands.network
        network.unshape(self.fault.links, self.shaping)
        took_effect, counters = self._effect()
        used = {"links_used": sum(map(network.is_used, self.fault.links))}
        return self.evidence(took_effect, {**used, **counters}, first_ns=self.shaping.first_delayed_ns)

    def _effect(self) -> tuple[bool, Mapping[str, int]]:
        effect = self.shaping
        least_ns, most_ns = effect.least_late_ns or 0, effect.most_late_ns
        counters = {
            "delayed": effect.delayed,
            "least_delay_us": least_ns // MICROSECOND_NS,
            "most_delay_us": most_ns // MICROSECOND_NS,
        }
        match self.fault.does:
            case Jitter.does:
                return effect.delayed > 0 and most_ns - least_ns >= self.fault.jitter_ns // 2, counters
            case Reorder.does:
                return effect.overtook > 0, counters | {"overtook": effect.overtook}
            case Bandwidth.does:
                longest_us = effect.longest_queued_ns // MICROSECOND_NS
                return effect.queued > 0, counters | {
                    "queued": effect.queued,
                    "longest_queued_us": longest_us,
                }
        return effect.delayed > 0, counters


def slow(situation: Situation) -> Fields:
    links = tuple(links_of_one_or_all(situation))
    delay_ns = situation.chance.randrange(20, 80) * MILLISECOND_NS
    return {"links": links, "delay_ns": delay_ns, "jitter_ns": delay_ns // 2}


def jitter(situation: Situation) -> Fields:
    """Delays are spread evenly between 0 and twice the mean."""
    drawn = slow(situation)
    return {**drawn, "jitter_ns": drawn["delay_ns"]}


def reorder(situation: Situation) -> Fields:
    return {
        "links": slow(situation)["links"],
        "delay_ns": situation.chance.randrange(10, 50) * MILLISECOND_NS,
        "percent": situation.chance.randrange(20, 50),
    }


def narrow(situation: Situation) -> Fields:
    """All links of the leader, which sends the most, or all links, with less than a hundred writes a second need."""
    nodes, chance = situation.nodes, situation.chance
    node = chance.choice((situation.leader or chance.choice(list(nodes)), None))
    links = tuple((a, b) for a in nodes for b in nodes if a != b and node in (a, b, None))
    return {"links": links, "bytes_per_s": chance.randrange(6, 25) * 1000}


class ShapedAction(Action):
    """An action that changes how links deliver."""

    packets = "shaped"

    def virtual(self, fault: Fault, hands: VirtualHands) -> AtWork:
        return VirtualShaping(fault, hands)

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        return hands.links.shape(fault)


class Slow(ShapedAction):
    """The directed `links` delay what they carry by `delay_ns` ± `jitter_ns`; order is kept."""

    does = "slow"
    kinds = (Kind(name="slow", group="slow", summary="links are slow", draw=slow, nodes_min=2),)
    fields = ("links", "delay_ns")


class Jitter(ShapedAction):
    """As slow; takes effect only if the delays differ: by half of `jitter_ns` at least."""

    does = "jitter"
    kinds = (
        Kind(
            name="jitter",
            group="slow",
            summary="links are slow by ever other times, from not at all to twice the mean",
            draw=jitter,
            where=REAL | by_name(SIM),
            nodes_min=2,
        ),
    )
    fields = ("links", "jitter_ns")


class Reorder(ShapedAction):
    """`percent` of what the directed `links` carry comes later by `delay_ns`, and what is behind overtakes it."""

    does = "reorder"
    kinds = (
        Kind(
            name="reorder",
            group="slow",
            summary="some of what a link carries comes late, and what is behind overtakes it",
            draw=reorder,
            where=DOCKER | by_name(SIM) | ONE_STREAM,
            nodes_min=2,
        ),
    )
    fields = ("links", "delay_ns", "percent")


class Bandwidth(ShapedAction):
    """Over each of the directed `links` pass `bytes_per_s` at most."""

    does = "bandwidth"
    kinds = (
        Kind(
            name="bandwidth",
            group="slow",
            summary="so many bytes a second pass a link and no more",
            draw=narrow,
            where=REAL | by_name(SIM),
            nodes_min=2,
        ),
    )
    fields = ("links", "bytes_per_s")
