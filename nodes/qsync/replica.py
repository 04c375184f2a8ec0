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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from nodes.iproto.codes import Code
from nodes.iproto.greeting import version_number
from nodes.iproto.messages import (
    PROMOTE_MARK,
    Ack,
    Answer,
    Ballot,
    Call,
    Checked,
    ClientRequest,
    Heartbeat,
    Join,
    JoinMeta,
    JoinSnapshot,
    Key,
    RaftState,
    Refusal,
    Register,
    Row,
    Rows,
    Stage,
    Subscribe,
    Subscribed,
    Type,
    Vote,
)
from nodes.kernel.effects import Connect, Disconnect, Effect, Log, Remove, Send, SetTimer
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
from nodes.kernel.vclock import covers, text
from nodes.qsync import bugs
from nodes.qsync.applier import Applier, gap, is_known
from nodes.qsync.bootstrap import Stored, first_snapshot, in_order, members_of
from nodes.qsync.checkpoints import Captures
from nodes.qsync.clearing import Clearing
from nodes.qsync.commits import SYNCHRO_TIMER, Commits
from nodes.qsync.configuration import Configuration
from nodes.qsync.control import CONTROL_TIMER, Control
from nodes.qsync.decisions import Decisions
from nodes.qsync.election import CANDIDATE, Election, flaw
from nodes.qsync.filter import Contradiction
from nodes.qsync.info import box_info
from nodes.qsync.joining import Hosting, Joining
from nodes.qsync.journal import LOCAL, Journal, public
from nodes.qsync.keys import Rejected, Tuple
from nodes.qsync.linearizable_reads import LinearizableReads
from nodes.qsync.mixes import Mixes
from nodes.qsync.options import NO_MARKS, Options
from nodes.qsync.recovery import transactions, vote_of, with_marks
from nodes.qsync.relay import Relay
from nodes.qsync.report_status import status_of
from nodes.qsync.retention import Retention
from nodes.qsync.schema import FIRST_VERSION, Schema
from nodes.qsync.service import Caller, Service
from nodes.qsync.snapshot import ElectionState, Snapshot
from nodes.qsync.sometimes import (
    CHANGED_BUSY,
    CHANGED_IN_ELECTION,
    CHANGED_IN_JOIN,
    CHANGED_IN_PROMOTION,
    CHANGED_IN_READ,
    RECOVERED_BUSY,
)
from nodes.qsync.system_spaces import CLUSTER
from nodes.version import VERSION

BEAT_TIMER = "beat"
ELECTION_TIMER = "election"
MILLISECOND_NS = 1_000_000
DISCONNECT_AFTER_BEATS = 4
"""A link that is silent for this many replication timeouts is given up."""


class Replica:
    """A node of the qsync cluster; implements `nodes.kernel.node.Node`."""

    def __init__(self, configuration: Configuration, version: str = VERSION) -> None:
        """`version` is what the node says of its code."""
        self._version = version
        self._out: list[Effect] = []
        self.has_data = False
        self.joining: Joining | None = None
        """What we have got so far, while we have to join."""
        self._installing: tuple[int, dict[str, bytes]] | None = None
        """The last record of what we joined with, and the files it makes: when it is on disk we begin anew."""
        self.decisions = bugs.decisions_with(configuration.bugs)
        self.options = Options.of(configuration, self.decisions)
        self.options.peers_without_marks = self._peers_without_marks
        self._mixes = Mixes(configuration.protocol)
        self._build(configuration, _journal(configuration, first_token=1))

    def _build(
        self, configuration: Configuration, journal: Journal, stored: Sequence[Stored] | None = None
    ) -> None:
        """All parts, with what a snapshot holds; again when there is one, or the node has joined and begins anew."""
        self.configuration = configuration
        self.journal = journal
        journal.replica_id = configuration.me.id
        self.schema = Schema(configuration, stored)
        self.spaces = self.schema.by_id
        self.options.counts(len(configuration.registered))
        self.election = _election(configuration, self.options, self.decisions)
        self._led_term = 0
        self._started_ns = 0
        self._now = Instant(0, 0)
        self.commits = Commits(
            configuration, journal, self.spaces, self.election, self.options, self.decisions, self._out
        )
        self.reads = LinearizableReads(self.options.others_asked)
        self._service = Service(
            *(self.commits, self.schema, self.status, self._info, self.reads),
            lambda now: self.decisions.serves_alone(self, now),
            self._out,
        )
        self.captures = Captures(self.commits, journal, self.schema)
        self._hosting = Hosting(self.commits, journal, self.schema, self.captures, self._out)
        self.retention = Retention(self.captures, journal, self.options, self._out)
        self.control = Control(
            self.commits, self._acked, self._healthy_members, self._options_changed, self._out
        )
        self._clearing = Clearing(self.commits, self._known_vclocks, self._options_changed, self._out)
        self._offer_functions()
        self.appliers = {peer.name: Applier(peer.name, peer.id) for peer in configuration.peers}
        self._applier_links: dict[int, Applier] = {}
        self.relays: dict[int, Relay] = {}

    def _offer_functions(self) -> None:
        """What an administrator may call and is done here."""
        functions = self._service.functions
        functions["box.snapshot"] = lambda caller, _, now: self.retention.begin(
            now, (caller.link, caller.answer("ok"))
        )
        functions.update(self.control.functions)
        if not self.options.knows_elections:
            del functions["box.ctl.promote"], functions["box.ctl.demote"]
            functions["box.ctl.clear_synchro_queue"] = lambda caller, _, now: self._clearing.begin(
                caller.link, caller.answer(), now
            )
            functions["qsync.take_over"] = self._take_over_by_hand
            functions["qsync.step_down"] = lambda caller, _, now: self._clearing.step_down(
                caller.link, caller.answer(), now
            )

    def _take_over_by_hand(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        number = arguments[0] if arguments else None
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            why = f"expected the number of a generation, 1 or more, got {number!r}"
            raise Rejected(Code.ILLEGAL_PARAMS, why[:100])
        self._clearing.begin(caller.link, caller.answer(), now, number)

    def _known_vclocks(self) -> list[Mapping[int, int]]:
        """What the connected members have, we first."""
        return [
            self.journal.vclock,
            *(relay.vclock for relay in self.relays.values() if relay.replica_id),
        ]

    # ---- the interface

    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        """Take one event; see `nodes.kernel.node.Node`."""
        now = self._now = self.decisions.clock(now)
        if self._installing is not None:
            return self._install(event, now)
        match event:
            case Received(link, message):
                self._received(link, message, now)
            case Persisted(token):
                if self.retention.persisted(token):
                    self._collect()
                write = self.journal.persisted(token)
                if write is not None:
                    self.commits.persisted(write, now)
                    self._take_backlogs()
            case TimerFired(name):
                self._timer(name, now)
            case Connected(link, peer):
                self._connected(link, self.appliers[peer], now)
            case ConnectFailed(peer, error):
                self._connect_failed(self.appliers[peer], error)
            case Disconnected(link, reason):
                self._disconnected(link, reason)
            case PersistFailed(tokens, error):
                self._persist_failed(tokens, error, now)
                self._save_vote(now)  # again, before anything is acknowledged in its term
                self._take_backlogs()
            case Started(files):
                self._start(files, now)
            case Accepted() | Stopping():
                pass
        self._proceed(now)
        effects = self._out[:]
        self._out.clear()
        if self.schema.version != FIRST_VERSION:
            return [self._under_schema(effect) for effect in effects]
        return effects

    def _under_schema(self, effect: Effect) -> Effect:
        """Answers say which schema they were given under: a client that knows another one reads it anew."""
        if isinstance(effect, Send) and isinstance(effect.message, Answer | Refusal):
            return replace(effect, message=replace(effect.message, schema_version=self.schema.version))
        return effect

    def _proceed(self, now: Instant) -> None:
        """What an event has made possible, whatever it was."""
        if self.joining is not None and self.joining.is_waiting and not self.journal.in_flight:
            self._end_join(self.joining, now)
            if self._installing is not None:
                return
        self._take_part(now)
        if self.has_data:
            self.control.advance(now)
            if self.election.must_tell:
                self._take_part(now)
        if len(self.reads):
            self._ask_and_read(now)
        if len(self._service.admission):
            self._service.admission.proceed(now)
        if len(self._hosting):
            self._hosting.proceed()
        if len(self.captures):
            self.captures.proceed()
        if len(self._clearing):
            self._clearing.proceed(now)
        self._feed_relays(now)

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

    @property
    def sometimes(self) -> Mapping[str, int]:
        """How often rare turns came about in this life: rows of `nodes.qsync.sometimes`."""
        return {**self.commits.sometimes, **self.election.sometimes, **self.reads.sometimes}

    def status(self) -> Mapping[str, object]:
        """What an operator asks for; JSON values."""
        return status_of(
            version=self._version,
            now=self._now,
            has_data=self.has_data,
            schema=self.schema,
            journal=self.journal,
            commits=self.commits,
            control=self.control,
            clearing=self._clearing,
            appliers=self.appliers.values(),
            relays=self.relays.values(),
        )

    # ---- starting

    def _start(self, files: Mapping[str, bytes], now: Instant) -> None:
        self._started_ns = now.monotonic_ns
        configuration = self.configuration
        if configuration.joins and not any(name.endswith(".snap") for name in files):
            self.joining = Joining(configuration.is_anonymous)
            self._out.append(Log("info", "no data: joining", {"uuid": configuration.instance_uuid}))
            self._beat(now)
            return
        self._recover(files, now)
        self._beat(now)

    def _recover(self, files: Mapping[str, bytes], now: Instant) -> None:
        """Take in what the disk holds; who the members are, and so our own id, stands there too."""
        recovered, effects = self.journal.open(files)
        self._out.extend(effects)
        found = recovered.snapshot
        recovered = with_marks(recovered, self.journal, self.configuration, self._out)
        if found is not None:
            registered = self.configuration.as_registered(members_of(found.tuples))
            self._build(registered, self.journal, found.tuples)
            self.commits.restore(found.queue, found.vclock)
        self.spaces[CLUSTER].on_commit = self._members_changed
        self.commits.replay(transactions(recovered.rows), now)
        if self.commits.limbo.entries:
            self.commits.sometimes.note(RECOVERED_BUSY)
        term, vote = vote_of(recovered.rows)
        if not term and found is not None:
            term, vote = found.election.term, found.election.vote
        self.election.started(max(term, self.commits.limbo.term), vote, now.monotonic_ns)
        self.has_data = True
        self._forget_who_left({member.id for member in self.configuration.registered})
        if recovered.rows or (found is not None and found.vclock):
            fields = {
                "rows": len(recovered.rows),
                "vclock": text(self.journal.vclock),
                "limbo": len(self.commits.limbo),
            }
            self._out.append(Log("info", "recovered from the log", fields))

    def _members_changed(self) -> None:
        """`_cluster` says who is a member; a new one counts from the moment in which that is committed."""
        answered = {applier.peer: applier.answered_id for applier in self.appliers.values()}
        registered = self.configuration.as_registered(self.schema.members(), answered)
        if registered == self.configuration:
            return
        self.configuration = registered
        self.commits.reconfigure(registered)
        self.election.members = len(registered.registered)
        self.options.counts(len(registered.registered))
        self.election.set_quorum(self.options.election_quorum, self._now.monotonic_ns)
        self.reads.others_needed = self.options.others_asked
        self.reads.ask_anew()
        for peer in registered.peers:
            self._is_known_as(self.appliers[peer.name], peer.id)
        self._forget_who_left({member.id for member in registered.registered})
        members = {str(member.id): member.uuid for member in registered.registered}
        self._out.append(Log("info", "the members are others", {"members": members}))

    def _is_known_as(self, applier: Applier, number: int) -> None:
        """The peer has become a member, or is none any more: what it says of elections is taken in from the start."""
        if applier.peer_id == number:
            return
        self.election.lost(applier.peer_id)
        applier.peer_id = number
        if number and applier.state == "following":
            self._drop(applier.link, "it is a member now: subscribing anew")

    def _forget_who_left(self, members: set[int]) -> None:
        """Nobody who left may follow us, or keep logs here; if we left ourselves, we neither write nor stand."""
        for link, relay in list(self.relays.items()):
            if relay.replica_id and relay.replica_id not in members:
                self._drop(link, f"replica {relay.replica_id} is no member any more")
        for number in [number for number in self.retention.followers if number not in members]:
            del self.retention.followers[number]
        if self.is_expelled:
            self.options.read_only, self.options.election_mode = True, "off"
            self.election.set_mode("off", self._now.monotonic_ns)
            self._out.append(Log("warning", "we are no member any more", {"id": self.configuration.me.id}))

    @property
    def is_expelled(self) -> bool:
        """We were a member, and `_cluster` has us no more."""
        me = self.configuration.me
        return self.has_data and me.id != 0 and self.schema.members().get(me.id) != me.uuid

    # ---- snapshots

    def _collect(self) -> None:
        """A snapshot is on disk: drop what neither it nor anybody who follows needs."""
        for relay in self.relays.values():
            self.retention.followers[relay.replica_id] = relay.vclock
        gone = self.retention.collect()
        if gone:
            for relay in self.relays.values():
                relay.shift(gone)

    # ---- links

    def _received(self, link: int, message: object, now: Instant) -> None:
        applier = self._applier_links.get(link)
        if applier is not None:
            self._from_peer(applier, message, now)
            return
        relay = self.relays.get(link)
        if not self.has_data:
            self._not_yet(link, message)
            return
        match message:
            case Call():
                self._service.serve(link, message, now)
            case Ack(vclock, said, sync) if relay is not None:
                term = self.decisions.term_of_acknowledgement(said, self.election.term)
                self._see_term(term, now)
                relay.acknowledge(vclock, self.journal.rows, now)
                self.commits.acknowledge(relay.replica_id, vclock.get(self.configuration.me.id, 0), term, now)
                if sync:
                    self.reads.heard(relay.replica_id, sync, vclock)
            case Subscribe():
                self._subscribe(link, message, now)
            case Vote(sync):
                self._out.append(Send(link, self._ballot(sync)))
            case Join() | Register():
                self._hosting.begin(link, message, now)
            case _ if isinstance(message, ClientRequest | Checked):
                self._service.serve(link, message, now)
            case _:
                self._drop(link, f"unexpected {type(message).__name__}")

    def _not_yet(self, link: int, message: object) -> None:
        """Before we have joined there is nothing to say but that."""
        match message:
            case Vote(sync):
                self._out.append(Send(link, self._ballot(sync)))
            case _:
                number = getattr(message, "sync", 0)  # requests have one, an ACK has it at times
                self._out.append(Send(link, Refusal(number, Code.LOADING, Code.LOADING.text())))

    def _ballot(self, sync: int) -> Ballot:
        if not self.has_data:
            return Ballot(sync, True, {}, {}, True)
        vclock, gc_vclock = public(self.journal.vclock), public(self.journal.first_vclock)
        return Ballot(sync, not self.commits.is_writable, vclock, gc_vclock, False)

    def _connect_failed(self, applier: Applier, error: str) -> None:
        if applier.state == "connecting":
            applier.last_error = error
            applier.turn_off()

    def _connected(self, link: int, applier: Applier, now: Instant) -> None:
        if applier.state != "connecting":
            self._out.append(Disconnect(link))  # a call from before we joined, answered after a newer one
            return
        applier.link, applier.heard_ns = link, now.monotonic_ns
        self._applier_links[link] = applier
        if self.joining is not None:
            applier.state = "asking"
            self._out.append(Send(link, Vote(0)))
        else:
            self._say_subscribe(applier)

    def _say_subscribe(self, applier: Applier) -> None:
        applier.state = "subscribing"
        configuration, me = self.configuration, self.configuration.me
        vclock = public(self.journal.vclock)
        version = version_number(configuration.version)
        uuids = configuration.cluster_uuid, me.uuid
        request = Subscribe(0, *uuids, me.id, vclock, version, configuration.is_anonymous, self._features)
        self._out.append(Send(applier.link, request))

    @property
    def _features(self) -> tuple[int, ...]:
        return (PROMOTE_MARK,) if self.options.knows_elections else ()

    def _needs_marks(self, features: tuple[int, ...]) -> bool:
        """This peer cannot read what our PROMOTEs mean, or what its own mean would depend on our options."""
        writes = self.options.has_elections and self.options.writes_marks
        return writes and PROMOTE_MARK not in features

    def _peers_without_marks(self) -> list[str]:
        return [
            each.peer for each in self.appliers.values() if each.state == "following" and not each.knows_marks
        ]

    def _disconnected(self, link: int, reason: str) -> None:
        applier = self._applier_links.pop(link, None)
        if applier is not None:
            if self.joining is not None and self.joining.peer == applier.peer:
                self.joining.peer = ""
            applier.last_error = reason
            applier.turn_off()
            self.election.lost(applier.peer_id)
            self._out.append(Log("info", "lost the peer we follow", {"peer": applier.peer, "reason": reason}))
        self._service.hung_up(link)
        self.control.hung_up(link)
        self._hosting.lost(link)
        relay = self.relays.pop(link, None)
        if relay is not None:
            if relay.replica_id:
                self.retention.followers[relay.replica_id] = relay.vclock
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
                applier.note_lag(rows[-1].timestamp if rows else 0.0, now)
                self._apply(applier, rows)
            case Heartbeat(_, timestamp, sync) if applier.state == "following":
                applier.note_lag(timestamp, now)
                self._acknowledge([applier], sync)
            case RaftState() if applier.state == "following" and message.replica_id == applier.peer_id:
                why = flaw(message)
                if why is not None:
                    self._drop(applier.link, why)  # before its term is taken
                elif self.options.knows_elections:
                    self._hear_of_election(message, now)
            case Ballot() if applier.state == "asking":
                self._asked(applier, message)
            case Stage() | Rows() | JoinMeta() | JoinSnapshot() | RaftState() if applier.state == "joining":
                self._take_part_of_join(applier, message, now)
            case Subscribed(_, cluster_uuid, _, number, features) if applier.state == "subscribing":
                if cluster_uuid != self.configuration.cluster_uuid:
                    self._drop(applier.link, "the peer is of another cluster")
                    return
                if self._needs_marks(features):
                    self._drop(applier.link, NO_MARKS.format(applier.peer))
                    return
                applier.knows_marks = PROMOTE_MARK in features
                if number and number != applier.answered_id:
                    applier.answered_id = number
                    self._members_changed()
                applier.state, applier.last_error = "following", ""
                self._out.append(Log("info", "following", {"peer": applier.peer}))
                self._leave_orphans()
                self._acknowledge([applier])
            case Refusal(_, code, text_):
                self._refused(applier, code, text_)
            case _:
                self._drop(applier.link, f"unexpected {type(message).__name__} while {applier.state}")

    def _leave_orphans(self) -> None:
        """Who follows enough others is an orphan no more; never again in this life."""
        if self._connected_members() > self.options.connect_quorum:
            self.commits.is_orphan = False

    # ---- joining

    def _refused(self, applier: Applier, code: int, text_: str) -> None:
        is_behind = code == Code.XLOG_GAP and applier.state == "subscribing" and self.joining is None
        self._drop(applier.link, f"refused with {code}: {text_}")
        if is_behind:
            self.joining = Joining(self.configuration.is_anonymous)
            self._out.append(
                Log("warning", "what we need is gone there: joining anew", {"peer": applier.peer})
            )

    def _asked(self, applier: Applier, ballot: Ballot) -> None:
        """Join this peer, if it can be joined and nobody else is being joined.

        What was missing may have come from another peer meanwhile. Then this one may need us to confirm anything at
        all, which it must do before it can be joined.
        """
        joining, kept = self.joining, ballot.gc_vclock
        if joining is None or (self.has_data and kept and covers(public(self.journal.vclock), kept)):
            if joining is not None and not joining.peer:
                self.joining = None
            self._say_subscribe(applier)
            return
        may_register = not ballot.is_read_only or self.has_data or joining.is_anonymous
        if ballot.is_loading or not may_register or joining.peer:
            self._drop(applier.link, "it cannot be joined now")
        elif not covers(ballot.vclock, public(self.journal.vclock)):
            self._drop(applier.link, "cannot join anew: we have rows that it does not have")
        else:
            joining.begin(applier.peer)
            applier.state = "joining"
            version = version_number(self.configuration.version)
            uuid = "" if joining.is_anonymous else self.configuration.instance_uuid
            self._out.append(Send(applier.link, Join(0, uuid, version, joining.is_anonymous)))

    def _take_part_of_join(self, applier: Applier, message: object, now: Instant) -> None:
        joining = self.joining
        if joining is None or not joining.take(message):
            self._drop(applier.link, f"unexpected {type(message).__name__} while joining")
        elif joining.is_complete:
            self._end_join(joining, now)

    def _end_join(self, joining: Joining, now: Instant) -> None:
        """All is there: write it, as soon as nothing else is under way to the disk."""
        for link in list(self._applier_links):
            self._drop(link, "all that we joined for is there")
        if not covers(joining.data_vclock, public(self.journal.promised)):
            self.joining = None  # what was missing has come from another peer meanwhile
        elif self.journal.in_flight:
            joining.is_waiting = True
        else:
            self._write_what_we_joined_with(joining, now)

    def _write_what_we_joined_with(self, joining: Joining, now: Instant) -> None:
        """A snapshot, and a log behind it; when both are on disk all that was before goes, and the node begins anew."""
        configuration = self.configuration
        journal = _journal(configuration, first_token=self.journal.next_token)
        local = self.journal.promised.get(LOCAL, 0)
        begin = {**({LOCAL: local} if local else {}), **joining.data_vclock}
        vote = self.election.vote if joining.term <= self.election.term else 0
        election = ElectionState(max(joining.term, self.election.term), vote)
        found = Snapshot(begin, in_order(joining.tuples), joining.queue, election)
        snapshot = journal.keep_snapshot(found, now.wall_ns / 1e9)
        log = journal.file_behind(found, joining.rows)
        for link in list(self.relays):
            self._drop(link, "beginning anew")
        self._out += [snapshot, log]
        self._installing = (log.token, {snapshot.file: snapshot.data, log.file: log.data})

    def _install(self, event: Event, now: Instant) -> Sequence[Effect]:
        """What we joined with is on its way to the disk: as in a process that starts, nobody is listened to."""
        assert self._installing is not None
        token, files = self._installing
        match event:
            case Received(link, _) | Accepted(link):
                self._out.append(Disconnect(link))
            case Persisted(done) if done == token:
                self._installing = self.joining = None
                old = self.journal
                names = [name for name, _ in old.snapshots] + [file.name for file in old.files]
                self._out += [Remove(name) for name in names if name not in files]
                self._build(self.configuration, _journal(self.configuration, token + 1))
                self._recover(files, now)
                self._out.append(Log("info", "joined", {"id": self.configuration.me.id}))
                self._beat(now)
            case PersistFailed(_, error):
                self._installing = None
                self.joining = Joining(self.configuration.is_anonymous)
                old = self.journal
                names = [name for name, _ in old.snapshots] + [file.name for file in old.files]
                # They may be on disk. The log goes first: without the snapshot no node starts from it.
                self._out += [Remove(name) for name in reversed(files) if name not in names]
                self.retention.failed()
                self.journal.skip_tokens(token + 1)
                self._out.append(Log("error", "what we joined with cannot be written", {"error": error}))
                self._beat(now)
            case _:
                pass
        effects = self._out[:]
        self._out.clear()
        return effects

    # ---- following

    def _apply(self, applier: Applier, rows: Iterable[Row]) -> None:
        applier.backlog.extend(applier.transactions(rows))
        is_news = False
        while applier.backlog and not (self.commits.is_behind_barrier or self.commits.is_log_full):
            if not self.decisions.may_take_in(self.commits, applier.backlog[0]):
                break
            transaction = applier.backlog.popleft()
            if is_known(transaction, self.journal.promised):
                continue
            missing = gap(transaction, self.journal.promised)
            if missing is not None:
                self._drop(applier.link, missing)
                return
            refusal = self.commits.refusal_of(transaction)
            if refusal is not None:
                self._drop(applier.link, refusal)
                return
            try:
                self.commits.apply(transaction, applier.peer_id)
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
        """A record is on disk, or came to nothing: go on with the rows that waited for it."""
        for applier in self.appliers.values():
            if applier.backlog:
                self._apply(applier, ())

    def _acknowledge(self, appliers: Iterable[Applier], sync: int = 0) -> None:
        """Tell peers what we have, as soon as all of it is on disk: rows, and the term that they are in."""
        after = self.journal.last_token()
        term = self.election.term if self.options.knows_elections else 0
        for applier in appliers:
            if applier.state == "following":
                vclock = public(self.journal.promised)
                if sync:
                    vclock = self.decisions.told_to_reads(vclock, self.commits.limbo)
                ack = Ack(vclock, term, sync)
                self._out.append(Send(applier.link, ack, after))

    # ---- being followed

    def _subscribe(self, link: int, request: Subscribe, now: Instant) -> None:
        if request.cluster_uuid != self.configuration.cluster_uuid:
            self._drop(link, f"replica {request.replica_id} is of another cluster")
            return
        number = self._number_of(request)
        refusal = self._refusal_of(request, number)
        if refusal is not None:
            self._out.append(Send(link, refusal))
            self._out.append(Log("error", "a replica is refused", {"why": refusal.message}))
            return
        ours = self.journal.vclock.get(self.configuration.me.id, 0)
        theirs = request.vclock.get(self.configuration.me.id, 0)
        if theirs > ours:
            fields = {"replica": number, "its_lsn": theirs, "our_lsn": ours}
            self._out.append(Log("error", "a replica has rows of ours that we have lost", fields))
        for old in [old for old, relay in self.relays.items() if number and relay.replica_id == number]:
            self._drop(old, "subscribed again")
        self.relays[link] = Relay(link, number, dict(request.vclock), now)
        self.reads.ask_again()
        vclock, me = public(self.journal.vclock), self.configuration.me.id
        answer = Subscribed(request.sync, self.configuration.cluster_uuid, vclock, me, self._features)
        self._out.append(Send(link, answer))
        if self.options.knows_elections:
            state = self.election.said(public(self.journal.promised), now.monotonic_ns)
            self._out.append(Send(link, state, self.journal.last_token()))

    def _number_of(self, request: Subscribe) -> int:
        """A replica is known by its UUID; an anonymous one has no number."""
        for member in self.configuration.members:
            if member.uuid == request.instance_uuid and not request.is_anonymous:
                return member.id
        return 0

    def _refusal_of(self, request: Subscribe, number: int) -> Refusal | None:
        """Why this replica cannot follow us."""
        cluster_uuid = self.configuration.cluster_uuid
        if not number and not request.is_anonymous:
            why = Code.UNKNOWN_REPLICA.text(request.instance_uuid, cluster_uuid)
            return Refusal(request.sync, Code.UNKNOWN_REPLICA, why)
        members = {member.id for member in self.configuration.registered}
        mixed = self._mixes.hear(number, request.server_version, members) if number else None
        if mixed is not None:
            return Refusal(request.sync, Code.CFG, Code.CFG.text("replication", mixed))
        if self._needs_marks(request.features):
            why = Code.CFG.text("synchronous_promote", NO_MARKS.format(f"replica {number}"))
            return Refusal(request.sync, Code.CFG, why)
        written = self.journal.vclock.get(number, 0) if number else 0
        if written and not request.vclock.get(number, 0):
            why = Code.CFG.text(
                "instance_uuid",
                f"replica {number} has written rows up to lsn {written} and has lost them all: "
                "let it join under a new UUID",
            )
            return Refusal(request.sync, Code.CFG, why)
        first = public(self.journal.first_vclock)
        if not covers({**request.vclock, LOCAL: 0}, {o: lsn for o, lsn in first.items() if o != number}):
            why = f"Missing .xlog file between LSN {sum(request.vclock.values())} {text(request.vclock)} "
            return Refusal(request.sync, Code.XLOG_GAP, f"{why}and {sum(first.values())} {text(first)}")
        return None

    def _feed_relays(self, now: Instant) -> None:
        rows, token = self.journal.rows, self.journal.last_token()
        length = len(rows)
        for relay in self.relays.values():
            if relay.sent == length:
                continue  # after most events there is nothing new
            chosen = relay.take(rows, token)
            if chosen:
                self._out.append(Send(relay.link, Rows(chosen), token))

    # ---- elections

    def _see_term(self, term: int, now: Instant) -> None:
        """Somebody is in this term: if it is higher than ours, we follow, before anything else is counted."""
        if self.options.knows_elections and self.election.see_term(term, now.monotonic_ns):
            self._save_vote(now)

    def _save_vote(self, now: Instant) -> None:
        if self.election.must_write:
            self.election.must_write = False
            self.commits.save_vote(now)

    def _hear_of_election(self, message: RaftState, now: Instant) -> None:
        deadline_ns = self.election.deadline_ns
        asked = self.decisions.asked_of_candidate(self.journal)
        self.election.receive(message, asked, now.monotonic_ns)
        self._save_vote(now)
        if self.election.deadline_ns < deadline_ns:
            self._set_election_timer(now)  # the vote is split: no need to wait for its end

    def _take_part(self, now: Instant) -> None:
        """Write, lead, tell: in this order, so that nothing is told that is not on disk."""
        if not self.options.knows_elections or not self.has_data:
            return
        election = self.election
        self._save_vote(now)
        if election.rival:
            fields = {"election_term": election.term, "leader": election.leader_id, "another": election.rival}
            self._out.append(Log("error", "two leaders in one term", fields))
            election.rival = 0
        if election.is_leader and self._led_term != election.term and not self.commits.is_behind_barrier:
            self._led_term = election.term
            self._out.append(Log("info", "won the election", {"election_term": election.term}))
            self.control.lead(now)
        if election.must_tell:
            state = election.said_to_all(public(self.journal.promised), now.monotonic_ns)
            for relay in self.relays.values():
                self._out.append(Send(relay.link, state, self.journal.last_token()))
            self._set_election_timer(now)

    def _set_election_timer(self, now: Instant) -> None:
        wake_ns = self.election.wake_ns()
        if wake_ns is not None:
            self._out.append(SetTimer(ELECTION_TIMER, max(wake_ns - now.monotonic_ns, MILLISECOND_NS)))

    def _look_at_election(self, now: Instant) -> None:
        members = self._other_members()
        since_ns = now.monotonic_ns - self.election.follower_silent_ns()
        followers = {
            relay.replica_id
            for relay in self.relays.values()
            if relay.replica_id in members and relay.heard.monotonic_ns >= since_ns
        }
        self.election.tick(now.monotonic_ns, self._healthy_members(), 1 + len(followers))
        self._save_vote(now)
        self._set_election_timer(now)

    def _connected_members(self) -> int:
        """With us; who is followed at a peer's address and is no member does not count."""
        following = [applier for applier in self.appliers.values() if applier.state == "following"]
        return 1 + sum(applier.peer_id != 0 for applier in following)

    def _healthy_members(self) -> int:
        """With us, those that can hear us ask and that we can hear vote. Exact elections alone ask for the former."""
        if not self.election.is_exact:
            return self._connected_members()
        followers = {relay.replica_id for relay in self.relays.values()}
        following = {applier.peer_id for applier in self.appliers.values() if applier.state == "following"}
        return 1 + len((followers & following) - {0})

    def _other_members(self) -> set[int]:
        return {member.id for member in self.configuration.registered} - {self.configuration.me.id}

    def _acked(self, owner: int, lsn: int) -> int:
        """How many members have this row of an owner on disk."""
        members = self._other_members()
        relays = {relay.replica_id for relay in self.relays.values() if relay.vclock.get(owner, 0) >= lsn}
        return len(relays & members) + (self.journal.vclock.get(owner, 0) >= lsn)

    def _options_changed(self, now: Instant) -> None:
        """What the parts made of the options, they make anew."""
        self._note_changed_in()
        options, election = self.options, self.election
        election.fencing = options.election_fencing
        death_ns = DISCONNECT_AFTER_BEATS * options.replication_timeout_ns
        election.set_timeouts(options.election_timeout_ns, death_ns)
        if election.mode != options.election_mode:
            election.set_mode(options.election_mode, now.monotonic_ns)
        election.set_quorum(options.election_quorum, now.monotonic_ns)
        self.reads.others_needed = options.others_asked
        self.reads.ask_again()
        self._leave_orphans()
        self._out.append(Log("info", "options changed", options.changed))
        self.commits.options_changed(now)
        self._out.append(SetTimer(BEAT_TIMER, 0))  # with the new timeout from then on

    def _note_changed_in(self) -> None:
        """What is under way while options change."""
        under_way = {
            CHANGED_IN_ELECTION: self.election.state == CANDIDATE,
            CHANGED_IN_PROMOTION: bool(self.commits.pending),
            CHANGED_BUSY: len(self.commits.limbo) > 0,
            CHANGED_IN_JOIN: self.joining is not None or len(self._hosting) > 0,
            CHANGED_IN_READ: len(self.reads) > 0,
        }
        for row, is_so in under_way.items():
            self.commits.sometimes.note(row, is_so)

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
        elif name == CONTROL_TIMER:
            pass  # whatever waits is looked at after each event
        else:
            assert name == SYNCHRO_TIMER, f"no timer is called {name!r}"
            self.commits.timed_out(now)

    def _beat(self, now: Instant) -> None:
        """Every replication timeout: heartbeats, silent links are given up, lost peers are called again."""
        self._out.append(SetTimer(BEAT_TIMER, self.options.replication_timeout_ns))
        silent_since = now.monotonic_ns - DISCONNECT_AFTER_BEATS * self.options.replication_timeout_ns
        for relay in list(self.relays.values()):
            if relay.heard.monotonic_ns < silent_since:
                self._drop(relay.link, "no acknowledgement for too long")
            else:
                self._out.append(Send(relay.link, Heartbeat(self.configuration.me.id, now.wall_ns / 1e9)))
        for applier in self.appliers.values():
            if applier.state not in ("off", "connecting", "stopped") and applier.heard_ns < silent_since:
                self._drop(applier.link, "silent for too long")
            elif applier.state == "off":
                applier.state = "connecting"
                self._out.append(Connect(applier.peer))
        if self.options.has_elections and self.has_data:
            self._look_at_election(now)
        self.reads.give_up(now.monotonic_ns)
        if not self.has_data:
            return
        self.retention.beat(now)
        self.commits.confirm_what_a_quorum_has(now)
        self.commits.watch_timeout(now)

    def _persist_failed(self, tokens: tuple[int, ...], error: str, now: Instant) -> None:
        """Our own transactions were refused; rows of others are asked for again by subscribing anew."""
        lost_foreign_rows = self.commits.failed(error)
        if self.election.is_leader:
            self.election.resign(now.monotonic_ns)  # a leader that cannot write is none
        self.retention.failed()
        for relay in self.relays.values():
            relay.cut(len(self.journal.rows), tokens[0])
        if lost_foreign_rows:
            for applier in self.appliers.values():
                if applier.link >= 0:
                    self._drop(applier.link, f"{Code.WAL_IO.text()}: its rows could not be written")


def _election(configuration: Configuration, options: Options, decisions: Decisions) -> Election:
    return Election(
        me=configuration.me.id,
        mode=options.election_mode,
        fencing=options.election_fencing,
        decisions=decisions,
        is_exact=configuration.exact_elections,
        quorum=options.election_quorum,
        members=options.members,
        election_timeout_ns=options.election_timeout_ns,
        death_timeout_ns=DISCONNECT_AFTER_BEATS * options.replication_timeout_ns,
        chance=random.Random(f"{configuration.seed}/election {configuration.name}"),
    )


def _journal(configuration: Configuration, first_token: int) -> Journal:
    return Journal(
        configuration.me.id,
        configuration.instance_uuid,
        first_snapshot=lambda: first_snapshot(configuration),
        server_version=configuration.version,
        file_bytes_max=configuration.wal_max_size,
        first_token=first_token,
    )


def _term_of(row: Row) -> int:
    term = row.body[Key.TERM.value]
    assert isinstance(term, int), row
    return term
