"""The outcomes. All verbs (`run`, `check`, `audit`, `nightly`, `simulate`) take them from here.

| outcome | exit | when |
|---|---|---|
| anomaly | 1 | a promised check is invalid, whatever else is the case |
| inconclusive | 3 | evidence is missing, such as load, faults in effect or the end of the record |
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
    """`results`: of the promised checks. `missing`: why the run is inconclusive. `left_out`: the parts that the user
    excluded, in words."""
    result = merged(results)
    if result == "invalid":  # first: an anomaly counts however little else the run shows
        return "anomaly"
    if missing:
        return "inconclusive"
    return "valid" if result == "valid" and not left_out else "unknown"
