"""The proofs in a verdict, checked by code that shares none with what found them.

Those of objects by `checkers.proofs.verify`, of transactions by `checkers.proofs.verify_isolation`, of cuts by
`checkers.cuts.verify_levels`, and of the TxLog's logs by `checkers.logs.txlog.verify`.

Refused proofs take the verdict's word away: a "valid" becomes "unknown". An anomaly stays one, for an unknown never
hides an anomaly; but it is said that its proof was refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from checkers.history.history import History
from checkers.limits import until_ended
from checkers.proofs import verify, verify_isolation
from checkers.proofs.meaning import Judged
from checkers.verdict import Verdict, Verified
from harness.judge import EXIT_CODES, Case

Verifier = Callable[[History, Verdict], Verified | None]
"""None if the verdict has no proofs to look at."""


def add_to(verdict: dict[str, Any], history: History, verifiers: Mapping[str, Verifier]) -> None:
    """Check the proofs and put what came of it under "verified"; nothing if nothing was decided.

    `verifiers`: by the name of a check. Their questions come from the promise, never from the verdict.
    """
    stopped: list[str] = []
    found = []
    for check in verdict["checks"]:
        if check["checker"] in verifiers and check["result"] != "unknown":
            asked = partial(verifiers[check["checker"]], history, Verdict.from_json(check))
            each = until_ended(asked, stopped.append)
            found += [] if each is None else [each]
    if stopped and verdict["outcome"] == "valid":
        _take_back(verdict, f"the proofs were not all checked: {stopped[0]}")
    if not found:
        return
    refused = [reason for each in found for reason in each.refused]
    verdict["verified"] = {
        "accepted": sum(each.accepted for each in found),
        "refused": refused,
        "without": [name for each in found for name in each.without],
        "holds": not stopped and all(each.holds for each in found),
    }
    if refused and verdict["outcome"] == "valid":
        _take_back(verdict, f"a proof was refused: {refused[0]}")


def _take_back(verdict: dict[str, Any], why: str) -> None:
    verdict["outcome"], verdict["exit_code"] = "unknown", EXIT_CODES["unknown"]
    verdict["sentence"] = f"Not decided: {why}."


def judged_in_run(case: Case) -> dict[str, Judged]:
    """The promises that a run is judged by, by the names of their checks."""
    return {check.name: check.judged for check in case.checks if check.judged is not None}


def verifiers_in_run(case: Case) -> dict[str, Verifier]:
    """Those of a run, by the names of its checks."""
    of_nodes = {check.name: check.verify for check in case.checks_of_nodes if check.verify is not None}
    return {**verifiers(judged_in_run(case)), **of_nodes}


def verifiers(judged: Mapping[str, Judged]) -> dict[str, Verifier]:
    """`judged`: by the name of a check, what it was asked."""
    return {name: partial(_verified, asked) for name, asked in judged.items()}


def _verified(asked: Judged, history: History, verdict: Verdict) -> Verified | None:
    if verdict.checker == "linearizable":
        return verify.check(history, verdict, asked)
    return verify_isolation.check(history, verdict, asked) if "proof" in verdict.details else None
