"""The files of a log as a process finds them at its start: snapshots, and the rows behind them.

A torn tail of the newest file is cut off: it was never acknowledged. A file without a header was not begun, so the one
before it is the newest. A first snapshot that is not whole is taken for one that a crash cut off, and is made anew. Any
other damage raises `StartRefused`, also a block with good blocks behind it, and a transaction that is not whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nodes.iproto import xlog
from nodes.iproto.errors import XlogError
from nodes.iproto.messages import Row
from nodes.iproto.transactions import flaw_in
from nodes.kernel.effects import UNFINISHED, Effect, Remove, Truncate
from nodes.kernel.errors import StartRefused
from nodes.kernel.vclock import Vclock, covers, text
from nodes.qsync import snapshot as snapshots
from nodes.qsync.snapshot import Snapshot


@dataclass(slots=True)
class LogFile:
    """One xlog: where it begins, as a vclock and as a position in `rows`, and its length in bytes."""

    name: str
    vclock: Vclock
    position: int
    size: int = 0


class StoredLog:
    """What is on the disk of the node `instance_uuid`, and the effects that put its files right.

    The journal takes the lists and the vclock over as its own.
    """

    def __init__(self, instance_uuid: str, files: Mapping[str, bytes]) -> None:
        """`files`: content by name."""
        self.rows: list[Row] = []
        self.files: list[LogFile] = []
        self.snapshots: list[tuple[str, Vclock]] = []
        """Name and vclock, oldest first."""
        self.vclock: Vclock = {}
        """Where the rows end."""
        self.newest = ""
        """The newest log with a header."""
        self.server_version: str | None = None
        """The version that wrote it."""
        self.effects: list[Effect] = [Remove(name) for name in sorted(files) if name.endswith(UNFINISHED)]
        self._instance_uuid = instance_uuid
        first = xlog.file_name({}, "SNAP")
        is_whole = files.get(first, xlog.encode_eof()).endswith(xlog.encode_eof())
        if not is_whole and any(name > first for name in _snapshots_of(files)):
            self.effects.append(Remove(first))  # the disk was full, or broken, at the first start
            files = {name: data for name, data in files.items() if name != first}
        self.contents = files
        self.snapshot = self._newest_snapshot()
        self.logs = sorted(name for name in files if name.endswith(".xlog"))
        begun = xlog.begun([files[name] for name in self.logs])
        self.empty = self.logs[begun:]
        """The logs without a header."""
        if not self.logs and self.snapshot is not None:
            self.vclock = dict(self.snapshot.vclock)
        for name in self.logs[:begun]:
            self.effects += self._read(name, self.logs[begun - 1 :])

    def _newest_snapshot(self) -> Snapshot | None:
        """None if there is none, or only the first snapshot of a new disk, torn by a crash."""
        files = self.contents
        names = _snapshots_of(files)
        if not names or (
            names[-1] == xlog.file_name({}, "SNAP") and not snapshots.is_whole(files[names[-1]])
        ):
            return None
        for name in names:
            meta = snapshots.meta(name, files[name])
            if meta.instance_uuid != self._instance_uuid:
                raise StartRefused(
                    f"{name}: written by {meta.instance_uuid}, but we are {self._instance_uuid}"
                )
            self.snapshots.append((name, dict(meta.vclock)))
        return snapshots.read(names[-1], files[names[-1]])

    def _read(self, name: str, newest: Sequence[str]) -> list[Effect]:
        """Append a file's rows. Returns the effects on the files: a torn tail is cut off.

        `newest`: the last file that was begun, and the files behind it.
        """
        data, snapshot = self.contents[name], self.snapshot
        try:
            log = xlog.decode(data)
        except XlogError as error:
            raise StartRefused(f"{name}: {error}") from error
        if log.meta is None:
            return []  # if anything is missing, the next file does not follow
        if log.meta.instance_uuid != self._instance_uuid:
            raise StartRefused(
                f"{name}: written by {log.meta.instance_uuid}, but we are {self._instance_uuid}"
            )
        effects: list[Effect] = []
        if not self.files:
            self.vclock = dict(log.meta.vclock)
        elif (
            snapshot is not None
            and log.meta.vclock != self.vclock
            and covers(snapshot.vclock, log.meta.vclock)
        ):
            effects += forgotten(self.rows, self.files, self.vclock, snapshot, log.meta.vclock)
            self.newest = ""
        if log.meta.vclock != self.vclock:
            raise StartRefused(
                f"{name}: begins at {text(log.meta.vclock)}, but the log before it ends at {text(self.vclock)}: "
                "records in between are lost"
            )
        self.files.append(LogFile(name, dict(self.vclock), len(self.rows), log.good_bytes))
        self.newest = name
        flaw = flaw_in(log)
        if flaw is not None:
            raise StartRefused(f"{name}: {flaw.sentence}")
        for row in log.rows:
            last = self.vclock.get(row.replica_id, 0)
            if row.lsn <= last:
                raise StartRefused(
                    f"{name}: lsn {row.lsn} of replica {row.replica_id} stands behind lsn {last}"
                )
            self.vclock[row.replica_id] = row.lsn
            self.rows.append(row)
        # The last file with a header: those behind it were just created, and hold nothing.
        is_last = name == newest[0]
        self.server_version = log.meta.server_version
        if log.damage is not None and not log.can_be_torn:
            raise StartRefused(f"{name}: {log.damage}, which no crash leaves")
        # A crash tears the end of the newest file alone: damage with good rows behind it hides rows that were answered.
        if log.damage is not None and (not is_last or xlog.goes_on(data, log.good_bytes)):
            raise StartRefused(f"{name}: {log.damage}, but more rows follow")
        good_bytes = log.good_bytes
        if is_last and log.finished and (len(newest) == 1 or not log.rows):  # we go on where it ended
            good_bytes -= len(xlog.encode_eof())
            self.files[-1].size = good_bytes
        return [*effects, Truncate(name, good_bytes)] if good_bytes < len(data) else effects


def _snapshots_of(files: Mapping[str, bytes]) -> list[str]:
    return sorted(name for name in files if name.endswith(".snap"))


def forgotten(
    rows: list[Row], files: list[LogFile], vclock: Vclock, snapshot: Snapshot, begin: Mapping[int, int]
) -> list[Effect]:
    """Empty the rows and files, which end before `begin`: the newest snapshot holds all of them. Raises StartRefused.

    We were joining anew when the process ended, or a log that was no longer needed could not be removed.
    """
    if not covers(snapshot.vclock, vclock):
        raise StartRefused(
            f"{files[-1].name}: ends at {text(vclock)}, which the newest snapshot, of {text(snapshot.vclock)}, "
            "does not hold"
        )
    removed: list[Effect] = [Remove(file.name) for file in files]
    rows.clear()
    files.clear()
    vclock.clear()
    vclock.update(begin)
    return removed


def refuse_a_gap(oldest: LogFile, snapshot: Snapshot | None) -> None:
    """Raise StartRefused if the newest snapshot ends before the oldest log begins."""
    begins = f"{oldest.name}: begins at {text(oldest.vclock)}, but"
    if snapshot is None and oldest.vclock:
        raise StartRefused(f"{begins} no snapshot holds that")
    if snapshot is not None and not covers(snapshot.vclock, oldest.vclock):
        raise StartRefused(
            f"{begins} the newest snapshot is of {text(snapshot.vclock)}: records in between are lost"
        )
