"""Partitions: who still hears whom, for every number of nodes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from harness.faults import cut as partitions
from harness.faults.fault import Fault, Link
from harness.faults.virtual import VirtualFault, VirtualHands
from nodes.world.network import Effect

Shape = Callable[[Sequence[str], str, random.Random], tuple[Link, ...]]
SEEDS = range(20)
SHAPES: dict[str, tuple[Shape, int]] = {
    "isolate_owner": (partitions.isolate_owner, 2),
    "isolate_one": (partitions.isolate_one, 2),
    "halves": (partitions.halves, 2),
    "majorities_ring": (partitions.majorities_ring, 3),
    "bridge": (partitions.bridge, 3),
    "one_way": (partitions.one_way, 2),
}


def nodes_of(count: int) -> tuple[str, ...]:
    return tuple(f"n{number}" for number in range(1, count + 1))


def cuts(name: str, count: int) -> Iterator[frozenset[Link]]:
    shape, _ = SHAPES[name]
    for seed in SEEDS:
        nodes = nodes_of(count)
        links = shape(nodes, nodes[seed % count], random.Random(seed))
        assert len(set(links)) == len(links)
        yield frozenset(links)


def heard_by(node: str, count: int, cut: frozenset[Link]) -> frozenset[str]:
    """Whom a node hears directly, itself included."""
    return frozenset(other for other in nodes_of(count) if (other, node) not in cut)


def groups(count: int, cut: frozenset[Link]) -> frozenset[frozenset[str]]:
    """Whom each node hears: the same set for all nodes of a group that is whole."""
    return frozenset(heard_by(node, count, cut) for node in nodes_of(count))


def sizes(name: str) -> list[int]:
    return list(range(SHAPES[name][1], 8))


@pytest.mark.parametrize("name", SHAPES)
def test_only_links_between_two_nodes_are_cut(name: str) -> None:
    """If it failed, a partition would cut clients off, or a node from itself: another fault than its name says."""
    for count in sizes(name):
        for cut in cuts(name, count):
            assert cut, "nothing is cut"
            assert all(a != b and {a, b} <= set(nodes_of(count)) for a, b in cut)


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in ("one_way", "majorities_ring")])
def test_a_cut_goes_both_ways(name: str) -> None:
    """If it failed, rows would still come through a link that is said to be cut."""
    for count in sizes(name):
        for cut in cuts(name, count):
            assert {(b, a) for a, b in cut} == cut


def test_the_owner_is_alone() -> None:
    """If it failed, isolate-owner would force no decision about pending transactions."""
    for count in sizes("isolate_owner"):
        for seed, cut in zip(SEEDS, cuts("isolate_owner", count), strict=True):
            owner = nodes_of(count)[seed % count]
            others = frozenset(nodes_of(count)) - {owner}
            assert groups(count, cut) == {frozenset({owner}), others}


def test_one_that_is_not_the_owner_is_alone() -> None:
    """If it failed, isolate-one would take the quorum away, which other faults are for."""
    for count in sizes("isolate_one"):
        for seed, cut in zip(SEEDS, cuts("isolate_one", count), strict=True):
            owner = nodes_of(count)[seed % count]
            others = [node for node in nodes_of(count) if node != owner]
            assert cut in [frozenset(partitions.isolate(node, nodes_of(count))) for node in others]
        assert count == 2 or len(set(cuts("isolate_one", count))) > 1, "always the same one"


def test_halves_are_two_whole_groups() -> None:
    """If it failed, "two groups that cannot talk" would still be joined, or be more than two."""
    for count in sizes("halves"):
        for cut in cuts("halves", count):
            smaller, larger = sorted(groups(count, cut), key=len)
            assert (len(smaller), len(larger)) == (count // 2, count - count // 2)
            assert smaller | larger == set(nodes_of(count))


def test_every_node_hears_a_majority_and_no_two_the_same() -> None:
    """If it failed, the ring would be some other partition: nobody would have an odd view of who is up."""
    for count in sizes("majorities_ring"):
        for cut in cuts("majorities_ring", count):
            heard = [heard_by(node, count, cut) for node in nodes_of(count)]
            assert all(len(each) == count // 2 + 1 for each in heard)
            assert all(node in each for node, each in zip(nodes_of(count), heard, strict=True))
            assert len(set(heard)) == count


def test_a_bridge_joins_two_groups_that_do_not_hear_each_other() -> None:
    """If it failed, the node in the middle would be missing, or the groups would talk past it."""
    for count in sizes("bridge"):
        for cut in cuts("bridge", count):
            everyone = frozenset(nodes_of(count))
            heard = {node: heard_by(node, count, cut) for node in nodes_of(count)}
            (middle,) = [node for node in heard if heard[node] == everyone]
            sides = {heard[node] - {middle} for node in heard if node != middle}
            assert len(sides) == 2
            one, other = sides
            assert not one & other
            assert one | other | {middle} == everyone
            assert abs(len(one) - len(other)) <= 1


def test_one_way_makes_one_node_deaf_or_mute() -> None:
    """If it failed, "one way" would be a plain isolation, or would always be the same way."""
    for count in sizes("one_way"):
        ways = set()
        for cut in cuts("one_way", count):
            assert not {(b, a) for a, b in cut} & cut
            assert len(cut) == count - 1
            sources, targets = {a for a, _ in cut}, {b for _, b in cut}
            ways.add("mute" if len(sources) == 1 else "deaf")
            assert min(len(sources), len(targets)) == 1
        assert count == 2 or ways == {"mute", "deaf"}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_drawn_from_its_chance_alone(name: str) -> None:
    """If it failed, the same seed would not give the same partition."""
    for count in sizes(name):
        assert list(cuts(name, count)) == list(cuts(name, count))


def test_a_single_node_has_nobody_to_be_cut_from() -> None:
    """If it failed, a cluster of one would be partitioned from nobody, and the run pass for one with a fault."""
    assert partitions.isolate("n1", ["n1"]) == ()
    assert partitions.isolate_owner(["n1"], "n1", random.Random(1)) == ()


@pytest.mark.parametrize(
    ("passed", "goes_down", "healed"), [(1, False, True), (0, True, None), (1, True, True)]
)
def test_a_partition_has_healed_only_if_something_came_through(
    passed: int, goes_down: bool, healed: bool | None
) -> None:
    """If it failed, a cut whose nodes were stopped before a message came would be said to have been seen to heal."""
    pair = ("n1", "n2")
    machines = {name: SimpleNamespace(state="up") for name in pair}
    effects: dict[Link, Effect] = {}
    network = SimpleNamespace(effects=effects, is_used=lambda _: True, is_cut=lambda _: False)

    async def sleep_until(time_ns: int) -> None:
        effects[pair].passed += passed
        machines["n2"].state = "down" if goes_down else "up"

    agenda = SimpleNamespace(now_ns=0)
    world: Any = SimpleNamespace(network=network, machines=machines, agenda=agenda)
    fault = Fault(id=0, name="cut", does="cut", at_ns=0, until_ns=1, links=(pair,))
    at_work = VirtualFault(fault, VirtualHands(world, sleep_until, heartbeat_ns=1))
    assert asyncio.run(at_work.traffic_passes([pair])) is healed
