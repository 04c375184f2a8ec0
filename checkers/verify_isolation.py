"""Accepts or refuses the proofs in a verdict on transactions. Shares no code with the search: believe this, not that.

    verify_isolation.check(history, verdict).holds      # the verdict follows from its proof and the history

| proof | claims | is checked by |
|---|---|---|
| serial-order | valid: one by one in this order, the transactions give the answers that were got | doing them |
| a circle | invalid: each of these transactions must come before the next, the last before the first | its evidence |
| no circle | invalid: these answers cannot be at once (two orders of one list, …) | looking at them |

Why one must come before another: its value was read (wr); it lacks what the other wrote (rw: lists only grow, and a
register's first value is null, or the other read before it wrote what this one read); a read shows both (ww); it was
over before, at the same client or node (process), or anywhere (realtime). What has none of these says so: `without`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from checkers.history.history import History
from checkers.transactions import READS, RULES, Txn, elements, judged, name_of
from checkers.verdict import Verdict
from checkers.verify import RefusedError, Verified


def check(history: History, verdict: Verdict) -> Verified:
    """Check the verdict's proofs. It holds if one shows it, and none was refused."""
    known = {txn.id: txn for txn in judged(history, verdict.details)}
    accepted, refused, without = 0, [], []
    for name, proof in _proofs(verdict):
        if proof is None:
            without.append(f"{verdict.checker}: {name}")
            continue
        try:
            proof(known)
            accepted += 1
        except (RefusedError, LookupError, TypeError, ValueError) as error:
            refused.append(f"{verdict.checker}: {name}: {error}")
    return Verified(accepted, tuple(refused), tuple(without), bool(accepted and not refused))


Known = Mapping[int, Txn]


def _proofs(verdict: Verdict) -> Iterator[tuple[str, Callable[[Known], None] | None]]:
    """What is claimed, and what checks it; None: nothing here can."""
    proof = verdict.details["proof"]
    match verdict.result, proof["kind"]:
        case "valid", "serial-order" if "order" in proof:
            yield "serial-order", partial(_replayed, proof["order"], _promised(verdict))
        case "invalid", _ if _promised(verdict).endswith("serializable"):  # there every circle is forbidden
            for name in proof["names"]:
                yield name, _anomaly(name, verdict.details["anomalies"][name], _promised(verdict))
        case _:
            yield proof["kind"], None


def _promised(verdict: Verdict) -> str:
    return str(verdict.details.get("promised", verdict.model))


def _need(true: bool, otherwise: str) -> None:
    if not true:
        raise RefusedError(otherwise)


# ---- valid


def _replayed(order: Sequence[int], promised: str, known: Known) -> None:
    _need(len(set(order)) == len(order), "it names a transaction twice")
    _need(
        {txn.id for txn in known.values() if txn.ok} <= set(order), "a transaction that happened is missing"
    )
    state: dict[str, Any] = {}
    latest: dict[Any, float] = {}
    for txn in map(known.__getitem__, order):
        _need(not txn.failed, f"the transaction of event {txn.id} had failed")
        _done(txn, state)
        if promised.startswith("str"):  # strict-, strong-session-
            session = txn.session if promised.startswith("strong-session") else None
            _need(
                txn.over > latest.get(session, -1),
                f"the one of event {txn.id} was over before one that stands before it",
            )
            latest[session] = max(latest.get(session, -1), txn.began)


def _done(txn: Txn, state: dict[str, Any]) -> None:
    for f, key, value in txn.micros:
        if f == "append":
            state[key] = [*state.get(key, ()), value]
        elif f == "w":
            state[key] = value
        elif txn.ok:
            _need(
                _plain(value) == _plain(state.get(key)),
                f"the transaction of event {txn.id} cannot have read {key} so",
            )


def _plain(value: Any) -> Any:
    """An empty list is no list."""
    return None if value is None or value == [] else name_of(value)


# ---- invalid


def _anomaly(name: str, shown: Mapping[str, Any], promised: str) -> Callable[[Known], None] | None:
    events = {each["name"]: each["events"][0] for each in shown["transactions"]}
    if shown["edges"]:
        return partial(_circle, shown["edges"], events, promised)
    micros = shown["at"]
    if name not in RULES or (name == "incompatible-order" and any(micro[0] not in READS for micro in micros)):
        return None
    return partial(_without_circle, name, micros[0][1], tuple(events.values()))


def _without_circle(name: str, key: str, events: Sequence[int], known: Known) -> None:
    _need(RULES[name](key, [known[event] for event in events], known), "these transactions do not show it")


def _circle(
    edges: Sequence[Mapping[str, Any]], events: Mapping[str, int], promised: str, known: Known
) -> None:
    for edge, after in zip(edges, [*edges[1:], edges[0]], strict=True):
        _need(edge["to"] == after["from"], "it is not a circle")
        one, other = known[events[edge["from"]]], known[events[edge["to"]]]
        _need(
            not (one.failed or other.failed) and one is not other,
            "a transaction that did not happen is in it",
        )
        told = f"{edge['from']} need not come before {edge['to']} ({edge['kind']})"
        _need(_precedes(edge, one, other, known, promised), told)


def _precedes(edge: Mapping[str, Any], one: Txn, other: Txn, known: Known, promised: str) -> bool:
    kind, key = edge["kind"], edge["key"]
    if kind == "realtime":
        return promised.startswith("strict") and one.over < other.began
    if kind == "process":
        return promised.startswith("str") and one.session == other.session and one.over < other.began
    if kind == "wr":
        return any(name_of(each) in one.wrote(key) for read in other.reads(key) for each in elements(read))
    if kind == "rw":
        return any(_lacks(read, key, other) for read in one.reads(key))
    readers = [read for txn in known.values() for read in txn.reads(key) if isinstance(read, list)]
    pairs = [(a, b) for a in one.wrote(key) for b in other.wrote(key)]
    return any(_shows(read, a, b) for a, b in pairs for read in readers) or _overwrote(
        one.wrote(key), key, other
    )


def _lacks(read: Any, key: str, other: Txn) -> bool:
    """Whoever read this came before `other`, which wrote the key: after all of that, it would have read more."""
    seen = [name_of(each) for each in elements(read)]
    if any(f == "append" for f, at, _ in other.micros if at == key):
        return not set(other.wrote(key)) <= set(seen)
    unseen = set(other.wrote(key)) - set(seen)
    return bool(unseen) and (read is None or _overwrote(seen, key, other))


def _overwrote(values: Iterable[str], key: str, other: Txn) -> bool:
    """`other` read one of these values, or wrote it, and then wrote the key (again)."""
    wanted = set(values)
    mine = [(f, value) for f, at, value in other.micros if at == key and (f not in READS or other.ok)]
    met = [
        place
        for place, (_, value) in enumerate(mine)
        if not isinstance(value, list) and name_of(value) in wanted
    ]
    return bool(met) and any(f == "w" for f, _ in mine[min(met) + 1 :])


def _shows(read: list[Any], first: str, second: str) -> bool:
    """The list has the first, and not the second before it."""
    names = [name_of(each) for each in read]
    return first in names and (second not in names or names.index(first) < names.index(second))
