"""Transactions as the protocol names them. The updates themselves travel apart (`acquiring.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Ref(NamedTuple):
    """A transaction without its updates. All masters sort by `ts`, then by `id`."""

    ts: int
    id: str
    origin: str


def id_of(origin: str, life: int, number: int) -> str:
    return f"{origin}-{life}-{number}"


def origin_of(name: str) -> str:
    """Of the transaction with this id."""
    return name.rsplit("-", 2)[0]


def refs_of(told: Iterable[Sequence[Any]]) -> list[Ref]:
    """Of lists, as messages and records have them."""
    return [Ref(*each) for each in told]


def lists_of(refs: Iterable[Ref]) -> list[list[Any]]:
    return [list(each) for each in refs]


def common_length(one: Sequence[Ref], other: Sequence[Ref]) -> int:
    """How many first entries the two have in common, by id."""
    length = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine.id != theirs.id:
            break
        length += 1
    return length
