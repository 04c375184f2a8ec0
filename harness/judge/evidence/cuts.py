"""How many consistent cuts of a run were judged; or why none was taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checkers.cuts.report import PROMISES
from checkers.verdict import Verdict
from harness.judge.case import Case

CHECKERS = frozenset(f"cuts-{level}" for level in PROMISES)


def cuts_of(case: Case, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """`evidence.cuts`: {"asked", "judged"}, numbers; or {"why"}: the reason in words. Empty if nothing is to be said.

    A cut counts as judged if at least one level judged it.
    """
    cuts_of_levels = [verdict.details.get("cuts", ()) for verdict in verdicts if verdict.checker in CHECKERS]
    if cuts_of_levels:
        asked = {cut["cut"] for cuts in cuts_of_levels for cut in cuts}
        judged = {cut["cut"] for cuts in cuts_of_levels for cut in cuts if cut["standing"] == "judged"}
        return {"asked": len(asked), "judged": len(judged)}
    why = case.system.why_no_cuts(case.plan)
    return {"why": why} if why else {}
