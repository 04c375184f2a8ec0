"""The write-ahead log: rows get their numbers here, become records on disk, and stay readable for relays.

`Journal.write_own` gives the node's own rows their lsn. `write` encodes rows as one block of an xlog file and returns
the effect that persists it. A write is *in flight* until `persisted`. Its rows already count for filtering duplicates
(`promised`), but not for the vclock that the node reports (`vclock`). If a write fails, it and all writes behind it
are undone, and their numbers are used again.

A log that a killed process had written may be readable at the next start and yet not be on disk. So the first effect
after reading a log is a record of no bytes, which syncs it: no row that was read leaves the node before. If that fails,
the node must not go on with the rows that it has read: `failed` raises `StartRefused`.

Files: a new one is begun when the current one has reached `file_bytes_max` or a snapshot was taken (`begin_new_file`);
the end marker of the old one and the header of the new one travel with the first record behind them. `collect`
removes the files that neither the kept snapshots nor the followers need. The rows of all kept files stay
in memory as one list: relays read it by position.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from nodes.iproto import xlog
from nodes.iproto.errors import XlogError
from nodes.iproto.messages import Row, Type
from nodes.kernel.effects import Effect, Persist, Remove, Truncate
from nodes.kernel.errors import StartRefused
from nodes.kernel.vclock import Vclock, covers
from nodes.qsync import snapshot as snapshots
from nodes.qsync.snapshot import Snapshot
from nodes.qsync.stored_log import LogFile, StoredLog, forgotten, refuse_a_gap

LOCAL = 0
"""The replica id of rows that a node keeps for itself."""
SERVER_VERSION = "3.2.0"
FILE_BYTES_MAX = 256 * 1024 * 1024

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
"""Ends a transaction whose last row is local: the peers must receive its end."""


@dataclass(frozen=True, slots=True)
class Write:
    """One transaction's rows on their way to the disk. `before`: the end of a file that comes first."""

    token: int
    rows: tuple[Row, ...]
    persist: Persist
    before: tuple[Persist, ...] = ()
    size: int = 0
    """Bytes of the rows in the log."""

    @property
    def origin(self) -> int:
        return self.rows[-1].replica_id

    @property
    def lsn(self) -> int:
        """The lsn of a transaction is that of its last row."""
        return self.rows[-1].lsn


@dataclass(frozen=True, slots=True)
class Recovered:
    """The content of a disk: a snapshot (None: a new disk), and the rows behind it, which are to be replayed."""

    snapshot: Snapshot | None
    rows: tuple[Row, ...]


class Journal:
    """The log of one node, identified by its replica id."""

    def __init__(
        self,
        replica_id: int,
        instance_uuid: str,
        *,
        first_snapshot: Callable[[], bytes] | None = None,
        server_version: str = SERVER_VERSION,
        file_bytes_max: int = FILE_BYTES_MAX,
        first_token: int = 1,
    ) -> None:
        """`first_snapshot`: the first file of a new disk; by default an empty snapshot."""
        self.replica_id = replica_id
        self.instance_uuid = instance_uuid
        self.rows: list[Row] = []
        self.vclock: Vclock = {}
        self.promised: Vclock = {}
        self.in_flight: deque[Write] = deque()
        self.in_flight_bytes = 0
        """Bytes of the rows on their way to the disk."""
        self.files: list[LogFile] = []
        """Oldest first; the last one is written to."""
        self.snapshots: list[tuple[str, Vclock]] = []
        """Name and vclock of those on disk, oldest first."""
        self.failures = 0
        """How often the writes in flight were lost."""
        self._first_snapshot = first_snapshot
        self._server_version = server_version
        self._file_bytes_max = file_bytes_max
        self._tokens = first_token - 1
        # A new file's header is *due* until a record brings it along, then on its way to the disk (`_header`), then
        # neither. The end marker of the file before is on its way as long as it has a token: until it is on disk,
        # `files` ends with a file that may never begin.
        self._header = b""
        self._header_token = 0
        self._end_token = 0
        self._must_begin_file = False
        self._synced_name = ""
        self._sync_token = 0
        """The token of the record that syncs the log that was read, while it is not on disk."""
        self._due_header = b""

    def new_token(self) -> int:
        self._tokens += 1
        return self._tokens

    def skip_tokens(self, first: int) -> None:
        """Tokens below `first` are taken."""
        self._tokens = max(self._tokens, first - 1)

    @property
    def next_token(self) -> int:
        return self._tokens + 1

    @property
    def first_vclock(self) -> Vclock:
        """The log holds the rows behind this vclock; older rows are gone."""
        return self.files[0].vclock

    @property
    def bytes_since_snapshot(self) -> int:
        """The length of the logs that begin at the newest snapshot or behind it."""
        newest = self.snapshots[-1][1] if self.snapshots else {}
        return sum(file.size for file in self.files if covers(file.vclock, newest))

    # ---- the start

    def open(self, files: Mapping[str, bytes]) -> tuple[Recovered, list[Effect]]:
        """Read the disk's files (`stored_log`); returns the effects that must be done before anything is appended.

        Raises StartRefused where they have any damage but a torn end.
        """
        stored = StoredLog(self.instance_uuid, files)
        snapshot, effects = stored.snapshot, stored.effects
        self.rows, self.files, self.snapshots = stored.rows, stored.files, stored.snapshots
        self.vclock = stored.vclock
        # A header says by which version's rules all rows of its file are read.
        self._must_begin_file = stored.server_version not in (None, self._server_version)
        if not stored.logs:
            if snapshot is None or not snapshot.vclock:
                effects += self._create(stored.contents)
            effects.append(self._begin_file())
            self.promised = dict(self.vclock)
            return Recovered(snapshot, ()), effects
        if snapshot is None:  # the disk was full, or broken, when it should have been written
            effects += self._create(stored.contents)
        if stored.empty:
            effects += self._begin_anew(stored.empty, stored.contents)
        newest = stored.newest
        if snapshot is not None and not covers(self.vclock, snapshot.vclock):
            effects += forgotten(self.rows, self.files, self.vclock, snapshot, snapshot.vclock)
            newest = self.snapshots[-1][0]
            self._prepare_file()
        refuse_a_gap(self.files[0], snapshot)
        if newest:
            self._sync_token, self._synced_name = self.new_token(), newest
            effects.append(Persist(self._sync_token, self._synced_name, b"", "sync"))
        # Removals last: the records that replace these files are on disk by then.
        removals = [effect for effect in effects if isinstance(effect, Remove)]
        effects = [effect for effect in effects if not isinstance(effect, Remove)] + removals
        self.promised = dict(self.vclock)
        snapshot_vclock = snapshot.vclock if snapshot is not None else {}
        ahead = tuple(row for row in self.rows if row.lsn > snapshot_vclock.get(row.replica_id, 0))
        return Recovered(snapshot, ahead), effects

    def _begin_anew(self, empty: Sequence[str], files: Mapping[str, bytes]) -> list[Effect]:
        """Power was lost, or the disk was full, before the headers of these files were whole: nothing was in them.

        The file before may be torn as well, or hold nothing: then we go on in it.
        """
        for name in empty:
            try:
                xlog.decode(files[name])
            except XlogError as error:
                raise StartRefused(f"{name}: {error}") from error
        first: list[Effect] = []
        if not self.files:
            self.vclock = dict(self.snapshots[-1][1]) if self.snapshots else {}
            first.append(self._begin_file())
        elif self.files[-1].name != xlog.file_name(self.vclock):
            self._prepare_file()
        current = self.files[-1].name
        away: list[Effect] = [Remove(name) for name in empty if name != current]
        is_spoilt = current in empty and files[current]
        return [*away, *([Truncate(current, 0)] if is_spoilt else []), *first]

    def _create(self, files: Mapping[str, bytes]) -> list[Effect]:
        """The first snapshot: every node with an empty disk starts from the same one."""
        effects: list[Effect] = []
        name = xlog.file_name({}, "SNAP")
        if self._first_snapshot is not None:
            data = self._first_snapshot()
        else:
            data = xlog.encode_header("SNAP", self.instance_uuid, {}) + xlog.encode_eof()
        is_there = files.get(name) == data
        if name in files and not is_there:
            effects.append(Truncate(name, 0))
        # The process that wrote it may have been killed before it was synced.
        effects.append(Persist(self.new_token(), name, b"" if is_there else data, "header"))
        self.snapshots = [(name, {})]
        return effects

    # ---- files

    def _encoded_header(self) -> bytes:
        previous = self.files[-1].vclock if self.files else None
        return xlog.encode_header(
            "XLOG", self.instance_uuid, self.promised or self.vclock, previous, self._server_version
        )

    def _begin_file(self) -> Persist:
        """The first file of all, or the one that a crash kept from being begun."""
        self._header = self._encoded_header()
        self._header_token = self.new_token()
        name = xlog.file_name(self.vclock)
        self.files.append(LogFile(name, dict(self.vclock), len(self.rows), len(self._header)))
        return Persist(self._header_token, name, self._header, "header")

    def _prepare_file(self) -> None:
        """Begin the next file. Its header is written with its first record: before that the file is only synced."""
        self._due_header = self._encoded_header()
        self.files.append(LogFile(xlog.file_name(self.vclock), dict(self.vclock), len(self.rows)))

    def begin_new_file(self) -> None:
        """The next record goes to a new file."""
        self._must_begin_file = True

    def _finished_file(self) -> tuple[Persist, ...]:
        """End the file if it is full or must end; the header of the new one waits for the next record."""
        current = self.files[-1]
        is_due = self._must_begin_file or current.size >= self._file_bytes_max
        if not is_due or self._header or self._due_header or len(self.rows) == current.position:
            return ()
        self._must_begin_file = False
        self._end_token = self.new_token()
        end = Persist(self._end_token, current.name, xlog.encode_eof(), "eof")
        self._due_header = self._encoded_header()
        # By `promised`, not `vclock`: the rows in flight go to the file that ends here.
        self.files.append(LogFile(xlog.file_name(self.promised), dict(self.promised), len(self.rows)))
        return (end,)

    def keep_snapshot(self, snapshot: Snapshot, timestamp: float) -> Persist:
        """Write a snapshot. The caller calls `snapshot_kept` when it is on disk."""
        name = xlog.file_name(snapshot.vclock, "SNAP")
        data = snapshots.file_of(snapshot, self.instance_uuid, timestamp, self._server_version)
        return Persist(self.new_token(), name, data, "snapshot", is_whole=True)

    def snapshot_kept(self, snapshot: Snapshot) -> None:
        name = xlog.file_name(snapshot.vclock, "SNAP")
        if all(known != name for known, _ in self.snapshots):
            self.snapshots.append((name, dict(snapshot.vclock)))

    def file_behind(self, snapshot: Snapshot, rows: Sequence[Row]) -> Persist:
        """A new log, which begins at a snapshot and holds these rows of other nodes."""
        data = xlog.encode_header(
            "XLOG", self.instance_uuid, snapshot.vclock, server_version=self._server_version
        )
        if rows:
            data += xlog.encode_block(rows)
        return Persist(self.new_token(), xlog.file_name(snapshot.vclock), data, "header", is_whole=True)

    def collect(self, count: int, needed: Iterable[Mapping[int, int]]) -> tuple[int, list[Effect]]:
        """Keep `count` snapshots, and the logs that the oldest of these and the followers at the vclocks `needed` need.

        Returns how many rows were dropped from the beginning of `rows`: relays must shift their positions.
        """
        effects: list[Effect] = [Remove(name) for name, _ in self.snapshots[:-count]]
        del self.snapshots[:-count]
        needs = [public(vclock) for vclock in needed]
        # While the end marker is in flight, the last file may never begin: then the one before it goes on.
        while len(self.files) > 1 and not self._end_token:
            end = self.files[1].vclock
            if not covers(self.snapshots[0][1], end) or not all(covers(need, public(end)) for need in needs):
                break
            effects.append(Remove(self.files.pop(0).name))
        gone = self.files[0].position
        del self.rows[:gone]
        for file in self.files:
            file.position -= gone
        return gone, effects

    # ---- writing

    def write_own(
        self, drafts: tuple[Draft, ...], timestamp: float, *, wait_sync: bool = False, wait_ack: bool = False
    ) -> Write:
        """Number our own rows and start writing them."""
        if drafts[0].is_local or (len(drafts) > 1 and any(draft.is_local for draft in drafts)):
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
        """Local rows are numbered separately; a mixed transaction has the number of its first row that is not local."""
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
        """Term and vote, in a local row: rows of replica 0 are never sent."""
        lsn = self.promised.get(LOCAL, 0) + 1
        body = {0: term, 1: vote} if vote else {0: term}
        return self.write((Row(Type.RAFT.value, LOCAL, lsn, timestamp, lsn, group_id=1, body=body),))

    def write(self, rows: tuple[Row, ...]) -> Write:
        """Start writing one transaction, whose rows have their numbers."""
        before = self._finished_file()  # the end marker's token comes first: disks finish in order
        token = self.new_token()
        for row in rows:
            assert row.lsn > self.promised.get(row.replica_id, 0), (row, self.promised)
            self.promised[row.replica_id] = row.lsn
        record = _RECORD_NAMES.get(rows[-1].type, "row")
        data = xlog.encode_block(rows)
        size = len(data)
        if self._due_header:
            self._header = self._due_header
            data, self._due_header, self._header_token = self._due_header + data, b"", token
        file = self.files[-1]
        file.size += len(data)
        write = Write(token, rows, Persist(token, file.name, data, record), before, size)
        # Relays may read them at once: what they send leaves behind this record.
        self.rows.extend(rows)
        self.in_flight.append(write)
        self.in_flight_bytes += write.size
        return write

    def persisted(self, token: int) -> Write | None:
        """The oldest write in flight is on disk; None for records that are not rows (file headers)."""
        if token == self._header_token:
            self._header = b""
        if token == self._end_token:
            self._end_token = 0
        if token == self._sync_token:
            self._sync_token = 0
        if not self.in_flight or self.in_flight[0].token != token:
            assert all(write.token != token for write in self.in_flight), "disks finish in order"
            return None
        write = self.in_flight.popleft()
        self.in_flight_bytes -= write.size
        for row in write.rows:
            self.vclock[row.replica_id] = row.lsn
        return write

    def failed(self) -> list[Write]:
        """Everything in flight is lost: undo it and return it, newest first."""
        if self._sync_token:
            raise StartRefused(
                f"{self._synced_name}: it cannot be synced, so what was read may be gone after a crash"
            )
        self.failures += 1
        self._take_back_sizes()  # first: the lines below forget what was in flight
        self._due_header, self._header = self._header or self._due_header, b""
        if self._end_token:  # the old file was not ended, so it goes on
            self.files.pop()
            self._due_header = b""
            self._must_begin_file = True
        self._end_token = 0
        lost = list(reversed(self.in_flight))
        self.in_flight.clear()
        self.in_flight_bytes = 0
        del self.rows[len(self.rows) - sum(len(write.rows) for write in lost) :]
        self.promised = dict(self.vclock)
        return lost

    def _take_back_sizes(self) -> None:
        """What is in flight is in no file."""
        files = {file.name: file for file in self.files}
        for write in self.in_flight:
            files[write.persist.file].size -= len(write.persist.data)
        is_own_record = all(write.token != self._header_token for write in self.in_flight)
        if self._header and is_own_record:
            self.files[-1].size -= len(self._header)

    def last_token(self) -> int | None:
        """The token of the newest write in flight, on which the whole log depends; None if none is in flight."""
        return self.in_flight[-1].token if self.in_flight else None


def size_of(rows: Sequence[Row]) -> int:
    """Bytes of a transaction in the log."""
    return len(xlog.encode_block(rows))


def public(vclock: Mapping[int, int]) -> Vclock:
    """The part of a vclock that peers may know: without our local rows."""
    return {origin: lsn for origin, lsn in vclock.items() if origin != LOCAL}
