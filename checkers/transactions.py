"""What transactions say, once more: for `verify_isolation`, which is to share nothing with the search.

`RULES` holds, by the anomaly's name, what cannot be at once without any circle: two orders of one list, a value that
nobody wrote, or whose transaction had failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from checkers.history.history import History
from checkers.history.members import answered_by
from checkers.history.operation import Operation

NEVER = float("inf")
Micro = tuple[str, str, Any]
READS = ("r", "rp")


@dataclass(frozen=True, slots=True)
class Txn:
    """A transaction that happened, or may have (`ok` false: its reads had no answer). `session` keeps an order."""

    id: int
    ok: bool
    failed: bool
    began: float
    over: float
    session: Any
    micros: tuple[Micro, ...]

    def reads(self, key: str) -> list[Any]:
        return [value for f, at, value in self.micros if f in READS and at == key and self.ok]

    def wrote(self, key: str) -> list[str]:
        return [name_of(value) for f, at, value in self.micros if f not in READS and at == key]


def judged(history: History, details: Mapping[str, Any]) -> Iterable[Txn]:
    left_out = details.get("reads_not_judged", ())
    for each in history.operations:
        if each.f != "txn":
            continue
        micros = tuple((f, name_of(key), value) for f, key, value in each.value)
        looks = all(f in READS for f, _, _ in micros)
        if looks and (
            each.type != "ok" or f"{each.mode or 'no mode'} at {each.role or 'unknown role'}" in left_out
        ):
            continue
        over = each.complete_index if each.type == "ok" and each.complete_index is not None else NEVER
        failed = each.type == "fail"
        yield Txn(
            each.invoke_index,
            each.type == "ok",
            failed,
            each.invoke_index,
            over,
            _session(history, each, looks, details),
            micros,
        )


def _session(history: History, each: Operation, looks: bool, details: Mapping[str, Any]) -> Any:
    if details.get("sessions") != "node":
        return each.process
    is_of_a_node = looks and each.mode in ("read-confirmed", None) and each.node is not None
    return answered_by(history, each) if is_of_a_node else (each.invoke_index,)


def name_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)


def elements(read: Any) -> list[Any]:
    return read if isinstance(read, list) else [] if read is None else [read]


Rule = Callable[[str, Sequence[Txn], Mapping[int, Txn]], bool]


def _incompatible(key: str, named: Sequence[Txn], _: Mapping[int, Txn]) -> bool:
    reads = [read for txn in named for read in txn.reads(key) if isinstance(read, list)]
    return any(one[: len(other)] != other[: len(one)] for one in reads for other in reads)


def _aborted(key: str, named: Sequence[Txn], _: Mapping[int, Txn]) -> bool:
    undone = {value for txn in named if txn.failed for value in txn.wrote(key)}
    return any(name_of(each) in undone for txn in named for read in txn.reads(key) for each in elements(read))


def _garbage(key: str, named: Sequence[Txn], known: Mapping[int, Txn]) -> bool:
    written = {value for txn in known.values() for value in txn.wrote(key)}
    return any(
        name_of(each) not in written for txn in named for read in txn.reads(key) for each in elements(read)
    )


def _doubled(key: str, named: Sequence[Txn], _: Mapping[int, Txn]) -> bool:
    lists = [[name_of(each) for each in elements(read)] for txn in named for read in txn.reads(key)]
    return any(len(set(names)) < len(names) for names in lists)


def _lost_update(key: str, named: Sequence[Txn], _: Mapping[int, Txn]) -> bool:
    before = [(txn, name_of(txn.reads(key)[0])) for txn in named if txn.reads(key) and txn.wrote(key)]
    return (
        len(before) > 1
        and len({read for _, read in before}) == 1
        and all(_reads_first(txn, key) for txn, _ in before)
    )


def _reads_first(txn: Txn, key: str) -> bool:
    return next(f for f, at, _ in txn.micros if at == key) in READS


RULES: Mapping[str, Rule] = {
    "incompatible-order": _incompatible,
    "G1a": _aborted,
    "garbage-read": _garbage,
    "duplicate-elements": _doubled,
    "lost-update": _lost_update,
}
