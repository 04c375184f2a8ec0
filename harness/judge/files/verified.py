"""The proofs in a verdict, checked by code that shares none with the checkers.

Proofs of objects are checked by `checkers.proofs.verify`, of transactions by `checkers.proofs.verify_isolation`, of
cuts by `checkers.cuts.verify_levels`, and of the TxLog's logs by `checkers.logs.txlog.verify`.

A refused proof turns "valid" into "unknown". An anomaly stays one, because an unknown never hides an anomaly; the
verdict says that its proof was refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from checkers.history.history import History
from checkers.limits import until_ended
from checkers.proofs import verify, verify_isolation
from checkers.proofs.meaning import Terms
from checkers.verdict import Verdict, Verified
from harness.judge import EXIT_CODES, Case
from harness.judge.audit import settled_history

Verifier = Callable[[History, Verdict], Verified | None]
"""None if the verdict has no proofs."""


def add_to(
    verdict: dict[str, Any],
    history: History,
    verifiers: Mapping[str, Verifier],
    settled: Callable[[], History | None] = lambda: None,
) -> None:
    """Check the proofs, and add the result as "verified" to the verdict; nothing if no check was decided.

    `verifiers`: by the name of a check. Their questions come from the promise, never from the verdict. `settled` gives
    the history that the checks below "settled" judged; of their proofs the refused ones are told.
    """
    stopped: list[str] = []

    def verified(checks: Iterable[dict[str, Any]], about: History) -> list[Verified]:
        results = []
        for check in checks:
            if check["checker"] in verifiers and check["result"] != "unknown":
                question = partial(_verify, verifiers[check["checker"]], about, check)
                result = until_ended(question, stopped.append)
                results += [] if result is None else [result]
        return results

    results = verified(verdict["checks"], history)
    again = (verdict.get("settled") or {}).get("checks", ())
    if again and (settled_history := settled()) is not None:
        results += [
            Verified(
                0,
                tuple(f"with the outcomes that only the logs know: {why}" for why in each.refused),
                (),
                True,
            )
            for each in verified(again, settled_history)
            if each.refused
        ]
    if stopped and verdict["outcome"] == "valid":
        _take_back(verdict, f"the proofs were not all checked: {stopped[0]}")
    if not results:
        return
    refused = [reason for result in results for reason in result.refused]
    verdict["verified"] = {
        "accepted": sum(result.accepted for result in results),
        "refused": refused,
        "without": [name for result in results for name in result.without],
        "holds": not stopped and all(result.holds for result in results),
    }
    if refused and verdict["outcome"] == "valid":
        _take_back(verdict, f"a proof was refused: {refused[0]}")


def _verify(verifier: Verifier, history: History, check: dict[str, Any]) -> Verified | None:
    try:
        return verifier(history, Verdict.from_json(check))
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # a stored proof may be anything
        why = f"{check['checker']}: its proofs cannot be read: {type(error).__name__}: {error}"
        return Verified(0, (why,), (), holds=False)


def _take_back(verdict: dict[str, Any], why: str) -> None:
    verdict["outcome"], verdict["exit_code"] = "unknown", EXIT_CODES["unknown"]
    verdict["sentence"] = f"Not decided: {why}."


def settled_in_run(case: Case) -> History | None:
    """The history of the run with the outcomes that only its nodes' logs know; None without logs."""
    return None if case.log_rules is None else settled_history(case.logs, case.log_rules, case.history)


def judged_in_run(case: Case) -> dict[str, Terms]:
    """The promises that a run is judged by, by the names of their checks."""
    return {check.name: check.judged for check in case.checks if check.judged is not None}


def verifiers_in_run(case: Case) -> dict[str, Verifier]:
    """The verifiers of a run, by the names of its checks; of those that judged a key alone, for that key."""
    of_nodes = {check.name: check.verify for check in case.checks_of_nodes if check.verify is not None}
    found = verifiers(judged_in_run(case))
    if case.key is not None:
        of_keys = {check.name for check in case.checks if check.is_per_key}
        found |= {name: partial(_of_key, found[name], case) for name in found.keys() & of_keys}
    return {**found, **of_nodes}


def _of_key(verifier: Verifier, case: Case, history: History, verdict: Verdict) -> Verified | None:
    """The settled history is judged with all its keys (`harness.judge.audit`)."""
    return verifier(history.only({str(case.key)}) if history is case.history else history, verdict)


def verifiers(judged: Mapping[str, Terms]) -> dict[str, Verifier]:
    """`judged`: by the name of a check, what it was asked."""
    return {name: partial(_verified, asked) for name, asked in judged.items()}


def _verified(asked: Terms, history: History, verdict: Verdict) -> Verified | None:
    if verdict.checker == "linearizable":
        return verify.check(history, verdict, asked)
    return verify_isolation.check(history, verdict, asked) if "proof" in verdict.details else None
