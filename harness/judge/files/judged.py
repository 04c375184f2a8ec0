"""From a history file to a verdict in the form of verdict.json.

Such a file has no plan, no promise and no evidence of faults. So the caller names the promise (linearizable by
default), and the evidence is that operations succeeded and that the file is whole. The history knows the tool that
wrote it, and what that implies (`History.failed_cas_observes`).
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from checkers import by_model
from checkers.by_model import Judgement, OfKeys
from checkers.guessing import LOOSER, guess
from checkers.history import HistoryError, ModelError
from checkers.history.foreign import edn, given, read
from checkers.history.history import History
from checkers.history.start import Start
from checkers.limits import Limits
from checkers.models import ALIASES, MODELS, is_promised, promise_of, promises
from checkers.proofs.meaning import Terms
from harness.errors import StoreError, WrongUse
from harness.judge import EXIT_CODES, FORMAT, VERSION, Outcome, outcome_of
from harness.judge.causes import headline
from harness.judge.files.jepsen_results import said_by_jepsen
from harness.judge.words import not_decided, shortest


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The user's options. None: guess the model, judge all keys, read a failed cas by the kind of the file."""

    path: Path
    model: str | None = None
    promise: str | None = None
    key: str | None = None
    limits: Limits = field(default_factory=Limits)
    failed_cas_observes: bool | None = None
    initial: str | None = None
    of_keys: OfKeys = field(default_factory=OfKeys)
    order_file: Path | None = None


def recognized(path: Path, initial: str | None = None) -> History:
    """The history in the file; StoreError in one line if there is none, WrongUse for an unreadable `initial`."""
    try:
        if initial is not None:
            given(initial)
    except HistoryError as error:
        raise WrongUse(str(error)) from error
    try:
        return read(path, initial=initial)
    except HistoryError as error:
        raise StoreError(f"{path}: {error}") from error
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error


def asked_history(asked: Asked, history: History) -> History:
    """The part of the history to judge: all of it, or one key. Raises WrongUse for a key that it does not have."""
    if asked.key is None:
        return history
    chosen = history.only({asked.key})
    if not chosen.operations:
        keys = sorted({str(operation.key) for operation in history.operations if operation.key is not None})
        known = ", ".join(keys[:8]) + (", …" if len(keys) > 8 else "")
        raise WrongUse(
            f"--key {asked.key!r} is not in {asked.path}: it has {known or 'operations without keys'}"
        )
    return chosen


def judged(asked: Asked, history: History) -> dict[str, Any]:
    """The content of verdict.json for the history. WrongUse for an unknown model or promise, or a wrong `initial`."""
    model = _model(asked, history)
    promise = _promise(asked, model, history)
    try:
        by_model.check_keys(asked.of_keys, model, history)
    except ModelError as error:
        raise WrongUse(f"an order of keys: {error}") from error
    try:
        judgement = by_model.judge(
            history,
            model,
            promise=promise,
            limits=asked.limits,
            failed_cas_observes=asked.failed_cas_observes,
            of_keys=asked.of_keys,
        )
    except ModelError as error:
        raise WrongUse(f"--initial: {error}") from error
    document = _document(asked, history, judgement, _if_another_model(asked, history, judgement))
    said = said_by_jepsen(asked.path)
    return document if said is None else {**document, **said.document()}


def _if_another_model(asked: Asked, history: History, judgement: Judgement) -> str:
    """The looser model with which the anomaly would vanish, where the model was guessed."""
    if asked.model is not None or not judgement.violations or judgement.model not in LOOSER:
        return ""
    model, allows = LOOSER[judgement.model]
    looser = by_model.judge(
        history, model, limits=asked.limits, failed_cas_observes=asked.failed_cas_observes
    )
    return f" If {allows}, say --model {model}." if looser.result == "valid" else ""


def judged_in_file(asked: Asked, history: History, verdict: Mapping[str, Any]) -> Mapping[str, Terms]:
    """The terms of the checks of `judged`, by their names. `verdict`: for the model's name, which may be a guess."""
    model = str(verdict["run"]["workload"])
    promise = _promise(asked, model, history)
    observes = asked.failed_cas_observes
    return by_model.judged_by(
        model,
        promise,
        failed_cas_observes=history.failed_cas_observes if observes is None else observes,
        of_keys=asked.of_keys,
    )


def _promise(asked: Asked, model: str, history: History) -> str:
    """The promise to judge by, under its own name; the strictest one if none is asked for."""
    try:
        return promise_of(model, asked.promise or None, history)
    except KeyError as error:
        raise WrongUse(f"--promise {error.args[0]}") from error


def _model(asked: Asked, history: History) -> str:
    model = guess(history) if asked.model is None else ALIASES.get(asked.model, asked.model)
    if model is None:
        names = ", ".join(sorted(history.names)[:8])
        raise WrongUse(
            f"cannot tell what {asked.path} is about ({names}): give --model, one of {', '.join(MODELS)}"
        )
    if model not in MODELS:
        raise WrongUse(f"--model {model!r} is not known: expected one of {', '.join(MODELS)}")
    if not promises(model, history):
        raise WrongUse(
            f"--model {model} needs real time, which {asked.path} has not: give rw-register or append"
        )
    unknown = left_out(history, model)
    if unknown and not (history.is_foreign and history.names & MODELS[model].f == {"txn"}):
        raise WrongUse(
            f"--model {model} knows {', '.join(sorted(MODELS[model].f))}, and {asked.path} has "
            f"{', '.join(sorted(unknown)[:8])}: give another --model"
        )
    return model


def left_out(history: History, model: str) -> set[str]:
    """The names of operations that the model does not know. Beside transactions they are not judged."""
    return history.names - MODELS[model].f - {"dump"}


def _document(asked: Asked, history: History, judgement: Judgement, hint: str) -> dict[str, Any]:
    evidence = _evidence(history, left_out(history, judgement.model))
    outcome = outcome_of([judgement.result], evidence["missing"])
    subject = "" if asked.key is None else f"Of the key {asked.key} alone: "
    return {
        "format": FORMAT,
        "version": VERSION,
        "outcome": outcome,
        "exit_code": EXIT_CODES[outcome],
        "sentence": f"{subject}{_sentence(outcome, judgement, evidence)}{hint}",
        "promise": {
            promised.checker: promised.model
            for promised in judgement.verdicts
            if promised.model and is_promised(promised, judgement.promise)
        },
        "violations": list(judgement.violations),
        "findings": _findings(judgement),
        "strongest": judgement.strongest,
        "evidence": evidence,
        "checks": [verdict.to_json() for verdict in judgement.verdicts],
        "repeat": {"command": _command(asked, judgement), "repeats": "outcome"},
        "run": {
            "system": history.header.system,
            "cluster": history.origin,
            "workload": judgement.model,
            "seed": None,
        },
        "file": str(asked.path),
    }


def _findings(judgement: Judgement) -> list[dict[str, str]]:
    findings = [
        {"checker": verdict.checker, "summary": str(finding)}
        for verdict in judgement.verdicts
        for finding in verdict.details.get("findings", ())
    ]
    weaker = [
        {"checker": verdict.checker, "summary": verdict.summary}
        for verdict in judgement.verdicts
        if verdict.result == "invalid" and verdict.checker not in judgement.violations
    ]
    start = [{"checker": "start", "summary": hint} for hint in (_unless(judgement.supposed).strip(),) if hint]
    return start + weaker + findings


def _evidence(history: History, unjudged: set[str]) -> dict[str, Any]:
    counts = history.outcomes
    beside = (
        Counter(operation.f for operation in history.operations if operation.f in unjudged)
        if unjudged
        else Counter()
    )
    return {
        "ok": counts["ok"],
        "fail": counts["fail"],
        "info": counts["info"],
        "faults": [
            {"id": fault.id, "name": fault.name, "took_effect": fault.took_effect} for fault in history.faults
        ],
        "torn": history.torn,
        **({"left_out": dict(beside)} if beside else {}),
        "missing": missing_of(counts["ok"], history.torn),
    }


def missing_of(ok: int, torn: str | None) -> list[str]:
    """Why a file with `ok` operations that succeeded is inconclusive, in words."""
    none = [] if ok else ["no operation succeeded"]
    return none if torn is None else [*none, f"the file is torn: {torn}"]


def nothing_of(missing: Iterable[str]) -> str:
    """The sentence of an inconclusive file."""
    return f"Nothing can be said of this file: {'; '.join(missing)}."


def _sentence(outcome: Outcome, judgement: Judgement, evidence: Mapping[str, Any]) -> str:
    match outcome:
        case "anomaly":
            wrong = [
                verdict.to_json() for verdict in judgement.verdicts if verdict.checker in judgement.violations
            ]
            return headline({"checks": wrong}, has_times=False) + _unless(judgement.supposed)
        case "inconclusive":
            return nothing_of(evidence["missing"])
        case "unknown":
            return not_decided(judgement.verdicts)
        case "valid":
            operations = "operation" if evidence["ok"] == 1 else "operations"
            return f"All that clients saw was allowed: {evidence['ok']:,} {operations} succeeded."


def _unless(start: Start) -> str:
    """The start of the store with which the anomaly would vanish, where the file does not give the start."""
    return (
        ""
        if start.is_plain
        else f" If the store began with {start}, say --initial {shlex.quote(edn.start(start))}."
    )


def _command(asked: Asked, judgement: Judgement) -> str:
    words = ["./qsync", "check", str(asked.path), "--model", judgement.model]
    if asked.promise is not None:
        words += ["--promise", asked.promise]
    if asked.key is not None:
        words += ["--key", asked.key]
    if asked.limits.timeout_s is not None:
        words += ["--timeout", shortest(asked.limits.timeout_s)]
    if asked.limits.memory_mib is not None:
        words += ["--memory", shortest(asked.limits.memory_mib)]
    if asked.limits.steps is not None:
        words += ["--budget", str(asked.limits.steps)]
    if asked.failed_cas_observes is not None:
        words += ["--failed-cas", "observes" if asked.failed_cas_observes else "says-nothing"]
    if asked.initial is not None:
        words += ["--initial", asked.initial]
    words += ["--linearizable-keys"] if asked.of_keys.linearizable_keys else []
    words += ["--sequential-keys"] if asked.of_keys.sequential_keys else []
    words += ["--wfr-keys"] if asked.of_keys.wfr_keys else []
    words += [] if asked.order_file is None else ["--transaction-order", str(asked.order_file)]
    return shlex.join(words)
