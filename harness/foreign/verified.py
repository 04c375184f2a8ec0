"""The proofs of a linearizability verdict, checked by `checkers.verify`, which shares no code with the search.

Refused proofs take the verdict's word away: a "valid" becomes "unknown". An anomaly stays one, for an unknown never
hides an anomaly; but it is said that its proof was refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from checkers import verify
from checkers.by_model import with_single_dequeues
from checkers.history.history import History
from checkers.verdict import Verdict
from harness.judge import EXIT_CODES


def add_to(verdict: dict[str, Any], history: History) -> None:
    """Check the proofs and put what came of it under "verified"; nothing if nothing was decided."""
    for check in verdict["checks"]:
        if check["checker"] != "linearizable" or check["result"] == "unknown":
            continue
        found = verify.check(with_single_dequeues(history), Verdict.from_json(check))
        verdict["verified"] = {
            "accepted": found.accepted,
            "refused": list(found.refused),
            "without": list(found.without),
            "holds": found.holds,
        }
        if found.refused and verdict["outcome"] == "valid":
            verdict["outcome"], verdict["exit_code"] = "unknown", EXIT_CODES["unknown"]
            verdict["sentence"] = f"Not decided: the proof of linearizable was refused: {found.refused[0]}."


def lines(verdict: dict[str, Any]) -> Iterator[str]:
    """What a person is told of it."""
    found = verdict.get("verified")
    if found is None:
        return
    without = f", {len(found['without'])} keys decided without proof" if found["without"] else ""
    yield f"verified  {found['accepted']} proofs accepted{without}"
    for reason in found["refused"][:3]:
        yield f"  REFUSED  {reason}"
