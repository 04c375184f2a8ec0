"""The values of dumps in `checkers.replicas.convergence` over objects, key by key: the slow twin of the rule over
columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkers.history.history import History, by_key
from checkers.history.operation import Operation, both
from checkers.history.value_order import CONFIRMED, written_words
from checkers.history.values import Value, identity, value_words
from checkers.replicas.convergence import Dump, _dump, _witness
from checkers.verdict import Witness
from tests.checkers.history.value_order import ValueOrder, Writer


def wrong_values(
    history: History, dumps: Sequence[Dump], settled: Sequence[int], space: str
) -> Iterator[Witness]:
    """`settled`: the places of the dumps of nodes that had settled."""
    caught_up = [dumps[place] for place in settled]
    shown = by_key(read for read in history.select(f="read", outcome="ok") if read.mode in CONFIRMED)
    for key, operations in by_key(_writes(history)).items():
        order = ValueOrder.of(operations, shown.get(key, ()), start=identity(history.start.of(key)))
        for holders in _by_value(dumps, space, key):
            yield from _impossible_value(holders, space, key, order)
        for holders in _by_value(caught_up, space, key):
            yield from _lost(holders, space, key, order)


def gone_everywhere(
    history: History, dumps: Sequence[Operation], *, space: str = "register"
) -> Iterator[Witness]:
    """By acknowledged writes alone."""
    read = [_dump(each) for each in dumps]
    for key, operations in by_key(_writes(history)).items():
        order = ValueOrder.of(operations, start=identity(history.start.of(key)))
        lost = [[*_lost(holders, space, key, order)] for holders in _by_value(read, space, key)]
        if all(lost):
            yield lost[0][0]


def _writes(history: History) -> list[Operation]:
    writes = list(history.select(f=("write", "cas")))
    for each in writes:
        if each.f == "cas":
            both(each)
    return writes


def _by_value(dumps: Sequence[Dump], space: str, key: str | None) -> list[list[Dump]]:
    """The dumps that hold the same under a key, together."""
    groups: dict[Value, list[Dump]] = {}
    for dump in dumps:
        groups.setdefault(identity(dump.spaces.get(space, {}).get(key)), []).append(dump)
    return list(groups.values())


def _place(holders: Sequence[Dump], space: str, key: str | None) -> tuple[Value, str]:
    """The one value (or nothing) that these dumps hold under a key that was written to, and the words for it."""
    held = holders[0].spaces.get(space, {}).get(key)
    nodes = ", ".join(dump.node for dump in holders)
    return identity(held), f"{nodes} held {value_words(held)} under key {key} at the end"


def _impossible_value(
    holders: Sequence[Dump], space: str, key: str | None, order: ValueOrder
) -> Iterator[Witness]:
    value, place = _place(holders, space, key)
    if value not in order.writers:
        failed = order.failed.get(value, [])
        rule = "dump-of-failed-write" if failed else "never-written"
        why = "although every write of it surely failed" if failed else "which no client ever asked to write"
        yield _witness(rule, f"{place}, {why}", holders, failed[:1], key)


def _lost(holders: Sequence[Dump], space: str, key: str | None, order: ValueOrder) -> Iterator[Witness]:
    value, place = _place(holders, space, key)
    newer = _confirmed_after(holders, value, order) if value in order.writers else None
    if newer is None or newer.operation is None:
        return
    operation = newer.operation
    holders = [dump for dump in holders if dump.operation.invoke_index > newer.latest]
    value, place = _place(holders, space, key)
    before = [writer.operation for writer in order.writers[value] if writer.operation is not None]
    named = [*before[:2], operation]
    how = f"was confirmed to process {operation.process}"
    if operation.type != "ok" and newer.shown_by is not None:
        how = f"was shown by a confirmed read at {newer.shown_by.node}"
        named.append(newer.shown_by)
    yield _witness(
        "lost-write",
        f"{place}, although {written_words(operation)} surely replaced it and {how}",
        holders,
        named,
        key,
    )


def _confirmed_after(holders: Sequence[Dump], value: Value, order: ValueOrder) -> Writer | None:
    """The last write that is known to have happened, before the dumps were asked, and surely after all of `value`.

    Of several, the one that was asked first.
    """
    newer = [
        (writer.earliest, -writer.operation.invoke_index, writer)
        for other, writers in order.writers.items()
        for writer in writers
        if writer.operation is not None
        and writer.happened
        and any(writer.latest < dump.operation.invoke_index for dump in holders)
        and (
            order.latest(value) < writer.earliest or (len(writers) == 1 and value in order.replaced_by(other))
        )
    ]
    return max(newer, key=lambda each: each[:2], default=(0, 0, None))[2]
