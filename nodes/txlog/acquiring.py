"""Updates of transactions, on a lane of their own: a master posts and executes only transactions with their updates.

`["updates?", 0, [id, …]]` is answered on the same link by `["updates", 0, [[id, steps], …]]`, with the updates that the
answering master has. A batch is asked of one master at a time: first of the origin, then of the other masters in
turn, because the origin may be out of reach. Updates that an answer lacks are asked for again later. A master that
is asked for updates that it lacks, by one that does not hear all others, gets them for that one: the way may lead over
a master that does not know the transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

from nodes.kernel.effects import Send
from nodes.txlog.journal import Journal
from nodes.txlog.links import UPDATES, Links
from nodes.txlog.refs import origin_of
from nodes.txlog.site import Site
from nodes.txlog.sometimes import FROM_ANOTHER


class Acquiring:
    def __init__(
        self,
        site: Site,
        journal: Journal,
        links: Links,
        acquired: Callable[[], None],
        is_apart: Callable[[str], bool],
    ) -> None:
        """`acquired` is called when new updates have come; `is_apart`: a peer does not hear all masters straight."""
        self._site = site
        self._journal = journal
        self._links = links
        self._acquired = acquired
        self._is_apart = is_apart
        self._asked: dict[str, list[str]] = {}
        """Peer → the ids in the unanswered request to it."""
        self._tries: dict[str, int] = {}
        self._for_others: dict[str, None] = {}
        """Ids that other masters have asked for, and this one lacks."""

    def ask(self) -> None:
        """Ask for the updates that are neither here nor on their way."""
        on_the_way = {name for names in self._asked.values() for name in names}
        batches: dict[str, list[str]] = {}
        # Seldom tried ones first: those that no reachable master has must not keep the others from being asked for.
        for name in sorted(self._lacking(), key=lambda name: self._tries.get(name, 0)):
            if name not in on_the_way:
                batches.setdefault(self._source(name), []).append(name)
        for peer, names in batches.items():
            batch = names[: self._site.configuration.batch]
            if peer not in self._asked and self._links.send(peer, UPDATES, ["updates?", 0, batch]):
                self._asked[peer] = batch
            for name in batch:
                self._tries[name] = self._tries.get(name, 0) + (peer not in self._asked)

    def ask_again(self) -> None:
        """Ask again, periodically: earlier requests do not count as on their way any more."""
        for names in self._asked.values():
            for name in names:
                self._tries[name] = self._tries.get(name, 0) + 1
        self._asked.clear()
        self.ask()

    def _lacking(self) -> list[str]:
        journal = self._journal
        own = (ref.id for ref in (*journal.synced[journal.executed :], *journal.queue))
        others = (name for name in self._for_others if not journal.is_known(name))
        return [name for name in chain(own, others) if name not in journal.updates]

    def _source(self, name: str) -> str:
        peers, origin = self._journal.peers, origin_of(name)
        rest = [peer for peer in peers if peer != origin]
        order = [origin, *rest] if origin in peers else rest
        return order[self._tries.get(name, 0) % len(order)]

    def take(self, peer: str, link: int, message: list[Any]) -> None:
        match message:
            case ["updates?", _, names]:
                known = self._journal.updates
                updates = [[name, known[name]] for name in names if name in known]
                if self._is_apart(peer):
                    self._for_others |= dict.fromkeys(name for name in names if name not in known)
                self._site.out.append(Send(link, ["updates", 0, updates]))
            case ["updates", _, updates]:
                for name in self._asked.pop(peer, ()):
                    self._tries[name] = self._tries.get(name, 0) + 1
                fresh = [[name, steps] for name, steps in updates if name not in self._journal.updates]
                for name, _ in fresh:
                    self._tries.pop(name, None)
                    self._for_others.pop(name, None)
                if fresh:
                    self._journal.write(["acquired", fresh])
                    self._site.sometimes[FROM_ANOTHER] += any(origin_of(name) != peer for name, _ in fresh)
                    self._acquired()
                    self.ask()
