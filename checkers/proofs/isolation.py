"""The isolation models, once more and by their definitions: for `verify_isolation`, which knows nothing of the search.

A model is a base and an order (0 none, 1 of sessions, 2 real time). `Store` executes transactions step by step,
`keeps_versions` looks at an order of versions, `is_possible` tries all executions of a few transactions.
"""

from __future__ import annotations

from bisect import bisect_left
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

IMPLIES: Mapping[str, tuple[str, ...]] = {  # a base and the next weaker ones
    "read-committed": (),
    "cursor-stability": ("read-committed",),
    "monotonic-atomic-view": ("read-committed",),
    "monotonic-view": ("monotonic-atomic-view",),
    "read-atomic": ("monotonic-atomic-view",),
    "update-atomic": ("read-atomic", "cursor-stability"),
    "causal-cerone": ("read-atomic",),
    "prefix": ("causal-cerone",),
    "parallel-snapshot-isolation": ("causal-cerone", "update-atomic", "monotonic-view"),
    "update-serializable": ("parallel-snapshot-isolation",),
    "snapshot-isolation": ("parallel-snapshot-isolation", "prefix"),
    "repeatable-read": ("update-atomic",),
    "serializable": ("snapshot-isolation", "repeatable-read", "update-serializable"),
}
_OF_KEYS = ("cyclic-versions-process", "cyclic-versions-realtime")
FORBIDS: Mapping[str, tuple[str, ...]] = {  # without a circle, beside what the weaker ones forbid
    "read-committed": (
        *("duplicate-elements", "garbage-read", "future-read", "cyclic-versions"),
        *("G1a", "G1b", "dirty-update", "incompatible-order"),
    ),
    "cursor-stability": ("lost-update",),
    "read-atomic": ("internal", "fractured-read"),
    "parallel-snapshot-isolation": _OF_KEYS,
    "repeatable-read": _OF_KEYS,
}
BY_STEPS = ("prefix", "snapshot-isolation", "repeatable-read", "serializable")
"""The models whose executions are steps; those of the others are orders of versions."""
SPLIT = ("prefix", "snapshot-isolation")
"""The models in which a transaction reads at one step and commits at a later one."""
KEYED = ("parallel-snapshot-isolation", "repeatable-read")
"""With an order, these and all stronger ones promise that each key by itself has it too."""
TRIED_MAX = 200_000
"""The most steps of executions that are tried for a few transactions; beyond, there is no result."""
State = dict[str, tuple[str, ...]]


_SPOKEN = {
    "strict-serializable": ("serializable", 2),
    "causal": ("causal-cerone", 1),
    "strong-causal": ("causal-cerone", 2),
}


def parsed(model: str) -> tuple[str, int]:
    """A model's base and its order."""
    if model in _SPOKEN:
        return _SPOKEN[model]
    for prefix, order in (("strong-session-", 1), ("strong-", 2)):
        if model.startswith(prefix):
            return model.removeprefix(prefix), order
    return model, 0


def implied_by(base: str) -> Iterator[str]:
    """The base and all weaker ones."""
    yield base
    for weaker in IMPLIES[base]:
        yield from implied_by(weaker)


def forbids(base: str, anomaly: str) -> bool:
    """Whether the base forbids an anomaly without a circle."""
    return any(anomaly in FORBIDS.get(weaker, ()) for weaker in implied_by(base))


def is_keyed(base: str) -> bool:
    """Whether the base with an order promises each key by itself the same order."""
    return any(weaker in KEYED for weaker in implied_by(base))


def forbids_circle(base: str, kinds: Sequence[tuple[str, bool]]) -> bool:
    """Whether the base forbids a circle of these edges: (kind, whether a predicate's read is behind it)."""
    anti = [kind == "rw" for kind, _ in kinds]
    match base:
        case "parallel-snapshot-isolation" | "update-serializable":
            return sum(anti) <= 1
        case "snapshot-isolation":
            return not any(one and other for one, other in pairwise([*anti, anti[0]])) or len(anti) == 1
        case "repeatable-read":
            return not any(predicate for kind, predicate in kinds if kind == "rw")
        case "serializable":
            return True
    return not any(anti)


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
                self.base == "prefix" or self.changed.get(key, 0) <= self.looked[txn.id],
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
        version = txn.first_read(key)
        if version is not None:
            self._need((key, version) not in self.updated, f"event {txn.id} wrote {key} unseen by another")
            self.updated.add((key, version))

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
        for txn in txns:
            for key in dict.fromkeys(key for f, key, _ in txn.micros if f not in READS):
                known = self.versions[key]
                before = known[-1][1] if known and self.lists else ()
                known.append((txn, (*before, *txn.wrote(key)) if self.lists else tuple(txn.wrote(key)[-1:])))

    def check(self) -> None:
        for txn in self.txns:
            for f, key, shown in self._external(txn):
                source = self._source(txn, key, shown)
                if source is not None and self.place[source.id] > self.place[txn.id]:
                    raise ValueError(f"event {txn.id} read {key} ({f}) of one that stands after it")
            keys = dict.fromkeys(key for _, key, _ in txn.micros)
            if forbids(self.base, "internal") and not all(agrees_with_itself(txn, key) for key in keys):
                raise ValueError(f"event {txn.id} does not agree with itself")
            if self.base in ("monotonic-view", "monotonic-atomic-view") and not _shows_own(txn, self.lists):
                raise ValueError(f"event {txn.id} does not show its own write")
        if self.base != "read-committed":
            self._look()
        if forbids(self.base, "lost-update"):
            self._no_lost_update()
        if self.base == "update-serializable":
            self._updates()

    def _look(self) -> None:
        """No read shows a version older than that of a transaction which it saw."""
        past: list[int] = []
        for at, txn in enumerate(self.txns):
            steps = [
                (f, key, None if f == "w" else self._source(txn, key, shown))
                for f, key, shown in self._steps(txn)
            ]
            timed = self._mask(one for one in self.txns[:at] if comes_first(one, txn, self.order))
            sources = self._mask(one for f, _, one in steps if f != "w" and one is not None)
            beside = self._mask(self._met_before(txn, at))
            so_far = timed
            for f, key, source in steps:
                if f == "w":
                    if self.base == "monotonic-view":
                        so_far |= self._mask(self._writers(key, at))
                    continue
                so_far |= 0 if source is None else self._mask([source])
                match self.base:
                    case "cursor-stability":
                        seen = beside if key in _keys_written(txn) else 0
                    case "monotonic-atomic-view" | "monotonic-view":
                        seen = so_far
                    case "read-atomic" | "causal-cerone":
                        seen = sources | timed
                    case _:
                        seen = sources | timed | beside
                if f == "r" or self.base not in NOT_CLOSED:
                    self._need_newest(
                        txn, key, source, seen if self.base in NOT_CLOSED else _closed(seen, past)
                    )
            past.append(_closed(sources | timed | (0 if self.base == "causal-cerone" else beside), past))

    def _need_newest(self, txn: Txn, key: str, source: Txn | None, seen: int) -> None:
        for one, _ in reversed(self.versions[key]):
            # From the newest back: behind the version that was read stands none that it misses.
            if one is source:
                break
            if one is not txn and seen >> self.place[one.id] & 1:
                raise ValueError(f"event {txn.id} read {key} older than by event {one.id}, which it saw")

    def _met_before(self, txn: Txn, at: int) -> Iterator[Txn]:
        """Those before it that wrote a key of its own; of update serializable also those that write and read one."""
        for key in _keys_written(txn):
            yield from self._writers(key, at)
        for one in self.txns[:at] if self.base == "update-serializable" else ():
            if _keys_written(one) and any(one.reads(key) for key in _keys_written(txn)):
                yield one

    def _mask(self, txns: Iterable[Txn]) -> int:
        return sum({1 << self.place[txn.id] for txn in txns})

    def _steps(self, txn: Txn) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """(f, key, values by other transactions) of each step, without reads of own writes."""
        own: dict[str, list[str]] = defaultdict(list)
        for f, key, value in txn.micros:
            if f not in READS:
                own[key].append(name_of(value))
                yield "w", key, ()
            elif txn.ok:
                shown = tuple(map(name_of, elements(value)))
                if self.lists or not (shown and shown[0] in own[key]):
                    yield f, key, self._of_others(shown, own[key])

    def _no_lost_update(self) -> None:
        """No two transactions write a key of which both first read the same version."""
        updated: set[tuple[str, tuple[str, ...]]] = set()
        for txn in self.txns:
            for key in _keys_written(txn):
                version = txn.first_read(key)
                if version is not None and (key, version) in updated:
                    raise ValueError(f"event {txn.id} wrote {key} unseen by another")
                updated |= set() if version is None else {(key, version)}

    def _updates(self) -> None:
        """Those that write stand so that they could run one by one."""
        for at, txn in enumerate(self.txns):
            for f, key, shown in self._steps(txn) if _keys_written(txn) else ():
                if f != "w":
                    last = next(reversed(self._writers(key, at)), None)
                    if self._source(txn, key, shown) is not last:
                        raise ValueError(f"event {txn.id} read of {key} not what the last before it wrote")

    def _external(self, txn: Txn) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """(f, key, values by other transactions) of reads that depend on others."""
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
                yield f, key, self._of_others(shown, own[key])
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

    def _writers(self, key: str, before: int) -> list[Txn]:
        return [writer for writer, _ in self.versions[key] if self.place[writer.id] < before]


NOT_CLOSED = ("cursor-stability", "monotonic-atomic-view", "read-atomic", "update-atomic")
"""The models in which a transaction need not see what those saw that it saw, and reads by predicates may be old."""


def _closed(direct: int, past: Sequence[int]) -> int:
    """These and all that they saw."""
    every, left = direct, direct
    while left:
        low = left & -left
        every |= past[low.bit_length() - 1]
        left ^= low
    return every


def _shows_own(txn: Txn, lists: bool) -> bool:
    """Whether every read behind own writes of its key shows them."""
    own: dict[str, list[str]] = defaultdict(list)
    for f, key, value in txn.micros:
        if f not in READS:
            own[key] = [*own[key], name_of(value)] if lists else [name_of(value)]
        elif txn.ok and own[key] and list(map(name_of, elements(value)))[-len(own[key]) :] != own[key]:
            return False
    return True


def _keys_written(txn: Txn) -> dict[str, None]:
    return dict.fromkeys(key for f, key, _ in txn.micros if f not in READS)


# ---- what is promised of each register by itself


def comes_first(one: Txn, other: Txn, order: int) -> bool:
    """Whether an order (0 none, 1 of sessions, 2 real time) puts `one` before `other`."""
    return order > 0 and one.over < other.began and (order == 2 or one.session == other.session)


def is_ranked_before(one: Txn, other: Txn) -> bool:
    """Whether the store itself says so."""
    return (
        one.rank is not None
        and other.rank is not None
        and one.rank < other.rank
        and not (one.failed or other.failed)
    )


def ends(txn: Txn, key: str) -> tuple[str | None, str | None]:
    """The versions of a register that a transaction enters with and leaves behind; None: it has none, or it is not
    known."""
    steps = [] if txn.failed else txn.on(key)
    entered = None if not steps or key in txn.headless else name_of(steps[0][1])
    written = [name_of(value) for f, value in steps if f == "w"]
    return entered, written[-1] if written else entered


def keeps_keys(order: int, txns: Sequence[Txn]) -> None:
    """ValueError unless each register has the order by itself, and the store's own, if writers stand in this order."""
    ranks = [txn.rank for txn in txns if txn.rank is not None]
    if not order and not ranks:
        return
    for key in dict.fromkeys(key for txn in txns for _, key, _ in txn.micros):
        writers = [txn for txn in txns if txn.wrote(key)]
        ranked = [txn.rank for txn in writers if txn.rank is not None]
        if ranked != sorted(ranked):
            raise ValueError(f"versions of {key} are not in the store's own order")
        place = {value: at for at, txn in enumerate(writers) for value in txn.wrote(key)} | {"null": -1}
        latest: dict[Any, list[tuple[float, int]]] = defaultdict(list)
        met = [(txn, *ends(txn, key)) for txn in txns if order and txn.on(key)]
        if any(version not in place for _, *both in met for version in both if version is not None):
            raise ValueError(f"nobody here wrote what is read of {key}")
        for txn, _, left in sorted(met, key=lambda each: each[0].over):
            known = latest[txn.session if order == 1 else None]
            if left is None:
                continue
            # The newest version that any of those left which are over by then.
            known.append((txn.over, max(place[left], known[-1][1] if known else -1)))
        for txn, entered, _ in met:
            if entered is None:
                continue
            known = latest[txn.session if order == 1 else None]
            at = bisect_left(known, (txn.began, -2)) - 1
            # Just before its own version.
            meets = place[entered] - (0 if txn.on(key)[0][0] in READS else 0.5)
            if at >= 0 and known[at][1] > meets:
                raise ValueError(f"event {txn.id} meets {key} older than one that was over before")


# ---- all executions of a few


def is_possible(base: str, order: int, key_order: int, cases: Iterable[Known]) -> bool:
    """Whether any of these cases of a few transactions has an execution of the model that keeps the order of keys.

    Raises TooMany.
    """
    tried = _Tried()
    for known in cases:
        sure = [txn for txn in known.values() if txn.ok]
        # Each of these may have happened or not: a history is possible if it is with any part of them.
        unsure = [txn for txn in known.values() if not txn.ok and not txn.failed]
        choices = chain.from_iterable(combinations(unsure, count) for count in range(len(unsure) + 1))
        if any(_any(base, order, key_order, [*sure, *chosen], tried) for chosen in choices):
            return True
    return False


class TooMany(Exception):
    """Not all executions were tried."""


class _Tried:
    def __init__(self) -> None:
        self.left = TRIED_MAX

    def count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooMany


def _any(base: str, order: int, key_order: int, txns: Sequence[Txn], tried: _Tried) -> bool:
    splits, by_steps = base in SPLIT, base in BY_STEPS
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
            committed = [txn for txn, commits in steps if commits]
            return _fits_versions(base, order, key_order, committed, by_steps)
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
            if not commits or base not in SPLIT:
                store.read(txn)
            if commits:
                store.commit(txn)
    except ValueError:
        return False
    return True


def _fits_versions(base: str, order: int, key_order: int, txns: Sequence[Txn], by_steps: bool) -> bool:
    try:
        keeps_keys(key_order, txns)
        if not by_steps:
            keeps_versions(base, order, txns)
    except ValueError:
        return False
    return True
