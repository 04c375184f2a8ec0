"""The checker: transactions against an isolation model, and which models they rule out.

    verdict = check(history, workload="append", model="snapshot-isolation")
    verdict = check_columns(columns, workload="append")            # big histories: arrays, see columns.Columns

Beside the anomalies that the promised model forbids (they make the verdict invalid), `details` names those that it
allows (`findings`), the models that are ruled out and the strongest that are left, every smallest cycle as data for
a picture, and the proof: an order of the transactions for valid, the cycle with its evidence for invalid.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy

from checkers import compiled
from checkers.history.history import History
from checkers.transactional import (
    anomalies,
    append,
    append_kernels,
    graph_kernels,
    register,
    register_kernels,
)
from checkers.transactional.append import Analysis
from checkers.transactional.columns import (
    FAIL,
    INFO,
    OK,
    WORKLOADS,
    WRITE,
    Columns,
    Int32s,
    Session,
    Workload,
    columns_of,
)
from checkers.transactional.explanation import Explanation
from checkers.transactional.graph import KINDS, serial_order
from checkers.transactional.search import Search
from checkers.verdict import WITNESSES_MAX, Result, Verdict, Witness

NAME = "transactional"
PLAIN_BELOW = 50_000
"""Histories with fewer micro-operations and elements are judged by the plain twin: loading numba would take longer."""
PLAIN_SEARCH_S = 2.0
"""For so long the plain twin looks for cycles; what it has not decided by then, the compiled kernels decide."""
ORDER_SHOWN_MAX = 10_000
PROVED_BY = {"parallel-snapshot-isolation": "snapshot-isolation"}
"""No order proves parallel snapshot isolation; where the stronger model holds, its order does."""
SEARCH_PART = 0.8
"""The part of the time limit that the search for cycles may take; the rest is for the proof and the words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kernels:
    append: Any
    register: Any
    graph: Any

    @classmethod
    def for_size(cls, size: int, plain_below: int) -> _Kernels:
        load: Callable[[Any], Any] = (lambda module: module) if size < plain_below else compiled.load
        return cls(append=load(append_kernels), register=load(register_kernels), graph=load(graph_kernels))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """All that was found: anomalies with their witnesses, worst first, and what time did not suffice for."""

    found: dict[str, Witness]
    pictures: dict[str, Any]
    undecided: tuple[str, ...]


def check(
    history: History,
    *,
    workload: Workload = "append",
    model: str = "serializable",
    timeout_s: float = 30.0,
    sequential_keys: bool = False,
    linearizable_keys: bool = False,
    plain_below: int = PLAIN_BELOW,
    clock: Callable[[], float] = time.monotonic,
    session: Session | None = None,
) -> Verdict:
    """Whether the operations with f "txn" show an anomaly that `model` forbids (see `anomalies.MODELS`).

    `workload`: "append" or "rw-register", the micro-operations (see `columns`). `timeout_s`: at its end the verdict is
    unknown, unless a forbidden anomaly was already found. `sequential_keys`, `linearizable_keys`: what is promised of
    registers one by one (see `register`). `session`: see `columns_of`. Raises ModelError for what is no transaction, or
    a value written to a key twice; KeyError for an unknown model.
    """
    begun_s = clock()
    columns = columns_of(history, workload, session)
    verdict = check_columns(
        columns,
        workload=workload,
        model=model,
        timeout_s=timeout_s - (clock() - begun_s),
        sequential_keys=sequential_keys,
        linearizable_keys=linearizable_keys,
        plain_below=plain_below,
        clock=clock,
    )
    witnesses = tuple(_with_time(witness, history) for witness in verdict.witnesses)
    return replace(verdict, witnesses=witnesses, seconds=round(clock() - begun_s, 6))


def check_columns(
    columns: Columns,
    *,
    workload: Workload = "append",
    model: str = "serializable",
    timeout_s: float = 30.0,
    sequential_keys: bool = False,
    linearizable_keys: bool = False,
    plain_below: int = PLAIN_BELOW,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """As `check`, from arrays; their shapes and dtypes are with `Columns`. `plain_below`: see PLAIN_BELOW."""
    begun_s = clock()
    promised = anomalies.model_of(model)
    kernels = _Kernels.for_size(len(columns.f) + len(columns.elements), plain_below)
    known = _analysis(columns, workload, kernels, sequential_keys, linearizable_keys)
    order = _strict_order(known, kernels)
    search = None
    if order is None:
        is_plain = len(columns.f) + len(columns.elements) < plain_below == PLAIN_BELOW
        search_s = min(timeout_s, PLAIN_SEARCH_S) if is_plain else timeout_s
        search = _searched(known, kernels, begun_s + search_s * SEARCH_PART, clock)
        if search.undecided and is_plain:
            kernels = _Kernels.for_size(PLAIN_BELOW, PLAIN_BELOW)
            search = _searched(known, kernels, begun_s + timeout_s * SEARCH_PART, clock)
    judged = _judged(Explanation(columns, workload), known, search)
    if order is None and search is not None:
        order = _order_for(promised, known, kernels, search, judged)
    kind = "" if order is None else _kind_of_order(columns, workload, promised, known, kernels, order)
    return _verdict(columns, workload, promised, known, judged, order, kind, clock() - begun_s)


def serial_order_of(
    columns: Columns,
    *,
    workload: Workload = "append",
    model: str = "serializable",
    sequential_keys: bool = False,
    linearizable_keys: bool = False,
) -> Int32s | None:
    """The order that proves a valid verdict, as numbers of transactions; None if there is none.

    For snapshot isolation each transaction stands twice: t where its snapshot is taken, n + t where it commits.
    """
    kernels = _Kernels.for_size(len(columns.f) + len(columns.elements), PLAIN_BELOW)
    known = _analysis(columns, workload, kernels, sequential_keys, linearizable_keys)
    order = _strict_order(known, kernels)
    if order is not None or known.graph is None:
        return order
    search = Search(kernels.graph, known.graph, known.time, float("inf"), time.monotonic)
    return _order_for(anomalies.model_of(model), known, kernels, search, None)


def _analysis(
    columns: Columns, workload: Workload, kernels: _Kernels, sequential_keys: bool, linearizable_keys: bool
) -> Analysis:
    if workload not in WORKLOADS:
        raise KeyError(f"expected one of {', '.join(WORKLOADS)}, got {workload!r}")
    if workload == "append":
        return append.analysis(columns, kernels.append, kernels.graph)
    return register.analysis(
        columns,
        kernels.append,
        kernels.register,
        kernels.graph,
        sequential_keys=sequential_keys,
        linearizable_keys=linearizable_keys,
    )


def _strict_order(known: Analysis, kernels: _Kernels) -> Int32s | None:
    """An order of all dependencies within real time: if there is one, there is no cycle of any class."""
    if known.order is not None or known.graph is None:
        return known.order
    return serial_order(kernels.graph, known.graph, known.time, "serializable", 2, None)


def _searched(known: Analysis, kernels: _Kernels, deadline_s: float, clock: Callable[[], float]) -> Search:
    assert known.graph is not None
    search = Search(kernels.graph, known.graph, known.time, deadline_s, clock)
    search.run()
    return search


def _judged(explanation: Explanation, known: Analysis, search: Search | None) -> _Judged:
    witnesses, pictures = {}, {}
    for problem in known.problems:
        if problem.rule not in witnesses:
            witnesses[problem.rule] = explanation.problem_witness(problem)
            pictures[problem.rule] = explanation.problem_json(problem)
    for name, cycle in search.cycles.items() if search else ():
        witnesses[name] = explanation.cycle_witness(name, cycle)
        pictures[name] = explanation.cycle_json(cycle)
    found = {name: witnesses[name] for name in anomalies.ANOMALIES if name in witnesses}
    return _Judged(found=found, pictures=pictures, undecided=tuple(search.undecided) if search else ())


def _order_for(
    model: str, known: Analysis, kernels: _Kernels, search: Search, judged: _Judged | None
) -> Int32s | None:
    """An order that proves `model`, None if it is not to be proved or there is none."""
    if judged is not None and set(judged.found) & anomalies.forbidden(model):
        return None
    assert known.graph is not None
    base, order = anomalies.MODELS[model]
    clients = search.with_clients_order() if order == 1 else None
    return serial_order(kernels.graph, known.graph, known.time, PROVED_BY.get(base, base), order, clients)


def _verdict(
    columns: Columns,
    workload: Workload,
    model: str,
    known: Analysis,
    judged: _Judged,
    order: Int32s | None,
    kind: str,
    seconds: float,
) -> Verdict:
    forbidden = anomalies.forbidden(model)
    violations = [name for name in judged.found if name in forbidden]
    undecided = [name for name in judged.undecided if name in forbidden]
    result, summary = _conclusion(model, columns, known, judged, violations, undecided, order)
    out = anomalies.ruled_out(judged.found)
    open_ = anomalies.ruled_out(judged.undecided) if judged.undecided else ()
    left = tuple(name for name in anomalies.MODELS if name not in out)
    details = {
        "workload": workload,
        "transactions": len(columns),
        "ok": int((columns.outcome == OK).sum()),
        "failed": int((columns.outcome == FAIL).sum()),
        "unsure": int((columns.outcome == INFO).sum()),
        "unsure_but_seen": int((known.committed == 1).sum() - (columns.outcome == OK).sum()),
        "edges": _edge_counts(known),
        "anomalies": {name: judged.pictures[name] | _count(known, name) for name in judged.found},
        "violations": violations,
        "findings": [name for name in judged.found if name not in forbidden],
        "undecided": list(judged.undecided),
        "vacuous": not _has_read(columns),
        "ruled_out": list(out),
        "left": list(anomalies.strongest(left)),
        "left_undecided": [name for name in open_ if name not in out],
        "proof": _proof(columns, result, violations, order, kind),
    }
    return Verdict(
        checker=NAME,
        result=result,
        summary=summary,
        model=model,
        witnesses=tuple(judged.found[name] for name in violations)[:WITNESSES_MAX]
        if result == "invalid"
        else (),
        details=details,
        seconds=round(seconds, 6),
    )


def _has_read(columns: Columns) -> bool:
    """Whether some answer shows what was read; a list that was appended to is none."""
    answered = columns.outcome[numpy.repeat(numpy.arange(len(columns)), numpy.diff(columns.first))] == OK
    return bool(((columns.f != WRITE) & answered).any())


def _conclusion(
    model: str,
    columns: Columns,
    known: Analysis,
    judged: _Judged,
    violations: list[str],
    undecided: list[str],
    order: Int32s | None,
) -> tuple[Result, str]:
    if violations:
        others = f" ({len(violations)} anomalies in all that it forbids)" if len(violations) > 1 else ""
        return "invalid", f"not {model}: {judged.found[violations[0]].summary}{others}"
    if undecided:
        return "unknown", f"time did not suffice to rule out {', '.join(undecided)}"
    if not known.whole:
        return "unknown", "there are too many dependencies between writes whose order nobody read"
    if not _has_read(columns):
        return "unknown", "no transaction read anything: there is nothing to judge"
    if order is None and _has_order(model):
        return "unknown", "no cycle was found, and no order either"
    allowed = f"; it allows {', '.join(judged.found)}, which was seen" if judged.found else ""
    return (
        "valid",
        f"{int((known.committed == 1).sum())} transactions show nothing that {model} forbids{allowed}",
    )


def _has_order(model: str) -> bool:
    return anomalies.MODELS[model][0] not in PROVED_BY


def _count(known: Analysis, name: str) -> dict[str, int]:
    return {"count": known.counts[name]} if name in known.counts else {}


def _edge_counts(known: Analysis) -> dict[str, int] | None:
    """How many dependencies of each kind; None if none had to be drawn."""
    if known.graph is None:
        return None
    counts = numpy.bincount(known.graph.kind, minlength=4)
    return {KINDS[0]: int(counts[0]), KINDS[1]: int(counts[1]), KINDS[2]: int(counts[2] + counts[3])}


def _kind_of_order(
    columns: Columns, workload: Workload, model: str, known: Analysis, kernels: _Kernels, order: Int32s
) -> str:
    """What the order is.

    serial-order            run one by one in this order, the transactions give just the answers that were got
    order                   it agrees with all dependencies that the model cares for (and are known: of registers only
                            some are)
    snapshots-and-commits   each transaction stands twice; what depends on a commit has its snapshot after it
    """
    c = columns
    if len(order) and int(order.max()) >= len(c):
        return "snapshots-and-commits"
    if workload == "rw-register":
        serial = kernels.register.replays(order, c.first, c.outcome, c.f, c.key, c.value, c.key_count)
        return "serial-order" if serial else "order"
    whole = known.order is not None or anomalies.MODELS[model][0] == "serializable"
    return "serial-order" if whole and not known.counts else "order"


def _proof(
    columns: Columns, result: Result, violations: list[str], order: Int32s | None, kind: str
) -> dict[str, Any]:
    """What a reader can check for himself; "decided, without proof" where there is nothing to show."""
    if result == "invalid":
        return {"kind": "anomaly", "names": violations}
    if result == "unknown" or order is None:
        return {"kind": "none", "says": "decided, without proof" if result == "valid" else "not decided"}
    count = len(columns)
    twice = kind == "snapshots-and-commits"
    proof: dict[str, Any] = {
        "kind": kind,
        "length": len(order),
        "sha256": hashlib.sha256(order.astype("<i4").tobytes()).hexdigest(),
        "recompute": "checkers.transactional.serial_order_of(columns, workload=…, model=…)",
    }
    if len(order) <= ORDER_SHOWN_MAX:
        events = columns.invoke[order % count].tolist()
        proof["order"] = (
            [
                [event, "commit" if node >= count else "snapshot"]
                for event, node in zip(events, order.tolist(), strict=True)
            ]
            if twice
            else events
        )
    return proof


def _with_time(witness: Witness, history: History) -> Witness:
    """The witness with the time that its events span."""
    times_ns = [history.events[index].time_ns for index in witness.events if index < len(history.events)]
    if not times_ns:
        return witness
    return replace(witness, start_ns=min(times_ns), end_ns=max(times_ns))
