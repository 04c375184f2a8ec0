"""How a near node ends its transactions: it prepares, confirms, and commits or rolls back.

*Confirm*: a strict majority of the servers reports that its log has no newer change of the topology, committed or not.
A change that was committed before the first of these reports would be in one of these logs. So at that moment all
participants were prepared and no owner had been replaced: recovery will later find PREPARED everywhere. A transaction
that only reads is confirmed, too, before its answer. One-phase commits need no confirmation: primary and backup are
all the owners of all its keys, and both have taken part (where it only reads, by a guard). Each key is locked or
compared (`transaction.mapped`).

The answer is "ok" when all participants that are members have the finish on disk. It is "fail" when they have rolled
back, and one of them is still in sync. If the last owners of all partitions have left with PREPARED on their disks,
recovery may commit when they are back, and the answer is "info". It is also "info" when the primary of a one-phase
commit leaves.
"""

from __future__ import annotations

from collections.abc import Callable

from nodes.twophase.agreed import Agreed
from nodes.twophase.cuts import Cuts
from nodes.twophase.finishing import Finishing
from nodes.twophase.kept import Kept
from nodes.twophase.preparing import TOPOLOGY_CHANGED
from nodes.twophase.site import Site
from nodes.twophase.sometimes import NEAR_IS_CLIENT, NOT_CONFIRMED, PRIMARY_LEFT_IN_FINISH
from nodes.twophase.states import State
from nodes.twophase.stock import Send, Stock
from nodes.twophase.transaction import Transaction, mapped

WAITS_FOR_CONFIRMATION = (State.CONFIRMING, State.PREPARED)


class Deciding:
    def __init__(
        self,
        site: Site,
        agreed: Agreed,
        cuts: Cuts,
        stock: Stock,
        finishing: Finishing,
        send: Send,
        ask_confirmation: Callable[[str, int], None],
    ) -> None:
        """`ask_confirmation(xid, version)` asks every server, this one included."""
        self._site = site
        self._agreed = agreed
        self._cuts = cuts
        self._stock = stock
        self._finishing = finishing
        self._send = send
        self._ask_confirmation = ask_confirmation
        self.open: dict[str, Transaction] = {}
        self.decided: Kept[tuple[bool, object]] = Kept()
        """Xid → whether it commits, and the sign, for participants that ask later."""

    # ---- prepare

    def prepare(self, transaction: Transaction) -> None:
        agreed, configuration = self._agreed, self._site.configuration
        if agreed.version != transaction.version:
            return self.roll_back(transaction, TOPOLOGY_CHANGED)
        prepares = mapped(transaction, agreed, configuration)
        if not prepares:
            transaction.change(State.CONFIRMING)
            return self.confirm(transaction)
        transaction.change(State.PREPARING)
        transaction.was_prepared = bool(transaction.participants)
        transaction.unprepared = set(prepares)
        self._site.after(
            f"near {transaction.xid}", configuration.prepare_ns, lambda: self._prepare_timed_out(transaction)
        )
        for primary, payload in prepares.items():
            transaction.contacted[primary] = agreed.life_of(primary)
            self._send(primary, "prepare", payload)
        return None

    def _prepare_timed_out(self, transaction: Transaction) -> None:
        undecided = transaction.state in (State.PREPARING, *WAITS_FOR_CONFIRMATION)
        if undecided and not (transaction.one_phase and transaction.state is State.PREPARING):
            self._site.sometimes.note(NOT_CONFIRMED, transaction.state in WAITS_FOR_CONFIRMATION)
            self.roll_back(transaction, "timed out before the commit")

    def take_prepared(self, peer: str, xid: str, ok: bool, why: str, sign: object) -> None:
        transaction = self.open.get(xid)
        if transaction is None or transaction.state is not State.PREPARING:
            return None
        if not ok:
            return self.roll_back(transaction, why)
        transaction.unprepared.discard(peer)
        if transaction.unprepared:
            return None
        if transaction.one_phase:
            transaction.sign = sign
            transaction.change(State.COMMITTING)
            return self.end(transaction, State.COMMITTED)
        transaction.change(State.PREPARED)
        return self.confirm(transaction)

    # ---- confirm

    def confirm(self, transaction: Transaction) -> None:
        transaction.confirmed.clear()
        self._site.after(
            f"near {transaction.xid}",
            self._site.configuration.prepare_ns,
            lambda: self._prepare_timed_out(transaction),
        )
        self._ask_confirmation(transaction.xid, transaction.version)

    def ask_again(self) -> None:
        """Ask for confirmations again, at each beat: they may be lost."""
        for transaction in list(self.open.values()):
            if transaction.state in WAITS_FOR_CONFIRMATION:
                self._ask_confirmation(transaction.xid, transaction.version)

    def take_confirmed(self, peer: str, xid: str, ok: bool) -> None:
        transaction = self.open.get(xid)
        if transaction is None or transaction.state not in WAITS_FOR_CONFIRMATION:
            return None
        if not ok:
            self._site.sometimes.note(NOT_CONFIRMED)
            return self.roll_back(transaction, TOPOLOGY_CHANGED)
        transaction.confirmed.add(peer)
        if len(transaction.confirmed) > len(self._site.configuration.baseline) // 2:
            self._commit(transaction)
        return None

    # ---- finish

    def _commit(self, transaction: Transaction) -> None:
        """The near node commits first: its sign is the transaction's."""
        site, xid = self._site, transaction.xid
        site.cancel(f"near {xid}")
        transaction.change(State.COMMITTING)
        # Once, and before all messages: the cut may begin before the finishes leave, and others have asked already.
        transaction.sign = self._cuts.sign()
        self._decide(transaction, True)
        if transaction.was_prepared:
            site.sometimes.note(NEAR_IS_CLIENT, not site.is_server)
        here = self._stock.locals.get(xid)
        if here is not None and here.prepared:
            self._finishing.finish(
                here, True, transaction.sign, written=lambda: self._send_finish(transaction, True)
            )
        else:
            self._send_finish(transaction, True)

    def _decide(self, transaction: Transaction, commits: bool) -> None:
        self.decided.note(transaction.xid, (commits, transaction.sign), transaction.version)
        if not transaction.was_prepared:
            self._answer(transaction)  # there are only locks to give back
        for node in transaction.askers:
            self._send(node, "outcome", [transaction.xid, commits, transaction.sign])

    def _send_finish(self, transaction: Transaction, commits: bool) -> None:
        agreed = self._agreed
        sign = self._site.decisions.sign_in_finish(transaction.sign, self._cuts.sign())
        for node, life in transaction.contacted.items():
            if agreed.is_member(node, life):
                transaction.unfinished[node] = life
                self._send(node, "finish", [transaction.xid, commits, sign])
            else:
                self._send_finish_to_backups(transaction, node, commits)
        self._end_if_finished(transaction)

    def _send_finish_to_backups(self, transaction: Transaction, primary: str, commits: bool) -> None:
        """Send the finish to the backups of a primary that has left and cannot pass it on."""
        sign = self._site.decisions.sign_in_finish(transaction.sign, self._cuts.sign())
        for backup in transaction.backups.get(primary, ()):
            life = self._agreed.life_of(backup)
            if life and backup not in transaction.unfinished:
                self._site.sometimes.note(PRIMARY_LEFT_IN_FINISH)
                transaction.unfinished[backup] = life
                self._send(backup, "finish", [transaction.xid, commits, sign])

    def roll_back(self, transaction: Transaction, why: str) -> None:
        self._site.cancel(f"near {transaction.xid}")
        transaction.change(State.MARKED_ROLLBACK)
        transaction.outcome = {"type": "fail", "error": why}
        self._decide(transaction, False)
        self._send_finish(transaction, False)

    def take_finished(self, peer: str, xid: str) -> None:
        transaction = self.open.get(xid)
        if transaction is not None and transaction.unfinished.pop(peer, None) is not None:
            transaction.rolled_back.add(peer)  # read only if the transaction rolls back
            self._end_if_finished(transaction)

    def _end_if_finished(self, transaction: Transaction) -> None:
        if transaction.unfinished:
            return None
        if transaction.state is State.COMMITTING:
            return self.end(transaction, State.COMMITTED)
        if transaction.was_prepared and not self._is_surely_rolled_back(transaction):
            why = transaction.outcome["error"]
            transaction.outcome = {"type": "info", "error": f"{why}; all owners left before they rolled back"}
        return self.end(transaction, State.ROLLED_BACK)

    def _is_surely_rolled_back(self, transaction: Transaction) -> bool:
        """Whether recovery cannot commit: an owner in sync, from which all later ones copy, has rolled back."""
        owners = (
            owner for partition, _ in transaction.participants for owner in self._agreed.in_sync[partition]
        )
        return not transaction.rolled_back.isdisjoint(owners)

    def end(self, transaction: Transaction, state: State) -> None:
        self._site.cancel(f"near {transaction.xid}")
        transaction.change(state)
        del self.open[transaction.xid]
        self._answer(transaction)

    def _answer(self, transaction: Transaction) -> None:
        """Answer the client, once."""
        if transaction.answer is not None:
            name = {} if transaction.is_atomic else {"xid": transaction.xid}  # a cut knows no atomic writes
            transaction.answer({**transaction.outcome, **name})
            transaction.answer = None

    def end_unknown(self, transaction: Transaction, why: str) -> None:
        transaction.change(State.COMMITTING)
        transaction.outcome = {"type": "info", "error": why}
        self.end(transaction, State.COMMITTED)

    # ---- others

    def take_outcome_question(self, peer: str, xid: str) -> None:
        """Answer a restarted participant. A transaction that is unknown here was not decided, and never will be."""
        decided = self.decided.get(xid)
        if decided is not None:
            self._send(peer, "outcome", [xid, *decided])
        elif xid in self.open:
            self.open[xid].askers.append(peer)
        else:
            self._send(peer, "outcome", [xid, False, None])

    def left(self, node: str, life: int) -> None:
        for transaction in list(self.open.values()):
            if transaction.atomic_at == (node, life):
                self.end_unknown(transaction, f"the primary {node} left during the write")
            elif transaction.unfinished.get(node) == life:
                del transaction.unfinished[node]
                self._send_finish_to_backups(transaction, node, transaction.state is State.COMMITTING)
                self._end_if_finished(transaction)
            elif transaction.contacted.get(node) != life:
                continue
            elif transaction.one_phase and transaction.state is State.PREPARING:
                self.end_unknown(transaction, f"the primary {node} left during the commit")
            elif transaction.state in (State.ACTIVE, State.SUSPENDED, State.CONFIRMING, State.PREPARING):
                self.roll_back(transaction, f"the primary {node} left")
