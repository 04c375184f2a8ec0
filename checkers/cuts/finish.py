"""How cuts end.

A cut counts as finished if every baseline server has its START and its FINISH, because a restore needs no more. Without
logs it counts as finished if a node reports so. Then

- no node reports another end than the others, and a cut that a node reports as finished has both records everywhere;
- a cut that did not finish has a cause in the harness's own record.

A log that is missing or not whole may have had both records. One whole log without them suffices: the cut did not
finish, whatever the other logs had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from checkers.cuts.logs import FINISH, START, Cut, Logs


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a cut ended; `is_finished` None: unknown. `breaches`: the rule and the sentence of each.

    `missing`: why its records cannot be judged.
    """

    is_finished: bool | None
    breaches: tuple[tuple[str, str], ...] = ()
    missing: str = ""


def ended(cut: Cut, logs: Logs | None, baseline: Sequence[str], *, is_whole: bool) -> Ended:
    """How this cut ended. `is_whole`: every baseline server has its START and FINISH."""
    outcomes = set(cut.outcomes.values())
    is_finished: bool | None = "finished" in outcomes if outcomes else None
    breaches: list[tuple[str, str]] = []
    missing = ""
    if logs is not None and baseline:
        is_finished = is_whole
        lacking = _lacking(cut, logs, baseline)
        surely = next((server for server in lacking if not _may_have_both(cut, logs, server)), "")
        if surely and "finished" in outcomes:
            why = f"{cut.id} is reported as finished, and {surely} has not both START and FINISH"
            breaches.append(("finished-without-record", why))
        elif lacking and not surely and outcomes != {"failed"}:
            is_finished, missing = None, f"the log of {lacking[0]} is missing or not whole"
    if len(outcomes) > 1:
        one = next(node for node, outcome in cut.outcomes.items() if outcome == "finished")
        other = next(node for node, outcome in cut.outcomes.items() if outcome == "failed")
        breaches.append(("finished-on-some", f"{one} reports {cut.id} as finished and {other} as failed"))
    elif is_finished is False and not breaches and not cut.causes:
        breaches.append(("no-cause", f"{cut.id} did not finish, and nothing is known that kept it"))
    return Ended(is_finished=is_finished, breaches=tuple(breaches), missing=missing)


def _lacking(cut: Cut, logs: Logs, baseline: Sequence[str]) -> list[str]:
    """The baseline servers without both records."""
    has = [logs.of_cut(kind, cut.id) for kind in (START, FINISH)]
    return [node for node in baseline if any(node not in records for records in has)]


def _may_have_both(cut: Cut, logs: Logs, server: str) -> bool:
    """Whether the server may have written records of the cut that its log does not show."""
    is_late = server in logs.cut_off and server not in logs.of_cut(START, cut.id)
    return server not in logs.nodes or server in logs.damage or is_late
