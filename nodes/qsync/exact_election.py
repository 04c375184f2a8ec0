"""Elections with Tarantool's exact times and states (the option `exact_elections`).

| timer | begins | its end |
|---|---|---|
| death timeout, no spread | the leader is heard, or a node may stand without a leader | the leader is unseen |
| election timeout and spread | the own vote of the term is on disk, and nobody leads | the term is over |
| a spread alone | the vote is split, once a term | the term is over |

At each end a node that may stand begins a term, unless a peer sees the leader. If one does, no timer runs. The node
then begins in the moment in which the last such peer loses the leader, even if this node never knew that leader. When
the leader resigns, the node begins at once, whatever its peers see.

A node may stand (`is_candidate`) in mode `candidate` while a quorum is connected, or in the term of its promote. No
timer runs while a term or vote is on its way to the disk. A candidate counts votes when a vote for it arrives.

Source: `src/lib/raft/raft.c` and `src/box/raft.c` of Tarantool 3.2.4 and 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from nodes.iproto.messages import RaftState
from nodes.qsync import sometimes as rare
from nodes.qsync.election import CANDIDATE, FOLLOWER, LEADER, Election, Mode

NEVER_NS = 2**62


@dataclass(kw_only=True)
class ExactElection(Election):
    """`Election` with Tarantool's timers. Times are nanoseconds of the node's monotonic clock."""

    is_exact: ClassVar[bool] = True
    is_candidate: bool = False
    """The node may stand in this term."""
    deadline_ns: int = NEVER_NS
    """When the running timer ends."""
    _is_healthy: bool = False
    """A quorum is connected."""
    _is_seen: bool = False
    """This node hears the leader of this term, and is not the leader itself."""
    _period_ns: int = 0
    """The length of the last timer. A split vote shortens a timer only once."""

    def started(self, term: int, vote: int, now_ns: int) -> None:
        self._take_up(term, vote, now_ns)
        self._restore(now_ns)

    def sees_leader(self, now_ns: int) -> bool:
        return self._is_seen and self.mode != "off"

    def written(self, now_ns: int) -> None:
        if not self.is_writing or self.must_write:  # a newer term or vote has not even been sent to the disk
            return
        self.is_writing = False
        if self.leader_id:
            self._set_timer(now_ns, self.death_timeout_ns if self.mode != "off" else NEVER_NS)
        elif self.is_candidate and not self.vote:
            self._vote_for_self()
        elif self.is_candidate and self.vote == self.me and self.quorum == 1:
            self._lead()
        elif self.is_candidate:
            if self.vote == self.me:
                self.state, self.must_tell = CANDIDATE, True
            self._set_timer(now_ns, self.election_timeout_ns + self._spread(self.election_timeout_ns))
            self._check_split(now_ns)

    # ---- messages of peers

    def heard(self, peer: int, now_ns: int) -> None:
        if peer == 0 or peer != self.leader_id or self.is_leader or self.mode == "off":
            return
        self.leader_heard_ns = now_ns
        if not self.is_writing:
            self._see(now_ns)

    def lost(self, peer: int, now_ns: int) -> None:
        self._witness(peer, now_ns, sees=False)

    def receive(self, message: RaftState, own_vclock: Mapping[int, int], now_ns: int) -> None:
        source = message.replica_id
        self.see_term(message.term, now_ns)
        if message.term == self.term:
            self._witness(source, now_ns, sees=message.is_leader_seen)
        if message.term < self.term:
            return  # a peer that is behind, or the last that saw the leader: its vote is one of the term before
        if message.vote and source not in self.votes:
            self.votes[source] = message.vote
            self._check_split(now_ns)
        if self.state == CANDIDATE and message.vote == self.me and self._has_quorum():
            self._lead()
        elif self.state != CANDIDATE and message.state == CANDIDATE:
            assert message.vclock is not None, "flaw() was asked before"
            self._consider(source, message.vclock, own_vclock)
        if message.state != LEADER and self.leader_id == source:
            self._resigned(now_ns)
        elif message.state == LEADER and self.leader_id not in (0, source):
            self.rival = source
        elif message.state == LEADER and not self.leader_id:
            self.state, self.leader_id, self.leader_heard_ns = FOLLOWER, source, now_ns
            self._see(now_ns)

    def _see(self, now_ns: int) -> None:
        self.must_tell |= not self._is_seen
        self._is_seen = True
        if not self.is_writing and self.mode != "off":
            self._set_timer(now_ns, self.death_timeout_ns)

    def _resigned(self, now_ns: int) -> None:
        self.leader_id, self._is_seen, self.must_tell = 0, False, True
        self.deadline_ns = NEVER_NS
        if self._may_begin:
            self._begin(now_ns)

    def _witness(self, peer: int, now_ns: int, *, sees: bool) -> None:
        """A peer sees the leader, or does not; the last one that loses it lets this node begin."""
        if self.is_leader:
            return
        was_seen = self.seen_by.pop(peer, False)
        if sees:
            self.seen_by[peer] = True
        elif was_seen:
            self._begin_if_unseen(now_ns)

    def _check_split(self, now_ns: int) -> None:
        may_shorten = self.is_candidate and not self.leader_id and not self.is_writing
        if may_shorten and self.deadline_ns < NEVER_NS and self._is_split():
            self._shorten(now_ns)

    def _shorten(self, now_ns: int) -> None:
        if self._period_ns < self.election_timeout_ns:
            return  # it was split before
        self.sometimes.note(rare.SPLIT_VOTE)
        left_ns = self.deadline_ns - now_ns
        self._set_timer(now_ns, min(left_ns, self._spread(self.election_timeout_ns)))

    # ---- what time does

    def tick(self, now_ns: int, connected: int, followers: int) -> None:
        self.note_health(connected, now_ns)
        if self.mode == "off" or self.is_writing:
            return
        self.must_tell |= self.said_otherwise
        self.lacks_new_quorum &= followers < self.quorum
        if self.is_leader and self.decisions.is_fenced(self, followers):
            self.sometimes.note(rare.FENCED)
            self.resign(now_ns)
        elif now_ns >= self.deadline_ns:
            self.deadline_ns = NEVER_NS
            self._is_seen, self.must_tell = False, True
            self._restore(now_ns)
            self._begin_if_unseen(now_ns)

    def note_health(self, connected: int, now_ns: int) -> None:
        """A leader or candidate without a quorum stays what it is until its term ends."""
        is_healthy = connected >= self.quorum
        if is_healthy == self._is_healthy:
            return
        self._is_healthy = is_healthy
        if self.mode == "candidate" and (is_healthy or self.state == FOLLOWER):
            self._restore(now_ns)

    def wake_ns(self) -> int | None:
        is_off = self.is_writing or self.mode == "off" or self.deadline_ns == NEVER_NS
        return None if is_off else self.deadline_ns

    def resign(self, now_ns: int) -> None:
        if self.is_leader:
            self._stop(now_ns)
            self._restore(now_ns)

    def end_campaign(self, now_ns: int) -> None:
        self._restore(now_ns)

    def set_mode(self, mode: Mode, now_ns: int) -> None:
        was_off, self.mode = self.mode == "off", mode
        if mode in ("off", "voter") or (mode == "manual" and self.state == FOLLOWER):
            self._stop(now_ns)
        elif mode == "candidate":
            self._restore(now_ns)
        if mode == "off":
            self.deadline_ns = NEVER_NS
        elif was_off and self._is_seen and not self.is_writing:
            self._set_timer(now_ns, self.death_timeout_ns)
        self.must_tell = True

    def set_timeouts(self, election_ns: int, death_ns: int) -> None:
        later_ns = 0
        is_running = self.deadline_ns < NEVER_NS and not self.is_writing
        if election_ns != self.election_timeout_ns and self.vote and not self.leader_id and self.is_candidate:
            later_ns, self._period_ns = election_ns - self.election_timeout_ns, election_ns
        elif self.state == FOLLOWER and self._is_seen:
            later_ns = death_ns - self.death_timeout_ns
        self.deadline_ns += later_ns if is_running else 0
        self.election_timeout_ns, self.death_timeout_ns = election_ns, death_ns

    def campaign(self, now_ns: int) -> None:
        self._enter(self.term + 1, now_ns)
        self.is_candidate = True
        self._vote_for_self()

    def _settle_quorum(self, now_ns: int) -> None:
        if self.state == CANDIDATE and self._has_quorum():
            self._lead()
        else:
            self._check_split(now_ns)

    @property
    def _may_begin(self) -> bool:
        return self.mode == "candidate" and self._is_healthy

    def _begin_if_unseen(self, now_ns: int) -> None:
        if self._may_begin and not self._is_seen and not self.seen_by:
            self._begin(now_ns)

    def _begin(self, now_ns: int) -> None:
        self._enter(self.term + 1, now_ns)
        self._vote_for_self()

    def _vote_for_self(self) -> None:
        self.vote = self.votes[self.me] = self.me
        self._must_write()

    def _lead(self) -> None:
        self.state, self.leader_id, self.must_tell = LEADER, self.me, True
        self.deadline_ns = NEVER_NS

    def _restore(self, now_ns: int) -> None:
        """The node may stand if its mode and its connections say so: the promote for one term is over."""
        if not self._may_begin:
            self._stop(now_ns)
        elif not self.is_candidate:
            self.is_candidate = True
            if not self.is_writing and not self._is_seen and not self.seen_by:
                self._set_timer(now_ns, self.death_timeout_ns)  # time for the leader to be heard

    def _stop(self, now_ns: int) -> None:
        if not self.is_candidate:
            return
        self.is_candidate = False
        if self.is_leader:
            self.leader_id, self.leader_heard_ns = 0, now_ns
        elif not self._is_seen:
            self.deadline_ns = NEVER_NS
        self.state, self.must_tell = FOLLOWER, True

    def _enter(self, term: int, now_ns: int) -> None:
        if self.is_leader:
            self.leader_heard_ns = now_ns
        self._is_seen, self.deadline_ns = False, NEVER_NS
        self._forget(term)
        self._restore(now_ns)

    def _must_write(self) -> None:
        self.must_write = self.must_tell = self.is_writing = True
        self.deadline_ns = NEVER_NS

    def _set_timer(self, now_ns: int, period_ns: int) -> None:
        self._period_ns = period_ns
        self.deadline_ns = now_ns + period_ns
