"""Registers to which one value was written more than once, with a name for each write: then every read shows one write.

A read that repeats what its transaction last wrote or read of the key shows the same. Else it shows an earlier write of
its own that has the value; else the last write of the key by another transaction that did not fail, or the value with
which the key began. If several of these have the value, the read is open: a proof of valid must say which of them it
shows, a proof of invalid does without the read or holds for each of them. A value that none of these has is of a write
that no read may show: of the first failed transaction, or else of the first that overwrote it, or else an own one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import Any

from checkers.proofs.isolation import TooMany
from checkers.proofs.transactions import READS, Known, Txn, is_list, name_of

Place = tuple[int, int]
"""A micro-operation: the event of its transaction, and its number there."""
CASES_MAX = 1_000


class Duplicates:
    """The writes that share their value and their key with others, or write what the key began with."""

    def __init__(self, known: Known) -> None:
        self.known = known
        written: dict[tuple[str, str], list[Place]] = {}
        for txn in known.values():
            for number, (f, key, value) in enumerate(txn.micros):
                if f not in READS:
                    written.setdefault((key, name_of(value)), []).append((txn.id, number))
        lists, most = is_list(known.values()), max(map(len, written.values()), default=0)
        self.is_open_list = lists and most > 1
        """An element was appended twice: nothing says which of the two a read shows."""
        self.written = {
            each: places
            for each, places in written.items()
            if not lists and (len(places) > 1 or each[1] == "null")
        }
        self.open = {
            (txn.id, number): sources
            for txn in known.values()
            for number, (f, key, value) in enumerate(txn.micros)
            if f in READS and txn.ok and (key, name_of(value)) in self.written
            if self._repeated(txn, number) is None or self._is_open(txn, number)
            if len(sources := self._sources(txn, number)) > 1
        }
        """Reads that may show several writes: where these stand; None: nowhere, the key began with the value."""

    def showing(self, claimed: Sequence[Sequence[Any]]) -> Known:
        """Each open read shows what is claimed: (its event, its number, the event of the writer or None)."""
        shown: dict[Place, Place | None] = {}
        for event, number, writer in claimed:
            place = int(event), int(number)
            sources = [each for each in self.open.get(place, ()) if (each[0] if each else None) == writer]
            if not sources:
                raise ValueError(f"a read of event {event} cannot show what event {writer} wrote")
            shown[place] = sources[0]
        return self._named(shown, drops=False)

    def certain(self) -> Known:
        """Without the open reads. Raises ValueError for lists with an element that was appended twice."""
        if self.is_open_list:
            raise ValueError("an element was appended to a list twice")
        return self._named({}, drops=True)

    def cases(self) -> Iterator[Known]:
        """Each open read shows each write that it may show. Raises TooMany."""
        cases = product(*self.open.values())
        for sources in islice(cases, CASES_MAX):
            yield self._named(dict(zip(self.open, sources, strict=True)), drops=False)
        if next(cases, None) is not None:
            raise TooMany

    def _repeated(self, txn: Txn, number: int) -> int | None:
        """The micro-operation before on the same key, if it has the same value."""
        _, key, value = txn.micros[number]
        before = [at for at in range(number) if txn.micros[at][1] == key]
        return before[-1] if before and name_of(txn.micros[before[-1]][2]) == name_of(value) else None

    def _is_open(self, txn: Txn, number: int) -> bool:
        """Whether it repeats an open read."""
        while (before := self._repeated(txn, number)) is not None:
            number = before
        return txn.micros[number][0] in READS

    def _sources(self, txn: Txn, number: int) -> list[Place | None]:
        _, key, value = txn.micros[number]
        own = [
            (event, at) for event, at in self.written[key, name_of(value)] if event == txn.id and at < number
        ]
        if own:  # it ties the read to no other transaction, so no other choice is of more models
            return [own[-1]]
        sources: list[Place | None] = [None] if value is None else []
        for event, at in self.written[key, name_of(value)]:
            writer = self.known[event]
            is_last = not any(f not in READS and on == key for f, on, _ in writer.micros[at + 1 :])
            if writer is not txn and not writer.failed and is_last:
                sources.append((event, at))
        return sources

    def _wrong(self, txn: Txn, number: int) -> Place:
        """A write that the read shows though it may not."""
        _, key, value = txn.micros[number]
        places = self.written[key, name_of(value)]
        others = [place for place in places if place[0] != txn.id]
        failed = [place for place in others if self.known[place[0]].failed]
        return [*failed, *others, *reversed(places)][0]

    def _named(self, shown: Mapping[Place, Place | None], *, drops: bool) -> Known:
        return {txn.id: self._named_txn(txn, shown, drops) for txn in self.known.values()}

    def _named_txn(self, txn: Txn, shown: Mapping[Place, Place | None], drops: bool) -> Txn:
        values: list[Any] = []
        left_out = set()
        for number, (f, key, value) in enumerate(txn.micros):
            name: Any = value
            if (key, name_of(value)) not in self.written or (f in READS and not txn.ok):
                pass
            elif f not in READS:
                name = _name((txn.id, number))
            elif (txn.id, number) in shown:
                name = _name(shown[txn.id, number])
            elif (before := self._repeated(txn, number)) is not None:
                name = values[before]
                left_out |= {number} if before in left_out else set()
            elif (txn.id, number) in self.open:
                if not drops:
                    raise ValueError(f"it does not say which write of {key} event {txn.id} read")
                left_out.add(number)
            else:
                sources = self._sources(txn, number)
                name = _name(sources[0] if sources else self._wrong(txn, number))
            values.append(name)
        micros = tuple((f, key, value) for (f, key, _), value in zip(txn.micros, values, strict=True))
        return replace(txn, micros=micros).without(left_out)


def _name(place: Place | None) -> Any:
    return None if place is None else {"write": list(place)}
