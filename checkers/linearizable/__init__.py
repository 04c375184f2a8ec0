"""Linearizability: what operations mean, which algorithm looks at them, and what proves the answer.

    checkers.linearizable.check(history, model="cas-register", timeout_s=10)     # a Verdict
    checkers.linearizable.check_parquet(path)                                    # the same for a million operations

`models` and `objects` say what operations mean; `decide` chooses between `zones`, `search` and its compiled form
`forward`; `brute` is their slow twin. `shrinking`, `explanation` and `proofs` make of a no what a person and
`checkers.verify` can follow.
"""

from checkers.history.line_kernels import ABSENT
from checkers.linearizable.checker import NAME, check, promised_linearizable
from checkers.linearizable.columnar import check_columns, check_parquet
from checkers.linearizable.recorded import Registers

__all__ = ["ABSENT", "NAME", "Registers", "check", "check_columns", "check_parquet", "promised_linearizable"]
