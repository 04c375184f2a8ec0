"""The memory and the disk space that nodes and the harness used in the course of a run, as a table of a few moments."""

from __future__ import annotations

from dataclasses import dataclass

from harness.pages.json_door import as_mapping, as_whole
from harness.pages.material import Material
from harness.pages.svg import duration

MOMENTS = 6
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class UsedRow:
    """A process, in words: its memory at each moment, the most that it ever had, its disk in the end."""

    name: str
    memory: tuple[str, ...]
    most: str
    disk: str


@dataclass(frozen=True, slots=True)
class UsedTable:
    at: tuple[str, ...]
    rows: tuple[UsedRow, ...]


def used(material: Material) -> UsedTable | None:
    """The first measurement, the last, and some between; None if nothing was measured."""
    lines = [event for event in material.harness if event.f == "used" and as_mapping(event.value)]
    if not lines:
        return None
    last = len(lines) - 1
    shown = sorted({round(place * last / (MOMENTS - 1)) for place in range(MOMENTS)})
    names = dict.fromkeys(name for event in lines for name in as_mapping(event.value))
    values = [as_mapping(event.value) for event in lines]
    rows = []
    for name in names:
        memory = [as_whole(as_mapping(value.get(name)).get("memory_bytes")) for value in values]
        disk = as_whole(as_mapping(values[-1].get(name)).get("disk_bytes"))
        most = max((count for count in memory if count is not None), default=None)
        at_moments = tuple(_mib(memory[place]) for place in shown)
        rows.append(UsedRow(name, at_moments, _mib(most), _mib(disk)))
    return UsedTable(tuple(duration(lines[place].time_ns) for place in shown), tuple(rows))


def _mib(count: int | None) -> str:
    return "–" if count is None else f"{count / MIB:,.0f}"
