"""Directed schedules (scenes): delayed messages and disks, and deaths at a trigger, drawn as small scenes.

A scene is a few faults that belong together: a message reaches no node, its sender dies, and the next leader too. Each
fault waits for a trigger (`harness.faults.fault.Moment`), so a scene fits whatever leader there is. Names that are
known only then are placeholders, and replaced when the fault begins. The scenes come from the system, which knows what
its nodes write and send (`harness.systems.parts.Variety`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.faults.fault import Fault, Link, Moment

SECOND_NS = 1_000_000_000
MILLISECOND_NS = 1_000_000
SEVERAL = ("@others", "*")
PLACEHOLDERS = ("@it", "@owner", "@old", "@next", "@after", *SEVERAL)
BETWEEN_SCENES_NS = (SECOND_NS, 4 * SECOND_NS)


def in_place(fault: Fault, it: str, owner: str, nodes: Sequence[str], old: str = "") -> Fault:
    """The fault with every placeholder replaced. If it does not name "@it", it is about the owner.

    `old`: the owner before this one; "" if there was none, and then the owner is meant. Where no node leads (`owner`
    is ""), the node of the trigger, or else the first node, stands for the owner.
    """
    owner = owner or it or nodes[0]
    targets_named = (*fault.nodes, *(end for link in fault.links for end in link))
    subject = it if it and "@it" in targets_named else owner
    names = {
        "@it": (subject,),
        "@owner": (owner,),
        "@old": (old or owner,),
        "@next": (_behind(subject, 1, nodes),),
        "@after": (_behind(subject, 2, nodes),),
        "@others": tuple(node for node in nodes if node != subject),
        "*": tuple(nodes),
    }

    def meant(name: str) -> tuple[str, ...]:
        return names.get(name, (name,))

    targets = tuple(dict.fromkeys(node for name in fault.nodes for node in meant(name)))
    links: dict[Link, None] = {}
    for begin, end in fault.links:
        for source in meant(begin):
            for target in meant(end):
                if source != target:
                    links[source, target] = None
    return msgspec.structs.replace(fault, nodes=targets, links=tuple(links))


def _behind(node: str, steps: int, nodes: Sequence[str]) -> str:
    """The node so many steps behind another one, in the ring of nodes."""
    return nodes[(nodes.index(node) + steps) % len(nodes)]


# ---- scenes


@dataclass(slots=True)
class Scene:
    """The scene being drawn: faults from `at_ns` on."""

    at_ns: int
    chance: random.Random
    nodes: Sequence[str]
    faults: list[dict[str, Any]]

    def lasts(self, least_ms: int, most_ms: int) -> int:
        return self.chance.randrange(least_ms, most_ms) * MILLISECOND_NS

    def lasting(self, least_ms: int, most_ms: int) -> int:
        """As likely between 30 and 90 ms as between 1 and 3 s."""
        drawn = self.chance.uniform(math.log(least_ms), math.log(most_ms))
        return int(math.exp(drawn) * MILLISECOND_NS)

    def one(self) -> str:
        return self.chance.choice(list(self.nodes))

    def add(self, name: str, does: str, lasts_ns: int, on: Moment | None = None, **fields: Any) -> None:
        self.faults.append(
            {
                "name": name,
                "does": does,
                "at_ns": self.at_ns,
                "until_ns": self.at_ns + lasts_ns,
                "on": on,
                **fields,
            }
        )

    def moment(
        self, written: Sequence[str], messages: Sequence[str], nth: Sequence[int], after_ms: Sequence[int]
    ) -> Moment:
        """Anything that a node may do: a record that it writes, or a message that it sends or gets."""
        on_disk = self.chance.random() < 0.6
        return Moment(
            does=self.chance.choice(("writes", "wrote", "wrote") if on_disk else ("sends", "gets")),
            what=self.chance.choice(written if on_disk else messages),
            nth=self.chance.choice(nth),
            after_ns=self.chance.choice(after_ms) * MILLISECOND_NS,
        )

    def hinder(self, what: str, on: Moment, records: Sequence[str]) -> None:
        """A "slow-disk" for one of the records at once, or a "death" or a "pause" of the node at its moment."""
        match what:
            case "slow-disk":
                kinds = (self.chance.choice(records),)
                self.add("slow-disk", "slow-disk", self.lasting(20, 1_500), nodes=(self.one(),), kinds=kinds)
            case "death":
                self.add(f"kill-at-{on.what}", self.death(), self.lasting(50, 2_500), on, nodes=("@it",))
            case "pause":
                self.add(f"pause-at-{on.what}", "pause", self.lasting(50, 2_000), on, nodes=("@it",))
            case _:
                raise AssertionError(what)

    def some_links(self) -> tuple[Link, ...]:
        """Links out of "@it", into it, or between it and one other node; or all links into one node."""
        peer = self.chance.choice(list(self.nodes))
        return self.chance.choice(
            (
                (("@it", "@others"),),
                (("@others", "@it"),),
                (("@it", peer),),
                ((peer, "@it"),),
                (("*", peer),),
                (("@it", "@others"), ("@others", "@it")),
            )
        )

    def death(self) -> str:
        return self.chance.choice(("kill", "power"))


Scenes = tuple[tuple[Callable[[Scene], None], int], ...]
"""The functions that draw a scene, and how often each is chosen."""


def draw_directed(
    nodes: Sequence[str],
    chance: random.Random,
    first_ns: int,
    last_ns: int,
    first_id: int,
    *,
    scenes: Scenes,
    fails_over: bool = True,
    calm: float = 1.0,
) -> Iterable[Fault]:
    """Scenes one after the other, overlapping as it comes; the last one begins before `last_ns`.

    Unless it `fails_over`, no other node is promoted in them: that would be a different configuration. `calm` is how
    many times longer than usual the interval from one to the next is.
    """
    at_ns = first_ns
    number = first_id
    draws, weights = zip(*scenes, strict=True)
    while at_ns < last_ns:
        scene = Scene(at_ns, chance, nodes, [])
        chance.choices(draws, weights)[0](scene)
        for fields in scene.faults:
            if fields["does"] == "failover" and not fails_over:
                continue
            yield Fault(**{**fields, "id": number, "seed": chance.getrandbits(32)})
            number += 1
        at_ns += int(chance.randrange(*BETWEEN_SCENES_NS) * calm)
