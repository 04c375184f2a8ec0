"""Partitions that change: one shape follows another, and nothing is healed between them.

A change closes its new links before it opens the old ones: a link that is in both shapes passes nothing meanwhile.
In one of three such faults some links stay cut all the while.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from harness.faults.action import Action, Draw, Fields, Kind, Situation
from harness.faults.cut import bridge, halves, isolate, isolate_one, isolate_owner, majorities_ring, one_way
from harness.faults.fault import Evidence, Fault, Link, Shape, ShapeSeen
from harness.faults.hands import AtWork, CutAtWork, Hands
from harness.faults.virtual import VirtualFault, VirtualHands, first
from harness.faults.where import EVERYWHERE, by_name
from nodes.world.network import Effect

CHANGING = "changing-partitions"
IN_STEPS = "partition-in-steps"
SHAPES = (isolate_one, halves, majorities_ring, bridge, one_way)
SHAPES_WITH_OWNER = (isolate_owner, *SHAPES)
MANY = (3, 7)
BEATS_MIN = 3
"""A shape that is shorter than so many heartbeats may have no effect on any node."""
FIRST_STEP_BEATS = (1.4, 2.4)
"""How many heartbeats the first step of a partition in steps lasts."""
_TRIES = 20


def draw_shapes(
    nodes: Sequence[str], owner: str, chance: random.Random, lasts_ns: int, heartbeat_ns: int
) -> tuple[Shape, ...]:
    """Two shapes or more with their begins, each different from the one before."""
    many = max(2, min(chance.randrange(*MANY), lasts_ns // (BEATS_MIN * heartbeat_ns)))
    stays = one_way(nodes, owner, chance)[:1] if chance.random() < 1 / 3 else ()
    shapes: list[tuple[Link, ...]] = []
    for _ in range(many):
        shapes.append(_another(nodes, owner, chance, stays, shapes[-1:]))
    shares = [chance.uniform(0.8, 1.2) for _ in shapes]
    begins = [int(lasts_ns * sum(shares[:place]) / sum(shares)) for place in range(many)]
    return tuple(
        Shape(after_ns=begin_ns, links=links) for begin_ns, links in zip(begins, shapes, strict=True)
    )


def draw_steps(
    nodes: Sequence[str], owner: str, chance: random.Random, lasts_ns: int, heartbeat_ns: int
) -> tuple[Shape, ...]:
    """One node, mostly the owner, is first deaf or mute, and a moment later cut off in both directions.

    Partitions come like this in practice, where one direction of a path fails, or one rule is set before the other: for
    a moment messages still arrive while their answers are lost, then nothing does. The moment is long enough to show.
    """
    node = owner if owner in nodes and chance.random() < 2 / 3 else chance.choice(list(nodes))
    others = [other for other in nodes if other != node]
    inwards = tuple((other, node) for other in others)
    outwards = tuple((node, other) for other in others)
    first = inwards if chance.random() < 0.5 else outwards
    after_ns = min(int(chance.uniform(*FIRST_STEP_BEATS) * heartbeat_ns), lasts_ns // 2)
    return Shape(after_ns=0, links=first), Shape(after_ns=after_ns, links=(*inwards, *outwards))


def _another(
    nodes: Sequence[str],
    owner: str,
    chance: random.Random,
    stays: Iterable[Link],
    before: Sequence[tuple[Link, ...]],
) -> tuple[Link, ...]:
    possible = SHAPES_WITH_OWNER if owner in nodes else SHAPES
    for _ in range(_TRIES):
        drawn = chance.choice(possible)(nodes, owner, chance)
        links = tuple(dict.fromkeys((*stays, *drawn)))
        if drawn and all({*links} != {*other} for other in before):
            return links
    # So few nodes that chance found the same again and again.
    whole = isolate(owner if owner in nodes else nodes[0], nodes)
    return whole if all({*whole} != {*other} for other in before) else whole[:1]


def all_links(shapes: Iterable[Shape]) -> tuple[Link, ...]:
    """Every link that is cut at some time."""
    return tuple(dict.fromkeys(link for shape in shapes for link in shape.links))


@dataclass(slots=True)
class ShapeAtWork:
    links: tuple[Link, ...]
    begun_ns: int
    until_ns: int | None = None
    withheld: int = 0
    longest_ns: int = 0
    first_ns: int | None = None

    def ends(self, now_ns: int, effects: Mapping[Link, Effect]) -> None:
        """End the shape. Bytes that were withheld before it began count from its begin on."""
        self.until_ns = now_ns
        self.withheld = sum(effect.withheld for effect in effects.values())
        longest_ns = max((effect.longest_withheld_ns for effect in effects.values()), default=0)
        self.longest_ns = min(longest_ns, now_ns - self.begun_ns)
        self.first_ns = first(effect.first_withheld_ns for effect in effects.values())

    def took_effect(self, heartbeat_ns: int) -> bool:
        return self.longest_ns > heartbeat_ns

    def observed(self, heartbeat_ns: int) -> ShapeSeen:
        return ShapeSeen(
            links=self.links,
            asked_ns=self.begun_ns,
            in_effect_ns=self.begun_ns,
            until_ns=self.until_ns,
            took_effect=self.took_effect(heartbeat_ns),
        )


class VirtualChangingCut(VirtualFault):
    """Took effect if two shapes did: otherwise no node observed a change."""

    def __init__(self, fault: Fault, hands: VirtualHands) -> None:
        super().__init__(fault, hands)
        self._observed: list[ShapeAtWork] = []

    async def begin(self) -> None:
        self.hands.network.cut(self.fault.shapes[0].links)
        self._observed = [ShapeAtWork(self.fault.shapes[0].links, self.asked_ns)]

    async def change(self, number: int) -> None:
        """Switch to another shape at one instant; links cut in both shapes stay cut."""
        network, last = self.hands.network, self._observed[-1]
        last.ends(self.hands.now_ns(), network.take_effects(last.links))
        links = self.fault.shapes[number].links
        network.cut(links)  # before the old ones are healed: a link in both is never open
        network.heal(last.links, random.Random(self.fault.seed + number))
        self._observed.append(ShapeAtWork(links, self.hands.now_ns()))

    async def end(self) -> Evidence:
        self.heal_asked_ns = self.hands.now_ns()
        network, observed, heartbeat_ns = self.hands.network, self._observed, self.hands.heartbeat_ns
        observed[-1].ends(self.heal_asked_ns, network.take_effects(observed[-1].links))
        network.heal(observed[-1].links, random.Random(self.fault.seed))
        healed = await self.traffic_passes(all_links(self.fault.shapes))
        affected = [shape.took_effect(heartbeat_ns) for shape in observed]
        counters = {
            "shapes": len(observed),
            "shapes_affected": sum(affected),
            "changes_affected": sum(affected[1:]),
            "shapes_unused": sum(not any(map(network.is_used, shape.links)) for shape in observed),
            "withheld": sum(shape.withheld for shape in observed),
        }
        first_ns = first(shape.first_ns for shape in observed)
        evidence = self.evidence(sum(affected) > 1, counters, first_ns=first_ns, healed=healed)
        return msgspec.structs.replace(
            evidence, shapes=tuple(shape.observed(heartbeat_ns) for shape in observed)
        )


NUMBERS = 1 << 32
"""Numbers of faults in plans are smaller."""
GREATEST = ("longest_withheld_ns", "longest_hanging_ns", "longest_withheld_ms")


class RealChangingCut:
    """Each shape is a cut of its own, under a number that no fault of a plan has, with evidence of its own. The next
    begins before the last one is healed, so a link in both is never open."""

    def __init__(self, fault: Fault, cut: Callable[[Fault], CutAtWork]) -> None:
        self._fault = fault
        self._cut = cut
        self._begun: list[tuple[Fault, CutAtWork]] = []
        self._healed = 0
        """How many of these, from the first one on, are healed."""

    async def begin(self) -> None:
        await self._begin(0)

    async def change(self, number: int) -> None:
        """Switch to the shape of that number."""
        await self._begin(number)
        await self._heal(len(self._begun) - 1)

    async def _begin(self, number: int) -> None:
        part = part_of(self._fault, number)
        cut = self._cut(part)
        self._begun.append((part, cut))
        await cut.begin()

    async def _heal(self, count: int) -> None:
        for _, cut in self._begun[self._healed : count]:
            await cut.heal()
            self._healed += 1

    async def end(self) -> Evidence:
        await self._heal(len(self._begun))  # a change that broke off has left two at work
        reports = [await cut.evidence() for _, cut in self._begun]
        return merged([part for part, _ in self._begun], reports)


def part_of(fault: Fault, number: int) -> Fault:
    """One shape, as a fault of its own."""
    return msgspec.structs.replace(
        fault,
        id=fault.id + number * NUMBERS,
        does="cut",
        links=fault.shapes[number].links,
        shapes=(),
        seed=fault.seed + number,
    )


def merged(parts: Sequence[Fault], reports: Sequence[Evidence]) -> Evidence:
    """The evidence of all shapes. It took effect if two shapes did: otherwise no node observed a change."""
    affected = [report.took_effect for report in reports]
    counters: Counter[str] = Counter()
    for report in reports:
        for name, count in report.counters.items():
            counters[name] = max(counters[name], count) if name in GREATEST else counters[name] + count
    healed = [report.healed for report in reports]
    return Evidence(
        took_effect=sum(affected) > 1,
        asked_ns=reports[0].asked_ns,
        first_effect_ns=first(report.first_effect_ns for report in reports),
        all_in_effect_ns=reports[0].all_in_effect_ns,
        heal_asked_ns=reports[-1].heal_asked_ns,
        last_effect_ns=reports[-1].last_effect_ns,
        healed=False if False in healed else None if None in healed else True,
        counters={
            "shapes": len(reports),
            "shapes_affected": sum(affected),
            "changes_affected": sum(affected[1:]),
            "shapes_unused": sum(report.counters.get("links_used") == 0 for report in reports),
            **counters,
        },
        detail="; ".join(dict.fromkeys(each.detail for each in reports if each.detail and not each.healed)),
        shapes=tuple(
            ShapeSeen(
                links=part.links,
                asked_ns=report.asked_ns,
                in_effect_ns=report.all_in_effect_ns,
                until_ns=report.heal_asked_ns,
                took_effect=report.took_effect,
            )
            for part, report in zip(parts, reports, strict=True)
        ),
    )


def shapes(draw_all: Callable[[Sequence[str], str, random.Random, int, int], tuple[Shape, ...]]) -> Draw:
    def draw(situation: Situation) -> Fields:
        drawn = draw_all(
            situation.nodes,
            situation.leader,
            situation.chance,
            situation.lasts_ns,
            situation.heartbeat_ns,
        )
        return {"shapes": drawn, "links": all_links(drawn)}

    return draw


def twice(drawn_ns: int, is_real: bool) -> int:
    """Several shapes need the time of two: where pending writes are cut off, an operator has to notice it, and the next
    owner waits in vain for them."""
    return 2 * drawn_ns


class ChangingCut(Action):
    """One of the `shapes` after the other is cut; nothing is healed between. `links` is all that is cut at some
    time."""

    does = "changing-cut"
    kinds = (
        Kind(
            name=CHANGING,
            group="partition",
            summary="one partition after another, of ever other shape, and nothing is healed between",
            draw=shapes(draw_shapes),
            nodes_min=2,
            lasts=twice,
        ),
        Kind(
            name=IN_STEPS,
            group="partition in steps",
            summary="one node, mostly the owner, is cut off in one direction first, and a moment later in both",
            draw=shapes(draw_steps),
            where=by_name(EVERYWHERE),
            nodes_min=2,
            lasts=twice,
        ),
    )
    fields = ("links", "shapes")
    packets = "filtered"

    def virtual(self, fault: Fault, hands: VirtualHands) -> AtWork:
        return VirtualChangingCut(fault, hands)

    def real(self, fault: Fault, hands: Hands) -> AtWork:
        return RealChangingCut(fault, hands.links.cut)
