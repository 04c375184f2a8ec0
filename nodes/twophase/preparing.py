"""The beginning of a transaction at one participant: locks and values, and the two kinds of prepare.

    near ─prepare─▶ primary ─backup-prepare─▶ backups          each writes PREPARED to its log
    near ◀prepared─ primary ◀backup-prepared─ backups

In one phase the backup commits at once, then the primary, and `prepared` reports the commit.

A prepare is refused if the topology on which it was mapped is older than this node's, or if its near node is not a
member: this node may already have reported to recovery that the transaction is not prepared here. A prepare of a newer
topology waits (`dispatch.py`).

A read without a lock shows the old value of a key while a write of it is prepared: no client has seen the new one
before the primary has committed. A server that has started again, or a backup that is now the primary, cannot assume
that of a prepared write (`Stock.handed_down`): the near node may have answered "ok" when the former primary left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodes.twophase.agreed import Agreed
from nodes.twophase.cuts import Cuts
from nodes.twophase.data import GUARD, Place, partition_of
from nodes.twophase.finishing import Finishing
from nodes.twophase.sometimes import CONFLICT, HANDED_DOWN, OLD_TOPOLOGY
from nodes.twophase.states import State
from nodes.twophase.stock import Local, Participants, Send, Stock

TOPOLOGY_CHANGED = "topology changed"
COPIED = "the partition is being copied"


class Preparing:
    def __init__(self, stock: Stock, agreed: Agreed, cuts: Cuts, finishing: Finishing, send: Send) -> None:
        self._stock = stock
        self._agreed = agreed
        self._cuts = cuts
        self._finishing = finishing
        self._send = send
        self.copying: set[int] = set()
        """Partitions that are being copied in full: no transaction prepares there."""

    def _refusal(self, near: str, near_life: int, version: int, xid: str) -> str:
        if version < self._agreed.version:
            self._stock.site.sometimes.note(OLD_TOPOLOGY)
            return TOPOLOGY_CHANGED
        if not self._agreed.is_member(near, near_life):
            return "the near node has left"
        local = self._stock.locals.get(xid)
        is_over = local is not None and local.commits is not None
        if is_over or xid in self._stock.closing or xid in self._stock.outcomes:
            return "rolled back already"  # by the near node or a primary, whose other message comes later
        return ""

    def refusal(self, near: str, life: int, version: int, xid: str, place: Place) -> str:
        """Why this key of an atomic space cannot be written now; "": it can."""
        why = self._refusal(near, life, version, xid)
        if not why and not self._is_ours(place):
            why = TOPOLOGY_CHANGED
        if not why and partition_of(place, self._stock.site.configuration.partitions) in self.copying:
            why = COPIED
        return why

    def _is_ours(self, place: Sequence[Any]) -> bool:
        partition = partition_of((place[0], place[1]), self._stock.site.configuration.partitions)
        return self._agreed.primary(partition) == self._stock.site.name

    def take_lock(
        self, near: str, life: int, xid: str, version: int, space: str, key: Any, mode: str
    ) -> None:
        """Answer with value and version: when the transaction has the lock (`mode` "lock"), or at once ("read"). If a
        write of the key was handed down to this node, a read waits until that write has ended."""
        why = self._refusal(near, life, version, xid)
        if not why and not self._is_ours((space, key)):
            why = TOPOLOGY_CHANGED
        if why:
            return self._send(near, "refused", [xid, why])
        stock, place = self._stock, (space, key)

        def answer() -> None:
            self._send(near, "locked", [xid, space, key, *stock.data.get(place)])

        if mode == "read":
            earlier = stock.handed_down(place)
            if earlier is None:
                return answer()
            stock.site.sometimes.note(HANDED_DOWN)
            return earlier.readers.append(lambda: self.take_lock(near, life, xid, version, space, key, mode))
        stock.locals.setdefault(xid, Local(xid, near, life, version))
        return stock.locks.acquire(place, xid, answer)

    def take_prepare(
        self,
        near: str,
        life: int,
        xid: str,
        version: int,
        one_phase: bool,
        participants: Participants,
        reads: Sequence[Sequence[Any]],
        writes: Sequence[Sequence[Any]],
        guards: Sequence[Sequence[Any]],
    ) -> None:
        """`reads`: [space, key, version], to be validated; `writes`: [space, key, value]; `guards`: [space, key]."""
        stock = self._stock
        local = stock.locals.setdefault(xid, Local(xid, near, life, version))
        why = self._refusal(near, life, version, xid) or self._obstacle(xid, reads, [*writes, *guards])
        # A refused prepare may keep locks, and `local` with it: the near node's rollback releases them.
        if why:
            return self._send(near, "prepared", [xid, False, why, None])
        local.is_primary = True
        if not writes and not guards:
            return self._send(near, "prepared", [xid, True, "", None])
        local.one_phase, local.participants = one_phase, participants
        versioned = [[*write, stock.data.get((write[0], write[1]))[1] + 1] for write in writes]
        versioned += [[*place, None, GUARD] for place in guards]
        self._note_writes(local, versioned)
        for_backups: dict[str, list[list[Any]]] = {}
        for write in versioned:
            for owner in self._agreed.in_sync[stock.partition(write)]:
                if owner != stock.site.name:
                    for_backups.setdefault(owner, []).append(write)
        local.backups = [(backup, self._agreed.life_of(backup)) for backup in for_backups]
        local.unanswered = list(for_backups)
        if one_phase and not for_backups:
            local.answers.append((near, life, "prepared", [xid, True, "", None]))
            return self._finishing.finish(local, True, self._first_sign())
        self._write_prepared(local, versioned, lambda: self._answer_if_prepared(local))
        for backup, its_writes in for_backups.items():
            payload = [xid, version, near, life, one_phase, participants, its_writes]
            self._send(backup, "backup-prepare", payload)
        return None

    def _obstacle(self, xid: str, reads: Sequence[Sequence[Any]], writes: Sequence[Sequence[Any]]) -> str:
        stock = self._stock
        if not all(self._is_ours(place) for place in (*reads, *writes)):
            return TOPOLOGY_CHANGED
        if self._agreed.barrier is not None and writes:
            return "a base snapshot is being taken"
        if any(stock.partition(write) in self.copying for write in writes):
            return COPIED
        if not all(stock.locks.take((place[0], place[1]), xid) for place in (*reads, *writes)):
            stock.site.sometimes.note(CONFLICT)
            return "conflict"
        if any(stock.data.get((space, key))[1] != version for space, key, version in reads):
            stock.site.sometimes.note(CONFLICT)
            return "conflict"
        return ""

    def _first_sign(self) -> object:
        return self._stock.site.decisions.sign_of_one_phase(self._cuts.sign())

    def _note_writes(self, local: Local, writes: Sequence[list[Any]]) -> None:
        if local.state is State.ACTIVE:
            local.change(State.PREPARING)
        local.writes += writes
        for write in writes:
            self._stock.locks.hold((write[0], write[1]), local.xid)

    def _write_prepared(self, local: Local, writes: Sequence[list[Any]], then: Any) -> None:
        local.unwritten += 1
        local.prepared += sorted({self._stock.partition(write) for write in writes})
        record = ["prepared", local.xid, local.near, local.near_life, local.version, local.one_phase]

        def on_disk() -> None:
            local.unwritten -= 1
            then()

        self._stock.wal.append([*record, local.participants, list(writes)], on_disk)

    def _answer_if_prepared(self, local: Local) -> None:
        """Answer the near node, at the primary: when the record is on disk and all backups have answered."""
        if local.unwritten or local.unanswered or local.refusal or local.commits is not None:
            return
        if local.state is State.PREPARING:
            local.change(State.PREPARED)
        if local.is_primary and not local.one_phase:
            self._send(local.near, "prepared", [local.xid, True, "", None])

    # ---- the backup

    def take_backup_prepare(
        self,
        primary: str,
        life: int,
        xid: str,
        version: int,
        near: str,
        near_life: int,
        one_phase: bool,
        participants: Participants,
        writes: Sequence[list[Any]],
    ) -> None:
        stock, why = self._stock, self._refusal(near, near_life, version, xid)
        if why:
            return self._send(primary, "backup-prepared", [xid, False, why, None])
        local = stock.locals.setdefault(xid, Local(xid, near, near_life, version))
        local.one_phase, local.participants = one_phase, participants
        local.primaries.append((primary, life))
        self._note_writes(local, writes)
        # In one phase the backup commits before the primary: its record decides, and its sign counts.
        if one_phase:
            sign = self._first_sign()
            local.answers.append((primary, life, "backup-prepared", [xid, True, "", sign]))
            return self._finishing.finish(local, True, sign)
        self._write_prepared(local, writes, lambda: self._answer_if_prepared(local))
        # At once: the answer stands behind the record in the queue of effects, and leaves when that is on disk.
        return self._send(primary, "backup-prepared", [xid, True, "", None])

    def take_backup_prepared(self, backup: str, xid: str, ok: bool, why: str, sign: object) -> None:
        local = self._stock.locals.get(xid)
        if local is None or local.commits is not None or backup not in local.unanswered:
            return
        local.unanswered.remove(backup)
        if not ok:
            self._refuse(local, why)
        elif local.one_phase:
            received = self._stock.site.decisions.sign_of_commit(sign, self._cuts.sign())
            local.answers.append((local.near, local.near_life, "prepared", [xid, True, "", received]))
            self._finishing.finish(local, True, received)
        else:
            self._answer_if_prepared(local)

    def _refuse(self, local: Local, why: str) -> None:
        """Refuse a prepare: the near node rolls it back everywhere. If it has left, a one-phase commit ends here."""
        if not local.refusal:
            local.refusal = why
            if self._agreed.is_member(local.near, local.near_life):
                self._send(local.near, "prepared", [local.xid, False, why, None])
            elif local.one_phase:
                self._finishing.finish(local, False)

    # ---- the topology

    def left(self, node: str, life: int) -> list[Local]:
        """Returns the prepared transactions that have lost their near node, or the primary for its finish."""
        in_doubt = []
        for local in list(self._stock.locals.values()):
            if node in local.unanswered and (node, life) in local.backups:
                local.unanswered.remove(node)
                if local.one_phase:  # we are the last owner in sync: what we do counts
                    sign = self._first_sign()
                    local.answers.append(
                        (local.near, local.near_life, "prepared", [local.xid, True, "", sign])
                    )
                    self._finishing.finish(local, True, sign)
                else:
                    self._refuse(local, f"the backup {node} left")
            if local.commits is not None:
                continue
            if (local.near, local.near_life) != (node, life):
                if (node, life) in local.primaries:
                    in_doubt.append(local)
                continue
            if not local.writes:
                self._stock.locks.release(local.xid)
                del self._stock.locals[local.xid]
            elif local.one_phase and local.is_primary:
                if local.refusal:
                    self._finishing.finish(local, False)
            else:
                in_doubt.append(local)
        return in_doubt
