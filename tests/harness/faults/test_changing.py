"""Partitions that change: what is drawn, and what is known of one that is over."""

from __future__ import annotations

import asyncio
import itertools
import random
from types import SimpleNamespace
from typing import Any

import pytest

from harness.cluster.sim.virtual_tasks import Pending, VirtualTask
from harness.faults import cut as partitions
from harness.faults.changing_cut import (
    RealChangingCut,
    VirtualChangingCut,
    all_links,
    draw_shapes,
    draw_steps,
    merged,
    part_of,
)
from harness.faults.fault import Evidence, Fault, Shape
from harness.faults.virtual import VirtualHands
from harness.plan.schedule import draw_faults, names_for
from harness.systems import SYSTEMS
from harness.systems.plans import planned

SECOND_NS = 1_000_000_000


@pytest.mark.parametrize("many", [2, 3, 4, 5])
def test_every_shape_cuts_something_and_differs_from_the_one_before(many: int) -> None:
    """Broken if a partition that is said to change stays what it was, or is healed between."""
    nodes = [f"n{number}" for number in range(1, many + 1)]
    drawn = [
        draw_shapes(nodes, "n1", random.Random(seed), 4 * SECOND_NS, SECOND_NS // 10) for seed in range(60)
    ]
    for shapes in drawn:
        assert 2 <= len(shapes) <= 6
        assert shapes[0].after_ns == 0
        times = [shape.after_ns for shape in shapes] + [4 * SECOND_NS]
        assert all(later - sooner > 4 * SECOND_NS // 12 for sooner, later in itertools.pairwise(times))
        for shape in shapes:
            assert shape.links
            assert len(shape.links) == len({*shape.links})
            assert all(source != target and {source, target} <= {*nodes} for source, target in shape.links)
        assert all({*one.links} != {*other.links} for one, other in itertools.pairwise(shapes))
    assert len(set(drawn)) > 30
    stays = [frozenset.intersection(*(frozenset(shape.links) for shape in shapes)) for shapes in drawn]
    assert any(stays)


def test_shapes_are_long_enough_to_be_felt() -> None:
    """Broken if a slow heartbeat makes shapes that nobody can notice."""
    for seed in range(20):
        shapes = draw_shapes(["n1", "n2", "n3"], "n1", random.Random(seed), 4 * SECOND_NS, SECOND_NS // 2)
        assert len(shapes) == 2


@pytest.mark.parametrize("many", [2, 3, 5])
def test_in_steps_one_direction_is_cut_before_the_other(many: int) -> None:
    """Broken if both directions were cut at once, or so shortly after each other that nobody could notice."""
    nodes = [f"n{number}" for number in range(1, many + 1)]
    heartbeat_ns = SECOND_NS // 4
    drawn = [draw_steps(nodes, "n1", random.Random(seed), 2 * SECOND_NS, heartbeat_ns) for seed in range(60)]
    for first, second in drawn:
        whole = [{*partitions.isolate(node, nodes)} for node in nodes]
        assert {*second.links} in whole, "one node receives nothing, and reaches no node"
        assert {*first.links} < {*second.links} and 2 * len(first.links) == len(second.links)
        assert 1 in (len({source for source, _ in first.links}), len({target for _, target in first.links}))
        assert heartbeat_ns < second.after_ns <= SECOND_NS
    assert {first.links[0][1] == "n1" for first, _ in drawn} == {True, False}, "deaf, and mute"


def test_a_partition_in_steps_is_drawn_where_it_is_named() -> None:
    """Broken if it were drawn by nobody, or changed what the seeds of today stand for."""
    assert not any(
        "partition-in-steps" in names_for(planned(cluster=cluster)) for cluster in ("local", "sim")
    )
    plan = planned(cluster="sim", seed=5, faults=("partition-in-steps",), time_limit_s=20)
    faults = draw_faults(plan, "n1", SYSTEMS["qsync"])
    assert len(faults) > 1 and all(len(fault.shapes) == 2 for fault in faults)


def test_the_schedule_draws_all_of_it_from_the_seed() -> None:
    """Broken if the line that repeats a run repeats other shapes, or a plan file could not hold them."""
    plan = planned(cluster="sim", seed=5, faults=("changing-partitions",), time_limit_s=20)
    faults = draw_faults(plan, "n1", SYSTEMS["qsync"])
    assert faults == draw_faults(plan, "n1", SYSTEMS["qsync"])
    assert len(faults) > 1
    for fault in faults:
        assert fault.links == all_links(fault.shapes)
        assert all(fault.at_ns + shape.after_ns < fault.until_ns for shape in fault.shapes)
    assert len({fault.shapes for fault in faults}) == len(faults)


def evidence(took_effect: bool, healed: bool | None, at_ns: int) -> Evidence:
    return Evidence(
        took_effect=took_effect,
        asked_ns=at_ns,
        first_effect_ns=at_ns + 2 if took_effect else None,
        all_in_effect_ns=at_ns + 1,
        heal_asked_ns=at_ns + 100,
        last_effect_ns=at_ns + 101,
        healed=healed,
        counters={"links": 2, "longest_withheld_ns": at_ns},
        detail="" if healed else "nothing passed",
    )


@pytest.mark.parametrize(
    ("affected", "took_effect"),
    [((True, True, True), True), ((True, False, True), True), ((True, False, False), False)],
)
def test_it_bit_if_two_shapes_were_felt(affected: tuple[bool, ...], took_effect: bool) -> None:
    """Broken if a plain partition counts as one that changed."""
    shapes = draw_shapes(["n1", "n2", "n3"], "n1", random.Random(1), 3 * SECOND_NS, SECOND_NS // 10)[:3]
    fault = Fault(
        id=4,
        name="x",
        does="changing-cut",
        at_ns=0,
        until_ns=9,
        shapes=shapes,
        links=all_links(shapes),
        seed=7,
    )
    parts = [part_of(fault, number) for number in range(len(affected))]
    assert parts[0].id == 4 and len({part.id for part in parts}) == len(parts)
    assert [part.links for part in parts] == [shape.links for shape in shapes]
    told = merged(
        parts, [evidence(took_effect, True, 1000 * place) for place, took_effect in enumerate(affected)]
    )
    assert told.took_effect == took_effect
    assert told.healed is True
    assert told.counters == {
        "shapes": 3,
        "shapes_affected": sum(affected),
        "changes_affected": sum(affected[1:]),
        "shapes_unused": 0,
        "links": 6,
        "longest_withheld_ns": 2000,
    }
    assert [shape.took_effect for shape in told.shapes] == [*affected]
    assert [(shape.in_effect_ns, shape.until_ns) for shape in told.shapes] == [
        (1, 100),
        (1001, 1100),
        (2001, 2100),
    ]
    assert merged(parts, [evidence(True, healed, 0) for healed in (True, None, True)]).healed is None
    assert merged(parts, [evidence(True, healed, 0) for healed in (False, None, True)]).healed is False


def test_a_link_in_both_shapes_is_never_open() -> None:
    """If it failed, what the old shape withheld would pass, or its connections be reset, on a link that stays cut."""
    done: list[tuple[str, object]] = []
    network = SimpleNamespace(
        cut=lambda links: done.append(("cut", links)),
        heal=lambda links, chance: done.append(("heal", links)),
        take_effects=lambda links: {},
    )
    world: Any = SimpleNamespace(network=network, agenda=SimpleNamespace(now_ns=0))
    old, new = ((("n1", "n2"), ("n2", "n1")), (("n1", "n2"), ("n1", "n3")))
    fault = Fault(
        id=0,
        name="changing-partitions",
        does="changing-cut",
        at_ns=0,
        until_ns=20,
        shapes=(Shape(after_ns=0, links=old), Shape(after_ns=10, links=new)),
    )

    async def changes() -> None:
        at_work = VirtualChangingCut(fault, VirtualHands(world, lambda time_ns: Pending(), 1))
        await at_work.begin()
        await at_work.change(1)

    VirtualTask(changes()).start()
    assert done == [("cut", old), ("cut", new), ("heal", old)]


@pytest.mark.parametrize("breaks_at", [1, 2, 3])
def test_a_change_that_breaks_off_leaves_no_shape_cut(breaks_at: int) -> None:
    """If it failed, links would stay cut behind the end of a fault that broke or was cancelled half-way."""
    cut_now: list[int] = []

    class Cut:
        def __init__(self, part: Fault) -> None:
            self.links = len(part.links)

        async def begin(self) -> None:
            cut_now.append(self.links)
            if self.links == breaks_at:
                raise OSError("broken")

        async def heal(self) -> None:
            cut_now.remove(self.links)

        async def evidence(self) -> Evidence:
            return evidence(True, True, 1)

    shapes = tuple(Shape(after_ns=0, links=(("n1", "n2"),) * number) for number in (1, 2, 3))
    fault = Fault(id=1, name="x", does="changing-cut", at_ns=0, until_ns=1, shapes=shapes)
    made: Any = Cut
    changing = RealChangingCut(fault, made)

    async def goes_on() -> None:
        await changing.begin()
        for number in (1, 2):
            await changing.change(number)
            assert cut_now == [number + 1]

    async def story() -> None:
        with pytest.raises(OSError, match="broken"):
            await goes_on()
        await changing.end()

    asyncio.run(story())
    assert cut_now == []


class MadeUpNetwork:
    """Of each shape that ends it says for how long something was withheld at most."""

    def __init__(self, *longest_ns: int) -> None:
        self.longest_ns = [*longest_ns]
        self.asked: list[tuple[str, str]] = []

    def cut(self, links: Any) -> None:
        self.asked.append(("cut", links[0][0]))

    def heal(self, links: Any, chance: random.Random) -> None:
        self.asked.append(("heal", links[0][0]))

    def take_effects(self, links: Any) -> dict[Any, Any]:
        longest_ns = self.longest_ns.pop(0)
        effects = ((9, longest_ns), (7, 0), (None, 1))
        return {
            number: SimpleNamespace(withheld=2, first_withheld_ns=first_ns, longest_withheld_ns=longest)
            for number, (first_ns, longest) in enumerate(effects)
        }

    def is_used(self, link: Any) -> bool:
        return bool(link[0] != "n2")


@pytest.mark.parametrize(
    ("longest_ns", "lasts_ns", "affected"),
    [((101, 101), 900, 2), ((101, 100), 900, 1), ((9_000, 9_000), 101, 2), ((9_000, 9_000), 100, 0)],
)
def test_a_change_took_effect_if_two_shapes_did(
    longest_ns: tuple[int, int], lasts_ns: int, affected: int
) -> None:
    """Broken if a change that no node could notice counts, or a link in both shapes is open in between."""
    now_ns, network = [1_000], MadeUpNetwork(*longest_ns)

    class Observed(VirtualChangingCut):
        async def traffic_passes(self, pairs: Any) -> bool:
            return False

    links = ((("n1", "n3"),), (("n2", "n3"), ("n2", "n1")))
    shapes = tuple(Shape(after_ns=5 * place, links=each) for place, each in enumerate(links))
    fault = Fault(id=1, name="x", does="changing-cut", at_ns=0, until_ns=1, shapes=shapes)

    async def story() -> Evidence:
        hands: Any = SimpleNamespace(now_ns=lambda: now_ns[0], network=network, heartbeat_ns=100)
        at_work = Observed(fault, hands)
        await at_work.begin()
        now_ns[0] += lasts_ns
        await at_work.change(1)
        now_ns[0] += lasts_ns
        return await at_work.end()

    evidence = asyncio.run(story())
    assert network.asked == [("cut", "n1"), ("cut", "n2"), ("heal", "n1"), ("heal", "n2")]
    assert (evidence.took_effect, evidence.healed) == (affected == 2, False)
    assert evidence.counters == {
        "shapes": 2,
        "shapes_affected": affected,
        "changes_affected": affected // 2,
        "shapes_unused": 1,
        "withheld": 12,
    }
    assert (evidence.first_effect_ns, evidence.all_in_effect_ns) == (7, 1_000)
    assert [(shape.asked_ns, shape.until_ns) for shape in evidence.shapes] == [
        (1_000, 1_000 + lasts_ns),
        (1_000 + lasts_ns, 1_000 + 2 * lasts_ns),
    ]
