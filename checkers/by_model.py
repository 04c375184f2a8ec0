"""Any history by the name of what it is about: which checkers judge it, and what their verdicts weigh.

    from checkers import by_model
    judged = by_model.judge(history, "cas-register", promise="linearizable")
    judged.result, judged.violations, judged.strongest

A model says what the operations mean (`checkers.models`); a promise says how much order was promised. A check of no
more than the promise that fails is a *violation*; one of more than the promise is a *finding*, which is allowed yet
weaker than a reader may think. No promise allows the violations of a domain checker (a lost element, a wrong total).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from checkers import domain, linearizable
from checkers.domain import written
from checkers.history.errors import ModelError
from checkers.history.foreign.frames import history_in
from checkers.history.history import History
from checkers.history.start import PLAIN_START, Start, supposed
from checkers.limits import NO_LIMITS, Limits
from checkers.linearizable.table import MODELS as SEQUENTIAL
from checkers.models import (
    ALIASES,
    DOMAIN,
    MODELS,
    OF_ETCD,
    SHOW_NO_EFFECT,
    Model,
    is_promised,
    promise_of,
)
from checkers.proofs.meaning import Terms
from checkers.strongest import linearizable_by, observes, satisfied, weaker_by, within_memory, written_by
from checkers.verdict import Result, Verdict, merged, run_safely


@dataclass(frozen=True, slots=True, kw_only=True)
class OfKeys:
    """What is promised of each register by itself, beside an isolation model; see `transactional.check`.

    `wfr_keys`: a transaction's writes follow its reads. It is there for users of Elle: every model promises it.
    """

    linearizable_keys: bool = False
    sequential_keys: bool = False
    wfr_keys: bool = False
    transaction_order: Mapping[int, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.linearizable_keys or self.sequential_keys or self.wfr_keys or bool(self.transaction_order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All verdicts on one history, the violations of the promise, and the strongest model that was satisfied."""

    model: str
    promise: str
    verdicts: tuple[Verdict, ...]
    violations: tuple[str, ...]
    strongest: str | None
    torn: str | None = None
    """The loss of a torn file: then the result is never valid."""
    supposed: Start = PLAIN_START
    """Of an invalid foreign history that does not say how it began: the start that its first reads suggest, and that
    explains something that is violated."""

    @property
    def result(self) -> Result:
        """Invalid if the promise is broken; unknown if what was promised could not be decided, or the file is torn."""
        weighed = [verdict for verdict in self.verdicts if is_promised(verdict, self.promise)]
        result = merged(verdict.result for verdict in weighed)
        return "unknown" if result == "valid" and self.torn is not None else result


def judge(
    history: History,
    model: str,
    *,
    promise: str | None = None,
    limits: Limits = NO_LIMITS,
    failed_cas_observes: bool | None = None,
    initial: Any = None,
    of_keys: OfKeys = OfKeys(),
) -> Judgement:
    """Every check of `model` over `history`. Raises KeyError for an unknown model or promise (see `promise_of`).

    `promise`: None is the strictest that is usual, linearizable or strict-serializable. `failed_cas_observes`: whether
    a refused cas surely saw a value other than the one it expected, and a dequeue refused with "empty" no element;
    None: only in our own records. `initial`: what each object held before, or a `Start`; None: what the history says.
    `limits` are for all checks together. `of_keys`: for transactions over registers. Raises ModelError for
    a start value that the model cannot have, or for `of_keys` of a different model.
    A file or a data frame may stand in the place of the history.
    """
    history, model = history_in(history), ALIASES.get(model, model)
    if model not in MODELS:
        raise KeyError(f"{model!r} is not known: expected one of {', '.join(MODELS)}")
    if initial is not None:
        history = history.starting_at(initial)
    check_keys(of_keys, model, history)
    with within_memory(limits):
        return _judgement(
            _begun(history, model),
            model,
            promise_of(model, promise, history),
            observes(history, failed_cas_observes),
            of_keys,
        )


def check_keys(of_keys: OfKeys, model: str, history: History) -> None:
    """Raises ModelError for a promise of single keys that the model cannot have, or an order of what is not there."""
    if of_keys and MODELS[model].transactional != "rw-register":
        raise ModelError(expected="rw-register for an order of single keys", came=model, index=None)
    if not of_keys.transaction_order:
        return
    there = {event for each in history.operations for event in (each.invoke_index, each.complete_index)}
    for event in of_keys.transaction_order:
        if event not in there:
            raise ModelError(
                expected="the index of an operation in the transaction order", came=str(event), index=None
            )


def _begun(history: History, model: str) -> History:
    """The history with a start that the model can have. Raises ModelError."""
    asked, start = MODELS[model], history.start
    if not start.is_plain and not _has_start(asked):
        raise ModelError(expected=f"no start value for {model}", came=str(start), index=None)
    for value in (start.value, *start.by_key.values()):
        if asked.linearizable is not None:
            SEQUENTIAL[asked.linearizable]().beginning({None: value})
        elif asked.transactional == "append":
            SEQUENTIAL["list"]().beginning({None: value})
    return history


def _has_start(model: Model) -> bool:
    return model.linearizable is not None or model.transactional is not None


def _judgement(
    history: History, model: str, promised: str, failed_cas_observes: bool, of_keys: OfKeys
) -> Judgement:
    asked = MODELS[model]
    verdicts = (
        *_of_transactions(asked, history, promised, of_keys),
        *_of_operations(asked, history, promised, failed_cas_observes),
        *_of_domain(asked, history, promised, failed_cas_observes),
    )
    violations = tuple(
        verdict.checker
        for verdict in verdicts
        if verdict.result == "invalid" and is_promised(verdict, promised)
    )
    is_told = history.start is not PLAIN_START or not history.has_real_time  # without time nothing is first
    is_open = bool(violations) and history.is_foreign and not is_told and _has_start(asked)
    found = Judgement(
        model=model,
        promise=promised,
        verdicts=verdicts,
        violations=violations,
        torn=history.torn,
        strongest=satisfied(history, model, verdicts, failed_cas_observes),
    )
    if not is_open:
        return found
    return replace(found, supposed=_explaining(found, history, failed_cas_observes, of_keys))


def _explaining(found: Judgement, history: History, failed_cas_observes: bool, of_keys: OfKeys) -> Start:
    """The start that the first reads suggest, if anything that is violated is not violated from it."""
    start = supposed(history.operations)
    if start.is_plain or not _may_explain(start, found, history):
        return PLAIN_START
    again = _judgement(history.starting_at(start), found.model, found.promise, failed_cas_observes, of_keys)
    return start if _shown(found) - _shown(again) else PLAIN_START


def _may_explain(start: Start, found: Judgement, history: History) -> bool:
    """Whether the start changes an answer that a witness rests on. A witness of `NO_ORDER` rests only on the operations
    that it names; any other may rest on all of them.
    """
    from checkers.transactional.anomalies import NO_ORDER

    shown = _shown(found)
    named = {event for _, _, events in shown for event in events}
    return any(rule != NO_ORDER for _, rule, _ in shown) or start.may_show(
        each for each in history.operations if each.invoke_index in named
    )


def _shown(judgement: Judgement) -> set[tuple[str, str, tuple[int, ...]]]:
    """What is violated, by its rules and events."""
    return {
        (verdict.checker, witness.rule, witness.events)
        for verdict in judgement.verdicts
        if verdict.checker in judgement.violations
        for witness in verdict.witnesses
    }


def _of_transactions(model: Model, history: History, promise: str, of_keys: OfKeys) -> Iterable[Verdict]:
    if model.transactional is None:
        return
    from checkers import transactional
    from checkers.transactional.chosen import left_out, selected

    chosen = selected(history, linearizable.promised_linearizable)
    others = left_out(history, chosen)
    verdict = run_safely(
        transactional.check,
        chosen if others else history,
        name="transactional",
        workload=model.transactional,
        model=promise,
        linearizable_keys=of_keys.linearizable_keys,
        sequential_keys=of_keys.sequential_keys,
        transaction_order=of_keys.transaction_order or None,
    )
    if not others:
        yield verdict
        return
    yield replace(verdict, details={**verdict.details, "reads_not_judged": others})
    yield run_safely(written.check, history, name=written.NAME, model=model.transactional)


def _of_operations(
    model: Model, history: History, promise: str, failed_cas_observes: bool
) -> Iterable[Verdict]:
    if model.linearizable is None:
        return
    reads = linearizable.promised_linearizable
    verdict = linearizable_by(model, history, failed_cas_observes, reads)
    yield verdict
    if model.weaker and verdict.result != "valid":
        yield from weaker_by(history, reads)
    is_implied = promise == "linearizable"
    if model.linearizable in written.MODELS and not (is_implied and verdict.result == "invalid"):
        # Of every read: also of those that linearizability does not judge.
        least = written_by(model, history)
        if not is_implied or least.result == "invalid":
            yield least


def _of_domain(model: Model, history: History, promise: str, failed_cas_observes: bool) -> Iterable[Verdict]:
    strict = promise == "linearizable"
    for name in model.domain:
        if name in OF_ETCD and not history.names & OF_ETCD[name]:
            continue
        yield run_safely(DOMAIN[name], history, strict, failed_cas_observes, name=name)
    has_effects = SHOW_NO_EFFECT.isdisjoint(model.domain)
    if has_effects and history.outcomes["fail"]:
        honest = run_safely(domain.rollback_honesty.check, history, name=domain.rollback_honesty.NAME)
        if honest.details.get("failed"):
            yield honest
    if has_effects and model.transactional is None and history.has_finals:
        durable = run_safely(domain.durability.check, history, name=domain.durability.NAME)
        if durable.details.get("judged"):
            yield durable


def judged_by(
    model: str, promise: str, *, failed_cas_observes: bool, of_keys: OfKeys = OfKeys()
) -> Mapping[str, Terms]:
    """The questions that `judge` answers, by the names of its verdicts: input for the verifiers of the proofs."""
    asked, questions = MODELS[model], {}
    if asked.transactional is not None:
        questions["transactional"] = Terms(
            model=promise,
            reads=linearizable.promised_linearizable,
            key_order=2 if of_keys.linearizable_keys else int(of_keys.sequential_keys),
            ranks=of_keys.transaction_order,
        )
    if asked.linearizable is not None:
        questions["linearizable"] = Terms(
            model=asked.linearizable,
            reads=linearizable.promised_linearizable,
            failed_cas_observes=failed_cas_observes,
        )
    return questions
