"""Operations on a store, and their outcomes, as values.

A workload draws an operation and expresses it as a `Transaction` of steps. The client of a system turns that into
requests of the store, and the answers into an outcome: `Done`, `Mismatch`, or a `Completion` where there is no result.
Neither knows the other's words: a workload runs on every store with a client that speaks its steps.
"""

from __future__ import annotations

from harness.clients.operations.members import MEMBER_CHANGES, AddMember, MemberChange, RemoveMember
from harness.clients.operations.outcome import (
    Completion,
    Done,
    Mismatch,
    Outcome,
    can_be_recorded,
    failed,
    fitting,
    unexpected,
)
from harness.clients.operations.steps import (
    STEPS,
    Add,
    Append,
    Asked,
    Cas,
    Delete,
    Dump,
    Effect,
    Insert,
    Read,
    RestoredCut,
    Scan,
    Step,
    Take,
    Transaction,
    Write,
)

__all__ = [
    "MEMBER_CHANGES",
    "STEPS",
    "Add",
    "AddMember",
    "Append",
    "Asked",
    "Cas",
    "Completion",
    "Delete",
    "Done",
    "Dump",
    "Effect",
    "Insert",
    "MemberChange",
    "Mismatch",
    "Outcome",
    "Read",
    "RemoveMember",
    "RestoredCut",
    "Scan",
    "Step",
    "Take",
    "Transaction",
    "Write",
    "can_be_recorded",
    "failed",
    "fitting",
    "unexpected",
]
