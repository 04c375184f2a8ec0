"""The rows of a server as of a cut, from its files: the last base snapshot before the cut, and the log behind that.

Before START every commit counts that FINISH does not exclude; behind START, only those that FINISH includes. STARTs of
cuts without a FINISH are ignored. A whole cluster can be restored to a cut that has a FINISH on every server, and that
no server has taken back (VOID):
`restored_files` gives the folders that a second cluster begins with, or refuses before there is any.

Atomic spaces are left out: no cut has a moment of theirs. The first record of a restored log names them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodes.kernel.errors import StartRefused
from nodes.records import Read, Record, framed, records_of
from nodes.twophase.configuration import Layout
from nodes.twophase.cut_index import Entry, entry_of, read_index
from nodes.twophase.decisions import Decisions
from nodes.twophase.wal import SEGMENT, is_segment, number_of, read_log


class NotRestorable(Exception):
    """The message is one sentence."""


@dataclass(frozen=True, slots=True)
class Restored:
    """`rows`: [space, key, value, version]. `before`: the transactions behind the base that belong to the cut.
    `left_out`: the atomic spaces, of which nothing is restored."""

    cut: str
    rows: list[list[Any]]
    before: frozenset[str]
    left_out: tuple[str, ...] = ()


def restore(
    files: Mapping[str, bytes], cut: str, decisions: Decisions | None = None, read: Read = records_of
) -> Restored:
    """Of one server. Raises NotRestorable; StartRefused if a file is damaged."""
    decides = decisions or Decisions()
    records = _of_one_life(list(_relevant(files, cut, read)), cut)
    start = _place(records, "start", cut)
    finish = _place(records, "finish", cut)
    if finish < start:
        raise NotRestorable(f"the cut {cut} has its FINISH before its START")
    first, rows = _base(files, records[:start], read)
    if any(record[0] == "rebalanced" for record in records[first:finish]):
        raise NotRestorable(f"a partition was rebalanced between the last base snapshot and the cut {cut}")
    included, excluded = (set(names) for names in records[finish][2:4])
    before: set[str] = set()
    table = {(space, key): (value, version) for space, key, value, version in rows}
    for place, record in enumerate(records[first:finish], first):
        if record[0] != "committed":
            continue
        xid, writes = record[1], record[5]
        if decides.is_in(place < start, xid in included, xid in excluded):
            before.add(xid)
            for space, key, value, version in writes:
                if version > table.get((space, key), (None, 0))[1]:
                    table[space, key] = (value, version)
        included.discard(xid)
    if included:
        raise NotRestorable(f"the cut {cut} includes {min(included)}, which the log does not hold")
    return Restored(
        cut,
        [[space, key, value, version] for (space, key), (value, version) in sorted(table.items(), key=str)],
        frozenset(before),
        tuple(records[start][5]) if len(records[start]) > 5 else (),
    )


def must_begin_anew(cut: str | None, records: Sequence[Record]) -> bool:
    """A node is to be restored to this cut, and its log does not say that it was."""
    return cut is not None and not any(record[:2] == ["restored", cut] for record in records)


def restored_files(
    files_by_node: Mapping[str, Mapping[str, bytes]],
    cut: str,
    layout: Layout,
    decisions: Decisions | None = None,
) -> dict[str, dict[str, bytes]]:
    """For every server the files of a new folder, which hold its rows as of the cut and nothing else.

    `layout`: of the cluster that begins with them. Raises NotRestorable in place of a part.
    """
    for node, files in files_by_node.items():
        try:
            taken = _layout_of(files, cut)
        except StartRefused as damaged:
            raise NotRestorable(f"{node}: {damaged}") from None
        if taken is not None and taken != layout:
            raise NotRestorable(
                f"the cut {cut} is of {_in_words(taken)}, and this cluster has {_in_words(layout)}"
            )
    finished = check_restorable(files_by_node, cut, layout[2:], decisions)
    restored = {}
    for node in finished:
        try:
            found = restore(files_by_node[node], cut, decisions)
        except (NotRestorable, StartRefused) as refused:
            raise NotRestorable(f"{node}: {refused}") from None
        restored[node] = {SEGMENT.format(1): framed(["restored", cut, found.rows, list(found.left_out)])}
    return restored


def check_restorable(
    files_by_node: Mapping[str, Mapping[str, bytes]],
    cut: str,
    baseline: Collection[str],
    decisions: Decisions | None = None,
    read: Read = records_of,
) -> list[str]:
    """The servers that have finished the cut. Raises NotRestorable: nothing may be restored anywhere then."""
    entries = {node: _entries(files, read) for node, files in files_by_node.items()}
    finished = [node for node, found in entries.items() if _marks(found, cut)]
    void = [node for node in finished if _marks(entries[node], cut)[-1] == "void"]
    if not (decisions or Decisions()).is_restorable(finished, void, baseline):
        if void:
            raise NotRestorable(f"the cut {cut} has failed, and {void[0]} has taken its FINISH back")
        missing = ", ".join(sorted(set(baseline) - set(finished)))
        raise NotRestorable(f"the cut {cut} has no FINISH on {missing}")
    for node in finished:
        if _restores(entries[node], cut) != _restores(entries[finished[0]], cut):
            raise NotRestorable(
                f"{finished[0]} and {node} have different cuts {cut}: one was finished before a restore in place"
            )
    return finished


def _layout_of(files: Mapping[str, bytes], cut: str) -> Layout | None:
    """As START has it; None: there is no START of this cut, or it does not say."""
    starts = [record for record in read_log(files)[0] if record[:2] == ["start", cut]]
    return starts[-1][4] if starts and len(starts[-1]) > 4 else None


def _in_words(layout: Layout) -> str:
    partitions, backups, *servers = layout
    return f"{len(servers)} servers ({', '.join(servers)}) with {partitions} partitions and {backups} backups of each"


def _entries(files: Mapping[str, bytes], read: Read) -> list[Entry]:
    """What the log has of cuts and bases: by the index, and by the part of the log that it may lack."""
    index = read_index(files, read)
    last = index[-1].segment if index else 1
    entries = [entry for entry in index if entry.segment < last]
    for name in sorted(filter(is_segment, files)):
        if number_of(name) >= last:
            found = (entry_of(record, number_of(name)) for record in read(name, files[name])[0])
            entries += [entry for entry in found if entry is not None]
    return entries


def _marks(entries: Sequence[Entry], cut: str) -> list[str]:
    """FINISH, and VOID if it was taken back, in their order."""
    return [entry.kind for entry in entries if entry.name == cut and entry.kind in ("finish", "void")]


def _restores(entries: Sequence[Entry], cut: str) -> list[str]:
    """The cuts to which the server was restored in place before this FINISH."""
    finish = max(place for place, entry in enumerate(entries) if (entry.kind, entry.name) == ("finish", cut))
    return [entry.name for entry in entries[:finish] if entry.kind == "restored"]


def _of_one_life(records: list[Record], cut: str) -> list[Record]:
    """A restored cluster counts its cuts anew, in the same log: the records since the last time before this FINISH."""
    finishes = [place for place, record in enumerate(records) if record[:2] == ["finish", cut]]
    last = finishes[-1] if finishes else len(records)
    begins = [place for place, record in enumerate(records) if record[0] == "restored"]
    first = max((place for place in begins if place <= last), default=0)
    end = min((place for place in begins if place > last), default=len(records))
    return records[first:end]


def _relevant(files: Mapping[str, bytes], cut: str, read: Read) -> Iterator[Record]:
    """The records from the base before a cut to its FINISH, by the index; all, if it does not know the cut."""
    index = read_index(files, read)
    known = [entry for entry in index if entry.name == cut and entry.kind in ("start", "finish")]
    if [entry.kind for entry in known] != ["start", "finish"]:
        yield from read_log(files, read)[0]
        return
    start, finish = known
    done = [entry.name for entry in index[: index.index(start)] if entry.kind == "base-done"]
    bases = [
        entry.segment
        for entry in index[: index.index(start)]
        if entry.kind == "restored" or (entry.kind == "base" and entry.name in done)
    ]
    for number in range(bases[-1] if bases else 1, finish.segment + 1):
        name = SEGMENT.format(number)
        if name not in files:
            raise NotRestorable(f"the log has a gap: {name} is missing")
        yield from read(name, files[name])[0]


def _place(records: list[Record], kind: str, cut: str) -> int:
    places = [place for place, record in enumerate(records) if record[0] == kind and record[1] == cut]
    if len(places) != 1:
        found = "no" if not places else "more than one"
        raise NotRestorable(f"the cut {cut} has {found} {kind.upper()} in this log")
    return places[0]


def _base(files: Mapping[str, bytes], records: list[Record], read: Read) -> tuple[int, list[list[Any]]]:
    """Where the records behind the last base begin, and its rows."""
    done = {record[1] for record in records if record[0] == "base-done"}
    for place in range(len(records) - 1, -1, -1):
        record = records[place]
        if record[0] == "restored":
            return place + 1, record[2]
        if record[0] == "base" and record[1] in done:
            if record[2] not in files:
                raise NotRestorable(f"the file {record[2]} of the base snapshot {record[1]} is missing")
            content, _ = read(record[2], files[record[2]])
            return place + 1, content[0][1]
    return 0, []
