"""The write-ahead log: rows get their numbers here, become records on disk, and stay readable for relays.

`Journal.write` gives rows of our own their lsn, encodes them as one block of an xlog file and returns the effect
that persists it. A write is *in flight* until `persisted`; what is in flight already counts for filtering
duplicates (`promised`), but not for what we claim to have (`vclock`). If a write fails, it and all behind it are
undone and their numbers are used again.

What a killed process had written may be read at the next start and yet not be on disk. So the first effect after
reading a log is a record of no bytes, which syncs it: nothing that was read leaves the node before. If that fails, the
node must not go on with what it has read: `failed` raises `StartRefused`.

The log stays in memory as a list of rows: relays read it by position.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from nodes.iproto import xlog
from nodes.iproto.errors import XlogError
from nodes.iproto.messages import Row, Type
from nodes.kernel.effects import Effect, Persist, Truncate
from nodes.kernel.errors import StartRefused
from nodes.kernel.vclock import Vclock, text

LOCAL = 0
"""The replica id of rows that a node keeps for itself."""
SERVER_VERSION = "3.2.0"

_RECORD_NAMES = {
    Type.RAFT.value: "raft",
    Type.CONFIRM.value: "confirm",
    Type.ROLLBACK.value: "rollback",
    Type.PROMOTE.value: "promote",
    Type.DEMOTE.value: "demote",
}


@dataclass(frozen=True, slots=True)
class Draft:
    """A row before the journal numbers it; a local one stays on this node."""

    type: int
    body: Mapping[int, object]
    is_local: bool = False


_LAST = Draft(Type.NOP.value, {})
"""Ends a transaction whose last row would stay here: others must see its end."""


@dataclass(frozen=True, slots=True)
class Write:
    """One transaction's rows on their way to the disk."""

    token: int
    rows: tuple[Row, ...]
    persist: Persist

    @property
    def origin(self) -> int:
        return self.rows[-1].replica_id

    @property
    def lsn(self) -> int:
        """The lsn of a transaction is that of its last row."""
        return self.rows[-1].lsn


class Journal:
    """The log of one node, identified by its replica id."""

    def __init__(self, replica_id: int, instance_uuid: str) -> None:
        self.replica_id = replica_id
        self.instance_uuid = instance_uuid
        self.rows: list[Row] = []
        self.vclock: Vclock = {}
        self.promised: Vclock = {}
        self.in_flight: deque[Write] = deque()
        self._file = xlog.file_name({})
        self._tokens = 0
        self._header = b""
        """The header of the file, while it is not on disk."""
        self._header_token = 0
        self._sync_token = 0
        """Of the record that syncs what was read, while it is not on disk."""
        self._lost_header = b""
        """A header that could not be written: the next record brings it along."""

    def _token(self) -> int:
        self._tokens += 1
        return self._tokens

    def open(self, files: Mapping[str, bytes]) -> tuple[tuple[Row, ...], list[Effect]]:
        """Read what the disk holds: all rows in order, and what must be done before anything is appended.

        A torn tail of the newest file is cut off: it was never acknowledged. Any other damage, that of a block
        with good ones behind it included, raises `StartRefused`.
        """
        logs = sorted(name for name in files if name.endswith(".xlog"))
        if not logs:
            return (), self._create(files)
        rows: list[Row] = []
        effects: list[Effect] = []
        self._file = logs[-1]
        for name in logs:
            good_bytes = self._read(name, files[name], rows, last=name == logs[-1])
            if good_bytes < len(files[name]):
                effects.append(Truncate(name, good_bytes))
            if good_bytes == 0:
                effects.append(self._begin_file())
        self._sync_token = self._token()
        effects.append(Persist(self._sync_token, self._file, b"", "sync"))
        self.rows = rows
        self.promised = dict(self.vclock)
        return tuple(rows), effects

    def _read(self, name: str, data: bytes, rows: list[Row], *, last: bool) -> int:
        """Append a file's rows; returns the length of its good part: less than its own if the tail is torn."""
        try:
            found = xlog.decode(data)
        except XlogError as error:
            raise StartRefused(f"{name}: {error}") from error
        if found.meta is None:
            if last:
                return 0  # power was lost before the header of a new file was whole
            raise StartRefused(f"{name}: {found.damage}")
        if found.meta.instance_uuid != self.instance_uuid:
            raise StartRefused(
                f"{name}: written by {found.meta.instance_uuid}, but we are {self.instance_uuid}"
            )
        if found.meta.vclock != self.vclock:
            raise StartRefused(
                f"{name}: begins at {text(found.meta.vclock)}, but the log before it ends at {text(self.vclock)}: "
                "records in between are lost"
            )
        for row in found.rows:
            assert row.lsn > self.vclock.get(row.replica_id, 0), (name, row)
            self.vclock[row.replica_id] = row.lsn
            rows.append(row)
        if found.damage is not None and (not last or xlog.goes_on(data, found.good_bytes)):
            raise StartRefused(f"{name}: {found.damage}, but more rows follow")
        return found.good_bytes - found.finished * len(xlog.encode_eof())  # we go on where it ended

    def _create(self, files: Mapping[str, bytes]) -> list[Effect]:
        """A node with an empty disk starts from the same empty snapshot as all others."""
        effects: list[Effect] = []
        snapshot = xlog.file_name({}, "SNAP")
        data = xlog.encode_header("SNAP", self.instance_uuid, {}) + xlog.encode_eof()
        if files.get(snapshot) != data:
            if snapshot in files:
                effects.append(Truncate(snapshot, 0))
            effects.append(Persist(self._token(), snapshot, data, "header"))
        effects.append(self._begin_file())
        return effects

    def _begin_file(self) -> Persist:
        self._header = xlog.encode_header(
            "XLOG", self.instance_uuid, self.vclock, server_version=SERVER_VERSION
        )
        self._header_token = self._token()
        return Persist(self._header_token, self._file, self._header, "header")

    def write_own(
        self, drafts: tuple[Draft, ...], timestamp: float, *, wait_sync: bool = False, wait_ack: bool = False
    ) -> Write:
        """Number our own rows and start writing them."""
        if any(draft.is_local for draft in drafts):
            return self._write_with_local(drafts, timestamp, wait_sync=wait_sync, wait_ack=wait_ack)
        first = self.promised.get(self.replica_id, 0) + 1
        last = len(drafts) - 1
        rows = tuple(
            Row(
                type=draft.type,
                replica_id=self.replica_id,
                lsn=first + place,
                timestamp=timestamp,
                tsn=first,
                is_commit=place == last,
                wait_sync=wait_sync and place == last,
                wait_ack=wait_ack and place == last,
                body=draft.body,
            )
            for place, draft in enumerate(drafts)
        )
        return self.write(rows)

    def _write_with_local(
        self, drafts: tuple[Draft, ...], timestamp: float, *, wait_sync: bool, wait_ack: bool
    ) -> Write:
        """Local rows have numbers of their own; a mixed transaction goes by the number of its first other row."""
        is_mixed = not all(draft.is_local for draft in drafts)
        if is_mixed and drafts[-1].is_local:
            drafts = (*drafts, _LAST)
        numbers = {LOCAL: self.promised.get(LOCAL, 0), self.replica_id: self.promised.get(self.replica_id, 0)}
        first = numbers[self.replica_id if is_mixed else LOCAL] + 1
        rows: list[Row] = []
        for place, draft in enumerate(drafts):
            origin = LOCAL if draft.is_local else self.replica_id
            numbers[origin] += 1
            is_last = place == len(drafts) - 1
            rows.append(
                Row(
                    type=draft.type,
                    replica_id=origin,
                    lsn=numbers[origin],
                    timestamp=timestamp,
                    tsn=first,
                    is_commit=is_last,
                    wait_sync=wait_sync and is_last,
                    wait_ack=wait_ack and is_last,
                    group_id=1 if draft.is_local else 0,
                    body=draft.body,
                )
            )
        return self.write(tuple(rows))

    def write_vote(self, term: int, vote: int, timestamp: float) -> Write:
        """Term and vote, for ourselves alone: rows of replica 0 are never sent."""
        lsn = self.promised.get(LOCAL, 0) + 1
        body = {0: term, 1: vote} if vote else {0: term}
        return self.write((Row(Type.RAFT.value, LOCAL, lsn, timestamp, lsn, group_id=1, body=body),))

    def write(self, rows: tuple[Row, ...]) -> Write:
        """Start writing rows that have their numbers: one transaction."""
        token = self._token()
        for row in rows:
            assert row.lsn > self.promised.get(row.replica_id, 0), (row, self.promised)
            self.promised[row.replica_id] = row.lsn
        record = _RECORD_NAMES.get(rows[-1].type, "row")
        data = xlog.encode_block(rows)
        if self._lost_header:
            data, self._lost_header, self._header_token = self._lost_header + data, b"", token
        write = Write(token, rows, Persist(token, self._file, data, record))
        self.rows.extend(rows)
        self.in_flight.append(write)
        return write

    def persisted(self, token: int) -> Write | None:
        """The oldest write in flight is on disk; None for records that are not rows (file headers)."""
        if token == self._header_token:
            self._header = b""
        if token == self._sync_token:
            self._sync_token = 0
        if not self.in_flight or self.in_flight[0].token != token:
            assert all(write.token != token for write in self.in_flight), "disks finish in order"
            return None
        write = self.in_flight.popleft()
        for row in write.rows:
            self.vclock[row.replica_id] = row.lsn
        return write

    def failed(self) -> list[Write]:
        """Everything in flight is lost: undo it and return it, newest first."""
        if self._sync_token:
            raise StartRefused(
                f"{self._file}: it cannot be synced, so what was read may be gone after a crash"
            )
        self._lost_header = self._header
        lost = list(reversed(self.in_flight))
        self.in_flight.clear()
        del self.rows[len(self.rows) - sum(len(write.rows) for write in lost) :]
        self.promised = dict(self.vclock)
        return lost

    def last_token(self) -> int | None:
        """The token that everything in the log depends on, if something is still in flight."""
        return self.in_flight[-1].token if self.in_flight else None


def public(vclock: Mapping[int, int]) -> Vclock:
    """What others may know of a vclock: without our local rows."""
    return {origin: lsn for origin, lsn in vclock.items() if origin != LOCAL}
