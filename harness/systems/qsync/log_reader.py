"""The rows of xlog and snap files as the records that `checkers.logs.wal` audits: how one log is read.

From Tarantool 2.10 on a row's flags say whether it is synchronous. In older logs the options of its space do; they
stand in the log and the snapshot as rows of `_space`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_

import msgspec

from checkers.logs.wal.record import Record, Snapshot
from harness.systems.qsync.log_rows import (
    Definitions,
    data_of,
    first_field,
    is_beyond,
    is_defining,
    is_needed,
    record_of,
    state_in,
)
from nodes.iproto import xlog
from nodes.iproto.errors import XlogError
from nodes.iproto.messages import Row
from nodes.iproto.recurring import Recurring
from nodes.iproto.rows import rows_of
from nodes.iproto.transactions import Flaw, flaw_in
from nodes.kernel.vclock import covers, text

Tuples = Mapping[tuple[int, object], tuple[object, ...]]
"""(space, first part of the key) → tuple."""
FLAGS_SINCE = (2, 10)


class LogReader:
    """Reads the log of one node: `learn` its snapshots, then `read` its files, oldest first; then `taken` has all.

    Whatever is wrong with a file becomes a sentence in `damage` or `unread`, and the reading goes on. The rows become
    objects here. `log_columns` overrides `_decoded`, `_flaw_in`, `_tuples`, `_take` and `_forget`: columns.
    """

    def __init__(self, shared: Shared | None = None) -> None:
        self._shared = Shared() if shared is None else shared
        self.records: list[Record] = []
        self.begins: Mapping[int, int] | None = None
        """The vclock at which the files begin that have no gap between them; None before the first one."""
        self.vclock: dict[int, int] = {}
        """Up to which lsn the rows of each origin were read."""
        self.snapshot: Mapping[int, int] = {}
        """The vclock of the newest snapshot."""
        self.damage: list[str] = []
        """A sentence for each thing that no crash leaves in a log."""
        self.unread: list[str] = []
        """A sentence for each snapshot that is damaged."""
        self.headers: dict[str, xlog.Meta] = {}
        """File name → header, of the files that could be read."""
        self.has_flags = True
        """All rows have flags, which say whether they are synchronous."""
        self.definitions = Definitions()
        self.snapshots: list[Snapshot] = []
        self.instance = ""
        """The UUID of the node, by the last header that was read."""
        self._learnt: list[Row] = []
        """The definitions in the snapshot that was learnt last."""

    def learn(self, name: str, load: Callable[[], bytes]) -> None:
        """Read a snapshot: its definitions, its vclock, its tuples and its state. Damage goes into `unread`."""
        try:
            snapshot = xlog.decode(load(), self._shared.snapshots)
        except (XlogError, OSError) as error:
            self.unread.append(f"{name}: {error}")
            return
        defining = [row for row in snapshot.rows if is_defining(row.body)]
        if len(defining) != len(self._learnt) or not all(map(is_, defining, self._learnt)):
            self.definitions.take_all(defining)
            self._learnt = defining
        if snapshot.meta is not None and is_beyond(snapshot.meta.vclock):
            self.unread.append(
                f"{name}: its vclock {text(snapshot.meta.vclock)} names what no store counts to"
            )
            return
        if snapshot.meta is None or snapshot.damage is not None or not snapshot.finished:
            self.unread.append(f"{name}: {snapshot.damage or 'there is no end marker'}")
            return
        self.headers[name] = snapshot.meta
        self.instance = snapshot.meta.instance_uuid
        self.snapshot = snapshot.meta.vclock
        if any(snapshot.meta.vclock.values()):
            tuples = self._tuples(snapshot.rows, load)
            state = state_in(snapshot.rows)
            self.snapshots.append(Snapshot(place=name, vclock=snapshot.meta.vclock, tuples=tuples, **state))

    def _tuples(self, rows: Sequence[Row], load: Callable[[], bytes]) -> Tuples:
        """The users' tuples in a snapshot with these rows; `load` gives its bytes."""
        pairs = (pair for row in rows if (pair := data_of(row)) is not None)
        return {(space, first_field(values)): values for space, values in pairs}

    def read(self, name: str, load: Callable[[], bytes], *, is_last: bool) -> None:
        """Read the next log file, which `load` gives. An OSError of it goes on to the caller."""
        data = load()
        try:
            log = self._decoded(data)
        except XlogError as error:
            self.damage.append(f"{name}: {error}")
            return
        meta = log.meta
        if meta is None:
            if not is_last:
                self.damage.append(f"{name}: {log.damage}")
            return
        if is_beyond(meta.vclock):
            self.damage.append(f"{name}: its vclock {text(meta.vclock)} names what no store counts to")
            return
        if self.begins is None or self._is_behind_a_gap(meta.vclock):
            self.begins, self.vclock = meta.vclock, dict(meta.vclock)
            self._forget()
        elif not covers(self.vclock, meta.vclock):
            before, after = text(self.vclock), text(meta.vclock)
            self.damage.append(f"{name}: begins at {after}, but the log before it ends at {before}")
        # The torn end of a file is what a kill leaves: it was never acknowledged, and the next file does not count it.
        if log.damage is not None and not xlog.is_torn(data, log):
            self.damage.append(f"{name}: {log.damage}, which no crash leaves")
        flaw = self._flaw_in(log)
        if flaw is not None:
            self.damage.append(f"{name}: {flaw.sentence}")
            log = replace(log, rows=log.rows[: flaw.good])
        self.headers[name] = meta
        self.instance = meta.instance_uuid
        has_flags = meta.version >= FLAGS_SINCE
        self.has_flags = self.has_flags and has_flags
        self._take(name, log, load, has_flags=has_flags)

    def _flaw_in(self, log: xlog.Xlog[LogRow]) -> Flaw | None:
        return flaw_in(log)

    def _decoded(self, data: bytes) -> xlog.Xlog[LogRow]:
        return xlog.decode(data, self._shared.blocks)

    def _forget(self) -> None:
        """Drop the records of all files before the one that was decoded last."""
        self.records.clear()

    def _take(self, name: str, log: xlog.Xlog[LogRow], load: Callable[[], bytes], *, has_flags: bool) -> None:
        """`load` gives the bytes of the file once more."""
        for number, row in enumerate(log.rows, start=1):
            self._pass(row)
            if row.record is not None:
                # Shared with the logs of other nodes: a row that stands at the same place there is not copied again.
                record = row.record = _placed(row.record, name, number)
                self.records.append(record if has_flags else self._by_spaces(record))

    def _pass(self, row: LogRow) -> None:
        self.vclock[row.replica_id] = max(row.lsn, self.vclock.get(row.replica_id, 0))
        if row.definition is not None:
            self.definitions.take(row.definition)

    def taken(self) -> Sequence[Record]:
        """All records."""
        return tuple(self.records)

    def _is_behind_a_gap(self, vclock: Mapping[int, int]) -> bool:
        """A log is missing, and the snapshot has its rows. Older logs could not be removed, and do not count."""
        return not covers(self.vclock, vclock) and covers(self.snapshot, vclock)

    def comparable(self) -> tuple[Snapshot, ...]:
        """The snapshots, with the spaces whose tuples do not follow from rows alone."""
        left_out = frozenset(self.definitions.not_comparable)
        return tuple(replace(snapshot, left_out=left_out) for snapshot in self.snapshots)

    def _by_spaces(self, record: Record) -> Record:
        """The record, synchronous if its space is: rows of its version have no flags."""
        is_synchronous = record.kind == "write" and record.space in self.definitions.synchronous_spaces
        return msgspec.structs.replace(record, is_synchronous=is_synchronous)


@dataclass(slots=True)
class LogRow:
    """A row: its numbers, itself if it defines something, its record if it is about data or the queue."""

    type: int
    replica_id: int
    lsn: int
    tsn: int
    is_commit: bool
    group_id: int
    definition: Row | None
    record: Record | None


class Shared:
    """The common parts of all nodes' logs: blocks, and the first rows of snapshots."""

    def __init__(self) -> None:
        self.snapshots: xlog.Unpacks[Row] = Recurring(is_needed)
        self._blocks: dict[bytes, tuple[LogRow, ...]] = {}

    def reader(self) -> LogReader:
        """Reads the log of the next node."""
        return LogReader(self)

    def blocks(self, payload: bytes) -> tuple[LogRow, ...]:
        """The rows of a block. Most blocks are in the log of every node, and are read once. Raises MalformedFrame."""
        known = self._blocks.get(payload)
        if known is None:
            known = self._blocks[payload] = read_block(payload)
        return known


def read_block(payload: bytes) -> tuple[LogRow, ...]:
    """The rows of a block. Raises MalformedFrame."""
    return tuple(map(_read_row, rows_of(payload)))


def records_of(name: str, data: bytes) -> list[Record]:
    """The records of one xlog file of a version that has flags. Raises XlogError."""
    rows = enumerate(xlog.decode(data, read_block).rows, start=1)
    return [_placed(row.record, name, number) for number, row in rows if row.record is not None]


def _read_row(row: Row) -> LogRow:
    definition = row if is_defining(row.body) else None
    numbers = row.type, row.replica_id, row.lsn, row.tsn, row.is_commit, row.group_id
    return LogRow(*numbers, definition, record_of(row))


def _placed(record: Record, file: str, number: int) -> Record:
    """The record with its place: the same object in all logs where it stands at the same place."""
    if record.row == number and record.file == file:
        return record
    return msgspec.structs.replace(record, file=file, row=number)
