"""SELECT: the tuples of a space that it returns, and their order.

| iterator | finds | order |
|---|---|---|
| EQ, REQ | keys that begin with the given parts | ascending, descending |
| ALL, GE, GT | from the key on, behind it | ascending |
| LT, LE | before the key, up to it | descending |

An empty key means everything. Tuples are those of the confirmed view, or of the prepared one (`dirty`).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from itertools import islice

from nodes.iproto.codes import Code
from nodes.qsync.definitions import IndexDefinition
from nodes.qsync.keys import Order, Rejected, Tuple, key_parts, order_of_part, part_of
from nodes.qsync.spaces import Space

ITERATORS_END = 12
"""The first iterator that is none; Tarantool has four more for other kinds of indexes."""
TUPLES_MAX = 1 << 62
"""More tuples than any space has: clients send 2⁶⁴ − 1 for no limit."""


class Iterator(IntEnum):
    EQ = 0
    REQ = 1
    ALL = 2
    LT = 3
    LE = 4
    GE = 5
    GT = 6


_DESCENDING = frozenset({Iterator.REQ, Iterator.LT, Iterator.LE})


def selected(
    space: Space, index_id: int, iterator: int, key: Tuple, offset: int, limit: int, *, dirty: bool = False
) -> list[Tuple]:
    """Raises Rejected."""
    index = space.index(index_id)
    parts = key_parts(key, index.parts)
    if iterator > Iterator.GT:
        name, engine = space.definition.name, space.definition.engine
        feature = "requested iterator type"
        raise Rejected(Code.UNSUPPORTED_INDEX_FEATURE, index.name, index.type.upper(), name, engine, feature)
    shown = space.source or space
    if index.id == 0 and iterator in (Iterator.EQ, Iterator.REQ) and len(parts) == len(index.parts):
        place = parts[0] if len(parts) == 1 else parts
        match = shown.prepared_version(place)[0] if dirty else shown.confirmed.get(place)
        matches: Iterable[Tuple] = () if match is None else (match,)
    else:
        wanted = tuple(order_of_part(part) for part in parts)
        tuples = list(shown.scan(dirty=True)) if dirty else shown.confirmed.values()
        matches = _in_order(tuples, shown.primary, index, Iterator(iterator), wanted)
    return list(islice(matches, min(offset, TUPLES_MAX), min(offset + limit, TUPLES_MAX)))


def _in_order(
    tuples: Iterable[Tuple],
    primary: IndexDefinition | None,
    index: IndexDefinition,
    iterator: Iterator,
    wanted: Order,
) -> Iterable[Tuple]:
    placed = sorted(
        ((_order(value, index), _order(value, primary), value) for value in tuples),
        key=lambda triple: triple[:2],
        reverse=iterator in _DESCENDING,
    )
    if not wanted:
        return (value for _, _, value in placed)
    return (value for order, _, value in placed if _fits(order[: len(wanted)], iterator, wanted))


def _order(value: Tuple, index: IndexDefinition | None) -> Order:
    parts = index.parts if index is not None else ()
    return tuple(
        order_of_part(part_of(value[part.field] if part.field < len(value) else None)) for part in parts
    )


def _fits(order: Order, iterator: Iterator, wanted: Order) -> bool:
    match iterator:
        case Iterator.EQ | Iterator.REQ:
            return order == wanted
        case Iterator.LT:
            return order < wanted
        case Iterator.LE:
            return order <= wanted
        case Iterator.GT:
            return order > wanted
        case Iterator.GE | Iterator.ALL:
            return order >= wanted
