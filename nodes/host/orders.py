"""Orders about errors that a disk is to show, which faults give to the disk layer of a node."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Orders:
    """The faults of a medium; the plain value: none. Errors by their names in `errno`."""

    id: int = -1
    sync_delay_ns: int = 0
    write_error: str = ""
    sync_error: str = ""
