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
    checkers.linearizable("history.edn")                          # a file, or a frame of polars, pandas, DuckDB …
    polars.DataFrame(history)                                     # an operation a row, see `history.frames`
    checkers.transactional(history, workload="append").graph()    # an anomaly's circle, as a graph of networkx
    history.happened_before()                                     # the order of real time, as another

Every checker is a module (or package) with a function `check(history, ...) -> Verdict`; its docstring says what
it judges, what its details hold and what it raises. The module can be called in its place, also with a file or a data
frame; then a torn record is never valid (see `on_use`). `run_safely` turns every error into unknown, but for
CheckerDefect. Times in histories and witnesses are nanoseconds since the run began; limits are seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkers import replicas
from checkers.history.history import History
from checkers.on_use import Checkers, on_use
from checkers.verdict import Result, Verdict, Witness, merged, run_safely

if TYPE_CHECKING:
    CHECKERS: dict[str, Callable[..., Verdict]]

sys.modules[__name__].__class__ = Checkers
__getattr__ = on_use(
    __name__,
    dict.fromkeys(("domain", "linearizable", "sessions", "transactional"), "")
    | dict.fromkeys(replicas.MODULES, "checkers.replicas")
    | {"CHECKERS": "checkers.table", "judge": "checkers.by_model"},
)


def read(source: Any, *, initial: str | None = None) -> History:
    """The history in a file or folder, ours or another tool's (see `checkers.history.foreign`), or in a data frame
    (`checkers.history.frames`). Raises HistoryError, OSError.

    `initial`: what each object held before the first operation, as `qsync check --initial` takes it.
    """
    from checkers.history import foreign
    from checkers.history.foreign import frames

    if frames.is_frame(source):
        return foreign.beginning(frames.history_of(source), initial)
    return foreign.read(Path(source), initial=initial)


__all__ = ["CHECKERS", "Result", "Verdict", "Witness", "merged", "read", "run_safely"]
