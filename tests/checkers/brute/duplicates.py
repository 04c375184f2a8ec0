"""Registers in which transactions write one value more than once: every read is tried with every write of its value.

A history is of a model if each read can be given one of the writes of its value, or the value before any write, such
that the history in which these writes have values of their own is of the model. Which writes a read may show at all
(whether the writer failed, wrote again, or came too late) is left to the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

from checkers.history import History
from tests.checkers.brute import isolation, tiny_transactions
from tests.checkers.brute.histories import Line, history_of

CASES_MAX = 300
"""Histories with more cases are left out."""
FIRST = 0
"""The value of keys before any write, where that value may be written again."""


def drawn(seed: int, *, with_start: bool = False) -> list[Line]:
    """The lines of a tiny history with few values: what was written as 1, 2, 3 … is one of two or three."""
    few = 2 + seed % 2
    lines = tiny_transactions.drawn(seed, workload="rw-register")

    def value_of(word: str, value: Any, outcome: str) -> Any:
        if value is None:
            return FIRST if with_start and word == "r" and outcome == "ok" else None
        return value % few if with_start else 1 + value % few

    return [
        replace(
            line, value=[[word, key, value_of(word, value, line.type)] for word, key, value in line.value]
        )
        for line in lines
    ]


def allows(model: str, history: History, *, with_start: bool = False) -> bool | None:
    """Whether `model` allows the history; None: there are too many cases."""
    operations = history.operations
    writes: dict[tuple[str, Any], list[str]] = {}
    for number, txn in enumerate(operations):
        for place, (word, key, value) in enumerate(txn.value):
            if word == "w":
                writes.setdefault((key, value), []).append(f"{number}.{place}")
    first = FIRST if with_start else None
    reads = [
        (number, place, [*writes.get((key, value), ()), *([None] if value == first else [])] or ["nobody"])
        for number, txn in enumerate(operations)
        for place, (word, key, value) in enumerate(txn.value)
        if word == "r" and txn.type == "ok"
    ]
    if prod(len(versions) for _, _, versions in reads) > CASES_MAX:
        return None
    return any(isolation.allows(model, case, "rw-register") for case in _cases(history, reads))


def _cases(history: History, reads: Sequence[tuple[int, int, Sequence[str | None]]]) -> Iterator[History]:
    operations = history.operations
    number_of = {each.invoke_index: number for number, each in enumerate(operations)}
    number_of |= {
        each.complete_index: number
        for number, each in enumerate(operations)
        if each.complete_index is not None
    }
    for versions in product(*(versions for _, _, versions in reads)):
        shown = {
            (number, place): version for (number, place, _), version in zip(reads, versions, strict=True)
        }
        yield history_of(
            [
                Line(
                    event.type,
                    event.process,
                    event.f,
                    [
                        [word, key, f"{number_of[event.index]}.{place}"]
                        if word == "w"
                        else [
                            word,
                            key,
                            shown.get((number_of[event.index], place)) if event.type == "ok" else None,
                        ]
                        for place, (word, key, _) in enumerate(event.value)
                    ],
                )
                for event in history.events
            ]
        )
