"""After healing, all nodes hold equal data, no confirmed write is missing, and no impossible value is there.

The checker judges the final dumps, one a node. A violation is

- diverged: two nodes hold different values under a key
- lost-write: a value (or nothing) that a confirmed write surely replaced. A write is confirmed if it was acknowledged,
  or if a confirmed read has shown its value
- never-written, dump-of-failed-write: a value that no client asked to write, or that only failed writes wrote
- duplicate-key: a key that stands twice in one dump

The order of the values comes from the history alone (`checkers.history.value_order`). If a node gave no dump, or no
node did, the verdict is unknown, unless the dumps that exist prove a violation. Only nodes that had settled
(`checkers.history.rest`) must be equal and complete: other replicas may be behind. If nodes still moved, the verdict is
unknown. Nodes that report no position are not judged; if no other node is there, there was nothing to judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import numpy

from checkers.history import value_order
from checkers.history.errors import HistoryError
from checkers.history.history import History
from checkers.history.line_kernels import OK
from checkers.history.members import at_the_end, left
from checkers.history.operation import Operation
from checkers.history.rest import Rest, at_rest
from checkers.history.value_kernels import NEVER
from checkers.history.value_order import CONFIRMED, ValueOrders, written_words
from checkers.history.value_rows import Numbers
from checkers.history.values import identity, value_words
from checkers.replicas.kept import last_dumps
from checkers.verdict import Result, Verdict, Witness, concluded, witness

NAME = "convergence"
MODEL = "all nodes hold the same confirmed data"
Array = Any  # numpy's
DIFFERENT_MAX = 5
AT_ONCE = 1 << 18
"""Operations whose values are put in order together: some 80 bytes each."""


@dataclass(frozen=True, slots=True)
class Dump:
    """The data of one node at the end: space → key → value."""

    operation: Operation
    node: str
    spaces: Mapping[str, Mapping[object, Any]]
    doubled: tuple[tuple[str, object], ...]


def check(history: History, *, space: str = "register") -> Verdict:
    """Whether the final dumps agree with each other and with what was confirmed.

    `space` holds the operations' keys; in every other space only equality is judged. Raises HistoryError if a dump
    cannot be read.
    """
    dumps = [_dump(operation) for operation in last_dumps(history)]
    witnesses = [witness for dump in dumps for witness in _doubled(dump)]
    rest = at_rest(history)
    places = [place for place, dump in enumerate(dumps) if dump.node in rest.settled]
    caught_up = [dumps[place] for place in places]
    witnesses += _diverged(caught_up)
    witnesses += _wrong_values(history, dumps, places, space)
    asked = history.keys(f=("write", "cas"))
    for dump in dumps:
        witnesses += _unknown_keys(dump, space, asked)
    return _verdict(history, dumps, witnesses, rest)


def gone_everywhere(
    history: History, dumps: Sequence[Operation], *, space: str = "register"
) -> Iterator[Witness]:
    """For `kept`, by acknowledged writes alone: keys under which every node holds a value (or nothing) that surely was
    replaced; the nodes may hold different ones."""
    read = [_dump(dump) for dump in dumps]
    lost: list[tuple[int, Witness]] = []
    for values in _held(history, read, space, by_reads=False):
        for at in numpy.flatnonzero(values.is_lost.all(axis=0)).tolist():
            lost.append((values.first[at], values.lost(at, range(len(read)))[0]))
    yield from _in_order(lost)


def _wrong_values(
    history: History, dumps: Sequence[Dump], settled: Sequence[int], space: str
) -> Iterator[Witness]:
    """`settled`: the places of the dumps of nodes that had settled."""
    wrong: list[tuple[int, Witness]] = []
    for values in _held(history, dumps, space, by_reads=True):
        is_wrong = values.is_impossible.any(axis=0) | values.is_lost[settled].any(axis=0)
        for at in numpy.flatnonzero(is_wrong).tolist():
            witnesses = [*values.impossible(at), *values.lost(at, settled)]
            wrong += ((values.first[at], witness) for witness in witnesses)
    yield from _in_order(wrong)


def _in_order(witnesses: Sequence[tuple[int, Witness]]) -> Iterator[Witness]:
    """By the first write of each key."""
    return (witness for _, witness in sorted(witnesses, key=lambda entry: entry[0]))


@dataclass(frozen=True, slots=True)
class _Held:
    """The values that dumps hold under some of the keys that were written to.

    `first`: by key, the place of its first write. The arrays are of each dump and each key: `value` is a place in
    `orders`; `is_impossible` says that no client's write can have left it, and `is_lost` that it surely was replaced
    before the dump was asked for.
    """

    history: History
    orders: ValueOrders
    dumps: Sequence[Dump]
    space: str
    keys: Sequence[str | None]
    first: Sequence[int]
    value: Array
    is_impossible: Array
    is_lost: Array

    def impossible(self, at: int) -> Iterator[Witness]:
        """A witness for each impossible value under a key."""
        for value, holders in self._by_value(at, range(len(self.dumps))):
            if self.orders.earliest[value] == NEVER:
                failed = self._at(self.orders.failed_of(value)[:1])
                rule = "dump-of-failed-write" if failed else "never-written"
                why = (
                    "although every write of it surely failed"
                    if failed
                    else "which no client ever asked to write"
                )
                yield _witness(rule, f"{self._words(holders, at)}, {why}", holders, failed, self.keys[at])

    def lost(self, at: int, dumps: Sequence[int]) -> list[Witness]:
        """A witness for each value in these dumps that was surely replaced before a dump that holds it was invoked."""
        witnesses = []
        for value, holders in self._by_value(at, dumps):
            newer = self._confirmed_after(holders, value) if self.orders.earliest[value] != NEVER else None
            if newer is not None:
                latest = self.orders.writers.latest[newer]
                behind = [dump for dump in holders if dump.operation.invoke_index > latest]
                witnesses.append(self._lost(behind, at, value, newer))
        return witnesses

    def _lost(self, holders: Sequence[Dump], at: int, value: int, newer: int) -> Witness:
        writers = self.orders.writers
        (operation,) = self._at([writers.place[newer]])
        named = [*self._at(self.orders.writers_of(value)[:2]), operation]
        how = f"was confirmed to process {operation.process}"
        if operation.type != "ok":
            (shown,) = self._at(self.orders.reads_of(newer)[:1])
            how = f"was shown by a confirmed read at {shown.node}"
            named.append(shown)
        summary = (
            f"{self._words(holders, at)}, although {written_words(operation)} surely replaced it and {how}"
        )
        return _witness("lost-write", summary, holders, named, self.keys[at])

    def _confirmed_after(self, holders: Sequence[Dump], value: int) -> int | None:
        """The last writer that surely took effect before one of the dumps was invoked, and surely after all writers of
        `value`; of several, the one that was asked first."""
        orders, writers = self.orders, self.orders.writers
        asked = max(dump.operation.invoke_index for dump in holders)
        is_done = writers.happened & (writers.place >= 0) & (writers.latest < asked)
        done = numpy.flatnonzero(is_done & (orders.keys[writers.value] == orders.keys[value]))
        done = done[numpy.argsort(writers.place[done], kind="stable")]
        newer = [
            writer
            for writer, other, earliest in zip(
                done.tolist(), writers.value[done].tolist(), writers.earliest[done].tolist(), strict=True
            )
            if orders.latest[value] < earliest
            or ((writers.value == other).sum() == 1 and orders.was_replaced_by(value, other))
        ]
        return max(newer, key=lambda place: int(writers.earliest[place]), default=None)

    def _by_value(self, at: int, dumps: Sequence[int]) -> Iterator[tuple[int, list[Dump]]]:
        """Each value under a key, with those of the dumps that hold it."""
        groups: dict[int, list[Dump]] = {}
        for dump in dumps:
            groups.setdefault(int(self.value[dump, at]), []).append(self.dumps[dump])
        return iter(groups.items())

    def _words(self, holders: Sequence[Dump], at: int) -> str:
        key = self.keys[at]
        held = holders[0].spaces.get(self.space, {}).get(key)
        nodes = ", ".join(dump.node for dump in holders)
        return f"{nodes} held {value_words(held)} under key {key} at the end"

    def _at(self, places: Sequence[int] | Array) -> Sequence[Operation]:
        return self.history.at(numpy.asarray(places, dtype=numpy.int64))


def _held(history: History, dumps: Sequence[Dump], space: str, *, by_reads: bool) -> Iterator[_Held]:
    """All keys that were written to, a batch at a time. `by_reads`: values that confirmed reads showed count, too."""
    columns, numbers = history.columns, Numbers(history)
    are_writes = value_order.are_writes(columns)
    numbers.compared(numpy.flatnonzero(are_writes))
    is_shown = value_order.are_reads(columns, CONFIRMED if by_reads else ()) & (columns.type == OK)
    asked = numpy.array([dump.operation.invoke_index for dump in dumps], dtype=numpy.int64)[:, None]
    for _, _, places in columns.by_keys(AT_ONCE):
        writes, reads = places[are_writes[places]], places[is_shown[places]]
        codes, first = numpy.unique(columns.key[writes], return_index=True)
        keys = [columns.words[code] for code in codes.tolist()]
        held = [numbers.of_value(dump.spaces.get(space, {}).get(key)) for dump in dumps for key in keys]
        under = numpy.tile(codes, len(dumps)), numpy.array(held, dtype=numpy.int64)
        orders = ValueOrders.of(numbers, writes, reads, under, history.start)
        value = orders.held.reshape(len(dumps), len(keys))
        is_impossible = orders.earliest[value] == NEVER
        is_lost = orders.surely_replaced[value] < asked
        yield _Held(
            history, orders, dumps, space, keys, writes[first].tolist(), value, is_impossible, is_lost
        )


def _dump(operation: Operation) -> Dump:
    spaces: dict[str, dict[object, Any]] = {}
    doubled: list[tuple[str, object]] = []
    try:
        for name, rows in operation.value["spaces"].items():
            held = spaces.setdefault(name, {})
            for key, value in rows:
                if identity(key) in held:
                    doubled.append((name, key))
                held[identity(key)] = value
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise HistoryError(
            expected='a dump {"spaces":{"register":[[key,value],…]}}',
            came=f"at event {operation.complete_index}: {str(operation.value)[:80]} ({error})",
            attempt="check that the line was written by this version's harness",
        ) from error
    return Dump(operation, operation.node or "?", spaces, tuple(doubled))


def _witness(
    rule: str, summary: str, dumps: Sequence[Dump], named: Sequence[Operation], key: object
) -> Witness:
    operations = [*named, *(dump.operation for dump in dumps)]
    node = dumps[0].node if len(dumps) == 1 else None
    return witness(rule, summary, operations, key=None if key is None else str(key), node=node)


def _doubled(dump: Dump) -> Iterator[Witness]:
    for space, key in dump.doubled:
        yield _witness("duplicate-key", f"{dump.node} holds key {key} of {space} twice", [dump], [], key)


def _diverged(dumps: Sequence[Dump]) -> list[Witness]:
    """One witness a space, for the first node that differs from the first one."""
    witnesses: list[Witness] = []
    for space in sorted({space for dump in dumps for space in dump.spaces}):
        for other in dumps[1:]:
            different = _different(dumps[0].spaces.get(space, {}), other.spaces.get(space, {}))
            if different:
                # Further dumps that differ would say the same again.
                witnesses.append(_divergence(space, dumps[0], other, different))
                break
    return witnesses


def _different(one: Mapping[object, Any], other: Mapping[object, Any]) -> list[object]:
    return [
        key
        for key in sorted({**one, **other}, key=str)
        if identity(one.get(key)) != identity(other.get(key))  # null: nothing, as before the first write
    ]


def _divergence(space: str, one: Dump, other: Dump, keys: Sequence[object]) -> Witness:
    held = []
    for key in keys[:DIFFERENT_MAX]:
        at = [f"{value_words(dump.spaces.get(space, {}).get(key))} at {dump.node}" for dump in (one, other)]
        held.append(f"key {key}: {', '.join(at)}")
    count = f"{len(keys)} keys" if len(keys) > 1 else "one key"
    more = [] if len(keys) <= DIFFERENT_MAX else [f"… and {len(keys) - DIFFERENT_MAX} more keys"]
    summary = f"{one.node} and {other.node} differ in {count} of {space}: {held[0]}"
    dumps = (one.operation, other.operation)
    return witness("diverged", summary, dumps, key=str(keys[0]), explanation=(*held, *more))


def _unknown_keys(dump: Dump, space: str, asked: set[str | None]) -> Iterator[Witness]:
    """Keys that no operation ever wrote to."""
    for key, value in dump.spaces.get(space, {}).items():
        if key not in asked and value is not None:  # null: nothing, as before the first write
            held = f"{dump.node} held {value_words(value)} under key {key}"
            summary = f"{held} at the end, to which no client ever asked to write"
            yield _witness("never-written", summary, [dump], [], key)


def _verdict(history: History, dumps: Sequence[Dump], witnesses: Sequence[Witness], rest: Rest) -> Verdict:
    there = {dump.node for dump in dumps}
    missing = [node for node in at_the_end(history) if node not in there]
    gone = left(history)
    judged = [dump.node for dump in dumps if dump.node in rest.settled]
    details: dict[str, Any] = {
        "settled": history.settled is not False,
        "dumps": sorted(there),
        "missing": missing,
        "left": sorted(gone),
        "keys": len({key for dump in dumps for held in dump.spaces.values() for key in held}),
        "violations": len(witnesses),
    }
    result: Result = "unknown"
    if not dumps:
        summary = f"no node gave a final dump{_last_error(history)}"
    elif missing:
        agree = "; the other nodes agree" if len(judged) > 1 else ""
        summary = f"no final dump of {', '.join(missing)}{_last_error(history)}{agree}"
    elif history.settled is False and not rest.is_quiet:
        summary = "the nodes had not settled when their dumps were taken: nothing can be said of replicas"
    elif not judged:
        summary = f"nothing to judge: {_untold(rest)}"
        details |= {"vacuous": True, "opportunities": 0}
    else:
        result, keys = "valid", details["keys"]
        without = f" ({', '.join(gone)} had left)" if gone else ""
        agree = f"{len(judged)} nodes agree" if len(judged) > 1 else f"{judged[0]} was judged alone"
        others = f"; {_untold(rest)}" if rest.untold else ""
        details |= {"findings": [_untold(rest)]} if rest.untold else {}
        details |= {} if keys else {"vacuous": True, "opportunities": 0}
        summary = f"{agree} on all keys ({keys}), and nothing confirmed is missing{without}{others}"
    return concluded(NAME, witnesses, summary, result=result, model=MODEL, details=details)


def _last_error(history: History) -> str:
    """The error of the last dump that failed, in words; "" if none did. It is often a defect of the client."""
    errors = [f" ({shorten(dump.error, 90)})" for dump in history.dumps if dump.error]
    return errors[-1] if errors else ""


def _untold(rest: Rest) -> str:
    nodes = ", ".join(rest.untold)
    return f"{nodes} report{'s' * (len(rest.untold) == 1)} no position (vclock), so nothing says that they had settled"
