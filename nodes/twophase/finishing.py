"""The end of a transaction at one participant.

    finish ──▶ COMMITTING: sign taken, left `active` ──(an event of its own)──▶ record ──(on disk)──▶ COMMITTED
    finish ──▶ MARKED_ROLLBACK ──▶ record, if it was prepared ──(on disk)──▶ ROLLED_BACK

A primary passes the finish on to its backups when its own record is on disk, and answers when they have answered. Until
then it keeps the locks of a transaction that it rolls back: recovery may find that one prepared only at a backup, and
commit it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nodes.twophase.agreed import Agreed
from nodes.twophase.cuts import Cuts
from nodes.twophase.data import GUARD
from nodes.twophase.kept import UNKNOWN
from nodes.twophase.site import Then
from nodes.twophase.sometimes import ONE_PHASE, ONE_PHASE_IN_CUT, RECOVERED_COMMIT, RECOVERED_ROLLBACK
from nodes.twophase.states import State
from nodes.twophase.stock import Local, Send, Stock

TO_NEAR = "finished"
"""The answer that waits for the backups. A primary gets its answer when the backup's own record is on disk: two nodes
may be each other's backups in one transaction."""


class Finishing:
    def __init__(
        self, stock: Stock, agreed: Agreed, cuts: Cuts, send: Send, settled: Callable[[], None]
    ) -> None:
        """`settled` is called when a transaction has ended on this node."""
        self._stock = stock
        self._agreed = agreed
        self._cuts = cuts
        self._send = send
        self._settled = settled

    def finish(
        self,
        local: Local,
        commits: bool,
        sign: object = None,
        *,
        is_recovered: bool = False,
        written: Then | None = None,
    ) -> None:
        """`written` is called when the COMMITTED record is on its way to the disk: later messages leave behind it."""
        if local.commits is not None:
            assert local.commits == commits, f"{local.xid} both commits and rolls back"
            if written is not None:
                written()
            return
        site = self._stock.site
        local.commits, local.sign, local.is_recovered = commits, sign, is_recovered
        if is_recovered:
            site.sometimes.note(RECOVERED_COMMIT if commits else RECOVERED_ROLLBACK)
        local.change(State.COMMITTING if commits else State.MARKED_ROLLBACK)
        # Together with the state: a cut collects what is PREPARING or PREPARED, and this one is neither from now on.
        self._cuts.leaves_active(local)
        if commits:
            site.soon(f"commit {local.xid}", lambda: self._write(local, written))
        elif local.prepared:
            self._stock.wal.append(["rolled-back", local.xid], lambda: self._rolled_back(local))
        else:
            self._rolled_back(local)

    def _write(self, local: Local, written: Then | None) -> None:
        writes = [write for write in local.writes if write[3] != GUARD]
        record = ["committed", local.xid, local.sign, local.is_recovered, local.participants, writes]
        local.position = self._stock.wal.append(record, lambda: self._committed(local))
        if written is not None:
            written()

    def _committed(self, local: Local) -> None:
        local.change(State.COMMITTED)
        self._stock.data.apply(local.writes)
        self._stock.outcomes.note(local.xid, True, local.version)
        if local.one_phase:
            self._stock.site.sometimes.note(ONE_PHASE)
            self._stock.site.sometimes.note(ONE_PHASE_IN_CUT, self._cuts.running is not None)
        self._over(local)

    def _rolled_back(self, local: Local) -> None:
        local.change(State.ROLLED_BACK)
        self._stock.outcomes.note(local.xid, False, local.version)
        self._over(local)

    def _over(self, local: Local) -> None:
        del self._stock.locals[local.xid]
        self._stock.closing[local.xid] = local
        is_told = local.one_phase and local.commits  # such a backup has committed before us
        local.unfinished = [] if is_told else self._present(local)
        # Of a commit at once: its record is on disk. Those of a rollback go when all backups have it (`_close_if_all`).
        if local.commits:
            self._stock.locks.release(local.xid)
        self._cuts.finished(local)
        for read in local.readers:
            read()
        sign = self._stock.site.decisions.sign_in_finish(local.sign, self._cuts.sign())
        payload = [local.xid, local.commits, sign, *([True] if local.is_recovered else ())]
        for peer, _ in local.unfinished:
            self._send(peer, "backup-finish", payload)
        self._answer(local, [answer for answer in local.answers if answer[2] != TO_NEAR])
        self._close_if_all(local)

    def _present(self, local: Local) -> list[tuple[str, int]]:
        return [backup for backup in local.backups if self._agreed.is_member(*backup)]

    def _close_if_all(self, local: Local) -> None:
        if not local.unfinished and self._stock.closing.pop(local.xid, None) is not None:
            if not local.commits:
                self._stock.locks.release(local.xid)
            self._answer(local, local.answers)
            self._settled()

    def _answer(self, local: Local, answers: Sequence[tuple[str, int, str, list[Any]]]) -> None:
        local.answers = [answer for answer in local.answers if answer not in answers]
        for peer, life, word, payload in answers:
            if self._agreed.is_member(peer, life):
                self._send(peer, word, payload)

    # ---- messages

    def take_finish(
        self,
        peer: str,
        life: int,
        word: str,
        xid: str,
        commits: bool,
        sign: object,
        is_recovered: bool = False,
    ) -> None:
        """Take a finish of the near node or of the primary. `word` is the word of the answer.

        `is_recovered`: the primary has the outcome from the discovery log, which this node may not have delivered yet.
        The transaction has no sign, so a cut that waits for it here cannot know on which side it is.
        """
        stock = self._stock
        local = stock.locals.get(xid)
        version = UNKNOWN if local is None else local.version
        if local is not None and not local.writes:  # only locks
            stock.locks.release(xid)
            del stock.locals[xid]
            local = None
        open_or_closing = local or stock.closing.get(xid)
        if not commits:
            stock.outcomes.note(xid, False, version)  # a primary's prepare may still be on its way to us
        if open_or_closing is None or (local is None and word != TO_NEAR):
            self._send(peer, word, [xid])
            return
        open_or_closing.answers.append((peer, life, word, [xid]))
        if local is not None:
            received = stock.site.decisions.sign_of_commit(sign, self._cuts.sign())
            self.finish(local, commits, received, is_recovered=is_recovered)

    def take_backup_finished(self, peer: str, xid: str) -> None:
        local = self._stock.closing.get(xid)
        if local is not None:
            local.unfinished = [backup for backup in local.unfinished if backup[0] != peer]
            self._close_if_all(local)

    def left(self, node: str, life: int) -> None:
        """A backup has left: do not wait for its answers."""
        for local in list(self._stock.closing.values()):
            if (node, life) in local.unfinished:
                local.unfinished.remove((node, life))
                self._close_if_all(local)
