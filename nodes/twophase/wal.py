"""The log of a server, in files `wal-000001.log`, `wal-000002.log`, …; no part of it is ever removed.

| record | |
|---|---|
| `["prepared", xid, near, life, version, one phase, participants, writes]` | before a prepare is answered |
| `["committed", xid, sign, recovered, participants, writes]` | before a finish is answered |
| `["rolled-back", xid]` | of a transaction that was prepared |
| `["atomic", xid, row]` | a write to an atomic space, at the backup before the primary |
| `["start", cut, number, version, layout, spaces, time]` | the node has begun a cut of a cluster with this layout |
| `["finish", cut, included, excluded]` | and has finished it |
| `["void", cut]` | the cut has failed on a different node after that, and FINISH does not count |
| `["rebalanced", [[partition, rows], …], xids]` | full copies of partitions, and their source's committed xids |
| `["base", snapshot, file]`, `["base-done", snapshot]` | a base snapshot is in that file; every server has its own |
| `["restored", cut, rows, spaces]` | the first record of a log that a restore has made |

`participants` are `[[partition, [node, …]], …]`, `writes` and `rows` are `[[space, key, value, version], …]`, `spaces`
are the atomic ones, which cuts do not cover. `time` is the cut's timestamp, in nanoseconds. A node that starts reads
the whole log.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodes.kernel.effects import Truncate
from nodes.kernel.errors import StartRefused
from nodes.records import Read, Record, framed, records_of
from nodes.twophase.cut_index import CutIndex, entry_of
from nodes.twophase.site import Site, Then
from nodes.twophase.sometimes import TORN_TAIL

SEGMENT = "wal-{:06}.log"


def is_segment(name: str) -> bool:
    return name.startswith("wal-") and name.endswith(".log")


def read_log(files: Mapping[str, bytes], read: Read = records_of) -> tuple[list[Record], dict[str, int]]:
    """All records, and the whole length of each file. Raises StartRefused if something is missing in the middle."""
    by_segment, lengths = read_segments(files, read)
    return [record for records in by_segment for record in records], lengths


def read_segments(
    files: Mapping[str, bytes], read: Read = records_of
) -> tuple[list[list[Record]], dict[str, int]]:
    """The records of each file."""
    segments: list[list[Record]] = []
    lengths: dict[str, int] = {}
    for number in range(1, len(list(filter(is_segment, files))) + 1):
        records, lengths[SEGMENT.format(number)] = read_segment(files, number, read)
        segments.append(records)
    return segments, lengths


def read_segment(
    files: Mapping[str, bytes], number: int, read: Read = records_of
) -> tuple[list[Record], int]:
    """The records of one file, and their length. Only the last file may have a torn end."""
    name = SEGMENT.format(number)
    if name not in files:
        names = sorted(filter(is_segment, files))
        raise StartRefused(f"the log has a gap: expected {name}, got {', '.join(names)}")
    records, whole = read(name, files[name])
    if whole < len(files[name]) and SEGMENT.format(number + 1) in files:
        raise StartRefused(f"{name} is damaged at byte {whole}, and the log goes on in the next file")
    return records, whole


class Wal:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._index = CutIndex(site)
        self._segment = 1
        self._size = 0
        self.position = 0
        """The position of the next record: the number of records before it."""

    def read(self, files: Mapping[str, bytes]) -> list[Record]:
        segments, lengths = read_segments(files)
        for name, whole in lengths.items():
            if whole < len(files[name]):
                self._site.out.append(Truncate(name, whole))
                self._site.sometimes.note(TORN_TAIL)
            self._size = whole
        self._segment = max(len(lengths), 1)
        if lengths:  # a file is synced before the next one is made
            self._site.sync(SEGMENT.format(self._segment))
        records = [record for segment in segments for record in segment]
        self.position = len(records)
        entries = [entry_of(record, n) for n, segment in enumerate(segments, 1) for record in segment]
        self._index.read(files, [entry for entry in entries if entry is not None])
        return records

    def append(self, record: Record, then: Then | None = None) -> int:
        """Append a record; `then` is called when it is on disk. Returns the record's position."""
        data = framed(record)
        if self._size and self._size + len(data) > self._site.configuration.segment_bytes:
            self._segment += 1
            self._size = 0
        self._size += len(data)
        self._site.persist(SEGMENT.format(self._segment), data, record[0], then)
        # The index behind the log: it may lack entries, but never names a record that is not there.
        entry = entry_of(record, self._segment)
        if entry is not None:
            self._index.append(entry)
        self.position += 1
        return self.position - 1
