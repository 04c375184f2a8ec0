"""Accepts or refuses the proofs in a verdict on transactions. Shares no code with the search: believe this, not that.

    judged = verify.Terms(model="snapshot-isolation")            # what was promised, and of which reads
    verify_isolation.check(history, verdict, judged).holds        # the verdict follows from its proof and the history

| proof | claims | is checked by |
|---|---|---|
| serial-order | valid: one by one in this order, the transactions give the answers that were got | doing them |
| snapshots-and-commits | valid: so do they, each reading at one moment and committing at a later one | doing them |
| order | valid: where writers of each key stand in this order, there is nothing that the model forbids | looking |
| a circle | invalid: each of these transactions must come before the next, the last before the first | its evidence |
| no circle | invalid: these answers cannot be at once (two orders of one list, …) | looking at them |
| no-order | invalid: these few transactions have no execution of the model | trying all |

If several writes have one value (`duplicates`), a proof of valid says which of them each read shows; a circle needs no
read that may show several; and of a few transactions all cases are tried.

Why one must come before another: its value was read (wr); it lacks what the other wrote (rw: lists only grow, and a
register's first value is null, or the other read before it wrote what this one read); a read shows both (ww); it was
over before, at the same client or node (process), or anywhere (realtime), and then what it left of a register is before
what the other entered with. A verdict without any of these is listed in `without`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from checkers.history.history import History
from checkers.proofs.duplicates import Duplicates
from checkers.proofs.isolation import (
    BY_STEPS,
    SPLIT,
    Store,
    TooMany,
    comes_first,
    ends,
    forbids,
    forbids_circle,
    implied_by,
    is_keyed,
    is_possible,
    is_ranked_before,
    keeps_keys,
    keeps_versions,
    parsed,
)
from checkers.proofs.meaning import Terms
from checkers.proofs.transactions import (
    READS,
    RULES,
    Known,
    Txn,
    elements,
    is_list,
    keys_shown_as,
    lacks,
    name_of,
    of_others,
    overwrote,
    saw,
    transactions_in,
)
from checkers.verdict import RefusedError, Verdict, Verified, need

NO_ORDER = "no-order"
OF_KEYS = "cyclic-versions"


def check(history: History, verdict: Verdict, asked: Terms) -> Verified:
    """Check the verdict's proofs. It holds if one shows it, and none was refused."""
    claimed = str(verdict.details.get("promised", verdict.model))
    if claimed != asked.model:
        return Verified(
            0, (f"{verdict.checker}: it judges by {claimed}, not by {asked.model}",), (), holds=False
        )
    known = {txn.id: txn for txn in transactions_in(history, asked)}
    accepted, refused, without = 0, [], []
    base, order = parsed(asked.model)
    for name, proof in _proofs(verdict, _Promise(base, order, asked.key_order)):
        if proof is None:
            without.append(f"{verdict.checker}: {name}")
            continue
        try:
            proof(known)
            accepted += 1
        except TooMany:
            without.append(f"{verdict.checker}: {name}: there are too many executions to try")
        except (RefusedError, LookupError, TypeError, ValueError) as error:
            refused.append(f"{verdict.checker}: {name}: {error}")
    return Verified(accepted, tuple(refused), tuple(without), bool(accepted and not refused))


@dataclass(frozen=True, slots=True)
class _Promise:
    """A model's base and order, and the order that each register by itself keeps beside (see `Terms.key_order`)."""

    base: str
    order: int
    of_keys: int

    @property
    def key_order(self) -> int:
        """The order that each register keeps by itself."""
        return max(self.of_keys, self.order if is_keyed(self.base) else 0)

    def leads(self, one: Txn, other: Txn, key: str) -> bool:
        """Whether the order of a register binds what `other` enters with to what `one` left. In repeatable read what a
        predicate shows may be old.
        """
        is_free = self.base == "repeatable-read" and other.on(key)[0][0] == "rp"
        return comes_first(one, other, self.of_keys if is_free else self.key_order)


def _proofs(verdict: Verdict, promise: _Promise) -> Iterator[tuple[str, Callable[[Known], None] | None]]:
    """The claim, and the function that checks it; None: nothing here can."""
    proof = verdict.details["proof"]
    match verdict.result, proof["kind"]:
        case "valid", "serial-order" | "snapshots-and-commits" | "order" if "order" in proof:
            yield (
                proof["kind"],
                partial(_executed, proof["kind"], proof["order"], proof.get("shown", ()), promise),
            )
        case "invalid", _:
            for name in proof["names"]:
                yield name, _anomaly(name, verdict.details["anomalies"][name], promise)
        case _:
            yield proof["kind"], None


# ---- valid


def _executed(
    kind: str, claimed: Sequence[Any], shown: Sequence[Any], promise: _Promise, known: Known
) -> None:
    base, order = promise.base, promise.order
    known = Duplicates(known).showing(shown)
    splits = kind == "snapshots-and-commits"
    steps = (
        [(int(event), word) for event, word in claimed] if splits else [(int(each), "") for each in claimed]
    )
    need(len(set(steps)) == len(steps), "it names a transaction twice")
    need(
        not splits or {word for _, word in steps} <= {"snapshot", "commit"},
        "a step is no snapshot and no commit",
    )
    committed = [known[event] for event, word in steps if word != "snapshot"]
    need(
        {txn.id for txn in known.values() if txn.ok} <= {txn.id for txn in committed},
        "a transaction that happened is missing",
    )
    for txn in committed:
        need(not txn.failed, f"the transaction of event {txn.id} had failed")
    keeps_keys(promise.of_keys, committed)
    if kind == "order":
        need(base not in BY_STEPS, "an order of versions is too little")
        keeps_versions(base, order, committed)
        return
    steps_of = "snapshot-isolation" if splits and base not in SPLIT else base
    need(base in implied_by(steps_of), "snapshots are too little")
    store = Store(steps_of, order, known.values())
    for event, word in steps:
        if word != "commit":
            store.read(known[event])
        if word != "snapshot":
            need(event in store.looked, f"event {event} commits before its snapshot")
            store.commit(known[event])


# ---- invalid


def _anomaly(name: str, shown: Mapping[str, Any], promise: _Promise) -> Callable[[Known], None] | None:
    events = {transaction["name"]: transaction["events"][0] for transaction in shown["transactions"]}
    if shown["edges"]:
        return partial(_circle, shown["edges"], events, promise)
    if name == NO_ORDER:
        return partial(_no_order, tuple(events.values()), promise)
    key = shown["at"][0][1]
    if name.startswith(OF_KEYS):
        return partial(_circular_key, name, key, promise)
    return partial(_without_circle, name, key, tuple(events.values()), promise) if name in RULES else None


def _without_circle(name: str, word: str, events: Sequence[int], promise: _Promise, known: Known) -> None:
    need(forbids(promise.base, name), f"{promise.base} does not forbid it")
    if name != "internal":  # what differs in value is of different writes
        known = Duplicates(known).certain()
    named, keys = [known[event] for event in dict.fromkeys(events)], keys_shown_as(word, known)
    shown = any(RULES[name](key, named, known) for key in keys)
    if name == "fractured-read" and not shown:
        orders = _Orders(known, replace(promise, order=0))
        shown = any(_is_fractured(key, named, orders) for key in keys)
    need(shown, "these transactions do not show it")


def _is_fractured(key: str, named: Sequence[Txn], orders: _Orders) -> bool:
    """Whether one saw the other, and read the key older than by it because of what is promised of the key alone."""
    return any(
        saw(txn, other) and orders(key, name_of(read), later)
        for txn in named
        for other in named
        for f, read in txn.on(key)
        for later in other.wrote(key)
        if f == "r" and txn is not other
    )


def _no_order(events: Sequence[int], promise: _Promise, known: Known) -> None:
    """A part of an execution is an execution, without the reads in it that show a value from outside it.

    A read of a register behind an own write of that value shows this write.
    """
    part = {event: known[event] for event in events}
    lists = is_list(known.values())
    writers: dict[tuple[str, str], list[Txn]] = {}
    for txn in known.values():
        for key in dict.fromkeys(key for _, key, _ in txn.micros):
            for value in dict.fromkeys(txn.wrote(key)):
                writers.setdefault((key, value), []).append(txn)

    def counts(txn: Txn, number: int) -> bool:
        f, key, value = txn.micros[number]
        before = [(name_of(wrote), at) for g, at, wrote in txn.micros[:number] if g not in READS]
        if f not in READS or not txn.ok or (not lists and (name_of(value), key) in before):
            return True
        for shown in elements(value) if lists else [value]:
            by = writers.get((key, name_of(shown)), [])
            happened = [
                one for one in by if not one.failed and (lists or one.wrote(key)[-1] == name_of(shown))
            ]
            needed = happened if happened or shown is None else by
            if not all(one.id in part for one in needed) or not (needed or shown is None):
                return False
        return True

    part = {
        event: txn.without({number for number in range(len(txn.micros)) if not counts(txn, number)})
        for event, txn in part.items()
    }
    cases = Duplicates(part).cases()
    need(not is_possible(promise.base, promise.order, promise.of_keys, cases), "they have an execution")


def _circle(
    edges: Sequence[Mapping[str, Any]], events: Mapping[str, int], promise: _Promise, known: Known
) -> None:
    need(
        forbids_circle(promise.base, [(edge["kind"], bool(edge["predicate"])) for edge in edges]),
        f"{promise.base} does not forbid it",
    )
    known = Duplicates(known).certain()
    for edge, after in zip(edges, [*edges[1:], edges[0]], strict=True):
        need(edge["to"] == after["from"], "it is not a circle")
        one, other = known[events[edge["from"]]], known[events[edge["to"]]]
        need(
            not (one.failed or other.failed) and one is not other,
            "a transaction that did not happen is in it",
        )
        reason = f"{edge['from']} need not come before {edge['to']} ({edge['kind']})"
        if edge["kind"] in ("realtime", "process"):
            need(_is_over(one, other, promise.order, edge["kind"]), reason)
        else:
            keys = keys_shown_as(edge["key"], known)
            orders = _Orders(known, promise)
            need(any(_precedes(edge, key, one, other, orders) for key in keys), reason)


def _is_over(one: Txn, other: Txn, order: int, kind: str) -> bool:
    needed = 2 if kind == "realtime" else 1
    return order >= needed and comes_first(one, other, needed)


class _Orders:
    """Which versions of a register come before which because of the model's order."""

    def __init__(self, known: Known, promise: _Promise) -> None:
        self.known, self.promise = known, promise

    def __call__(self, key: str, one: str, other: str) -> bool:
        """Whether `one` was left by a transaction that was over before one that entered with `other` began.

        Or it was written by one that stands before the other's writer in the store's own order.
        """
        left = [txn for txn in self.known.values() if ends(txn, key)[1] == one]
        entered = [txn for txn in self.known.values() if ends(txn, key)[0] == other]
        wrote = [txn for txn in self.known.values() if other in txn.wrote(key)[-1:]]
        return one != other and (
            any(self.promise.leads(a, b, key) for a in left for b in entered)
            or any(is_ranked_before(a, b) for a in left if one in a.wrote(key) for b in wrote)
        )


def _precedes(edge: Mapping[str, Any], key: str, one: Txn, other: Txn, orders: _Orders) -> bool:
    if edge["kind"] == "wr":
        return any(
            name_of(element) in one.wrote(key) for read in other.reads(key) for element in elements(read)
        )
    if edge["kind"] == "rw":
        kinds = ("r", "rp") if edge["predicate"] else ("r",)
        return any(
            lacks(read, key, other) or any(orders(key, name_of(read), later) for later in other.wrote(key))
            for f, read in one.on(key)
            if f in kinds
        )
    txns = orders.known.values()
    readers = [names for txn in txns for names in of_others(key, txn)] if is_list(txns) else []
    pairs = [(a, b) for a in one.wrote(key) for b in other.wrote(key)]
    return (
        any(_shows(read, a, b) for a, b in pairs for read in readers)
        or overwrote(one.wrote(key), key, other)
        or any(orders(key, a, b) for a, b in pairs)
    )


def _shows(names: Sequence[str], first: str, second: str) -> bool:
    """The list has the first, and not the second before it."""
    return first in names and (second not in names or names.index(first) < names.index(second))


def _circular_key(name: str, word: str, promise: _Promise, known: Known) -> None:
    """Raise RefusedError unless some version of the register comes before itself, or before null."""
    base, promise = promise.base, replace(promise, order=0) if name == OF_KEYS else promise
    known = Duplicates(known).certain()
    need(forbids(base, name) and (name == OF_KEYS or promise.key_order > 0), f"{base} does not forbid it")
    need(any(_is_circular(key, known, promise) for key in keys_shown_as(word, known)), "it has an order")


def _is_circular(key: str, known: Known, promise: _Promise) -> bool:
    after: dict[str, set[str]] = {}
    for txn in known.values():
        if txn.failed:
            continue
        steps = txn.on(key)
        chain = [name_of(value) for place, (f, value) in enumerate(steps) if f == "w" or place == 0]
        for one, other in itertools.pairwise(chain):
            after.setdefault(one, set()).add(other)
    met = [(txn, *ends(txn, key)) for txn in known.values()]
    for a, _, left in met:
        for b, entered, _ in met:
            is_new = left != entered or (b.on(key)[:1] and b.on(key)[0][0] not in READS)
            if left is not None and entered is not None and is_new and promise.leads(a, b, key):
                after.setdefault(left, set()).add(entered)
            if is_ranked_before(a, b) and a.wrote(key) and b.wrote(key):
                after.setdefault(a.wrote(key)[-1], set()).add(b.wrote(key)[-1])
    return any(_reaches(after, version, {version, "null"}) for version in after if version != "null")


def _reaches(after: Mapping[str, set[str]], begin: str, goals: set[str]) -> bool:
    reached: set[str] = set()
    todo = list(after.get(begin, ()))
    while todo:
        version = todo.pop()
        if version in goals:
            return True
        if version not in reached:
            reached.add(version)
            todo += after.get(version, ())
    return False
