"""Every checker that is held to a definition, by name: the rows of the table that `bench.brute_force` prints."""

from __future__ import annotations

from functools import partial

from checkers import transactional
from checkers.history import History
from checkers.verdict import Verdict
from tests.checkers.brute import isolation, tiny_transactions
from tests.checkers.brute.compare import Row


def _isolation(workload: str, model: str, **options: bool) -> Row:
    def checker(history: History) -> Verdict:
        return transactional.check(history, workload=workload, model=model, **options)  # type: ignore[arg-type]

    return Row(
        name=" ".join([workload, model, *options]),
        draw=partial(tiny_transactions.drawn, workload=workload),
        definition=partial(isolation.allows, model, workload=workload),
        checker=checker,
    )


ISOLATION = [_isolation(workload, model) for workload in ("append", "rw-register") for model in isolation.MODELS]
ISOLATION += [
    _isolation("rw-register", "strict-serializable", linearizable_keys=True),
    _isolation("rw-register", "strong-session-serializable", sequential_keys=True),
]
"""Linearizable keys follow from strict serializability, sequential ones from strong session serializability."""

ROWS: dict[str, Row] = {row.name: row for row in ISOLATION}
