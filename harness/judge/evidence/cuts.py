"""How many consistent cuts of a run were judged; or why none was taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checkers.cuts.report import PROMISES
from checkers.verdict import Verdict
from harness.judge.case import Case

CHECKERS = frozenset(f"cuts-{level}" for level in PROMISES)
ALSO_OF_UNFINISHED = frozenset({"cuts-form", "cuts-marker", "cuts-finish"})
"""They look at the records of every cut, so they say nothing of what a restore of it would have."""


def cuts_of(case: Case, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """`evidence.cuts`: {"asked", "judged"}, numbers; or {"why"}: the reason in words. Empty if nothing is to be said.

    A cut counts as judged if a level that needs a finished cut judged it.
    """
    of_levels = {v.checker: v.details.get("cuts", ()) for v in verdicts if v.checker in CHECKERS}
    if of_levels:
        asked = {cut["cut"] for cuts in of_levels.values() for cut in cuts}
        judged = {
            cut["cut"]
            for checker, cuts in of_levels.items()
            for cut in cuts
            if checker not in ALSO_OF_UNFINISHED and cut["standing"] == "judged"
        }
        return {"asked": len(asked), "judged": len(judged)}
    why = case.system.why_no_cuts(case.plan)
    return {"why": why} if why else {}
