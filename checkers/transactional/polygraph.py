"""Looks for an order of versions, one pair of writers after the other, if the steps of `execution` do not suffice.

A polygraph (Papadimitriou, 1979; as used by Cobra, OSDI 2020, and PolySI, VLDB 2023): of two transactions that write a
key, one comes first, and then all that read its version come before the other one writes. Each choice is a set of
edges; the history is of the model if and only if some choice for every pair leaves a graph without a cycle.

- A choice that would close a cycle is out, so the other one is made, until nothing new follows. Of each node the search
  keeps all nodes before it, and looks again only at what an edge has changed.
- One order of the graph then says how the open pairs stand. If every read comes before its version is overwritten, that
  is the answer. The pairs at which one does not are decided, in the order of the graph, and a new order is made.
- A cycle is explained: each edge of it is known from the start, or follows from a read and a path of older edges, or
  from a choice. A search without a choice on any cycle has no order. Else the latest choice on it is made in the other
  way; where that fails too, both explanations together are one without the choice (as in conflict-driven search).

A "none" names the transactions of its explanation. They have no order among themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy

from checkers.limits import given
from checkers.transactional.execution import Ordering, Problem
from checkers.transactional.visibility import bits

NODES_MAX = 20_000
"""The largest graph that is searched: each node has a bit set of all nodes before it."""
PAIRS_MAX = 1_000_000
"""Some hundred bytes and some ten steps each."""
CORE_STEPS, CORE_MAX = 200_000, 200
"""Of each search that makes an explanation smaller; how large it may be, for leaving transactions out one by one."""
STEPS = 8_000_000
"""How many edges may be followed in all; some 10 s."""

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Why:
    """Why an edge is there: the transactions that say so, a path of older edges (from, to; -1: none), a choice (-1)."""

    txns: tuple[int, ...]
    source: int = -1
    target: int = -1
    choice: int = -1


@dataclass(frozen=True, slots=True)
class _Conflict:
    """What leads to a cycle: transactions, and the choices among their versions."""

    txns: frozenset[int]
    choices: frozenset[int]


@dataclass(slots=True)
class _Choice:
    """A pair of writers of a key in the order that was chosen first, and how much there was before."""

    key: int
    one: int
    other: int
    undo: int
    failed: _Conflict | None = None
    """Why the first order led to a cycle, once it did."""


class _Cycle(Exception):
    """Edges contradict each other; the argument is the _Conflict."""

    def __init__(self, conflict: _Conflict) -> None:
        super().__init__(conflict)
        self.conflict = conflict


class _Spent(Exception):
    """The steps do not suffice."""


def limit_of(part: int = 1) -> int:
    """How many edges may be followed, if this search has one part in so many of the budget."""
    return (given().steps or STEPS) // part


def choose(
    problem: Problem, steps_max: int, is_late: Callable[[], bool] = lambda: False, *, explains: bool = False
) -> Ordering:
    """Look for an order of the problem's nodes within so many followed edges; deterministic unless it ever is late.

    `explains`: if there is none, name the few transactions that show it.
    """
    if len(problem.graph) + len(problem.closed) > NODES_MAX or _pairs(problem) > PAIRS_MAX:
        return Ordering("open", None, 0)
    polygraph = _Polygraph(problem, steps_max, is_late)
    if not polygraph.is_whole:
        return Ordering("open", None, 0)
    try:
        order = polygraph.solved()
    except _Spent:
        return Ordering("open", None, polygraph.steps)
    except _Cycle as cycle:
        core = _core(problem, cycle.conflict.txns) if explains else frozenset[int]()
        return Ordering("none", None, polygraph.steps, core)
    return Ordering("found", numpy.array(order, numpy.int32), polygraph.steps)


def _pairs(problem: Problem) -> int:
    """How many pairs there are of writers of one key, and of a writer and a reader that saw nothing."""
    writers = Counter(key for uses in problem.writes for key in {key for key, _ in uses})
    blind = Counter(key for uses in problem.reads for key, version in uses if version >= problem.null)
    return sum(count * (count - 1) // 2 + count * blind[key] for key, count in writers.items())


def _core(problem: Problem, txns: frozenset[int]) -> frozenset[int]:
    """Those of these transactions that have no order among themselves, and would without none of them."""
    while (fewer := _explained_by(problem, txns)) is not None and len(fewer) < len(txns):
        txns = fewer
    for txn in sorted(txns) if len(txns) <= CORE_MAX else ():
        if txn in txns:
            txns = _explained_by(problem, txns - {txn}) or txns
    return txns


def _explained_by(problem: Problem, txns: frozenset[int]) -> frozenset[int] | None:
    """Those of these transactions that a search among them alone fails by; None if it does not fail.

    What they read of others says nothing then.
    """
    part = numpy.zeros(len(problem.taking_part), numpy.bool_)
    part[list(txns)] = True
    made = {version for txn in txns for _, version in problem.writes[txn]}
    reads = [
        [(key, version) for key, version in uses if version in made or version >= problem.null]
        if part[txn]
        else []
        for txn, uses in enumerate(problem.reads)
    ]
    fewer = replace(problem, taking_part=part & problem.taking_part, reads=reads)
    try:
        _Polygraph(fewer, CORE_STEPS, lambda: False).solved()
    except _Spent:
        pass
    except _Cycle as cycle:
        return cycle.conflict.txns
    return None


class _Polygraph:
    """Nodes are those of the problem, and one for each event that other nodes must come after."""

    def __init__(self, problem: Problem, steps_max: int, is_late: Callable[[], bool]) -> None:
        self.count = len(problem.taking_part)
        self.commit = self.count if problem.split else 0
        self.first_wins = problem.first_wins
        part = problem.taking_part.tolist()
        self.steps, self.steps_max, self.is_late = 0, steps_max, is_late
        self.nodes = len(problem.graph) + int((problem.closed >= 0).sum())
        """Those of the problem, then one for each end that others wait for."""
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
        known = self._known(problem, part)
        self.priority = self._priorities(problem)
        self.commits = {key: sum(1 << txn + self.commit for txn in own) for key, own in self.writers.items()}
        self.begins = {key: sum(1 << txn for txn in own) for key, own in self.writers.items()}
        self.looks: list[list[tuple[int, int]]] = [[] for _ in range(self.nodes)]
        """By node, the (key, writer) whose version it reads, or which it commits."""
        for key, own in self.writers.items():
            for txn, version in own.items():
                for node in (txn + self.commit, *self.readers.get(version, ())):
                    self.looks[node].append((key, txn))
        self.before: list[list[int]] = [[] for _ in range(self.nodes)]
        self.after: list[list[int]] = [[] for _ in range(self.nodes)]
        """By node, the numbers of the edges that come to it, and that leave it."""
        self.edges: list[tuple[int, int, _Why]] = []
        self.past = [0] * self.nodes
        self.seen: dict[tuple[int, int], int] = {}
        """By key and writer, the writers that are known to come before it."""
        self.undo: list[tuple[int, int] | tuple[tuple[int, int], int] | None] = []
        """What was changed: (node, its past), ((key, writer), its mask), None for an edge."""
        self.changed: dict[int, None] = {}
        self.known = known

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
        end, before = len(problem.graph), -1
        for event, node in enumerate(closed):
            latest[event] = before
            if node >= 0:
                edges.append((node, end))
                if before >= 0:
                    edges.append((before, end))
                before, end = end, end + 1
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

    # ---- edges, and what follows from them

    def _begin(self) -> None:
        """Put in what is known, in an order of the graph where there is one. Raises _Cycle."""
        for one, other in self.known:
            self._put(
                one, other, _Why(tuple(node % self.count for node in (one, other) if node < self._last))
            )
        for node in self._sorted():
            past = 0
            for edge in self.before[node]:
                earlier = self.edges[edge][0]
                past |= self.past[earlier] | 1 << earlier
            self.past[node] = past
            if past and self.looks[node]:
                self.changed[node] = None
            self._step(1 + len(self.before[node]))
        self._conclude()

    @property
    def _last(self) -> int:
        """Nodes from here on are events."""
        return 2 * self.count if self.commit else self.count

    def _step(self, count: int) -> None:
        self.steps += count
        if self.steps > self.steps_max or self.is_late():
            raise _Spent

    def _put(self, one: int, other: int, why: _Why) -> None:
        self.after[one].append(len(self.edges))
        self.before[other].append(len(self.edges))
        self.edges.append((one, other, why))

    def _add(self, one: int, other: int, why: _Why) -> None:
        """An edge more. Raises _Cycle."""
        if one == other or self.past[other] >> one & 1:
            return
        if self.past[one] >> other & 1:
            raise _Cycle(self._explained([(other, one, len(self.edges))], why))
        self._put(one, other, why)
        self.undo.append(None)
        gained = self.past[one] | 1 << one
        todo = [other]
        while todo:
            node = todo.pop()
            past = self.past[node]
            if gained & ~past:
                self.undo.append((node, past))
                self.past[node] = past | gained
                if self.looks[node]:
                    self.changed[node] = None
                todo += (self.edges[edge][1] for edge in self.after[node])
                self._step(1 + len(self.after[node]))

    def _conclude(self) -> None:
        """Add all edges that follow. Raises _Cycle."""
        while self.changed:
            node = next(iter(self.changed))
            del self.changed[node]
            for key, txn in self.looks[node]:
                own = txn + self.commit
                # Writers that the node comes behind came before the version that it reads, or commits.
                first = (self.past[node] & self.commits[key] & ~(1 << own) & ~(1 << node)) >> self.commit
                self._come_before(key, txn, first, node, self.commit)
                if self.first_wins and node == own and self.commit:
                    # Their snapshots were before this commit, so all of them is.
                    self._come_before(key, txn, self.past[own] & self.begins[key] & ~(1 << txn), own, 0)

    def _come_before(self, key: int, txn: int, others: int, node: int, at: int) -> None:
        """These writers come before `txn`, because a path leads from them (`at` behind their numbers) to `node`."""
        name = (key, txn)
        seen = self.seen.get(name, 0)
        if not others & ~seen:
            return
        self.undo.append((name, seen))
        self.seen[name] = seen | others
        for other in bits(others & ~seen):
            self._order(key, other, txn, _Why((other, txn, node % self.count), other + at, node))

    def _order(self, key: int, one: int, other: int, why: _Why) -> None:
        """The edges that follow if `one` writes the key before `other` does."""
        target = other + self.commit
        self._add(one + self.commit, other if self.first_wins else target, why)
        for reader in self.readers.get(self.writers[key][one], ()):
            if reader != other and not self.past[target] >> reader & 1:
                self._add(reader, target, replace(why, txns=(*why.txns, reader % self.count)))

    # ---- explanations

    def _explained(self, paths: list[tuple[int, int, int]], why: _Why | None = None) -> _Conflict:
        """What paths of edges below a number, (from, to, number), and one more edge rest on."""
        txns: set[int] = set()
        choices: set[int] = set()
        met: set[int] = set()

        def rest_on(why: _Why, number: int) -> None:
            txns.update(why.txns)
            if why.choice >= 0:
                choices.add(why.choice)
            if why.source >= 0:
                paths.append((why.source, why.target, number))

        if why is not None:
            rest_on(why, len(self.edges))
        done: set[tuple[int, int, int]] = set()
        while paths:
            path = paths.pop()
            if path in done:
                continue
            done.add(path)
            for edge in self._path(*path):
                if edge not in met:
                    met.add(edge)
                    rest_on(self.edges[edge][2], edge)
        return _Conflict(frozenset(txns), frozenset(choices))

    def _path(self, source: int, target: int, number: int) -> list[int]:
        """A shortest path of edges below a number."""
        came: dict[int, int] = {target: -1}
        layer = [target]
        while source not in came:
            further: list[int] = []
            for node in layer:
                for edge in self.before[node]:
                    earlier = self.edges[edge][0]
                    near = earlier == source or self.past[earlier] >> source & 1
                    if edge < number and near and earlier not in came:
                        came[earlier] = edge
                        further.append(earlier)
            assert further, "the path was there when the edge was added"
            layer = further
        walk = []
        node = source
        while node != target:
            walk.append(came[node])
            node = self.edges[came[node]][1]
        return walk

    # ---- choosing

    def solved(self) -> list[int]:
        """An order of all members. Raises _Cycle, with the conflict that leaves none, and _Spent."""
        self._begin()
        choices: list[_Choice] = []
        while True:
            order = self._sorted()
            place = [0] * self.nodes
            for at, node in enumerate(order):
                place[node] = at
            misplaced = list(self._misplaced(place))
            if not misplaced:
                taking_part = set(self.members)
                return [node for node in order if node < self._last and node in taking_part]
            for key, one, other in misplaced:
                if not self._is_open(one, other):
                    continue
                choices.append(_Choice(key, one, other, len(self.undo)))
                try:
                    self._order(key, one, other, _Why((one, other), choice=len(choices) - 1))
                    self._conclude()
                except _Cycle as cycle:
                    self._turn(choices, cycle.conflict)
                    break

    def _is_open(self, one: int, other: int) -> bool:
        ends = one + self.commit, other + self.commit
        return not (self.past[ends[0]] >> ends[1] & 1 or self.past[ends[1]] >> ends[0] & 1)

    def _turn(self, choices: list[_Choice], conflict: _Conflict) -> None:
        """Go back to the latest choice of the conflict, and choose the other order. Raises _Cycle if none is left."""
        while True:
            if not conflict.choices:
                raise _Cycle(conflict)
            latest = max(conflict.choices)
            choice = choices[latest]
            self._undo(choice.undo)
            del choices[latest + 1 :]
            if choice.failed is not None:
                both = (choice.failed.choices | conflict.choices) - {latest}
                conflict = _Conflict(choice.failed.txns | conflict.txns, both)
                choices.pop()
                continue
            # Whoever knows why the first order fails knows the other one: it rests on what that rests on.
            choice.failed = _Conflict(conflict.txns, conflict.choices - {latest})
            try:
                self._order(
                    choice.key, choice.other, choice.one, _Why((choice.one, choice.other), choice=latest)
                )
                self._conclude()
            except _Cycle as cycle:
                conflict = cycle.conflict
                continue
            return

    def _undo(self, size: int) -> None:
        self.changed.clear()
        while len(self.undo) > size:
            match self.undo.pop():
                case None:
                    one, other, _ = self.edges.pop()
                    self.after[one].pop()
                    self.before[other].pop()
                case (int() as node, past):
                    self.past[node] = past
                case (name, seen):
                    self.seen[name] = seen

    def _sorted(self) -> list[int]:
        """All nodes in an order that has the edges, those that are over first where it may. Raises _Cycle."""
        missing = [len(before) for before in self.before]
        ready = [(self.priority[node], node) for node in range(self.nodes) if not missing[node]]
        heapify(ready)
        order = []
        while ready:
            _, node = heappop(ready)
            order.append(node)
            for edge in self.after[node]:
                other = self.edges[edge][1]
                missing[other] -= 1
                if not missing[other]:
                    heappush(ready, (self.priority[other], other))
        self._step(self.nodes + len(self.edges))
        if len(order) < self.nodes:
            raise _Cycle(self._first_cycle([node for node in range(self.nodes) if missing[node]]))
        return order

    def _first_cycle(self, left: Sequence[int]) -> _Conflict:
        """A cycle among nodes that a sort leaves over: each of them has one of them before it."""
        among, node, edges = set(left), left[0], list[int]()
        met: dict[int, int] = {}
        while node not in met:
            met[node] = len(edges)
            edges.append(next(edge for edge in self.before[node] if self.edges[edge][0] in among))
            node = self.edges[edges[-1]][0]
        txns = (txn for edge in edges[met[node] :] for txn in self.edges[edge][2].txns)
        return _Conflict(frozenset(txns), frozenset())

    def _misplaced(self, place: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """The writers of a key (it, the first, the next) of which the first is not over, or still read, at the next."""
        for key, writers in self.writers.items():
            line = sorted(writers, key=lambda txn: place[txn + self.commit])
            for one, other in pairwise(line):
                begin = place[other if self.first_wins else other + self.commit]
                readers = [reader for reader in self.readers.get(writers[one], ()) if reader != other]
                if place[one + self.commit] > begin or any(
                    place[reader] > place[other + self.commit] for reader in readers
                ):
                    yield key, one, other
