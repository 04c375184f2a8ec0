"""The near node of a transaction: collects locks and values, and evaluates the steps. `deciding` does the rest.

    ACTIVE: lock or read, step by step ─▶ PREPARING: prepare ─▶ all PREPARED ─▶ confirm ─▶ COMMITTING: finish ─▶ answer
                                     └─▶ CONFIRMING, where there is nothing to prepare ─────┘

| concurrency | isolation | a read | a write |
|---|---|---|---|
| pessimistic | repeatable-read, serializable | locks the key | locks the key |
| pessimistic | read-committed | no lock, and every step reads anew | locks the key |
| optimistic | serializable | no lock, compared again at the prepare | locks at the prepare |
| optimistic | repeatable-read | no lock, never compared again | locks at the prepare |
| optimistic | read-committed | the same, and every step reads anew | locks at the prepare |
"""

from __future__ import annotations

from typing import Any

from nodes.steps import WrongSteps
from nodes.twophase.agreed import Agreed
from nodes.twophase.data import Place, partition_of
from nodes.twophase.deciding import Deciding
from nodes.twophase.evaluation import Impossible, Mismatch, evaluated
from nodes.twophase.preparing import TOPOLOGY_CHANGED
from nodes.twophase.site import Site
from nodes.twophase.sometimes import LOCK_TIME_OUT, SUSPENDED
from nodes.twophase.states import State
from nodes.twophase.stock import Send
from nodes.twophase.transaction import Answer, Transaction

PAUSE_MS = range(1, 40)
LONGEST_PAUSE_MS = 60_000


class Near:
    def __init__(self, site: Site, agreed: Agreed, deciding: Deciding, send: Send) -> None:
        self._site = site
        self._agreed = agreed
        self._deciding = deciding
        self._send = send
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
        self._deciding.open[xid] = transaction
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
        by_chance_ms = (
            chance.randrange(PAUSE_MS.start, PAUSE_MS.stop) if share and chance.random() < share else 0
        )
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
            self._deciding.roll_back(transaction, "lock wait timed out")

    def _primary_of(self, place: Place) -> str | None:
        return self._agreed.primary(partition_of(place, self._site.configuration.partitions))

    def _request(self, transaction: Transaction, place: Place) -> bool:
        """Ask for a value, with its lock if that is due. False: the transaction has ended."""
        if place in transaction.asked:
            return True
        primary = self._primary_of(place)
        if primary is None or self._agreed.version != transaction.version:
            self._deciding.roll_back(
                transaction, TOPOLOGY_CHANGED if primary else "no owner in sync is a member"
            )
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
            return self._deciding.roll_back(transaction, "no owner in sync is a member")
        transaction.atomic_at = (primary, self._agreed.life_of(primary))
        self._site.after(
            f"near {transaction.xid}",
            self._site.configuration.prepare_ns,
            lambda: self._deciding.end_unknown(transaction, "the primary did not answer in time"),
        )
        return self._send(primary, "atomic", [transaction.xid, transaction.version, step])

    def take_atomic_done(self, xid: str, how: str, result: object) -> None:
        transaction = self._deciding.open.get(xid)
        if transaction is None or transaction.atomic_at is None:
            return None
        transaction.atomic_at = None
        match how:
            case "ok":
                transaction.outcome = {"type": "ok", "results": [result]}
                transaction.change(State.COMMITTING)
                return self._deciding.end(transaction, State.COMMITTED)
            case "mismatch":  # what was found must be the newest, as with a read
                transaction.outcome = {"type": "mismatch", "step": 0, "found": result}
                transaction.change(State.CONFIRMING)
                return self._deciding.confirm(transaction)
            case _:
                return self._deciding.roll_back(transaction, str(result))

    # ---- locks and values

    def take_locked(self, xid: str, space: str, key: Any, value: object, version: int) -> None:
        transaction = self._deciding.open.get(xid)
        if transaction is not None and transaction.state is State.ACTIVE:
            transaction.values[space, key] = (value, version)
            self._advance(transaction)

    def take_refused(self, xid: str, why: str) -> None:
        transaction = self._deciding.open.get(xid)
        if transaction is not None and transaction.state is State.ACTIVE:
            self._deciding.roll_back(transaction, why)

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
                return self._deciding.roll_back(transaction, str(error))
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
            return self._deciding.prepare(transaction)
        transaction.change(State.SUSPENDED)
        self._site.sometimes.note(SUSPENDED)

        def resume() -> None:
            if transaction.state is State.SUSPENDED:
                transaction.change(State.ACTIVE)
                self._deciding.prepare(transaction)

        self._site.after(f"near {transaction.xid}", transaction.pause_ns, resume)
        return None
