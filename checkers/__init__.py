"""Pure checkers: a history in, a verdict out. They know neither the harness nor the nodes.

    from checkers import CHECKERS, merged, run_safely
    from checkers.history import jsonl

    history = jsonl.read(path)                                    # HistoryError: not a history to judge
    verdicts = [run_safely(CHECKERS[name], history, name=name) for name in ("linearizable", "crash")]
    result = merged(verdict.result for verdict in verdicts)       # "valid", "invalid" or "unknown"

In a notebook, or a test of your own:

    import checkers

    history = checkers.read("history.edn")                        # ours, or any that `history.foreign` knows
    verdict = checkers.linearizable(history, model="cas-register", timeout_s=10.0)
    assert verdict.result == "valid", verdict.summary
    checkers.transactional(history, workload="append", model="snapshot-isolation")
    checkers.sessions(history, guarantee="read-your-writes")
    checkers.domain.bank(history, total=100)
    checkers.judge(history, "cas-register").strongest             # all checks of a model, see `by_model`

Every checker is a module (or package) with a function `check(history, ...) -> Verdict`; its docstring says what
it judges, what its details hold and what it raises. The module can be called in its place: `checkers.linearizable(…)`
is `checkers.linearizable.check(…)`. `run_safely` turns anything raised into unknown. Times in histories and witnesses
are nanoseconds since the run began; limits are seconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

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
    transactional,
)
from checkers.history.history import History
from checkers.verdict import Result, Verdict, Witness, merged, run_safely
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
"""The table of checkers, by the name that their verdicts carry."""


def read(path: str | os.PathLike[str]) -> History:
    """The history in a file, ours or another tool's (see `checkers.history.foreign`). Raises HistoryError, OSError."""
    from checkers.history import foreign

    return foreign.read(Path(path)).history


class _Checker(ModuleType):
    """A checker's module, which can be called as its `check` can."""

    def __call__(self, history: History, **options: Any) -> Verdict:
        verdict = vars(self)["check"](history, **options)
        assert isinstance(verdict, Verdict)
        return verdict


for _module in (
    *(
        availability,
        convergence,
        crash,
        dirty,
        linearizable,
        overruled,
        prefix,
        quorum,
        replication,
        sessions,
    ),
    transactional,
    early_timeout,
    *domain.CHECKERS,
):
    _module.__class__ = _Checker


def __getattr__(name: str) -> Any:
    """`judge` stands on all of these, and so comes when it is asked for."""
    if name == "judge":
        return import_module("checkers.by_model").judge
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["CHECKERS", "Result", "Verdict", "Witness", "merged", "read", "run_safely"]
