"""The scenes of the TxLog: parts of all shapes, masters that lag, and deaths around splits and recoveries.

`harness.faults.directed` says what a scene is. No master leads, so a scene names the master of its trigger, or any.
Kinds of messages are the first words (`nodes.txlog.links`, `rounds`, `splits`, `acquiring`), kinds of records those of
`nodes.txlog.journal`. A split needs silence for longer than the time-out: without one, a part only stands still.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, pairwise

from harness.faults.directed import MILLISECOND_NS, Scene, Scenes
from harness.faults.fault import Link, Moment
from harness.faults.held import HOLDS, MOMENTS

MESSAGES = ("post", "difference", "digest", "updates?", "updates", "seen")
RECORDS = ("made", "heard", "acquired", "added", "caught-up", "executed")
OF_SPLITS = ("split", "rejoined", "recovering", "recovered", "restored")
NTH = (1, 1, 1, 2, 3, 10, 30)
AFTER_MS = (0, 0, 0, 1, 5, 20, 100)
LONG_MS = (1_600, 3_500)
"""Longer than the shortest time-out of a split, with the rounds in which a part agrees on it."""


def _on_a_split(scene: Scene) -> Moment:
    return Moment(
        does=scene.chance.choice(("writes", "wrote")),
        what=scene.chance.choice(OF_SPLITS),
        nth=scene.chance.choice((1, 1, 2, 3)),
        after_ns=scene.chance.choice(AFTER_MS) * MILLISECOND_NS,
    )


# ---- shapes: which links are down


def between(parts: Iterable[Sequence[str]]) -> tuple[Link, ...]:
    """All links from one part to another."""
    part_of = {name: number for number, part in enumerate(parts) for name in part}
    return tuple((node, peer) for node in part_of for peer in part_of if part_of[node] != part_of[peer])


def across(ring: Sequence[str]) -> tuple[Link, ...]:
    """All links of masters that are not neighbours in the ring: every master is reached, over others."""
    size = len(ring)
    return tuple(
        (node, peer)
        for place, node in enumerate(ring)
        for peer_place, peer in enumerate(ring)
        if (place - peer_place) % size not in (0, 1, size - 1)
    )


def all_but(names: Sequence[str], stand: Iterable[Link]) -> tuple[Link, ...]:
    """All links but these, which stand both ways."""
    standing = {frozenset(link) for link in stand}
    return tuple(
        (node, peer)
        for node in names
        for peer in names
        if node != peer and frozenset((node, peer)) not in standing
    )


def across_but_one(names: Sequence[str]) -> tuple[Link, ...]:
    """The links between two sites, each whole, but for one."""
    sites = (names[: len(names) // 2], names[len(names) // 2 :])
    last = {sites[0][-1], sites[1][0]}
    return tuple(link for link in between(sites) if {*link} != last)


NO_HUB: Mapping[str, Callable[[Sequence[str]], tuple[Link, ...]]] = {
    "chain": lambda names: all_but(names, pairwise(names)),
    "sites": across_but_one,
    "star": lambda names: all_but(
        names, [*((names[0], leaf) for leaf in names[1:-1]), *pairwise(names[-2:])]
    ),
    "ring": across,
}
"""Networks in which every master reaches every other, over others; from four masters on, none hears all others."""
SHAPES: Mapping[str, Callable[[Sequence[str]], tuple[Link, ...]]] = {
    "one": lambda names: between((names[:1], names[1:])),
    "halves": lambda names: between((names[: len(names) // 2], names[len(names) // 2 :])),
    "pairs": lambda names: between([names[place : place + 2] for place in range(0, len(names), 2)]),
    "alone": lambda names: between([[name] for name in names]),
    "link": lambda names: ((names[0], names[1]), (names[1], names[0])),
    "one-way": lambda names: ((names[0], names[1]),),
    "ring": across,
}
"""Name → the links that are down, of masters in a random order; none if there are too few masters."""
CHANGED = "changed"
"""The name of a cut whose links that stand are drawn."""
CONNECTED = ("link", "ring")
"""Shapes that leave all masters connected: of four masters on, they stand for a network without a hub, too."""


def _cut(scene: Scene, shape: str, lasts_ns: int, on: Moment | None = None) -> None:
    names = list(scene.nodes)
    scene.chance.shuffle(names)
    if shape in CONNECTED and len(names) > 3:  # a stream of its own: older seeds draw all else as before
        shape = random.Random(f"{shape} {scene.at_ns} {names}").choice([*NO_HUB, shape])
    links = {**SHAPES, **NO_HUB}[shape](names) if len(names) > 1 else ()
    if links:
        scene.add("cut-" + shape, "hold", lasts_ns, on, links=links)


def _change(scene: Scene, lasts_ns: int) -> None:
    """Other links are down, whichever: a majority is connected or not, and masters of parts meet in new ones."""
    pairs = [*combinations(scene.nodes, 2)]
    stand = scene.chance.sample(pairs, scene.chance.randint(1, len(pairs) - 1))
    scene.add("cut-" + CHANGED, "hold", lasts_ns, links=all_but(scene.nodes, stand))


# ---- scenes


def _long_split(scene: Scene) -> None:
    """From four masters on, the links change up to three times in some of them."""
    shape, lasts_ns = scene.chance.choice(list(SHAPES)), scene.lasts(*LONG_MS)
    _cut(scene, shape, lasts_ns)
    chance = random.Random(f"changes {scene.at_ns} {lasts_ns}")  # as in `_cut`, a stream of its own
    if len(scene.nodes) > 3 and chance.random() < 0.5:
        later = Scene(scene.at_ns + lasts_ns, chance, scene.nodes, scene.faults)
        for _ in range(chance.choice((1, 1, 2))):
            lasts_ns = later.lasts(*LONG_MS)
            _change(later, lasts_ns)
            later.at_ns += lasts_ns


def _two_splits(scene: Scene) -> None:
    """The second one comes when masters begin, or finish, the recovery from the first."""
    _cut(scene, scene.chance.choice(("one", "halves", "pairs", "alone")), scene.lasts(*LONG_MS))
    what = scene.chance.choice(("recovering", "recovered", "recovered", "restored", "rejoined"))
    moment = Moment(does="wrote", what=what, after_ns=scene.chance.choice(AFTER_MS) * MILLISECOND_NS)
    _cut(scene, scene.chance.choice(("one", "halves", "alone")), scene.lasts(2_500, 5_000), moment)


def _dies_in_a_split(scene: Scene) -> None:
    _cut(scene, scene.chance.choice(("one", "halves", "alone")), scene.lasts(*LONG_MS))
    scene.add("kill-in-split", scene.death(), scene.lasting(50, 2_500), _on_a_split(scene), nodes=("@it",))


def _lags(scene: Scene) -> None:
    """One master hears the others late, and is given differences."""
    scene.add("lagging", "hold", scene.lasting(100, 1_500), links=(("*", scene.one()),))


def _far_apart(scene: Scene) -> None:
    """Two data centres with a slow link between them."""
    names = list(scene.nodes)
    scene.chance.shuffle(names)
    scene.add(
        "slow-link",
        "slow",
        scene.lasts(1_000, 3_000),
        links=between((names[: len(names) // 2], names[len(names) // 2 :])),
        delay_ns=scene.lasts(30, 250),
        jitter_ns=scene.lasts(1, 30),
    )


def _updates_are_late(scene: Scene) -> None:
    """Masters know transactions whose updates they lack: rounds stop in front of them."""
    links: tuple[Link, ...] = (("*", scene.one()),) if scene.chance.random() < 0.5 else ((scene.one(), "*"),)
    scene.add("hold-updates", "hold", scene.lasting(50, 1_500), links=links, kinds=("updates", "updates?"))


def _messages_are_late(scene: Scene) -> None:
    kind = scene.chance.choice(MESSAGES)
    scene.add("hold-" + kind, "hold", scene.lasting(20, 1_500), links=scene.some_links(), kinds=(kind,))


def _slow_records(scene: Scene) -> None:
    kinds = scene.chance.choice((("made",), ("heard",), ("added",), ("executed",), ()))
    scene.add("slow-disk", "slow-disk", scene.lasting(20, 1_200), nodes=(scene.one(),), kinds=kinds)


def _dies_in_a_round(scene: Scene) -> None:
    moment = Moment(
        does=scene.chance.choice(("writes", "wrote")),
        what=scene.chance.choice(RECORDS),
        nth=scene.chance.choice(NTH),
    )
    scene.add("kill-in-round", scene.death(), scene.lasting(50, 1_500), moment, nodes=("@it",))


READY_MADE: Scenes = (
    (_long_split, 3),
    (_two_splits, 2),
    (_dies_in_a_split, 2),
    (_lags, 2),
    (_far_apart, 1),
    (_updates_are_late, 2),
    (_messages_are_late, 2),
    (_slow_records, 1),
    (_dies_in_a_round, 2),
)
"""With how often each is drawn."""


# ---- all is drawn


def _drawn(scene: Scene) -> None:
    """One to three hindrances, each at a moment of its own or at once."""
    chance = scene.chance
    for _ in range(chance.choice((1, 1, 2, 3))):
        on = scene.moment((*RECORDS, *OF_SPLITS), MESSAGES, NTH, AFTER_MS)
        match chance.choice(("cut", "hold", "slow-disk", "death", "pause")):
            case "cut":
                later = on if chance.random() < 0.5 else None
                _cut(scene, chance.choice(list(SHAPES)), scene.lasting(50, 3_500), later)
            case "hold":
                later = on if chance.random() < 0.5 else None
                kinds = (chance.choice(MESSAGES),)
                links = scene.some_links()
                scene.add(
                    "hold-" + kinds[0], "hold", scene.lasting(20, 2_000), later, links=links, kinds=kinds
                )
            case hindrance:
                scene.hinder(hindrance, on, RECORDS)


SCENES: Mapping[str, Scenes] = {HOLDS: READY_MADE, MOMENTS: ((_drawn, 1),)}
