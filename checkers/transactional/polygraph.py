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

A read of a value that several transactions wrote is a choice too (VeriStrong's hyper-polygraph): it showed one of
these versions. A version is out if its writer comes after the read, or another writer of the key between the two. If
one version is left, the read showed that. Else it stays open until an order puts a different writer before the read.

A "none" names the transactions of its explanation. They have no order among themselves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
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
ROUNDS = 10
"""At first all edges that follow are added at once, so many times; afterwards one by one."""
STEPS_A_VERSION = 10
"""To look whether a read may show a version takes as long as so many edges."""
STEPS_A_PAIR = 5
"""The same to put in that a writer comes before another one."""
STEPS_A_LOOK = 1_000
"""Between two looks at the clock, if there is a time limit."""
STEPS = 12_000_000
"""How many edges may be followed in all; some 5 s."""

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Why:
    """Why an edge is there: the transactions that say so, paths of older edges (from, to), and choices by number."""

    txns: tuple[int, ...]
    paths: tuple[Edge, ...] = ()
    choices: tuple[int, ...] = ()

    def also(self, txns: tuple[int, ...], paths: tuple[Edge, ...] = ()) -> _Why:
        return _Why((*self.txns, *txns), (*self.paths, *paths), self.choices)


_KNOWN = _Why(())
"""Of an edge that is known from the start: see `_Polygraph._known_by`."""


@dataclass(frozen=True, slots=True)
class _Conflict:
    """What leads to a cycle: transactions, and the choices among their versions."""

    txns: frozenset[int]
    choices: frozenset[int]


@dataclass(slots=True)
class _Choice:
    """What was chosen first, what is left if that fails, and how much there was before.

    `txns`: the transactions between which it chooses.
    """

    first: Callable[[_Why], None]
    second: Callable[[_Why], None]
    txns: tuple[int, ...]
    undo: int
    failed: _Conflict | None = None
    """Why the first led to a cycle, once it did."""


@dataclass(slots=True)
class _Open:
    """A node that reads a key, and the versions of which it shows one."""

    node: int
    key: int
    versions: tuple[int, ...]
    shown: int | None = None
    out: dict[int, int] = field(default_factory=dict)
    """Versions that failed, with the number of the choice."""


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
    pairs = sum(count * (count - 1) // 2 + count * blind[key] for key, count in writers.items())
    return pairs + sum(len(versions) for _, _, versions in problem.choices)


def _core(problem: Problem, txns: frozenset[int]) -> frozenset[int]:
    """Those of these transactions that have no order among themselves, and would without none of them."""
    while (fewer := _explained_by(problem, txns)) is not None and len(fewer) < len(txns):
        txns = fewer
    for txn in sorted(txns) if len(txns) <= CORE_MAX else ():
        if txn in txns:
            txns = _explained_by(problem, txns - {txn}) or txns
    return txns


def _explained_by(problem: Problem, txns: frozenset[int]) -> frozenset[int] | None:
    """Those of these transactions that a search among them alone fails by; None if it does not fail."""
    chosen = sorted(txns)
    try:
        _Polygraph(problem.among(chosen), CORE_STEPS, lambda: False).solved()
    except _Spent:
        pass
    except _Cycle as cycle:
        return frozenset(chosen[txn] for txn in cycle.conflict.txns)
    return None


class _Polygraph:
    """Nodes are those of the problem, and one for each event that other nodes must come after."""

    def __init__(self, problem: Problem, steps_max: int, is_late: Callable[[], bool]) -> None:
        self.problem = problem
        self.count = len(problem.taking_part)
        self.commit = self.count if problem.split else 0
        self.first_wins = problem.first_wins
        part = problem.taking_part.tolist()
        self.steps, self.steps_max, self.is_late = 0, steps_max, is_late
        self.looked_at_clock = -STEPS_A_LOOK
        self.at_once: set[Edge] | None = None
        """While edges are collected, and pasts are found anew behind them: the edges that came."""
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
        self.maker = {version: txn for versions in self.writers.values() for txn, version in versions.items()}
        self.opens = [_Open(txn, key, tuple(versions)) for txn, key, versions in problem.choices if part[txn]]
        shown = [*self.readers, *(version for each in self.opens for version in each.versions)]
        self.is_whole = all(version in self.maker or version >= self.null for version in shown)
        self.ended, self.begun = [self.nodes] * self.nodes, [-1] * self.nodes
        """By node, the event of its end, and the last event that it must come after."""
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
        self.watch: list[list[int]] = [[] for _ in range(self.nodes)]
        """By node, the numbers of the open reads that a change of its past may decide."""
        for number, read in enumerate(self.opens):
            for node in (read.node, *(txn + self.commit for txn in self.writers.get(read.key, ()))):
                self.watch[node].append(number)
        self.before: list[list[int]] = [[] for _ in range(self.nodes)]
        self.after: list[list[int]] = [[] for _ in range(self.nodes)]
        """By node, the numbers of the edges that come to it, and that leave it."""
        self.edges: list[tuple[int, int, _Why]] = []
        self.past = [0] * self.nodes
        self.seen: dict[tuple[int, int], int] = {}
        """By key and writer, the writers that are known to come before it; by ~writer, the commits of later ones; by
        ~key and writer, the writers that are known to come before one of the first.
        """
        self.undo: list[tuple[int, int] | tuple[tuple[int, int], int] | Callable[[], None] | None] = []
        """What was changed: (node, its past), ((key, writer), its mask), None for an edge; or how to undo it."""
        self.changed: dict[int, int] = {}
        """By node, what its past gained since it was looked at."""
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
        latest, edges = [-1] * (len(closed) + 1), list[Edge]()
        end, before = len(problem.graph), -1
        for event, node in enumerate(closed):
            latest[event] = before
            if node >= 0:
                self.ended[node] = end
                edges.append((node, end))
                if before >= 0:
                    edges.append((before, end))
                before, end = end, end + 1
        latest[len(closed)] = before
        for node in self.members:
            at = latest[min(gate[node], len(closed))] if gate[node] >= 0 else -1
            if at >= 0:
                self.begun[node] = at
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
            self._put(one, other, _KNOWN)
        self.at_once = set()
        for _ in range(ROUNDS):
            before = list(self.past)
            self._spread()
            self.at_once.clear()
            for node, past in enumerate(before):
                if past != self.past[node]:
                    self._look(node, self.past[node] & ~past)
            if not self.at_once:
                break
        self.at_once = None
        before = list(self.past)
        self._spread()
        for node, past in enumerate(before):
            if (past != self.past[node] and self.looks[node]) or self.watch[node]:
                self.changed[node] = self.past[node] & ~past
        for number in range(len(self.opens)):
            self._narrow(number)
        self._conclude()
        # Edges that follow before the first choice are never taken back.
        self.undo.clear()

    def _spread(self) -> None:
        """Find the past of all nodes anew. Raises _Cycle."""
        edges, until = self.edges, [0] * self.nodes
        for node in self._sorted(in_time=False):
            past = 0
            for edge in self.before[node]:
                past |= until[edges[edge][0]]
            self.past[node] = past
            until[node] = past | 1 << node
            self._step(1 + len(self.before[node]))

    @property
    def _last(self) -> int:
        """Nodes from here on are events."""
        return 2 * self.count if self.commit else self.count

    def _step(self, count: int) -> None:
        self.steps += count
        if self.steps > self.steps_max:
            raise _Spent
        if self.steps > self.looked_at_clock + STEPS_A_LOOK:
            self.looked_at_clock = self.steps
            if self.is_late():
                raise _Spent

    def _put(self, one: int, other: int, why: _Why) -> None:
        self.after[one].append(len(self.edges))
        self.before[other].append(len(self.edges))
        self.edges.append((one, other, why))

    def _add(self, one: int, other: int, why: _Why) -> None:
        """An edge more. Raises _Cycle."""
        if one == other or self.past[other] >> one & 1:
            return
        # Explained by older edges alone: an explanation never rests on what follows from it.
        if self.past[one] >> other & 1:
            raise _Cycle(self._explained([(other, one, len(self.edges))], why))
        if self.at_once is not None:
            if (one, other) not in self.at_once:
                self.at_once.add((one, other))
                self._put(one, other, why)
            return
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
                if self.looks[node] or self.watch[node]:
                    self.changed[node] = self.changed.get(node, 0) | (gained & ~past)
                todo += (self.edges[edge][1] for edge in self.after[node])
                self._step(1 + len(self.after[node]))

    def _conclude(self) -> None:
        """Add all edges that follow. Raises _Cycle."""
        while self.changed:
            node = next(iter(self.changed))
            self._look(node, self.changed.pop(node))
            self._step(len(self.looks[node]) + len(self.watch[node]))
            for number in self.watch[node]:
                self._narrow(number)

    def _look(self, node: int, gained: int) -> None:
        """Add the edges that follow from what the past of a node has gained. Raises _Cycle."""
        for key, txn in self.looks[node]:
            own = txn + self.commit
            # Writers that the node comes behind came before the version that it reads, or commits.
            if writers := gained & self.commits[key]:
                first = (writers & ~(1 << own)) >> self.commit
                if first & ~self.seen.get((key, txn), 0):
                    self._come_before(key, txn, first, node, self.commit)
            if self.first_wins and node == own and self.commit and gained & self.begins[key]:
                # Their snapshots were before this commit, so all of them is.
                begun = gained & self.begins[key] & ~(1 << txn)
                if begun & ~self.seen.get((key, txn), 0):
                    self._come_before(key, txn, begun, own, 0)

    def _come_before(self, key: int, txn: int, others: int, node: int, at: int) -> None:
        """These writers come before `txn`, because a path leads from them (`at` behind their numbers) to `node`."""
        name = (key, txn)
        seen = self.seen.get(name, 0)
        new, own = others & ~seen, 1 << txn + self.commit
        self.seen[name], between = seen | others, (~key, txn)
        passed = before = self.seen.get(between, 0)
        for other in bits(new):
            passed |= self.seen.get((key, other), 0)
        self.seen[between] = passed
        # Masks are long, and nothing is taken back from before the first choice.
        keeps = self.at_once is None
        if keeps:
            self.undo += ((name, seen), (between, before))
        self._step(new.bit_count() + STEPS_A_PAIR * (new & ~passed).bit_count())
        for other in bits(new & ~passed):  # the rest comes before one that comes before `txn`
            self._order(key, other, txn, _Why((other, txn, node % self.count), ((other + at, node),)))
        for other in bits(new) if self.opens else ():
            later = self.seen.get((key, ~other), 0)
            if keeps:
                self.undo.append(((key, ~other), later))
            self.seen[key, ~other] = later | own

    def _order(self, key: int, one: int, other: int, why: _Why) -> None:
        """The edges that follow if `one` writes the key before `other` does."""
        target = other + self.commit
        self._add(one + self.commit, other if self.first_wins else target, why)
        for reader in self.readers.get(self.writers[key][one], ()):
            # A writer may have read the version that it overwrites.
            if reader != other and not self.past[target] >> reader & 1:
                self._add(reader, target, why.also((reader % self.count,)))

    # ---- reads of a value that several transactions wrote

    def _narrow(self, number: int) -> None:
        """If all versions but one are out, the read shows that one. Raises _Cycle if none is left."""
        read = self.opens[number]
        if read.shown is not None:
            return
        reasons: list[_Why] = []
        left: list[int] = []
        for version in read.versions:
            self._step(STEPS_A_VERSION)
            reason = self._why_out(read, version)
            if reason is not None:
                reasons.append(reason)
            elif left:
                return
            else:
                left.append(version)
        why = _Why(
            (*self._among(read), *(txn for reason in reasons for txn in reason.txns)),
            tuple(path for reason in reasons for path in reason.paths),
            tuple(choice for reason in reasons for choice in reason.choices),
        )
        if not left:
            raise _Cycle(self._explained([], why))
        self._show(number, left[0], why)

    def _among(self, read: _Open) -> tuple[int, ...]:
        """The read's transaction, and those that wrote what it may have shown."""
        return (read.node, *(self.maker[version] for version in read.versions if version < self.null))

    def _why_out(self, read: _Open, version: int) -> _Why | None:
        """Why the read cannot show the version; None: it may."""
        if version in read.out:
            return _Why((), choices=(read.out[version],))
        seen = self.past[read.node] & self.commits.get(read.key, 0)
        if version >= self.null:
            first = next(bits(seen), None)
            return None if first is None else _Why((first % self.count,), ((first, read.node),))
        own = self.maker[version] + self.commit
        if self.past[own] >> read.node & 1:
            return _Why((), ((read.node, own),))
        # A writer of the key that is known to come behind this version, and before the read.
        between = next(bits(seen & self.seen.get((read.key, ~self.maker[version]), 0)), None)
        if between is None:
            return None
        return _Why((between % self.count,), ((own, between), (between, read.node)))

    def _show(self, number: int, version: int, why: _Why) -> None:
        """The edges that follow if the read shows the version. Raises _Cycle."""
        read = self.opens[number]
        node, writers = read.node, self.writers.get(read.key, {})
        self._step(len(writers))
        read.shown = version
        if version >= self.null:
            self.undo.append(partial(self._unshow, read))
            for txn in writers:
                if txn + self.commit != node:
                    self._add(node, txn + self.commit, why.also((txn,)))
            return
        maker = self.maker[version]
        self.readers.setdefault(version, []).append(node)
        self.looks[node].append((read.key, maker))
        self.undo.append(partial(self._unshow, read))
        self.changed[node] = self.past[node]  # it looks at one more version
        self._add(maker + self.commit, node, why)
        for txn in writers:
            target = txn + self.commit
            past = self.past[target]
            if txn != maker and target != node and past >> maker + self.commit & 1 and not past >> node & 1:
                self._add(node, target, why.also((txn,), ((maker + self.commit, target),)))

    def _unshow(self, read: _Open) -> None:
        if read.shown is not None and read.shown < self.null:
            self.readers[read.shown].pop()
            self.looks[read.node].pop()
        read.shown = None

    def _rule_out(self, number: int, version: int, why: _Why) -> None:
        """The read does not show the version, by the choice of `why`. Raises _Cycle."""
        read = self.opens[number]
        (read.out[version],) = why.choices
        self.undo.append(partial(read.out.__delitem__, version))
        self._narrow(number)

    def _misread(self, place: Sequence[int]) -> Iterator[int]:
        """The open reads that would show something else in this order."""
        lines = {
            key: sorted((place[txn + self.commit], version) for txn, version in writers.items())
            for key, writers in self.writers.items()
        }
        for number, read in enumerate(self.opens):
            if read.shown is None:
                line = lines.get(read.key, [])
                before = bisect_left(line, (place[read.node], -1))
                nearest = line[before - 1][1] if before else self.null + read.key
                if nearest not in read.versions:
                    yield number

    # ---- explanations

    def _explained(self, paths: list[tuple[int, int, int]], why: _Why | None = None) -> _Conflict:
        """What paths of edges below a number, (from, to, number), and one more edge rest on."""
        txns: set[int] = set()
        choices: set[int] = set()
        met: set[int] = set()

        def rest_on(why: _Why, number: int) -> None:
            txns.update(why.txns)
            choices.update(why.choices)
            paths.extend((source, target, number) for source, target in why.paths)

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
                    txns.update(self._known_by(edge))
        return _Conflict(frozenset(txns), frozenset(choices))

    def _known_by(self, edge: int) -> Iterator[int]:
        """The transactions that an edge rests on which is known from the start: its ends, and those that made what its
        first one read, if the other one overwrote that.
        """
        one, other, _ = self.edges[edge]
        if edge < len(self.known):
            yield from (node % self.count for node in (one, other) if node < self._last)
            if one < self.count and other < self._last:
                read = self.problem.overwritten(one, other % self.count)
                yield from (self.maker[version] for version in read if version < self.null)

    def _path(self, source: int, target: int, number: int) -> list[int]:
        """The edges below a number of a short path, but for those between events; looked for from both of its ends.

        It passes events once: what follows from a node that began behind an event ends behind it.
        """
        for edge in self.before[target]:
            if self.edges[edge][0] == source and edge < number:
                return [edge]
        came: tuple[dict[int, int], dict[int, int]] = ({source: -1}, {target: -1})
        layers = [[source], [target]]
        first, last = source, target
        near, bit = self.past[target], 1 << source
        while self.ended[first] > self.begun[last]:
            backwards = not layers[0] or 0 < len(layers[1]) < len(layers[0])
            further: list[int] = []
            scanned = 1
            for node in layers[backwards]:
                for edge in self.before[node] if backwards else self.after[node]:
                    if edge >= number:
                        break
                    scanned += 1
                    earlier, later, _ = self.edges[edge]
                    other = earlier if backwards else later
                    if other in came[backwards] or other >= self._last:
                        continue
                    if other in came[not backwards]:
                        came[backwards][other] = edge
                        return self._walked(came, other, other)
                    if self.past[other] & bit if backwards else near >> other & 1:
                        came[backwards][other] = edge
                        further.append(other)
            self._step(scanned)
            layers[backwards] = further
            assert layers[0] or layers[1], "the path was there when the edge was added"
            if backwards:
                last = max(last, *further, key=self.begun.__getitem__) if further else last
            else:
                first = min(first, *further, key=self.ended.__getitem__) if further else first
        return self._walked(came, first, last)

    def _walked(self, came: tuple[dict[int, int], dict[int, int]], first: int, last: int) -> list[int]:
        """The edges by which a search came to the first from the source, and to the last from the target."""
        walk = []
        if first != last:
            walk += [edge for edge in self.after[first] if self.edges[edge][1] == self.ended[first]]
            walk += [edge for edge in self.before[last] if self.edges[edge][0] == self.begun[last]]
        while came[0][first] >= 0:
            walk.append(came[0][first])
            first = self.edges[walk[-1]][0]
        while came[1][last] >= 0:
            walk.append(came[1][last])
            last = self.edges[walk[-1]][1]
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
            misread = list(self._misread(place))
            self._step(len(self.looks) + len(self.opens))
            if not misplaced and not misread:
                taking_part = set(self.members)
                return [node for node in order if node < self._last and node in taking_part]
            try:
                for key, one, other in misplaced:
                    if self._is_open(one, other):
                        first, second = (
                            partial(self._order, key, *pair) for pair in ((one, other), (other, one))
                        )
                        self._choose(choices, first, second, (one, other))
                for number in misread:
                    read = self.opens[number]
                    if read.shown is None:
                        version = self._likely(read, place)
                        first, second = (
                            partial(make, number, version) for make in (self._show, self._rule_out)
                        )
                        self._choose(choices, first, second, self._among(read))
            except _Cycle as cycle:
                self._turn(choices, cycle.conflict)

    def _likely(self, read: _Open, place: Sequence[int]) -> int:
        """Of the versions that it may show the last one before the read in this order, else the earliest."""
        left = [version for version in read.versions if self._why_out(read, version) is None]
        at = {
            version: place[self.maker[version] + self.commit] if version < self.null else -1
            for version in left
        }
        before = [version for version in left if at[version] < place[read.node]]
        return max(before, key=at.__getitem__) if before else min(left, key=at.__getitem__)

    def _choose(
        self,
        choices: list[_Choice],
        first: Callable[[_Why], None],
        second: Callable[[_Why], None],
        txns: tuple[int, ...],
    ) -> None:
        """Make a choice, and conclude what follows. Raises _Cycle."""
        choices.append(_Choice(first, second, txns, len(self.undo)))
        first(_Why(txns, choices=(len(choices) - 1,)))
        self._conclude()

    def _is_open(self, one: int, other: int) -> bool:
        ends = one + self.commit, other + self.commit
        return not (self.past[ends[0]] >> ends[1] & 1 or self.past[ends[1]] >> ends[0] & 1)

    def _turn(self, choices: list[_Choice], conflict: _Conflict) -> None:
        """Go back to the latest choice of the conflict, and choose the other way. Raises _Cycle if none is left."""
        while True:
            if not conflict.choices:
                raise _Cycle(conflict)
            # The choices behind it fall with it, though the cycle rests on none of them: they may be made again.
            latest = max(conflict.choices)
            choice = choices[latest]
            self._undo(choice.undo)
            del choices[latest + 1 :]
            if choice.failed is not None:
                both = (choice.failed.choices | conflict.choices) - {latest}
                conflict = _Conflict(choice.failed.txns | conflict.txns, both)
                choices.pop()
                continue
            # Why the first fails is why the second holds: it rests on the same.
            choice.failed = _Conflict(conflict.txns, conflict.choices - {latest})
            try:
                choice.second(_Why(choice.txns, choices=(latest,)))
                self._conclude()
            except _Cycle as cycle:
                conflict = cycle.conflict
                continue
            return

    def _undo(self, size: int) -> None:
        # The gain is taken back with the pasts: a conclusion from it would rest on no edge.
        self.changed.clear()
        while len(self.undo) > size:
            match self.undo.pop():
                case None:
                    one, other, _ = self.edges.pop()
                    self.after[one].pop()
                    self.before[other].pop()
                case (name, before):
                    if isinstance(name, int):
                        self.past[name] = before
                    else:
                        self.seen[name] = before
                case undo:
                    undo()

    def _sorted(self, *, in_time: bool = True) -> list[int]:
        """All nodes in an order that has the edges, `in_time` those that are over first where it may. Raises _Cycle."""
        edges, missing = self.edges, [len(before) for before in self.before]
        priority = self.priority if in_time else [0] * self.nodes
        ready = [(priority[node], node) for node in range(self.nodes) if not missing[node]]
        take, put = (heappop, heappush) if in_time else (list.pop, list.append)
        heapify(ready)
        order = []
        while ready:
            _, node = take(ready)
            order.append(node)
            for edge in self.after[node]:
                other = edges[edge][1]
                missing[other] -= 1
                if not missing[other]:
                    put(ready, (priority[other], other))
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
        cycle = edges[met[node] :]
        return self._explained([(*self.edges[edge][:2], edge + 1) for edge in cycle])

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
