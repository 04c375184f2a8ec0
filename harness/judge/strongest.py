"""The strongest model that a run satisfied, beside the promised one.

It covers all answers but dirty ones, at every node. Allowed stale reads make it weaker than the promise, which covers
fresh reads alone. Of isolation models it names those with a proof, and those that nothing refutes. Domain checkers (a
bank, a counter, …) know no models: None.
"""

from __future__ import annotations

from collections.abc import Iterable

from checkers.history.history import History
from checkers.limits import STEPS, Limits, given, until_ended
from checkers.models import MODELS
from checkers.replicas import prefix
from checkers.strongest import isolation_of
from checkers.strongest import strongest as strongest_model
from checkers.verdict import CheckerDefect, Verdict
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
            return isolation_of(history, model.transactional)
        if model.linearizable is None:
            return None
        limits = Limits(steps=max(1, (given().steps or STEPS) // PART))
        return strongest_model(history, workload.model, verdicts, limits)
    except CheckerDefect:
        raise
    except Exception as error:  # it only describes: a verdict stands without it
        return f"not known ({type(error).__name__}: {error})"
