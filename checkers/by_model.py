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

from checkers import linearizable, sessions
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
    """What operations mean. `f` names them; `linearizable` is the sequential model of `checkers.linearizable`.

    `weaker`: whether `checkers.sessions` can say what is left if that does not hold.
    """

    summary: str
    f: frozenset[str]
    linearizable: str | None = None
    weaker: bool = False


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODELS: dict[str, Model] = {
    "register": Model(
        summary="one value a key: read, write",
        f=_words("read write"),
        linearizable="register",
        weaker=True,
    ),
    "cas-register": Model(
        summary="one value a key: read, write, cas [old new]",
        f=_words("read write cas"),
        linearizable="register",
        weaker=True,
    ),
    "kv": Model(
        summary="one text a key, empty at first: get, put, append",
        f=_words("get put append"),
        linearizable="kv",
    ),
}
"""By the name that `--model` takes."""

PROMISES: dict[str, tuple[str, ...]] = {
    "linearizable": ("linearizable", *sessions.GUARANTEES),
    sessions.GUARANTEES[0]: sessions.GUARANTEES,
    **{guarantee: (guarantee,) for guarantee in sessions.GUARANTEES[1:]},
}
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
    verdicts = _verdicts(MODELS[model], history, limits, failed_cas_observes)
    return Judgement(
        model=model,
        promise=promise,
        verdicts=verdicts,
        violations=tuple(
            each.checker for each in verdicts if each.result == "invalid" and is_promised(each, promise)
        ),
        strongest=strongest(history, model, verdicts, limits, failed_cas_observes),
    )


def _verdicts(
    model: Model, history: History, limits: Limits, failed_cas_observes: bool
) -> tuple[Verdict, ...]:
    verdicts: list[Verdict] = []
    if model.linearizable is not None:
        reads = linearizable.promised_linearizable
        verdicts.append(_linearizable(model, history, limits, failed_cas_observes, reads))
        if model.weaker and verdicts[0].result != "valid":
            verdicts += _weaker(history, limits, reads)
    return tuple(verdicts)


def _linearizable(
    model: Model, history: History, limits: Limits, failed_cas_observes: bool, reads: sessions.Reads
) -> Verdict:
    return run_safely(
        linearizable.check,
        history,
        name="linearizable",
        model=model.linearizable,
        timeout_s=limits.timeout_s,
        memory_limit=max(1, int(limits.memory_mib * (1 << 20) / CONFIGURATION_BYTES)),
        failed_cas_observes=failed_cas_observes,
        reads=reads,
    )


def _weaker(history: History, limits: Limits, reads: sessions.Reads) -> list[Verdict]:
    """Every session guarantee, and how stale reads were; coherence implies the others."""

    def kept(guarantee: str) -> Verdict:
        return run_safely(
            sessions.check,
            history,
            name=guarantee,
            guarantee=guarantee,
            reads=reads,
            timeout_s=limits.timeout_s,
        )

    first, *others = sessions.GUARANTEES
    verdicts = [kept(first)]
    if verdicts[0].result != "valid":
        verdicts += [kept(other) for other in others]
    return [*verdicts, run_safely(sessions.check_staleness, history, name="staleness", reads=reads)]


def strongest(
    history: History,
    model: str = "register",
    verdicts: Iterable[Verdict] = (),
    limits: Limits = Limits(),
    failed_cas_observes: bool = True,
) -> str | None:
    """The strongest model that all reads but dirty ones satisfied, wherever they were served; "none" if none did.

    `verdicts` are taken where they already say it. None if nothing can be said of such a model.
    """
    asked = MODELS[model]
    if asked.linearizable is None or not asked.weaker:
        return None
    known = {verdict.checker: verdict for verdict in verdicts}
    left_out = known["linearizable"].details.get("reads_not_judged", {}) if "linearizable" in known else None
    if left_out is None or any(not words.startswith("dirty") for words in left_out):
        reads = sessions.all_but_dirty
        first = _linearizable(asked, history, limits, failed_cas_observes, reads)
        weaker = [] if first.result == "valid" else _weaker(history, limits, reads)
        known = {verdict.checker: verdict for verdict in (first, *weaker)}
    return strongest_of({name: verdict.result for name, verdict in known.items()})


def strongest_of(results: Mapping[str, Result]) -> str:
    """The strongest name in a table of results by model, or all of the strongest that none of the others implies."""
    undecided = [name for name in PROMISES if results.get(name) == "unknown"]
    if results.get("monotonic-reads") == "invalid":  # the others are seen through readers that go forward
        undecided = [name for name in undecided if name not in sessions.THROUGH_READERS]
    satisfied = [name for name in PROMISES if results.get(name) == "valid"]
    implied = {weaker for name in satisfied for weaker in PROMISES[name][1:]}
    names = " and ".join(name for name in satisfied if name not in implied)
    if not names:
        return "not decided" if undecided else "none"
    return f"{names} ({', '.join(undecided)} not decided)" if undecided else names


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
