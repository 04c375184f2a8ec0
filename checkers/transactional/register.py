"""rw-register: the version that every read showed, and as much of the order of versions as can be known.

A register does not show its past. These facts about the order of a key's versions are known:

- nothing was written before the first write: null comes first (a version that is known to follow another follows
  null through it)
- a transaction that read a version and then wrote wrote a later one; its own writes follow each other
- `sequential_keys`: if the store promises that every key by itself is sequentially consistent, the versions that one
  client read or wrote are in the order of that client
- `linearizable_keys`: if the store promises that every key by itself is linearizable, the version of a transaction that
  was over before another began comes before that one's
- `Columns.rank`: if the store says in which order its transactions took effect, their versions are in that order

If these do not agree with each other, some of the key's versions form a circle: `cyclic-versions`, and nothing is
concluded from their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from checkers.transactional.append import EDGES_MAX, Analysis, counts_of, no_notes, problems_of, twice_written
from checkers.transactional.append_kernels import SAMPLES, Notes
from checkers.transactional.candidates import Candidates
from checkers.transactional.columns import NIL, OK, WRITE, Columns, Int8s, Int32s
from checkers.transactional.graph import Graph, Time, graph_of
from checkers.transactional.register_kernels import CYCLIC, RULES

Pairs = tuple[Int32s, Int32s]


def analysis(
    columns: Columns,
    append_kernels: Any,
    register_kernels: Any,
    graph_kernels: Any,
    *,
    sequential_keys: bool = False,
    linearizable_keys: bool = False,
) -> Analysis:
    """Raises ModelError if a value was written to a key twice, and the store says in which order it worked."""
    c = columns
    survey = append_kernels.survey(c.micros, c.key_count)
    owner, previous, last = survey.owner, survey.previous, survey.last
    written, twin = append_kernels.written_values(c.micros, survey.writes)
    writer = _with_unwritten(c, append_kernels.writers_of_reads(c.micros, written))
    notes = no_notes(len(RULES))
    committed = (c.outcome == OK).astype(numpy.int8)
    candidates = None
    if (twin >= 0).any() or (c.value[c.f == WRITE] == NIL).any():
        candidates = Candidates(columns, owner, previous, last, twin, writer)
        if candidates.choices and columns.rank is not None:
            one, other = candidates.choices[0].versions[-2:]
            raise twice_written(columns, one if one < len(c.f) else other, other)
        candidates.noted(notes)
        committed[candidates.unsure()] = 1
    version = register_kernels.judge_registers(c.micros, survey, writer, committed, notes)
    # Behind `judge_registers`, which marks the unsure transactions that were read of.
    time = Time.of(columns, committed)
    pairs = [register_kernels.known_pairs(c.first, c.f, previous, version, committed)]
    touches = _Touches.of(columns, owner, previous, last, version, committed, time)
    whole = True
    if sequential_keys or linearizable_keys:
        pairs.append(touches.of_the_future(c, owner, in_sessions=not linearizable_keys))
    if sequential_keys:
        pairs.append(touches.of_each_process())
    if linearizable_keys:
        *timed, whole = touches.in_real_time(graph_kernels)
        pairs.append((timed[0], timed[1]))
    if columns.rank is not None:
        pairs.append(_in_rank(columns, owner, last, committed))
    order = _Order(columns, graph_kernels, notes, pairs)
    graph, all_edges = order.graph(register_kernels, owner, version, committed)
    return Analysis(
        committed=committed,
        counts=counts_of(RULES, notes.counts),
        problems=problems_of(RULES, *notes),
        order=None,
        graph=graph,
        time=time,
        owner=owner,
        version=version,
        source=numpy.where(_are_made(c, owner, committed, version), version, -1).astype(numpy.int32),
        reads=numpy.flatnonzero((version >= 0) & (c.f != WRITE)),
        writes=numpy.flatnonzero((c.f == WRITE) & (last == 1) & (committed[owner] == 1)),
        whole=whole and all_edges,
        candidates=candidates,
        orders_keys=sequential_keys or linearizable_keys,
    )


def _in_rank(columns: Columns, owner: Int32s, last: Int8s, committed: Int8s) -> Pairs:
    """Pairs of versions of each key that follow each other in the store's own order."""
    assert columns.rank is not None
    finals = numpy.flatnonzero((columns.f == WRITE) & (last == 1) & (committed[owner] == 1))
    finals = finals[~numpy.isnan(columns.rank[owner[finals]])]
    order = finals[numpy.lexsort((columns.rank[owner[finals]], columns.key[finals]))].astype(numpy.int32)
    same = columns.key[order[:-1]] == columns.key[order[1:]]
    return order[:-1][same], order[1:][same]


def _with_unwritten(columns: Columns, writer: Int32s) -> Int32s:
    """The writers of reads; where no client wrote the value, the first read that shows it stands for its write."""
    c = columns
    unwritten = numpy.flatnonzero((writer < 0) & (c.f != WRITE) & (c.value != NIL))
    if len(unwritten):
        rows = numpy.stack([c.key[unwritten].astype(numpy.int64), c.value[unwritten]])
        _, first, number = numpy.unique(rows, axis=1, return_index=True, return_inverse=True)
        writer[unwritten] = unwritten[first[number.reshape(-1)]]
    return writer


def _are_made(columns: Columns, owner: Int32s, committed: Int8s, version: Int32s) -> NDArray[numpy.bool_]:
    """Which of these versions a committed transaction wrote."""
    made = (version >= 0) & (version < len(columns.f))
    there = version[made]
    made[made] = (columns.f[there] == WRITE) & (committed[owner[there]] == 1)
    return made


class _Order:
    """The pairs of versions, without those that are part of a circle."""

    def __init__(self, columns: Columns, kernels: Any, notes: Notes, pairs: Sequence[Pairs]) -> None:
        self.columns = columns
        self.kernels = kernels
        earlier = numpy.concatenate([part[0] for part in pairs])
        later = numpy.concatenate([part[1] for part in pairs])
        versions = len(columns.f) + columns.key_count
        if len(pairs) > 1:  # only promises can say the same twice
            code = numpy.unique(earlier.astype(numpy.int64) * versions + later)
            earlier, later = (code // versions).astype(numpy.int32), (code % versions).astype(numpy.int32)
        circular = self._circular(versions, earlier, later)
        if circular.any():
            _note_circles(columns, notes, numpy.concatenate([earlier[circular], later[circular]]))
            earlier, later = earlier[~circular], later[~circular]
        self.earlier, self.later = earlier, later
        self.versions = versions

    def _circular(self, versions: int, earlier: Int32s, later: Int32s) -> NDArray[numpy.bool_]:
        """Pairs of versions that come before themselves, or before their key's null, before which nothing can be."""
        offsets, place = self.kernels.rows(earlier, versions)
        targets = later[place]
        table, accepting = numpy.zeros((1, 1), numpy.int8), numpy.zeros(1, numpy.int8)
        kinds = numpy.zeros(len(targets), numpy.int8)
        ends = numpy.zeros(versions, numpy.int64)
        component, _, _ = self.kernels.components(offsets, targets, kinds, table, ends, accepting)
        back: NDArray[numpy.bool_] = (component[earlier] == component[later]) | (later >= len(self.columns.f))
        return back

    def graph(self, kernels: Any, owner: Int32s, version: Int32s, committed: Int8s) -> tuple[Graph, bool]:
        c = self.columns
        earlier, later = self._from_null(version, owner, committed)
        offsets, place = self.kernels.rows(earlier, self.versions)
        source, target, kind, cause, effect, all_edges = kernels.dependencies(
            c.f, owner, version, committed, offsets, later[place], EDGES_MAX
        )
        graph = graph_of(self.kernels, len(c), source, target, kind, cause, effect)
        return graph, bool(all_edges)

    def _from_null(self, version: Int32s, owner: Int32s, committed: Int8s) -> Pairs:
        """The pairs, and null before every version that follows no other of a committed transaction, on keys where null
        was read."""
        c = self.columns
        micros = len(c.f)
        read = numpy.zeros(c.key_count, numpy.bool_)
        read[version[version >= micros] - micros] = True
        rooted = numpy.ones(self.versions, numpy.bool_)
        follows = self.earlier >= micros
        follows |= _are_made(c, owner, committed, self.earlier)
        rooted[self.later[follows]] = False
        writes = (c.f == WRITE) & (committed[owner] == 1)
        roots = numpy.flatnonzero(writes & rooted[:micros] & read[c.key])
        nulls = (micros + c.key[roots]).astype(numpy.int32)
        return (
            numpy.concatenate([self.earlier, nulls]),
            numpy.concatenate([self.later, roots.astype(numpy.int32)]),
        )


def _note_circles(columns: Columns, notes: Notes, versions: Int32s) -> None:
    circular = numpy.unique(versions[versions < len(columns.f)])
    keys, first = numpy.unique(columns.key[circular], return_index=True)
    notes.counts[CYCLIC] = len(keys)
    for place, micro in enumerate(circular[first][:SAMPLES]):
        notes.samples[CYCLIC, place] = (micro, -1)


class _Touches:
    """Every transaction that read or wrote a key, with the version it entered with and the one it left behind."""

    def __init__(self, key: Int32s, txn: Int32s, entered: Int32s, left: Int32s, time: Time) -> None:
        self.key, self.txn, self.entered, self.left, self.time = key, txn, entered, left, time

    @classmethod
    def of(
        cls,
        columns: Columns,
        owner: Int32s,
        previous: Int32s,
        last: Int8s,
        version: Int32s,
        committed: Int8s,
        time: Time,
    ) -> _Touches:
        c = columns
        write = (c.f == WRITE) & (committed[owner] == 1)
        first = (previous < 0) & (write | ((version >= 0) & (c.f != WRITE)))
        entries = numpy.flatnonzero(first).astype(numpy.int32)
        entered = numpy.where(write[entries], entries, version[entries]).astype(numpy.int32)
        finals = numpy.flatnonzero(write & (last == 1))
        code = owner.astype(numpy.int64) * c.key_count + c.key
        finals = finals[numpy.argsort(code[finals], kind="stable")]
        at = numpy.minimum(numpy.searchsorted(code[finals], code[entries]), max(len(finals) - 1, 0))
        left = entered.copy()
        if len(finals):
            same = code[finals[at]] == code[entries]
            left[same] = finals[at[same]]
        return cls(c.key[entries], owner[entries], entered, left, time)

    def of_the_future(self, columns: Columns, owner: Int32s, *, in_sessions: bool) -> Pairs:
        """Versions that were read before the transaction began that made them: each would come before itself."""
        read = numpy.flatnonzero(self.entered < len(columns.f))
        read = read[columns.f[self.entered[read]] == WRITE]
        reader, maker = self.txn[read], owner[self.entered[read]]
        future = (self.time.ends[reader] < self.time.invoke[maker]) & self.time.taking_part[maker]
        if in_sessions:
            future &= self.time.process[reader] == self.time.process[maker]
        versions = self.entered[read[future]]
        # Each before itself: a circle for `_Order`, which then concludes nothing from the version.
        return versions, versions

    def of_each_process(self) -> Pairs:
        """Pairs of versions: the one that a client left behind, and the one that it entered with next."""
        process = self.time.process[self.txn]
        order = numpy.lexsort((self.txn, self.key, process))
        one, other = order[:-1], order[1:]
        same = (process[one] == process[other]) & (self.key[one] == self.key[other])
        over = self.time.ends[self.txn[one]] < self.time.invoke[self.txn[other]]
        chosen = same & over & (self.left[one] != self.entered[other])
        return self.left[one[chosen]], self.entered[other[chosen]]

    def in_real_time(self, kernels: Any) -> tuple[Int32s, Int32s, bool]:
        """Pairs of versions: the one that a transaction left behind, and the one that a later one entered with."""
        order, begin, by_end = self.time.groups(self.txn, self.key)
        invoke, ends = self.time.invoke[self.txn[order]], self.time.ends[self.txn[order]]
        timed: tuple[Int32s, Int32s, bool] = kernels.pairs_in_time(
            *(begin, invoke, ends, by_end, self.entered[order], self.left[order], 64 * len(order) + 1024)
        )
        return timed
