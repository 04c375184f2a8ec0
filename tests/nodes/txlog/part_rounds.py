"""Rounds of masters that leave others out whenever an attacker wants it, as a model of a few lines.

The attacker chooses who submits, posts, hears any POST that was ever sent, ends a round, and leaves out any masters at
any time, with or without a reason. The model has what `nodes.txlog` needs for one order in each part: no time, no disk,
no updates, no recovery. So what holds here rests on no silence of any master.

`Rules` has the two rules that the proof in docs/decisions/0045 uses; a test breaks each.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import combinations

Ref = tuple[int, str]
"""Timestamp and origin: nobody makes two with one timestamp."""


class Disagreed(AssertionError):
    """Two masters that count each other have queues that contradict each other."""


@dataclass(frozen=True)
class Rules:
    has_one_part: bool = True
    """A round counts only POSTs with the own missing masters."""
    needs_all: bool = True
    """In a split, a round needs a POST of every other master of the part."""


@dataclass(frozen=True)
class Said:
    """A POST."""

    synced: tuple[Ref, ...]
    queue: tuple[Ref, ...]
    counter: int
    missing: frozenset[str]


@dataclass
class Master:
    name: str
    synced: tuple[Ref, ...] = ()
    queue: set[Ref] = field(default_factory=set)
    counter: int = 0
    missing: frozenset[str] = frozenset()
    last: dict[str, int] = field(default_factory=dict)
    newest: dict[str, Said] = field(default_factory=dict)
    posts: list[Said] = field(default_factory=list)

    def waiting(self) -> tuple[Ref, ...]:
        late = self.missing and self.synced
        return tuple(sorted(ref for ref in self.queue if not late or ref > self.synced[-1]))


def begins(queue: tuple[Ref, ...], other: tuple[Ref, ...]) -> bool:
    return queue[: len(other)] == other


class Model:
    def __init__(self, chance: random.Random, count: int, rules: Rules = Rules()) -> None:
        self.chance, self.rules = chance, rules
        self.masters = {name: Master(name) for name in "abcde"[:count]}
        self.splits = self.rounds = 0
        """How many masters were left out, and how many entries were added in a split."""

    # ---- what the attacker can do

    def turn(self) -> None:
        chance = self.chance
        own = chance.choice([*self.masters.values()])
        match chance.choices(("submit", "post", "hear", "round", "split"), (3, 8, 16, 8, 0.4))[0]:
            case "submit":
                own.counter += 1
                own.queue.add((own.counter, own.name))
            case "post":
                own.posts.append(Said(own.synced, own.waiting(), own.counter, own.missing))
            case "hear":
                self._hear(own, chance.choice([peer for peer in self.masters.values() if peer is not own]))
            case "round":
                self._end_round(own)
            case "split":
                part = [name for name in self.masters if name != own.name and name not in own.missing]
                self._leave_out(own, {name for name in part if chance.random() < 0.5})
        self.check(own)

    def _leave_out(self, own: Master, more: set[str] | frozenset[str]) -> None:
        self.splits += not more <= own.missing
        own.missing |= more

    def _hear(self, own: Master, peer: Master) -> None:
        if not peer.posts:
            return
        post = own.newest[peer.name] = self.chance.choice(peer.posts[-6:])
        if own.name not in post.missing and self.chance.random() < 0.8:
            self._leave_out(own, post.missing)
        own.counter = max(own.counter, post.counter)
        own.queue |= {ref for ref in post.queue if ref not in own.synced}
        if begins(own.synced, post.synced):
            own.last[peer.name] = max(post.counter, own.last.get(peer.name, 0))
        elif begins(post.synced, own.synced) and post.missing == own.missing:
            self._add(own, post.synced[len(own.synced) :])  # a difference
            own.counter = max(own.counter, own.synced[-1][0])

    def _end_round(self, own: Master) -> None:
        part = [name for name in self.masters if name != own.name and name not in own.missing]
        posters = [name for name in part if self._counts(own, name) and self.chance.random() < 0.8]
        if own.missing and self.rules.needs_all and len(posters) < len(part):
            return
        bound = min(
            own.counter,
            *(own.newest[name].counter if name in posters else own.last.get(name, 0) for name in part),
            own.counter,
        )
        added: list[Ref] = []
        for place, ref in enumerate(own.waiting()):
            queues = (own.newest[name].queue for name in posters)
            if ref[0] > bound or any(queue[place : place + 1] != (ref,) for queue in queues):
                break
            added.append(ref)
        self.rounds += bool(own.missing) * len(added)
        self._add(own, tuple(added))

    def _counts(self, own: Master, name: str) -> bool:
        post = own.newest.get(name)
        return (
            post is not None
            and post.synced == own.synced
            and (post.missing == own.missing or not self.rules.has_one_part)
        )

    def _add(self, own: Master, refs: tuple[Ref, ...]) -> None:
        own.synced += refs
        own.queue -= {*refs}

    # ---- what must hold

    def check(self, own: Master) -> None:
        for other in self.masters.values():
            if own.name not in other.missing and other.name not in own.missing:
                short, long = sorted((own.synced, other.synced), key=len)
                if not begins(long, short):
                    raise Disagreed(f"{own.name} has {own.synced}, {other.name} has {other.synced}")


def compared(masters: dict[str, Master]) -> int:
    """Pairs that count each other in a split, with entries."""
    return sum(
        bool(one.missing and other.missing and one.synced and other.synced)
        for one, other in combinations(masters.values(), 2)
        if one.name not in other.missing and other.name not in one.missing
    )
