"""One qsync node: events in, effects out.

    Started ──▶ recover from the log ──▶ beat every replication timeout
    Received on a client's link ──▶ `service` ──▶ `commits` ──▶ Persist, copies to relays, later the answer
    Received on an applier's link ──▶ `commits.apply` ──▶ Persist, acknowledgement behind it
    Received on a relay's link ──▶ the acknowledgement is counted in the limbo

A link that was accepted is a client's until it subscribes; then it is a relay's. All state is in the parts:
`journal` (the log), `commits` (limbo and transactions), `appliers` and `relays` (replication), `spaces`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from nodes.iproto.messages import (
    Ack,
    Answer,
    Call,
    Checked,
    ClientRequest,
    Heartbeat,
    Key,
    RaftState,
    Refusal,
    Row,
    Rows,
    Subscribe,
    Subscribed,
    Type,
)
from nodes.kernel.effects import Connect, Disconnect, Effect, Log, Send, SetTimer
from nodes.kernel.events import (
    Accepted,
    Connected,
    ConnectFailed,
    Disconnected,
    Event,
    Instant,
    Persisted,
    PersistFailed,
    Received,
    Started,
    Stopping,
    TimerFired,
)
from nodes.kernel.vclock import text
from nodes.qsync.applier import Applier, gap, is_known
from nodes.qsync.bugs import ACK_WITHOUT_TERM
from nodes.qsync.commits import SYNCHRO_TIMER, Commits
from nodes.qsync.configuration import Configuration
from nodes.qsync.election import STATE_NAMES, Election
from nodes.qsync.filter import Contradiction
from nodes.qsync.info import box_info
from nodes.qsync.journal import Journal, public
from nodes.qsync.linearizable_reads import LinearizableReads
from nodes.qsync.relay import Relay
from nodes.qsync.schema import Schema
from nodes.qsync.service import Service

BEAT_TIMER = "beat"
ELECTION_TIMER = "election"
MILLISECOND_NS = 1_000_000
DISCONNECT_AFTER_BEATS = 4
"""A link that is silent for this many replication timeouts is given up."""


class Replica:
    """A node of the qsync cluster; implements `nodes.kernel.node.Node`."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._out: list[Effect] = []
        self.journal = Journal(configuration.me.id, configuration.instance_uuid)
        self.schema = Schema(configuration)
        self.spaces = self.schema.by_id
        self.election = _election(configuration)
        self._led_term = 0
        self._started_ns = 0
        self._hears_no_terms = ACK_WITHOUT_TERM in configuration.bugs
        self.commits = Commits(configuration, self.journal, self.spaces, self.election, self._out)
        self.reads = LinearizableReads(len(configuration.members) - configuration.quorum_size)
        self._service = Service(self.commits, self.schema, self.status, self._info, self.reads, self._out)
        self.appliers = {peer.name: Applier(peer.name, peer.id) for peer in configuration.peers}
        self._applier_links: dict[int, Applier] = {}
        self.relays: dict[int, Relay] = {}

    # ---- the interface

    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        """Take one event; see `nodes.kernel.node.Node`."""
        match event:
            case Received(link, message):
                self._received(link, message, now)
            case Persisted(token):
                write = self.journal.persisted(token)
                if write is not None:
                    self.commits.persisted(write, now)
                    self._take_backlogs()
            case TimerFired(name):
                self._timer(name, now)
            case Connected(link, peer):
                self._connected(link, self.appliers[peer], now)
            case ConnectFailed(peer, error):
                self.appliers[peer].last_error = error
                self.appliers[peer].turn_off()
            case Disconnected(link, reason):
                self._disconnected(link, reason)
            case PersistFailed(tokens, error):
                self._persist_failed(tokens, error, now)
                self._take_backlogs()
            case Started(files):
                self._start(files, now)
            case Accepted() | Stopping():
                pass
        self._take_part(now)
        if len(self.reads):
            self._ask_and_read(now)
        self._feed_relays(now)
        effects = self._out[:]
        self._out.clear()
        if self.schema.version != Answer(0).schema_version:
            return [self._under_schema(effect) for effect in effects]
        return effects

    def _under_schema(self, effect: Effect) -> Effect:
        """Answers say which schema they were given under: a client that knows another one reads it anew."""
        if isinstance(effect, Send) and isinstance(effect.message, Answer | Refusal):
            return replace(effect, message=replace(effect.message, schema_version=self.schema.version))
        return effect

    def _info(self, now: Instant) -> Mapping[str, object]:
        return box_info(
            configuration=self.configuration,
            journal=self.journal,
            commits=self.commits,
            appliers=self.appliers,
            relays=self.relays.values(),
            started_ns=self._started_ns,
            now=now,
        )

    def status(self) -> Mapping[str, object]:
        """What an operator asks for; JSON values."""
        limbo = self.commits.limbo
        return {
            "name": self.configuration.name,
            "id": self.configuration.me.id,
            "role": "owner" if self.commits.may_decide else "replica",
            "election": STATE_NAMES[self.election.state],
            "election_term": self.election.term,
            "leader": self.election.leader_id,
            "owner": limbo.owner_id,
            "term": limbo.term,
            "lsn": self.journal.vclock.get(self.configuration.me.id, 0),
            "vclock": {str(origin): lsn for origin, lsn in sorted(public(self.journal.vclock).items())},
            "pending_promotes": len(self.commits.pending),
            "limbo": len(limbo),
            "confirmed_lsn": limbo.confirmed_lsn,
            "in_rollback": limbo.is_in_rollback,
            "rollbacks": limbo.rollback_count,
            "committed": self.commits.committed_count,
            "following": sorted(a.peer for a in self.appliers.values() if a.state == "following"),
            "stopped": {a.peer: a.message for a in self.appliers.values() if a.state == "stopped"},
            "followers": sorted(relay.replica_id for relay in self.relays.values()),
        }

    # ---- starting

    def _start(self, files: Mapping[str, bytes], now: Instant) -> None:
        self._started_ns = now.monotonic_ns
        rows, effects = self.journal.open(files)
        self._out.extend(effects)
        self.commits.replay(_transactions(rows), now)
        term, vote = _vote_of(rows)
        self.election.started(max(term, self.commits.limbo.term), vote, now.monotonic_ns)
        if rows:
            fields = {
                "rows": len(rows),
                "vclock": text(self.journal.vclock),
                "limbo": len(self.commits.limbo),
            }
            self._out.append(Log("info", "recovered from the log", fields))
        self._beat(now)

    # ---- links

    def _received(self, link: int, message: object, now: Instant) -> None:
        applier = self._applier_links.get(link)
        if applier is not None:
            self._from_peer(applier, message, now)
            return
        relay = self.relays.get(link)
        match message:
            case Call():
                self._service.serve(link, message, now)
            case Ack(vclock, term, sync) if relay is not None:
                if not self._hears_no_terms:
                    self._see_term(term, now)
                relay.acknowledge(vclock, self.journal.rows, now.monotonic_ns)
                self.commits.acknowledge(relay.replica_id, vclock.get(self.configuration.me.id, 0), term, now)
                if sync:
                    self.reads.heard(relay.replica_id, sync, vclock)
            case Subscribe():
                self._subscribe(link, message, now)
            case _ if isinstance(message, ClientRequest | Checked):
                self._service.serve(link, message, now)
            case _:
                self._drop(link, f"unexpected {type(message).__name__}")

    def _connected(self, link: int, applier: Applier, now: Instant) -> None:
        applier.state, applier.link, applier.heard_ns = "subscribing", link, now.monotonic_ns
        self._applier_links[link] = applier
        me = self.configuration.me
        request = Subscribe(0, self.configuration.cluster_uuid, me.uuid, me.id, public(self.journal.vclock))
        self._out.append(Send(link, request))

    def _disconnected(self, link: int, reason: str) -> None:
        applier = self._applier_links.pop(link, None)
        if applier is not None:
            applier.last_error = reason
            applier.turn_off()
            self.election.lost(applier.peer_id)
            self._out.append(Log("info", "lost the peer we follow", {"peer": applier.peer, "reason": reason}))
        self._service.hung_up(link)
        relay = self.relays.pop(link, None)
        if relay is not None:
            fields = {"replica": relay.replica_id, "reason": reason}
            self._out.append(Log("info", "lost a follower", fields))

    def _drop(self, link: int, reason: str) -> None:
        self._out.append(Disconnect(link))
        self._disconnected(link, reason)

    # ---- following a peer

    def _from_peer(self, applier: Applier, message: object, now: Instant) -> None:
        applier.heard_ns = now.monotonic_ns
        self.election.heard(applier.peer_id, now.monotonic_ns)
        match message:
            case Rows(rows) if applier.state == "following":
                for row in rows:
                    if row.type == Type.PROMOTE:
                        self._see_term(_term_of(row), now)
                self._apply(applier, rows)
            case Heartbeat(_, _, sync) if applier.state == "following":
                self._acknowledge([applier], sync)
            case RaftState() if applier.state == "following" and message.replica_id == applier.peer_id:
                if self.configuration.election_mode != "off":
                    self.election.receive(message, self.journal.promised, now.monotonic_ns)
                    self._save_vote(now)
            case Subscribed(_, cluster_uuid, _) if applier.state == "subscribing":
                if cluster_uuid != self.configuration.cluster_uuid:
                    self._drop(applier.link, "the peer is of another cluster")
                    return
                applier.state, applier.last_error = "following", ""
                self._out.append(Log("info", "following", {"peer": applier.peer}))
                self._acknowledge([applier])
            case Refusal(_, code, text_):
                self._drop(applier.link, f"refused with {code}: {text_}")
            case _:
                self._drop(applier.link, f"unexpected {type(message).__name__} while {applier.state}")

    def _apply(self, applier: Applier, rows: Iterable[Row]) -> None:
        applier.backlog.extend(applier.transactions(rows))
        is_news = False
        while applier.backlog and not self.commits.is_behind_barrier:
            transaction = applier.backlog.popleft()
            if is_known(transaction, self.journal.promised):
                continue
            missing = gap(transaction, self.journal.promised)
            if missing is not None:
                self._drop(applier.link, missing)
                return
            try:
                self.commits.apply(transaction)
            except Contradiction as contradiction:
                self._stop_following(applier, transaction[-1], str(contradiction))
                break
            is_news = True
        self._acknowledge(self.appliers.values() if is_news else [applier])

    def _stop_following(self, applier: Applier, row: Row, message: str) -> None:
        """The peer's history contradicts ours: nothing more is taken from it until the node starts anew."""
        applier.message = message
        fields = {"peer": applier.peer, "origin": row.replica_id, "row": Type(row.type).name, "lsn": row.lsn}
        self._out.append(Log("error", message, fields))
        self._drop(applier.link, message)

    def _take_backlogs(self) -> None:
        """A barrier is gone: go on with what waited behind it."""
        for applier in self.appliers.values():
            if applier.backlog:
                self._apply(applier, ())

    def _acknowledge(self, appliers: Iterable[Applier], sync: int = 0) -> None:
        """Tell peers what we have, as soon as all of it is on disk: rows, and the term that they are in."""
        after = self.journal.last_token()
        has_elections = self.configuration.election_mode != "off"
        term = self.election.term if has_elections else self.commits.limbo.term
        for applier in appliers:
            if applier.state == "following":
                ack = Ack(public(self.journal.promised), term, sync)
                self._out.append(Send(applier.link, ack, after))

    # ---- being followed

    def _subscribe(self, link: int, request: Subscribe, now: Instant) -> None:
        if request.cluster_uuid != self.configuration.cluster_uuid:
            self._drop(link, f"replica {request.replica_id} is of another cluster")
            return
        ours = self.journal.vclock.get(self.configuration.me.id, 0)
        theirs = request.vclock.get(self.configuration.me.id, 0)
        if theirs > ours:
            fields = {"replica": request.replica_id, "its_lsn": theirs, "our_lsn": ours}
            self._out.append(Log("error", "a replica has rows of ours that we have lost", fields))
        for old in [old for old, relay in self.relays.items() if relay.replica_id == request.replica_id]:
            self._drop(old, "subscribed again")
        self.relays[link] = Relay(link, request.replica_id, dict(request.vclock), now.monotonic_ns)
        answer = Subscribed(request.sync, self.configuration.cluster_uuid, public(self.journal.vclock))
        self._out.append(Send(link, answer))
        if self.configuration.election_mode != "off":
            state = self.election.said(public(self.journal.promised), now.monotonic_ns)
            self._out.append(Send(link, state, self.journal.last_token()))

    def _feed_relays(self, now: Instant) -> None:
        rows, token = self.journal.rows, self.journal.last_token()
        for relay in self.relays.values():
            chosen = relay.take(rows, token)
            if chosen:
                self._out.append(Send(relay.link, Rows(chosen), token))

    # ---- elections

    def _see_term(self, term: int, now: Instant) -> None:
        """Somebody is in this term: if it is higher than ours, we follow, before anything else is counted."""
        if self.configuration.election_mode != "off" and self.election.see_term(term, now.monotonic_ns):
            self._save_vote(now)

    def _save_vote(self, now: Instant) -> None:
        if self.election.must_write:
            self.election.must_write = False
            self.commits.save_vote(now)

    def _take_part(self, now: Instant) -> None:
        """Write, lead, tell: in this order, so that nothing is told that is not on disk."""
        if self.configuration.election_mode == "off":
            return
        election = self.election
        self._save_vote(now)
        if election.is_leader and self._led_term != election.term and not self.commits.is_behind_barrier:
            self._led_term = election.term
            self._out.append(Log("info", "won the election", {"election_term": election.term}))
            self.commits.lead(now)
        if election.must_tell:
            election.must_tell = False
            state = election.said(public(self.journal.promised), now.monotonic_ns)
            for relay in self.relays.values():
                self._out.append(Send(relay.link, state, self.journal.last_token()))
            self._set_election_timer(now)

    def _set_election_timer(self, now: Instant) -> None:
        wake_ns = self.election.wake_ns()
        if wake_ns is not None:
            self._out.append(SetTimer(ELECTION_TIMER, max(wake_ns - now.monotonic_ns, MILLISECOND_NS)))

    def _look_at_election(self, now: Instant) -> None:
        members = {peer.id for peer in self.configuration.peers}
        since_ns = now.monotonic_ns - self.election.follower_silent_ns()
        followers = {
            relay.replica_id
            for relay in self.relays.values()
            if relay.replica_id in members and relay.heard_ns >= since_ns
        }
        connected = [applier for applier in self.appliers.values() if applier.state == "following"]
        self.election.tick(now.monotonic_ns, 1 + len(connected), 1 + len(followers))
        self._save_vote(now)
        self._set_election_timer(now)

    def _ask_and_read(self, now: Instant) -> None:
        """Linearizable reads: ask the followers, and answer what has heard enough."""
        if self.reads.must_ask:
            self.reads.must_ask = False
            beat = Heartbeat(self.configuration.me.id, now.wall_ns / 1e9, self.reads.number)
            for relay in self.relays.values():
                self._out.append(Send(relay.link, beat))
        self.reads.proceed(public(self.journal.vclock), self.commits.last_waiting, self.commits.has_settled)

    # ---- time and disk

    def _timer(self, name: str, now: Instant) -> None:
        if name == BEAT_TIMER:
            self._beat(now)
        elif name == ELECTION_TIMER:
            self._look_at_election(now)
        else:
            assert name == SYNCHRO_TIMER, f"no timer is called {name!r}"
            self.commits.timed_out(now)

    def _beat(self, now: Instant) -> None:
        """Every replication timeout: heartbeats, silent links are given up, lost peers are called again."""
        self._out.append(SetTimer(BEAT_TIMER, self.configuration.replication_timeout_ns))
        silent_since = now.monotonic_ns - DISCONNECT_AFTER_BEATS * self.configuration.replication_timeout_ns
        for relay in list(self.relays.values()):
            if relay.heard_ns < silent_since:
                self._drop(relay.link, "no acknowledgement for too long")
            else:
                self._out.append(Send(relay.link, Heartbeat(self.configuration.me.id, now.wall_ns / 1e9)))
        for applier in self.appliers.values():
            if applier.state in ("subscribing", "following") and applier.heard_ns < silent_since:
                self._drop(applier.link, "silent for too long")
            elif applier.state == "off":
                applier.state = "connecting"
                self._out.append(Connect(applier.peer))
        if self.configuration.election_mode != "off":
            self._look_at_election(now)
        self.reads.give_up(now.monotonic_ns)
        self.commits.confirm_what_a_quorum_has(now)
        self.commits.watch_timeout(now)

    def _persist_failed(self, tokens: tuple[int, ...], error: str, now: Instant) -> None:
        """Our own transactions were refused; rows of others are asked for again by subscribing anew."""
        lost_foreign_rows = self.commits.failed(error)
        if self.election.is_leader:
            self.election.resign(now.monotonic_ns)  # a leader that cannot write is none
        for relay in self.relays.values():
            relay.cut(len(self.journal.rows), tokens[0])
        if lost_foreign_rows:
            for applier in self.appliers.values():
                if applier.link >= 0:
                    self._drop(applier.link, "its rows could not be written")


def _election(configuration: Configuration) -> Election:
    return Election(
        me=configuration.me.id,
        mode=configuration.election_mode,
        fencing=configuration.election_fencing,
        quorum=configuration.quorum_size,
        members=len(configuration.members),
        election_timeout_ns=configuration.election_timeout_ns,
        death_timeout_ns=DISCONNECT_AFTER_BEATS * configuration.replication_timeout_ns,
        chance=random.Random(f"{configuration.seed}/election {configuration.name}"),
    )


def _term_of(row: Row) -> int:
    term = row.body[Key.TERM.value]
    assert isinstance(term, int), row
    return term


def _vote_of(rows: Iterable[Row]) -> tuple[int, int]:
    """The term and vote that were written last."""
    term = vote = 0
    for row in rows:
        if row.type == Type.RAFT:
            found, choice = row.body[0], row.body.get(1, 0)
            assert isinstance(found, int), row
            assert isinstance(choice, int), row
            term, vote = found, choice
    return term, vote


def _transactions(rows: Iterable[Row]) -> Iterator[tuple[Row, ...]]:
    """Rows of a log, joined to transactions."""
    whole = Applier("the log", 0)
    yield from whole.transactions(rows)
