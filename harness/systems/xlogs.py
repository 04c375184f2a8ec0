"""The xlog and snap files that a node left, as the records that `checkers.wal` audits.

Ours and real Tarantool's, of any version: from 2.10 on a row's flags say whether it is synchronous; before, the
options of its space do, which stand in the log and the snapshot as rows of `_space`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from checkers.wal.record import Kind, NodeLog, Record
from nodes.iproto import xlog
from nodes.iproto.errors import XlogError
from nodes.iproto.messages import Key, Row, Type
from nodes.iproto.packing import pack
from nodes.kernel.vclock import covers, text

SPACES = 280
"""The system space `_space`."""
SYSTEM_SPACES_BELOW = 512
_OPTIONS = 5
"""The place of the options in a tuple of `_space`."""
FLAGS_SINCE = (2, 10)
LOCAL_GROUP = 1

_KINDS: Mapping[int, Kind] = {
    Type.INSERT.value: "write",
    Type.REPLACE.value: "write",
    4: "write",  # UPDATE
    Type.DELETE.value: "write",
    9: "write",  # UPSERT
    Type.NOP.value: "nop",
    Type.CONFIRM.value: "confirm",
    Type.ROLLBACK.value: "rollback",
    Type.PROMOTE.value: "promote",
    Type.DEMOTE.value: "demote",
    Type.RAFT.value: "vote",
}


def read_logs(folder: Path) -> tuple[NodeLog, ...]:
    """The log of every node: `folder` has a folder for each, or is itself that of one.

    Damage is told in the log that has it. A node without any xlog is not among them.
    """
    holders = sorted({path.parent for path in (*folder.glob("*.xlog"), *folder.glob("*/*.xlog"))})
    return tuple(read_log(holder) for holder in holders)


def read_log(folder: Path) -> NodeLog:
    """The log of one node from its files."""
    files: dict[str, bytes] = {}
    unreadable: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.suffix in (".xlog", ".snap"):
            try:
                files[path.name] = path.read_bytes()
            except OSError as error:
                unreadable.append(f"{path.name}: cannot be read: {error.strerror}")
    log = log_of(folder.name, files)
    damage = "; ".join((*unreadable, *([log.damage] if log.damage else ())))
    return replace(log, damage=damage or None)


def logs_of(disks: Mapping[str, Mapping[str, bytes]]) -> tuple[NodeLog, ...]:
    """As `read_logs`, from the bytes of each node's files by name."""
    return tuple(
        log_of(node, files)
        for node, files in sorted(disks.items())
        if any(name.endswith(".xlog") for name in files)
    )


def log_of(node: str, files: Mapping[str, bytes]) -> NodeLog:
    """The log of `node` from the bytes of its files by name. What cannot be read is told as its damage."""
    reader = _Reader()
    for name in sorted(files):
        if name.endswith(".snap"):
            reader.learn(files[name])
    logs = sorted(name for name in files if name.endswith(".xlog"))
    begun = xlog.begun([files[name] for name in logs])
    for number, name in enumerate(logs, start=1):
        reader.read(name, files[name], is_last=number >= begun)
    return NodeLog(
        node=node,
        records=tuple(reader.records),
        begins=reader.begins or {},
        damage="; ".join(reader.damage) or None,
    )


class _Reader:
    def __init__(self) -> None:
        self.records: list[Record] = []
        self.begins: Mapping[int, int] | None = None
        self.vclock: dict[int, int] = {}
        self.snapshot: Mapping[int, int] = {}
        """Of the newest one."""
        self.damage: list[str] = []
        self.synchronous_spaces: set[int] = set()

    def learn(self, data: bytes) -> None:
        """Which spaces of a snapshot are synchronous, and up to where it holds all."""
        try:
            found = xlog.decode(data)
            if found.meta is not None and found.finished:
                self.snapshot = found.meta.vclock
            for row in found.rows:
                self._learn(row)
        except XlogError:
            pass  # the log decides; a snapshot that cannot be read only makes it begin later

    def read(self, name: str, data: bytes, *, is_last: bool) -> None:
        try:
            found = xlog.decode(data)
        except XlogError as error:
            self.damage.append(f"{name}: {error}")
            return
        if found.meta is None:
            if not is_last:
                self.damage.append(f"{name}: {found.damage}")
            return
        if self.begins is None or self._is_behind_a_gap(found.meta.vclock):
            self.begins, self.vclock = found.meta.vclock, dict(found.meta.vclock)
            self.records.clear()
        elif not covers(self.vclock, found.meta.vclock):
            before, after = text(self.vclock), text(found.meta.vclock)
            self.damage.append(f"{name}: begins at {after}, but the log before it ends at {before}")
        # The torn end of a file is what a kill leaves: it was never acknowledged, and the next file does not count it.
        if found.damage is not None and not xlog.is_torn(data, found):
            self.damage.append(f"{name}: {found.damage}, but more rows follow")
        has_flags = _version(found.meta.server_version) >= FLAGS_SINCE
        for number, row in enumerate(found.rows, start=1):
            self.vclock[row.replica_id] = max(row.lsn, self.vclock.get(row.replica_id, 0))
            self._learn(row)
            self._take(row, f"{name} row {number}", has_flags)

    def _is_behind_a_gap(self, vclock: Mapping[int, int]) -> bool:
        """A log is gone and its rows stand in the snapshot: those before it could not be removed, and count no more."""
        return not covers(self.vclock, vclock) and covers(self.snapshot, vclock)

    def _learn(self, row: Row) -> None:
        if row.body.get(Key.SPACE_ID.value) != SPACES:
            return
        match row.body.get(Key.TUPLE.value):
            case (int(id), _, _, _, _, {"is_sync": is_sync}, *_):
                (self.synchronous_spaces.add if is_sync else self.synchronous_spaces.discard)(id)
            case (int(id), *_):
                self.synchronous_spaces.discard(id)

    def _take(self, row: Row, place: str, has_flags: bool) -> None:
        kind = _KINDS.get(row.type)
        is_local = row.group_id == LOCAL_GROUP or row.replica_id == 0
        if kind is None or (is_local and kind != "vote"):
            return
        space = row.body.get(Key.SPACE_ID.value, 0)
        is_synchronous = row.wait_ack if has_flags else kind == "write" and space in self.synchronous_spaces
        values = row.body.get(Key.TUPLE.value, ())
        self.records.append(
            Record(
                kind=kind,
                origin=row.replica_id,
                lsn=row.lsn,
                place=place,
                first=row.tsn,
                ends=row.is_commit,
                is_synchronous=is_synchronous,
                body=pack(dict(row.body)),
                space=_number(space),
                tuple=values if isinstance(values, tuple) and kind == "write" else (),
                **_decision(kind, row),
            )
        )


def _decision(kind: Kind, row: Row) -> dict[str, Any]:
    body = row.body
    match kind:
        case "confirm" | "rollback":
            return {"owner": _number(body[Key.REPLICA_ID.value]), "until": _number(body[Key.LSN.value])}
        case "promote" | "demote":
            return {
                "owner": _number(body[Key.REPLICA_ID.value]),
                "until": _number(body[Key.LSN.value]),
                "term": _number(body[Key.TERM.value]),
                "waits": row.wait_ack if row.wait_sync else None,
            }
        case "vote":
            return {"term": _number(body.get(0, 0)), "vote": _number(body.get(1, 0))}
    return {}


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _version(text: str) -> tuple[int, ...]:
    """`2.6.0-0-g47aa4e01e` → (2, 6, 0)."""
    numbers = []
    for part in text.split("-", maxsplit=1)[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
