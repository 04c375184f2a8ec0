"""One qsync node: events in, effects out.

    Started ──▶ recover from the log ──▶ beat every replication timeout
    Received on a client's link ──▶ `service` ──▶ `commits` ──▶ Persist, copies to relays, later the answer
    Received on an applier's link ──▶ `commits.apply` ──▶ Persist, acknowledgement behind it
    Received on a relay's link ──▶ the acknowledgement is counted in the limbo

A link that was accepted is a client's until it subscribes; then it is a relay's. `Replica` hands each event to a role:

| role | file |
|---|---|
| serves clients | `service.py` |
| follows peers | `following.py` |
| serves followers, and nodes that join | `serving_followers.py`, `joining.py` |
| takes part in elections | `participation.py` |
| joins | `newcomer.py` |
| keeps up with changes of members | `membership.py` |
| carries out operators' commands | `control.py`, `clearing.py`, `cutting.py`, `retention.py` |

Parts that several roles share (`parts.py`): `journal` (the log), `commits` (limbo and transactions),
`appliers` and `relays` (replication), `schema`, `election`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nodes.iproto.codes import Code
from nodes.iproto.messages import (
    Ack,
    Answer,
    Ballot,
    Call,
    Checked,
    ClientRequest,
    Join,
    Refusal,
    Register,
    Subscribe,
    Vote,
)
from nodes.kernel.effects import Disconnect, Effect, Log, Send, SetTimer
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
from nodes.qsync import bugs
from nodes.qsync.bootstrap import Stored, members_of
from nodes.qsync.clearing import Clearing
from nodes.qsync.commits import SYNCHRO_TIMER
from nodes.qsync.configuration import Configuration
from nodes.qsync.control import CONTROL_TIMER, Control
from nodes.qsync.cutting import Cutting
from nodes.qsync.election import CANDIDATE
from nodes.qsync.following import Following
from nodes.qsync.info import box_info
from nodes.qsync.joining import Hosting
from nodes.qsync.journal import Journal, public
from nodes.qsync.membership import Membership
from nodes.qsync.mixes import Mixes
from nodes.qsync.newcomer import Newcomer
from nodes.qsync.options import Options
from nodes.qsync.participation import ELECTION_TIMER, Participation
from nodes.qsync.parts import DISCONNECT_AFTER_BEATS, build, new_journal
from nodes.qsync.recovery import transactions, vote_of, with_marks
from nodes.qsync.report_status import State, state_of, status_of
from nodes.qsync.schema import FIRST_VERSION
from nodes.qsync.service import Service
from nodes.qsync.serving_followers import Followers
from nodes.qsync.sometimes import (
    CHANGED_BUSY,
    CHANGED_IN_ELECTION,
    CHANGED_IN_JOIN,
    CHANGED_IN_PROMOTION,
    CHANGED_IN_READ,
    JOINED_ANEW,
    RECOVERED_BUSY,
)
from nodes.qsync.system_spaces import CLUSTER
from nodes.version import VERSION

BEAT_TIMER = "beat"


class Replica:
    """A node of the qsync cluster; implements `nodes.kernel.node.Node`."""

    def __init__(self, configuration: Configuration, version: str = VERSION) -> None:
        """`version`: the version of its code that the node reports."""
        self._version = version
        self._out: list[Effect] = []
        self._now = Instant(0, 0)
        self._started_ns = 0
        self.decisions = bugs.decisions_with(configuration.bugs)
        self.options = Options.of(configuration, self.decisions)
        self._mixes = Mixes(configuration.protocol)
        self._build(configuration, new_journal(configuration, first_token=1))

    def _build(
        self, configuration: Configuration, journal: Journal, stored: Sequence[Stored] | None = None
    ) -> None:
        """Build all parts and roles; again when there is a snapshot, or the node has joined and begins anew."""
        parts = build(configuration, journal, stored, self.options, self.decisions, self._drop, self._out)
        self.journal, self.schema, self.commits = parts.journal, parts.schema, parts.commits
        self.election, self.reads = parts.election, parts.reads
        self.captures, self.retention = parts.captures, parts.retention
        self.appliers, self.relays = parts.appliers, parts.relays
        self._applier_links = parts.applier_links
        self.participation = Participation(parts, self._lead)
        self.membership = Membership(parts, lambda: self._now)
        self.newcomer = Newcomer(parts, self._begin_anew, self._beat)
        self.following = Following(parts, self.participation, self.membership, self.newcomer)
        self.followers = Followers(parts, self.participation, self._mixes)
        self._service = Service(
            *(self.commits, self.schema, self.status, self._info, self.reads),
            *(self.followers.serve_alone, self._out),
        )
        self._hosting = Hosting(self.commits, journal, self.schema, self.captures, self._out)
        self.control = Control(
            *(self.commits, self.followers.acked, self.participation.healthy_members),
            *(self._options_changed, self._out),
        )
        self._clearing = Clearing(
            self.commits, self.followers.known_vclocks, self._options_changed, self._out
        )
        self._offer_functions()

    def _offer_functions(self) -> None:
        """Offer the functions for administrators that this class carries out."""
        functions = self._service.functions
        functions["box.snapshot"] = lambda caller, _, now: self.retention.begin(
            now, (caller.link, caller.answer("ok"))
        )
        functions.update(self.control.functions)
        functions.update(Cutting(self.commits, self._out).functions)
        if not self.options.knows_elections:
            del functions["box.ctl.promote"], functions["box.ctl.demote"]
            functions.update(self._clearing.functions)

    def _lead(self, now: Instant) -> None:
        self.control.lead(now)

    # ---- the interface

    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        """Take one event; see `nodes.kernel.node.Node`."""
        now = self._now = self.decisions.clock(now)
        self.commits.fates.now_ns = now.monotonic_ns
        if self.newcomer.installing is not None:
            self.newcomer.install(event, now)
        else:
            self._take(event, now)
            self._proceed(now)
        effects = self._out[:]
        self._out.clear()
        if self.schema.version != FIRST_VERSION:
            return [self._under_schema(effect) for effect in effects]
        return effects

    def _take(self, event: Event, now: Instant) -> None:
        match event:
            case Received(link, message):
                self._received(link, message, now)
            case Persisted(token):
                if self.retention.persisted(token):
                    self.followers.collect(now)
                write = self.journal.persisted(token)
                if write is not None:
                    self.commits.persisted(write, now)
                    # Behind it: the record may be the barrier that the backlogs wait for.
                    self.following.take_backlogs()
            case TimerFired(name):
                self._timer(name, now)
            case Connected(link, peer):
                self.following.connected(link, self.appliers[peer], now)
            case ConnectFailed(peer, error):
                self.following.connect_failed(self.appliers[peer], error)
            case Disconnected(link, reason):
                self._disconnected(link, reason)
            case PersistFailed(tokens, error):
                self._persist_failed(tokens, error, now)
                self.participation.save_vote(now)  # again, before anything is acknowledged in its term
                self.following.take_backlogs()
            case Started(files):
                self._start(files, now)
            case Accepted() | Stopping():
                pass

    def _under_schema(self, effect: Effect) -> Effect:
        """Put the schema version into an answer: a client with a different version reads the schema anew."""
        if isinstance(effect, Send) and isinstance(effect.message, Answer | Refusal):
            return replace(effect, message=replace(effect.message, schema_version=self.schema.version))
        return effect

    def _proceed(self, now: Instant) -> None:
        """After each event, do all that it has made possible."""
        joining = self.newcomer.joining
        if joining is not None and joining.is_waiting:
            self.newcomer.proceed(now)
            if self.newcomer.installing is not None:
                return
        # Before the operators' calls: these end by the term and the leader that are in force now.
        self.participation.proceed(now)
        if self.commits.is_recovered:
            self.control.advance(now)
            if self.election.must_tell:
                self.participation.proceed(now)
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
        self.followers.feed()  # last: it sends the rows that all of the above has written

    @property
    def configuration(self) -> Configuration:
        """The configuration with the present members."""
        return self.commits.configuration

    @property
    def has_data(self) -> bool:
        """The node has read its log; False while it has to join."""
        return self.commits.is_recovered

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
        """How often each rare turn (`nodes.qsync.sometimes`) occurred in this life."""
        return {**self.commits.sometimes, **self.election.sometimes, **self.reads.sometimes}

    def status(self) -> Mapping[str, object]:
        """The report for an operator; JSON values."""
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

    def state(self) -> State | None:
        """The state that the log alone determines, for a check of it; None while there is no data."""
        is_ready = self.has_data and self.newcomer.installing is None
        return state_of(self.commits, self.reads, self.schema.members()) if is_ready else None

    # ---- starting

    def _start(self, files: Mapping[str, bytes], now: Instant) -> None:
        self._started_ns = now.monotonic_ns
        configuration = self.configuration
        if configuration.joins and not any(name.endswith(".snap") for name in files):
            self.newcomer.begin()
        else:
            self._recover(files, now)
        self._beat(now)

    def _begin_anew(self, files: Mapping[str, bytes], first_token: int, now: Instant) -> None:
        """The joined data are on disk: start from them."""
        had_data = bool(self.journal.snapshots)
        self._build(self.configuration, new_journal(self.configuration, first_token))
        self._recover(files, now)
        self.commits.sometimes.note(JOINED_ANEW, had_data)
        self._out.append(Log("info", "joined", {"id": self.configuration.me.id}))
        self._beat(now)

    def _recover(self, files: Mapping[str, bytes], now: Instant) -> None:
        """Recover from the disk's files; the members, and so the own id, are in them too."""
        recovered, effects = self.journal.open(files)
        self._out.extend(effects)
        snapshot = recovered.snapshot
        recovered = with_marks(recovered, self.journal, self.configuration, self._out)
        if snapshot is not None:
            registered = self.configuration.as_registered(members_of(snapshot.tuples))
            # All parts anew, with the spaces and the id that the snapshot gives: the log is replayed into these.
            self._build(registered, self.journal, snapshot.tuples)
            self.commits.restore(snapshot.queue, snapshot.vclock)
        # Before the replay: rows of `_cluster` in the log change the members, and so the quorum and the own id.
        self.schema.by_id[CLUSTER].on_commit = self.membership.changed
        self.commits.replay(transactions(recovered.rows), now)
        self.commits.markers.recovered(recovered.rows, {} if snapshot is None else snapshot.vclock)
        if self.commits.limbo.entries:
            self.commits.sometimes.note(RECOVERED_BUSY)
        term, vote = vote_of(recovered.rows)
        if not term and snapshot is not None:
            term, vote = snapshot.election.term, snapshot.election.vote
        if term < self.commits.limbo.term:
            # A log of Tarantool may have a PROMOTE without its term, in which this node then has not voted.
            term, vote = self.commits.limbo.term, 0
        self.election.started(term, vote, now.monotonic_ns)
        self.membership.forget_who_left({member.id for member in self.configuration.registered})
        self.retention.began(now)
        if recovered.rows or (snapshot is not None and snapshot.vclock):
            fields = {
                "rows": len(recovered.rows),
                "vclock": text(self.journal.vclock),
                "limbo": len(self.commits.limbo),
            }
            self._out.append(Log("info", "recovered from the log", fields))

    # ---- links

    def _received(self, link: int, message: object, now: Instant) -> None:
        applier = self._applier_links.get(link)
        if applier is not None:
            self.following.received(applier, message, now)
            return
        relay = self.relays.get(link)
        if not self.commits.is_recovered:
            self._not_yet(link, message)
            return
        match message:
            case Call():
                self._service.serve(link, message, now)
            case Ack() if relay is not None:
                self.followers.acknowledged(relay, message, now)
            case Subscribe():
                self.followers.subscribe(link, message, now)
            case Vote(sync):
                self._out.append(Send(link, self._ballot(sync)))
            case Join() | Register():
                self._hosting.begin(link, message, now)
            case _ if isinstance(message, ClientRequest | Checked):
                self._service.serve(link, message, now)
            case _:
                self._drop(link, f"unexpected {type(message).__name__}")

    def _not_yet(self, link: int, message: object) -> None:
        """Refuse a request that comes before the node has joined."""
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

    def _disconnected(self, link: int, reason: str) -> None:
        self.following.lost(link, reason, self._now)
        self._service.hung_up(link)
        self.control.hung_up(link)
        self._hosting.lost(link)
        self.followers.lost(link, reason)

    def _drop(self, link: int, reason: str) -> None:
        self._out.append(Disconnect(link))
        self._disconnected(link, reason)

    def _options_changed(self, now: Instant) -> None:
        """Let the parts apply the changed options."""
        self._note_changed_in()
        self.participation.options_changed(now)
        self.reads.others_needed = self.options.others_asked
        self.reads.ask_again()
        self.following.leave_orphans()
        self._out.append(Log("info", "options changed", self.options.changed))
        self.commits.options_changed(now)
        self._out.append(SetTimer(BEAT_TIMER, 0))  # with the new timeout from then on

    def _note_changed_in(self) -> None:
        """Count changes of options during an election, a promotion and the like."""
        under_way = {
            CHANGED_IN_ELECTION: self.election.state == CANDIDATE,
            CHANGED_IN_PROMOTION: bool(self.commits.pending),
            CHANGED_BUSY: len(self.commits.limbo) > 0,
            CHANGED_IN_JOIN: self.newcomer.joining is not None or len(self._hosting) > 0,
            CHANGED_IN_READ: len(self.reads) > 0,
        }
        for row, is_so in under_way.items():
            self.commits.sometimes.note(row, is_so)

    def _ask_and_read(self, now: Instant) -> None:
        """Linearizable reads: ask the followers, and answer the reads that have heard enough of them."""
        if self.reads.must_ask:
            self.reads.must_ask = False
            self.followers.ask(self.reads.number, now)
        self.reads.proceed(public(self.journal.vclock), self.commits.last_waiting, self.commits.has_settled)

    # ---- time and disk

    def _timer(self, name: str, now: Instant) -> None:
        if name == BEAT_TIMER:
            self._beat(now)
        elif name == ELECTION_TIMER:
            self.participation.look(now)
        elif name == CONTROL_TIMER:
            pass  # whatever waits is looked at after each event
        else:
            assert name == SYNCHRO_TIMER, f"no timer is called {name!r}"
            self.commits.timed_out(now)

    def _beat(self, now: Instant) -> None:
        """Every replication timeout: send heartbeats, give up silent links, dial lost peers again."""
        self._out.append(SetTimer(BEAT_TIMER, self.options.replication_timeout_ns))
        silent_since_ns = now.monotonic_ns - DISCONNECT_AFTER_BEATS * self.options.replication_timeout_ns
        self.followers.beat(now, silent_since_ns)
        self.following.beat(silent_since_ns)
        if self.options.has_elections and self.has_data:
            self.participation.look(now)
        self.reads.give_up(now.monotonic_ns)
        if not self.has_data:
            return
        self.retention.beat(now)
        self.commits.confirm_what_a_quorum_has(now)
        self.commits.watch_timeout(now)

    def _persist_failed(self, tokens: tuple[int, ...], error: str, now: Instant) -> None:
        """The own transactions were refused. The node subscribes anew, to get the rows of other nodes again."""
        lost_foreign_rows = self.commits.failed(error)
        if self.election.is_leader:
            self.election.resign(now.monotonic_ns)  # a leader that cannot write is none
        self.retention.failed()
        # Behind `commits.failed`: the relays go back to the rows that the journal has left.
        self.followers.not_written(tokens[0])
        if lost_foreign_rows:
            self.following.ask_again(f"{Code.WAL_IO.text()}: its rows could not be written")
