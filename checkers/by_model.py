"""Any history by the name of what it is about: which checkers judge it, and what their verdicts weigh.

    from checkers import by_model
    judged = by_model.judge(history, "cas-register", promise="linearizable", timeout_s=10.0)
    judged.result, judged.violations, judged.strongest

A model says what the operations mean (`MODELS`); a promise says how much order was promised (`PROMISES`). A check of
less than the promise that fails is a *violation*; one of more than the promise is a *finding*, which is allowed yet
weaker than a reader may think. What a domain checker finds (something lost, a total that is wrong) is allowed by no
promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from checkers import linearizable
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.verdict import Result, Verdict, merged, run_safely

CONFIGURATION_BYTES = 200  # what the search holds of one configuration, roughly


@dataclass(frozen=True, slots=True)
class Limits:
    """What a judgement may cost: seconds for each check, and MiB."""

    timeout_s: float = 30.0
    memory_mib: float = 1024.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What operations mean. `f` names them; `linearizable` is the sequential model of `checkers.linearizable`."""

    summary: str
    f: frozenset[str]
    linearizable: str | None = None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODELS: dict[str, Model] = {
    "register": Model(
        summary="one value a key: read, write", f=_words("read write"), linearizable="register"
    ),
    "cas-register": Model(
        summary="one value a key: read, write, cas [old new]",
        f=_words("read write cas"),
        linearizable="register",
    ),
    "kv": Model(
        summary="one text a key, empty at first: get, put, append",
        f=_words("get put append"),
        linearizable="kv",
    ),
}
"""By the name that `--model` takes."""

PROMISES: dict[str, tuple[str, ...]] = {"linearizable": ("linearizable",)}
"""Strongest first: each with all that it implies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All verdicts on one history: what breaks the promise, what is merely weaker, the strongest that was satisfied."""

    model: str
    promise: str
    verdicts: tuple[Verdict, ...]
    violations: tuple[str, ...]
    strongest: str | None

    @property
    def result(self) -> Result:
        """Invalid if the promise is broken; unknown if what was promised could not be decided."""
        weighed = [verdict for verdict in self.verdicts if is_promised(verdict, self.promise)]
        return merged(verdict.result for verdict in weighed)


def is_promised(verdict: Verdict, promise: str) -> bool:
    """Whether a history that keeps `promise` passes that check."""
    return verdict.model not in PROMISES or verdict.model in PROMISES[promise]


def judge(
    history: History,
    model: str,
    *,
    promise: str = "linearizable",
    limits: Limits = Limits(),
    failed_cas_observes: bool = True,
) -> Judgement:
    """Every check of `model` over `history`. Raises KeyError for an unknown model or promise."""
    assert promise in PROMISES, promise
    checks = _checks(MODELS[model], limits, failed_cas_observes)
    verdicts = tuple(run_safely(check, history, name=name) for name, check in checks.items())
    return Judgement(
        model=model,
        promise=promise,
        verdicts=verdicts,
        violations=tuple(
            each.checker for each in verdicts if each.result == "invalid" and is_promised(each, promise)
        ),
        strongest=None,
    )


def _checks(
    model: Model, limits: Limits, failed_cas_observes: bool
) -> dict[str, Callable[[History], Verdict]]:
    checks: dict[str, Callable[[History], Verdict]] = {}
    if model.linearizable is not None:
        checks["linearizable"] = lambda history: linearizable.check(
            history,
            model=model.linearizable or "",
            timeout_s=limits.timeout_s,
            memory_limit=max(1, int(limits.memory_mib * (1 << 20) / CONFIGURATION_BYTES)),
            failed_cas_observes=failed_cas_observes,
        )
    return checks


def only_key(history: History, key: str) -> History:
    """The history with the operations of one key alone. Its lines keep their numbers."""
    operations = tuple(operation for operation in history.operations if operation.key == key)
    return replace(history, operations=operations)


# ---- guessing


def guess(history: History) -> str | None:
    """The model that the operations' names and values speak of; None if they speak of none."""
    names = {operation.f for operation in history.operations} - {"dump"}
    for belongs, model in _SIGNS:
        if belongs(names):
            found = model if isinstance(model, str) else model(history.operations)
            return found if found in MODELS else None
    return None


def _of_transactions(operations: Iterable[Operation]) -> str:
    words = {
        micro[0]
        for operation in operations
        if isinstance(operation.value, list)
        for micro in operation.value
        if isinstance(micro, list) and micro
    }
    return "append" if "append" in words else "rw-register"


def _of_reads(operations: Iterable[Operation]) -> str:
    """Reads and writes: of registers, unless a read shows more than one value."""
    for operation in operations:
        if operation.f == "read" and operation.type == "ok" and isinstance(operation.value, list):
            return (
                "long-fork" if operation.value and isinstance(operation.value[0], list) else "causal-reverse"
            )
    return "register"


def _of_adds(operations: Iterable[Operation]) -> str:
    """Things added: to a set if reads show a collection or if nothing is added twice, else to a counter."""
    shown = [each.value for each in operations if each.f == "read" and each.type == "ok"]
    if any(isinstance(value, list) for value in shown):
        rows = (row for value in shown if isinstance(value, list) for row in value)
        return "monotonic" if isinstance(next(rows, None), dict) else "set"
    added = [str(each.value) for each in operations if each.f == "add"]
    return "set" if not shown and len(set(added)) == len(added) else "counter"


Guess = str | Callable[[Iterable[Operation]], str]
_SIGNS: tuple[tuple[Callable[[set[str]], Any], Guess], ...] = (
    (lambda names: "txn" in names, _of_transactions),
    (lambda names: names & {"get", "put", "append"}, "kv"),
    (lambda names: names & {"enqueue", "dequeue", "drain"}, "queue"),
    (lambda names: "transfer" in names, "bank"),
    (lambda names: "generate" in names, "unique-ids"),
    (lambda names: "add" in names, _of_adds),
    (lambda names: "cas" in names, "cas-register"),
    (lambda names: names & {"read", "write"}, _of_reads),
)


def names_of(table: Mapping[str, object]) -> str:
    """The names of a table in a sentence."""
    return ", ".join(table)
