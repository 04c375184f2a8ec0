"""Atomic spaces: every write is one step on one key, and no transaction. Cuts do not cover them.

    near ─atomic─▶ primary ─atomic-copy─▶ backup          the backup writes its record first, then the primary,
    near ◀atomic-done─ primary ◀atomic-copied─ backup     whose readers see the value from then on

There is no prepare, no sign and no marker: these messages carry no part of a cut, and hosts do not record them for one.
A read is a transaction of one step without a lock: the near node confirms the topology before it answers.

An atomic space has at most one backup. With two, a primary that dies between its copies leaves backups that differ, and
no protocol of this store would make them equal. The one backup acknowledges on the version of the topology on which the
primary writes, so no other server was an owner in sync then. The primary cannot refuse a write that the backup has
written. A backup that leaves without an answer is not in sync any more, whether it has the write or not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nodes.steps import Step
from nodes.twophase.agreed import Agreed
from nodes.twophase.evaluation import Impossible, Mismatch, evaluated
from nodes.twophase.preparing import TOPOLOGY_CHANGED, Preparing
from nodes.twophase.stock import Send, Stock


@dataclass(eq=False, slots=True)
class Write:
    """A write that the primary has begun: `row` is [space, key, value, version], `backup` (name, life) or None."""

    near: str
    xid: str
    row: list[Any]
    result: object
    backup: tuple[str, int] | None


class Atomic:
    def __init__(
        self, stock: Stock, agreed: Agreed, preparing: Preparing, send: Send, settled: Callable[[], None]
    ) -> None:
        """`settled` is called when a write has ended on this node."""
        self._stock = stock
        self._agreed = agreed
        self._preparing = preparing
        self._send = send
        self._settled = settled
        self._copying: dict[str, Write] = {}
        """Xid → the write that waits for its backup."""
        self._granted: deque[tuple[str, int, str, int, Step]] = deque()
        self._is_working = False

    # ---- the primary

    def take(self, near: str, life: int, xid: str, version: int, step: Step) -> None:
        """Queue a write: writes of one key are done one after the other."""
        place = (step[1], step[2])

        def granted() -> None:
            self._granted.append((near, life, xid, version, step))
            self._work()

        self._stock.locks.acquire(place, xid, granted)

    def _work(self) -> None:
        """Do the queued writes in a loop, not by recursion: a thousand in a row may be refused."""
        while self._granted and not self._is_working:
            self._is_working = True
            self._do(*self._granted.popleft())
            self._is_working = False

    def _do(self, near: str, life: int, xid: str, version: int, step: Step) -> None:
        stock, place = self._stock, (step[1], step[2])
        why = self._preparing.refusal(near, life, version, xid, place)
        if why:
            return self._end(near, xid, "fail", why)
        old, last = stock.data.get(place)
        try:
            done = evaluated(step, old)
        except Impossible as error:
            return self._end(near, xid, "fail", str(error))
        if isinstance(done, Mismatch):
            return self._end(near, xid, "mismatch", done.found)
        result, value = done
        row = [*place, value, last + 1]
        backups = [owner for owner in self._agreed.in_sync[stock.partition(row)] if owner != stock.site.name]
        assert len(backups) <= 1, f"an atomic space has at most one backup, not {backups}"
        stock.moving[xid] = stock.partition(row)
        backup = (backups[0], self._agreed.life_of(backups[0])) if backups else None
        write = Write(near, xid, row, result, backup)
        if backup is None:
            return self._write(write)
        self._copying[xid] = write
        return self._send(backup[0], "atomic-copy", [xid, version, row])

    def take_copied(self, xid: str, ok: bool, why: str) -> None:
        write = self._copying.pop(xid, None)
        if write is not None and ok:
            self._write(write)
        elif write is not None:
            self._end(write.near, xid, "fail", why)

    def _write(self, write: Write) -> None:
        def on_disk() -> None:
            self._stock.data.apply([write.row])
            self._end(write.near, write.xid, "ok", write.result)

        self._stock.wal.append(["atomic", write.xid, write.row], on_disk)

    def _end(self, near: str, xid: str, how: str, result: object) -> None:
        self._stock.moving.pop(xid, None)  # before `_settled`, which may send a copy of the partition
        self._send(near, "atomic-done", [xid, how, result])
        self._stock.locks.release(xid)
        self._settled()

    def left(self, node: str, life: int) -> None:
        """A backup that has left is not in sync any more: the primary is the last owner, and its writes count."""
        for write in [copying for copying in self._copying.values() if copying.backup == (node, life)]:
            del self._copying[write.xid]
            self._write(write)

    # ---- the backup

    def take_copy(self, primary: str, xid: str, version: int, row: list[Any]) -> None:
        if version < self._agreed.version:
            return self._send(primary, "atomic-copied", [xid, False, TOPOLOGY_CHANGED])
        self._stock.wal.append(["atomic", xid, row])
        self._stock.data.apply([row])  # as the next primary we count on from it
        return self._send(primary, "atomic-copied", [xid, True, ""])  # it leaves behind the record
