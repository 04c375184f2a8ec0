"""The checker: transactions against an isolation model, and which models they rule out.

    verdict = check(history, workload="append", model="snapshot-isolation")
    verdict = check_columns(columns, workload="append")            # big histories: arrays, see columns.Columns

A valid verdict stands on a proof that was replayed (`proving`). An invalid one stands on an anomaly, or on a complete
search that found no proof. Otherwise the verdict is unknown. A proof that does not replay is a defect of this checker,
and raises CheckerDefect.

Beside the anomalies that the promised model forbids, `details` names those that it allows (`findings`), the models that
are ruled out, the strongest that are left (`left`: nothing refutes them) and the strongest that are proved (`held`),
every smallest cycle as data for a picture, and the proof: an order of the transactions for valid, the cycle with its
evidence for invalid.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy

from checkers import compiled
from checkers.history.errors import ModelError
from checkers.history.history import History
from checkers.history.values import many
from checkers.limits import Limits, OutOfTime, given, shielded, within
from checkers.transactional import (
    anomalies,
    append,
    append_kernels,
    graph_kernels,
    register,
    register_kernels,
    replay_kernels,
)
from checkers.transactional.append import Analysis, Problem
from checkers.transactional.columns import (
    FAIL,
    INFO,
    NIL,
    OK,
    WORKLOADS,
    WRITE,
    Columns,
    Int32s,
    Session,
    Workload,
    columns_of,
    ranked,
)
from checkers.transactional.core import smallest
from checkers.transactional.explanation import Explanation, with_time
from checkers.transactional.graph import KINDS
from checkers.transactional.proving import SEARCHED, Attempt, Kernels, Proof, Prover
from checkers.transactional.search import EDGES_MAX, PLAIN_EDGES_MAX, Limit, Search, searched
from checkers.verdict import WITNESSES_MAX, Result, Verdict, Witness

NAME = "transactional"
PLAIN_BELOW = 600_000
"""So many micro-operations and elements are judged by the plain twin: loading numba would take longer."""
EDGE_ROWS = 3
"""A dependency takes the plain twin as long as so many of these."""
ORDER_SHOWN_MAX = 10_000
HELD_MAX = 20_000
"""Of more transactions than this, only the promised model is proved."""
HELD_PART = 10
"""Of the budget of a proof that was asked for, this part goes into each that was not, and less for each HELD_FEW."""
HELD_FEW = 100
SEARCHED_MAX = 1_000
"""Of more transactions than this, a model that nobody asked for is not proved if that needs a search."""
DUPLICATES_MAX = 100
"""The same where reads may show several writes: then every model needs a search."""
CORE_PART = 50
"""And this part into each try to leave out some of the transactions that have no order."""


def _are_plain(columns: Columns, plain_below: int) -> bool:
    size = len(columns.f) + len(columns.elements) + EDGE_ROWS * _edges_of_nothing(columns)
    if plain_below != PLAIN_BELOW:
        return size < plain_below
    return compiled.stays_plain(append_kernels, size, plain_below)


def _edges_of_nothing(columns: Columns) -> int:
    """At most so many dependencies: a register that was read before any write was read before each of them."""
    reads = (columns.f != WRITE) & (columns.value == NIL)
    read, written = (
        numpy.bincount(columns.key[rows], minlength=columns.key_count) for rows in (reads, columns.f == WRITE)
    )
    return int(read @ written)


def _kernels(is_plain: bool) -> Kernels:
    load: Callable[[Any], Any] = (lambda module: module) if is_plain else compiled.load
    return Kernels(
        append=load(append_kernels),
        register=load(register_kernels),
        graph=load(graph_kernels),
        replay=load(replay_kernels),
    )


@dataclass(slots=True, kw_only=True)
class _Findings:
    """Anomalies with their witnesses, worst first, and those that the budget left undecided.

    `refuted`: models that have no execution; `proved`: those that have a proof.
    """

    witnesses: dict[str, Witness]
    pictures: dict[str, Any]
    undecided: tuple[str, ...]
    refuted: list[str]
    proved: list[str]

    def add(self, name: str, witness: Witness, picture: dict[str, Any]) -> None:
        self.witnesses[name], self.pictures[name] = witness, picture

    def out(self) -> tuple[str, ...]:
        """The models that are ruled out."""
        return anomalies.ruled_out(self.witnesses, self.refuted)


def check(
    history: History,
    *,
    workload: Workload = "append",
    model: str = "serializable",
    initial: Any = None,
    timeout_s: float | None = None,
    sequential_keys: bool = False,
    linearizable_keys: bool = False,
    transaction_order: Mapping[int, float] | None = None,
    plain_below: int = PLAIN_BELOW,
    clock: Callable[[], float] = time.monotonic,
    session: Session | None = None,
) -> Verdict:
    """Whether the operations with f "txn" show an anomaly that `model` forbids (see `anomalies.MODELS`).

    `workload`: "append" or "rw-register", the micro-operations (see `columns`). The budget of the search is counted in
    steps (`checkers.limits`); `timeout_s` is one limit more, by the clock: at its end the verdict is unknown, unless a
    forbidden anomaly was already found. `sequential_keys`, `linearizable_keys`: the store promises this of each
    register by itself, beside what the model implies (see `register`). `transaction_order`: the order in which the
    store says that transactions took effect, a number by the index of each one's invocation or completion; the versions
    of each register are in that order. `session`: see `columns_of`. `initial`: the value of each key before the first
    write, or a `Start`; None: what the history says. Raises ModelError for a value that is not a transaction, or that
    was appended to a list twice, and for an order of single keys where these are lists; KeyError for an unknown model;
    CheckerDefect for a proof that does not replay.
    """
    begun_s = clock()
    history = history if initial is None else history.starting_at(initial)
    with within(Limits(timeout_s), clock=clock):
        columns = columns_of(history, workload, session)
        verdict = check_columns(
            columns if transaction_order is None else ranked(columns, transaction_order),
            workload=workload,
            model=model,
            sequential_keys=sequential_keys,
            linearizable_keys=linearizable_keys,
            plain_below=plain_below,
            clock=clock,
        )
    with shielded():
        witnesses = tuple(with_time(witness, history) for witness in verdict.witnesses)
        return replace(verdict, witnesses=witnesses, seconds=round(clock() - begun_s, 6))


def check_columns(
    columns: Columns,
    *,
    workload: Workload = "append",
    model: str = "serializable",
    timeout_s: float | None = None,
    sequential_keys: bool = False,
    linearizable_keys: bool = False,
    plain_below: int = PLAIN_BELOW,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """As `check`, from arrays; their shapes and dtypes are with `Columns`. `plain_below`: see PLAIN_BELOW."""
    begun_s = clock()
    if anomalies.model_of(model) not in anomalies.judged(has_real_time=columns.has_real_time):
        expected = (
            "a model without real time, such as strong-session-serializable, for a record that has none"
        )
        raise ModelError(expected=expected, came=model, index=None)
    with within(Limits(timeout_s), clock=clock):
        prover, findings, attempt = _examined(
            columns,
            workload,
            anomalies.model_of(model),
            partial(_analysis, workload, sequential_keys, linearizable_keys),
            plain_below,
        )
        with shielded():
            return _verdict(anomalies.model_of(model), prover, findings, attempt, clock() - begun_s)


def _examined(
    columns: Columns, workload: Workload, promised: str, analyse: Callable[..., Analysis], plain_below: int
) -> tuple[Prover, _Findings, Attempt]:
    """Search and prove within the limits of the scope; anomalies and proofs that were found by their end stay."""
    edges = given().steps or EDGES_MAX
    is_plain = _are_plain(columns, plain_below)
    may_load = is_plain and plain_below == PLAIN_BELOW
    limit = Limit(min(edges, PLAIN_EDGES_MAX) if may_load else edges)
    prover = Prover(columns, workload, _kernels(is_plain), analyse, limit)
    search = None
    if prover.strict_order() is None:
        search = _searched(prover, prover.known, limit)
        if search.undecided and may_load and edges > PLAIN_EDGES_MAX and not limit.late():
            prover = Prover(columns, workload, _kernels(is_plain=False), analyse, limit)
            limit.edges = edges
            search = _searched(prover, prover.known, limit)
    with shielded():
        findings = _findings(Explanation(columns, workload), prover.known, search)
    attempt = Attempt("open")
    with suppress(OutOfTime):
        attempt = _attempted(promised, prover, findings)
        if attempt.result == "refuted":
            _explain(
                promised, prover, findings, partial(_is_refuted, workload, promised, analyse), attempt.core
            )
        for model, stronger in _prove_others(prover, findings, is_open=attempt.result == "open"):
            if attempt.result == "open" and promised in anomalies.weaker(model):
                attempt = stronger
    with shielded():
        forbidden = anomalies.forbidden(promised) | {anomalies.NO_ORDER}
        if attempt.result == "refuted" and not forbidden & findings.witnesses.keys():
            # The time was over before less than all was found to have no order.
            _add_no_order(promised, prover, findings, numpy.flatnonzero(prover.known.committed == 1).tolist())
    return prover, findings, attempt


def serial_order_of(
    columns: Columns,
    *,
    workload: Workload = "append",
    model: str = "serializable",
    sequential_keys: bool = False,
    linearizable_keys: bool = False,
) -> Int32s | None:
    """The order that proves a valid verdict, as numbers of transactions; None if none was found.

    For snapshot isolation each transaction may stand twice: t where its snapshot is taken, n + t where it commits.
    """
    analyse = partial(_analysis, workload, sequential_keys, linearizable_keys)
    prover = Prover(columns, workload, _kernels(_are_plain(columns, PLAIN_BELOW)), analyse)
    prover.strict_order()
    proof = prover.attempt(anomalies.model_of(model)).proof
    return None if proof is None else proof.order


def _analysis(
    workload: Workload,
    sequential_keys: bool,
    linearizable_keys: bool,
    columns: Columns,
    kernels: Kernels,
    order: int = 0,
) -> Analysis:
    """`order`: of sessions or real time, which the model promises of each register by itself."""
    if workload not in WORKLOADS:
        raise KeyError(f"expected one of {', '.join(WORKLOADS)}, got {workload!r}")
    if workload == "append":
        if sequential_keys or linearizable_keys or columns.rank is not None:
            raise ModelError(
                expected="registers for an order of single keys (the reads of a list show its order)",
                came="lists",
                index=None,
            )
        return append.analysis(columns, kernels.append, kernels.graph)
    return register.analysis(
        columns,
        kernels.append,
        kernels.register,
        kernels.graph,
        sequential_keys=sequential_keys or order == 1,
        linearizable_keys=linearizable_keys or order == 2,
    )


def _searched(prover: Prover, known: Analysis, limit: Limit) -> Search:
    assert known.graph is not None
    return searched(prover.kernels.graph, known.graph, known.time, limit)


def _findings(explanation: Explanation, known: Analysis, search: Search | None) -> _Findings:
    witnesses, pictures = {}, {}
    for problem in [*known.problems, *_fractured(known)]:
        if problem.rule not in witnesses:
            witnesses[problem.rule] = explanation.problem_witness(problem)
            pictures[problem.rule] = explanation.problem_json(problem)
    for name, cycle in search.cycles.items() if search else ():
        witnesses[name] = explanation.cycle_witness(name, cycle)
        pictures[name] = explanation.cycle_json(cycle)
    return _Findings(
        witnesses={name: witnesses[name] for name in anomalies.ANOMALIES if name in witnesses},
        pictures=pictures,
        undecided=tuple(search.undecided) if search else (),
        refuted=[],
        proved=[],
    )


def _fractured(known: Analysis) -> list[Problem]:
    if known.graph is None:
        return []
    edges = [known.graph.edge(int(number)) for number in known.graph.fractured()[:1]]
    return [Problem(rule="fractured-read", micro=edge.cause, cause=edge.effect) for edge in edges]


# ---- proofs


def _attempted(model: str, prover: Prover, findings: _Findings) -> Attempt:
    """The promised model's proof, if nothing speaks against it yet."""
    if anomalies.forbidden(model) & findings.witnesses.keys() or not _has_read(prover.columns):
        return Attempt("open")
    attempt = prover.attempt(model)
    if attempt.result == "proved":
        # A serial order within real time proves every model.
        strictest = anomalies.judged(has_real_time=prover.columns.has_real_time)[-1]
        findings.proved.append(model if prover.strict is None else strictest)
    return attempt


def _explain(
    model: str,
    prover: Prover,
    findings: _Findings,
    is_refuted: Callable[[Columns], bool],
    hint: Collection[int],
) -> None:
    """Name what makes the promised model impossible: an anomaly of single keys, or a few transactions without order."""
    base, order = anomalies.MODELS[model]
    explanation = Explanation(prover.columns, prover.workload)
    keyed, suffix = prover.keyed(base, order), anomalies.ORDERS[order]
    # What is found of keys would rule out repeatable-read, which may not promise it (see `Prover.keyed`).
    if keyed is not prover.known and prover.keyed("repeatable-read", order) is keyed:
        for problem in keyed.problems:
            if problem.rule == anomalies.OF_KEYS:
                named = replace(problem, rule=problem.rule + suffix)
                findings.add(named.rule, explanation.problem_witness(named), explanation.problem_json(named))
                return
        for name, cycle in _searched(prover, keyed, Limit(PLAIN_EDGES_MAX)).cycles.items():
            # Such as a circle in real time, of a model of sessions.
            if name not in anomalies.forbidden(model):
                continue
            plain = max((kind for kind in anomalies.CYCLES if name.startswith(kind)), key=len)
            title = ("G-single" if plain in ("G0", "G1c") else plain) + suffix
            picture = explanation.cycle_json(cycle) | {"of_keys": True}
            findings.add(title, explanation.cycle_witness(title, cycle), picture)
            return
    core = smallest(prover.columns, prover.workload, prover.known, is_refuted, hint)
    _add_no_order(model, prover, findings, core)


def _add_no_order(model: str, prover: Prover, findings: _Findings, core: Sequence[int]) -> None:
    """Note that these transactions have no execution of the model."""
    explanation = Explanation(prover.columns, prover.workload)
    findings.refuted.append(model)
    findings.add(
        anomalies.NO_ORDER, explanation.no_order_witness(core, model), explanation.no_order_json(core, model)
    )


def _is_refuted(workload: Workload, model: str, analyse: Callable[..., Analysis], columns: Columns) -> bool:
    """Whether a part of a history is not of the model."""
    prover = Prover(columns, workload, _kernels(is_plain=True), analyse)
    return prover.judged(model, CORE_PART).result == "refuted"


def _prove_others(prover: Prover, findings: _Findings, *, is_open: bool) -> Iterator[tuple[str, Attempt]]:
    """The strongest models that hold, with their proofs: those that are left are tried, the strongest first.

    `is_open`: whether the promised model has no proof of its own, so that one of a stronger model is wanted.
    """
    if len(prover.columns) > HELD_MAX or not _has_read(prover.columns):
        return
    part = HELD_PART * max(1, len(prover.columns) // HELD_FEW)
    judged = anomalies.judged(has_real_time=prover.columns.has_real_time)
    for model in sorted(judged, key=lambda name: -len(anomalies.weaker(name))):
        implied = {weaker for name in findings.proved for weaker in (name, *anomalies.weaker(name))}
        if model in implied or model in findings.out():
            continue
        is_searched = anomalies.MODELS[model][0] in SEARCHED and not is_open
        searched_max = DUPLICATES_MAX if prover.known.choices else SEARCHED_MAX
        if len(prover.columns) > searched_max and (is_searched or prover.known.choices):
            continue
        attempt = prover.attempt(model, part)
        match attempt.result:
            case "proved":
                findings.proved.append(model)
                yield model, attempt
            case "refuted":
                findings.refuted.append(model)


def _verdict(promised: str, prover: Prover, findings: _Findings, attempt: Attempt, seconds: float) -> Verdict:
    columns, known = prover.columns, prover.known
    forbidden = anomalies.forbidden(promised) | {anomalies.NO_ORDER}
    violations = [name for name in findings.witnesses if name in forbidden]
    result, summary = _conclusion(promised, prover, findings, violations, attempt)
    models = anomalies.judged(has_real_time=columns.has_real_time)
    out = tuple(name for name in findings.out() if name in models)
    open_ = anomalies.ruled_out(findings.undecided) if findings.undecided else ()
    left = anomalies.strongest(name for name in models if name not in out)
    held = anomalies.strongest(findings.proved)
    sure = {weaker for name in held for weaker in (name, *anomalies.weaker(name))}
    details = {
        "workload": prover.workload,
        "transactions": len(columns),
        "ok": int((columns.outcome == OK).sum()),
        "failed": int((columns.outcome == FAIL).sum()),
        "unsure": int((columns.outcome == INFO).sum()),
        "unsure_but_seen": int((known.committed == 1).sum() - (columns.outcome == OK).sum()),
        "edges": _edge_counts(known),
        "anomalies": {
            name: findings.pictures[name] | ({"count": known.counts[name]} if name in known.counts else {})
            for name in findings.witnesses
        },
        "violations": violations,
        "findings": [name for name in findings.witnesses if name not in forbidden],
        "undecided": list(findings.undecided),
        "vacuous": not _has_read(columns),
        "ruled_out": list(out),
        "left": list(left),
        "left_undecided": [name for name in open_ if name not in out and name not in sure],
        "held": list(held),
        "not_refuted": [name for name in left if name not in sure],
        "proof": _proof(columns, result, violations, attempt.proof),
    }
    return Verdict(
        checker=NAME,
        result=result,
        summary=summary,
        model=promised,
        witnesses=tuple(findings.witnesses[name] for name in violations)[:WITNESSES_MAX]
        if result == "invalid"
        else (),
        details=details,
        seconds=round(seconds, 6),
    )


def _has_read(columns: Columns) -> bool:
    """Whether an ok transaction read anything."""
    answered = columns.outcome[numpy.repeat(numpy.arange(len(columns)), numpy.diff(columns.first))] == OK
    return bool(((columns.f != WRITE) & answered).any())


def _conclusion(
    model: str, prover: Prover, findings: _Findings, violations: list[str], attempt: Attempt
) -> tuple[Result, str]:
    if violations:
        others = f" ({len(violations)} anomalies in all that it forbids)" if len(violations) > 1 else ""
        return "invalid", f"not {model}: {findings.witnesses[violations[0]].summary}{others}"
    if not _has_read(prover.columns):
        return "unknown", "no transaction read anything: there is nothing to judge"
    if attempt.result != "proved":
        undecided = [name for name in findings.undecided if name in anomalies.forbidden(model)]
        why = prover.limit.words()
        if undecided:
            return "unknown", f"{why} did not suffice to rule out {', '.join(undecided)}"
        if not prover.known.whole:
            return "unknown", "there are too many dependencies between writes whose order no read shows"
        if candidates := prover.known.choices and prover.known.candidates:
            reads = f"{len(candidates.choices):,} reads of values that several transactions wrote"
            return "unknown", f"{why} did not suffice to try what {reads} show"
        return "unknown", f"{why} did not suffice to find an order, or that there is none"
    allowed = f"; it allows {', '.join(findings.witnesses)}, which was seen" if findings.witnesses else ""
    count = int((prover.known.committed == 1).sum())
    return "valid", f"nothing that {model} forbids shows in {many(count, 'transaction')}{allowed}"


def _edge_counts(known: Analysis) -> dict[str, int] | None:
    """How many dependencies of each kind; None if none had to be drawn."""
    if known.graph is None:
        return None
    counts = numpy.bincount(known.graph.kind, minlength=4)
    return {KINDS[0]: int(counts[0]), KINDS[1]: int(counts[1]), KINDS[2]: int(counts[2] + counts[3])}


def _proof(columns: Columns, result: Result, violations: list[str], proved: Proof | None) -> dict[str, Any]:
    """The proof, in a form that a reader can check (see `proving` for the kinds)."""
    if result == "invalid":
        return {"kind": "anomaly", "names": violations}
    if result == "unknown" or proved is None:
        return {"kind": "none", "says": "not decided"}
    count, order = len(columns), proved.order
    proof: dict[str, Any] = {
        "kind": proved.kind,
        "length": len(order),
        "sha256": hashlib.sha256(order.astype("<i4").tobytes()).hexdigest(),
        "recompute": "checkers.transactional.serial_order_of(columns, workload=…, model=…)",
    }
    if len(order) <= ORDER_SHOWN_MAX:
        if proved.shown:
            proof["shown"] = [_shown(columns, *each) for each in sorted(proved.shown.items())]
        events = columns.invoke[order % count].tolist()
        proof["order"] = (
            [
                [event, "commit" if node >= count else "snapshot"]
                for event, node in zip(events, order.tolist(), strict=True)
            ]
            if proved.kind == "snapshots-and-commits"
            else events
        )
    return proof


def _shown(columns: Columns, micro: int, version: int) -> list[int | None]:
    """[event of the reader, place of the read in it, event of the writer]; the last is None for the first value."""
    reader = columns.owner(micro)
    writer = int(columns.invoke[columns.owner(version)]) if version < len(columns.f) else None
    return [int(columns.invoke[reader]), micro - int(columns.first[reader]), writer]
