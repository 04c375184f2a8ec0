"""Checkers of what the copies of a store show and do: one file each.

| checker | what must not be |
|---|---|
| `prefix` | a node that shows confirmed values in another order, or goes back |
| `dirty` | a value that no client has asked to write |
| `convergence` | nodes that differ when all faults are over, a confirmed write missing |
| `kept` | an acknowledged write that is gone from every node in the end |
| `stored_start` | the same of writes in the logs that the nodes began with |
| `overruled` | an answer "rolled back" to a write that is there to stay |
| `quorum` | an acknowledgement although too few nodes can have the write |
| `early_timeout` | an answer "no quorum in time" before that time is over |
| `replication` | equal positions with different data; it tells of replication that stands still |
| `leadership` | two leaders of one term, an owner without a quorum, none after healing |
| `crash` | a node that ended although no fault ended it |
| `availability` | nothing: it says for how long the cluster did not serve |
"""

from __future__ import annotations

import sys

from checkers.on_use import Checkers, on_use

MODULES = (
    *("availability", "convergence", "crash", "dirty", "early_timeout", "kept", "leadership", "overruled"),
    *("prefix", "quorum", "replication", "stored_start"),
)
sys.modules[__name__].__class__ = Checkers
__getattr__ = on_use(__name__, dict.fromkeys(MODULES, ""))
