"""Lists that transactions append to and read: a read tells the order of all that was written (Elle's list-append)."""

from __future__ import annotations

from harness.workloads.transactions import Transactions

APPEND = Transactions(
    summary="transactions over several keys that append to lists and read them",
    weight=3,
    model="append",
    word="append",
)
