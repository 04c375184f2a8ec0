"""Parts of logs, and whole files, as a simulated node wrote them: rows without their contents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from checkers.logs.wal.effects import RowLine
from harness.systems.qsync.log_reader import FLAGS_SINCE
from harness.systems.qsync.log_rows import Definitions, is_no_data, line_of, member_of, state_in
from nodes.iproto import xlog
from nodes.iproto.errors import XlogError
from nodes.iproto.messages import Row
from nodes.iproto.recurring import Recurring
from nodes.iproto.rows import rows_of


@dataclass(frozen=True, slots=True)
class Block:
    """The rows of a part of a log; or a snapshot, with its vclock in `begins` and its state in the fields below."""

    rows: tuple[RowLine, ...] = ()
    begins: Mapping[int, int] | None = None
    term: int = 0
    vote: int = 0
    owner: int = 0
    queue_term: int = 0
    confirmed: Mapping[int, int] = field(default_factory=dict)
    members: tuple[int, ...] = ()


class BlockReader:
    """Reads blocks of logs, and whole files, as they were written: one version of nodes at a time."""

    def __init__(self) -> None:
        self._definitions = Definitions()
        self._snapshots = Recurring(is_no_data)
        self._has_flags = True

    def read(self, data: bytes) -> Block:
        """`data`: blocks, with the header of their file or without; or a snapshot. Raises XlogError."""
        if not data.startswith((b"XLOG", b"SNAP")):
            return self._block(xlog.rows_in(data))
        file = xlog.decode(data, self._snapshots if data.startswith(b"SNAP") else rows_of)
        if file.meta is None or file.damage is not None:
            raise XlogError(file.damage or "there is no header")
        if file.meta.kind == "XLOG":
            self._has_flags = file.meta.version >= FLAGS_SINCE
            return self._block(file.rows)
        self._definitions.take_all(file.rows)
        begins = {origin: lsn for origin, lsn in file.meta.vclock.items() if origin}
        members = tuple(sorted(member for row in file.rows if (member := member_of(row))))
        return Block(begins=begins, members=members, **state_in(file.rows))

    def _block(self, rows: Sequence[Row]) -> Block:
        self._definitions.take_all(rows)
        spaces = None if self._has_flags else self._definitions.synchronous_spaces
        lines = (line_of(row, spaces) for row in rows)
        return Block(tuple(line for line in lines if line is not None))
