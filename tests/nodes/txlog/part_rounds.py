"""Rounds of masters that leave others out whenever an attacker wants it, as a model of a few lines.

The attacker chooses who submits, posts, hears any POST that was ever sent, gets updates, ends a round, and leaves out
any masters at any time, with or without a reason. The model has what `nodes.txlog` needs for one order in each part: no
time, no disk, no recovery. So what holds here rests on no silence of any master.

Between two attacks the links may stand still for a while (`calm`). Then masters do what `nodes.txlog.splits` says, and
each of them must go on, whatever the attacks before have left: with its part, or alone.

Newcomers know some of the masters. The attacker tells any master of any other one, and lets newcomers begin when they
may (docs/decisions/0050). Then no master leaves others out.

`Rules` has the rules that the proofs in docs/decisions/0045, 0049 and 0050 use; a test breaks each.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import combinations

from nodes.txlog.splits import branch_is_followed

Ref = tuple[int, str]
"""Timestamp and origin: nobody makes two with one timestamp."""


Graph = frozenset[frozenset[str]]
"""The links that stand."""


class Disagreed(AssertionError):
    """Two masters that count each other have queues that contradict each other."""


class StoodStill(AssertionError):
    """The links stood still, and a master did not go on."""


@dataclass(frozen=True)
class Rules:
    has_one_part: bool = True
    """A round counts only POSTs with the own missing masters."""
    needs_all: bool = True
    """In a split, a round needs a POST of every other master of the part."""
    passes_differences: bool = True
    """A master that lags gets a difference over others, too."""
    waits_for_no_updates: bool = True
    """A part does not wait for the updates of a missing master's transaction."""
    suspects_leavers: bool = True
    """A master suspects one that leaves it out."""
    forgets_posts: bool = True
    """After a join no POST from before counts."""
    forgets_counters: bool = True
    """Nor does its counter, for a round without the poster."""
    follows_one: bool = True
    """A master whose queue begins two branches follows one of them, and the other one does not join for it."""
    adds_late: bool = True
    """Where nobody goes back, a part adds what comes too late for it."""
    meets_alike: bool = True
    """A newcomer makes transactions when all masters that it counts have posted its own masters."""
    counts_alike: bool = True
    """Before that it counts only POSTs with its own masters."""


@dataclass(frozen=True)
class Said:
    """A POST."""

    synced: tuple[Ref, ...]
    queue: tuple[Ref, ...]
    counter: int
    missing: frozenset[str]
    joins: int
    masters: frozenset[str]
    suspects: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()
    """The masters that contradict the poster."""


@dataclass
class Master:
    name: str
    rules: Rules
    masters: frozenset[str] = frozenset()
    """Those that it counts, itself included."""
    has_met: bool = True
    """It may make transactions."""
    synced: tuple[Ref, ...] = ()
    queue: set[Ref] = field(default_factory=set)
    acquired: set[Ref] = field(default_factory=set)
    """The transactions with their updates."""
    counter: int = 0
    missing: frozenset[str] = frozenset()
    joins: int = 0
    apart: set[str] = field(default_factory=set)
    adds_late: bool = False
    last: dict[str, int] = field(default_factory=dict)
    newest: dict[str, Said] = field(default_factory=dict)
    posts: list[Said] = field(default_factory=list)

    def waiting(self) -> tuple[Ref, ...]:
        late = self.missing and self.synced and not self.adds_late
        unsure = self.missing if self.rules.waits_for_no_updates else ()
        return tuple(
            sorted(
                ref
                for ref in self.queue
                if (not late or ref > self.synced[-1]) and (ref in self.acquired or ref[1] not in unsure)
            )
        )

    def post(self, suspects: frozenset[str] = frozenset()) -> None:
        queue = tuple(ref for ref in self.waiting() if ref in self.acquired)
        said = self.synced, queue, self.counter, self.missing, self.joins, self.masters
        self.posts.append(Said(*said, suspects, frozenset(self.apart)))

    def may_count(self, post: Said) -> bool:
        return self.has_met or post.masters == self.masters or not self.rules.counts_alike

    def meet(self) -> None:
        """Begin to make transactions, if that may be."""
        posts = [self.newest.get(name) for name in self.masters - {self.name}]
        self.has_met |= all(
            post is not None and (post.masters == self.masters or not self.rules.meets_alike)
            for post in posts
        )


SETTLES = 12
"""Rounds after which masters that reach each other have come to their parts, or go on."""


def begins(queue: tuple[Ref, ...], other: tuple[Ref, ...]) -> bool:
    return queue[: len(other)] == other


class Model:
    def __init__(
        self,
        chance: random.Random,
        count: int,
        rules: Rules = Rules(),
        *,
        joins: bool = False,
        is_slow: bool = False,
        newcomers: int = 0,
    ) -> None:
        """`joins`: parts join without a recovery, as with the strategy `none`. `is_slow`: while links stand still, a
        POST may be missed, and a difference has one entry and seldom comes. `newcomers`: so many of the masters were
        not there at first.
        """
        self.chance, self.rules, self.joins, self.is_slow = chance, rules, joins, is_slow
        adds_late = joins and rules.adds_late
        names = "abcde"[:count]
        first, self.newcomers = frozenset(names[: count - newcomers]), names[count - newcomers :]
        self.masters = {name: Master(name, rules, first, adds_late=adds_late) for name in names}
        for name in self.newcomers:
            own = self.masters[name]
            own.masters, own.has_met = frozenset({name, chance.choice(sorted(first))}), False
        self.splits = self.rounds = 0
        """How many masters were left out, and how many entries were added in a split."""
        self.adders: dict[tuple[Ref, ...], set[tuple[str, frozenset[str]]]] = {}
        """Queue → the masters whose round put its last entry there, and whom they left out."""

    # ---- what the attacker can do

    def turn(self) -> None:
        chance = self.chance
        own = chance.choice([*self.masters.values()])
        what = ("submit", "post", "hear", "acquire", "round", "split", "join", "tell", "meet")
        is_whole, grows = not self.newcomers, bool(self.newcomers)
        often = (3, 8, 16, 4, 8, 0.4 * is_whole, 0.2 * self.joins, 4 * grows, 4 * grows)
        match chance.choices(what, often)[0]:
            case "submit" if own.has_met:
                self.submit(own)
            case "post":
                own.post()
            case "hear":
                self._hear(own, chance.choice([peer for peer in self.masters.values() if peer is not own]))
            case "acquire":
                self._acquire(own, [chance.choice([*self.masters.values()])])
            case "round":
                self._end_round(own)
            case "split":
                part = [name for name in self.masters if name != own.name and name not in own.missing]
                self._leave_out(own, {name for name in part if chance.random() < 0.5})
            case "join":
                self._join(own, own.joins + 1, self._some())
            case "tell":
                own.masters |= {chance.choice([*self.masters])}
            case "meet":
                own.meet()
        self.check(own)

    def submit(self, own: Master) -> Ref:
        own.counter += 1
        ref = own.counter, own.name
        own.queue.add(ref)
        own.acquired.add(ref)
        return ref

    def _acquire(self, own: Master, others: list[Master]) -> None:
        """Get the updates that the others have."""
        lacks = {*own.queue, *own.synced} - own.acquired
        own.acquired |= {ref for ref in lacks if any(ref in other.acquired for other in others)}

    def _some(self) -> set[str]:
        likely = self.chance.choice((0, 0, 0.4))
        return {name for name in self.masters if self.chance.random() < likely}

    def _join(self, own: Master, joins: int, apart: set[str]) -> None:
        own.joins, own.missing = joins, frozenset(apart - {own.name})
        if self.rules.forgets_posts:
            own.newest.clear()
        if self.rules.forgets_counters:
            own.last.clear()

    def _leave_out(self, own: Master, more: set[str] | frozenset[str]) -> None:
        self.splits += not more <= own.missing
        own.missing |= more

    def _hear(self, own: Master, peer: Master) -> None:
        if peer.posts:
            self._take(own, peer, self.chance.choice(peer.posts[-6:]), follows=self.chance.random() < 0.8)

    def _take(
        self,
        own: Master,
        peer: Master,
        post: Said,
        *,
        follows: bool,
        catches_up: bool = True,
        is_attack: bool = True,
    ) -> None:
        """`follows`: the master joins as the poster has, and leaves out the masters that the poster leaves out."""
        if post.joins > own.joins and self.joins and follows:
            self._join(own, post.joins, self._some() if is_attack else self._contradict(own))
        if post.joins != own.joins and self.rules.forgets_posts:
            return
        if peer.name not in own.masters:
            return
        own.newest[peer.name] = post
        is_of_us = own.name not in post.missing and peer.name not in own.missing
        if follows and is_of_us and (is_attack or self._follows(own, post)):
            self._leave_out(own, post.missing)
        own.counter = max(own.counter, post.counter)
        own.queue |= {ref for ref in post.queue if ref not in own.synced}
        if begins(own.synced, post.synced) and own.may_count(post):
            own.last[peer.name] = max(post.counter, own.last.get(peer.name, 0))
        elif (
            begins(post.synced, own.synced)
            and own.synced != post.synced
            and post.missing == own.missing
            and catches_up
        ):
            end = len(own.synced) + 1 if self.is_slow else len(post.synced)
            self._add(own, post.synced[len(own.synced) : end])  # a difference
            own.counter = max(own.counter, own.synced[-1][0])

    def _end_round(self, own: Master, *, is_full: bool = False) -> None:
        """`is_full`: all POSTs count that may."""
        part = [name for name in self.masters if name in own.masters - own.missing - {own.name}]
        posters = [
            name for name in part if self._counts(own, name) and (is_full or self.chance.random() < 0.8)
        ]
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
            if (
                ref[0] > bound
                or ref not in own.acquired
                or any(queue[place : place + 1] != (ref,) for queue in queues)
            ):
                break
            added.append(ref)
        self.rounds += bool(own.missing) * len(added)
        for count in range(len(added)):
            queue = (*own.synced, *added[: count + 1])
            self.adders.setdefault(queue, set()).add((own.name, own.missing))
        self._add(own, tuple(added))

    def _counts(self, own: Master, name: str) -> bool:
        post = own.newest.get(name)
        return (
            post is not None
            and post.synced == own.synced
            and (post.missing == own.missing or not self.rules.has_one_part)
            and own.may_count(post)
        )

    def _add(self, own: Master, refs: tuple[Ref, ...]) -> None:
        own.synced += refs
        own.queue -= {*refs}

    # ---- while links stand still

    def calm(self, up: Graph, away: str = "") -> None:
        """Let these links stand still: all masters that reach each other hear each other. Raises StoodStill.

        `away`: a master that is dead meanwhile.
        """
        up = frozenset(link for link in up if away not in link)
        reached = {name: self._reached(name, up) for name in self.masters if name != away}
        settles = SETTLES
        if self.is_slow:
            settles = 10 * SETTLES + 10 * max(len(own.synced) for own in self.masters.values())
        for _ in range(settles):
            self._calm_round(reached, up)
        if late := [name for name in reached if not self.masters[name].has_met]:
            raise StoodStill(f"{late} may make no transactions")
        fresh = {name: self.submit(self.masters[name]) for name in reached}
        joins = [own.joins for own in self.masters.values()]
        for _ in range(settles):
            self._calm_round(reached, up)
        if joins != [own.joins for own in self.masters.values()]:
            raise StoodStill("they join again and again")
        for name, peers in reached.items():
            own = self.masters[name]
            part = [peer for peer in peers if self.masters[peer].missing == own.missing]
            if fresh[name] not in own.synced or any(self.masters[peer].synced != own.synced for peer in part):
                raise StoodStill(f"{name}, which reaches {peers}, leaves {sorted(own.missing)} out")
            if self.joins and any(ref[1] == name for ref in own.queue):
                raise StoodStill(f"{name} does not add its own transactions: {own.queue}")
            apart = {other.name for other in self.masters.values() if other.synced != own.synced}
            if self.joins and len(peers) == len(self.masters) and own.missing != apart:
                raise StoodStill(f"{name} leaves {sorted(own.missing)} out, and contradicts {sorted(apart)}")

    def _reached(self, name: str, up: Graph) -> list[str]:
        reached = [name]
        for one in reached:
            reached += [peer for peer in self.masters if peer not in reached and frozenset({one, peer}) in up]
        return sorted(reached)

    def _calm_round(self, reached: dict[str, list[str]], up: Graph) -> None:
        for name, peers in reached.items():
            self.masters[name].post(self._suspects(self.masters[name], peers))
        for name, peers in reached.items():
            own = self.masters[name]
            others = [self.masters[peer] for peer in peers if peer != name]
            for peer in others:
                if self.is_slow and self.chance.random() < 0.4:
                    continue  # its POST comes later
                is_linked = frozenset({name, peer.name}) in up
                catches_up = is_linked or self.rules.passes_differences
                catches_up = catches_up and not (self.is_slow and self.chance.random() < 0.8)
                self._take(own, peer, peer.posts[-1], follows=True, catches_up=catches_up, is_attack=False)
            self._acquire(own, others)
            own.meet()
            if self.joins:
                self._leave_out(own, self._contradict(own))
            if self.joins and len(own.newest) == len(others) == len(self.masters) - 1:
                self._join_those_alike(own)
            suspects = self._suspects(own, peers)
            part = [peer.name for peer in self.masters.values() if peer.name not in {name, *suspects}]
            if all(peer in own.newest and own.newest[peer].suspects == suspects for peer in part):
                self._leave_out(own, suspects)
            self._end_round(own, is_full=True)
            self.check(own)

    def _contradict(self, own: Master) -> set[str]:
        own.apart |= {
            name
            for name, post in own.newest.items()
            if not begins(own.synced, post.synced) and not begins(post.synced, own.synced)
        }
        return own.apart

    def _join_those_alike(self, own: Master) -> None:
        """With the strategy `none`, when all masters are heard again."""
        leavers = {peer for peer, post in own.newest.items() if own.name in post.missing}
        apart = self._contradict(own)
        posts = [own.newest[peer] for peer in {*own.missing, *leavers} - apart]
        if self.rules.follows_one:
            posts = [post for post in posts if own.name not in post.missing or apart <= post.missing]
        if posts and all(begins(own.synced, post.synced) for post in posts):
            self._join(own, own.joins + 1, apart)

    def _follows(self, own: Master, post: Said) -> bool:
        """Whether to leave out whom the poster leaves out. Of two branches, all take that of the smallest name."""
        if not self.joins or not self.rules.follows_one:
            return True
        known = {(name, gone) for name, theirs in own.newest.items() for gone in theirs.apart}
        known |= {(gone, name) for name, gone in known}
        pairs = {pair for pair in known if pair[0] not in post.missing and pair[1] in post.missing}
        return branch_is_followed(pairs, own.missing)

    def _suspects(self, own: Master, reached: list[str]) -> frozenset[str]:
        """As after a long time without progress."""
        silent = self.masters.keys() - {*reached}
        leavers = {peer for peer, post in own.newest.items() if own.name in post.missing}
        return own.missing | silent | (leavers if self.rules.suspects_leavers else set())

    # ---- what must hold

    def check(self, own: Master) -> None:
        for other in self.masters.values():
            short, long = sorted((own.synced, other.synced), key=len)
            if begins(long, short):
                continue
            if not self.joins and own.name not in other.missing and other.name not in own.missing:
                raise Disagreed(f"{own.name} has {own.synced}, {other.name} has {other.synced}")
            self._check_rounds(own.synced, other.synced)

    def _check_rounds(self, one: tuple[Ref, ...], other: tuple[Ref, ...]) -> None:
        """Of two masters whose rounds contradict each other, one has left the other out."""
        differs = next(
            place for place, refs in enumerate(zip(one, other, strict=False)) if refs[0] != refs[1]
        )
        for adder, missing in self.adders[one[: differs + 1]]:
            for second, gone in self.adders[other[: differs + 1]]:
                if second not in missing and adder not in gone:
                    raise Disagreed(f"{adder} adds {one[differs]}, {second} adds {other[differs]}")


def compared(masters: dict[str, Master]) -> int:
    """Pairs that count each other in a split, with entries."""
    return sum(
        bool(one.missing and other.missing and one.synced and other.synced)
        for one, other in combinations(masters.values(), 2)
        if one.name not in other.missing and other.name not in one.missing
    )
