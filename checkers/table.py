"""The table of all checkers, by the name that their verdicts carry."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from checkers import domain, linearizable, sessions
from checkers.logs.wal import early, state
from checkers.replicas import (
    availability,
    convergence,
    crash,
    dirty,
    early_timeout,
    overruled,
    prefix,
    quorum,
    replication,
    stored_start,
)
from checkers.transactional import log_cycles
from checkers.verdict import Verdict

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
    log_cycles.NAME: log_cycles.check,
    "staleness": sessions.check_staleness,
    **{name: partial(sessions.check, guarantee=name) for name in sessions.GUARANTEES},
}
