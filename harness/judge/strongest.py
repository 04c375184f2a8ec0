"""The strongest model that a run satisfied, beside the promised one.

It covers all answers but dirty ones, at every node. Allowed stale reads make it weaker than the promise, which covers
fresh reads alone. Of isolation models it names those with a proof, and those that nothing refutes. Domain checkers (a
bank, a counter, …) know no models: None.
"""

from __future__ import annotations

from collections.abc import Iterable

from checkers import transactional
from checkers.history.history import History
from checkers.limits import STEPS, Limits, given, until_ended
from checkers.models import MODELS
from checkers.replicas import prefix
from checkers.strongest import strongest as strongest_model
from checkers.strongest import strongest_isolation
from checkers.transactional.columns import Workload as Words
from checkers.verdict import CheckerDefect, Verdict
from harness.workloads.transactions import selected
from harness.workloads.workload import Workload

PART = 5  # of the steps of a search it is given one in so many: it only describes


def strongest(workload: Workload, history: History, verdicts: Iterable[Verdict]) -> str | None:
    """The name ("none" if there is none, several with "and"), or "not known (reason)"; None if there is no model."""
    return until_ended(lambda: _strongest(workload, history, verdicts), lambda why: f"not known ({why})")


def excused(model: str, verdicts: Iterable[Verdict]) -> str:
    """`model`, with a note if stale reads of replicas, which the promise allows, make it weaker than the promise."""
    were_stale = any(
        verdict.checker == prefix.NAME and verdict.details.get("stale_reads") for verdict in verdicts
    )
    return f"{model} (replica reads may be stale by the promise)" if were_stale else model


def _strongest(workload: Workload, history: History, verdicts: Iterable[Verdict]) -> str | None:
    model = MODELS[workload.model]
    try:
        if model.transactional is not None:
            return _of_transactions(model.transactional, history)
        if model.linearizable is None:
            return None
        limits = Limits(steps=(given().steps or STEPS) // PART)
        return strongest_model(history, workload.model, verdicts, limits)
    except CheckerDefect:
        raise
    except Exception as error:  # it only describes: a verdict stands without it
        return f"not known ({type(error).__name__}: {error})"


def _of_transactions(words: Words, history: History) -> str | None:
    """The strongest isolation model, by each client's own order and by real time, as for foreign histories."""
    chosen = selected(history, lambda operation: operation.mode != "dirty")
    if not chosen.operations:
        return None
    verdict = transactional.check(chosen, workload=words, model="strict-serializable")
    return strongest_isolation(verdict)
