"""The table of all checkers, by the name that their verdicts carry."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from checkers import (
    availability,
    convergence,
    crash,
    dirty,
    domain,
    early_timeout,
    linearizable,
    overruled,
    prefix,
    quorum,
    replication,
    sessions,
    stored_start,
)
from checkers.verdict import Verdict
from checkers.wal import early, state

CHECKERS: dict[str, Callable[..., Verdict]] = {
    "linearizable": linearizable.check,
    "prefix": prefix.check,
    "dirty": dirty.check,
    "convergence": convergence.check,
    "quorum": quorum.check,
    "crash": crash.check,
    "overruled": overruled.check,
    early_timeout.NAME: early_timeout.check,
    "replication": replication.check,
    stored_start.NAME: stored_start.check,
    "availability": availability.check,
    early.NAME: early.check,
    state.NAME: state.check,
    **{checker.NAME: checker.check for checker in domain.CHECKERS},
    "staleness": sessions.check_staleness,
    **{name: partial(sessions.check, guarantee=name) for name in sessions.GUARANTEES},
}
