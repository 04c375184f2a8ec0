"""The proofs in a verdict, checked by code that shares none with the checkers.

Proofs of objects are checked by `checkers.proofs.verify`, of transactions by `checkers.proofs.verify_isolation`, of
cuts by `checkers.cuts.verify_levels`, and of the TxLog's logs by `checkers.logs.txlog.verify`.

A refused proof turns "valid" into "unknown". An anomaly stays one, because an unknown never hides an anomaly; the
verdict says that its proof was refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from checkers.history.history import History
from checkers.limits import until_ended
from checkers.proofs import verify, verify_isolation
from checkers.proofs.meaning import Terms
from checkers.verdict import Verdict, Verified
from harness.judge import EXIT_CODES, Case

Verifier = Callable[[History, Verdict], Verified | None]
"""None if the verdict has no proofs."""


def add_to(verdict: dict[str, Any], history: History, verifiers: Mapping[str, Verifier]) -> None:
    """Check the proofs, and add the result as "verified" to the verdict; nothing if no check was decided.

    `verifiers`: by the name of a check. Their questions come from the promise, never from the verdict.
    """
    stopped: list[str] = []
    results = []
    for check in verdict["checks"]:
        if check["checker"] in verifiers and check["result"] != "unknown":
            question = partial(verifiers[check["checker"]], history, Verdict.from_json(check))
            result = until_ended(question, stopped.append)
            results += [] if result is None else [result]
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


def _take_back(verdict: dict[str, Any], why: str) -> None:
    verdict["outcome"], verdict["exit_code"] = "unknown", EXIT_CODES["unknown"]
    verdict["sentence"] = f"Not decided: {why}."


def judged_in_run(case: Case) -> dict[str, Terms]:
    """The promises that a run is judged by, by the names of their checks."""
    return {check.name: check.judged for check in case.checks if check.judged is not None}


def verifiers_in_run(case: Case) -> dict[str, Verifier]:
    """The verifiers of a run, by the names of its checks."""
    of_nodes = {check.name: check.verify for check in case.checks_of_nodes if check.verify is not None}
    return {**verifiers(judged_in_run(case)), **of_nodes}


def verifiers(judged: Mapping[str, Terms]) -> dict[str, Verifier]:
    """`judged`: by the name of a check, what it was asked."""
    return {name: partial(_verified, asked) for name, asked in judged.items()}


def _verified(asked: Terms, history: History, verdict: Verdict) -> Verified | None:
    if verdict.checker == "linearizable":
        return verify.check(history, verdict, asked)
    return verify_isolation.check(history, verdict, asked) if "proof" in verdict.details else None
