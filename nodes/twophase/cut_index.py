"""The files of the log with the records of cuts and bases: `[kind, name, number of the file]` in `cuts.index`.

The index saves reading the whole log to restore a cut. It may lack the newest entries, because it is written behind the
log; a node that starts writes the missing ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nodes.kernel.effects import Truncate
from nodes.kernel.errors import StartRefused
from nodes.records import Read, Record, framed, records_of
from nodes.twophase.site import Site

FILE = "cuts.index"
KINDS = frozenset({"start", "finish", "void", "base", "base-done", "rebalanced", "restored"})


@dataclass(frozen=True, slots=True)
class Entry:
    kind: str
    name: str
    segment: int


def entry_of(record: Record, segment: int) -> Entry | None:
    """The index entry of a record; None if it is not of a cut or a base."""
    if record[0] not in KINDS:
        return None
    return Entry(record[0], "" if record[0] == "rebalanced" else record[1], segment)


def read_index(files: Mapping[str, bytes], read: Read = records_of) -> list[Entry]:
    records, _ = read(FILE, files.get(FILE, b""))
    return [Entry(*record) for record in records]


def check_held(index: Sequence[Entry], expected: Sequence[Entry]) -> None:
    """Raises StartRefused unless `expected`, the entries by the log, begins with those of the index."""
    if list(index) != list(expected[: len(index)]):
        raise StartRefused(
            f"{FILE} names cuts that the log does not hold: the log is damaged, or lacks its end; "
            f"if the log is whole, remove {FILE}, and it is written anew"
        )


class CutIndex:
    def __init__(self, site: Site) -> None:
        self._site = site

    def read(self, files: Mapping[str, bytes], expected: Sequence[Entry]) -> None:
        """`expected`: the entries by the log. Raises StartRefused unless they begin with those of the index."""
        data = files.get(FILE, b"")
        known, whole = records_of(FILE, data)
        if whole < len(data):
            self._site.out.append(Truncate(FILE, whole))
        check_held([Entry(*record) for record in known], expected)
        if data:
            self._site.sync(FILE)
        for entry in expected[len(known) :]:
            self.append(entry)

    def append(self, entry: Entry) -> None:
        data = framed([entry.kind, entry.name, entry.segment])
        self._site.persist(FILE, data, "index")
