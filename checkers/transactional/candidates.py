"""Registers in which a value was written to a key more than once: which of the writes each read may have shown.

A read shows a write that its transaction made last, or that the read before it showed, if the value is the same; else
an earlier write of its own (read committed allows that); else the last write of the key by another transaction that did
not fail, or the value with which the key began. If there are several of these, the read is a `Choice`. If none has the
value, the read shows a write that no read may show: of a failed transaction (G1a), one that its transaction overwrote
(G1b), or an own later one.

A history is of a model if some choice for every such read makes it one of distinct values that is of the model
(VeriStrong calls this a hyper-polygraph). `resolved` gives the history of distinct values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy

from checkers.transactional.append_kernels import Notes
from checkers.transactional.columns import FAIL, INFO, NIL, OK, WRITE, Columns, Int8s, Int32s
from checkers.transactional.graph import Time
from checkers.transactional.register_kernels import G1A, G1B, NONE, OPEN, note

Shown = Mapping[int, int]
"""By read: the write that it shows, or m + k for the value with which key k began (of m micro-operations)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A read of a value that several transactions wrote.

    `versions`: the writes that it may show, or m + k as in `Shown`. `repeats`: the read before it by the same
    transaction that gave the same value; -1 if there is none. Only in the models in which reads know what was read so
    far, the two may show different writes.
    """

    micro: int
    versions: tuple[int, ...]
    repeats: int = -1


class Candidates:
    """The writes of one value by key, the choices, and the reads of such values that have no choice (`shown`)."""

    def __init__(
        self, columns: Columns, owner: Int32s, previous: Int32s, last: Int8s, twin: Int32s, writer: Int32s
    ) -> None:
        """`twin` int32[m]: an earlier write of the same value to the same key, or -1. `writer`: see
        `append_kernels.writers_of_reads`; of reads that are not certain it becomes OPEN.
        """
        self.columns, self.owner, self.previous, self.last = columns, owner, previous, last
        self.groups = _groups(columns, twin)
        self.choices: list[Choice] = []
        self.shown: dict[int, int] = {}
        self.follows: dict[int, int] = {}
        """Reads that show what the micro-operation before them shows or wrote."""
        self.wrong: list[tuple[int, int, int]] = []
        """(rule, read, write) of reads that show one of several writes, none of which a read may show."""
        open_reads = set()
        for micro in self._reads():
            before = int(previous[micro])
            writes = self.groups[int(columns.key[micro]), int(columns.value[micro])]
            own = [write for write in writes if write < micro and owner[write] == owner[micro]]
            # An own earlier write ties the read to no other transaction, so no other choice is of more models.
            versions = (own[-1],) if own else tuple(self._versions(micro, writes))
            if before >= 0 and columns.value[before] == columns.value[micro]:
                self.follows[micro] = before
                writer[micro] = writer[before]
                if before in open_reads:
                    open_reads.add(micro)
                    self.choices.append(Choice(micro, versions, before))
            elif len(versions) > 1:
                open_reads.add(micro)
                self.choices.append(Choice(micro, versions))
                writer[micro] = OPEN
            else:
                self._settle(micro, versions, writes, writer)

    def _reads(self) -> Iterator[int]:
        """The answered reads of such values."""
        c = self.columns
        reads = numpy.flatnonzero((c.f != WRITE) & (c.length >= 0) & (c.outcome[self.owner] == OK))
        for micro, key, value in zip(
            reads.tolist(), c.key[reads].tolist(), c.value[reads].tolist(), strict=True
        ):
            if (key, value) in self.groups:
                yield micro

    def _versions(self, micro: int, writes: Sequence[int]) -> Iterator[int]:
        c, txn = self.columns, self.owner[micro]
        if c.value[micro] == NIL:
            yield len(c.f) + int(c.key[micro])
        for write in writes:
            by = self.owner[write]
            if by != txn and self.last[write] and c.outcome[by] != FAIL:
                yield write

    def _settle(self, micro: int, versions: Sequence[int], writes: Sequence[int], writer: Int32s) -> None:
        """A read with one write to show, or with none that it may show."""
        if versions:
            self.shown[micro] = versions[0]
            writer[micro] = versions[0] if versions[0] < len(writer) else NONE
            return
        own = [write for write in writes if self.owner[write] == self.owner[micro]]
        failed = [write for write in writes if self.columns.outcome[self.owner[write]] == FAIL]
        passing = [write for write in writes if write not in own and write not in failed]
        wrong = [*failed, *passing]
        write = [*wrong, *reversed(own)][0]
        self.shown[micro] = writer[micro] = write
        if len(wrong) > 1:
            self.wrong.append((G1A if failed else G1B, micro, write))
            writer[micro] = OPEN

    def open_to(self, *, so_far: bool) -> list[Choice]:
        """The choices of a model. `so_far`: its reads know what was read so far (see `Choice.repeats`)."""
        return [choice for choice in self.choices if so_far or choice.repeats < 0]

    def are(self, shown: Shown) -> bool:
        """Whether each read that has a choice shows one of its versions."""
        return all(
            shown.get(choice.micro, choice.versions[0] if choice.repeats >= 0 else None) in choice.versions
            for choice in self.choices
        )

    def likely(self, time: Time) -> dict[int, int]:
        """What a read shows if transactions happen when they are answered: the last such write before its own answer.

        If none was answered then, the first that was asked for.
        """
        ends, invoke = time.ends, time.invoke

        def place(version: int, reader: int) -> tuple[bool, int]:
            if version >= len(self.columns.f):
                return True, -1
            writer = self.owner[version]
            is_over = bool(ends[writer] < ends[reader])
            return is_over, int(ends[writer] if is_over else -invoke[writer])

        return {
            choice.micro: max(
                choice.versions, key=lambda version: place(version, int(self.owner[choice.micro]))
            )
            for choice in self.open_to(so_far=False)
        }

    def noted(self, notes: Notes) -> None:
        """Count the reads that show what none may show."""
        for rule, micro, write in self.wrong:
            note(notes, rule, micro, write)

    def unsure(self) -> list[int]:
        """The transactions of unknown outcome that a choice may take in.

        Each of them takes part. If no read shows it, it runs behind all others, where it disturbs none.
        """
        return sorted(
            {
                int(self.owner[version])
                for choice in self.choices
                for version in choice.versions
                if version < len(self.columns.f) and self.columns.outcome[self.owner[version]] == INFO
            }
        )

    def resolved(self, chosen: Shown) -> Columns:
        """The history of distinct values in which each read shows what is chosen; open reads are left out."""
        c = self.columns
        names, number = numpy.unique(c.value, return_inverse=True)
        value, left_out = numpy.where(c.value == NIL, NIL, number).astype(numpy.int64), set()
        for writes in self.groups.values():
            value[writes] = len(names) + numpy.array(writes, numpy.int64)
        versions = dict(self.shown)
        for choice in self.choices:
            if choice.micro in chosen:
                versions[choice.micro] = chosen[choice.micro]
            elif choice.micro not in self.follows:
                left_out.add(choice.micro)
        for micro, version in versions.items():
            value[micro] = len(names) + version if version < len(c.f) else NIL
        for micro, before in self.follows.items():
            if before in left_out and micro not in chosen:
                left_out.add(micro)
            elif micro not in chosen:
                value[micro] = value[before]
        if not left_out:
            return replace(c, value=value)
        kept = numpy.ones(len(c.f), numpy.bool_)
        kept[list(left_out)] = False
        first = numpy.concatenate([[0], numpy.cumsum(kept)])[c.first].astype(numpy.int64)
        return replace(c, first=first, f=c.f[kept], key=c.key[kept], value=value[kept], length=c.length[kept])


def _groups(columns: Columns, twin: Int32s) -> dict[tuple[int, int], list[int]]:
    """By key and value: its writes, of values that were written more than once, or with which the key began."""
    writes = numpy.flatnonzero((columns.f == WRITE) & ((twin >= 0) | (columns.value == NIL)))
    wanted = {(int(columns.key[micro]), int(columns.value[micro])) for micro in writes}
    groups: dict[tuple[int, int], list[int]] = {each: [] for each in wanted}
    every = numpy.flatnonzero(columns.f == WRITE)
    for micro, key, value in zip(
        every.tolist(), columns.key[every].tolist(), columns.value[every].tolist(), strict=True
    ):
        if (key, value) in groups:
            groups[key, value].append(micro)
    return groups
