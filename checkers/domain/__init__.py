"""Checkers that know what their data is about: one file each, one workload (or several) each.

| checker | operations | what must not be |
|---|---|---|
| `bank` | transfer, read | money made or lost, balances below zero |
| `set_full` | add, read | an element that was there is gone, comes twice or from nowhere |
| `counter` | add, read | a sum that no additions give |
| `unique_ids` | generate | an identifier given twice |
| `monotonic` | add, read | timestamps and values in different orders, rows lost or doubled |
| `long_fork` | read and write of several keys | two reads that each miss what the other saw |
| `causal_reverse` | write, read | a later write seen without an earlier one |
| `queues` | enqueue, dequeue, drain | elements lost, doubled, out of order |
| `offsets` | send, poll, txn | what was sent lost, doubled, out of order |
| `durability` | all of these | an acknowledged write missing from a final state |
| `rollback_honesty` | all of these | a read that shows a write that surely failed |
| `write_once` | insert, read | rows of one transaction in part, out of order, or lost |
| `etcd_kv` | etcd's range, txn, leases | an answer that no order of revisions gives |
| `etcd_watch` | etcd's watches | events lost, doubled, out of order, invented |
| `queue_order` | write, cas, add, txn that were only submitted | taking effect after a write that was invoked later |

Names and values are those of Jepsen's workloads; each file says exactly which. A checker ignores operations that it
does not know. `proof` makes witnesses, and says which faults were active.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from checkers.on_use import Checkers, on_use

if TYPE_CHECKING:
    CHECKERS: tuple[ModuleType, ...]

NAMES = (
    *("bank", "set_full", "counter", "unique_ids", "monotonic", "long_fork", "causal_reverse", "queues"),
    "offsets",
    *("durability", "rollback_honesty", "queue_order", "write_once", "etcd_kv", "etcd_watch"),
)
sys.modules[__name__].__class__ = Checkers
__getattr__ = on_use(__name__, dict.fromkeys(NAMES, "") | {"CHECKERS": "checkers.domain.table"})
