"""Reads a log when a node starts: whole transactions, the last term and vote, and the meaning of each PROMOTE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from nodes.iproto.messages import Row, Type
from nodes.kernel.effects import Effect, Log
from nodes.qsync.applier import Applier
from nodes.qsync.configuration import Configuration
from nodes.qsync.filter import number
from nodes.qsync.journal import Journal, Recovered
from nodes.qsync.unmarked import marked


def with_marks(
    recovered: Recovered, journal: Journal, configuration: Configuration, out: list[Effect]
) -> Recovered:
    """The recovered data with a mark on every PROMOTE; the journal's rows, which relays send, are marked too."""
    rows, said = journal.rows, configuration.unmarked_promote
    read_as = {(row.replica_id, row.lsn): row for row in marked(rows, recovered.snapshot, said)}
    if not read_as:
        return recovered
    journal.rows[:] = [read_as.get((row.replica_id, row.lsn), row) for row in rows]
    for row in read_as.values():
        fields = {"origin": row.replica_id, "lsn": row.lsn, "waits": row.wait_ack}
        out.append(Log("info", "a PROMOTE without a mark was read by what follows it", fields))
    ahead = tuple(read_as.get((row.replica_id, row.lsn), row) for row in recovered.rows)
    return replace(recovered, rows=ahead)


def vote_of(rows: Iterable[Row]) -> tuple[int, int]:
    """The newest term and vote in the rows."""
    term = vote = 0
    for row in rows:
        if row.type == Type.RAFT:
            term, vote = number(row, 0), number(row, 1)
    return term, vote


def transactions(rows: Iterable[Row]) -> Iterator[tuple[Row, ...]]:
    """The rows of a log as transactions."""
    return Applier("the log", 0).transactions(rows)
