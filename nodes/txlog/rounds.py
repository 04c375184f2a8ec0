"""Synchronisation rounds: POST, COLLECT, ADD, MERGE, time-out rounds, and differences for masters that lag.

The synchronised queue is always a prefix of all transactions ever made, sorted by (ts, id), as long as no master is
left out. A transaction of master k with a timestamp up to T was made before k posted a counter of T or more. It was
then in that POST, or is in the synchronised queue up to the POST's base. A round adds up to the least counter of all
masters: of those that posted, and of each other master the last known one (`Journal.last`).

A round is full when every master that takes part has posted for the own base. It is over, with the masters that did
post, after `round_ns` at the latest. While something waits to be synchronised, rounds follow each other every
`busy_ns`, else every `idle_ns`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any

from nodes.txlog.acquiring import Acquiring
from nodes.txlog.journal import Journal
from nodes.txlog.links import ROUNDS, Links
from nodes.txlog.posts import Post
from nodes.txlog.refs import Ref, common_length, lists_of, refs_of
from nodes.txlog.site import Site
from nodes.txlog.sometimes import CAUGHT_UP, EMPTY_ROUND, HEAD_UNACQUIRED, LATE, TIME_OUT_ROUND

DIFFERENCE_MAX = 200
"""Entries in one difference."""


class Rounds:
    def __init__(
        self,
        site: Site,
        journal: Journal,
        links: Links,
        acquiring: Acquiring,
        suspects: Callable[[], tuple[str, ...]],
        grown: Callable[[], None],
        pace_of: Callable[[str], int],
        unheard: Callable[[], tuple[str, ...]],
    ) -> None:
        """`suspects`: the masters that this one would leave out; `grown` is called when entries were synchronised;
        `pace_of`: the longest time between two POSTs of a peer, 0 if it does not say; `unheard`: the masters whose
        POSTs come over others, if at all.
        """
        self._site = site
        self._journal = journal
        self._links = links
        self._acquiring = acquiring
        self._suspects = suspects
        self._grown = grown
        self._pace_of = pace_of
        self._unheard = unheard
        self.newest: dict[str, Post] = {}
        """Peer → its last POST of this epoch, since parts last joined."""
        self.heard_ns: dict[str, int] = {}
        """Peer → when its last POST came, straight or over others."""
        self.common: dict[str, int] = {}
        """Peer → the number of first entries that are surely the same there."""
        self.progress_ns = 0
        """The last time at which the synchronised queue grew, or no transaction waited."""
        self._contradict: set[str] = set()
        """Without a strategy: the peers whose queues contradict the own one. They always will: no queue shrinks."""
        self._current: dict[str, Post] = {}
        """Peer → its last POST for the own base."""
        self._fresh: set[str] = set()
        """The peers that have posted for the own base in this round."""
        self._began_ns = 0
        self._lagged: dict[str, str] = {}
        """Peer → the older base that it reported last."""
        self._behind: Post | None = None
        """The last POST of a master that lags, and gets no message straight: the next POST has its difference."""
        self._is_busy = False
        self._posted_ns = 0
        self._number = 0
        """The number of the last POST of this life."""

    # ---- POST

    def begin(self) -> None:
        self.progress_ns = self._began_ns = self._site.now.monotonic_ns

    def post(self, digests: Iterable[str] = ()) -> None:
        journal = self._journal
        self._posted_ns = self._site.now.monotonic_ns
        self._number += 1
        message = Post(
            epoch=journal.epoch,
            joins=journal.joins,
            base=journal.base,
            index=len(journal.synced),
            checksum=journal.checksum,
            counter=journal.counter,
            queue=tuple(filter(journal.is_acquired, journal.waiting())),
            strategy=journal.strategy,
            masters=journal.masters,
            missing=journal.missing,
            suspects=self._suspects(),
            is_recovering=journal.is_recovering,
            digests=tuple(digests),
            apart=self.apart(),
            number=(journal.life, self._number),
            unheard=self._unheard(),
            difference=self._difference(self._behind) if self._behind else (),
        ).to_message()
        self._behind = None
        for peer in journal.peers:
            self._links.send(peer, ROUNDS, message)

    def pace_ns(self) -> int:
        """The time until the next POST."""
        conf = self._site.configuration
        self._is_busy = self._has_work()
        return conf.busy_ns if self._is_busy else conf.idle_ns

    def _has_work(self) -> bool:
        """Transactions wait to be synchronised, here or at a master that takes part and posts."""
        journal = self._journal
        posts = [self.newest[peer] for peer in self._peers() if peer in self.newest and self.is_heard(peer)]
        return (
            journal.is_recovering
            or bool(journal.waiting())
            or any(post.queue or post.base != journal.base for post in posts)
        )

    def is_heard(self, peer: str) -> bool:
        conf = self._site.configuration
        heard_ns = self.heard_ns.get(peer)
        return (
            heard_ns is not None
            and self._site.now.monotonic_ns - heard_ns
            <= 2 * max(conf.idle_ns, self._pace_of(peer)) + conf.round_ns
        )

    def wakes_after_ns(self) -> int | None:
        """The time until the next POST, if that must come sooner than planned: an idle master has work."""
        if self._is_busy or not self._has_work():
            return None
        self._is_busy = True
        since_ns = self._site.now.monotonic_ns - self._posted_ns
        return max(0, self._site.configuration.busy_ns - since_ns)

    # ---- COLLECT and MERGE

    def take(self, peer: str, post: Post) -> bool:
        """Take a POST of this epoch and join. False if neither queue is a prefix of the other: the cluster split."""
        self.newest[peer] = post
        is_in_own = self.is_in_own(post)
        # Before the round is ended: its bound rests on the transactions of this POST being in the own queue.
        self._merge(peer, post, is_in_own)
        if is_in_own:
            if not post.missing:
                self.common[peer] = max(post.index, self.common.get(peer, 0))
            self._help(peer, post)
        if post.difference:
            self.take_difference(peer, post.epoch, post.joins, post.missing, *post.difference)
        if self.has_own_base(post):
            self._current[peer] = post
            self._fresh.add(peer)
        self.collect()
        agrees = self.agrees(post)
        if not agrees and self._journal.strategy == "none":
            self._contradict.add(peer)
        return agrees

    def has_own_base(self, post: Post) -> bool:
        return self.is_in_own(post) and post.index == len(self._journal.synced)

    def is_in_own(self, post: Post) -> bool:
        """Whether the own synchronised queue begins with the poster's."""
        return self._journal.begins_with(post.base, post.index, post.checksum)

    def agrees(self, post: Post) -> bool:
        """Whether the own synchronised queue is a prefix of the poster's, or the reverse, as far as a POST shows that.

        Of two queues that contradict each other, the base of the longer one is unknown to the other master.
        """
        journal = self._journal
        may_be_longer = journal.index_of(post.base) is None and post.index > len(journal.synced)
        return self._site.name not in post.apart and (may_be_longer or self.is_in_own(post))

    def apart(self) -> tuple[str, ...]:
        """The peers whose queues contradict the own one."""
        by_posts = (peer for peer, post in self.newest.items() if not self.agrees(post))
        return tuple(dict.fromkeys((*by_posts, *sorted(self._contradict))))

    def _merge(self, peer: str, post: Post, is_in_own: bool) -> None:
        """`is_in_own`: the own synchronised queue begins with the poster's."""
        journal, decisions = self._journal, self._site.decisions
        is_merged = decisions.is_merged(post.base == journal.base)
        fresh = [ref for ref in post.queue if is_merged and not journal.is_known(ref.id)]
        counter = decisions.counter_on_receipt(journal.counter, post.counter)
        # Only then are all transactions of the poster up to its counter known here: in its queue, or up to its base.
        last = post.counter if is_in_own and self._may_count(post) else None
        is_newer = last is not None and last > journal.last.get(peer, 0)
        if fresh or counter != journal.counter or is_newer:
            journal.write(["heard", peer, counter, last, lists_of(fresh)])
        if fresh:
            self._site.sometimes[LATE] += not set(fresh) <= set(journal.waiting())
            self._acquiring.ask()

    def collect(self) -> None:
        """End a full round, if every master that takes part has posted for the own base."""
        peers = self._peers()
        if all(self._takes_part(peer) for peer in peers):
            self._add({peer: self._current[peer] for peer in peers}, [])
            if self._fresh.issuperset(peers):
                self._next_round()

    def look(self) -> None:
        """End a time-out round, if this one has lasted long enough."""
        journal = self._journal
        now_ns = self._site.now.monotonic_ns
        if not journal.waiting():
            self.progress_ns = now_ns
        if now_ns - self._began_ns < self._site.configuration.round_ns:
            return
        peers = self._peers()
        posters = {
            peer: self._current[peer] for peer in peers if peer in self._fresh and self._takes_part(peer)
        }
        missing = [peer for peer in peers if peer not in posters]
        # In a split only full rounds add: no counter bounds the transactions of the masters that are left out, and one
        # master of a part may know such a transaction before the others do.
        has_added = not (missing and journal.missing) and self._add(posters, missing)
        if missing and journal.waiting():
            self._site.sometimes[TIME_OUT_ROUND if has_added else EMPTY_ROUND] += 1
        self._next_round()

    def _takes_part(self, peer: str) -> bool:
        """Whether the peer has posted for the own base, and leaves out the same masters. A master that has not split
        yet may hear a missing one again, and add its transactions.
        """
        post, journal = self._current.get(peer), self._journal
        return post is not None and post.missing == journal.missing and self._may_count(post)

    def _may_count(self, post: Post) -> bool:
        """A newcomer may not know a master whose transactions its peers add: it would add past them (`settings.py`)."""
        return self._journal.is_matched or post.masters == self._journal.masters

    def _peers(self) -> list[str]:
        """The masters that take part, without this one."""
        return [peer for peer in self._journal.peers if peer not in self._journal.missing]

    def _next_round(self) -> None:
        self._fresh.clear()
        self._began_ns = self._site.now.monotonic_ns

    # ---- ADD

    def _add(self, posters: dict[str, Post], missing: list[str]) -> bool:
        """Add transactions to the synchronised queue; True if there were any."""
        journal, decisions = self._journal, self._site.decisions
        if journal.is_recovering or not journal.queue:
            return False
        waiting = journal.waiting()
        own = decisions.own_part(waiting, journal.is_acquired)
        self._site.sometimes[HEAD_UNACQUIRED] += bool(waiting) and not own
        # Up to the first difference: there, one master knows a transaction that another does not, and the two would
        # add different ones.
        length = min((common_length(own, post.queue) for post in posters.values()), default=len(own))
        bound = decisions.bound(
            [journal.counter, *(post.counter for post in posters.values())],
            [journal.last.get(peer, 0) for peer in missing],
        )
        refs = list(takewhile(lambda ref: ref.ts <= bound, own[:length]))
        if refs:
            index = len(journal.synced)
            journal.write(["added", index, lists_of(refs), bound, sorted(posters), sorted(missing)])
            self._moved()
        return bool(refs)

    def _moved(self) -> None:
        """The base has changed: POSTs for the new one may have come before."""
        self._current = {peer: post for peer, post in self.newest.items() if self.has_own_base(post)}
        self._next_round()
        self.progress_ns = self._site.now.monotonic_ns
        self._grown()

    def restart(self, common: int) -> None:
        """Begin anew after a recovery."""
        self.common = dict.fromkeys(self._journal.peers, common)
        self._contradict.clear()
        self.forget_posts()

    def forget_posts(self) -> None:
        """Earlier POSTs do not count."""
        self.newest.clear()
        self._lagged.clear()
        self._behind = None
        self._moved()

    # ---- masters that lag

    def _help(self, peer: str, post: Post) -> None:
        """Send the difference to a peer that reports the same old base twice: a single report may be a round behind.

        Nothing comes straight to a peer that does not hear this master: the next POST has it, and others pass that on.
        """
        journal, index = self._journal, post.index
        if index == len(journal.synced):
            self._lagged.pop(peer, None)
        elif self._lagged.get(peer) != post.base:
            self._lagged[peer] = post.base
        else:
            del self._lagged[peer]
            if self._site.name in post.unheard:
                self._behind = post
            else:
                fields = [journal.epoch, journal.joins, list(journal.missing), *self._difference(post)]
                self._links.send(peer, ROUNDS, ["difference", 0, *fields])

    def _difference(self, post: Post) -> tuple[Any, ...]:
        """Base, index and checksum of a POST, and the entries behind them; empty if they are not in the own queue."""
        if not self.is_in_own(post):
            return ()
        refs: list[Ref] = self._journal.synced[post.index : post.index + DIFFERENCE_MAX]
        return post.base, post.index, post.checksum, lists_of(refs)

    def take_difference(
        self,
        peer: str,
        epoch: int,
        joins: int,
        missing: Sequence[str],
        base: str,
        index: int,
        checksum: int,
        rows: list[Any],
    ) -> None:
        """Take the difference of a forerunner in the same part of the cluster.

        `missing` are the masters that the forerunner had left out when it sent the difference: its last POST may be
        older, because a lost link loses POSTs.
        """
        journal = self._journal
        is_same_part = (epoch, joins, tuple(missing)) == (journal.epoch, journal.joins, journal.missing)
        if journal.is_recovering or not is_same_part:
            return
        is_prefix = index == len(journal.synced) and journal.begins_with(base, index, checksum)
        if not self._site.decisions.may_append(is_prefix):
            return
        at = len(journal.synced) if is_prefix else index
        refs = [ref for ref in refs_of(rows) if journal.place.get(ref.id, at + 1) > at]
        if refs and at <= len(journal.synced):
            journal.write(["caught-up", at, lists_of(refs), peer])
            self._site.sometimes[CAUGHT_UP] += 1
            self._acquiring.ask()
            self._moved()
