"""A node's part in elections: decisions of `nodes.qsync.election` become records, messages and a timer."""

from __future__ import annotations

from collections.abc import Callable

from nodes.iproto.messages import RaftState
from nodes.kernel.effects import Log, Send, SetTimer
from nodes.kernel.events import Instant
from nodes.qsync.journal import public
from nodes.qsync.parts import DISCONNECT_AFTER_BEATS, Parts

ELECTION_TIMER = "election"
MILLISECOND_NS = 1_000_000


class Participation:
    """`lead` begins to claim the queue after a won election."""

    def __init__(self, parts: Parts, lead: Callable[[Instant], None]) -> None:
        self._options = parts.options
        self._decisions = parts.decisions
        self._journal = parts.journal
        self._election = parts.election
        self._commits = parts.commits
        self._appliers = parts.appliers
        self._relays = parts.relays
        self._out = parts.out
        self._lead = lead
        self._led_term = 0
        self._armed_ns = 0
        """When the timer fires."""

    def see_term(self, term: int, now: Instant) -> None:
        """A message came from this term. If it is higher than the own one, follow, before the message is counted."""
        if self._options.knows_elections and self._election.see_term(term, now.monotonic_ns):
            self.save_vote(now)

    def save_vote(self, now: Instant) -> None:
        """Write term and vote if they have changed."""
        if self._election.must_write and self._decisions.is_vote_due(self._election.term, now):
            self._election.must_write = False
            self._commits.records.save_vote(now)

    def hear(self, message: RaftState, now: Instant) -> None:
        """A peer sent its state."""
        deadline_ns = self._election.deadline_ns
        asked = self._decisions.asked_of_candidate(self._journal)
        self._election.receive(message, asked, now.monotonic_ns)
        self.save_vote(now)
        if self._election.deadline_ns < deadline_ns:
            self._set_timer(now)  # the vote is split: no need to wait for its end

    def lost(self, peer_id: int, now: Instant) -> None:
        """The connection to a followed peer is gone."""
        if self._commits.is_recovered:
            self._election.note_health(self.healthy_members(), now.monotonic_ns)
        self._election.lost(peer_id, now.monotonic_ns)

    def proceed(self, now: Instant) -> None:
        """Write, lead, send: in this order, so that no message leaves before its term and vote are on disk."""
        if not self._options.knows_elections or not self._commits.is_recovered:
            return
        election = self._election
        if election.is_exact:
            election.note_health(self.healthy_members(), now.monotonic_ns)
            self._arm(now)
        self.save_vote(now)
        if election.rival:
            fields = {"election_term": election.term, "leader": election.leader_id, "another": election.rival}
            self._out.append(Log("error", "two leaders in one term", fields))
            election.rival = 0
        # Not before a barrier is on disk: the PROMOTE names the owner and the entries that are there behind it.
        if (
            election.is_leader
            and self._led_term != election.term
            and not self._commits.records.is_behind_barrier
        ):
            self._led_term = election.term
            self._out.append(Log("info", "won the election", {"election_term": election.term}))
            self._lead(now)
        if election.must_tell and not election.is_writing:
            # A vclock with rows in flight is no lie: the message leaves behind them, and is dropped with them.
            state = election.said_to_all(public(self._journal.promised), now.monotonic_ns)
            election.told_behind = self._journal.last_token()
            for relay in self._relays.values():
                self._out.append(Send(relay.link, state, election.told_behind))
            self._set_timer(now)

    def _set_timer(self, now: Instant) -> None:
        wake_ns = self._election.wake_ns()
        if wake_ns is not None:
            self._armed_ns = wake_ns
            self._out.append(SetTimer(ELECTION_TIMER, max(wake_ns - now.monotonic_ns, MILLISECOND_NS)))

    def _arm(self, now: Instant) -> None:
        """Set the timer if it would fire too late, or has fired."""
        wake_ns = self._election.wake_ns()
        if wake_ns is not None and not now.monotonic_ns < self._armed_ns <= wake_ns:
            self._set_timer(now)

    def look(self, now: Instant) -> None:
        """Check the timeouts and the connected peers."""
        members = self.other_members()
        since_ns = now.monotonic_ns - self._election.follower_silent_ns()
        followers = {
            relay.replica_id
            for relay in self._relays.values()
            if relay.replica_id in members and relay.heard.monotonic_ns >= since_ns
        }
        self._election.tick(now.monotonic_ns, self.healthy_members(), 1 + len(followers))
        self.save_vote(now)
        self._set_timer(now)

    def options_changed(self, now: Instant) -> None:
        """Apply the present options to the election."""
        options, election = self._options, self._election
        election.fencing = options.election_fencing
        death_ns = DISCONNECT_AFTER_BEATS * options.replication_timeout_ns
        election.set_timeouts(options.election_timeout_ns, death_ns)
        if election.mode != options.election_mode:
            election.set_mode(options.election_mode, now.monotonic_ns)
        election.set_quorum(options.election_quorum, now.monotonic_ns)

    def connected_members(self) -> int:
        """Followed members and this node. A node at a peer's address that is not a member does not count."""
        following = [applier for applier in self._appliers.values() if applier.state == "following"]
        return 1 + sum(applier.peer_id != 0 for applier in following)

    def healthy_members(self) -> int:
        """Members connected in both directions, and this node. Only exact elections require the peer's link, too."""
        if not self._election.is_exact:
            return self.connected_members()
        followers = {relay.replica_id for relay in self._relays.values()}
        following = {applier.peer_id for applier in self._appliers.values() if applier.state == "following"}
        return 1 + len((followers & following) - {0})

    def other_members(self) -> set[int]:
        """The ids of the other members."""
        return {member.id for member in self._commits.configuration.registered} - {
            self._commits.configuration.me.id
        }
