"""The sending side of replication: a node serves the replicas that follow it, each by a relay (`nodes.qsync.relay`)."""

from __future__ import annotations

from collections.abc import Mapping

from nodes.iproto.codes import Code
from nodes.iproto.messages import Ack, Heartbeat, Refusal, Rows, Subscribe, Subscribed
from nodes.kernel.effects import Log, Send
from nodes.kernel.events import Instant
from nodes.kernel.vclock import covers, text
from nodes.qsync.journal import LOCAL, public
from nodes.qsync.mixes import Mixes
from nodes.qsync.options import NO_MARKS
from nodes.qsync.participation import Participation
from nodes.qsync.parts import Parts
from nodes.qsync.relay import Relay


class Followers:
    """The replicas that subscribed to this node."""

    def __init__(self, parts: Parts, participation: Participation, mixes: Mixes) -> None:
        self._options = parts.options
        self._decisions = parts.decisions
        self._journal = parts.journal
        self._election = parts.election
        self._commits = parts.commits
        self._reads = parts.reads
        self._retention = parts.retention
        self._relays = parts.relays
        self._out = parts.out
        self._drop = parts.drop
        self._participation = participation
        self._mixes = mixes

    def subscribe(self, link: int, request: Subscribe, now: Instant) -> None:
        """A replica wants to follow this node."""
        if request.cluster_uuid != self._commits.configuration.cluster_uuid:
            self._drop(link, f"replica {request.replica_id} is of another cluster")
            return
        number = self._number_of(request)
        refusal = self._refusal_of(request, number)
        if refusal is not None:
            self._out.append(Send(link, refusal))
            self._out.append(Log("error", "a replica is refused", {"why": refusal.message}))
            return
        ours = self._journal.vclock.get(self._commits.configuration.me.id, 0)
        theirs = request.vclock.get(self._commits.configuration.me.id, 0)
        if theirs > ours:
            fields = {"replica": number, "its_lsn": theirs, "our_lsn": ours}
            self._out.append(Log("error", "a replica has rows of ours that we have lost", fields))
        # One relay a replica: the link before may be dead without this node's knowing.
        for old in [old for old, relay in self._relays.items() if number and relay.replica_id == number]:
            self._drop(old, "subscribed again")
        self._relays[link] = Relay(link, number, dict(request.vclock), now)
        self._reads.ask_again()
        vclock, me = public(self._journal.vclock), self._commits.configuration.me.id
        answer = Subscribed(
            request.sync, self._commits.configuration.cluster_uuid, vclock, me, self._options.features
        )
        self._out.append(Send(link, answer))
        if self._options.knows_elections:
            state = self._election.said(public(self._journal.promised), now.monotonic_ns)
            self._election.told_behind = self._journal.last_token()
            self._out.append(Send(link, state, self._election.told_behind))

    def _number_of(self, request: Subscribe) -> int:
        """The replica id of a UUID; 0 for an anonymous replica."""
        for member in self._commits.configuration.members:
            if member.uuid == request.instance_uuid and not request.is_anonymous:
                return member.id
        return 0

    def _refusal_of(self, request: Subscribe, number: int) -> Refusal | None:
        """Why this replica cannot follow this node; None if it can."""
        cluster_uuid = self._commits.configuration.cluster_uuid
        if not number and not request.is_anonymous:
            why = Code.UNKNOWN_REPLICA.text(request.instance_uuid, cluster_uuid)
            return Refusal(request.sync, Code.UNKNOWN_REPLICA, why)
        members = {member.id for member in self._commits.configuration.registered}
        mixed = self._mixes.hear(number, request.server_version, members) if number else None
        if mixed is not None:
            return Refusal(request.sync, Code.CFG, Code.CFG.text("replication", mixed))
        if self._options.refuses(request.features):
            why = Code.CFG.text("synchronous_promote", NO_MARKS.format(f"replica {number}"))
            return Refusal(request.sync, Code.CFG, why)
        written = self._journal.vclock.get(number, 0) if number else 0
        if written and not request.vclock.get(number, 0):
            why = Code.CFG.text(
                "instance_uuid",
                f"replica {number} has written rows up to lsn {written} and has lost them all: "
                "let it join under a new UUID",
            )
            return Refusal(request.sync, Code.CFG, why)
        first = public(self._journal.first_vclock)
        # Without its own rows: no relay sends those back to their author.
        if not covers({**request.vclock, LOCAL: 0}, {o: lsn for o, lsn in first.items() if o != number}):
            why = f"Missing .xlog file between LSN {sum(request.vclock.values())} {text(request.vclock)} "
            return Refusal(request.sync, Code.XLOG_GAP, f"{why}and {sum(first.values())} {text(first)}")
        return None

    def feed(self) -> None:
        """Send the rows that the followers lack, as far as their windows are open."""
        rows, token = self._journal.rows, self._journal.last_token()
        length = len(rows)
        for relay in self._relays.values():
            if relay.sent == length:
                continue  # after most events there is nothing new
            chosen = relay.take(rows, token)
            if chosen:
                self._out.append(Send(relay.link, Rows(chosen), token))

    def acknowledged(self, relay: Relay, ack: Ack, now: Instant) -> None:
        """A replica acknowledges rows on its disk; `sync` repeats the number of the linearizable read that asked."""
        term = self._decisions.term_of_acknowledgement(ack.term, self._election.term)
        # First: in a higher term this node leads no more, and must not count the acknowledgement.
        self._participation.see_term(term, now)
        relay.acknowledge(ack.vclock, self._journal.rows, now)
        self._commits.acknowledge(
            relay.replica_id, ack.vclock.get(self._commits.configuration.me.id, 0), term, now
        )
        # An anonymous replica is in no quorum: what it has says nothing of what was acknowledged.
        if ack.sync and relay.replica_id:
            self._reads.heard(relay.replica_id, ack.sync, ack.vclock)

    def beat(self, now: Instant, silent_since_ns: int) -> None:
        """Send a heartbeat to each follower; give up one that has been silent for too long."""
        if self._retention.is_behind:
            self.collect(now)
        for relay in list(self._relays.values()):
            if relay.heard.monotonic_ns < silent_since_ns:
                self._drop(relay.link, "no acknowledgement for too long")
            else:
                self._out.append(
                    Send(relay.link, Heartbeat(self._commits.configuration.me.id, now.wall_ns / 1e9))
                )

    def ask(self, number: int, now: Instant) -> None:
        """Ask the followers for their written vclocks. Their acknowledgements repeat the number."""
        beat = Heartbeat(self._commits.configuration.me.id, now.wall_ns / 1e9, number)
        for relay in self._relays.values():
            self._out.append(Send(relay.link, beat))

    def serve_alone(self, now: Instant) -> bool:
        """Whether a linearizable read need not ask the followers."""
        quorum, beat_ns = self._options.quorum_size, self._options.replication_timeout_ns
        return self._decisions.serves_alone(self._commits, self._relays, quorum, beat_ns, now)

    def lost(self, link: int, reason: str) -> None:
        """The link is gone."""
        relay = self._relays.pop(link, None)
        if relay is not None:
            if relay.replica_id:
                # Noted when it goes: the logs behind this place are kept until it comes back.
                self._retention.followers[relay.replica_id] = relay.vclock
            fields = {"replica": relay.replica_id, "reason": reason}
            self._out.append(Log("info", "lost a follower", fields))

    def not_written(self, first_token: int) -> None:
        """The records from this token on failed, and their rows are not in the journal any more."""
        for relay in self._relays.values():
            relay.cut(len(self._journal.rows), first_token)

    def collect(self, now: Instant) -> None:
        """Drop the rows that neither a snapshot nor any follower needs."""
        anonymous = []
        for relay in self._relays.values():
            if relay.replica_id:
                self._retention.followers[relay.replica_id] = relay.vclock
            else:
                anonymous.append(relay.vclock)
        gone = self._retention.collect(self._participation.other_members(), anonymous, now)
        if gone:
            for relay in self._relays.values():
                relay.shift(gone)

    def acked(self, owner: int, lsn: int) -> int:
        """How many members have this row of an owner on disk."""
        members = self._participation.other_members()
        relays = {relay.replica_id for relay in self._relays.values() if relay.vclock.get(owner, 0) >= lsn}
        return len(relays & members) + (self._journal.vclock.get(owner, 0) >= lsn)

    def known_vclocks(self) -> list[Mapping[int, int]]:
        """The vclocks of the connected members, that of this node first."""
        return [
            self._journal.vclock,
            *(relay.vclock for relay in self._relays.values() if relay.replica_id),
        ]
