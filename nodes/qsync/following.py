"""The receiving side of replication: a node follows its peers, each by an applier (`nodes.qsync.applier`)."""

from __future__ import annotations

from collections.abc import Iterable

from nodes.iproto.greeting import version_number
from nodes.iproto.messages import (
    PROMOTE_MARK,
    Ack,
    Ballot,
    Heartbeat,
    JoinMeta,
    JoinSnapshot,
    Key,
    RaftState,
    Refusal,
    Row,
    Rows,
    Stage,
    Subscribe,
    Subscribed,
    Type,
    Vote,
)
from nodes.kernel.effects import Connect, Disconnect, Log, Send
from nodes.kernel.events import Instant
from nodes.kernel.vclock import Vclock
from nodes.qsync.applier import Applier, is_known, misfit
from nodes.qsync.election import flaw
from nodes.qsync.filter import Contradiction, number
from nodes.qsync.journal import public
from nodes.qsync.membership import Membership
from nodes.qsync.newcomer import Newcomer
from nodes.qsync.options import NO_MARKS
from nodes.qsync.participation import Participation
from nodes.qsync.parts import Parts
from nodes.qsync.sometimes import WAITED_FOR_DISK


class Following:
    """The peers that this node follows, or tries to follow."""

    def __init__(
        self, parts: Parts, participation: Participation, membership: Membership, newcomer: Newcomer
    ) -> None:
        self._options = parts.options
        self._decisions = parts.decisions
        self._journal = parts.journal
        self._election = parts.election
        self._commits = parts.commits
        self._appliers = parts.appliers
        self._links = parts.applier_links
        self._out = parts.out
        self._drop = parts.drop
        self._participation = participation
        self._membership = membership
        self._newcomer = newcomer
        self._options.peers_without_marks = self._peers_without_marks

    def connect_failed(self, applier: Applier, error: str) -> None:
        """A peer cannot be reached."""
        if applier.state == "connecting":
            applier.last_error = error
            applier.turn_off()

    def connected(self, link: int, applier: Applier, now: Instant) -> None:
        """The connection to a peer stands."""
        if applier.state != "connecting":
            self._out.append(Disconnect(link))  # a call from before we joined, answered after a newer one
            return
        applier.link, applier.heard_ns = link, now.monotonic_ns
        self._links[link] = applier
        if self._newcomer.joining is not None:
            applier.state = "asking"
            self._out.append(Send(link, Vote(0)))
        else:
            self._subscribe(applier)

    def _subscribe(self, applier: Applier) -> None:
        applier.state = "subscribing"
        configuration, me = self._commits.configuration, self._commits.configuration.me
        # Not `promised`: rows in flight may be lost, and rows that come twice are dropped.
        vclock = public(self._journal.vclock)
        version = version_number(configuration.version)
        uuids = configuration.cluster_uuid, me.uuid
        request = Subscribe(
            0, *uuids, me.id, vclock, version, configuration.is_anonymous, self._options.features
        )
        self._out.append(Send(applier.link, request))

    def _peers_without_marks(self) -> list[str]:
        return [
            applier.peer
            for applier in self._appliers.values()
            if applier.state == "following" and not applier.knows_marks
        ]

    def beat(self, silent_since_ns: int) -> None:
        """Give up peers that have been silent for too long, and dial lost peers again."""
        for applier in self._appliers.values():
            if applier.state not in ("off", "connecting", "stopped") and applier.heard_ns < silent_since_ns:
                self._drop(applier.link, "silent for too long")
            elif applier.state == "off":
                applier.state = "connecting"
                self._out.append(Connect(applier.peer))

    def ask_again(self, why: str) -> None:
        """End all links: the next subscriptions begin with the vclock on disk."""
        for applier in self._appliers.values():
            if applier.link >= 0:
                self._drop(applier.link, why)

    def lost(self, link: int, reason: str, now: Instant) -> None:
        """The link is gone."""
        applier = self._links.pop(link, None)
        if applier is not None:
            self._newcomer.lost(applier.peer)
            applier.last_error = reason
            applier.turn_off()
            self._participation.lost(applier.peer_id, now)
            self._out.append(Log("info", "lost the peer we follow", {"peer": applier.peer, "reason": reason}))

    def received(self, applier: Applier, message: object, now: Instant) -> None:
        """A message of a peer."""
        applier.heard_ns = now.monotonic_ns
        self._election.heard(applier.peer_id, now.monotonic_ns)
        match message:
            case Rows(rows) if applier.state == "following":
                # The terms first: a term stands in the log before any row of it, so no restart votes in an older one.
                for row in rows:
                    if row.type in (Type.PROMOTE, Type.DEMOTE):
                        self._participation.see_term(number(row, Key.TERM), now)
                applier.note_lag(rows[-1].timestamp if rows else 0.0, now)
                self._apply(applier, rows)
            case Heartbeat(_, timestamp, sync) if applier.state == "following":
                applier.note_lag(timestamp, now)
                self._acknowledge([applier], sync)
            case RaftState() if applier.state == "following" and message.replica_id == applier.peer_id:
                why = flaw(message)
                if why is not None:
                    self._drop(applier.link, why)  # before its term is taken
                elif self._options.knows_elections:
                    self._participation.hear(message, now)
            case Ballot() if applier.state == "asking":
                if not self._newcomer.joins(applier, message):
                    self._subscribe(applier)
            case Stage() | Rows() | JoinMeta() | JoinSnapshot() | RaftState() if applier.state == "joining":
                self._newcomer.take(applier, message, now)
            case Subscribed(_, cluster_uuid, _, answered, features) if applier.state == "subscribing":
                if cluster_uuid != self._commits.configuration.cluster_uuid:
                    self._drop(applier.link, "the peer is of another cluster")
                    return
                if self._options.refuses(features):
                    self._drop(applier.link, NO_MARKS.format(applier.peer))
                    return
                applier.knows_marks = PROMOTE_MARK in features
                if answered and answered != applier.answered_id:
                    applier.answered_id = answered
                    self._membership.changed()
                applier.state, applier.last_error = "following", ""
                self._out.append(Log("info", "following", {"peer": applier.peer}))
                self.leave_orphans()
                self._acknowledge([applier])
            case Refusal(_, code, text_):
                self._newcomer.refused(applier, code, text_)
            case _:
                self._drop(applier.link, f"unexpected {type(message).__name__} while {applier.state}")

    def leave_orphans(self) -> None:
        """Stop being an orphan once enough peers are followed, for the rest of this life."""
        if self._participation.connected_members() > self._options.connect_quorum:
            self._commits.ownership.is_orphan = False

    def _apply(self, applier: Applier, rows: Iterable[Row]) -> None:
        applier.backlog.extend(applier.transactions(rows))
        is_news = False
        while applier.backlog and not (self._commits.records.is_behind_barrier or self._commits.is_log_full):
            if not self._decisions.may_take_in(self._commits, applier.backlog[0]):
                break
            transaction = applier.backlog.popleft()
            if is_known(transaction, self._journal.promised):
                continue
            promised = self._journal.promised
            refusal = misfit(transaction, promised) or self._commits.ownership.refusal_of(transaction)
            if refusal is not None:
                self._drop(applier.link, refusal)
                return
            try:
                self._commits.apply(transaction, applier.peer_id)
            except Contradiction as contradiction:
                self._stop_following(applier, transaction[-1], str(contradiction))
                break
            is_news = True
        self._commits.sometimes.note(WAITED_FOR_DISK, bool(applier.backlog) and self._commits.is_log_full)
        if is_news:
            # To all peers: the owner, which counts them, may have sent these rows by way of another one.
            self._acknowledge(self._appliers.values())
        elif applier.told != self._position():
            self._acknowledge([applier])

    def _stop_following(self, applier: Applier, row: Row, message: str) -> None:
        """The peer's history contradicts the own one: take no more rows from it in this life."""
        applier.message = message
        kind = next((known.name for known in Type if known == row.type), row.type)
        fields = {"peer": applier.peer, "origin": row.replica_id, "row": kind, "lsn": row.lsn}
        self._out.append(Log("error", message, fields))
        self._drop(applier.link, message)

    def take_backlogs(self) -> None:
        """A record is on disk, or has failed: go on with the rows that waited for it."""
        for applier in self._appliers.values():
            if applier.backlog:
                self._apply(applier, ())

    def _acknowledge(self, appliers: Iterable[Applier], sync: int = 0) -> None:
        """Acknowledge to peers the own vclock and term, as soon as all of that is on disk."""
        after, position = self._journal.last_token(), self._position()
        vclock, term, _ = position
        if sync:
            vclock = self._decisions.told_to_reads(vclock, self._commits.limbo)
        for applier in appliers:
            if applier.state == "following":
                self._out.append(Send(applier.link, Ack(vclock, term, sync), after))
                applier.told = None if sync else position

    def _position(self) -> tuple[Vclock, int, int]:
        """The own vclock, the term, and how often records were lost: acknowledgements behind these were, too."""
        term = self._election.term if self._options.knows_elections else 0
        return public(self._journal.promised), term, self._journal.failures
