"""The order of one key's values over objects: the slow twin of `checkers.history.value_order`, which states the
rules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from checkers.history.operation import Operation, both
from checkers.history.value_kernels import NEVER
from checkers.history.values import Value, identity


@dataclass(slots=True, eq=False)
class Writer:
    """One operation that may have written a value, and the event indexes between which it did, if it did."""

    operation: Operation | None  # None: it was there from the beginning
    earliest: int
    latest: int
    happened: bool
    shown_by: Operation | None = None  # the first confirmed read that told that it happened
    source: Writer | None = None  # of a compare-and-set the only possible writer of what it replaced

    def sources(self) -> Iterator[Writer]:
        """The source, its source and so on, each once."""
        met, source = list[Writer](), self.source
        while source is not None and all(source is not other for other in met):
            yield source
            met.append(source)
            source = source.source


@dataclass(slots=True)
class ValueOrder:
    """The values of one key: their possible writers, their failed writers, and which value came before which."""

    writers: dict[Value, list[Writer]] = field(default_factory=dict)
    failed: dict[Value, list[Operation]] = field(default_factory=dict)
    replaced: dict[Value, Value] = field(default_factory=dict)
    early: list[Writer] = field(default_factory=list)
    """The acknowledged compare-and-sets that saw a value before any write of it can have taken effect."""
    _later: list[tuple[int, int]] = field(default_factory=list)
    _soonest: list[tuple[int, Writer]] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        operations: Iterable[Operation],
        confirmed_reads: Iterable[Operation] = (),
        *,
        start: Value = None,
    ) -> ValueOrder:
        """The order of one key's values, from its operations and from such reads as show confirmed values only.

        `start`: the value before the first write.
        """
        order = cls({start: [Writer(None, -1, -1, True)]})
        for operation in operations:
            if operation.f in ("write", "cas"):
                order._note(operation)
        order._link()
        for read in confirmed_reads:
            order._seen(read)
        order._bound()
        order._sort_overwrites()
        order._sort_writers()
        return order

    def earliest(self, value: Value) -> int:
        """No write of it took effect before this event; NEVER if it has no possible writer."""
        return min((writer.earliest for writer in self.writers.get(value, ())), default=NEVER)

    def latest(self, value: Value) -> int:
        """Every write of it that took effect did so before this event; -1 if it has no possible writer."""
        return max((writer.latest for writer in self.writers.get(value, ())), default=-1)

    def before(self, value: Value, other: Value) -> bool:
        """Whether `value` surely was replaced for good before `other` was written."""
        if value == other or value not in self.writers or other not in self.writers:
            return False
        return self.latest(value) < self.earliest(other) or value in self.replaced_by(other)

    def replaced_by(self, value: Value) -> list[Value]:
        """The values that compare-and-sets surely replaced on the way to this one, nearest first."""
        chain: list[Value] = []
        while value in self.replaced:
            value = self.replaced[value]
            chain.append(value)
        return chain

    def overwritten_ns(self, value: Value) -> int | None:
        """When a write that surely came after all of `value` had completed, at the earliest; None if none has."""
        position = bisect_right(self._later, self.latest(value), key=lambda entry: entry[0])
        return self._later[position][1] if position < len(self._later) else None

    def overwritten_by(self, value: Value) -> Writer | None:
        """Of the writes that happened surely after all of `value`, the one that surely was over first.

        Of several, the one that can have begun first; of these, the one that was asked first.
        """
        position = bisect_right(self._soonest, self.latest(value), key=lambda entry: entry[0])
        return self._soonest[position][1] if position < len(self._soonest) else None

    def only_writer(self, value: Value) -> Writer | None:
        """The only possible writer; None if there are several."""
        writers = self.writers.get(value, ())
        return writers[0] if len(writers) == 1 else None

    def _note(self, operation: Operation) -> None:
        value = identity(operation.value if operation.f == "write" else both(operation)[1])
        if operation.f == "cas" and identity(both(operation)[0]) == value:
            return  # it writes nothing
        if operation.type == "fail":
            self.failed.setdefault(value, []).append(operation)
            return
        returned = operation.returned_index
        writer = Writer(
            operation, operation.invoke_index, NEVER if returned is None else returned, operation.type == "ok"
        )
        self.writers.setdefault(value, []).append(writer)

    def _seen(self, read: Operation) -> None:
        writer = self.only_writer(identity(read.value))
        end = read.complete_index
        if writer is not None and read.type == "ok" and end is not None and writer.earliest < end:
            writer.latest = min(writer.latest, end)
            writer.happened = True
            if writer.shown_by is None:
                writer.shown_by = read

    def _link(self) -> None:
        """Find what each compare-and-set replaced, and that it came after that; or that it cannot have."""
        sets = [
            (value, writer)
            for value, writers in self.writers.items()
            for writer in writers
            if writer.operation is not None and writer.operation.f == "cas"
        ]
        acknowledged = {id(writer): writer.latest for _, writer in sets}
        for _, writer in sets:
            source = self.only_writer(_old(writer))
            writer.source = source if source is None or source.earliest < writer.latest else None
        circular = {id(writer) for _, writer in sets if writer in list(writer.sources())}
        for _, writer in sets:
            writer.source = None if id(writer) in circular else writer.source
        # Nearest to the first value first: what makes a writer late may make the next one impossible.
        for _, writer in sorted(sets, key=lambda pair: len(list(pair[1].sources()))):
            if writer.source is not None and writer.source.earliest > writer.latest:
                writer.source = None
            if writer.source is not None:
                writer.earliest = max(writer.earliest, writer.source.earliest)
        for _, writer in sets:
            can_be = self.earliest(_old(writer))
            is_sure = acknowledged[id(writer)] < NEVER
            if is_sure and (id(writer) in circular or acknowledged[id(writer)] < can_be < NEVER):
                self.early.append(writer)

    def _bound(self) -> None:
        """Whatever was replaced was there before it was replaced."""
        for value, writers in self.writers.items():
            for writer in writers:
                if not writer.happened or writer.source is None:
                    continue
                if len(writers) == 1:
                    self.replaced[value] = _old(writer)
                own, above = writer.latest, writer
                while above.happened and above.source is not None:
                    above = above.source
                    above.latest = min(above.latest, own)

    def _sort_overwrites(self) -> None:
        """Prepare `overwritten_ns`: by earliest moment, the first completion among it and all later ones."""
        entries = sorted(
            (writer.earliest, writer.operation.complete_ns or 0)
            for writers in self.writers.values()
            for writer in writers
            if writer.operation is not None and writer.operation.type == "ok" and writer.happened
        )
        soonest = NEVER
        for position in range(len(entries) - 1, -1, -1):
            earliest, complete_ns = entries[position]
            soonest = min(soonest, complete_ns)
            entries[position] = (earliest, soonest)
        self._later = entries

    def _sort_writers(self) -> None:
        """Prepare `overwritten_by`: by earliest moment, which writer of it and all later ones was over first."""
        entries = sorted(
            (
                (writer.earliest, writer)
                for group in self.writers.values()
                for writer in group
                if writer.happened
            ),
            key=lambda entry: (entry[0], entry[1].operation.invoke_index if entry[1].operation else -1),
        )
        for position in range(len(entries) - 2, -1, -1):
            earliest, writer = entries[position]
            soonest = entries[position + 1][1]
            if soonest.latest < writer.latest:
                entries[position] = (earliest, soonest)
        self._soonest = entries


def _old(writer: Writer) -> Value:
    """The value that a compare-and-set saw."""
    assert writer.operation is not None
    return identity(both(writer.operation)[0])
