"""The leader: Raft's elections as Tarantool does them, without any knowledge of data.

| state | becomes | when |
|---|---|---|
| follower | candidate | no leader for the death timeout, no peer sees one, a quorum is connected (mode candidate) |
| follower | candidate | an operator asked for it (`campaign`: modes candidate and manual) |
| candidate | leader | a quorum voted for it in its term |
| candidate | candidate, in the next term | the election timeout passed, or the vote is split |
| candidate | follower | the same, in mode manual, or while a peer sees the leader or no quorum is connected |
| leader | follower | it sees a higher term, or is fenced: no quorum of followers for the death timeout |
| any | follower | a higher term is seen |

One vote a term, and only for a candidate with a vclock that covers the own one. Term and vote are written before they
are sent: `must_write` is set, the caller writes them, and the order promise keeps `must_tell` behind that. *Pre-vote*:
a node that sees the leader reports that, and a candidate does not disturb a leader that any node sees.

Modes: `off` (neither votes nor leads, and never reports that it sees a leader, but keeps track of term, leader and the
nodes that see the leader, so that it knows them when it is switched on), `voter` (votes only), `manual` (leads only
when asked), `candidate`.
Fencing: `off`, `soft` (the same death timeout as the followers), `strict` (half of it, so that the old leader is fenced
before a new one is elected). A leader with a raised quorum is not fenced before it has had that quorum once.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol

from nodes.iproto.messages import RaftState
from nodes.kernel.vclock import covers
from nodes.qsync import sometimes as rare
from nodes.qsync.sometimes import Sometimes

Mode = Literal["off", "voter", "manual", "candidate"]
Fencing = Literal["off", "soft", "strict"]
Wait = Literal["election", "death", ""]
MODES: tuple[Mode, ...] = ("off", "voter", "manual", "candidate")
FENCINGS: tuple[Fencing, ...] = ("off", "soft", "strict")

FOLLOWER, CANDIDATE, LEADER = 1, 2, 3
STATE_NAMES = {FOLLOWER: "follower", CANDIDATE: "candidate", LEADER: "leader"}
SPREAD = 0.1
"""Timeouts are spread by up to this share, so that candidates do not stand at the same time."""


def flaw(message: RaftState) -> str | None:
    """Why the message is malformed, in Tarantool's words; None if it is well formed."""
    if message.term == 0 or message.state not in STATE_NAMES:
        return "Invalid term or state"
    if message.state == CANDIDATE and (message.vote != message.replica_id or message.vclock is None):
        return "Candidate should always vote for self and provide its vclock"
    return None


class Decides(Protocol):
    """`nodes.qsync.decisions` has the right answers."""

    def is_fenced(self, election: Election, followers: int) -> bool: ...

    def is_held_back(self, election: Election, connected: int) -> bool: ...


@dataclass(slots=True, kw_only=True)
class Election:
    """One node's part in elections. Times are nanoseconds of its monotonic clock."""

    me: int
    mode: Mode
    fencing: Fencing
    quorum: int
    members: int
    election_timeout_ns: int
    death_timeout_ns: int
    chance: random.Random
    decisions: Decides
    is_exact: ClassVar[bool] = False
    """Tarantool's exact times: `nodes.qsync.exact_election`."""
    term: int = 1
    vote: int = 0
    state: int = FOLLOWER
    leader_id: int = 0
    must_write: bool = False
    must_tell: bool = False
    votes: dict[int, int] = field(default_factory=dict)
    """The known votes in this term: voter → candidate."""
    seen_by: dict[int, bool] = field(default_factory=dict)
    """Peer → whether it sees the leader of this term."""
    leader_heard_ns: int = 0
    deadline_ns: int = 0
    """When a candidate gives up this term, or a follower without a leader may begin one."""
    said_seen: bool = False
    """The last report to all peers: whether this node sees the leader."""
    said_otherwise: bool = False
    """A newly connected peer got a different report since then: all peers need the present one."""
    is_writing: bool = False
    """Exact elections: term and vote are on their way to the disk, and no timer runs."""
    _waits_for: Wait = ""
    """The timeout that ends at `deadline_ns`; "" if none does."""
    lacks_new_quorum: bool = False
    """The quorum was raised, and this leader has not had it since."""
    told_behind: int | None = None
    """The token of the record that the last message to a peer waits for: if it is lost, so is the message."""
    rival: int = 0
    """Another leader of the own term, for the log: no quorum can have elected both."""
    sometimes: Sometimes = field(default_factory=Sometimes)

    @property
    def is_leader(self) -> bool:
        return self.state == LEADER

    def started(self, term: int, vote: int, now_ns: int) -> None:
        """Begin as a follower, with the term and vote of the log; so does a restarted leader."""
        self._take_up(term, vote, now_ns)
        self._wait(now_ns, "death")

    def _take_up(self, term: int, vote: int, now_ns: int) -> None:
        self.term, self.vote = max(term, 1), vote
        if vote:
            self.votes[self.me] = vote
        self.leader_heard_ns = now_ns

    def sees_leader(self, now_ns: int) -> bool:
        """This node is the leader, or heard the leader of this term within the death timeout."""
        if self.leader_id == 0 or self.mode == "off":
            return False
        return self.leader_id == self.me or now_ns - self.leader_heard_ns < self.death_timeout_ns

    def said(self, vclock: Mapping[int, int], now_ns: int) -> RaftState:
        """The message for a newly connected peer."""
        reported = dict(vclock) if self.state == CANDIDATE else None
        is_seen = self.sees_leader(now_ns)
        self.said_otherwise |= is_seen != self.said_seen
        return RaftState(self.me, self.term, self.vote, self.state, self.leader_id, is_seen, reported)

    def said_to_all(self, vclock: Mapping[int, int], now_ns: int) -> RaftState:
        """The state to send to all peers; it is noted as their last report."""
        self.must_tell = self.said_otherwise = False
        self.said_seen = self.sees_leader(now_ns)  # before `said`, which compares with it
        return self.said(vclock, now_ns)

    def written(self, now_ns: int) -> None:
        """The newest term and vote are on disk. Only exact elections wait for that."""

    # ---- messages of peers

    def see_term(self, term: int, now_ns: int) -> bool:
        """A message came from this term. True if it is higher than the own one: then step down and follow."""
        if term <= self.term:
            return False
        self._enter(term, now_ns)
        return True

    def heard(self, peer: int, now_ns: int) -> None:
        """A message of any kind came from a peer."""
        if peer == self.leader_id:
            self.leader_heard_ns = now_ns

    def lost(self, peer: int, now_ns: int) -> None:
        """A peer's connection is gone: its report about the leader does not count any more."""
        self.seen_by.pop(peer, None)

    def receive(self, message: RaftState, own_vclock: Mapping[int, int], now_ns: int) -> None:
        """A peer sent its state, which has no `flaw`."""
        source = message.replica_id
        self.see_term(message.term, now_ns)  # first: it forgets the votes and the leader of the term before
        if message.term < self.term:
            return  # a peer that is behind got our term when it began: a link loses nothing
        self.seen_by[source] = message.is_leader_seen
        if message.vote:
            self.votes[source] = message.vote
        if message.state == LEADER and self.leader_id not in (0, source):
            self.rival = source
        elif message.state == LEADER and self.leader_id != source:
            self.state, self.leader_id, self.leader_heard_ns = FOLLOWER, source, now_ns
            self.must_tell = True
        elif message.state != LEADER and self.leader_id == source:
            self.leader_id = 0  # it resigned
            self._wait(now_ns, "")
        if message.state == CANDIDATE:
            assert message.vclock is not None, "flaw() was asked before"
            self._consider(source, message.vclock, own_vclock)
        if self.state == CANDIDATE:
            self._count(now_ns)

    def _consider(self, candidate: int, its_vclock: Mapping[int, int], own_vclock: Mapping[int, int]) -> None:
        may_vote = self.mode != "off" and self.vote == 0 and self.leader_id == 0
        ours = {origin: lsn for origin, lsn in own_vclock.items() if origin != 0}
        # Not the number of rows but each origin counts: what a quorum acknowledged may be of any of them.
        if may_vote and covers(its_vclock, ours):
            self.vote = candidate
            self.votes[self.me] = candidate
            self._must_write()
        elif may_vote:
            self.sometimes.note(rare.VOTE_REFUSED)

    def _count(self, now_ns: int) -> None:
        if self._has_quorum():
            self.state, self.leader_id = LEADER, self.me
            self.must_tell = True
        elif self._is_split() and self._waits_for == "election":  # it is shortened once
            self.sometimes.note(rare.SPLIT_VOTE)
            self._waits_for = ""
            self.deadline_ns = min(self.deadline_ns, now_ns + self._spread(self.election_timeout_ns))

    def _has_quorum(self) -> bool:
        return sum(choice == self.me for choice in self.votes.values()) >= self.quorum

    def _is_split(self) -> bool:
        """No candidate can win this term any more."""
        open_votes = self.members - len(self.votes)
        if self.members < self.quorum or open_votes < 0:
            return False  # some have not joined yet: another term would not help
        best = max(Counter(self.votes.values()).values(), default=0)
        return best + open_votes < self.quorum

    # ---- what time does

    def note_health(self, connected: int, now_ns: int) -> None:
        """So many members are connected, this node included. Only exact elections act before the next `tick`."""

    def tick(self, now_ns: int, connected: int, followers: int) -> None:
        """Check the timeouts. `connected` members and acknowledging `followers` include this node."""
        if self.mode == "off":
            return
        if self.said_otherwise or self.sees_leader(now_ns) != self.said_seen:
            self.must_tell = True
        self.lacks_new_quorum &= followers < self.quorum
        if self.state == LEADER:
            if self.decisions.is_fenced(self, followers):
                self.sometimes.note(rare.FENCED)
                self.resign(now_ns)
        elif self.state == CANDIDATE:
            if now_ns >= self.deadline_ns:
                if self.mode == "candidate":
                    self._try(now_ns, connected)
                else:
                    self.state = FOLLOWER
                    self.must_tell = True
        elif self.mode == "candidate" and now_ns >= self.deadline_ns and not self.sees_leader(now_ns):
            self._try(now_ns, connected)

    def wake_ns(self) -> int | None:
        """When to call `tick` next; None if no timeout runs."""
        if self.state == CANDIDATE:
            return self.deadline_ns
        if self.state == FOLLOWER and self.mode == "candidate":
            heard_ns = self.leader_heard_ns + self.death_timeout_ns if self.leader_id else 0
            return max(self.deadline_ns, heard_ns)
        return None

    def resign(self, now_ns: int) -> None:
        """Stop leading, in the same term."""
        self.state, self.leader_id, self.leader_heard_ns = FOLLOWER, 0, now_ns
        self.must_tell = True
        self._wait(now_ns, "death")

    def follower_silent_ns(self) -> int:
        """For how long a follower may be silent and still count against fencing."""
        return self.death_timeout_ns // 2 if self.fencing == "strict" else self.death_timeout_ns

    def set_mode(self, mode: Mode, now_ns: int) -> None:
        """Set the mode; a leader that may not lead in it stops leading."""
        was_candidate, self.mode = self.mode == "candidate", mode
        if mode in ("off", "voter") and self.state != FOLLOWER:
            self.resign(now_ns)
        if mode == "candidate" and not was_candidate and self.state == FOLLOWER:
            self.leader_heard_ns = now_ns  # as if it had just started: the leader has its time to be heard
            self._wait(now_ns, "death")
        self.must_tell = True

    def set_timeouts(self, election_ns: int, death_ns: int) -> None:
        """Set the timeouts. A running timeout ends as if it had begun with the new value; it keeps its spread."""
        if self._waits_for == "election":
            self.deadline_ns += election_ns - self.election_timeout_ns
        elif self._waits_for == "death":
            self.deadline_ns += death_ns - self.death_timeout_ns
        self.election_timeout_ns, self.death_timeout_ns = election_ns, death_ns

    def set_quorum(self, quorum: int, now_ns: int) -> None:
        """Set the number of votes needed; a candidate may have them already."""
        self.lacks_new_quorum |= quorum > self.quorum
        self.quorum = quorum
        self._settle_quorum(now_ns)

    def _settle_quorum(self, now_ns: int) -> None:
        if self.state == CANDIDATE:
            self._count(now_ns)

    def new_term(self, now_ns: int) -> None:
        """Begin a term without a candidate: without elections, a new owner of the queue needs one."""
        self._enter(self.term + 1, now_ns)

    def campaign(self, now_ns: int) -> None:
        """Begin a term and ask for votes, at an operator's request."""
        self._begin(now_ns)

    def end_campaign(self, now_ns: int) -> None:
        """The operator's call ends without a winner. Only exact elections stop standing before the term is over."""

    def _try(self, now_ns: int, connected: int) -> None:
        if self.decisions.is_held_back(self, connected):
            self.sometimes.note(rare.HELD_BACK)
            if self.state == CANDIDATE:  # the caller of this election must learn that it is over (gh-10836)
                self.state, self.must_tell = FOLLOWER, True
            self._wait(now_ns, "", self.death_timeout_ns // 4)
        else:
            self._begin(now_ns)

    def _begin(self, now_ns: int) -> None:
        self._enter(self.term + 1, now_ns)  # first: it clears the votes and the own vote
        self.vote = self.votes[self.me] = self.me
        self.state, self.must_tell = CANDIDATE, True
        self._wait(now_ns, "election")
        self._count(now_ns)

    def _enter(self, term: int, now_ns: int) -> None:
        self._forget(term)
        self._wait(now_ns, "election")

    def _forget(self, term: int) -> None:
        """Follow in a new term, of which nothing is known."""
        self.term, self.vote, self.state, self.leader_id = term, 0, FOLLOWER, 0
        self.votes.clear()
        self.seen_by.clear()
        self._must_write()

    def _must_write(self) -> None:
        self.must_write = self.must_tell = True

    def _wait(self, now_ns: int, waits_for: Wait, besides_ns: int = 0) -> None:
        base_ns = {"election": self.election_timeout_ns, "death": self.death_timeout_ns, "": besides_ns}
        self._waits_for = waits_for
        self.deadline_ns = now_ns + base_ns[waits_for] + self._spread(self.election_timeout_ns)

    def _spread(self, base_ns: int) -> int:
        return int(self.chance.random() * SPREAD * base_ns)
