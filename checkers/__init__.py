"""Pure checkers: a history in, a verdict out. They know neither the harness nor the nodes.

    from checkers import CHECKERS, merged, run_safely
    from checkers.history import jsonl

    history = jsonl.read(path)                                    # HistoryError: not a history to judge
    verdicts = [run_safely(CHECKERS[name], history, name=name) for name in ("linearizable", "crash")]
    result = merged(verdict.result for verdict in verdicts)       # "valid", "invalid" or "unknown"

Every checker is a module (or package) with a function `check(history, ...) -> Verdict`; its docstring says what
it judges, what its details hold and what it raises. `run_safely` turns anything raised into unknown. Times in
histories and witnesses are nanoseconds since the run began; limits are seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from checkers import availability, convergence, crash, dirty, domain, linearizable, prefix, quorum, sessions
from checkers.verdict import Result, Verdict, Witness, merged, run_safely

CHECKERS: dict[str, Callable[..., Verdict]] = {
    "linearizable": linearizable.check,
    "prefix": prefix.check,
    "dirty": dirty.check,
    "convergence": convergence.check,
    "quorum": quorum.check,
    "crash": crash.check,
    "availability": availability.check,
    **{
        module.NAME: module.check
        for module in (
            domain.bank,
            domain.set_full,
            domain.counter,
            domain.unique_ids,
            domain.monotonic,
            domain.long_fork,
            domain.causal_reverse,
            domain.queues,
            domain.durability,
            domain.rollback_honesty,
        )
    },
    "staleness": sessions.check_staleness,
    **{name: partial(sessions.check, guarantee=name) for name in sessions.GUARANTEES},
}
"""The table of checkers, by the name that their verdicts carry."""

__all__ = ["CHECKERS", "Result", "Verdict", "Witness", "merged", "run_safely"]
