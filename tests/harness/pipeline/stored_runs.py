"""Simulated runs under a results folder, as `qsync run` leaves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import finish
from harness.systems.plans import planned


def store_run(results: Path, seed: int, **fields: Any) -> Path:
    """Run and judge a small plan in the simulator; its folder."""
    small: dict[str, Any] = {"name": "nightly", "cluster": "sim", "time_limit_s": 3.0, "rate": 100.0}
    plan = planned(seed=seed, **{**small, **fields})
    executed = execute(parts_of(plan), results)
    finish(executed.folder, plan)
    return executed.folder.path
