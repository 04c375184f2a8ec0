"""The only place where an outcome is made, whatever verb asks for it: `run`, `check`, `audit`, `nightly`, `simulate`.

| outcome | exit | when |
|---|---|---|
| anomaly | 1 | a promised check is invalid, whatever else is the case |
| inconclusive | 3 | something is missing without which a run shows nothing |
| unknown | 2 | a promised check was not judged: it is unknown, was skipped, or there is none |
| valid | 0 | every promised check was judged and is valid |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from checkers.verdict import Result, merged

FORMAT = "qsync-verdict"
VERSION = 1
Outcome = Literal["valid", "anomaly", "unknown", "inconclusive"]

EXIT_CODES: dict[Outcome, int] = {"valid": 0, "anomaly": 1, "unknown": 2, "inconclusive": 3}


def outcome_of(
    results: Iterable[Result], missing: Sequence[str] = (), left_out: Sequence[str] = ()
) -> Outcome:
    """`results`: of the promised checks. `missing`: what keeps a run from being evidence. `left_out`: what a person
    asked not to be judged, in words."""
    result = merged(results)
    if result == "invalid":
        return "anomaly"
    if missing:
        return "inconclusive"
    return "valid" if result == "valid" and not left_out else "unknown"
