"""list-append: the order of every key's versions, as the reads show it, and the anomalies of single reads.

The longest read of a key is the order of its appends. A history in which every other read is a beginning of it, and
in which no single read is wrong, is decided by a replay in linear time, without a graph; see `append_kernels`. Only if
that fails are dependencies drawn, for `search.Search` to look for cycles in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from checkers.history.errors import ModelError
from checkers.transactional.append_kernels import (
    INCOMPATIBLE,
    LOST,
    RULES,
    SAMPLES,
    Notes,
    Order,
    Reads,
    Survey,
    note,
)
from checkers.transactional.candidates import Candidates, Choice
from checkers.transactional.columns import OK, WRITE, Columns, Int8s, Int32s, Int64s
from checkers.transactional.graph import Graph, Time, completed_at, graph_of

EDGES_MAX = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An anomaly without a cycle: a micro-operation, and the one that makes it wrong (or None)."""

    rule: str
    micro: int
    cause: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The known facts of a history before the search for cycles.

    `committed` int8[n] marks the transactions that took place; `counts` and `problems` (a few of each rule) are the
    anomalies without a cycle; `order` int32[…] is a serial order within real time if the replay gave one. `whole` is
    False if edges were skipped because there were too many.

    `version` int32[m]: the version that a read showed, -1 for none; `source` int32[m]: the write that made it, or -1.
    `reads` and `writes` are the micro-operations that the edges give no place among the versions: first reads of
    a register, and its writes that other transactions may see; of lists only appends that no transaction read.
    """

    committed: Int8s
    counts: Mapping[str, int]
    problems: tuple[Problem, ...]
    order: Int32s | None
    graph: Graph | None
    time: Time
    owner: Int32s
    version: Int32s
    source: Int32s
    reads: Int64s
    writes: Int64s
    whole: bool = True
    candidates: Candidates | None = None
    """Of registers in which a value was written to a key more than once."""
    orders_keys: bool = False
    """A promise of each register by itself is among the facts."""

    @property
    def choices(self) -> Sequence[Choice]:
        return self.candidates.choices if self.candidates else ()


def analysis(columns: Columns, kernels: Any, graph_kernels: Any) -> Analysis:
    """Raises ModelError if a value was appended to a key twice: then its writer is unknown."""
    lists = _Lists.of(columns, kernels)
    time = Time.of(columns, lists.committed)
    survey, version, maker = lists.survey, lists.reads.version, lists.order.maker
    order = None if lists.notes.counts.any() else _replayed(columns, kernels, lists, time)
    graph, whole = None, True
    if order is None:
        graph, whole = _graph(columns, kernels, graph_kernels, lists)
    return Analysis(
        committed=lists.committed,
        counts=counts_of(RULES, lists.notes.counts),
        problems=problems_of(RULES, *lists.notes),
        order=order,
        graph=graph,
        time=time,
        owner=survey.owner,
        version=version,
        source=numpy.where(version >= 0, maker[version], -1).astype(numpy.int32) if len(maker) else version,
        reads=numpy.zeros(0, numpy.int64),
        writes=numpy.flatnonzero(
            (columns.f == WRITE) & (survey.last == 1) & (version < 0) & (lists.committed[survey.owner] == 1)
        ),
        whole=whole,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lists:
    """The results of the kernels; see there."""

    committed: Int8s
    survey: Survey
    order: Order
    reads: Reads
    notes: Notes

    @classmethod
    def of(cls, columns: Columns, kernels: Any) -> _Lists:
        micros = columns.micros
        survey = kernels.survey(micros, columns.key_count)
        written, twin = kernels.written_values(micros, survey.writes)
        again = int((twin >= 0).argmax()) if len(twin) else 0
        if len(twin) and twin[again] >= 0:
            raise twice_written(columns, int(twin[again]), again)
        notes = no_notes(len(RULES))
        committed = (columns.outcome == OK).astype(numpy.int8)
        # In this order: the first marks the unsure transactions that took part, and the second passes over all others.
        order = kernels.version_order(micros, survey, written, committed, notes)
        reads = kernels.judge_reads(micros, survey, written, order, committed, notes)
        if notes.counts[INCOMPATIBLE]:
            _note_lost_updates(columns, survey, reads, notes)
        return cls(committed=committed, survey=survey, order=order, reads=reads, notes=notes)


def _note_lost_updates(columns: Columns, survey: Survey, reads: Reads, notes: Notes) -> None:
    """Lost updates of lists that are no version, because they do not fit into the order of their key."""
    c, owner = columns, survey.owner
    updates: dict[tuple[int, bytes], int] = {}
    is_first = (c.f != WRITE) & (c.length > 0) & (survey.previous < 0)
    first_reads = is_first & (reads.version < 0) & (c.outcome[owner] == OK)
    for micro in numpy.flatnonzero(first_reads).tolist():
        behind = numpy.arange(micro + 1, c.first[owner[micro] + 1])
        appends = behind[(c.f[behind] == WRITE) & (c.key[behind] == c.key[micro])]
        if not len(appends):
            continue
        shown = c.elements[c.value[micro] : c.value[micro] + c.length[micro]].tobytes()
        other = updates.setdefault((int(c.key[micro]), shown), int(appends[0]))
        if other != appends[0]:
            note(notes, LOST, int(appends[0]), other)


def no_notes(rules: int) -> Notes:
    """Of so many rules no case."""
    return Notes(numpy.zeros(rules, numpy.int64), numpy.zeros((rules, SAMPLES, 2), numpy.int64))


def twice_written(columns: Columns, one: int, other: int) -> ModelError:
    """The error for a history in which two writes cannot be told apart."""
    key, value = (
        columns.key_name(int(columns.key[one])),
        columns.value_name(int(columns.value[one]), int(columns.key[one])),
    )
    return ModelError(
        expected="every value written to a key once",
        came=f"{value} written to {key} by event {int(columns.invoke[columns.owner(one)])} too",
        index=int(columns.invoke[columns.owner(other)]),
    )


def _replayed(columns: Columns, kernels: Any, lists: _Lists, time: Time) -> Int32s | None:
    closed = completed_at(time.ends, time.taking_part)
    order, total = kernels.replay(
        columns.micros, lists.survey, lists.order, lists.reads, lists.committed, time.invoke, closed
    )
    replayed: Int32s = order
    return replayed if total == int(lists.committed.sum()) else None


def _graph(columns: Columns, kernels: Any, graph_kernels: Any, lists: _Lists) -> tuple[Graph, bool]:
    c = columns
    source, target, kind, cause, effect, whole = kernels.dependencies(
        *(c.f, c.key, lists.survey.owner, lists.reads.version, lists.order.base, lists.order.maker),
        *(lists.committed, EDGES_MAX),
    )
    return graph_of(graph_kernels, len(c), source, target, kind, cause, effect), bool(whole)


def counts_of(rules: Sequence[str], counts: Int64s) -> Mapping[str, int]:
    """How often each rule was broken, of those that were."""
    return {rule: int(count) for rule, count in zip(rules, counts, strict=True) if count}


def problems_of(rules: Sequence[str], counts: Int64s, samples: Any) -> tuple[Problem, ...]:
    """The cases that were kept (`append_kernels.note`)."""
    return tuple(
        Problem(rule=rule, micro=int(micro), cause=None if cause < 0 else int(cause))
        for number, rule in enumerate(rules)
        for micro, cause in samples[number, : counts[number]]
    )
