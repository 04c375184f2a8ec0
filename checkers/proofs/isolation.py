"""The isolation models, once more and by their definitions: for `verify_isolation`, which knows nothing of the search.

A model is a base and an order (0 none, 1 of sessions, 2 real time). `Store` executes transactions step by step,
`keeps_versions` looks at an order of versions, `is_possible` tries all executions of a few transactions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, pairwise
from typing import Any

from checkers.proofs.transactions import (
    READS,
    Known,
    Txn,
    agrees_with_itself,
    elements,
    is_list,
    name_of,
    without_own,
)

WEAKEST_FIRST: Mapping[str, tuple[str, ...]] = {  # a base and the weaker ones
    "read-committed": (),
    "read-atomic": ("read-committed",),
    "parallel-snapshot-isolation": ("read-atomic", "read-committed"),
    "snapshot-isolation": ("parallel-snapshot-isolation", "read-atomic", "read-committed"),
    "repeatable-read": ("read-atomic", "read-committed"),
    "serializable": (
        *("snapshot-isolation", "parallel-snapshot-isolation", "repeatable-read"),
        *("read-atomic", "read-committed"),
    ),
}
FORBIDS: Mapping[str, tuple[str, ...]] = {  # without a circle, beside what the weaker ones forbid
    "read-committed": (
        *("duplicate-elements", "garbage-read", "future-read", "cyclic-versions"),
        *("G1a", "G1b", "dirty-update", "incompatible-order"),
    ),
    "read-atomic": ("internal", "fractured-read"),
    "parallel-snapshot-isolation": ("lost-update", "cyclic-versions-process", "cyclic-versions-realtime"),
    "snapshot-isolation": (),
    "repeatable-read": ("lost-update", "cyclic-versions-process", "cyclic-versions-realtime"),
    "serializable": (),
}
TRIED_MAX = 200_000
"""The most steps of executions that are tried for a few transactions; beyond, there is no result."""
State = dict[str, tuple[str, ...]]


def parsed(model: str) -> tuple[str, int]:
    """A model's base and its order."""
    if model == "strict-serializable":
        return "serializable", 2
    for prefix, order in (("strong-session-", 1), ("strong-", 2)):
        if model.startswith(prefix):
            return model.removeprefix(prefix), order
    return model, 0


def forbids(base: str, anomaly: str) -> bool:
    """Whether the base forbids an anomaly without a circle."""
    return any(anomaly in FORBIDS[weaker] for weaker in (base, *WEAKEST_FIRST[base]))


def forbids_circle(base: str, kinds: Sequence[tuple[str, bool]]) -> bool:
    """Whether the base forbids a circle of these edges: (kind, whether a predicate's read is behind it)."""
    anti = [kind == "rw" for kind, _ in kinds]
    match base:
        case "read-committed" | "read-atomic":
            return not any(anti)
        case "parallel-snapshot-isolation":
            return sum(anti) <= 1
        case "snapshot-isolation":
            return not any(one and other for one, other in pairwise([*anti, anti[0]])) or len(anti) == 1
        case "repeatable-read":
            return not any(predicate for kind, predicate in kinds if kind == "rw")
    return True


# ---- an execution, step by step: each transaction reads, and then or later commits


class Store:
    """The data of a store while it executes transactions; each method raises ValueError for an impossible step."""

    def __init__(self, base: str, order: int, txns: Iterable[Txn]) -> None:
        self.lists = is_list(txns)
        self.base, self.order = base, order
        self.state: State = {}
        self.past: dict[str, list[tuple[str, ...]]] = defaultdict(lambda: [()])
        self.updated: set[tuple[str, tuple[str, ...]]] = set()
        self.looked: dict[int, int] = {}
        self.changed: dict[str, int] = {}
        self.latest: dict[Any, float] = {}
        self.place = 0

    def read(self, txn: Txn) -> None:
        """The transaction's snapshot is taken, and answers it."""
        self.place += 1
        self.looked[txn.id] = self.place
        group = self._group(txn)
        self.latest[group] = max(self.latest.get(group, -1), txn.began)
        own: State = {}
        for f, key, value in txn.micros:
            if f not in READS:
                before = own.get(key, ()) if self.lists else ()
                own[key] = (*before, name_of(value))
            elif txn.ok:
                shown = tuple(map(name_of, elements(value)))
                self._need(
                    self._answers(f, key, own.get(key, ()), shown),
                    f"event {txn.id} cannot have read {key} so",
                )

    def _answers(self, f: str, key: str, own: tuple[str, ...], shown: tuple[str, ...]) -> bool:
        states = self.past[key] if f == "rp" and self.base == "repeatable-read" else [self.state.get(key, ())]
        return any(shown == (state + own if self.lists else own or state) for state in states)

    def commit(self, txn: Txn) -> None:
        """The writes of the transaction become visible to all."""
        self.place += 1
        if self.order:
            late = txn.over < self.latest.get(self._group(txn), -1)
            self._need(not late, f"event {txn.id} was over before one that stands before it")
        for key in dict.fromkeys(key for f, key, _ in txn.micros if f not in READS):
            self._need(
                self.changed.get(key, 0) <= self.looked[txn.id],
                f"event {txn.id} overwrote what it did not see",
            )
            self.changed[key] = self.place
            wrote = tuple(txn.wrote(key))
            self.state[key] = (*self.state.get(key, ()), *wrote) if self.lists else wrote[-1:]
            if self.base == "repeatable-read":
                self.past[key].append(self.state[key])
                self._update(txn, key)

    def _update(self, txn: Txn, key: str) -> None:
        """No two transactions write a key of which both first read the same version, by a predicate or not."""
        f, value = txn.on(key)[0]
        if f in READS:
            version = key, tuple(map(name_of, elements(value)))
            self._need(version not in self.updated, f"event {txn.id} wrote {key} unseen by another")
            self.updated.add(version)

    def _group(self, txn: Txn) -> Any:
        return txn.session if self.order == 1 else None

    @staticmethod
    def _need(true: bool, otherwise: str) -> None:
        if not true:
            raise ValueError(otherwise)


# ---- an order of versions


def keeps_versions(base: str, order: int, txns: Sequence[Txn]) -> None:
    """ValueError unless the base allows all answers if the writers of each key stand in this order."""
    latest: dict[Any, float] = {}
    for txn in txns:
        group = txn.session if order == 1 else None
        if order and txn.over < latest.get(group, -1):
            raise ValueError(f"event {txn.id} was over before one that stands before it")
        latest[group] = max(latest.get(group, -1), txn.began)
    _Versions(base, order, txns).check()


class _Versions:
    def __init__(self, base: str, order: int, txns: Sequence[Txn]) -> None:
        self.base, self.order, self.txns = base, order, txns
        self.lists = is_list(txns)
        self.place = {txn.id: at for at, txn in enumerate(txns)}
        self.versions: dict[str, list[tuple[Txn, tuple[str, ...]]]] = defaultdict(list)
        self.writer: dict[tuple[str, str], Txn] = {}
        for txn in txns:
            for key in dict.fromkeys(key for f, key, _ in txn.micros if f not in READS):
                known = self.versions[key]
                before = known[-1][1] if known and self.lists else ()
                known.append((txn, (*before, *txn.wrote(key)) if self.lists else tuple(txn.wrote(key)[-1:])))
                self.writer |= {(key, value): txn for value in txn.wrote(key)}

    def check(self) -> None:
        for txn in self.txns:
            for f, key, shown, _ in self._external(txn):
                source = self._source(txn, key, shown)
                if source is not None and self.place[source.id] > self.place[txn.id]:
                    raise ValueError(f"event {txn.id} read {key} ({f}) of one that stands after it")
            if self.base != "read-committed" and not all(
                agrees_with_itself(txn, key) for _, key, _ in txn.micros
            ):
                raise ValueError(f"event {txn.id} does not agree with itself")
        if self.base == "read-atomic":
            self._atomic()
        elif self.base == "parallel-snapshot-isolation":
            self._snapshots()

    def _external(self, txn: Txn) -> Iterator[tuple[str, str, tuple[str, ...], bool]]:
        """(f, key, values by other transactions, whether it is no predicate's) of reads that depend on others."""
        own: dict[str, list[str]] = defaultdict(list)
        state: dict[str, tuple[str, ...]] = {}
        rows: set[str] = set()
        for f, key, value in txn.micros:
            if f not in READS:
                own[key].append(name_of(value))
                if not self.lists:
                    state[key] = (name_of(value),)
                elif key in state:
                    state[key] = (*state[key], name_of(value))
                continue
            if not txn.ok:
                continue
            shown = tuple(map(name_of, elements(value)))
            row = f == "r" and key not in rows and (self.lists or not own[key])
            rows |= {key} if f == "r" else set()
            if row or state.get(key) != shown:
                yield f, key, self._of_others(shown, own[key]), f == "r"
            state[key] = shown

    def _of_others(self, shown: tuple[str, ...], own: Sequence[str]) -> tuple[str, ...]:
        if self.lists:
            return tuple(without_own(shown, own))
        return () if shown and shown[0] in own else shown

    def _source(self, reader: Txn, key: str, shown: tuple[str, ...]) -> Txn | None:
        """The transaction that wrote it as its last version; None for the initial version. ValueError if none did."""
        if not shown:
            return None
        for writer, state in self.versions[key]:
            if state == shown and writer is not reader:
                return writer
        raise ValueError(f"event {reader.id} read of {key} what is no last version there")

    def _atomic(self) -> None:
        for txn in self.txns:
            reads = [(key, self._source(txn, key, shown), row) for _, key, shown, row in self._external(txn)]
            sources = {source.id for _, source, _ in reads if source is not None}
            for key, source_read, row in reads:
                for one, _ in reversed(self.versions[key] if row else []):
                    if one is source_read:
                        break
                    if one is not txn and (one.id in sources or self._comes_before(one, txn)):
                        raise ValueError(f"event {txn.id} read {key} older than by event {one.id}")

    def _comes_before(self, one: Txn, txn: Txn) -> bool:
        """Whether the model's order puts `one` before `txn`."""
        return self.order > 0 and one.over < txn.began and (self.order == 2 or one.session == txn.session)

    def _snapshots(self) -> None:
        visible: list[int] = []
        ended: list[tuple[float, Any, int]] = []
        for at, txn in enumerate(self.txns):
            direct = {self.place[o.id] for key in _keys_written(txn) for o in self._writers(key, at)[-1:]}
            reads = [(key, self._source(txn, key, shown)) for _, key, shown, _ in self._external(txn)]
            direct |= {
                self.place[source.id] for _, source in reads if source is not None and source is not txn
            }
            if self.order:
                direct |= {
                    p for over, session, p in ended
                    if over < txn.began and (self.order == 2 or session == txn.session)
                }  # fmt: skip
            mask = 0
            for writer_place in direct:
                mask |= visible[writer_place] | 1 << writer_place
            visible.append(mask)
            ended.append((txn.over, txn.session, at))
            for key, source in reads:
                last = next(
                    (o for o in reversed(self._writers(key, at)) if mask >> self.place[o.id] & 1), None
                )
                if last is not source:
                    raise ValueError(f"event {txn.id} read of {key} not the last that it saw")

    def _writers(self, key: str, before: int) -> list[Txn]:
        return [writer for writer, _ in self.versions[key] if self.place[writer.id] < before]


def _keys_written(txn: Txn) -> dict[str, None]:
    return dict.fromkeys(key for f, key, _ in txn.micros if f not in READS)


# ---- all executions of a few


def is_possible(base: str, order: int, known: Known) -> bool:
    """Whether the transactions have any execution of the model. Raises TooMany."""
    sure = [txn for txn in known.values() if txn.ok]
    unsure = [txn for txn in known.values() if not txn.ok and not txn.failed]
    choices = chain.from_iterable(combinations(unsure, count) for count in range(len(unsure) + 1))
    tried = _Tried()
    return any(_any(base, order, [*sure, *chosen], tried) for chosen in choices)


class TooMany(Exception):
    """Not all executions were tried."""


class _Tried:
    def __init__(self) -> None:
        self.left = TRIED_MAX

    def count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooMany


def _any(base: str, order: int, txns: Sequence[Txn], tried: _Tried) -> bool:
    splits = base == "snapshot-isolation"
    by_steps = splits or base in ("serializable", "repeatable-read")
    if by_steps and not all(agrees_with_itself(txn, key) for txn in txns for _, key, _ in txn.micros):
        return False

    def go(steps: tuple[tuple[Txn, bool], ...]) -> bool:
        """`steps`: a transaction, and whether it commits."""
        tried.count()
        if not _fits(base, order, txns, steps if by_steps else ()):
            return False
        over = {txn.id for txn, commits in steps if commits}
        begun = {txn.id for txn, _ in steps}
        if len(over) == len(txns):
            return by_steps or _fits_versions(base, order, [txn for txn, _ in steps])
        for txn in txns:
            if splits and txn.id in begun - over and go((*steps, (txn, True))):
                return True
            if txn.id not in begun and go((*steps, (txn, False)) if splits else (*steps, (txn, True))):
                return True
        return False

    return go(())


def _fits(base: str, order: int, txns: Sequence[Txn], steps: Sequence[tuple[Txn, bool]]) -> bool:
    store = Store(base, order, txns)
    try:
        for txn, commits in steps:
            if not commits or base != "snapshot-isolation":
                store.read(txn)
            if commits:
                store.commit(txn)
    except ValueError:
        return False
    return True


def _fits_versions(base: str, order: int, txns: Sequence[Txn]) -> bool:
    try:
        keeps_versions(base, order, txns)
    except ValueError:
        return False
    return True
