"""The logs and traces that servers of the two-phase store leave, as `checkers.cuts` reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from checkers.cuts import Logs, NodeLog, Record, Restored, Trace, jsonl, logs_of, trace_of
from harness.cluster.place import TRACE
from harness.systems.parts import NodeFiles
from nodes.kernel.errors import StartRefused
from nodes.records import Read, records_of
from nodes.twophase.cut_index import FILE as INDEX
from nodes.twophase.data import partition_of
from nodes.twophase.decisions import Decisions
from nodes.twophase.restore import NotRestorable, check_restorable, restore
from nodes.twophase.wal import is_segment, read_log


def logs_in(files: NodeFiles, servers: Sequence[str], read: Read = records_of) -> Logs:
    """The logs of those servers that left files.

    A FINISH that its server has taken back does not count. A base snapshot stands where its rows were taken. It counts
    on every server if one log says that it was done: a server that died before it wrote so has the rows as well.
    """
    logs = {server: _read(files[server], read) for server in servers if server in files}
    done = {record[1] for records, _ in logs.values() for record in records if record[0] == "base-done"}
    return logs_of(
        NodeLog(
            node=server,
            records=list(_in_words(records, done)),
            damage=damage,
        )
        for server, (records, damage) in logs.items()
    )


def _in_words(records: Sequence[Sequence[Any]], done: Collection[str]) -> Iterator[Record]:
    void = _void(records)
    for record in records:
        entry = _record(record, done, void)
        if entry is not None:
            yield entry


def _read(files: Mapping[str, bytes], read: Read) -> tuple[Sequence[Sequence[Any]], str]:
    """The records of a log, or none and what is wrong with it. An index never names a record that is not there."""
    if files.get(INDEX) and not any(map(is_segment, files)):
        return (), f"{INDEX} names records, and there is no log"
    try:
        return read_log(files, read)[0], ""
    except StartRefused as damaged:
        return (), str(damaged)


def _record(record: Sequence[Any], done: Collection[str], void: Collection[str]) -> Record | None:
    match record:
        case ["prepared", xid, _, _, _, _, participants, _]:
            return Record(kind="prepared", xid=xid, participants=_nodes(participants))
        case ["committed", xid, sign, recovered, participants, writes]:
            return Record(
                kind="committed",
                xid=xid,
                by="recovery" if recovered else "",
                sign=str(sign),
                participants=_nodes(participants),
                writes=[((space, key), version) for space, key, _, version in writes],
            )
        case ["rolled-back", xid]:
            return Record(kind="rolled-back", xid=xid)
        case ["start", cut, *_]:
            return Record(kind="start", cut=cut)
        case ["finish", cut, included, excluded] if cut not in void:
            return Record(kind="finish", cut=cut, included=included, excluded=excluded)
        case ["rebalanced", *_]:
            return Record(kind="rebalanced")
        case ["base", snapshot, _] if snapshot in done:
            return Record(kind="base", cut=snapshot)
        case _:
            return None


def _nodes(participants: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node for _, nodes in participants for node in nodes))


def trace_in(files: NodeFiles, *, is_one_clock: bool) -> Trace | None:
    """The record of messages; None if there is none."""
    lives = [
        life
        for node, left in sorted(files.items())
        for path, data in sorted(left.items())
        if path.startswith(f"{TRACE}/") and data
        for life in jsonl.lives_of(f"{node}/{path}", data, has_ends=False)  # `nodes.kernel.trace` writes none
    ]
    return trace_of(lives, is_one_clock=is_one_clock) if lives else None


Records = Mapping[str, Sequence[Sequence[Any]]]
"""Server → the records of its log."""


def records_in(files: NodeFiles, servers: Sequence[str], read: Read = records_of) -> Records:
    """The records of every server, in this order. A damaged log counts as empty."""
    return {server: _read(files.get(server, {}), read)[0] for server in servers}


def damage_in(files: NodeFiles, servers: Sequence[str]) -> str:
    """Why a log cannot be read, or says nothing of a cut that it has finished; empty if there is none such."""
    for server in servers:
        if server not in files:
            return f"{server} left no files"
        records, damage = _read(files[server], records_of)
        if damage:
            return f"{server}: {damage}"
        cuts = {kind: {record[1] for record in records if record[0] == kind} for kind in ("start", "finish")}
        if unbegun := cuts["finish"] - cuts["start"]:
            return f"{server}: the log has a FINISH of the cut {min(unbegun)}, and no START"
    return ""


def restored_in(
    files: NodeFiles,
    records: Records,
    cut: str,
    partitions: int,
    backups: int,
    decisions: Decisions,
    read: Read,
) -> Restored | None:
    """The state of a cut: each server's rows as a restore brings them back, and a replay of all logs beside.

    None if the restore of the cluster refuses the cut. `decisions`: those of the nodes, which restore themselves.
    """
    servers = tuple(records)
    try:
        check_restorable(files, cut, servers, decisions, read)
    except (NotRestorable, StartRefused):
        return None
    rows: dict[str, dict[int, dict[Any, Any]]] = {}
    refused: dict[str, str] = {}
    for place, server in enumerate(servers):
        try:
            restored = restore(files.get(server, {}), cut, decisions, read)
        except (NotRestorable, StartRefused) as why:
            refused[server] = str(why)
            continue
        owned = [p for p in range(partitions) if (place - p) % len(servers) <= backups]
        rows[server] = {partition: {} for partition in owned}
        for space, key, value, version in restored.rows:
            rows[server].setdefault(partition_of((space, key), partitions), {})[space, key] = (value, version)
    primaries = {partition: servers[partition % len(servers)] for partition in range(partitions)}
    oracle = None if refused else replayed(records, cut)
    return Restored(cut=cut, rows=rows, primary=primaries, oracle=oracle, refused=refused)


def replayed(logs: Records, cut: str) -> dict[Any, Any]:
    """Key → the newest (value, version) that any server committed before the cut, from the beginning of all logs."""
    newest: dict[Any, Any] = {}
    for records in logs.values():
        start = next(place for place, record in enumerate(records) if record[:2] == ["start", cut])
        finish = next(place for place, record in enumerate(records) if record[:2] == ["finish", cut])
        included, excluded = records[finish][2:4]
        for place, record in enumerate(records[:finish]):
            if record[0] != "committed":
                continue
            if record[1] in included or (place < start and record[1] not in excluded):
                for space, key, value, version in record[5]:
                    newest[space, key] = max(
                        newest.get((space, key), (None, 0)), (value, version), key=_version
                    )
    return newest


def finished_in(records: Records) -> dict[str, list[str]]:
    """Cut → the servers that have its FINISH and have not taken it back, in the order in which logs name cuts."""
    finished: dict[str, list[str]] = {}
    for server, log in records.items():
        void = _void(log)
        for record in log:
            if record[0] == "finish":
                has_finished = finished.setdefault(record[1], [])
                if record[1] not in void:
                    has_finished.append(server)
    return finished


def _void(log: Sequence[Sequence[Any]]) -> frozenset[str]:
    """The cuts of which a server has taken its FINISH back."""
    return frozenset(record[1] for record in log if record[0] == "void")


def _version(versioned: tuple[object, int]) -> int:
    return versioned[1]
