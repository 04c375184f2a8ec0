"""Looks for an order of versions, one pair of writers after the other, if the steps of `execution` do not suffice.

A polygraph (Papadimitriou, 1979; as used by Cobra, OSDI 2020, and PolySI, VLDB 2023): of two transactions that write a
key, one comes first, and then all that read its version come before the other one writes. Each choice is a set of
edges; the history is of the model if and only if some choice for every pair leaves a graph without a cycle.

- A choice that would close a cycle is out, so the other one is made, until nothing new follows.
- What is open then is chosen all at once, as one order of the graph has it. If that leaves no cycle, it is the answer.
- Otherwise one of the chosen pairs on a cycle is wrong. The pair with the nearest writers is tried in the other order,
  and after a dead end in the order first chosen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

import numpy

from checkers.limits import given
from checkers.transactional.execution import Ordering, Problem
from checkers.transactional.visibility import bits

NODES_MAX = 20_000
"""The largest graph that is searched: each node has a bit set of all nodes before it."""
PAIRS_MAX = 1_000_000
STEPS = 2_000_000
"""How many edges may be followed in all; some 10 s."""

Edge = tuple[int, int]
Pair = tuple[int, int]
"""Two transactions that write one key, the first one first."""


class _Cycle(Exception):
    """The conclusions contradict each other."""


class _Spent(Exception):
    """The steps do not suffice."""


def limit_of(part: int = 1) -> int:
    """How many edges may be followed, if this search has one part in so many of the budget."""
    return (given().steps or STEPS) // part


def choose(problem: Problem, steps_max: int, is_late: Callable[[], bool] = lambda: False) -> Ordering:
    """Look for an order of the problem's nodes within so many followed edges; deterministic unless it ever is late."""
    polygraph = _Polygraph(problem, steps_max, is_late)
    if not polygraph.is_whole or polygraph.nodes > NODES_MAX or polygraph.pairs() > PAIRS_MAX:
        return Ordering("open", None, 0)
    try:
        order = polygraph.solved()
    except _Spent:
        return Ordering("open", None, polygraph.steps)
    if order is None:
        return Ordering("none", None, polygraph.steps)
    return Ordering("found", numpy.array(order, numpy.int32), polygraph.steps)


class _Polygraph:
    """Nodes are those of the problem, and one for each event that other nodes must come after."""

    def __init__(self, problem: Problem, steps_max: int, is_late: Callable[[], bool]) -> None:
        self.count = len(problem.taking_part)
        self.commit = self.count if problem.split else 0
        self.first_wins = problem.first_wins
        part = problem.taking_part.tolist()
        self.steps, self.steps_max, self.is_late = 0, steps_max, is_late
        self.members = [node for node in range(len(problem.graph)) if part[node % self.count]]
        self.writers: dict[int, dict[int, int]] = {}
        for txn in self.members[: int(problem.taking_part.sum())]:
            for key, version in problem.writes[txn]:
                self.writers.setdefault(key, {})[txn] = version
        self.readers: dict[int, list[int]] = {}
        for txn in self.members[: int(problem.taking_part.sum())]:
            for _, version in problem.reads[txn]:
                self.readers.setdefault(version, []).append(txn)
        self.null = problem.null
        made = {version for versions in self.writers.values() for version in versions.values()}
        self.is_whole = all(version in made or version >= self.null for version in self.readers)
        self.edges = self._known(problem, part)
        self.priority = self._priorities(problem)

    def pairs(self) -> int:
        """How many pairs of writers there are."""
        return sum(len(writers) * (len(writers) - 1) // 2 for writers in self.writers.values())

    def _known(self, problem: Problem, part: Sequence[bool]) -> list[Edge]:
        offsets, targets = problem.graph.offsets.tolist(), problem.graph.target.tolist()
        edges = [(one, other) for one in self.members for other in targets[offsets[one] : offsets[one + 1]]]
        edges = [(one, other) for one, other in edges if part[other % self.count]]
        edges += self._in_time(problem)
        for key, writers in self.writers.items():
            for txn, version in writers.items():
                edges += [(txn + self.commit, reader) for reader in self.readers.get(version, ())]
            for reader in self.readers.get(self.null + key, ()):
                edges += [(reader, txn + self.commit) for txn in writers if txn + self.commit != reader]
        return list(dict.fromkeys(edges))

    def _in_time(self, problem: Problem) -> list[Edge]:
        """The edges of real time: each end of a node is a node too, between the ended one and all that begin later."""
        gate, closed = problem.gate.tolist(), problem.closed.tolist()
        latest, edges = [-1] * (len(closed) + 1), []
        self.nodes, before = len(problem.graph), -1
        for event, node in enumerate(closed):
            latest[event] = before
            if node >= 0:
                edges.append((node, self.nodes))
                if before >= 0:
                    edges.append((before, self.nodes))
                before = self.nodes
                self.nodes += 1
        latest[len(closed)] = before
        for node in self.members:
            at = latest[min(gate[node], len(closed))] if gate[node] >= 0 else -1
            if at >= 0:
                edges.append((at, node))
        return edges

    def _priorities(self, problem: Problem) -> list[int]:
        """The earliest end of each transaction and its readers: stores nearly always work in this order."""
        ends = problem.ends.tolist()
        over = [
            min([ends[txn], *(ends[reader] for _, v in uses for reader in self.readers.get(v, ()))])
            for txn, uses in enumerate(problem.writes)
        ]
        priority = over + (over if self.commit else [])
        return priority + [-1] * (self.nodes - len(priority))

    # what follows from a choice

    def _edges_of(self, one: int, other: int, version: int) -> list[Edge]:
        """The edges that follow if `version`, which `one` wrote, comes before that of `other`."""
        target = other + self.commit
        edges = [(one + self.commit, other if self.first_wins else target)]
        edges += [(reader, target) for reader in self.readers.get(version, ()) if reader != other]
        return edges

    def _concluded(self, edges: list[Edge]) -> tuple[list[Edge], list[int]]:
        """All edges that follow, and the nodes before each node, as bits. Raises _Cycle."""
        edges = list(edges)
        while True:
            past = self._past(edges)
            new: dict[Edge, None] = {}
            for key, writers in self.writers.items():
                if len(writers) > 1 or self.null + key in self.readers:
                    self._conclude(key, writers, past, new)
            if not new:
                return edges, past
            edges += new

    def _conclude(self, key: int, writers: dict[int, int], past: list[int], new: dict[Edge, None]) -> None:
        commits = sum(1 << (txn + self.commit) for txn in writers)
        begins = sum(1 << txn for txn in writers)
        for txn, version in writers.items():
            own = txn + self.commit
            first = 0
            for reader in self.readers.get(version, ()):  # writers that it saw beside came before this one
                first |= past[reader] & commits & ~(1 << own) & ~(1 << reader)
            first >>= self.commit
            if self.first_wins:
                first |= past[own] & begins & ~(1 << txn)  # its snapshot was before, so all of it is
            first |= (past[own] & commits) >> self.commit
            self.steps += 1
            for other in bits(first):
                self._add(other, txn, writers[other], past, new)
        if self.null + key in self.readers:
            for reader in self.readers[self.null + key]:
                if past[reader] & commits & ~(1 << reader):
                    raise _Cycle

    def _add(self, one: int, other: int, version: int, past: list[int], new: dict[Edge, None]) -> None:
        for source, target in self._edges_of(one, other, version):
            if source == target:
                continue
            if not past[target] >> source & 1:
                if past[source] >> target & 1:
                    raise _Cycle
                new[(source, target)] = None

    def _past(self, edges: Sequence[Edge]) -> list[int]:
        self.steps += len(edges)
        if self.steps > self.steps_max or self.is_late():
            raise _Spent
        before: list[list[int]] = [[] for _ in range(self.nodes)]
        for one, other in edges:
            before[other].append(one)
        past = [0] * self.nodes
        for node in self._sorted(edges):
            known = 0
            for earlier in before[node]:
                if not known >> earlier & 1:
                    known |= past[earlier] | 1 << earlier
            past[node] = known
        return past

    def _sorted(self, edges: Sequence[Edge]) -> list[int]:
        """All nodes in an order that has the edges, those that are over first where it may. Raises _Cycle."""
        after: list[list[int]] = [[] for _ in range(self.nodes)]
        missing = [0] * self.nodes
        for one, other in edges:
            after[one].append(other)
            missing[other] += 1
        ready = [(self.priority[node], node) for node in range(self.nodes) if not missing[node]]
        heapify(ready)
        order = []
        while ready:
            _, node = heappop(ready)
            order.append(node)
            for other in after[node]:
                missing[other] -= 1
                if not missing[other]:
                    heappush(ready, (self.priority[other], other))
        if len(order) < self.nodes:
            raise _Cycle
        return order

    # choosing

    def solved(self) -> list[int] | None:
        """An order of all members, or None if there is none. Raises _Spent."""
        tries: list[list[Edge]] = [self.edges]
        while tries:
            try:
                edges, past = self._concluded(tries.pop())
            except _Cycle:
                continue
            guessed = self._guessed(edges, past)
            complete = list(dict.fromkeys([*edges, *guessed]))
            try:
                order = self._sorted(complete)
            except _Cycle:
                one, other = self._doubtful(complete, guessed)
                tries.append([*edges, *self._edges_of(one, other, self._version(one, other))])
                tries.append([*edges, *self._edges_of(other, one, self._version(other, one))])
                continue
            last = 2 * self.count if self.commit else self.count
            taking_part = set(self.members)
            return [node for node in order if node < last and node in taking_part]
        return None

    def _version(self, one: int, other: int) -> int:
        """The version that `one` wrote of the key that both write."""
        return next(w[one] for w in self.writers.values() if one in w and other in w)

    def _guessed(self, edges: list[Edge], past: list[int]) -> dict[Edge, Pair]:
        """The edges of all open pairs, each as one order of the graph has it, with the pair that each comes from."""
        place = {node: at for at, node in enumerate(self._sorted(edges))}
        guessed: dict[Edge, Pair] = {}
        for writers in self.writers.values():
            commits = sum(1 << (txn + self.commit) for txn in writers)
            ordered = sorted(writers, key=lambda txn: place[txn + self.commit])
            for at, one in enumerate(ordered):
                later = commits & ~past[one + self.commit]
                for other in ordered[at + 1 :]:
                    known = past[other + self.commit] >> (one + self.commit) & 1
                    if later >> (other + self.commit) & 1 and not known:
                        for edge in self._edges_of(one, other, writers[one]):
                            guessed.setdefault(edge, (one, other))
        return guessed

    def _doubtful(self, edges: list[Edge], guessed: dict[Edge, Pair]) -> Pair:
        """Of the pairs on a cycle the one with the nearest writers."""
        chosen = {guessed[edge] for edge in self._cycle(edges) if edge in guessed}
        return min(chosen, key=lambda pair: (abs(self.priority[pair[0]] - self.priority[pair[1]]), pair))

    def _cycle(self, edges: list[Edge]) -> list[Edge]:
        """A shortest cycle through one of the nodes that are on any."""
        after: list[list[int]] = [[] for _ in range(self.nodes)]
        missing = [0] * self.nodes
        for one, other in edges:
            after[one].append(other)
            missing[other] += 1
        ready = [node for node in range(self.nodes) if not missing[node]]
        left = set(range(self.nodes))
        while ready:
            node = ready.pop()
            left.discard(node)
            for other in after[node]:
                missing[other] -= 1
                if not missing[other]:
                    ready.append(other)
        self.steps += len(edges)
        for start in sorted(left, key=lambda node: (self.priority[node], node)):
            if cycle := self._round(start, after, left):
                return cycle
        raise AssertionError("nodes that are left after sorting lie on or behind a cycle")

    def _round(self, start: int, after: list[list[int]], left: set[int]) -> list[Edge]:
        came: dict[int, int] = {}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            self.steps += 1
            for other in after[node]:
                if other not in left or other in came:
                    continue
                came[other] = node
                if other == start:
                    walk = [(node, start)]
                    while walk[-1][0] != start:
                        walk.append((came[walk[-1][0]], walk[-1][0]))
                    return walk
                queue.append(other)
        return []
