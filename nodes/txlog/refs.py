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
    """The master that made the transaction with this id."""
    return name.rsplit("-", 2)[0]


def refs_of(lists: Iterable[Sequence[Any]]) -> list[Ref]:
    """Refs from the lists in messages and records."""
    return [Ref(*fields) for fields in lists]


def lists_of(refs: Iterable[Ref]) -> list[list[Any]]:
    return [list(ref) for ref in refs]


def common_length(left: Sequence[Ref], right: Sequence[Ref]) -> int:
    """How many first entries the two have in common, by id."""
    length = 0
    for here, there in zip(left, right, strict=False):
        if here.id != there.id:
            break
        length += 1
    return length
