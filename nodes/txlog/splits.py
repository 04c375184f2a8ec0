"""Splits: masters that are left out, and the recovery when they are back.

    normal ──▶ suspect ──▶ split ──▶ recovering ──▶ normal, in the next epoch
                             │  ▲         └─▶ as before, and recovering later: a master is away again
                             │  └─────────────┘
                             └─────────────────────▶ normal, the next join (strategy `none`)

A master *suspects* the silent ones after `split_ns` without progress, and its POSTs name them. A master whose POSTs are
refused is not silent (`settings.py`). A master that leaves this one out counts as silent. So does one that stays frozen
when this one does not, or does not join when this one has. A part of the cluster splits off when all its masters
suspect the same ones. With `simple` and `smart` each then takes a backup: the state at the last executed index that all
peers surely have.

When a split master hears all masters again, it freezes its queues and its counter (its *digest*), and its POSTs make
all other masters do the same. Digests are passed on until every master has all of them. A master that has finished
keeps all digests, on disk, for those that have not.

A master whose digest lacks may be away again. After `split_ns` without a new digest the others then *thaw*: they go on
as before, and their digests stay as they were. When the recovery is over, the work since then counts as new: a master's
own transactions get fresh timestamps, and the masters that made the others bring them. docs/decisions/0046 says why.

With the strategy `none` nobody goes back. A split master that hears all masters again, and whose queue begins with
those of the masters that it has left out, *joins*: all masters count again but those whose queues contradict its own.
Its POSTs have the number of the join, and make all other masters join, too. No POST from before counts then.
docs/decisions/0049 says why.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from nodes.txlog.journal import Digest, Journal
from nodes.txlog.links import ROUNDS, Links
from nodes.txlog.posts import Post
from nodes.txlog.recovery import Outcome, outcome
from nodes.txlog.refs import Ref, lists_of
from nodes.txlog.rounds import Rounds
from nodes.txlog.settings import Settings
from nodes.txlog.site import Site
from nodes.txlog.sometimes import (
    AGAIN,
    APART,
    DIGEST_KEPT,
    OTHER_ORDER,
    REJOINED,
    RESTORED,
    RESTORED_IN_SPLIT,
    RESUMED,
    SPLIT,
    SPLIT_GREW,
    THAWED,
    TIE,
    recovered_by,
)

RESEND_NS = 200_000_000


def branch_is_followed(pairs: Set[tuple[str, str]], missing: Set[str]) -> bool:
    """Whether a master follows a branch. `pairs`: a master of the branch, and one of the other that contradicts it;
    `missing`: the masters that are left out already.

    One that has left out masters of one branch alone goes on with the other. Else names decide.
    """
    sides, others = ({pair[at] for pair in pairs} for at in (0, 1))
    if sides.isdisjoint(missing) != others.isdisjoint(missing):
        return sides.isdisjoint(missing)
    return others <= missing or (not sides <= missing and min(sides - missing) < min(others - missing))


class Splits:
    def __init__(
        self,
        site: Site,
        journal: Journal,
        links: Links,
        rounds: Rounds,
        settings: Settings,
        recovered: Callable[[], None],
        backed_up: Callable[[], None],
        restored: Callable[[], None],
    ) -> None:
        self._site = site
        self._journal = journal
        self._links = links
        self._rounds = rounds
        self._settings = settings
        self._recovered = recovered
        self._backed_up = backed_up
        self._restored = restored
        self._began_ns = 0
        """When the present split began, or this life, if that is later."""
        self._split_ns = -1
        """When masters were last left out."""
        self._has_diverged = False
        self._digests: dict[str, Digest] = {}
        self._digest_ns = 0
        """When the last digest came."""
        self._sent_ns: dict[tuple[str, str], int] = {}
        self._behind_ns: dict[str, int] = {}
        """Peer → since when its POSTs have not counted: it is frozen and this one is not, or it has not joined yet."""

    def begin(self) -> None:
        """Begin after a start."""
        journal = self._journal
        self._began_ns = self._digest_ns = self._site.now.monotonic_ns
        if journal.frozen is not None:
            self._digests = {digest.master: digest for digest in (journal.frozen, *journal.digests)}
            self._site.sometimes[RESUMED] += journal.is_recovering
        if journal.is_restoring:
            self._restore()

    # ---- questions

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(sorted(self._digests)) if self._journal.awaits_digests else ()

    def suspects(self) -> tuple[str, ...]:
        """The masters that are left out, and the masters that this one would leave out."""
        journal, split_ns = self._journal, self._site.configuration.split_ns
        now_ns = self._site.now.monotonic_ns
        if not split_ns or journal.is_recovering or journal.is_changed:
            return journal.missing
        if now_ns - self._rounds.progress_ns <= split_ns:
            return journal.missing
        heard_ns, pace_ns = self._rounds.heard_ns, self._settings.pace_ns
        silent = [
            peer
            for peer in journal.peers
            if now_ns - heard_ns.get(peer, self._began_ns) > max(split_ns, 2 * pace_ns(peer))
        ]
        behind = [peer for peer, since_ns in self._behind_ns.items() if now_ns - since_ns > 2 * split_ns]
        return tuple(sorted({*journal.missing, *silent, *behind, *self._leave_me_out()}))

    def _leave_me_out(self) -> list[str]:
        """The masters that are heard, and go on without this one: a round will wait for them for ever."""
        name, newest = self._site.name, self._rounds.newest
        return [peer for peer in self._journal.peers if peer in newest and name in newest[peer].missing]

    def may_execute(self) -> bool:
        journal = self._journal
        lag_ns = self._site.now.monotonic_ns - self._began_ns
        return not (journal.is_recovering or journal.is_restoring) and self._site.decisions.may_execute(
            is_split=bool(journal.missing) and journal.strategy != "none",
            is_lag_over=lag_ns >= journal.max_peer_lag_ns,
        )

    # ---- events

    def look(self) -> None:
        """Split, recover or join if that is due; called once a round."""
        journal, rounds = self._journal, self._rounds
        if journal.awaits_digests:
            self._finish_if_all()
        if journal.is_recovering:
            return self._thaw_if_stalled()
        is_joining = journal.strategy == "none"
        is_apart = bool(journal.missing or self._has_diverged or (is_joining and self._leave_me_out()))
        if is_apart and not journal.awaits_digests and all(map(self._is_back, journal.peers)):
            if not is_joining:
                return self._recover()
            self._join_those_alike()
        suspects = self.suspects()
        peers = [peer for peer in journal.peers if peer not in suspects]
        is_agreed = all(peer in rounds.newest and rounds.newest[peer].suspects == suspects for peer in peers)
        if suspects != journal.missing and is_agreed:
            self._split(suspects)
        return None

    def _is_back(self, peer: str) -> bool:
        """Whether the peer's POSTs come with the own strategy, again if it was left out, and it has finished the
        recovery before this epoch.

        Until it has finished, it needs the own digest of that recovery. With another strategy it would not take part in
        a new one.
        """
        rounds = self._rounds
        is_heard = rounds.is_heard(peer) and peer in rounds.newest and self._settings.shares(peer)
        return is_heard and (peer not in self._journal.missing or rounds.heard_ns[peer] > self._split_ns)

    def take(self, peer: str, post: Post) -> bool:
        """Take a POST; True if it only reports the peer's progress in a recovery."""
        journal = self._journal
        # First: all below compares this POST with the state behind the join.
        if post.joins > journal.joins:
            self._join(post.joins)
        if post.digests:
            if post.epoch == journal.epoch and not journal.awaits_digests:
                self._recover()
            self._send_digests(peer, post)
        is_frozen = post.epoch == journal.epoch and post.is_recovering and not journal.is_recovering
        if is_frozen or post.joins < journal.joins:
            self._behind_ns.setdefault(peer, self._site.now.monotonic_ns)
        else:
            self._behind_ns.pop(peer, None)
        is_of_now = (post.epoch, post.joins) == (journal.epoch, journal.joins)
        if not is_of_now or post.is_recovering or journal.is_recovering:
            return True
        is_of_us = self._site.name not in post.missing and peer not in journal.missing
        if is_of_us and not set(post.missing) <= set(journal.missing) and self._follows(peer, post):
            self._split(tuple(sorted({*journal.missing, *post.missing})))
        return False

    def _follows(self, peer: str, post: Post) -> bool:
        """Whether to leave out whom the poster leaves out.

        Without a strategy the own queue may begin two branches that contradict each other. All such masters follow the
        branch with the smallest name, and wait for its POSTs, as long as it is not silent.
        """
        journal, newest = self._journal, {**self._rounds.newest, peer: post}
        if journal.strategy != "none":
            return True
        pairs = {(name, gone) for name, theirs in newest.items() for gone in theirs.apart}
        pairs |= {(gone, name) for name, gone in pairs}
        pairs = {(side, gone) for side, gone in pairs if side not in post.missing and gone in post.missing}
        return branch_is_followed(pairs, {*journal.missing})

    def diverged(self, peer: str) -> None:
        """A peer's queue and the own one contradict each other; without a strategy they always will."""
        journal = self._journal
        if journal.strategy != "none":
            self._has_diverged = True
        elif peer not in journal.missing:
            self._site.sometimes[APART] += 1
            self._split(tuple(sorted({*journal.missing, peer})))

    # ---- splits

    def _split(self, missing: tuple[str, ...]) -> None:
        self._split_ns = self._site.now.monotonic_ns
        self._site.sometimes[SPLIT_GREW if self._journal.missing else SPLIT] += 1
        if not self._journal.missing:
            self._began_ns = self._split_ns
        self._site.log("split", "warning", missing=list(missing))
        self._journal.write(["split", list(missing), self._backup()])

    def _backup(self) -> list[Any] | None:
        journal = self._journal
        if journal.backup is not None or journal.strategy == "none":
            return None
        self._backed_up()
        # A recovery keeps at least what all peers surely have: no restore may need a state of before the backup.
        surely = min((self._rounds.common.get(peer, 0) for peer in journal.peers), default=journal.executed)
        return journal.state_at(min(surely, journal.executed)).to_list()

    # ---- joins

    def _join_those_alike(self) -> None:
        """Without a strategy, join all masters again whose queues do not contradict the own one.

        The master with the longest queue begins: the others cannot tell a longer queue from one that contradicts their
        own. A POST from before the split may hide a contradiction: then that master is left out once more. One that
        leaves this one out, and counts one that contradicts it, follows that one.
        """
        newest, apart = self._rounds.newest, {*self._rounds.apart()}
        posts = [newest[peer] for peer in {*self._journal.missing, *self._leave_me_out()} - apart]
        posts = [post for post in posts if self._site.name not in post.missing or apart <= {*post.missing}]
        if posts and all(map(self._rounds.is_in_own, posts)):
            self._join(self._journal.joins + 1)

    def _join(self, joins: int) -> None:
        """Take part with all masters again that are not known to be apart, and count no POST from before."""
        apart = self._rounds.apart()
        self._site.sometimes[REJOINED] += 1
        self._journal.write(["rejoined", joins])
        if apart:
            self._split(tuple(sorted(apart)))
        self._rounds.forget_posts()

    # ---- recovery

    def _recover(self) -> None:
        journal = self._journal
        self._site.log("recovering", epoch=journal.epoch)
        journal.write(["recovering", journal.epoch, self._backup()])
        assert journal.frozen is not None
        self._digests = {self._site.name: journal.frozen}
        self._digest_ns = self._site.now.monotonic_ns
        # Behind the record: the POST says that this master is frozen, and may leave only when its digest is on disk.
        self._rounds.post(self.digests)
        self._finish_if_all()

    def _send_digests(self, peer: str, post: Post) -> None:
        """Send the digests of that epoch that the peer lacks."""
        now_ns = self._site.now.monotonic_ns
        for master, digest in sorted(self._digests.items()):
            key = (peer, master)
            is_due = now_ns - self._sent_ns.get(key, -RESEND_NS) >= RESEND_NS
            if digest.epoch == post.epoch and master not in post.digests and is_due:
                self._sent_ns[key] = now_ns
                self._site.sometimes[DIGEST_KEPT] += not self._journal.is_recovering
                self._links.send(peer, ROUNDS, ["digest", 0, *digest.to_list()])

    def take_digest(self, fields: list[Any]) -> None:
        journal, digest = self._journal, Digest.from_list(fields)
        is_due = journal.awaits_digests and digest.epoch == journal.epoch
        if not is_due or digest.master not in journal.masters:
            return
        # The entries up to its base are taken from the own queue (`recovery.branches`).
        if journal.index_of(digest.base) != digest.start:
            self._site.log("refused a digest", "error", master=digest.master, base=digest.base)
            return
        if digest.master not in self._digests:
            self._digest_ns = self._site.now.monotonic_ns
        self._digests[digest.master] = digest
        self._finish_if_all()

    def _finish_if_all(self) -> None:
        journal, decisions = self._journal, self._site.decisions
        if not journal.awaits_digests or not decisions.may_vote(len(self._digests), len(journal.masters)):
            return
        recovery = outcome(self._digests, self._site.name, journal.synced, journal.strategy, decisions)
        executed = [ref.id for ref in journal.synced[recovery.common : journal.executed]]
        # Before the record: it changes the queues from which both are made.
        counter, since = self._made_since(recovery)
        self._site.sometimes[AGAIN] += bool(since)
        journal.write(
            [
                "recovered",
                journal.epoch + 1,
                recovery.common,
                recovery.winner,
                dict(recovery.votes),
                lists_of(recovery.refs),
                lists_of([*recovery.queue, *since]),
                counter,
                dict.fromkeys(journal.peers, recovery.counter),
                [
                    digest.to_list()
                    for master, digest in sorted(self._digests.items())
                    if master in journal.peers
                ],
            ]
        )
        self._site.log("recovered", epoch=journal.epoch, winner=recovery.winner)
        again = [ref.id for ref in (*journal.synced[recovery.common :], *journal.queue)][: len(executed)]
        sometimes = self._site.sometimes
        sometimes[recovered_by(journal.strategy)] += 1
        sometimes[TIE] += recovery.is_tie
        sometimes[OTHER_ORDER] += executed != again
        if journal.is_restoring:
            self._restore()
        self._has_diverged = False
        self._rounds.restart(recovery.common)
        self._recovered()

    def _made_since(self, recovery: Outcome) -> tuple[int, list[Ref]]:
        """The counter behind a recovery, and the own transactions that no digest has, with fresh timestamps."""
        journal = self._journal
        assert journal.frozen is not None
        brought = (*journal.frozen.synced, *journal.frozen.queue, *recovery.refs, *recovery.queue)
        known = {ref.id for ref in (*journal.synced[: recovery.common], *brought)}
        since = [*journal.synced[recovery.common :], *journal.queue]
        own = [ref for ref in since if ref.origin == self._site.name and ref.id not in known]
        counter = max(journal.counter, recovery.counter)
        again = [ref._replace(ts=counter + number) for number, ref in enumerate(own, 1)]
        return counter + len(again), again

    def _thaw_if_stalled(self) -> None:
        """Go on if no digest has come for `split_ns`, and a master that has sent none is not heard."""
        journal, split_ns = self._journal, self._site.configuration.split_ns
        lacking = [peer for peer in journal.peers if peer not in self._digests]
        is_long = 0 < split_ns < self._site.now.monotonic_ns - self._digest_ns
        if is_long and not all(map(self._rounds.is_heard, lacking)):
            self._site.log("thawed", "warning", epoch=journal.epoch, lacking=lacking)
            journal.write(["thawed"])
            self._site.sometimes[THAWED] += 1
            self._recovered()

    def _restore(self) -> None:
        """The workers take their time; the next split may begin, and end, before they have finished."""
        self._site.after("restore", self._site.configuration.backup_ns, self._finish_restore)

    def _finish_restore(self) -> None:
        backup = self._journal.backup
        assert backup is not None
        self._journal.write(["restored", backup.index, backup.hash])
        self._site.sometimes[RESTORED_IN_SPLIT if self._journal.missing else RESTORED] += 1
        self._restored()
