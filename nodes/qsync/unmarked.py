"""The meaning of a PROMOTE or DEMOTE without a mark when it was written.

A row says when it takes effect, so that every reader treats it alike, whatever its options are:

| flags of the row | it takes effect |
|---|---|
| WAIT_SYNC and WAIT_ACK | with the CONFIRM that covers its own lsn: it waits for a quorum in its term |
| WAIT_SYNC alone | when it is written |
| none: *unmarked* | unknown: real Tarantool wrote it (then at once), or an older version of these nodes |

Tarantool's decoders take any flags. The log behind an unmarked row gives its meaning, by the first of these that comes
(P is the row, by `origin`, about the entries of `owner` up to `lsn`):

| behind it | P |
|---|---|
| CONFIRM by its origin of its own lsn | waited, and took effect then |
| PROMOTE, DEMOTE that stands on it: it names P's origin, and P's own lsn | waited |
| … that names P's origin, where P's owner is a different node | took effect at once |
| … that names P's owner, a different node: for its writer P was not in effect | waited, and had no effect |
| … that names P's origin, where that is P's owner too, and an lsn below P's | waited, and had no effect |
| … the same, and no lsn below P's: P means the same both ways | took effect at once |
| any other row of its origin: P's term was begun | took effect at once |
| the end of the log | undecided: `StartRefused`, unless `unmarked_promote` is set |

Where the log is undecided, a snapshot behind P decides: P took effect at once if the snapshot's queue has P's term or a
later one, else P waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from nodes.iproto.messages import Key, Row, Type
from nodes.kernel.errors import StartRefused
from nodes.qsync.filter import Promotion, number
from nodes.qsync.snapshot import Snapshot

Meaning = Literal["waits", "at once"]


def is_unmarked(row: Row) -> bool:
    return row.type in (Type.PROMOTE, Type.DEMOTE) and not row.wait_sync


def marked(rows: Sequence[Row], snapshot: Snapshot | None, said: Meaning | None) -> Iterator[Row]:
    """The unmarked rows of a log, each with its mark.

    `rows` are all rows of a log, `snapshot` is the newest one (its rows may be among them), `said` is the option
    `unmarked_promote`. Raises StartRefused for a row that can mean both, if `said` is None.
    """
    for place, row in enumerate(rows):
        if is_unmarked(row):
            meaning = _meaning(row, rows[place + 1 :]) or _by_snapshot(row, snapshot) or said
            if meaning is None:
                raise StartRefused(
                    f"the {Type(row.type).name} {row.replica_id}/{row.lsn} was written by a version that did not say "
                    "whether it waits for a quorum, and nothing behind it tells: set unmarked_promote to 'waits' "
                    "(it was written with elections and synchronous PROMOTE) or 'at once' (anything else)"
                )
            yield replace(row, wait_sync=True, wait_ack=meaning == "waits")


def _meaning(row: Row, behind: Iterable[Row]) -> Meaning | None:
    promotion = Promotion.of_row(row)
    for later in behind:
        if later.type in (Type.PROMOTE, Type.DEMOTE):
            owner, lsn = number(later, Key.REPLICA_ID), number(later, Key.LSN)
            if owner == promotion.origin and lsn == promotion.row_lsn:
                return "waits"
            if owner == promotion.origin != promotion.old_owner:
                return "at once"
            if owner == promotion.old_owner:
                # One that promotes itself again: both readings decide the same, unless this row wants less than it.
                return "at once" if owner == promotion.origin and lsn >= promotion.lsn else "waits"
        if later.replica_id == promotion.origin:
            is_its_confirm = later.type == Type.CONFIRM and number(later, Key.LSN) == promotion.row_lsn
            return "waits" if is_its_confirm else "at once"
    return None


def _by_snapshot(row: Row, snapshot: Snapshot | None) -> Meaning | None:
    """The meaning of a row by a snapshot behind it, where the log does not decide."""
    if snapshot is None or snapshot.vclock.get(row.replica_id, 0) < row.lsn:
        return None
    return "at once" if snapshot.queue.term >= number(row, Key.TERM) else "waits"
