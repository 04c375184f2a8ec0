"""Looks for an order in which a store could have run the transactions, by running them.

An order of known dependencies need not replay. Of registers, only some of the order of versions is known; under
snapshot isolation, of two transactions that write one key, one must have its snapshot after the other's commit,
whichever it is. Here transactions are run one by one; their reads decide more than the known order:

- A transaction reads (takes its snapshot) where each key stands at the version that it read.
- It writes (commits) a key once all transactions that read the present version have done so: it never comes back.
- Of snapshots, none begins to write a key between another's snapshot and commit that does: the first committer wins.
  Not so if the model is prefix.

Some steps are taken at once, because no valid order is lost by that. Everything possible before such a step is still
possible after it: a transaction that only reads; one with writes that are never read; a commit (of prefix a snapshot
instead: which of two commits first is open). The remaining transactions are tried one after the other, the one that
must be over soonest first. After a dead end the last choice is taken back. A set of transactions that led to a dead end
once is not tried again: the set alone decides what is possible after it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal

import numpy
from numpy.typing import NDArray

from checkers.limits import given
from checkers.transactional.columns import Int32s, Int64s
from checkers.transactional.graph import RW, RW_PREDICATE, Graph

STEPS = 1_000_000
STEPS_A_NODE = 200
"""How many steps a search may take: so many, and so many for each node. Some 2 s for a million."""
TURNS = 1_000
"""How many choices are made between two looks at the clock, if there is a time limit."""
NONE = -1
Uses = Sequence[Sequence[tuple[int, int]]]
"""By transaction: keys with the versions of them that it read, or made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The transactions to be ordered. The version of key k before any write is `null` + k.

    `graph`: its edges must be kept. Nodes are the n transactions, or 2n: t reads and n + t commits. `reads`, `writes`:
    see `Uses`. `gate`: a node waits for all that `closed` holds at smaller events (see `graph_kernels.serial_order`).
    `ends`: when each was surely over. `taking_part`: which transactions count at all. `first_wins`: whether two that
    write one key cannot overlap. `choices`: (transaction, key, versions): it read one of these. Only `polygraph` takes
    them.
    """

    graph: Graph
    reads: Uses
    writes: Uses
    null: int
    gate: Int64s
    closed: Int32s
    ends: Int64s
    taking_part: NDArray[numpy.bool_]
    first_wins: bool = True
    choices: Sequence[tuple[int, int, Sequence[int]]] = ()

    def gated(self, gate: Int64s, closed: Int32s) -> Problem:
        """The same with other waits."""
        return replace(self, gate=gate, closed=closed)

    @property
    def split(self) -> bool:
        """Whether reading and committing are two nodes."""
        return len(self.graph) > len(self.taking_part)

    def among(self, txns: Sequence[int]) -> Problem:
        """The problem of these transactions alone, with numbers from 0 on. Of each, its index in `txns` (ascending).

        What they read of others says nothing then. The same holds of an rw edge that rests on such a read.
        """
        count, here = len(self.taking_part), numpy.array(txns, numpy.int64)
        nodes = numpy.concatenate([here, here + count]) if self.split else here
        number = numpy.full(len(self.graph) + 1, NONE, numpy.int64)  # the last one is that of NONE
        number[nodes] = numpy.arange(len(nodes))
        made = {version for txn in txns for _, version in self.writes[txn]}

        def is_there(version: int) -> bool:
            return version in made or version >= self.null

        closed = numpy.flatnonzero(number[self.closed] != NONE)
        gate = self.gate[nodes]
        return replace(
            self,
            graph=self._edges_among(number, len(nodes), is_there),
            reads=[[use for use in self.reads[txn] if is_there(use[1])] for txn in txns],
            writes=[self.writes[txn] for txn in txns],
            gate=numpy.where(gate < 0, gate, numpy.searchsorted(closed, gate)),
            closed=number[self.closed[closed]].astype(numpy.int32),
            ends=self.ends[here],
            taking_part=self.taking_part[here],
            choices=[
                (int(number[txn]), key, versions)
                for txn, key, versions in self.choices
                if number[txn] != NONE and all(map(is_there, versions))
            ],
        )

    def _edges_among(self, number: Int64s, count: int, is_there: Callable[[int], bool]) -> Graph:
        """The graph of the nodes that have a number. Its edges stay in rows, because numbers ascend with nodes."""
        graph, n = self.graph, len(self.taking_part)
        edges = numpy.flatnonzero((number[graph.source] != NONE) & (number[graph.target] != NONE))
        rests = numpy.isin(graph.kind[edges], (RW, RW_PREDICATE))
        gone = [
            edge
            for edge in edges[rests].tolist()
            if (read := self.overwritten(int(graph.source[edge]) % n, int(graph.target[edge]) % n))
            and not any(map(is_there, read))
        ]
        edges = numpy.setdiff1d(edges, gone).astype(numpy.int64)
        source = number[graph.source[edges]].astype(numpy.int32)
        return Graph(
            offsets=numpy.searchsorted(source, numpy.arange(count + 1)).astype(numpy.int64),
            source=source,
            target=number[graph.target[edges]].astype(numpy.int32),
            kind=graph.kind[edges],
            cause=graph.cause[edges],
            effect=graph.effect[edges],
        )

    def overwritten(self, one: int, other: int) -> list[int]:
        """The versions that one transaction read, and that the other one overwrote for sure: it read them or null."""
        written, read = {key for key, _ in self.writes[other]}, set(self.reads[other])
        return [
            version
            for key, version in self.reads[one]
            if key in written and ((key, version) in read or version >= self.null)
        ]


@dataclass(frozen=True, slots=True)
class Ordering:
    """`result`: an order was found, there is none, or the steps did not suffice. `steps`: how many it took. `core`: if
    there is none, transactions that have no order among themselves; empty: they were not noted.
    """

    result: Literal["found", "none", "open"]
    order: Int32s | None
    steps: int
    core: frozenset[int] = frozenset()


def limit_of(problem: Problem) -> int:
    """How many steps the search may take."""
    return given().steps or STEPS + STEPS_A_NODE * len(problem.graph)


def execute(problem: Problem, steps_max: int, is_late: Callable[[], bool] = lambda: False) -> Ordering:
    """Look for an order of the problem's nodes within so many steps; deterministic unless it ever is late."""
    return _Execution(problem, steps_max).run(is_late)


@dataclass(frozen=True, slots=True)
class _Mark:
    """The state at a choice, to go back to."""

    trail: int
    opened: int
    begun: int
    event: int


class _Execution:
    """The state of the search. `open`: nodes that write and that no edge or gate holds back."""

    def __init__(self, problem: Problem, steps_max: int) -> None:
        graph = problem.graph
        self.count = len(problem.taking_part)
        self.split = problem.split
        self.locks = problem.split and problem.first_wins
        self.reads, self.writes, self.null = problem.reads, problem.writes, problem.null
        self.offsets, self.targets = graph.offsets.tolist(), graph.target.tolist()
        self.missing: list[int] = numpy.bincount(graph.target, minlength=len(graph)).tolist()
        self.by_gate = numpy.argsort(problem.gate, kind="stable").tolist()
        self.gate, self.closed = problem.gate.tolist(), problem.closed.tolist()
        self.part = problem.taking_part.tolist()
        self.left_to_do = int(problem.taking_part.sum()) * (2 if self.split else 1)
        self.readers: dict[int, list[int]] = {}
        for txn, uses in enumerate(self.reads):
            for _, version in uses:
                self.readers.setdefault(version, []).append(txn)
        self.left = {version: len(readers) for version, readers in self.readers.items()}
        self.quiet = [all(version not in self.left for _, version in uses) for uses in self.writes]
        self.deadline = self._deadlines(problem.ends.tolist())
        # The xor of their names (`hash`) stands for a set of done nodes. Two sets must not have the same: a way to an
        # order would pass for a dead end. Hence 96 bits.
        chance = random.Random(len(graph))
        self.name = [chance.getrandbits(96) for _ in range(len(graph))]
        self.current: dict[int, int] = {}
        self.lock: dict[int, int] = {}
        self.done = bytearray(len(graph))
        self.let_in = bytearray(len(graph))
        self.is_open = bytearray(len(graph))
        self.open: dict[int, None] = {}
        self.opened: list[int] = []
        self.queue: list[int] = []
        self.trail: list[tuple[int, list[int]]] = []
        self.begun = self.event = self.steps = self.hash = 0
        self.steps_max = steps_max
        self.changed = False

    def _deadlines(self, ends: list[int]) -> list[int]:
        """When each transaction must be done: at the earliest end of itself and its readers."""
        return [
            min(
                [ends[txn]]
                + [ends[reader] for _, version in uses for reader in self.readers.get(version, ())]
            )
            for txn, uses in enumerate(self.writes)
        ]

    def run(self, is_late: Callable[[], bool]) -> Ordering:
        choices: list[tuple[_Mark, int, list[int]]] = []
        dead: set[int] = set()
        self._open_gates()
        self._settle()
        for turn in count():
            if not self.left_to_do:
                break
            if self.steps > self.steps_max or (turn % TURNS == TURNS - 1 and is_late()):
                return Ordering("open", None, self.steps)
            possible = [] if self.hash in dead else self._possible()
            if possible:
                mark = _Mark(len(self.trail), len(self.opened), self.begun, self.event)
                choices.append((mark, self.hash, possible))
            else:
                while choices and not choices[-1][2]:
                    dead.add(choices.pop()[1])
                if not choices:
                    return Ordering("none", None, self.steps)
                self._go_back_to(choices[-1][0])
            self._do(choices[-1][2].pop())
            self._settle()
        order = [node for node, _ in self.trail]
        return Ordering("found", numpy.array(order, numpy.int32), self.steps)

    # what may be done now

    def _may_read(self, txn: int) -> bool:
        if any(self.current.get(key, self.null + key) != version for key, version in self.reads[txn]):
            return False
        return not self.locks or all(self.lock.get(key, NONE) == NONE for key, _ in self.writes[txn])

    def _may_write(self, txn: int, *, has_read: bool) -> bool:
        for key, _ in self.writes[txn]:
            version = self.current.get(key, self.null + key)
            readers = self.left.get(version, 0)
            if readers and not (readers == 1 and not has_read and (key, version) in self.reads[txn]):
                return False
        return True

    def _may_do_both(self, txn: int) -> bool:
        return self._may_read(txn) and self._may_write(txn, has_read=False)

    def _may_go(self, node: int) -> bool:
        txn = node % self.count
        if not self.split:
            return self._may_do_both(txn)
        return self._may_read(txn) if node < self.count else self._may_write(txn, has_read=True)

    def _possible(self) -> list[int]:
        """The nodes that may be chosen next, the best last."""
        self.steps += len(self.open)
        nodes = [node for node in self.open if self._may_go(node)]
        return sorted(nodes, key=lambda node: (-self.deadline[node % self.count], -node))

    # doing it

    def _settle(self) -> None:
        """Take all steps that lose no valid order."""
        while True:
            while self.queue:
                self.steps += 1
                self._try_at_once(self.queue.pop())
            if not self.changed:
                return
            self.changed = False
            self.steps += len(self.open)
            for node in list(self.open):
                self._try_at_once(node)

    def _try_at_once(self, node: int) -> None:
        if self.done[node] or not self.is_open[node]:
            return
        txn = node % self.count
        if self._loses_nothing(node):
            if self._may_go(node):
                self._do(node)
        elif (
            self.locks and self.quiet[txn] and self.missing[node + self.count] == 1 and self._may_do_both(txn)
        ):
            self._do(node)
            self._do(node + self.count)

    def _loses_nothing(self, node: int) -> bool:
        """Whether a step that is possible may be taken at once."""
        txn, commits = node % self.count, node >= self.count
        if not self.writes[txn]:
            return True
        if self.locks:
            return commits
        return self.quiet[txn] or (self.split and not commits)

    def _do(self, node: int) -> None:
        txn = node % self.count
        self.done[node] = 1
        self.left_to_do -= 1
        self.hash ^= self.name[node]
        self.open.pop(node, None)
        before: list[int] = []
        if node < self.count:
            self._read(txn)
        if node >= self.count or not self.split:
            before = self._write(txn)
        self.trail.append((node, before))
        for target in self.targets[self.offsets[node] : self.offsets[node + 1]]:
            self.missing[target] -= 1
            if self.missing[target] == 0 and self.let_in[target]:
                self._open(target)
        self._open_gates()

    def _read(self, txn: int) -> None:
        for _, version in self.reads[txn]:
            self.left[version] -= 1
            self.changed = self.changed or self.left[version] <= 1
        if self.split:
            for key, _ in self.writes[txn]:
                self.lock[key] = txn

    def _write(self, txn: int) -> list[int]:
        before = []
        for key, version in self.writes[txn]:
            before.append(self.current.get(key, self.null + key))
            self.current[key] = version
            self.queue += [reader for reader in self.readers.get(version, ()) if self.is_open[reader]]
            self.changed = True
            if self.split:
                self.lock[key] = NONE
        return before

    def _open(self, node: int) -> None:
        if not self.part[node % self.count]:
            return
        self.is_open[node] = 1
        self.opened.append(node)
        self.queue.append(node)
        if self.writes[node % self.count]:
            self.open[node] = None

    def _open_gates(self) -> None:
        """Let in the nodes that began before the end of the first node that is not done."""
        while True:
            while self.event < len(self.closed) and (
                self.closed[self.event] < 0 or self.done[self.closed[self.event]]
            ):
                self.event += 1
            if self.begun == len(self.by_gate):
                return
            node = self.by_gate[self.begun]
            # Not >=: what begins at the event at which another one ended is concurrent with it.
            if self.event < len(self.closed) and self.gate[node] > self.event:
                return
            self.begun += 1
            self.let_in[node] = 1
            if self.missing[node] == 0:
                self._open(node)

    # and undoing it

    def _go_back_to(self, mark: _Mark) -> None:
        while len(self.trail) > mark.trail:
            node, before = self.trail.pop()
            self._undo(node, before)
        for node in self.opened[mark.opened :]:
            self.is_open[node] = 0
            self.open.pop(node, None)
        del self.opened[mark.opened :]
        for node in self.by_gate[mark.begun : self.begun]:
            self.let_in[node] = 0
        self.begun, self.event = mark.begun, mark.event
        # A choice is made only when nothing is queued or changed any more (`_settle`).
        self.queue.clear()
        self.changed = False

    def _undo(self, node: int, before: list[int]) -> None:
        txn = node % self.count
        self.steps += 1
        self.done[node] = 0
        self.left_to_do += 1
        self.hash ^= self.name[node]
        for target in self.targets[self.offsets[node] : self.offsets[node + 1]]:
            self.missing[target] += 1
        if node >= self.count or not self.split:
            for (key, _), version in zip(self.writes[txn], before, strict=True):
                self.current[key] = version
                if self.split:
                    self.lock[key] = txn
        if node < self.count:
            for _, version in self.reads[txn]:
                self.left[version] += 1
            if self.split:
                for key, _ in self.writes[txn]:
                    self.lock[key] = NONE
        if self.writes[txn]:
            self.open[node] = None
