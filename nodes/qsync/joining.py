"""How a node gets all data and an id: JOIN, on both of its ends.

| the node that joins | its host |
|---|---|
| VOTE | a ballot: whether the host can be joined, and what it has |
| JOIN | registers the UUID in `_cluster` if it is unknown (only a node that can write may), then captures everything |
| | OK and the vclock of the data |
| | from 2.11 on: JOIN_META, the states of election and queue, JOIN_SNAPSHOT |
| | the data as INSERT rows; OK and the vclock |
| writes them as its snapshot | rows behind it, none here because the id is in the data; OK and the vclock |
| SUBSCRIBE, from that vclock on | |

Only confirmed data leaves (`checkpoints`). FETCH_SNAPSHOT is the same for an anonymous replica, which gets no id and
no last part. REGISTER makes such a replica a member.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

from nodes.iproto.codes import Code
from nodes.iproto.messages import (
    UUID,
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
    Type,
)
from nodes.kernel.effects import Effect, Log, Send
from nodes.kernel.events import Instant
from nodes.kernel.vclock import Vclock
from nodes.qsync.bootstrap import Stored, insert_row, stored
from nodes.qsync.checkpoints import Capture, Captures
from nodes.qsync.commits import Commits
from nodes.qsync.journal import Draft, Journal, public
from nodes.qsync.keys import Rejected
from nodes.qsync.mixes import refusal_of_join
from nodes.qsync.schema import Schema
from nodes.qsync.snapshot import QueueState, Snapshot, promote_row, queue_state
from nodes.qsync.spaces import Change
from nodes.qsync.system_spaces import CLUSTER

META_SINCE = 0x020B00
REPLICAS_MAX = 31


def check_member(change: Change, me: int) -> None:
    """Raises Rejected, as Tarantool does, if a client's write to `_cluster` is about this node, or names no member."""
    if change.key == me:
        raise Rejected(Code.LOCAL_INSTANCE_ID_IS_READ_ONLY, me)
    if change.tuple is None:
        return
    text = change.tuple[1] if len(change.tuple) > 1 else None
    if not UUID.fullmatch(str(text)):
        raise Rejected(Code.INVALID_UUID, text)
    if not (isinstance(change.key, int) and 0 < change.key <= REPLICAS_MAX):
        raise Rejected(Code.ILLEGAL_PARAMS, f"a replica id is 1 to {REPLICAS_MAX}, got {change.key!r}")


# ---- the host


@dataclass(slots=True, eq=False)
class Guest:
    """A node that joins this one, on one link. While `capture` is None it waits until it is registered."""

    link: int
    request: Join | Register
    capture: Capture | None = None


class Hosting:
    """The nodes that join this one."""

    def __init__(
        self, commits: Commits, journal: Journal, schema: Schema, captures: Captures, out: list[Effect]
    ) -> None:
        self._commits = commits
        self._journal = journal
        self._schema = schema
        self._captures = captures
        self._out = out
        self._guests: dict[int, Guest] = {}

    def __len__(self) -> int:
        return len(self._guests)

    def begin(self, link: int, request: Join | Register, now: Instant) -> None:
        """Register the node if it has no id, then send it all data."""
        self.lost(link)  # a second request on one link takes the place of the first
        guest = self._guests[link] = Guest(link, request)
        if isinstance(request, Join):
            mixed = refusal_of_join(self._commits.configuration.protocol, request.server_version)
            if mixed is not None:
                self._refuse(guest, Code.CFG, Code.CFG.text("replication", mixed))
                return
        uuid = request.instance_uuid
        is_known = uuid in self._schema.members().values() or self._is_being_registered(uuid)
        if not is_known and not (isinstance(request, Join) and request.is_anonymous):
            if not self._commits.is_writable:
                self._refuse(guest, Code.READONLY, str(self._commits.read_only_error()))
                return
            if self._commits.records.is_behind_barrier:
                self._refuse(guest, Code.SYNC_ROLLBACK)
                return
            number = self._free_id()
            if number > REPLICAS_MAX:
                self._refuse(guest, Code.REPLICA_MAX, Code.REPLICA_MAX.text(number))
                return
            self._register(number, uuid, now)
        self._out.append(Log("info", "a replica joins", {"uuid": uuid}))

    def lost(self, link: int) -> None:
        guest = self._guests.pop(link, None)
        if guest is not None and guest.capture is not None:
            self._captures.forget(guest.capture)

    def proceed(self) -> None:
        """Begin the captures for the nodes that are registered by now."""
        for guest in list(self._guests.values()):
            if guest.capture is not None:
                continue
            uuid = guest.request.instance_uuid
            if not uuid or uuid in self._schema.members().values():
                guest.capture = self._captures.begin(lambda taken, guest=guest: self._give(guest, taken))  # type: ignore[misc]
            elif not self._is_being_registered(uuid):
                self._refuse(guest, Code.SYNC_ROLLBACK)

    def _refuse(self, guest: Guest, code: Code, message: str = "") -> None:
        self._guests.pop(guest.link, None)
        self._out.append(Send(guest.link, Refusal(guest.request.sync, code, message or code.text())))

    def _is_being_registered(self, uuid: str) -> bool:
        return any(fields[1] == uuid for fields in self._schema.by_id[CLUSTER].scan(dirty=True))

    def _free_id(self) -> int:
        """The least id that no member has, and no row. Above `REPLICAS_MAX` if all are taken."""
        space = self._schema.by_id[CLUSTER]
        # Not the id of a removed member with rows in the log: the new one's would go on behind them.
        taken = {fields[0] for fields in space.scan(dirty=True)} | set(self._journal.promised)
        return next(number for number in count(1) if number not in taken)

    def _register(self, number: int, uuid: str, now: Instant) -> None:
        space = self._schema.by_id[CLUSTER]
        fields = (number, uuid)
        draft = Draft(Type.INSERT.value, {Key.SPACE_ID.value: CLUSTER, Key.TUPLE.value: fields})
        self._commits.submit((Change(space, space.key_of(fields), fields),), (draft,), None, now)

    def _give(self, guest: Guest, snapshot: Snapshot) -> None:
        """Send a snapshot, all of which is confirmed."""
        del self._guests[guest.link]
        sync, vclock = guest.request.sync, public(snapshot.vclock)
        if isinstance(guest.request, Register):
            self._send(
                guest, Rows(tuple(self._rows_between(guest.request.vclock, vclock))), Stage(sync, vclock)
            )
            return
        near = {number for number, space in self._schema.by_id.items() if not space.definition.is_replicated}
        rows = Rows(tuple(insert_row(pair, 0) for pair in snapshot.tuples if pair[0] not in near))
        self._send(
            guest, Stage(sync, vclock), *self._meta(guest.request, snapshot), rows, Stage(sync, vclock)
        )
        if not guest.request.is_anonymous:
            self._send(guest, Stage(sync, vclock))

    def _meta(self, request: Join, snapshot: Snapshot) -> Iterable[object]:
        if self._commits.configuration.protocol == "2.6" or request.server_version < META_SINCE:
            return
        yield JoinMeta(request.sync)
        yield RaftState(0, snapshot.election.term, 0, 1, 0, False)
        promote = promote_row(snapshot.queue)
        if promote is not None:
            yield Rows((promote,))
        yield JoinSnapshot(request.sync)

    def _rows_between(self, begin: Mapping[int, int], end: Vclock) -> Iterable[Row]:
        for row in self._journal.rows:
            if begin.get(row.replica_id, 0) < row.lsn <= end.get(row.replica_id, 0):
                yield row

    def _send(self, guest: Guest, *messages: object) -> None:
        for message in messages:
            if not (isinstance(message, Rows) and not message.rows):
                self._out.append(Send(guest.link, message))


# ---- the node that joins


@dataclass(slots=True)
class Joining:
    """The received part of a JOIN. `stages` counts its vclocks: behind the first comes data, behind the second rows."""

    is_anonymous: bool
    peer: str = ""
    stages: int = 0
    is_waiting: bool = False
    """The JOIN is complete, but other records are still on their way to the disk."""
    data_vclock: Vclock = field(default_factory=dict)
    vclock: Vclock = field(default_factory=dict)
    tuples: list[Stored] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    term: int = 1
    queue: QueueState = field(default_factory=QueueState)

    def begin(self, peer: str) -> None:
        """Ask this peer; the part that another peer has sent is dropped."""
        self.peer = peer
        self.stages = 0
        self.is_waiting = False
        self.tuples.clear()
        self.rows.clear()
        self.term, self.queue = 1, QueueState()

    @property
    def is_complete(self) -> bool:
        return self.stages == (2 if self.is_anonymous else 3)

    def take(self, message: object) -> bool:
        """Take one message of the answer; False if it is not a part of one."""
        match message:
            case Stage(_, vclock):
                self.stages += 1
                self.vclock = dict(vclock)
                if self.stages == 1:
                    self.data_vclock = dict(vclock)
            case Rows(rows) if self.stages in (1, 2):
                for row in rows:
                    self._row(row)
            case RaftState() if self.stages == 1:
                self.term = message.term
            case JoinMeta() | JoinSnapshot() if self.stages == 1:
                pass
            case _:
                return False
        return True

    def _row(self, row: Row) -> None:
        if self.stages == 2:
            self.rows.append(row)
        elif row.type == Type.PROMOTE:
            self.queue = queue_state(row)
        elif row.type == Type.INSERT:
            self.tuples.append(stored(row))
