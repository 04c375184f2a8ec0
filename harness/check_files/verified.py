"""The proofs in a verdict, checked by `checkers.verify` and, of transactions, by `checkers.verify_isolation`.

They share no code with the search.

Refused proofs take the verdict's word away: a "valid" becomes "unknown". An anomaly stays one, for an unknown never
hides an anomaly; but it is said that its proof was refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from checkers import verify, verify_isolation
from checkers.history.history import History
from checkers.limits import until_ended
from checkers.meaning import Judged
from checkers.verdict import Verdict
from harness.judge import EXIT_CODES
from harness.run.plan import Plan


def add_to(verdict: dict[str, Any], history: History, judged: Mapping[str, Judged]) -> None:
    """Check the proofs and put what came of it under "verified"; nothing if nothing was decided.

    `judged`: by the name of a check, what it was asked. It comes from the promise, never from the verdict.
    """
    stopped: list[str] = []
    found = []
    for check in verdict["checks"]:
        if check["checker"] in judged:
            asked = judged[check["checker"]]
            each = until_ended(partial(_verified, check, history, asked), stopped.append)
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


def judged_in_run(plan: Plan, history: History) -> dict[str, Judged]:
    """The promises that a run of this plan is judged by, by the names of their checks."""
    from harness.judge.outcome import checks_of
    from harness.judge.promised import promise_of

    checks = checks_of(plan, promise_of(plan, history))
    return {check.name: check.judged for check in checks if check.judged is not None}


def _verified(check: dict[str, Any], history: History, asked: Judged) -> verify.Verified | None:
    """None if the check has no proofs to look at."""
    if check["result"] == "unknown":
        return None
    if check["checker"] == "linearizable":
        return verify.check(history, Verdict.from_json(check), asked)
    if "proof" in check.get("details", {}):
        return verify_isolation.check(history, Verdict.from_json(check), asked)
    return None
