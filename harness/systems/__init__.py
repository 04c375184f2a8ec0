"""The table of systems: how to configure, start and ask each, and what it promises. A new one is a file and a line."""

from __future__ import annotations

from harness.systems.qsync import Qsync
from harness.systems.system import Operated, System
from harness.systems.tarantool import Tarantool

SYSTEMS: dict[str, System] = {"qsync": Qsync(), "tarantool": Tarantool()}

__all__ = ["SYSTEMS", "Operated", "System"]
