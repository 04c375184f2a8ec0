"""The rows of a server as of a cut, from its files: the last base snapshot before the cut, and the log behind that.

Commits before START count unless FINISH excludes them; commits behind START count only if FINISH includes them. STARTs
of cuts without a FINISH are ignored. A whole cluster can be restored to a cut that has a FINISH on every server, and
that no server has taken back (VOID): `restored_files` gives the folders of a second cluster, or raises NotRestorable.
`cut_at` chooses a cut by time: a cut's timestamp is the wall clock of the node that was asked for it, or just more than
the timestamp of the cut before.

Atomic spaces are left out, because cuts do not cover them. The first record of a restored log names them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodes.kernel.errors import StartRefused
from nodes.records import Read, Record, framed, records_of
from nodes.twophase.configuration import Layout
from nodes.twophase.cut_index import Entry, check_held, entry_of, read_index
from nodes.twophase.decisions import Decisions
from nodes.twophase.wal import SEGMENT, is_segment, read_log, read_segment


class NotRestorable(Exception):
    """The message is one sentence."""


@dataclass(frozen=True, slots=True)
class Restored:
    """`rows`: [space, key, value, version]. `before`: the transactions behind the base that belong to the cut.
    `left_out`: the atomic spaces, which are not restored."""

    cut: str
    rows: list[list[Any]]
    before: frozenset[str]
    left_out: tuple[str, ...] = ()


def restore(
    files: Mapping[str, bytes], cut: str, decisions: Decisions | None = None, read: Read = records_of
) -> Restored:
    """Restore one server. Raises NotRestorable; StartRefused if a file is damaged."""
    decides = decisions or Decisions()
    records = _relevant(files, cut, read)
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


def restored_files(
    files_by_node: Mapping[str, Mapping[str, bytes]],
    cut: str,
    layout: Layout,
    decisions: Decisions | None = None,
) -> dict[str, dict[str, bytes]]:
    """Server → the files of a new folder, which hold only its rows as of the cut.

    `layout`: of the new cluster. Raises NotRestorable if any server cannot be restored.
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
            part = restore(files_by_node[node], cut, decisions)
        except (NotRestorable, StartRefused) as refused:
            raise NotRestorable(f"{node}: {refused}") from None
        restored[node] = {SEGMENT.format(1): framed(["restored", cut, part.rows, list(part.left_out)])}
    return restored


def check_restorable(
    files_by_node: Mapping[str, Mapping[str, bytes]],
    cut: str,
    baseline: Collection[str],
    decisions: Decisions | None = None,
    read: Read = records_of,
) -> list[str]:
    """The servers that have finished the cut. Raises NotRestorable if no server may be restored to it."""
    marks = {}
    for node, files in files_by_node.items():
        try:
            marks[node] = [entry.kind for entry in _entries(files, read) if entry.name == cut]
        except StartRefused as damaged:
            raise NotRestorable(f"{node}: {damaged}") from None
    finished = [node for node, kinds in marks.items() if "finish" in kinds]
    void = [node for node in finished if "void" in marks[node]]
    if (decisions or Decisions()).is_restorable(finished, void, baseline):
        return finished
    if void:
        raise NotRestorable(f"the cut {cut} has failed, and {void[0]} has taken its FINISH back")
    missing = ", ".join(sorted(set(baseline) - set(finished)))
    raise NotRestorable(f"the cut {cut} has no FINISH on {missing}")


def cut_at(
    files_by_node: Mapping[str, Mapping[str, bytes]],
    time_ns: int,
    baseline: Collection[str],
    decisions: Decisions | None = None,
) -> str:
    """The newest cut with a timestamp up to `time_ns` to which the servers can be restored.

    Raises NotRestorable if there is none.
    """
    times: dict[str, int] = {}
    for node, files in files_by_node.items():
        try:
            times.update(_times(files))
        except StartRefused as damaged:
            raise NotRestorable(f"{node}: {damaged}") from None
    known = sorted((began_ns, cut) for cut, began_ns in times.items())
    why = f"the first cut is of {known[0][0]} ns" if known else "no log has a cut with a timestamp"
    for _, cut in reversed([entry for entry in known if entry[0] <= time_ns]):
        try:
            check_restorable(files_by_node, cut, baseline, decisions)
        except NotRestorable as refused:
            why = str(refused)
        else:
            return cut
    raise NotRestorable(f"no cut up to {time_ns} ns can be restored: {why}")


def _times(files: Mapping[str, bytes]) -> list[tuple[str, int]]:
    """Name and timestamp of each cut with a START in the log; logs of older versions have no timestamps."""
    segments = dict.fromkeys(entry.segment for entry in _entries(files, records_of) if entry.kind == "start")
    records = [record for number in segments for record in read_segment(files, number)[0]]
    return [(record[1], record[6]) for record in records if record[0] == "start" and len(record) > 6]


def _layout_of(files: Mapping[str, bytes], cut: str) -> Layout | None:
    """The layout in the START of this cut; None: there is no START, or it has none."""
    starts = [record for record in read_log(files)[0] if record[:2] == ["start", cut]]
    return starts[-1][4] if starts and len(starts[-1]) > 4 else None


def _in_words(layout: Layout) -> str:
    partitions, backups, *servers = layout
    return f"{len(servers)} servers ({', '.join(servers)}) with {partitions} partitions and {backups} backups of each"


def _entries(files: Mapping[str, bytes], read: Read) -> list[Entry]:
    """The entries of cuts and bases: those of the index, and those of the part of the log that the index may lack."""
    index = read_index(files, read)
    last = index[-1].segment if index else 1
    entries = [entry for entry in index if entry.segment < last]
    for number in range(last, len(list(filter(is_segment, files))) + 1):
        read_entries = (entry_of(record, number) for record in read_segment(files, number, read)[0])
        entries += [entry for entry in read_entries if entry is not None]
    check_held(index, entries)
    return entries


def _relevant(files: Mapping[str, bytes], cut: str, read: Read) -> list[Record]:
    """The records from the base before a cut to its FINISH; all, if the log lacks START or FINISH."""
    entries = _entries(files, read)
    known = [entry for entry in entries if entry.name == cut and entry.kind in ("start", "finish")]
    if [entry.kind for entry in known] != ["start", "finish"]:
        return read_log(files, read)[0]
    start, finish = known
    before = entries[: entries.index(start)]
    base = _last_base([(entry.kind, entry.name) for entry in before])
    first = 1 if base is None else before[base].segment
    return [record for n in range(first, finish.segment + 1) for record in read_segment(files, n, read)[0]]


def _place(records: list[Record], kind: str, cut: str) -> int:
    places = [place for place, record in enumerate(records) if record[0] == kind and record[1] == cut]
    if len(places) != 1:
        count = "no" if not places else "more than one"
        raise NotRestorable(f"the cut {cut} has {count} {kind.upper()} in this log")
    return places[0]


def _base(files: Mapping[str, bytes], records: list[Record], read: Read) -> tuple[int, list[list[Any]]]:
    """The place of the first record behind the last base, and the rows of that base."""
    place = _last_base([(record[0], record[1]) for record in records])
    if place is None:
        return 0, []
    kind, name, content = records[place][:3]
    if kind == "restored":
        return place + 1, content
    if content not in files:
        raise NotRestorable(f"the file {content} of the base snapshot {name} is missing")
    whole, _ = read(content, files[content])
    if not whole:
        raise NotRestorable(f"the file {content} of the base snapshot {name} is damaged")
    return place + 1, whole[0][1]


def _last_base(marks: Sequence[tuple[str, str]]) -> int | None:
    """The place in `marks`, (kind, name), of the last base with its end behind it: all servers have finished that."""
    done: set[str] = set()
    for place in range(len(marks) - 1, -1, -1):
        kind, name = marks[place]
        if kind == "base-done":
            done.add(name)
        elif kind == "restored" or (kind == "base" and name in done):
            return place
    return None
