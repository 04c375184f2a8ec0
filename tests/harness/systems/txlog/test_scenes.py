"""The shapes of parts, and the scenes that are drawn of them."""

from __future__ import annotations

import random
import re

import pytest

from harness.faults.directed import Scene, draw_directed
from harness.systems.txlog.scenes import MESSAGES, NO_HUB, OF_SPLITS, RECORDS, SCENES, SHAPES, across, between
from nodes.txlog import journal, links

FOUR = ("n1", "n2", "n3", "n4")


def test_a_ring_loses_the_links_across_it() -> None:
    """If it failed, the one cut that stalls a connected cluster would never be drawn."""
    assert set(across(FOUR)) == {("n1", "n3"), ("n3", "n1"), ("n2", "n4"), ("n4", "n2")}
    assert across(FOUR[:3]) == ()


def test_parts_hear_nothing_of_each_other() -> None:
    links = set(between((("n1", "n2"), ("n3",))))
    assert links == {("n1", "n3"), ("n3", "n1"), ("n2", "n3"), ("n3", "n2")}


def test_faults_wait_for_words_that_masters_say() -> None:
    """If it failed, a fault that waits for a message or a record would never begin, and no run would say so."""
    assert {*MESSAGES} <= {*links.WORDS}
    assert {*RECORDS, *OF_SPLITS} <= {*re.findall(r'`\["([\w-]+)"', journal.__doc__ or "")}


@pytest.mark.parametrize("shape", NO_HUB)
@pytest.mark.parametrize("count", [4, 5, 7])
def test_a_network_without_a_hub_is_connected(shape: str, count: int) -> None:
    """If it failed, runs would say nothing of masters that reach each other over others alone."""
    names = [f"n{number}" for number in range(1, count + 1)]
    down = set(NO_HUB[shape](names))
    heard = {name: {other for other in names if (name, other) not in down} for name in names}
    assert all((peer, node) in down for node, peer in down), "links are lost both ways"
    assert not any(heard[name] == {*names} for name in names)
    reached = {names[0]}
    for _ in names:
        reached |= {other for name in reached for other in heard[name]}
    assert reached == {*names}


def test_networks_without_a_hub_are_drawn() -> None:
    """If it failed, no hunt would meet one but the ring."""
    drawn = {
        fault.name.removeprefix("cut-")
        for seed in range(40)
        for fault in draw_directed(
            FOUR, random.Random(seed), 0, 60 * 10**9, 1, scenes=SCENES["holds"], fails_over=False
        )
    }
    assert {*NO_HUB, *SHAPES} <= drawn


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [2, 3, 4, 5, 7])
def test_a_shape_cuts_links_of_two_masters(shape: str, count: int) -> None:
    """If it failed, a fault would begin that cuts nothing, or a link of a master with itself."""
    names = [f"n{number}" for number in range(1, count + 1)]
    links = SHAPES[shape](names)
    assert all(one != other for one, other in links)
    assert links or (shape in ("ring", "pairs") and count <= 3)


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("count", [2, 3, 5])
def test_all_scenes_are_faults(name: str, count: int) -> None:
    """If it failed, a hunt would end at a fault that lacks a field."""
    nodes = FOUR[:count] if count < 5 else (*FOUR, "n5")
    for draw, _ in SCENES[name]:
        for seed in range(30):
            scene = Scene(0, random.Random(seed), nodes, [])
            draw(scene)
    faults = [
        *draw_directed(nodes, random.Random(1), 0, 60 * 10**9, 1, scenes=SCENES[name], fails_over=False)
    ]
    assert len({fault.name for fault in faults}) >= 5
