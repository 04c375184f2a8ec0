"""A node joins: it asks peers in turn, writes the data that one of them sends, and begins anew with that.

`nodes.qsync.joining` has the conversation of both ends. A node joins if it has no data, or if no peer still has the
rows that it needs next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodes.iproto.codes import Code
from nodes.iproto.greeting import version_number
from nodes.iproto.messages import Ballot, Join
from nodes.kernel.effects import Disconnect, Log, Remove, Send
from nodes.kernel.errors import StartRefused
from nodes.kernel.events import Accepted, Event, Instant, Persisted, PersistFailed, Received
from nodes.kernel.vclock import covers
from nodes.qsync.applier import Applier
from nodes.qsync.bootstrap import in_order
from nodes.qsync.joining import Joining
from nodes.qsync.journal import LOCAL, public
from nodes.qsync.parts import Parts, new_journal
from nodes.qsync.snapshot import ElectionState, Snapshot


class Newcomer:
    """`begin_anew` gets the files to start from, and the first free token; `beat` dials the peers again."""

    def __init__(
        self,
        parts: Parts,
        begin_anew: Callable[[Mapping[str, bytes], int, Instant], None],
        beat: Callable[[Instant], None],
    ) -> None:
        self._journal = parts.journal
        self._election = parts.election
        self._commits = parts.commits
        self._retention = parts.retention
        self._links = parts.applier_links
        self._appliers = parts.appliers
        self._relays = parts.relays
        self._out = parts.out
        self._drop = parts.drop
        self._begin_anew = begin_anew
        self._beat = beat
        self.joining: Joining | None = None
        """The received part of the JOIN, while the node has to join."""
        self.installing: tuple[int, dict[str, bytes]] | None = None
        """The token of the last record of the joined data, and its files: when it is on disk the node begins anew."""

    def begin(self) -> None:
        """Begin to join: the node has no data."""
        configuration = self._commits.configuration
        self.joining = Joining(configuration.is_anonymous)
        self._out.append(Log("info", "no data: joining", {"uuid": configuration.instance_uuid}))

    def refused(self, applier: Applier, code: int, text_: str) -> None:
        """A peer refuses this node. If it has dropped rows that this node needs, it can be joined.

        Raises StartRefused if a JOIN was refused because of this node's options.
        """
        if applier.state == "joining" and code == Code.CFG:
            raise StartRefused(text_)
        is_behind = code == Code.XLOG_GAP and applier.state == "subscribing" and self.joining is None
        self._drop(applier.link, f"refused with {code}: {text_}")
        if is_behind:
            self.joining = Joining(self._commits.configuration.is_anonymous)
            self._out.append(
                Log("warning", "what we need is gone there: joining anew", {"peer": applier.peer})
            )

    def lost(self, peer: str) -> None:
        """The link to a peer is gone."""
        if self.joining is not None and self.joining.peer == peer:
            self.joining.peer = ""

    def joins(self, applier: Applier, ballot: Ballot) -> bool:
        """Join this peer, if it can be joined and no other is being joined; False: it can be followed at once.

        The missing rows may have come from a different peer meanwhile. Then this peer may need the node's
        acknowledgements to confirm its own entries, which it must do before it can be joined.
        """
        joining, gc_vclock = self.joining, ballot.gc_vclock
        if joining is None or (
            self._commits.is_recovered and gc_vclock and covers(public(self._journal.vclock), gc_vclock)
        ):
            if joining is not None and not joining.peer:
                self.joining = None
            return False
        may_register = not ballot.is_read_only or self._commits.is_recovered or joining.is_anonymous
        if ballot.is_loading or not may_register or joining.peer:
            self._drop(applier.link, "it cannot be joined now")
        elif not covers(ballot.vclock, public(self._journal.vclock)):
            # They may have been acknowledged: a join would take away what a quorum counts on.
            self._drop(applier.link, "cannot join anew: we have rows that it does not have")
        else:
            joining.begin(applier.peer)
            applier.state = "joining"
            version = version_number(self._commits.configuration.version)
            uuid = "" if joining.is_anonymous else self._commits.configuration.instance_uuid
            self._out.append(Send(applier.link, Join(0, uuid, version, joining.is_anonymous)))
        return True

    def take(self, applier: Applier, message: object, now: Instant) -> None:
        """A part of the answer to JOIN."""
        joining = self.joining
        if joining is None or not joining.take(message):
            self._drop(applier.link, f"unexpected {type(message).__name__} while joining")
        elif joining.is_complete:
            self._end(joining, now)

    def proceed(self, now: Instant) -> None:
        """Go on when no other record is on its way to the disk."""
        if self.joining is not None and self.joining.is_waiting and not self._journal.in_flight:
            self._end(self.joining, now)

    def _end(self, joining: Joining, now: Instant) -> None:
        """The JOIN is complete: write its data, as soon as no other record is on its way to the disk."""
        # First: no row may come between this check and the new snapshot, which would not hold it.
        for link in list(self._links):
            self._drop(link, "all that we joined for is there")
        if not covers(joining.data_vclock, public(self._journal.promised)):
            self.joining = None  # what was missing has come from another peer meanwhile
        elif self._journal.in_flight:
            joining.is_waiting = True
        else:
            self._write(joining, now)

    def _write(self, joining: Joining, now: Instant) -> None:
        """Write a snapshot and a log behind it. When both are on disk, older files go and the node begins anew."""
        configuration = self._commits.configuration
        # The tokens go on: a report about a record of the old journal must not fit one of the new.
        journal = new_journal(configuration, first_token=self._journal.next_token)
        local = self._journal.promised.get(LOCAL, 0)
        begin = {**({LOCAL: local} if local else {}), **joining.data_vclock}
        # A vote stays in force for its term: without it this node could vote twice.
        vote = self._election.vote if joining.term <= self._election.term else 0
        election = ElectionState(max(joining.term, self._election.term), vote)
        content = Snapshot(begin, in_order(joining.tuples), joining.queue, election)
        snapshot = journal.keep_snapshot(content, now.wall_ns / 1e9)
        log = journal.file_behind(content, joining.rows)
        for link in list(self._relays):
            self._drop(link, "beginning anew")
        # The log's token is awaited: disks finish in order, so the snapshot is on disk, too.
        self._out += [snapshot, log]
        self.installing = (log.token, {snapshot.file: snapshot.data, log.file: log.data})

    def install(self, event: Event, now: Instant) -> None:
        """While the joined data are on their way to the disk, take no message, like a process that starts."""
        assert self.installing is not None
        token, files = self.installing
        match event:
            case Received(link, _) | Accepted(link):
                self._out.append(Disconnect(link))
            case Persisted(done) if done == token:
                self._out += [Remove(name) for name in self._stored() if name not in files]
                self._begin_anew(files, token + 1, now)
            case PersistFailed(_, error):
                self.installing = None
                self.joining = Joining(self._commits.configuration.is_anonymous)
                # They may be on disk. The log goes first: without the snapshot no node starts from it.
                self._out += [Remove(name) for name in reversed(files) if name not in self._stored()]
                self._retention.failed()
                self._journal.skip_tokens(token + 1)
                self._out.append(Log("error", "what we joined with cannot be written", {"error": error}))
                for applier in self._appliers.values():
                    applier.turn_off()  # the answers to its calls were not taken: `beat` calls anew
                self._beat(now)

    def _stored(self) -> list[str]:
        """The names of the files before the JOIN."""
        return [name for name, _ in self._journal.snapshots] + [file.name for file in self._journal.files]
