"""The meaning of transactions, a second time: for `verify_isolation`, which must share nothing with the search.

`RULES` holds, by the anomaly's name, what is impossible even without a cycle: two orders of one list, or a value that
was never written or only by a failed transaction. Keys and values are the same as `checkers.history.values` says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from checkers.history.history import History
from checkers.history.members import answered_by
from checkers.history.operation import Operation
from checkers.history.values import Composite
from checkers.proofs.meaning import Terms

NEVER = float("inf")
Micro = tuple[str, str, Any]
READS = ("r", "rp")


@dataclass(frozen=True, slots=True)
class Txn:
    """A transaction that happened, or may have (`ok` false: its reads had no answer). `session` keeps an order.

    `micros`: a key by `name_of`; a value as it stands, but one of a register that is a list or an object in an object
    of its own, because nothing goes in or out of it. `rank`: its place in the store's own order, if that is known.
    `headless`: keys of which its first read was left out (`without`), so it is not known how it began there.
    """

    id: int
    ok: bool
    failed: bool
    began: float
    over: float
    session: Any
    micros: tuple[Micro, ...]
    rank: float | None = None
    headless: frozenset[str] = frozenset()

    def reads(self, key: str) -> list[Any]:
        return [value for f, at, value in self.micros if f in READS and at == key and self.ok]

    def wrote(self, key: str) -> list[str]:
        return [name_of(value) for f, at, value in self.micros if f not in READS and at == key]

    def on(self, key: str) -> list[tuple[str, Any]]:
        return [(f, value) for f, at, value in self.micros if at == key and (f not in READS or self.ok)]

    def first_read(self, key: str) -> tuple[str, ...] | None:
        """The version that it read before it wrote the key; None if it wrote first, or that is not known."""
        steps = self.on(key)
        if key in self.headless or not steps or steps[0][0] not in READS:
            return None
        return tuple(map(name_of, elements(steps[0][1])))

    def without(self, numbers: Collection[int]) -> Txn:
        """The transaction without these of its reads."""
        keys = [key for _, key, _ in self.micros]
        headless = self.headless.union(
            keys[number] for number in numbers if keys.index(keys[number]) == number
        )
        micros = tuple(micro for number, micro in enumerate(self.micros) if number not in numbers)
        return replace(self, micros=micros, headless=headless)


Known = Mapping[int, Txn]


def transactions_in(history: History, asked: Terms) -> Iterable[Txn]:
    """The transactions that write, and of the read-only ones those that were answered and that `asked` covers."""
    txns = [operation for operation in history.operations if operation.f == "txn"]
    are_lists = _are_lists(micro for operation in txns for micro in operation.value)
    for operation in txns:
        begun = history.start
        micros = tuple(
            (f, name_of(key), _since(begun.of(key), f, value, are_lists)) for f, key, value in operation.value
        )
        looks = all(f in READS for f, _, _ in micros)
        if looks and (operation.type != "ok" or not asked.reads(operation.role, operation.mode)):
            continue
        over = (
            operation.complete_index
            if operation.type == "ok" and operation.complete_index is not None
            else NEVER
        )
        session = _session(history, operation, looks, asked)
        yield Txn(
            id=operation.invoke_index,
            ok=operation.type == "ok",
            failed=operation.type == "fail",
            began=operation.invoke_index,
            over=over,
            session=session,
            micros=micros,
            rank=asked.ranks.get(operation.invoke_index, asked.ranks.get(operation.complete_index or -1)),
        )


def _since(begun: Any, f: str, value: Any, are_lists: bool) -> Any:
    """The value that a micro-operation shows or writes, as if the key had begun with nothing and not with `begun`."""
    if are_lists:
        if begun is None or f == "append":
            return value
        shown, there = list(value or []), len(begun)
        is_there = name_of(shown[:there]) == name_of(list(begun))
        return shown[there:] if is_there else [*shown, None]  # no client writes null
    if begun is not None and name_of(value) == name_of(begun):
        return None
    if begun is not None and value is None and f in READS:
        return {"nothing": True}
    return {"value": value} if isinstance(value, list | tuple | dict) else value


def _session(history: History, operation: Operation, looks: bool, asked: Terms) -> Any:
    if not asked.by_node:
        return operation.process
    is_of_a_node = looks and operation.mode in ("read-confirmed", None) and operation.node is not None
    return answered_by(history, operation) if is_of_a_node else (operation.invoke_index,)


def name_of(value: Any) -> str:
    """The name of a key or a value. Values that are different have different names."""
    return str(value) if type(value) is int else repr(Composite(value))


def keys_shown_as(word: str, known: Known) -> list[str]:
    """The names of the keys that a verdict shows as `word`: a text without its quotes."""
    keys = {key for txn in known.values() for _, key, _ in txn.micros}
    return sorted(keys & {word, name_of(word)})


def elements(read: Any) -> list[Any]:
    return list(read) if isinstance(read, list | tuple) else [] if read is None else [read]


def is_list(txns: Iterable[Txn]) -> bool:
    """Whether keys hold lists, which grow, or registers."""
    return _are_lists(micro for txn in txns for micro in txn.micros)


def _are_lists(micros: Iterable[Sequence[Any]]) -> bool:
    every = list(micros)
    return all(f != "w" for f, _, _ in every) and any(
        f == "append" or isinstance(value, list | tuple) for f, _, value in every
    )


Rule = Callable[[str, Sequence[Txn], Known], bool]


def _names(read: Any) -> list[str]:
    return [name_of(element) for element in elements(read)]


def _incompatible(key: str, named: Sequence[Txn], known: Known) -> bool:
    if not is_list(known.values()):
        return False  # a register shows its last value alone
    reads = [names for txn in named for names in of_others(key, txn)]
    if any(one[: len(other)] != other[: len(one)] for one in reads for other in reads):
        return True
    shown = [_names(read) for txn in known.values() for read in txn.reads(key)]
    pairs = [pair for txn in named if not txn.failed for pair in pairwise(txn.wrote(key))]
    return any(
        second in names and (first not in names or names.index(first) > names.index(second))
        for first, second in pairs
        for names in shown
    )


def _aborted(key: str, named: Sequence[Txn], _: Known) -> bool:
    return _show_undone(key, named, named)


def _dirty_update(key: str, named: Sequence[Txn], known: Known) -> bool:
    return _show_undone(key, named, known.values())


def _show_undone(key: str, named: Sequence[Txn], readers: Iterable[Txn]) -> bool:
    undone = {value for txn in named if txn.failed for value in txn.wrote(key)}
    return any(name in undone for txn in readers for read in txn.reads(key) for name in _names(read))


def _intermediate(key: str, named: Sequence[Txn], _: Known) -> bool:
    passing = {value for txn in named for value in txn.wrote(key)[:-1]}
    return any(
        names and names[-1] in passing and names[-1] not in txn.wrote(key)
        for txn in named
        for names in of_others(key, txn)
    )


def of_others(key: str, txn: Txn) -> Iterator[list[str]]:
    """The values that each read of a transaction shows, without its own appends at their end."""
    own: list[str] = []
    for f, value in txn.on(key):
        if f not in READS:
            own.append(name_of(value))
        else:
            yield without_own(_names(value), own)


def without_own(shown: Sequence[str], own: Sequence[str]) -> list[str]:
    """A list without the elements at its end that its reader appended itself, as many as there are in their order."""
    left = list(shown)
    appended = list(own)
    while appended and left[-1:] != appended[-1:]:
        appended.pop()
    while appended and left[-1:] == appended[-1:]:
        left.pop()
        appended.pop()
    return left if not appended or appended[-1] in left else list(shown)


def _garbage(key: str, named: Sequence[Txn], known: Known) -> bool:
    written = {value for txn in known.values() for value in txn.wrote(key)}
    return any(name not in written for txn in named for read in txn.reads(key) for name in _names(read))


def _future(key: str, named: Sequence[Txn], _: Known) -> bool:
    return any(
        set(_names(value)) & {name_of(later) for g, later in txn.on(key)[place:] if g not in READS}
        for txn in named
        for place, (f, value) in enumerate(txn.on(key))
        if f in READS
    )


def _doubled(key: str, named: Sequence[Txn], _: Known) -> bool:
    lists = [_names(read) for txn in named for read in txn.reads(key)]
    return any(len(set(names)) < len(names) for names in lists)


def _internal(key: str, named: Sequence[Txn], _: Known) -> bool:
    return any(not agrees_with_itself(txn, key) for txn in named)


def agrees_with_itself(txn: Txn, key: str) -> bool:
    """Whether later reads of a key show what the first did, and what the transaction itself wrote since."""
    state: list[str] | None = None
    own: list[str] = []
    for f, value in txn.on(key):
        names = _names(value)
        if f == "w":
            state = names
        elif f == "append":
            own.append(name_of(value))
            state = None if state is None else [*state, name_of(value)]
        elif (state is not None and state != names) or (own and names[-len(own) :] != own):
            return False
        else:
            state = names
    return True


def _lost_update(key: str, named: Sequence[Txn], _: Known) -> bool:
    read = [version for txn in named if txn.wrote(key) and (version := txn.first_read(key)) is not None]
    return len(read) > 1 and len(set(read)) == 1


def _fractured(key: str, named: Sequence[Txn], _: Known) -> bool:
    return any(
        saw(txn, other) and misses(txn, key, other) for txn in named for other in named if txn is not other
    )


def saw(txn: Txn, other: Txn) -> bool:
    """Whether a transaction read a write of another one."""
    keys = {key for _, key, _ in txn.micros}
    return any(set(_names(read)) & set(other.wrote(key)) for key in keys for read in txn.reads(key))


def misses(txn: Txn, key: str, other: Txn) -> bool:
    """Whether a read of `txn` is of a version of the key before that of `other`, which is no predicate's."""
    wrote = set(other.wrote(key))
    reads = [(f, value) for f, value in txn.on(key) if f == "r"]
    return bool(wrote) and any(lacks(value, key, other) for _, value in reads)


def lacks(read: Any, key: str, other: Txn) -> bool:
    """Whether this read came before `other`, which wrote the key: after all of `other`, it would have shown more."""
    shown = _names(read)
    if any(f == "append" for f, _ in other.on(key)):
        return not set(other.wrote(key)) <= set(shown)
    return bool(set(other.wrote(key)) - set(shown)) and (read is None or overwrote(shown, key, other))


def overwrote(values: Iterable[str], key: str, other: Txn) -> bool:
    """`other` read one of these values, or wrote it, and then wrote the key (again)."""
    wanted = set(values)
    steps = other.on(key)
    places = [
        place
        for place, (_, value) in enumerate(steps)
        if not isinstance(value, list) and name_of(value) in wanted
    ]
    return bool(places) and any(f == "w" for f, _ in steps[min(places) + 1 :])


RULES: Mapping[str, Rule] = {
    "incompatible-order": _incompatible,
    "dirty-update": _dirty_update,
    "G1a": _aborted,
    "G1b": _intermediate,
    "garbage-read": _garbage,
    "future-read": _future,
    "duplicate-elements": _doubled,
    "internal": _internal,
    "fractured-read": _fractured,
    "lost-update": _lost_update,
}
