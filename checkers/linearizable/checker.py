"""The checker: every key's operations against a sequential model, with a limit of work and one of memory.

Linearizability is local, so each key is searched by itself; keys that one operation connects are searched as one. The
caller chooses which reads take part, by the server's role and the read's mode: other checkers judge reads with a
weaker promise.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy

from checkers.compiled import is_loaded
from checkers.history.columns import grouped
from checkers.history.errors import ModelError
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.history.values import many as counted
from checkers.limits import STEPS, Limits, OutOfTime, given, shielded, within
from checkers.linearizable import many, search_kernels
from checkers.linearizable import proofs as proving
from checkers.linearizable.calls import Calls, of_columns
from checkers.linearizable.columns import Columns, of_registers
from checkers.linearizable.containers import Queue, UnorderedQueue
from checkers.linearizable.decide import (
    COLD_CALLS,
    Way,
    decide,
    decide_columns,
    in_rounds,
    must_not_wait,
)
from checkers.linearizable.drains import Drained, are_several_calls, drained
from checkers.linearizable.explanation import witness
from checkers.linearizable.longest import longest_prefix
from checkers.linearizable.models import Action, Model, Register
from checkers.linearizable.order import placed_columns
from checkers.linearizable.search import Call, Decision
from checkers.linearizable.search import Limits as Budget
from checkers.linearizable.search_kernels import OVERWRITE
from checkers.linearizable.shrinking import Proof, Subject, shrunk
from checkers.linearizable.table import MODELS
from checkers.verdict import WITNESSES_MAX, Result, Verdict, Witness

Reads = Callable[[str | None, str | None], bool]
Keys = tuple[str | None, ...]

NAME = "linearizable"
NOT_JUDGED = frozenset({"dump"})
FOR_PROOFS = 0.25  # of the steps of the search, so many more for shrinking
FOR_PROOFS_MAX = (
    300_000_000  # steps for shrinking, some two seconds: a smaller witness is not worth what a verdict is
)
PREFIXES_MAX = 3
PROOF_OPERATIONS = 20_000
CALLS_AT_ONCE = 1 << 18  # laid out for the search at a time, some 100 bytes each
NOT_LOOKED_AT = Decision("unknown", reason="not looked at")


def promised_linearizable(role: str | None, mode: str | None) -> bool:
    """The reads that are judged by default.

    These are read-confirmed reads at the owner (or at a server of unknown role), and linearizable reads at any server.
    """
    return mode == "linearizable" or (role in ("owner", None) and mode in ("read-confirmed", None))


def check(
    history: History,
    *,
    model: str = "register",
    timeout_s: float | None = None,
    memory_limit: int | None = None,
    steps: int | None = None,
    failed_cas_observes: bool | None = None,
    initial: Any = None,
    reads: Reads = promised_linearizable,
    proof_operations: int = PROOF_OPERATIONS,
    longest_prefixes: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """Whether the operations of every key have an order that `model` allows within real time.

    `steps` is for all keys together, `memory_limit` the number of configurations held at once (some 200 bytes each);
    by default both are those of `checkers.limits`. A key that met a limit is undecided: the verdict is unknown, unless
    another key is invalid. `timeout_s` is the outermost limit, by `clock`; None: the verdict depends on no clock.
    `failed_cas_observes`: whether a cas refused with "mismatch" surely saw a confirmed value other than `old`, a
    dequeue refused with "empty" a confirmed state without elements, and a deletion refused with "nothing-there" that
    nothing was there. None: as the history's origin has it. `initial`: what each object held before, or a `Start`;
    None: what the history says.
    `longest_prefixes`: `details["longest_prefix"]` says, for the invalid keys that went wrong first, how far the record
    of each is linearizable from its beginning, and which operations end that (`longest`).
    `proof_operations`: proofs are kept in `details["proofs"]` for as long as they name no more operations than this in
    all; `checkers.proofs.verify` checks them.
    Raises ModelError for an operation that the model does not know, KeyError for an unknown model.
    """
    started_s = clock()
    if not history.has_real_time:
        raise ModelError(expected="a history with real time", came="one without", index=None)
    if failed_cas_observes is None:
        failed_cas_observes = history.failed_cas_observes
    history = history if initial is None else history.starting_at(initial)
    judged: Model = MODELS[model](failed_cas_observes=failed_cas_observes)
    with within(Limits(timeout_s), clock=clock):
        limits = budget(memory_limit, steps)
        searches, left_out = _searches(judged, history, reads, limits)
        witnesses = _searched(searches, limits)
        prefixes = _longest_prefixes(searches, limits) if longest_prefixes else []
        with shielded():
            details = {
                **_counted(searches),
                "reads_not_judged": left_out,
                "failed_cas_observes": failed_cas_observes,
                "model": model,
                **({} if history.start.is_plain else {"initial": history.start.to_json()}),
                **_proofs(searches, proof_operations),
                **({"longest_prefix": prefixes} if prefixes else {}),
            }
            return _verdict(searches, witnesses, details, clock() - started_s)


def budget(memory_limit: int | None, steps: int | None) -> Budget:
    """The limits of a search: those given here, else those of the surrounding scope."""
    around = given()
    configurations = around.configurations if memory_limit is None else memory_limit
    return Budget(configurations, steps or around.steps or STEPS)


def for_a_proof(limits: Budget, proofs: int) -> Budget:
    """The limits for shrinking one of so many proofs."""
    return Budget(
        limits.configurations, int(min(limits.steps * FOR_PROOFS, FOR_PROOFS_MAX)) // max(1, proofs)
    )


@dataclass(slots=True)
class _KeySearch:
    """The search on one key, or on connected keys; `subjects` are the operations that are calls to the model."""

    model: Model
    keys: Keys
    operations: Sequence[Operation]
    subjects: Sequence[Subject]
    decision: Decision = NOT_LOOKED_AT
    proof: Proof | None = None

    @property
    def key(self) -> str | None:
        """The key, or all keys, for a message."""
        return self.keys[0] if len(self.keys) == 1 else ", ".join(str(key) for key in self.keys)

    @property
    def has_names(self) -> bool:
        """Whether the index of an invocation names one call: a drain may stand for several."""
        return not any(are_several_calls(operation) for operation in self.operations)

    @property
    def count(self) -> int:
        """How many operations are calls to the model."""
        return len(self.subjects)

    @property
    def observed(self) -> int:
        """How many answers say something about the value."""
        return sum(
            subject.call.action.kind != "overwrite" and subject.call.complete is not None
            for subject in self.subjects
        )

    @property
    def went_wrong(self) -> int:
        """The event at which no order was left."""
        assert self.decision.failing is not None
        return self.subjects[self.decision.failing].call.complete or 0

    def decide(self, limits: Budget, way: Way) -> Decision:
        """Look for an order. Raises OutOfTime."""
        return decide(self.model, [subject.call for subject in self.subjects], limits, way=way)

    def names_in_order(self) -> list[int] | None:
        """The proof of a yes: the operations in an order; None if no time is left to find it."""
        return proving.names_in_order(self.model, self.subjects, self.decision)


@dataclass(slots=True)
class _RegisterSearch:
    """The search on one register, as columns: objects are made for witnesses alone."""

    model: Model
    keys: Keys
    history: History
    calls: Calls
    places: Any  # numpy's: of its calls in the history
    limits: Budget
    decision: Decision = NOT_LOOKED_AT
    proof: Proof | None = None
    has_names: bool = True
    _subjects: Sequence[Subject] | None = None

    @property
    def key(self) -> str | None:
        return self.keys[0]

    @property
    def operations(self) -> Sequence[Operation]:
        columns = self.calls.columns
        code = columns.words.index(self.key)
        return self.history.at(numpy.flatnonzero(self.calls.judged & (columns.key == code)))

    @property
    def subjects(self) -> Sequence[Subject]:
        if self._subjects is None:
            self._subjects = _subjects(self.model, self.history.at(self.places))
            assert len(self._subjects) == len(self.places)
        return self._subjects

    @property
    def count(self) -> int:
        return len(self.places)

    @property
    def observed(self) -> int:
        calls = self.calls
        return int((calls.are_answered(self.places) & (calls.kind[self.places] != OVERWRITE)).sum())

    @property
    def went_wrong(self) -> int:
        assert self.decision.failing is not None
        return int(self.calls.columns.complete[self.places[self.decision.failing]])

    def decide(self, limits: Budget, way: Way) -> Decision:
        return decide_columns(self._columns(), limits, with_order=True, way=way)

    def _columns(self) -> Columns:
        return of_registers(self.calls.registers(self.places))

    def names_in_order(self) -> list[int] | None:
        decision, columns = self.decision, self._columns()
        if decision.order is None and decision.log is None:  # one of many that were decided at once
            try:
                decision = decide_columns(columns, self.limits, with_order=True)
            except OutOfTime:
                return None
            if decision.result != "yes":
                assert decision.result == "unknown"
                return None
        order = placed_columns(columns, decision.log) if decision.order is None else decision.order
        places = self.places[numpy.array(order, dtype=numpy.int64)]
        names: list[int] = self.calls.columns.invoke[places].tolist()
        return names


Search = _KeySearch | _RegisterSearch


def _searches(
    model: Model, history: History, reads: Reads, limits: Budget
) -> tuple[list[Search], dict[str, int]]:
    """The searches, and how many reads of each class are not judged."""
    if isinstance(model, Register) and history.start.is_plain:
        calls = of_columns(history.columns, reads=reads, failed_cas_observes=model.failed_cas_observes)
        if calls is not None:
            return _register_searches(model, history, calls, limits), calls.reads_not_judged
    groups, left_out = _groups(model, history, reads)
    searches: list[Search] = []
    for keys, operations in groups:
        begun = (
            model if history.start.is_plain else model.beginning({key: history.start.of(key) for key in keys})
        )
        if isinstance(begun, Queue | UnorderedQueue) and any(
            operation.f == "drain" for operation in operations
        ):
            begun = drained(begun)
        searches.append(_KeySearch(begun, keys, operations, _subjects(begun, operations)))
    return searches, left_out


def _register_searches(model: Model, history: History, calls: Calls, limits: Budget) -> list[Search]:
    """In order of the first operation on each key."""
    columns = calls.columns
    keys = len(columns.words)
    first = numpy.full(keys, len(columns), dtype=numpy.int64)
    places = numpy.flatnonzero(calls.judged)[::-1]
    first[columns.key[places]] = places  # of equal keys the last one stays
    order, bounds = grouped(columns.key[calls.places].astype(numpy.int64), keys)
    places, at = calls.places[order], bounds.tolist()
    return [
        _RegisterSearch(model, (columns.words[key],), history, calls, places[at[key] : at[key + 1]], limits)
        for key in numpy.argsort(first)[: int((first < len(columns)).sum())].tolist()
    ]


def _groups(
    model: Model, history: History, reads: Reads
) -> tuple[list[tuple[Keys, list[Operation]]], dict[str, int]]:
    """The judged operations by keys, and how many reads of each class are not judged."""
    judged: list[tuple[Keys, Operation]] = []
    left_out: Counter[str] = Counter()
    for operation in history.operations:
        if operation.f in NOT_JUDGED:
            continue
        if operation.only_reads and operation.type == "ok" and not reads(operation.role, operation.mode):
            left_out[f"{operation.mode or 'no mode'} at {operation.role or 'unknown role'}"] += 1
        elif parts := model.parts(operation):
            judged.append((parts, operation))
    together = _together(parts for parts, _ in judged)
    groups: dict[str | None, list[Operation]] = {}
    for parts, operation in judged:
        groups.setdefault(together[parts[0]], []).append(operation)
    keys: dict[str | None, list[str | None]] = {}
    for key, first in together.items():
        keys.setdefault(first, []).append(key)
    return [(tuple(keys[first]), members) for first, members in groups.items()], dict(
        sorted(left_out.items())
    )


def _together(connected: Iterable[Keys]) -> dict[str | None, str | None]:
    """Every key with one of the keys that operations connect to it, the same for all of these."""
    first: dict[str | None, str | None] = {}

    def root(key: str | None) -> str | None:
        while first.setdefault(key, key) != key:
            first[key] = first[first[key]]
            key = first[key]
        return key

    for keys in connected:
        for key in keys:
            first[root(key)] = root(keys[0])
    return {key: root(key) for key in first}


def _subjects(model: Model, operations: Sequence[Operation]) -> list[Subject]:
    return [
        Subject(operation, Call(action, operation.invoke_index, operation.returned_index))
        for operation, action in _actions(model, operations)
    ]


def _actions(model: Model, operations: Sequence[Operation]) -> Iterator[tuple[Operation, Action]]:
    if isinstance(model, Drained):
        yield from model.actions(operations)
        return
    for operation in operations:
        action = model.action(operation)
        if action is not None:
            yield operation, action


def _searched(searches: Sequence[Search], limits: Budget) -> tuple[Witness, ...]:
    """Search all keys; the witnesses of invalid keys come first. Keys that the time limit cuts off stay undecided."""
    over = ""
    try:
        _search_all(searches, limits)
    except OutOfTime as ended:
        over = str(ended)
    with shielded():  # the alarm comes again
        for search in searches:
            if over and not search.decision.is_decided:
                search.decision = Decision("unknown", reason=over)
        wrong = [search for search in searches if search.decision.result == "no"]
        # The earliest is shown first.
        wrong = sorted(wrong, key=lambda search: search.went_wrong)[:WITNESSES_MAX]
    return tuple(_witness(search, for_a_proof(limits, len(wrong))) for search in wrong)


def _longest_prefixes(searches: Sequence[Search], limits: Budget) -> list[dict[str, Any]]:
    """Of the invalid keys that went wrong first, their longest linearizable prefixes; less if the time ends."""
    prefixes: list[dict[str, Any]] = []
    with suppress(OutOfTime):
        wrong = [search for search in searches if search.proof is not None]
        for search in sorted(wrong, key=lambda search: search.went_wrong)[:PREFIXES_MAX]:
            subjects_of = partial(_subjects, search.model)
            prefix = longest_prefix(search.model, search.operations, subjects_of, limits)
            prefixes += [] if prefix is None else [{"keys": list(search.keys), **prefix}]
    return prefixes


def _search_all(searches: Sequence[Search], limits: Budget) -> None:
    """Raises OutOfTime."""
    _decide_many([search for search in searches if isinstance(search, _RegisterSearch)], limits)

    def decided(key: int, share: Budget, way: Way) -> bool:
        if not searches[key].decision.is_decided:
            searches[key].decision = searches[key].decide(share, way)
        return searches[key].decision.is_decided

    in_rounds(len(searches), sum(search.count for search in searches), limits, decided)


def _decide_many(searches: Sequence[_RegisterSearch], limits: Budget) -> None:
    """Find, for all small registers at once, which have an order. Raises OutOfTime."""
    small = [search for search in searches if 0 < search.count <= many.CALLS_MAX]
    calls = sum(search.count for search in small)
    if len(small) < 2 or (calls <= COLD_CALLS and not is_loaded(search_kernels)) or must_not_wait():
        return
    for part in _parts(small):
        bounds = numpy.cumsum([0, *(search.count for search in part)], dtype=numpy.int64)
        registers = part[0].calls.registers(numpy.concatenate([search.places for search in part]))
        answers = many.decide(many.regrouped(registers, numpy.arange(bounds[-1]), bounds), limits).tolist()
        for search, (answer, most) in zip(part, answers, strict=True):
            if answer == 1:
                search.decision = Decision("yes", configurations=most, algorithm="compiled search")


def _parts(searches: Sequence[_RegisterSearch]) -> Iterator[list[_RegisterSearch]]:
    """All searches, some CALLS_AT_ONCE calls at a time."""
    part: list[_RegisterSearch] = []
    calls = 0
    for search in searches:
        part.append(search)
        calls += search.count
        if calls >= CALLS_AT_ONCE:
            yield part
            part, calls = [], 0
    if part:
        yield part


def _witness(searched: Search, limits: Budget) -> Witness:
    model = searched.model
    try:
        searched.proof = shrunk(model, searched.subjects, searched.decision, limits)
        return witness(model, searched.proof, searched.key, searched.operations)
    except OutOfTime:  # an anomaly stays one: the call that cannot return proves less, and costs nothing
        with shielded():
            assert searched.decision.failing is not None
            failing = searched.subjects[searched.decision.failing]
            bare = Proof((failing,), failing, None, None)
            return witness(model, bare, searched.key, ())


def _counted(searches: Sequence[Search]) -> dict[str, Any]:
    """The numbers of keys and operations that were judged, and the methods used."""
    observed = sum(search.observed for search in searches)
    return {
        "keys": len(searches),
        "operations": sum(search.count for search in searches),
        "observations": observed,
        "vacuous": not observed,
        "keys_invalid": sorted(str(search.key) for search in searches if search.decision.result == "no"),
        "keys_undecided": {
            str(search.key): search.decision.reason
            for search in searches
            if search.decision.result == "unknown"
        },
        "configurations_max": max((search.decision.configurations for search in searches), default=0),
        "decided_by": dict(sorted(Counter(search.decision.algorithm for search in searches).items())),
    }


def _proofs(searches: Sequence[Search], operations_max: int) -> dict[str, Any]:
    """The proofs, those of invalid keys first, and how many keys were decided without one."""
    kept: list[dict[str, Any]] = []
    left = operations_max
    decided = [search for search in searches if search.decision.result != "unknown"]
    decided.sort(key=lambda search: search.decision.result == "yes")
    proof: dict[str, Any] | None
    for search in decided:
        if (search.decision.result == "yes" and search.count > left) or not search.has_names:
            continue
        if search.decision.result == "yes":
            names = search.names_in_order()
            proof = None if names is None else proving.of_yes(search.keys, names)
        else:
            proof = proving.of_no(search.keys, search.subjects, search.decision, search.proof)
        if proof is not None:
            kept.append(proof)
            left -= len(proof.get("operations", ()))
    return {"proofs": kept, "decided_without_proof": len(decided) - len(kept)}


def _verdict(
    searches: Sequence[Search], witnesses: tuple[Witness, ...], details: dict[str, Any], seconds: float
) -> Verdict:
    result, summary = _conclusion(searches, witnesses, details["observations"])
    return Verdict(
        checker=NAME,
        result=result,
        summary=summary,
        model=NAME,
        witnesses=witnesses,
        details=details,
        seconds=round(seconds, 6),
    )


def _conclusion(
    searches: Sequence[Search], witnesses: Sequence[Witness], observed: int
) -> tuple[Result, str]:
    """`observed`: how many answers say something about a value."""
    wrong = sum(search.decision.result == "no" for search in searches)
    if witnesses:
        others = "" if wrong == 1 else f" ({wrong} keys in all are not linearizable)"
        return "invalid", f"not linearizable: {witnesses[0].summary}{others}"
    undecided = [search.decision.reason for search in searches if search.decision.result == "unknown"]
    return conclusion_without_witness(len(searches), undecided, observed)


def conclusion_without_witness(keys: int, undecided: Sequence[str], observed: int) -> tuple[Result, str]:
    """`undecided`: for each undecided key the reason."""
    if undecided:
        return "unknown", f"{counted(len(undecided), 'key')} of {keys} could not be decided: {undecided[0]}"
    if not observed:
        return "unknown", "no answer says anything about a value: there is nothing to judge"
    counts = f"{counted(keys, 'key')}, {counted(observed, 'observation')}"
    return "valid", f"for each key one order explains all answers ({counts})"
