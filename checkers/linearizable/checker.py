"""The checker: every key's operations against a sequential model, with a limit of time and one of memory.

Only single-key operations: linearizability is local, so each key is searched by itself. Which reads take part is
the caller's choice, by what the server said it was (role) and what was asked for (mode): a read that is promised
less is judged elsewhere.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from checkers.history.history import History, by_key
from checkers.history.operation import Operation
from checkers.linearizable.explanation import witness
from checkers.linearizable.models import MODELS, Model
from checkers.linearizable.search import Call, Found, Limits, search
from checkers.linearizable.shrinking import Subject, shrunk
from checkers.verdict import WITNESSES_MAX, Result, Verdict, Witness

Reads = Callable[[str | None, str | None], bool]

NAME = "linearizable"
NOT_JUDGED = frozenset({"dump"})
FOR_PROOFS = 0.2  # the part of the time limit that is kept for shrinking
FIRST_ROUND = 0.1  # the part of both limits that each key is given before any is given more


def promised_linearizable(role: str | None, mode: str | None) -> bool:
    """The reads that are judged by default.

    read-confirmed at the owner (or where no role is told), and linearizable ones wherever they were served.
    """
    return mode == "linearizable" or (role in ("owner", None) and mode in ("read-confirmed", None))


def check(
    history: History,
    *,
    model: str = "register",
    timeout_s: float = 30.0,
    memory_limit: int = 200_000,
    failed_cas_observes: bool = True,
    reads: Reads = promised_linearizable,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """Whether the operations of every key have an order that `model` allows within real time.

    `timeout_s` is for all keys together, `memory_limit` the number of configurations held at once (some 200
    bytes each). A key that met a limit is undecided: the verdict is unknown, unless another key is invalid.
    `failed_cas_observes`: whether a cas refused with "mismatch" surely saw a confirmed value other than `old`.
    Raises ModelError for an operation that the model does not know, KeyError for an unknown model.
    """
    started_s = clock()
    judged: Model = MODELS[model](failed_cas_observes=failed_cas_observes)
    groups, left_out = _groups(history, reads)
    searches = [_KeySearch(key, operations, _subjects(judged, operations)) for key, operations in groups]
    _search_all(judged, searches, started_s + timeout_s * (1 - FOR_PROOFS), memory_limit, clock)
    limits = Limits(started_s + timeout_s, memory_limit, clock)
    wrong = sorted((each for each in searches if each.found.result == "no"), key=_went_wrong)
    witnesses = tuple(_witness(judged, each, limits) for each in wrong[:WITNESSES_MAX])
    return _verdict(model, searches, witnesses, left_out, clock() - started_s)


@dataclass(slots=True)
class _KeySearch:
    """One key: all its operations, those that mean something to the model, and what was found so far."""

    key: str | None
    operations: Sequence[Operation]
    subjects: Sequence[Subject]
    found: Found = field(default_factory=lambda: Found("unknown", reason="not looked at"))

    @property
    def observed(self) -> int:
        """How many answers say something about the value."""
        return sum(
            subject.call.action.kind != "overwrite" and subject.call.complete is not None
            for subject in self.subjects
        )


def _groups(
    history: History, reads: Reads
) -> tuple[list[tuple[str | None, list[Operation]]], dict[str, int]]:
    """The operations to judge by key, and how many reads of which class are not judged here."""
    judged: list[Operation] = []
    left_out: Counter[str] = Counter()
    for operation in history.operations:
        if operation.f in NOT_JUDGED:
            continue
        if operation.f == "read" and operation.type == "ok" and not reads(operation.role, operation.mode):
            left_out[f"{operation.mode or 'no mode'} at {operation.role or 'unknown role'}"] += 1
        else:
            judged.append(operation)
    return list(by_key(judged).items()), dict(sorted(left_out.items()))


def _subjects(model: Model, operations: Iterable[Operation]) -> list[Subject]:
    subjects = []
    for operation in operations:
        action = model.action(operation)
        if action is not None:
            call = Call(action, operation.invoke_index, operation.returned_index)
            subjects.append(Subject(operation, call))
    return subjects


def _search_all(
    model: Model,
    searches: Sequence[_KeySearch],
    deadline_s: float,
    memory_limit: int,
    clock: Callable[[], float],
) -> None:
    """Look at every key with a small share of the limits, then at the undecided ones with all that is left."""
    for part in (FIRST_ROUND, 1.0):
        undecided = [each for each in searches if each.found.result == "unknown"]
        for position, each in enumerate(undecided):
            now_s = clock()
            share_s = part * (deadline_s - now_s) / (len(undecided) - position if part == 1.0 else 1)
            limits = Limits(now_s + max(share_s, 0.0), max(1, int(memory_limit * part)), clock)
            each.found = search(model, [subject.call for subject in each.subjects], limits)


def _went_wrong(searched: _KeySearch) -> int:
    """The event at which no order was left: what happened first is shown first."""
    assert searched.found.failing is not None
    return searched.subjects[searched.found.failing].call.complete or 0


def _witness(model: Model, searched: _KeySearch, limits: Limits) -> Witness:
    proof = shrunk(model, searched.subjects, searched.found, limits)
    return witness(proof, searched.key, searched.operations)


def _verdict(
    model: str,
    searches: Sequence[_KeySearch],
    witnesses: tuple[Witness, ...],
    left_out: dict[str, int],
    seconds: float,
) -> Verdict:
    result, summary = _conclusion(searches, witnesses)
    undecided = {str(each.key): each.found.reason for each in searches if each.found.result == "unknown"}
    details: dict[str, Any] = {
        "keys": len(searches),
        "operations": sum(len(each.subjects) for each in searches),
        "observations": sum(each.observed for each in searches),
        "keys_invalid": sorted(str(each.key) for each in searches if each.found.result == "no"),
        "keys_undecided": undecided,
        "reads_not_judged": left_out,
        "configurations_max": max((each.found.configurations for each in searches), default=0),
        "model": model,
    }
    return Verdict(
        checker=NAME,
        result=result,
        summary=summary,
        model=NAME,
        witnesses=witnesses,
        details=details,
        seconds=round(seconds, 6),
    )


def _conclusion(searches: Sequence[_KeySearch], witnesses: Sequence[Witness]) -> tuple[Result, str]:
    wrong = sum(each.found.result == "no" for each in searches)
    undecided = sum(each.found.result == "unknown" for each in searches)
    observed = sum(each.observed for each in searches)
    if witnesses:
        others = "" if wrong == 1 else f" ({wrong} keys in all are not linearizable)"
        return "invalid", f"not linearizable: {witnesses[0].summary}{others}"
    if undecided:
        reason = next(each.found.reason for each in searches if each.found.result == "unknown")
        return "unknown", f"{undecided} of {len(searches)} keys could not be decided: {reason}"
    if not observed:
        return "unknown", "no answer says anything about a value: there is nothing to judge"
    return (
        "valid",
        f"on each of {len(searches)} keys one order explains all answers ({observed} observations)",
    )
