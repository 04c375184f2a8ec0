"""The near node of a transaction: collects locks and values, evaluates the steps, prepares, confirms, commits.

    ACTIVE: lock or read, step by step ─▶ PREPARING: prepare ─▶ all PREPARED ─▶ confirm ─▶ COMMITTING: finish ─▶ answer
                                     └─▶ CONFIRMING, where there is nothing to prepare ─────┘

*Confirm*: a strict majority of the servers reports that its log has no newer change of the topology, committed or not.
A change that was committed before the first of these reports would be in one of these logs. So at that moment all
participants were prepared and no owner had been replaced: recovery will later find PREPARED everywhere. A transaction
that only reads is confirmed, too, before its answer. One-phase commits need no confirmation: primary and backup are
all the owners of all its keys, and both have taken part (where it only reads, by a guard). Each key is locked or
compared (`transaction.mapped`).

| concurrency | isolation | a read | a write |
|---|---|---|---|
| pessimistic | repeatable-read, serializable | locks the key | locks the key |
| pessimistic | read-committed | no lock, and every step reads anew | locks the key |
| optimistic | serializable | no lock, compared again at the prepare | locks at the prepare |
| optimistic | repeatable-read | no lock, never compared again | locks at the prepare |
| optimistic | read-committed | the same, and every step reads anew | locks at the prepare |

The answer is "ok" when all participants that are members have the finish on disk. It is "fail" when they have rolled
back, and one of them is still in sync. If the last owners of all partitions have left with PREPARED on their disks,
recovery may commit when they are back, and the answer is "info". It is also "info" when the primary of a one-phase
commit leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodes.steps import WrongSteps
from nodes.twophase.agreed import Agreed
from nodes.twophase.cuts import Cuts
from nodes.twophase.data import Place, partition_of
from nodes.twophase.evaluation import Impossible, Mismatch, evaluated
from nodes.twophase.finishing import Finishing
from nodes.twophase.kept import Kept
from nodes.twophase.preparing import TOPOLOGY_CHANGED
from nodes.twophase.site import Site
from nodes.twophase.sometimes import (
    LOCK_TIME_OUT,
    NEAR_IS_CLIENT,
    NOT_CONFIRMED,
    PRIMARY_LEFT_IN_FINISH,
    SUSPENDED,
)
from nodes.twophase.states import State
from nodes.twophase.stock import Send, Stock
from nodes.twophase.transaction import Answer, Transaction, mapped

PAUSE_MS = (1, 40)
LONGEST_PAUSE_MS = 60_000
WAITS_FOR_CONFIRMATION = (State.CONFIRMING, State.PREPARED)


class Near:
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
        self._last = 0

    # ---- a client's request

    def begin(self, steps: list[list[Any]], options: dict[str, Any], answer: Answer) -> None:
        """Begin a transaction. Raises WrongSteps for an invalid value of an option."""
        if not self._agreed.is_member(self._site.name, self._site.life):
            return answer({"type": "fail", "error": "not a member yet"})
        pause_ns = self._pause_ns(options)
        self._last += 1
        xid = f"{self._site.name}-{self._site.life}-{self._last}"
        transaction = Transaction(xid, steps, self._agreed.version, answer, pause_ns)
        self.open[xid] = transaction
        self._site.after(
            f"near {xid}", self._site.configuration.lock_ns, lambda: self._lock_timed_out(transaction)
        )
        if steps[0][0] != "read" and self._is_atomic(steps[0][1]):
            return self._write_atomically(transaction)
        if self._is_optimistic:
            for step in steps:
                if not self._request(transaction, (step[1], step[2])):
                    return None
        return self._advance(transaction)

    def _pause_ns(self, options: dict[str, Any]) -> int:
        """How long the transaction pauses: as its client asks, or by chance for a share of all transactions."""
        share, chance = self._site.configuration.suspending, self._site.chance
        by_chance_ms = chance.randrange(*PAUSE_MS) if share and chance.random() < share else 0
        suspend_ms = options.get("suspend_ms", by_chance_ms)
        if type(suspend_ms) is not int or not 0 <= suspend_ms <= LONGEST_PAUSE_MS:
            raise WrongSteps(f"expected suspend_ms from 0 to {LONGEST_PAUSE_MS}, got {suspend_ms!r}"[:100])
        return suspend_ms * 1_000_000

    @property
    def _is_optimistic(self) -> bool:
        return self._site.configuration.concurrency == "optimistic"

    def _lock_timed_out(self, transaction: Transaction) -> None:
        if transaction.state is State.ACTIVE:
            self._site.sometimes.note(LOCK_TIME_OUT)
            self._roll_back(transaction, "lock wait timed out")

    def _primary_of(self, place: Place) -> str | None:
        return self._agreed.primary(partition_of(place, self._site.configuration.partitions))

    def _request(self, transaction: Transaction, place: Place) -> bool:
        """Ask for a value, with its lock if that is due. False: the transaction has ended."""
        if place in transaction.asked:
            return True
        primary = self._primary_of(place)
        if primary is None or self._agreed.version != transaction.version:
            self._roll_back(transaction, TOPOLOGY_CHANGED if primary else "no owner in sync is a member")
            return False
        transaction.asked.add(place)
        mode = "lock" if self._locks(transaction, place) else "read"
        if mode == "lock":
            transaction.locked.add(place)
            transaction.contacted[primary] = self._agreed.life_of(primary)
        self._send(primary, "lock", [transaction.xid, transaction.version, *place, mode])
        return True

    @property
    def _reads_anew(self) -> bool:
        return self._site.configuration.isolation == "read-committed"

    def _locks(self, transaction: Transaction, place: Place) -> bool:
        """Whether the next access takes the lock; where steps lock as they come, a read before the write does not."""
        if self._is_optimistic or self._is_atomic(place[0]):
            return False
        steps = transaction.steps
        if self._reads_anew and self._site.configuration.lock_order == "steps":
            steps = steps[transaction.number : transaction.number + 1]
        return not self._reads_anew or any(step[0] != "read" for step in steps if (step[1], step[2]) == place)

    # ---- atomic spaces

    def _is_atomic(self, space: str) -> bool:
        return space in self._site.configuration.atomic_spaces

    def _write_atomically(self, transaction: Transaction) -> None:
        """Send the one step to its primary; without an answer, the outcome is unknown."""
        transaction.is_atomic = True
        step = transaction.steps[0]
        primary = self._primary_of((step[1], step[2]))
        if primary is None:
            return self._roll_back(transaction, "no owner in sync is a member")
        transaction.atomic_at = (primary, self._agreed.life_of(primary))
        self._site.after(
            f"near {transaction.xid}",
            self._site.configuration.prepare_ns,
            lambda: self._end_unknown(transaction, "the primary did not answer in time"),
        )
        return self._send(primary, "atomic", [transaction.xid, transaction.version, step])

    def take_atomic_done(self, xid: str, how: str, result: object) -> None:
        transaction = self.open.get(xid)
        if transaction is None or transaction.atomic_at is None:
            return None
        transaction.atomic_at = None
        match how:
            case "ok":
                transaction.outcome = {"type": "ok", "results": [result]}
                transaction.change(State.COMMITTING)
                return self._end(transaction, State.COMMITTED)
            case "mismatch":  # what was found must be the newest, as with a read
                transaction.outcome = {"type": "mismatch", "step": 0, "found": result}
                transaction.change(State.CONFIRMING)
                return self._confirm(transaction)
            case _:
                return self._roll_back(transaction, str(result))

    def _end_unknown(self, transaction: Transaction, why: str) -> None:
        transaction.change(State.COMMITTING)
        transaction.outcome = {"type": "info", "error": why}
        self._end(transaction, State.COMMITTED)

    # ---- locks and values

    def take_locked(self, xid: str, space: str, key: Any, value: object, version: int) -> None:
        transaction = self.open.get(xid)
        if transaction is not None and transaction.state is State.ACTIVE:
            transaction.values[space, key] = (value, version)
            self._advance(transaction)

    def take_refused(self, xid: str, why: str) -> None:
        transaction = self.open.get(xid)
        if transaction is not None and transaction.state is State.ACTIVE:
            self._roll_back(transaction, why)

    def _advance(self, transaction: Transaction) -> None:
        """Evaluate the steps whose values have come, in the order of locks."""
        if self._site.configuration.lock_order == "keys" and not self._is_optimistic:
            places = sorted({(step[1], step[2]) for step in transaction.steps}, key=str)
            wanted = [place for place in places if place not in transaction.values]
            missing = next((place for place in wanted if self._locks(transaction, place)), None)
            if missing is not None:
                self._request(transaction, missing)
                return None
        while transaction.number < len(transaction.steps):
            step = transaction.steps[transaction.number]
            place = (step[1], step[2])
            if self._is_to_lock(transaction, step, place):
                transaction.forget(place)
            if place not in transaction.values:
                self._request(transaction, place)
                return None
            old = transaction.now.get(place, transaction.values[place][0])
            try:
                done = evaluated(step, old)
            except Impossible as error:
                return self._roll_back(transaction, str(error))
            if isinstance(done, Mismatch):
                transaction.now.clear()  # it only reads, then
                transaction.outcome = {"type": "mismatch", "step": transaction.number, "found": done.found}
                break
            result, new = done
            if step[0] != "read":
                transaction.now[place] = new
            elif self._reads_anew and place not in transaction.now and place not in transaction.locked:
                transaction.forget(place)
            transaction.results.append(result)
            transaction.number += 1
        if not transaction.outcome:
            transaction.outcome = {"type": "ok", "results": transaction.results}
        return self._suspend_or_prepare(transaction)

    def _is_to_lock(self, transaction: Transaction, step: list[Any], place: Place) -> bool:
        """Whether the step is the first write to a key whose value came without a lock, for an earlier read."""
        is_unlocked = place in transaction.values and place not in transaction.locked
        return is_unlocked and step[0] != "read" and self._locks(transaction, place)

    def _suspend_or_prepare(self, transaction: Transaction) -> None:
        if not transaction.pause_ns:
            return self._prepare(transaction)
        transaction.change(State.SUSPENDED)
        self._site.sometimes.note(SUSPENDED)

        def resume() -> None:
            if transaction.state is State.SUSPENDED:
                transaction.change(State.ACTIVE)
                self._prepare(transaction)

        self._site.after(f"near {transaction.xid}", transaction.pause_ns, resume)
        return None

    # ---- prepare

    def _prepare(self, transaction: Transaction) -> None:
        agreed, configuration = self._agreed, self._site.configuration
        if agreed.version != transaction.version:
            return self._roll_back(transaction, TOPOLOGY_CHANGED)
        prepares = mapped(transaction, agreed, configuration)
        if not prepares:
            transaction.change(State.CONFIRMING)
            return self._confirm(transaction)
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
            self._roll_back(transaction, "timed out before the commit")

    def take_prepared(self, peer: str, xid: str, ok: bool, why: str, sign: object) -> None:
        transaction = self.open.get(xid)
        if transaction is None or transaction.state is not State.PREPARING:
            return None
        if not ok:
            return self._roll_back(transaction, why)
        transaction.unprepared.discard(peer)
        if transaction.unprepared:
            return None
        if transaction.one_phase:
            transaction.sign = sign
            transaction.change(State.COMMITTING)
            return self._end(transaction, State.COMMITTED)
        transaction.change(State.PREPARED)
        return self._confirm(transaction)

    # ---- confirm

    def _confirm(self, transaction: Transaction) -> None:
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
            return self._roll_back(transaction, TOPOLOGY_CHANGED)
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

    def _roll_back(self, transaction: Transaction, why: str) -> None:
        self._site.cancel(f"near {transaction.xid}")
        transaction.change(State.MARKED_ROLLBACK)
        transaction.outcome = {"type": "fail", "error": why}
        self._decide(transaction, False)
        self._send_finish(transaction, False)

    def take_finished(self, peer: str, xid: str) -> None:
        transaction = self.open.get(xid)
        if transaction is not None and transaction.unfinished.pop(peer, None) is not None:
            transaction.rolled_back.add(peer)
            self._end_if_finished(transaction)

    def _end_if_finished(self, transaction: Transaction) -> None:
        if transaction.unfinished:
            return None
        if transaction.state is State.COMMITTING:
            return self._end(transaction, State.COMMITTED)
        if transaction.was_prepared and not self._is_surely_rolled_back(transaction):
            why = transaction.outcome["error"]
            transaction.outcome = {"type": "info", "error": f"{why}; all owners left before they rolled back"}
        return self._end(transaction, State.ROLLED_BACK)

    def _is_surely_rolled_back(self, transaction: Transaction) -> bool:
        """Whether recovery cannot commit: an owner in sync, from which all later ones copy, has rolled back."""
        owners = (
            owner for partition, _ in transaction.participants for owner in self._agreed.in_sync[partition]
        )
        return not transaction.rolled_back.isdisjoint(owners)

    def _end(self, transaction: Transaction, state: State) -> None:
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
                self._end_unknown(transaction, f"the primary {node} left during the write")
            elif transaction.unfinished.get(node) == life:
                del transaction.unfinished[node]
                self._send_finish_to_backups(transaction, node, transaction.state is State.COMMITTING)
                self._end_if_finished(transaction)
            elif transaction.contacted.get(node) != life:
                continue
            elif transaction.one_phase and transaction.state is State.PREPARING:
                self._end_unknown(transaction, f"the primary {node} left during the commit")
            elif transaction.state in (State.ACTIVE, State.SUSPENDED, State.CONFIRMING, State.PREPARING):
                self._roll_back(transaction, f"the primary {node} left")
