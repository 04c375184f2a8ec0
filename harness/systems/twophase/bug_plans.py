"""In which configuration, and under which faults, each seeded bug can show: what `qsync simulate --bug NAME` sets.

Options of the command line are kept. A bug that is not here is hunted in the configuration `BUSY`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BUSY: Mapping[str, Any] = {
    "nodes": 4,
    "near_clients": 1,
    "workload": "bank",
    "faults": ("none",),
    "rate": 150.0,
    "workers": 20,
    "cut_every_s": 0.3,
    "step_ms": 2.0,
    "delivery_ms": "10",
    "time_limit_s": 10.0,
}

LOSING: Mapping[str, Any] = {**BUSY, "nodes": 5, "faults": ("holds",), "time_limit_s": 20.0}

BUG_PLANS: dict[str, Mapping[str, Any]] = {
    # A server dies in a cut, before its FINISH.
    "node-loss-ignored": LOSING,
    "restore-of-unfinished": LOSING,
    # A near node that is a client dies: its leaving fails no cut, and recovery decides while a cut waits.
    "recovery-as-before": {**LOSING, "near_clients": 2, "one_phase": False},
}
