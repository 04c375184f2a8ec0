"""The receiving side of replication: one applier for each peer, which subscribes to it and follows.

| state | until |
|---|---|
| off | the next beat, which asks for a connection |
| connecting | the connection stands (then SUBSCRIBE is sent, or VOTE if we have to join) or fails |
| asking | the peer's ballot has come: it is joined, or left |
| joining | all data has come; then the node begins anew with it |
| subscribing | the peer says that rows follow |
| following | the link ends, or is silent for four replication timeouts |
| stopped | the node starts anew: the peer's history contradicts ours, and `message` says how |

Rows come in whole transactions, possibly spread over several messages; a transaction that we have already (from
another peer) is dropped as a whole. Behind a ROLLBACK or PROMOTE that is still on its way to the disk nothing is
taken in: it would be discarded with what the ROLLBACK discards. Nothing is taken in either while more bytes than
`wal_queue_max_size` are on their way to the disk. Until then, whole transactions wait in `backlog`, CONFIRMs among
them: Tarantool's applier waits for the journal, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from nodes.iproto.messages import Row
from nodes.iproto.transactions import flaw_of
from nodes.iproto.xlog import Meta
from nodes.kernel.events import Instant
from nodes.kernel.vclock import Vclock

State = Literal["off", "connecting", "asking", "joining", "subscribing", "following", "stopped"]


@dataclass(slots=True, eq=False)
class Applier:
    """The state of one peer that this node follows, or tries to follow."""

    peer: str
    peer_id: int
    """The member's id; 0 as long as the node that answers there is not a member."""
    answered_id: int = 0
    """The id that it gave itself when it answered."""
    state: State = "off"
    link: int = -1
    """-1: none."""
    heard_ns: int = 0
    """When the last message came, by the monotonic clock."""
    lag_s: float = 0.0
    """How long after it was written the last row or heartbeat came, by the wall clocks of two nodes."""
    message: str = ""
    """Why it is stopped."""
    last_error: str = ""
    """Why the last connection ended or did not come about."""
    knows_marks: bool = True
    """The peer reads in a PROMOTE's flags when it takes effect."""
    told: tuple[Vclock, int, int] | None = None
    """The last acknowledgement on this link: the vclock, the term, and how often records had been lost by then."""
    partial: list[Row] = field(default_factory=list)
    """Rows of a transaction whose last row has not come."""
    backlog: deque[tuple[Row, ...]] = field(default_factory=deque)

    def note_lag(self, timestamp: float, now: Instant) -> None:
        """Something came that was written then, in seconds since 1970; 0: it does not say when."""
        if timestamp:
            self.lag_s = now.wall_ns / 1e9 - timestamp

    def turn_off(self) -> None:
        self.state = "stopped" if self.message else "off"
        self.link, self.told = -1, None
        self.answered_id = 0  # the next node that answers may be a different one, and own a different id
        self.partial.clear()
        self.backlog.clear()

    def transactions(self, rows: Iterable[Row]) -> Iterator[tuple[Row, ...]]:
        """Whole transactions out of rows, in order; an unfinished one is kept for the next message."""
        for row in rows:
            self.partial.append(row)
            if row.is_commit:
                whole, self.partial = tuple(self.partial), []
                yield whole


def is_known(rows: tuple[Row, ...], promised: Mapping[int, int]) -> bool:
    """True if this transaction is written, or being written. `promised`: the vclock of both."""
    return rows[-1].lsn <= promised.get(rows[-1].replica_id, 0)


def misfit(rows: tuple[Row, ...], promised: Mapping[int, int]) -> str | None:
    """Why these rows cannot be written, in words; None if they are one transaction, and follow directly on ours."""
    expected = promised.get(rows[0].replica_id, 0) + 1
    if rows[0].lsn != expected:
        return f"expected lsn {expected} of replica {rows[0].replica_id}, got {rows[0].lsn}"
    # With such a flaw in its log this node could not start again.
    flaw = flaw_of(rows, Meta("XLOG", "", "", promised, None)) if len(rows) > 1 else None
    return None if flaw is None else flaw.sentence
