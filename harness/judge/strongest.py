"""The strongest model that a run satisfied, beside the one that was promised.

Asked of all answers but dirty ones, wherever they were served: where stale reads are allowed and there were some, it is
weaker than what the promise says of fresh ones. Of isolation models, those are named that have a proof, and beside them
those that nothing refutes. Domain checkers (a bank, a counter, …) know no models: None.
"""

from __future__ import annotations

from collections.abc import Iterable

from checkers import by_model, transactional
from checkers.history.history import History
from checkers.limits import STEPS, Limits, given, until_ended
from checkers.replicas import prefix
from checkers.transactional.columns import Workload as Words
from checkers.verdict import CheckerDefect, Verdict
from harness.workloads.transactions import selected
from harness.workloads.workload import Workload

PART = 5  # of the steps of a search it is given one in so many: it only describes


def strongest(workload: Workload, history: History, verdicts: Iterable[Verdict]) -> str | None:
    """Its name ("none" if there is none, several with "and"); what broke, if it broke; None if nothing can be said."""
    return until_ended(lambda: _strongest(workload, history, verdicts), lambda why: f"not known ({why})")


def excused(found: str, verdicts: Iterable[Verdict]) -> str:
    """`found`, with the reason why a run may be valid beside it: reads of replicas that are not promised to be fresh
    were stale."""
    were_stale = any(each.checker == prefix.NAME and each.details.get("stale_reads") for each in verdicts)
    return f"{found} (replica reads may be stale by the promise)" if were_stale else found


def _strongest(workload: Workload, history: History, verdicts: Iterable[Verdict]) -> str | None:
    model = by_model.MODELS[workload.model]
    try:
        if model.transactional is not None:
            return _of_transactions(model.transactional, history)
        if model.linearizable is None:
            return None
        limits = Limits(steps=(given().steps or STEPS) // PART)
        return by_model.strongest(history, workload.model, verdicts, limits)
    except CheckerDefect:
        raise
    except Exception as error:  # it only describes: a verdict stands without it
        return f"not known ({type(error).__name__}: {error})"


def _of_transactions(words: Words, history: History) -> str | None:
    """As for foreign histories: by each client's own order, and by real time."""
    chosen = selected(history, lambda each: each.mode != "dirty")
    if not chosen.operations:
        return None
    found = transactional.check(chosen, workload=words, model="strict-serializable")
    return by_model.strongest_isolation(found)
