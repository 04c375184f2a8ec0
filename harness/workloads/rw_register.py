"""Registers that transactions write and read; they tell less of the order of writes than lists (Elle's rw-register)."""

from __future__ import annotations

from harness.workloads.transactions import Transactions

RW_REGISTER = Transactions(
    summary="transactions over several keys that write and read registers",
    weight=1,
    model="rw-register",
    word="w",
    is_searched=True,
)
