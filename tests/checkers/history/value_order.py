"""The order of one key's values over objects: the slow twin of `checkers.history.value_order`, which states the
rules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from checkers.history.operation import Operation, both
from checkers.history.value_kernels import NEVER
from checkers.history.values import Value, identity


@dataclass(slots=True)
class Writer:
    """One operation that may have written a value, and the event indexes between which it did, if it did."""

    operation: Operation | None  # None: it was there from the beginning
    earliest: int
    latest: int
    happened: bool
    shown_by: Operation | None = None  # the first confirmed read that told that it happened


@dataclass(slots=True)
class ValueOrder:
    """The values of one key: their possible writers, their failed writers, and which value came before which."""

    writers: dict[Value, list[Writer]] = field(default_factory=dict)
    failed: dict[Value, list[Operation]] = field(default_factory=dict)
    replaced: dict[Value, Value] = field(default_factory=dict)
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
        for read in confirmed_reads:
            order._seen(read)
        order._follow_replacements()
        order._pass_over_the_impossible()
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
        while value in self.replaced and self.replaced[value] not in chain:
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

    def _follow_replacements(self) -> None:
        """Hand bounds along compare-and-sets, until nothing changes."""
        links = self._links()
        for _ in range(len(links) + 1):
            changed = False
            for old, new in links:
                if new.earliest < old.earliest or old.latest > new.latest:
                    new.earliest = max(new.earliest, old.earliest)
                    old.latest = min(old.latest, new.latest)
                    changed = True
            if not changed:
                return

    def _pass_over_the_impossible(self) -> None:
        """What has no possible moment proves nothing."""
        for value, writers in self.writers.items():
            for writer in writers:
                if writer.latest < writer.earliest:
                    writer.happened = False
                    self.replaced.pop(value, None)

    def _links(self) -> list[tuple[Writer, Writer]]:
        """(writer of old, the compare-and-set), wherever both are surely known."""
        links: list[tuple[Writer, Writer]] = []
        for value, writers in self.writers.items():
            for writer in writers:
                operation = writer.operation
                if operation is None or operation.f != "cas" or not writer.happened:
                    continue
                old = identity(both(operation)[0])
                replaced = self.only_writer(old)
                if replaced is None or old == value:
                    continue
                links.append((replaced, writer))
                if len(writers) == 1:
                    self.replaced[value] = old
        return sorted(links, key=lambda link: link[1].earliest)

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
