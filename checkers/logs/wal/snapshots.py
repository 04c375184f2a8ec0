"""The rules about snapshots: they hold the result of the logs, and lose nothing of it.

The log before a snapshot may be removed. So a restart forgets what the snapshot does not say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy

from checkers.history.values import value_words, vclock_words
from checkers.logs.wal.breaches import Breach, Part, about_few_rows, text, witness
from checkers.logs.wal.cells import UNKNOWN, Cells
from checkers.logs.wal.columns import PROMOTE, VOTE, WRITE, Rows
from checkers.logs.wal.nodes import Logs, Node, by_origin, last_lsns
from checkers.logs.wal.record import NodeLog, Place, Record, Snapshot, Tuple
from checkers.logs.wal.replay_kernels import COMMITTED, CONFIRMED, PENDING
from checkers.logs.wal.row_kernels import SYNCHRONOUS

Array = Any  # numpy's
_AT_ONCE: Final = 1 << 14
"""Rows that are compared at once with the vclock of a snapshot."""


@about_few_rows
def snapshot_differs(logs: Logs) -> Iterator[Breach]:
    """Each snapshot is compared with the node's own log, the newest one and one that came by a join with all logs."""
    if not any(node.log.snapshots for node in logs.nodes):
        return
    cells = logs.rows.cells()
    followed = [_Followed(node, cells) for node in logs.nodes]
    for log in followed:
        own: dict[str, Breach | None] = {}
        for snapshot in log.on_the_way():
            own[snapshot.place] = log.difference(log, snapshot, log.state)
        for snapshot in log.log.snapshots:
            breach = own.get(snapshot.place)
            if breach is None and (snapshot.place not in own or snapshot is log.log.snapshots[-1]):
                others = (log.compared(other, snapshot) for other in followed if other is not log)
                breach = next(filter(None, others), None)
            if breach is not None:
                yield breach


@about_few_rows
def snapshot_forgets(logs: Logs) -> Iterator[Breach]:
    """A snapshot lacks the last vote of the log before it, or the lsn up to which its owner's entries are confirmed."""
    for number, node in enumerate(logs.nodes):
        log = _Followed(node, None)
        for snapshot in log.on_the_way():
            yield from log.forgotten(number, snapshot)


class _Followed:
    """A log, replayed from one snapshot to the next: with `cells` the data, too."""

    def __init__(self, node: Node, cells: Cells | None) -> None:
        self.node, self.log = node, node.log
        self._cells = cells
        self._first = next(
            (snapshot for snapshot in node.log.snapshots if dict(snapshot.vclock) == dict(node.log.begins)),
            None,
        )
        """The snapshot at which the log begins."""
        self._can_be = node.log.damage is None and (
            self._first is not None or not any(node.log.begins.values())
        )
        self._is_owned = self._first is not None and bool(self._first.owner)
        """Whether the queue has had an owner. In logs of 2.6 it has none, and later versions ignore their CONFIRMs."""
        self.state = numpy.empty(0, dtype=numpy.int64)
        if self._can_be and cells is not None:
            self.state = cells.state(self._first)
        self._vote: int | None = None
        """The place of the last vote."""
        self._confirmed: dict[int, int] = {}
        """By origin: the last synchronous transaction that is confirmed, in a queue with an owner."""

    def on_the_way(self) -> Iterator[Snapshot]:
        """Each snapshot of which the log has all rows, oldest first; those rows have then been taken."""
        if not self._can_be:
            return
        position = 0
        for snapshot in sorted(self.log.snapshots, key=lambda snapshot: sum(snapshot.vclock.values())):
            has_local = self.log.begins.get(0, 0) <= snapshot.vclock.get(0, 0)
            if has_local and self._reaches(snapshot.vclock):
                begin, position = position, self._behind(position, snapshot.vclock)
                self._take(begin, position)
                yield snapshot

    def forgotten(self, number: int, snapshot: Snapshot) -> Iterator[Breach]:
        """The votes and confirmations before the snapshot that it lacks. `number`: of the log."""
        node, owner = self.log.node, snapshot.owner
        vote = None if self._vote is None else self.node.rows.record(int(self.node.at[self._vote]))
        where = f"{node}: {snapshot.place}"
        if self._vote is not None and vote and not _has(snapshot, vote):
            said = (
                f"the snapshot of {node} has the vote {snapshot.vote} in term {snapshot.term}, and its log has "
                f"{vote.vote} in term {vote.term} before it"
            )
            yield Breach(
                (Part(number, (self._vote,)),),
                lambda rows: witness("snapshot-forgets", said, node, where, text(rows[0]), rows=rows),
            )
        confirmed = self._confirmed.get(owner, 0)
        if owner and snapshot.confirmed.get(owner, 0) < confirmed:
            lacks = (
                f"the snapshot of {node} says that the entries of replica {owner} are confirmed up to lsn "
                f"{snapshot.confirmed.get(owner, 0)}, and it holds confirmed ones up to {confirmed}"
            )
            yield Breach((), lambda: witness("snapshot-forgets", lacks, node, where))

    def compared(self, other: _Followed, snapshot: Snapshot) -> Breach | None:
        """Compares a snapshot of this log with the state of another log, if that log reaches so far."""
        state = other.state_at(snapshot.vclock)
        return None if state is None else self.difference(other, snapshot, state)

    def difference(self, other: _Followed, snapshot: Snapshot, state: Array) -> Breach | None:
        """The breach if a snapshot of this log differs from the state of `other`."""
        assert self._cells is not None
        differing = self._cells.differing(state, snapshot)
        if not differing:
            return None
        place = min(differing, key=repr)
        return Breach((), lambda: _difference(self.log, snapshot, other.log, place, *differing[place]))

    def state_at(self, vclock: Mapping[int, int]) -> Array | None:
        """The state after all rows of the log up to `vclock`; None if the log does not reach it from a known state."""
        if not self._can_be or not self._reaches(vclock):
            return None
        assert self._cells is not None
        state = self._cells.state(self._first)
        self._put(state, self.node.at[_is_until(self.node.rows, self.node.at, vclock)])
        return state

    def _reaches(self, vclock: Mapping[int, int]) -> bool:
        """Whether the log has all rows up to `vclock`, behind where it begins."""
        covers = all(lsn <= vclock.get(origin, 0) for origin, lsn in self.log.begins.items() if origin)
        end = self.node.end
        return covers and all(lsn <= end.get(origin, 0) for origin, lsn in vclock.items() if origin)

    def _behind(self, begin: int, vclock: Mapping[int, int]) -> int:
        """The first place from `begin` on of a row that is not up to `vclock`."""
        at = self.node.at
        for part in range(begin, len(at), _AT_ONCE):
            is_until = _is_until(self.node.rows, at[part : part + _AT_ONCE], vclock)
            if not is_until.all():
                return part + int((~is_until).argmax())
        return len(at)

    def _take(self, begin: int, end: int) -> None:
        node, rows, at = self.node, self.node.rows, self.node.at[begin:end]
        if self._cells is not None:
            self._put(self.state, at)
            return
        votes, promotes = (numpy.flatnonzero(node.kinds[begin:end] == kind) for kind in (VOTE, PROMOTE))
        if len(votes):
            self._vote = begin + int(votes[-1])
        owned_from = 0 if self._is_owned else int(promotes[0]) if len(promotes) else len(at)
        self._is_owned = self._is_owned or bool(len(promotes))
        chosen = at[owned_from:]
        chosen = chosen[(rows.kind[chosen] == WRITE) & (rows.bits[chosen] & SYNCHRONOUS > 0)]
        chosen = chosen[node.fates[rows.transaction[chosen]] == CONFIRMED]
        self._confirmed |= last_lsns(rows, chosen, self._confirmed)

    def _put(self, state: Array, at: Array) -> None:
        assert self._cells is not None
        fates = self.node.fates[self.node.rows.transaction[at]]
        places = self._cells.of_rows[at]
        is_put = (places >= 0) & numpy.isin(fates, (CONFIRMED, COMMITTED, PENDING))
        at, fates, places = at[is_put], fates[is_put], places[is_put]
        # Of one place the last row counts. Whether a pending row took effect is not known yet.
        state[places] = numpy.where(fates == PENDING, UNKNOWN, self._cells.contents[at])


def _has(snapshot: Snapshot, vote: Record) -> bool:
    if snapshot.term != vote.term:
        return snapshot.term > vote.term
    return vote.vote in (0, snapshot.vote)


def _difference(
    log: NodeLog, snapshot: Snapshot, other: NodeLog, place: Place, there: Tuple, here: Tuple
) -> Any:
    return witness(
        "snapshot-differs",
        f"the snapshot of {log.node} at vclock {vclock_words(snapshot.vclock)} has {value_words(here or None)} "
        f"under key {place[1]} of space {place[0]}, and the log of {other.node} came to "
        f"{value_words(there or None)}",
        log.node,
        f"{log.node}: {snapshot.place}",
        at=((origin, lsn) for origin, lsn in snapshot.vclock.items() if origin),
        how="by its own log" if log is other else "by the log of another node",
    )


def _is_until(rows: Rows, at: Array, vclock: Mapping[int, int]) -> Array:
    return rows.lsn[at] <= by_origin(rows, vclock)[rows.origin[at]]
