"""The write-ahead log: rows get their numbers here, become records on disk, and stay readable for relays.

`Journal.write` gives rows of our own their lsn, encodes them as one block of an xlog file and returns the effect
that persists it. A write is *in flight* until `persisted`; what is in flight already counts for filtering
duplicates (`promised`), but not for what we claim to have (`vclock`). If a write fails, it and all behind it are
undone and their numbers are used again.

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

SERVER_VERSION = "3.2.0"

_RECORD_NAMES = {
    Type.CONFIRM.value: "confirm",
    Type.ROLLBACK.value: "rollback",
    Type.PROMOTE.value: "promote",
    Type.DEMOTE.value: "demote",
}


@dataclass(frozen=True, slots=True)
class Draft:
    """A row before the journal numbers it."""

    type: int
    body: Mapping[int, object]


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

    def _token(self) -> int:
        self._tokens += 1
        return self._tokens

    def open(self, files: Mapping[str, bytes]) -> tuple[tuple[Row, ...], list[Effect]]:
        """Read what the disk holds: all rows in order, and what must be done before anything is appended.

        A torn tail of the newest file is cut off: it was never acknowledged. Any other damage raises
        `StartRefused`.
        """
        logs = sorted(name for name in files if name.endswith(".xlog"))
        if not logs:
            return (), self._create(files)
        rows: list[Row] = []
        effects: list[Effect] = []
        for name in logs:
            damage = self._read(name, files[name], rows, last=name == logs[-1])
            if damage is not None:
                effects.append(Truncate(name, damage))
                if damage == 0:
                    effects.append(self._header(name))
        self._file = logs[-1]
        self.rows = rows
        self.promised = dict(self.vclock)
        return tuple(rows), effects

    def _read(self, name: str, data: bytes, rows: list[Row], *, last: bool) -> int | None:
        """Append a file's rows; returns the length of its good part if it has a torn tail."""
        try:
            found = xlog.decode(data)
        except XlogError as error:
            raise StartRefused(f"{name}: {error}") from error
        if found.meta is None:
            if last:
                return 0  # power was lost before the header of a new file was whole
            raise StartRefused(f"{name}: {found.damage}")
        if found.meta.vclock != self.vclock:
            raise StartRefused(
                f"{name}: begins at {text(found.meta.vclock)}, but the log before it ends at {text(self.vclock)}: "
                "records in between are lost"
            )
        for row in found.rows:
            assert row.lsn > self.vclock.get(row.replica_id, 0), (name, row)
            self.vclock[row.replica_id] = row.lsn
            rows.append(row)
        if found.damage is None:
            return None
        if not last:
            raise StartRefused(f"{name}: {found.damage}")
        return found.good_bytes

    def _create(self, files: Mapping[str, bytes]) -> list[Effect]:
        """A node with an empty disk starts from the same empty snapshot as all others."""
        effects: list[Effect] = []
        snapshot = xlog.file_name({}, "SNAP")
        if snapshot not in files:
            data = xlog.encode_header("SNAP", self.instance_uuid, {}) + xlog.encode_eof()
            effects.append(Persist(self._token(), snapshot, data, "header"))
        effects.append(self._header(self._file))
        return effects

    def _header(self, name: str) -> Persist:
        data = xlog.encode_header("XLOG", self.instance_uuid, self.vclock, server_version=SERVER_VERSION)
        return Persist(self._token(), name, data, "header")

    def write_own(
        self, drafts: tuple[Draft, ...], timestamp: float, *, wait_sync: bool = False, wait_ack: bool = False
    ) -> Write:
        """Number our own rows and start writing them."""
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

    def write(self, rows: tuple[Row, ...]) -> Write:
        """Start writing rows that have their numbers: one transaction."""
        token = self._token()
        for row in rows:
            assert row.lsn > self.promised.get(row.replica_id, 0), (row, self.promised)
            self.promised[row.replica_id] = row.lsn
        record = _RECORD_NAMES.get(rows[-1].type, "row")
        write = Write(token, rows, Persist(token, self._file, xlog.encode_block(rows), record))
        self.rows.extend(rows)
        self.in_flight.append(write)
        return write

    def persisted(self, token: int) -> Write | None:
        """The oldest write in flight is on disk; None for records that are not rows (file headers)."""
        if not self.in_flight or self.in_flight[0].token != token:
            assert all(write.token != token for write in self.in_flight), "disks finish in order"
            return None
        write = self.in_flight.popleft()
        for row in write.rows:
            self.vclock[row.replica_id] = row.lsn
        return write

    def failed(self) -> list[Write]:
        """Everything in flight is lost: undo it and return it, newest first."""
        lost = list(reversed(self.in_flight))
        self.in_flight.clear()
        del self.rows[len(self.rows) - sum(len(write.rows) for write in lost) :]
        self.promised = dict(self.vclock)
        return lost

    def last_token(self) -> int | None:
        """The token that everything in the log depends on, if something is still in flight."""
        return self.in_flight[-1].token if self.in_flight else None
