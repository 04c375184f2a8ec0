"""How many consistent cuts of a run were judged; or why none was taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checkers.verdict import Verdict
from harness.causes import OF_CUTS
from harness.run.plan import Plan
from harness.systems import system_of
from harness.systems.system import TellsWhyNoCuts


def cuts_of(plan: Plan, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """`evidence.cuts`: {"asked", "judged"}, numbers; or {"why"}: the reason in words. Empty if nothing is to be said.

    A cut is judged if some level had something to judge of it.
    """
    told = [each.details.get("cuts", ()) for each in verdicts if each.checker.startswith(OF_CUTS)]
    if told:
        asked = {cut["cut"] for cuts in told for cut in cuts}
        judged = {cut["cut"] for cuts in told for cut in cuts if cut["standing"] == "judged"}
        return {"asked": len(asked), "judged": len(judged)}
    system = system_of(plan.system)
    why = system.why_no_cuts(plan) if isinstance(system, TellsWhyNoCuts) else ""
    return {"why": why} if why else {}
