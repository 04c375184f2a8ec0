"""The table of systems: how to configure, start and ask each, and what it promises. A new one is a file and a line."""

from __future__ import annotations

from harness.errors import WrongUse
from harness.systems.qsync.system import Qsync
from harness.systems.system import System
from harness.systems.tarantool.system import Tarantool
from harness.systems.twophase.system import TwoPhaseSystem
from harness.systems.txlog.system import TxLogSystem

SYSTEMS: dict[str, System] = {
    "qsync": Qsync(),
    "tarantool": Tarantool(),
    "twophase": TwoPhaseSystem(),
    "txlog": TxLogSystem(),
}


def system_of(name: str) -> System:
    """By its name in the table, or by the path or the entry point of one's own (`harness.systems.own`). WrongUse."""
    if name.endswith(".py"):
        from harness.systems.own import load

        return load(name)
    if name in SYSTEMS:
        return SYSTEMS[name]
    from harness.systems.own import entry_points, load_entry_point

    known = entry_points()
    if name not in known:
        names = ", ".join((*SYSTEMS, *known))
        raise WrongUse(f"unknown system {name!r}; try one of: {names}, or a file: ./mystore.py")
    return load_entry_point(name)


__all__ = ["SYSTEMS", "System", "system_of"]
