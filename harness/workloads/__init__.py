"""The table of workloads: what clients do. A new one is a file here and a line in this table."""

from __future__ import annotations

from harness.workloads.register import Register
from harness.workloads.workload import Workload

WORKLOADS: dict[str, Workload] = {"register": Register()}

__all__ = ["WORKLOADS", "Workload"]
