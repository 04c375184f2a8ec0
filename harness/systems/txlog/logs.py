"""The logs that masters leave: every record, with its place (`nodes.txlog.journal` has the table of records)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.systems.parts import NodeFiles
from nodes.kernel.errors import StartRefused
from nodes.records import Record, records_of
from nodes.txlog.journal import FILE


@dataclass(frozen=True, slots=True)
class Placed:
    """`place` counts the records of this master from 1, all its lives together; `life` counts its processes."""

    master: str
    place: int
    life: int
    kind: str
    fields: Record


@dataclass(frozen=True, slots=True)
class MasterLog:
    """`damage` says why a log could not be read; "" if it was."""

    records: Sequence[Placed]
    damage: str = ""


def logs_in(files: NodeFiles, masters: Sequence[str]) -> Mapping[str, MasterLog]:
    """The logs of those masters that left one."""
    return {name: _log(name, files[name][FILE]) for name in masters if FILE in files.get(name, {})}


def _log(master: str, data: bytes) -> MasterLog:
    try:
        records, _ = records_of(FILE, data)
    except StartRefused as damaged:
        return MasterLog((), str(damaged))
    life = 0
    placed: list[Placed] = []
    for place, (kind, *fields) in enumerate(records, 1):
        life = fields[0] if kind == "life" else life
        placed.append(Placed(master, place, life, kind, fields))
    return MasterLog(placed)
