"""Isolation of transactions, the way of Elle: which anomalies a history shows, and which models they rule out.

    from checkers import transactional
    transactional.check(history, workload="append", model="serializable")        -> Verdict
    transactional.check_columns(columns, workload="rw-register", model="snapshot-isolation")

`anomalies` has the names, the models and the table of what forbids what; `columns` the form of transactions; `append`
and `register` find versions and dependencies, `graph` the
orders, `search` and `classes` the smallest cycles, `explanation` the words for them. `log_cycles` looks for the same
circles where transactions send to logs and poll them.
"""

from __future__ import annotations

from checkers.transactional.anomalies import ANOMALIES, MODELS
from checkers.transactional.checker import NAME, check, check_columns, serial_order_of
from checkers.transactional.columns import Columns, columns_of

__all__ = [
    "ANOMALIES",
    "MODELS",
    "NAME",
    "Columns",
    "check",
    "check_columns",
    "columns_of",
    "serial_order_of",
]
