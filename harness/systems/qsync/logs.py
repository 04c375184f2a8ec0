"""The xlog and snap files that a node left, as the records that `checkers.logs.wal` audits.

Ours and real Tarantool's, of any version. Large ones are read as columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from checkers.compiled import why_plain
from checkers.logs.wal.record import NodeLog, NotPlain
from harness.systems.parts import Logs, NodeFiles
from harness.systems.qsync.log_headers import contradictions
from harness.systems.qsync.log_reader import Shared
from harness.systems.qsync.log_rows import rows_as_json
from nodes.iproto import xlog
from nodes.iproto.inspection import Inspection, inspect
from nodes.kernel.effects import REMOVED

LOGS, SNAPSHOTS = ".xlog", ".snap"
OF_VINYL = (".vylog", ".run", ".index")
"""Files that are looked into and not audited."""
LARGE = 4 << 20
"""Bytes of logs from which on they are read as columns; loading the code for that takes as long as reading so many."""


class Xlogs(Logs):
    suffixes = (LOGS, SNAPSHOTS, *OF_VINYL)
    torn = (f"*{LOGS}",)

    def read(self, folder: Path) -> tuple[NodeLog, ...]:
        return read_logs(folder)

    def of(self, disks: NodeFiles) -> tuple[NodeLog, ...]:
        return logs_of(disks)

    def inspected(self, data: bytes) -> Inspection:
        return inspect(data)

    def rows_in(self, data: bytes) -> list[dict[str, object]]:
        return rows_as_json(data)


def read_logs(folder: Path) -> tuple[NodeLog, ...]:
    """The log of every node: `folder` has a folder for each, or is itself that of one.

    Damage is reported in the log that has it. A node without any xlog is not among them, unless a snapshot of it is
    damaged.
    """
    holders, others = _holders(folder, LOGS), _holders(folder, SNAPSHOTS)
    logs = _as_columns(holders)
    if logs is None:
        shared = Shared()
        logs = tuple(read_log(holder, shared) for holder in holders)
    bare = (read_log(holder) for holder in others if holder not in holders)
    spoilt = (replace(log, damage="; ".join(log.unread)) for log in bare if log.unread)
    return (*logs, *(replace(log, unread=()) for log in spoilt))


def _holders(folder: Path, suffix: str) -> list[Path]:
    """The folders of nodes with such files."""
    paths = (path for depth in ("", "*/") for path in folder.glob(f"{depth}*{suffix}"))
    return sorted({path.parent for path in paths if path.parent.name != REMOVED})


def _as_columns(holders: Sequence[Path]) -> tuple[NodeLog, ...] | None:
    """The logs in these folders as columns; None if they are short, or cannot be read so."""
    logs = [path for holder in holders for path in _paths(holder) if path.suffix == LOGS]
    try:
        sizes = [path.stat().st_size for path in logs]
        if sum(sizes) < LARGE or why_plain():
            return None
        from harness.systems.qsync.log_columns import InColumns

        shared = InColumns(sum(sizes))
        return tuple(log_of(holder.name, _Files(holder), shared) for holder in holders)
    except (NotPlain, OSError):
        return None


class _Files(Mapping[str, bytes]):
    """The logs and snapshots of a node, each read when it is asked for: those of a day do not fit into memory."""

    def __init__(self, folder: Path) -> None:
        self._paths = {str(path.relative_to(folder)): path for path in _paths(folder)}

    def __getitem__(self, name: str) -> bytes:
        return self._paths[name].read_bytes()

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def _paths(folder: Path) -> list[Path]:
    """The paths of the logs and snapshots of a node."""
    paths = sorted((*folder.iterdir(), *folder.glob(f"{REMOVED}/*")))
    return [path for path in paths if path.suffix in (LOGS, SNAPSHOTS)]


def read_log(folder: Path, shared: Shared | None = None) -> NodeLog:
    """The log of one node from its files. `shared`: with the logs of the other nodes."""
    files: dict[str, bytes] = {}
    unreadable: list[str] = []
    for path in _paths(folder):
        try:
            files[str(path.relative_to(folder))] = path.read_bytes()
        except OSError as error:
            unreadable.append(f"{path.name}: cannot be read: {error.strerror}")
    log = log_of(folder.name, files, shared)
    damage = "; ".join((*unreadable, *([log.damage] if log.damage else ())))
    return replace(log, damage=damage or None)


def logs_of(disks: Mapping[str, Mapping[str, bytes]]) -> tuple[NodeLog, ...]:
    """As `read_logs` of nodes with xlogs, from the bytes of each node's files by name."""
    shared = Shared()
    return tuple(
        log_of(node, files, shared)
        for node, files in sorted(disks.items())
        if any(name.endswith(".xlog") for name in files)
    )


def log_of(node: str, files: Mapping[str, bytes], shared: Shared | None = None) -> NodeLog:
    """The log of `node` from the bytes of its files by name. `damage` names damaged logs, `unread` damaged snapshots.

    Files that the node removed make the log begin earlier, where its host kept them.
    """
    removed = {PurePosixPath(name).name: name for name in files if name.startswith(f"{REMOVED}/")}
    names = removed | {name: name for name in files if name not in removed.values()}
    shared = Shared() if shared is None else shared
    reader = shared.reader()
    for name in sorted(names):
        if name.endswith(SNAPSHOTS):
            reader.learn(name, partial(files.__getitem__, names[name]))
    logs = sorted(name for name in names if name.endswith(LOGS))
    # Files without a header behind the last one that has one: a crash left them when they were just created.
    begun = len(logs)
    while begun and xlog.rows_at(files[names[logs[begun - 1]]]) < 0:
        begun -= 1
    for number, name in enumerate(logs, start=1):
        reader.read(name, partial(files.__getitem__, names[name]), is_last=number >= begun)
    own = {name: meta for name, meta in reader.headers.items() if names[name] == name}
    for name, why in contradictions(own, reader.vclock).items():
        (reader.damage if name.endswith(LOGS) else reader.unread).append(f"{name}: {why}")
    if not reader.has_flags:  # the definitions of spaces, which snapshots hold, say what rows mean
        reader.damage += reader.unread
        reader.unread = []
    return NodeLog(
        node=node,
        records=reader.taken(),
        begins=reader.begins or {},
        damage="; ".join(reader.damage) or None,
        unread=tuple(reader.unread),
        snapshots=reader.comparable(),
        instance=reader.instance,
        members=reader.definitions.members,
    )
