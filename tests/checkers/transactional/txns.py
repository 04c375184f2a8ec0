"""Histories of transactions, written short: `history(ok(1, "ax1 rx12"), …)`.

A micro-operation is a word: `ax1` appends 1 to x, `wx1` writes it, `rx12` read [1, 2] (append) or 12 (register), `rx`
read nothing, `px…` as `rx…` by a predicate. Keys are one letter. By default one transaction runs after the other;
`begin` and `end` are moments at which they do, so that they overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from checkers.history import Event, Header, History
from checkers.history.operation import EventType
from checkers.transactional.columns import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Txn:
    """`begin` and `end` are moments, in any order and unit; info: `end` is when the client gave up (None: never)."""

    type: EventType
    process: int
    micros: list[list[Any]]
    begin: float | None = None
    end: float | None = None


def micro(word: str, workload: Workload) -> list[Any]:
    f, key, digits = word[0], word[1], word[2:]
    if f in "aw":
        return ["append" if f == "a" else "w", key, int(digits)]
    name = "r" if f == "r" else "rp"
    if workload == "append":
        return [name, key, [int(digit) for digit in digits] or None]
    return [name, key, int(digits) if digits else None]


def txn(
    type_: EventType,
    process: int,
    words: str,
    begin: float | None = None,
    end: float | None = None,
) -> Txn:
    workload: Workload = "rw-register" if any(word[0] == "w" for word in words.split()) else "append"
    return Txn(
        type=type_,
        process=process,
        micros=[micro(word, workload) for word in words.split()],
        begin=begin,
        end=end,
    )


def ok(process: int, words: str, begin: float | None = None, end: float | None = None) -> Txn:
    return txn("ok", process, words, begin, end)


def register(process: int, words: str, begin: float | None = None, end: float | None = None) -> Txn:
    """As `ok` where only reads are in it, which could be of lists too."""
    micros = [micro(word, "rw-register") for word in words.split()]
    return Txn(type="ok", process=process, micros=micros, begin=begin, end=end)


def history(*txns: Txn) -> History:
    """The events of these transactions in the order of their moments; ties in the order given, invocations first."""
    moments: list[tuple[float, int, int, Txn]] = []
    for place, each in enumerate(txns):
        begin = 2.0 * place if each.begin is None else each.begin
        end = begin + 1.0 if each.end is None and each.begin is None else each.end
        moments.append((begin, 0, place, each))
        if end is not None:
            moments.append((end, 1, place, each))
    events = []
    for index, (_, completes, _, each) in enumerate(sorted(moments, key=lambda moment: moment[:3])):
        type_: EventType = each.type if completes else "invoke"
        value = each.micros if type_ == "ok" else _asked(each.micros)
        events.append(
            Event(index=index, time_ns=index * 1000, type=type_, process=each.process, f="txn", value=value)
        )
    return History.of(Header(workload="txn"), events)


def _asked(micros: list[list[Any]]) -> list[list[Any]]:
    return [[f, key, None if f in ("r", "rp") else value] for f, key, value in micros]
