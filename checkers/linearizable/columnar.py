"""The checker for columns: the same verdict as `check`, without an object for each operation.

A key that is linearizable costs no objects at all. Of one that is not, objects are made for as many operations as it
takes to show why.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

from checkers.history import parquet
from checkers.history.line_kernels import ABSENT
from checkers.history.operation import Operation
from checkers.limits import Limits, OutOfTime, shielded, within
from checkers.linearizable import decide, many, recorded
from checkers.linearizable.checker import NAME, Reads, budget, check, for_a_proof, promised_linearizable
from checkers.linearizable.columns import of_registers
from checkers.linearizable.explanation import witness
from checkers.linearizable.models import Action, Register
from checkers.linearizable.proofs import of_no
from checkers.linearizable.recorded import Registers
from checkers.linearizable.search import Call, Found
from checkers.linearizable.search import Limits as Budget
from checkers.linearizable.search_kernels import NEVER, OBSERVE, OVERWRITE, REFUSE, UPDATE
from checkers.linearizable.shrinking import Proof, Subject, shrunk
from checkers.verdict import WITNESSES_MAX, Verdict, Witness

Array = Any  # numpy's
EXPLAINED = 50_000  # operations of a key up to which a no is explained


def check_parquet(
    path: Path,
    *,
    timeout_s: float | None = None,
    memory_limit: int | None = None,
    steps: int | None = None,
    failed_cas_observes: bool = True,
    reads: Reads = promised_linearizable,
) -> Verdict:
    """`check` of the registers in a history.parquet, as columns where that can be done. Raises what `check` raises."""
    options: dict[str, Any] = {
        "memory_limit": memory_limit,
        "steps": steps,
        "failed_cas_observes": failed_cas_observes,
    }
    with within(Limits(timeout_s)):
        registers = recorded.read(path, reads=reads, failed_cas_observes=failed_cas_observes)
        if registers is None:
            return check(parquet.read(path), reads=reads, **options)
        verdict = check_columns(registers, **options)
        if verdict.result != "invalid" or len(registers.key) > EXPLAINED:
            return verdict
        try:
            whole = check(parquet.read(path), reads=reads, **options)
        except OutOfTime:
            return verdict
        return whole if whole.result == "invalid" else verdict


def check_columns(
    registers: Registers,
    *,
    timeout_s: float | None = None,
    memory_limit: int | None = None,
    steps: int | None = None,
    failed_cas_observes: bool = True,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """Whether the calls on each register have an order. Limits as of `check`; the first no's have proofs."""
    started_s = clock()
    with within(Limits(timeout_s), clock=clock):
        limits = budget(memory_limit, steps)
        keys = _by_key(registers)
        found = _decided(registers, [rows for _, rows in keys], limits)
        wrong = [place for place, each in enumerate(found) if each.result == "no"]
        wrong.sort(key=lambda place: int(registers.complete[keys[place][1][found[place].failing]]))
        wrong, limits = wrong[:WITNESSES_MAX], for_a_proof(limits, len(wrong[:WITNESSES_MAX]))
        shown = [
            _shown(registers, keys[place][1], registers.keys[keys[place][0]], found[place], limits)
            for place in wrong
        ]
        with shielded():
            names = [str(registers.keys[key]) for key, _ in keys]
            details = _details(registers, names, found) | {"failed_cas_observes": failed_cas_observes}
            details |= {"proofs": [proof for _, proof in shown if proof is not None]}
            details |= {
                "decided_without_proof": len(keys) - len(details["proofs"]) - len(details["keys_undecided"])
            }
            return _verdict(details, tuple(each for each, _ in shown), clock() - started_s)


def _by_key(registers: Registers) -> list[tuple[int, Array]]:
    """Every key that has calls, with its rows."""
    order = numpy.argsort(registers.key, kind="stable")
    bounds = numpy.searchsorted(registers.key[order], numpy.arange(len(registers.keys) + 1)).tolist()
    return [
        (key, order[first:end]) for key, (first, end) in enumerate(itertools.pairwise(bounds)) if first < end
    ]


def _decided(registers: Registers, rows: list[Array], limits: Budget) -> list[Found]:
    """The result for each key. Keys that the time limit cuts off are undecided."""
    found = [Found("unknown", reason="not looked at") for _ in rows]
    try:
        _decide(registers, rows, limits, found)
    except OutOfTime as over:
        return [each if each.is_decided else Found("unknown", reason=str(over)) for each in found]
    return found


def _decide(registers: Registers, rows: list[Array], limits: Budget, found: list[Found]) -> None:
    """Find, for all small keys at once, which have an order; for the rest one by one. Raises OutOfTime."""
    small = [place for place, each in enumerate(rows) if len(each) <= many.CALLS_MAX]
    if len(small) > 1:
        bounds = numpy.cumsum([0, *(len(rows[place]) for place in small)], dtype=numpy.int64)
        order = numpy.concatenate([rows[place] for place in small])
        answers = many.decide(many.regrouped(registers, order, bounds), limits).tolist()
        for place, (answer, most) in zip(small, answers, strict=True):
            if answer == 1:
                found[place] = Found("yes", configurations=most, algorithm="compiled search")

    def decided(place: int, share: Budget, way: decide.Way) -> bool:
        if not found[place].is_decided:
            found[place] = decide.decide_columns(of_registers(registers, rows[place]), share, way=way)
        return found[place].is_decided

    decide.in_rounds(len(rows), sum(map(len, rows)), limits, decided)


def _shown(
    registers: Registers, rows: Array, key: str | None, found: Found, limits: Budget
) -> tuple[Witness, dict[str, Any] | None]:
    """The error of a key, in objects, and its proof."""
    assert found.failing is not None
    failing = int(rows[found.failing])
    try:
        if found.core is not None:
            rows = rows[numpy.array(found.core)]
            place = found.core.index(found.failing)
            found = Found("no", place, 1, core=range(len(rows)), algorithm=found.algorithm)
        if len(rows) <= EXPLAINED:
            subjects = [_subject(registers, int(row), key) for row in rows]
            proof = shrunk(Register(), subjects, found, limits)
            operations = [subject.operation for subject in subjects]
            return witness(Register(), proof, key, operations), of_no((key,), subjects, found, proof)
    except OutOfTime:  # an anomaly stays one: it is shown without what explains it
        pass
    with shielded():
        alone = _subject(registers, failing, key)
        return witness(Register(), Proof((alone,), alone, None, None), key, (alone.operation,)), None


_F = {OBSERVE: "read", REFUSE: "cas", OVERWRITE: "write", UPDATE: "cas"}


def _subject(registers: Registers, row: int, key: str | None) -> Subject:
    """The row as an operation, with event indexes for times."""
    invoke, complete = int(registers.invoke[row]), int(registers.complete[row])
    kind = int(registers.kind[row])
    old, new = (None if value == ABSENT else int(value) for value in (registers.old[row], registers.new[row]))
    ended = None if complete >= NEVER else complete
    values = {OBSERVE: (old,), REFUSE: (old,), OVERWRITE: (new,), UPDATE: (old, new)}[kind]
    operation = Operation(
        type="info" if ended is None else "fail" if kind == REFUSE else "ok",
        process=-1,
        f=_F[kind],
        key=key,
        value=[old, new] if _F[kind] == "cas" else values[0],
        invoke_index=invoke,
        invoke_ns=invoke,
        complete_index=ended,
        complete_ns=ended,
        error="mismatch" if kind == REFUSE else None,
    )
    what, word = decide.ACTIONS[kind]
    return Subject(operation, Call(Action(what, word, values), invoke, ended))


def _details(registers: Registers, names: list[str], found: list[Found]) -> dict[str, Any]:
    observations = int(((registers.complete < NEVER) & (registers.kind != OVERWRITE)).sum())
    return {
        "keys": len(names),
        "operations": len(registers.key),
        "observations": observations,
        "vacuous": not observations,
        "keys_invalid": sorted(name for name, each in zip(names, found, strict=True) if each.result == "no"),
        "keys_undecided": {
            name: each.reason for name, each in zip(names, found, strict=True) if each.result == "unknown"
        },
        "configurations_max": max((each.configurations for each in found), default=0),
        "decided_by": dict(sorted(Counter(each.algorithm for each in found).items())),
        "reads_not_judged": registers.reads_not_judged,
        "model": "register",
    }


def _verdict(details: dict[str, Any], witnesses: tuple[Witness, ...], seconds: float) -> Verdict:
    undecided, keys = details["keys_undecided"], details["keys"]
    if witnesses:
        result, summary = "invalid", f"not linearizable: {witnesses[0].summary}"
    elif undecided:
        reason = next(iter(undecided.values()))
        result, summary = "unknown", f"{len(undecided)} of {keys} keys could not be decided: {reason}"
    elif not details["observations"]:
        result, summary = "unknown", "no answer says anything about a value: there is nothing to judge"
    else:
        observed = details["observations"]
        result, summary = (
            "valid",
            f"on each of {keys} keys one order explains all answers ({observed} observations)",
        )
    return Verdict(
        checker=NAME, result=result, summary=summary, model=NAME, witnesses=witnesses, details=details,  # type: ignore[arg-type]  # one of the three
        seconds=round(seconds, 6),
    )  # fmt: skip
