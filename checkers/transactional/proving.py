"""Proofs that a history is of a model: how they are found, and how they are replayed before they count.

    serial-order            one by one in this order, the transactions give just the answers that were got
    snapshots-and-commits   each transaction stands twice: where it reads and where it commits; between the two no other
                            transaction commits a key that it writes (prefix alone: or some do)
    order                   of versions: with the writers of each key in this order, nothing that the model forbids is
                            there (see `anomalies`)

Each of them keeps the model's order of sessions or of real time. A serial order proves every model.

An order that agrees with all known dependencies is found in linear time, and its replay nearly always succeeds. Where
it fails (registers show little of the order of their versions; lists nothing of appends that were never read), an order
is searched for by `execution` and `polygraph`, for parallel snapshot isolation and weaker models by `visibility`. Each
finds one if there is one, or reports that there is none, or that its budget did not suffice. Of causal, read atomic and
monotonic atomic view nothing is to be searched: what a read saw follows from the answers.

If several transactions wrote a value that was read (`candidates`), a proof also says which of the writes each such
read shows. The first try takes the writes that a store shows which works in the order of its answers. Then `polygraph`
searches for an order with the choices, and for the models that it does not know, `cases` searches for the choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

import numpy

from checkers.transactional import anomalies, cases, execution, polygraph, visibility
from checkers.transactional.append import Analysis
from checkers.transactional.candidates import Choice, Shown
from checkers.transactional.cases import Result
from checkers.transactional.columns import PREDICATE_READ, READ, WRITE, Columns, Int32s, Int64s, Workload
from checkers.transactional.graph import (
    ORDERED,
    PROCESS,
    WR,
    WW,
    Constraints,
    Graph,
    completed_at,
    in_order,
    with_steps,
)
from checkers.transactional.search import EDGES_MAX, Limit
from checkers.transactional.sight import (
    NO_WRITER,
    Causes,
    Over,
    keys_written,
    reads_of_others,
    shows_own_writes,
    writers_of,
)
from checkers.verdict import CheckerDefect

Kind = Literal["serial-order", "snapshots-and-commits", "order"]
SNAPSHOTS = "snapshot-isolation"
PREFIX = "prefix"
PARALLEL = "parallel-snapshot-isolation"
MONOTONIC = "monotonic-view"
UPDATES = "update-atomic"
STABLE = "cursor-stability"
CAUSAL = "causal-cerone"
ATOMIC = "read-atomic"
SO_FAR = "monotonic-atomic-view"
UPDATE_SERIAL = "update-serializable"
BY_VISIBILITY = frozenset({PARALLEL, MONOTONIC, UPDATES, STABLE, UPDATE_SERIAL})
STEPWISE = frozenset({SNAPSHOTS, PREFIX, "repeatable-read", "serializable"})
"""Their executions are steps, one transaction after the other."""
KEYED = frozenset({PARALLEL, SNAPSHOTS, "repeatable-read", "serializable"})
"""With an order of sessions, these promise that each key by itself is sequential; with real time, linearizable."""
SEARCHED = BY_VISIBILITY | KEYED | {PREFIX}
"""Whether a history is of these models may take a search."""
QUICK_PART = 20
"""The first tries have this part of the budget: an order like that of real time where it need not be, and any."""
GUIDED_PART = 2
"""If reads may show several writes, the first try in the order of real time has this part."""
CASE_PART = 100
"""Each case of what reads show has this part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """`order`: transactions; of snapshots and commits t where t reads, n + t where it commits.

    `shown`: which writes the reads show that have a choice.
    """

    kind: Kind
    order: Int32s
    shown: Shown = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A proof, or that there is none, or neither. `core`: transactions that have none among themselves."""

    result: Result
    proof: Proof | None = None
    core: frozenset[int] = frozenset()
    steps: int = 0
    """Of the last search by `polygraph`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """The kernels of each family, compiled or plain."""

    append: Any
    register: Any
    graph: Any
    replay: Any


class Prover:
    """Looks for proofs. `analyse` gives what follows from the answers, and from each key by itself being sequential (1)
    or linearizable (2); `known` follows from the answers alone (0).
    """

    def __init__(
        self,
        columns: Columns,
        workload: Workload,
        kernels: Kernels,
        analyse: Callable[..., Analysis],
        limit: Limit | None = None,
    ) -> None:
        self.columns = columns
        self.workload = workload
        self.kernels = kernels
        self.analyse = analyse
        self.known = analyse(columns, kernels, 0)
        self.with_keys = cache(lambda order: analyse(columns, kernels, order))
        self.likely = cache(self._first_case)
        self.executed = cache(self._executed)
        self.forced = cache(self._forced)
        self.reads = cache(lambda: list(reads_of_others(columns, self.known, workload)))
        self.written = cache(lambda: keys_written(columns, self.known))
        self.without: set[tuple[str, int]] = set()
        """The stepwise models, with their order, of which it is not."""
        self.limit = limit or Limit(EDGES_MAX)
        self.strict: Proof | None = None

    def strict_order(self) -> Int32s | None:
        """An order of all known dependencies within real time: if there is one, there is no cycle of any class."""
        known = self.known
        order = known.order
        if order is None:
            assert known.graph is not None
            limits = Constraints.of(
                self.kernels.graph, known.graph, known.time, "serializable", realtime=True
            )
            order = limits.order(self.kernels.graph, known.time)
        # With an anomaly no order replays, and still it shows that there is no cycle.
        if order is None or known.counts:
            return order
        proof = self._complete(Proof(kind="serial-order", order=order))
        if self.replays(proof, "strict-serializable"):
            self.strict = proof
        elif self.workload == "append":
            raise self._defect(proof, "strict-serializable")
        return order

    def attempt(self, model: str, part: int = 1) -> Attempt:
        """Prove or refute that the history is of `model`, of which no anomaly has been found.

        `part`: the search takes one part in so many of its budget.
        """
        if self.strict is not None:
            return Attempt("proved", self.strict)
        if not self.known.whole or self.limit.late():
            return Attempt("open")
        base, order = anomalies.MODELS[model]
        attempt = self._chosen(model, part) if self.known.choices else self._attempted(base, order, part)
        # Whatever found it, and whatever that relied on: nothing is valid without the replay.
        if attempt.proof is not None and not self.replays(attempt.proof, model):
            raise self._defect(attempt.proof, model)
        return attempt

    def _attempted(self, base: str, order: int, part: int) -> Attempt:
        if base == PARALLEL and not self.without & {(SNAPSHOTS, weaker) for weaker in range(order + 1)}:
            stronger = self._executed(SNAPSHOTS, order, part)
            return stronger if stronger.result == "proved" else self._by_visibility(base, order, part)
        if base in BY_VISIBILITY:
            return self._by_visibility(base, order, part)
        if base in STEPWISE:
            return self._executed(base, order, part)
        return self._arbitrated(base, order)

    # values that several transactions wrote

    def judged(self, model: str, part: int) -> Attempt:
        """As `attempt`, of a history in which no anomaly was looked for."""
        if self.strict is None:
            self.strict_order()
        if self.known.counts.keys() & anomalies.forbidden(model):
            return Attempt("refuted")
        return self.attempt(model, part)

    def _first_case(self) -> tuple[Shown, Prover]:
        """The writes that reads show if the store works in the order of its answers, and the history that has them."""
        assert self.known.candidates is not None
        shown = self.known.candidates.likely(self.known.time)
        return shown, self.showing(shown)

    def showing(self, shown: Shown) -> Prover:
        """The history of distinct values in which each read shows what is chosen; open reads are left out."""
        assert self.known.candidates is not None
        columns = self.known.candidates.resolved(shown)
        return Prover(columns, self.workload, self.kernels, self.analyse, self.limit)

    def _chosen(self, model: str, part: int) -> Attempt:
        base, order = anomalies.MODELS[model]
        shown, likely = self.likely()
        attempt = likely.judged(model, QUICK_PART * part)
        if attempt.proof is not None:
            return Attempt("proved", replace(attempt.proof, shown=shown))
        candidates = self.known.candidates
        assert candidates is not None
        by_row = any(self.columns.f[choice.micro] == PREDICATE_READ for choice in candidates.choices)
        # A search of executions keeps no order of a key by itself, of a read that has a choice.
        is_free = not self.known.orders_keys
        if is_free and base in STEPWISE and not (base == "repeatable-read" and by_row):
            return self._in_real_time_or(base, order, part)
        stronger = "serializable" if base in (UPDATE_SERIAL, "repeatable-read") else SNAPSHOTS
        if is_free and not self.known.counts:
            attempt = self._in_real_time_or(stronger, order, part)
            if attempt.proof is not None:
                return attempt
        left = max(0.0, 1 - attempt.steps / max(1, polygraph.limit_of(part)))
        result, found, proof = cases.choose(
            candidates.open_to(so_far=base in (MONOTONIC, SO_FAR)),
            shown,
            lambda chosen: self._tried(chosen, model, part),
            int(left * cases.limit_of(part)) // (len(self.columns.f) + 1),
        )
        return Attempt(result, None if proof is None else replace(proof, shown=found))

    def _in_real_time_or(self, base: str, order: int, part: int) -> Attempt:
        """As `executed`; first within real time, as most stores work, where that leaves fewer choices."""
        if order < 2 and self.known.time.has_real_time:
            guided = self.executed(base, 2, GUIDED_PART * part)
            if guided.proof is not None:
                return guided
            # That there is no order within real time refutes no model without it.
            attempt = self.executed(base, order, part if guided.result == "refuted" else GUIDED_PART * part)
            return replace(attempt, steps=guided.steps + attempt.steps)
        return self.executed(base, order, part)

    def _tried(self, chosen: Shown, model: str, part: int) -> tuple[Result, Proof | None]:
        if self.limit.late():
            return "open", None
        attempt = self.showing(chosen).judged(model, CASE_PART * part)
        return attempt.result, attempt.proof

    def _complete(self, proof: Proof) -> Proof:
        """The proof with the writes that reads show in its order."""
        candidates, count = self.known.candidates, len(self.columns)
        if candidates is None or not candidates.choices:
            return proof
        serial = proof.kind != "snapshots-and-commits"
        writes = _by_transaction(self.columns, self.known, self.known.writes)
        choices: dict[int, list[Choice]] = {}
        for choice in candidates.open_to(so_far=False):
            choices.setdefault(int(self.known.owner[choice.micro]), []).append(choice)
        state: dict[int, int] = {}
        shown: dict[int, int] = {}
        for node in proof.order.tolist():
            if node < count:
                for choice in choices.get(node, ()):
                    key = int(self.columns.key[choice.micro])
                    shown[choice.micro] = state.get(key, len(self.columns.f) + key)
            if serial or node >= count:
                state.update(writes[node % count])
        return replace(proof, shown=shown)

    def _defect(self, proof: Proof, model: str) -> CheckerDefect:
        return CheckerDefect(
            f"the {proof.kind} that was found for {model} does not replay: a defect of the checker"
        )

    def keyed(self, base: str, order: int) -> Analysis:
        """The known dependencies under a promised model of this base and order."""
        has_more = self.workload == "rw-register" and order > 0 and base in KEYED
        if base == "repeatable-read" and (self.columns.f == PREDICATE_READ).any():
            has_more = False  # what is promised of keys counts reads by predicates too
        return self.with_keys(order) if has_more else self.known

    # looking

    def _executed(self, base: str, order: int, part: int) -> Attempt:
        known, kernels = self.keyed(base, order), self.kernels.graph
        if "cyclic-versions" in known.counts:
            return Attempt("refuted")
        limits = self._constraints(known, base, order)
        kind: Kind = "snapshots-and-commits" if limits.split else "serial-order"
        nodes = limits.order(kernels, known.time)
        if nodes is None:
            return Attempt("refuted")
        proof = self._complete(Proof(kind=kind, order=nodes))
        if self._keeps(proof, base, order):
            return Attempt("proved", proof)
        if not known.whole:  # what is promised of keys may say too much to look at
            return Attempt("open")
        problem = self._problem(known, limits, base)
        ordering = self._searched(problem, order, part)
        if ordering.order is not None:
            return Attempt("proved", self._complete(Proof(kind=kind, order=ordering.order)))
        result: Result = "refuted" if ordering.result == "none" else "open"
        if result == "refuted":
            self.without.add((base, order))
        return Attempt(result, core=ordering.core, steps=ordering.steps if problem.choices else 0)

    def _searched(self, problem: execution.Problem, order: int, part: int) -> execution.Ordering:
        """Search by `execution` with a part of its budget, then by `polygraph`, then by `execution` with all of it."""
        late, limit = self.limit.late, execution.limit_of(problem) // part
        if problem.choices:
            return polygraph.choose(problem, polygraph.limit_of(part), late, explains=part == 1)
        if order < 2:
            ordering = execution.execute(self._guided(problem), limit // QUICK_PART, late)
            if ordering.order is not None:
                return ordering
        ordering = execution.execute(problem, limit // QUICK_PART, late)
        if ordering.result == "open":
            ordering = polygraph.choose(problem, polygraph.limit_of(part), late, explains=part == 1)
        return ordering if ordering.result != "open" else execution.execute(problem, limit, late)

    def _constraints(self, known: Analysis, base: str, order: int) -> Constraints:
        assert known.graph is not None
        graph = in_order(self.kernels.graph, known.graph, known.time, order % 2)
        return Constraints.of(self.kernels.graph, graph, known.time, base, realtime=order == 2)

    def _problem(self, known: Analysis, limits: Constraints, base: str) -> execution.Problem:
        c = self.columns
        reads = known.reads
        if base == "repeatable-read":
            reads = reads[c.f[reads] == READ]
        writes = known.writes if self.workload == "rw-register" or limits.split else known.writes[:0]
        return execution.Problem(
            graph=limits.graph,
            reads=_by_transaction(c, known, reads),
            writes=_by_transaction(c, known, writes),
            null=len(c.f),
            gate=limits.gate,
            closed=limits.closed,
            ends=known.time.ends,
            taking_part=known.time.taking_part,
            first_wins=base != PREFIX,
            choices=[
                (int(known.owner[choice.micro]), int(c.key[choice.micro]), choice.versions)
                for choice in known.candidates.open_to(so_far=False)
            ]
            if known.candidates
            else (),
        )

    def _guided(self, problem: execution.Problem) -> execution.Problem:
        """The same problem with all writing transactions in the order of real time, as most stores run them."""
        time, count = self.known.time, len(self.columns)
        writes = numpy.array([bool(uses) for uses in problem.writes], numpy.bool_)
        gate = numpy.full(len(problem.graph), -1, numpy.int64)
        gate[:count] = numpy.where(writes, time.invoke, -1)
        closed = completed_at(time.ends, time.taking_part & writes)
        if problem.split:
            closed = numpy.where(closed >= 0, closed + count, closed).astype(numpy.int32)
        return problem.gated(gate, closed)

    def _arbitrated(self, base: str, order: int) -> Attempt:
        known, kernels = self.known, self.kernels.graph
        if base == SO_FAR and not shows_own_writes(self.columns, self.workload):
            return Attempt("refuted")
        limits = self._constraints(known, base, order)
        ones, others = self.forced(base, order)
        if (others == NO_WRITER).any():
            return Attempt("refuted")
        limits = replace(limits, graph=with_steps(kernels, limits.graph, ones, others))
        nodes = limits.order(kernels, known.time)
        return Attempt("refuted") if nodes is None else Attempt("proved", Proof(kind="order", order=nodes))

    def _forced(self, base: str, order: int) -> tuple[Int32s, Int32s]:
        """(one, other): a read saw `one`, which wrote its key, and shows the version of `other` (or NO_WRITER)."""
        if base == CAUSAL:
            return self._by_cause(order)
        pairs = list(dict.fromkeys(self._by_sources(base, order)) if base in (SO_FAR, ATOMIC) else ())
        columns = numpy.array(pairs, numpy.int32).reshape(-1, 2).T
        return numpy.ascontiguousarray(columns[0]), numpy.ascontiguousarray(columns[1])

    def _by_sources(self, base: str, order: int) -> Iterator[tuple[int, int]]:
        """The same of read atomic and monotonic atomic view, which allow a read by predicate to be older.

        With an order it saw all that were over before its transaction began.
        """
        written, reads = self.written(), self.reads()
        over = Over(written, self.known.time, order)
        last = {read.reader: read.sources for read in reads}
        for read in reads:
            if read.by_predicate:
                continue
            sources = last[read.reader] if base == ATOMIC else read.sources
            seen = [one for one in sources if read.key in written.get(one, ())]
            for one in dict.fromkeys([*seen, *over.before(read.reader, read.key)]):
                if one not in (read.writer, read.reader):
                    yield one, read.writer

    def _by_cause(self, order: int) -> tuple[Int32s, Int32s]:
        """The same of causal consistency."""
        known, c, kernels = self.known, self.columns, self.kernels.graph
        assert known.graph is not None
        graph = in_order(kernels, known.graph, known.time, order)
        causes = Constraints.of(kernels, graph, known.time, CAUSAL, realtime=False)
        ranked = causes.order(kernels, known.time)
        if ranked is None:  # the constraints have no order without any pair
            return numpy.zeros(0, numpy.int32), numpy.zeros(0, numpy.int32)
        reads = numpy.flatnonzero((known.version >= 0) & (c.f != WRITE))
        writes = numpy.flatnonzero((c.f == WRITE) & (known.committed[known.owner] == 1))
        sources = known.source[reads]
        return Causes(
            reader=known.owner[reads],
            key=c.key[reads],
            writer=numpy.where(sources >= 0, known.owner[sources], NO_WRITER).astype(numpy.int32),
            author=known.owner[writes],
            wrote=c.key[writes],
            graph=graph,
            ranked=ranked,
            time=known.time,
        ).newer(kernels, order)

    def _by_visibility(self, base: str, order: int, part: int) -> Attempt:
        """Search by `visibility`."""
        if base == MONOTONIC and not shows_own_writes(self.columns, self.workload):
            return Attempt("refuted")
        if self.known.time.taking_part.sum() > visibility.TRANSACTIONS_MAX:
            return Attempt("open")
        result, nodes = visibility.order_of(self._visible(base, order), part, self.limit.late)
        if nodes is None:
            return Attempt("refuted" if result == "none" else "open")
        return Attempt("proved", Proof(kind="order", order=nodes))

    def _visible(self, base: str, order: int) -> visibility.Visible:
        known = self.known
        assert known.graph is not None
        graph = in_order(self.kernels.graph, known.graph, known.time, order)
        chosen = numpy.isin(graph.kind, (WW, WR, PROCESS))
        written = self.written()
        return visibility.Visible(
            members=numpy.flatnonzero(known.time.taking_part).tolist(),
            pairs=list(
                dict.fromkeys(zip(graph.source[chosen].tolist(), graph.target[chosen].tolist(), strict=True))
            ),
            looks=list(dict.fromkeys(self._looks(base, order, graph, written))),
            writers=writers_of(written),
        )

    def _looks(
        self, base: str, order: int, graph: Graph, written: Mapping[int, Iterable[int]]
    ) -> Iterator[visibility.Look]:
        reads, masks = self.reads(), visibility.masks_of(writers_of(written))
        over = Over(written, self.known.time, order)
        nearest: dict[int, int] = {}
        steps = graph.kind == PROCESS
        for one, other in zip(graph.source[steps].tolist(), graph.target[steps].tolist(), strict=True):
            nearest[other] = nearest.get(other, 0) | 1 << one
        last = {read.reader: read.sources for read in reads}
        for read in reads:
            own, sure, earlier = written.get(read.reader, ()), 0, 0
            if base in (PARALLEL, UPDATE_SERIAL):
                earlier = -1
            elif base == MONOTONIC:
                sure = visibility.mask_of(read.sources) | nearest.get(read.reader, 0)
                earlier = visibility.union(masks.get(key, 0) for key in read.wrote)
            elif read.by_predicate:
                continue
            elif base == UPDATES:
                sure = visibility.mask_of([*last[read.reader], *over.before(read.reader, read.key)])
                earlier = visibility.union(masks[key] for key in own)
            elif read.key in own:
                earlier = masks[read.key]
            closed, comes_first = base == MONOTONIC, base == UPDATE_SERIAL and bool(own)
            look = visibility.Look(read.reader, read.key, read.writer, sure, earlier, closed, comes_first)
            if look.may_conclude(masks):
                yield look

    # replaying

    def replays(self, proof: Proof, model: str) -> bool:
        """Whether the proof shows that the history is of `model`."""
        return self._keeps(proof, *anomalies.MODELS[model])

    def _keeps(self, proof: Proof, base: str, order: int) -> bool:
        if proof.shown:
            fits = self.known.candidates is not None and self.known.candidates.are(proof.shown)
            return fits and self.showing(proof.shown)._keeps(replace(proof, shown={}), base, order)
        c, replay = self.columns, self.kernels.replay
        nodes = numpy.ascontiguousarray(proof.order, numpy.int32)
        serial = proof.kind != "snapshots-and-commits"
        if replay.incomplete(nodes, c.outcome, serial) or not self._in_time(nodes, serial, order):
            return False
        if proof.kind == "order":
            return self._has_versions(nodes, base, order)
        return bool(
            replay.contradicted(
                *(nodes, serial, self.workload == "append", base != "repeatable-read", base != PREFIX),
                *(c.first, c.outcome, c.f, c.key, c.value, c.length, c.elements, c.key_count),
            )
            < 0
        )

    def _in_time(self, nodes: Int32s, serial: bool, order: int) -> bool:
        if order == 0:
            return True
        c, time = self.columns, self.known.time
        session = numpy.zeros(len(c), numpy.int64)
        if order == 1:
            _, session = numpy.unique(c.process, return_inverse=True)
        sessions = int(session.max(initial=0)) + 1
        session = numpy.ascontiguousarray(session, numpy.int64)
        return bool(self.kernels.replay.early(nodes, time.invoke, time.ends, session, sessions, serial) < 0)

    def _has_versions(self, nodes: Int32s, base: str, order: int) -> bool:
        """Whether the known dependencies agree with the order, and no read with its versions shows an anomaly."""
        known, c = self.known, self.columns
        assert known.graph is not None
        place = numpy.full(len(c), -1, numpy.int64)
        place[nodes] = numpy.arange(len(nodes))
        graph = known.graph
        chosen = numpy.isin(graph.kind, ORDERED.get(base, (WW, WR)))
        if (place[graph.source[chosen]] >= place[graph.target[chosen]]).any():
            return False
        if base not in BY_VISIBILITY:
            ones, others = self.forced(base, order)
            return not (others == NO_WRITER).any() and bool((place[ones] < place[others]).all())
        visible, places = self._visible(base, order), place.tolist()
        try:
            past = visibility.past_of(visible.members, visible.chained(places))
        except visibility.Circle:
            return False
        return visible.fits(past, places)


def _by_transaction(columns: Columns, known: Analysis, micros: Int64s) -> list[list[tuple[int, int]]]:
    """By transaction, keys with the versions that these micro-operations read or made; a write's version is itself."""
    uses: list[dict[int, int]] = [{} for _ in range(len(columns))]
    versions = numpy.where(columns.f[micros] == WRITE, micros, known.version[micros])
    for owner, key, version in zip(
        known.owner[micros].tolist(), columns.key[micros].tolist(), versions.tolist(), strict=True
    ):
        uses[owner][key] = version
    return [list(by_key.items()) for by_key in uses]
