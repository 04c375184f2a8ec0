"""Orders of a fault to a node's disk layer: the errors and delays that it is to produce."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Orders:
    """The faults of a medium, by default none. Errors by their names in `errno`."""

    id: int = -1
    sync_delay_ns: int = 0
    write_error: str = ""
    sync_error: str = ""
