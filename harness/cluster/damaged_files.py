"""Damage to the files of a node while its process is dead: unsynced data are gone, a tail is torn, a bit flips.

All of these look at the files of the node's data folder but those that a harness keeps there (`empty_disk.KEPT`). The
system names the logs that may be damaged. Damage finds the blocks of a log

- in an xlog by their marker, so that this works for real Tarantool's files as well as for ours,
- in any other file as `[length, CRC-32 of the body, body]`, the numbers in four bytes, the most significant first.

A file of neither form is left alone.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zlib import crc32

from harness.cluster.empty_disk import ASIDE, KEPT
from harness.cluster.place import DISK_FAULTS
from harness.errors import ClusterError
from nodes.host.medium import SYNCED
from nodes.world.disk import VirtualDisk

if TYPE_CHECKING:  # hosts have no msgspec
    from harness.faults.fault import Damage

MARKER: Final = b"\xd5\xba\x0b"
"""Begins every block of an xlog, packed or not (Tarantool's src/box/xlog.c, row_marker and zrow_marker)."""
XLOG: Final = b"XLOG"
"""Begins an xlog."""
_HEAD_BYTES: Final = 8
"""The length and the checksum before the body of a record."""
_BEFORE_ROWS_BYTES: Final = 19
"""The head of a block, which is not damaged: part of it is padding, on which nothing depends."""
SAVED: Final = "saved"


@dataclass(frozen=True, slots=True)
class NodeDisk:
    """Where a node's files are, as this machine sees them."""

    folder: Path

    @property
    def faults(self) -> Path:
        """The folder in which its disk layer reads its orders, and reports what was synced."""
        return self.folder / DISK_FAULTS

    @property
    def synced(self) -> Path:
        return self.faults / SYNCED

    @property
    def saved(self) -> Path:
        return self.faults / SAVED

    def data(self) -> list[Path]:
        """All that the node wrote there, folders as well; its configuration and its logs for people lie there, too."""
        return sorted(
            path
            for path in self.folder.iterdir()
            if path.name not in (*KEPT, DISK_FAULTS) and not path.name.startswith(ASIDE)
        )

    def files(self) -> list[Path]:
        """Those of them that are files at the top."""
        return [path for path in self.data() if path.is_file()]


def lose_unsynced(disk: NodeDisk, chance: random.Random) -> int:
    """Keep what the node's disk layer says was synced, and of the rest what chance leaves, as on a virtual disk.

    Returns the bytes lost or spoilt. ClusterError if the node does not say what was synced.
    """
    synced = _synced(disk.synced)
    virtual = VirtualDisk()
    for path in disk.files():
        data = path.read_bytes()
        virtual.append(path.name, data)
        if length := min(len(data), synced.get(path.stat().st_ino, 0)):  # 0 is said of each new file
            virtual.sync(path.name, length)
    lost = virtual.lose_power(chance)
    left = virtual.files()
    for path in disk.files():
        if path.name not in left:
            path.unlink()
        elif path.read_bytes() != left[path.name]:
            path.write_bytes(left[path.name])
    note_synced(disk)
    return lost


def _synced(path: Path) -> dict[int, int]:
    """Inode → how many bytes of the file are on disk. A last line without a newline is torn, and ignored."""
    try:
        lines = path.read_text().split("\n")[:-1]
    except OSError as error:
        raise ClusterError(
            f"{path}: what the node synced cannot be read ({error.strerror}), so nothing can be lost"
        ) from error
    return {int(inode): int(length) for inode, _, length in (line.partition(" ") for line in lines)}


def note_synced(disk: NodeDisk) -> None:
    """Note every file as synced, where the node keeps such notes: after a power loss, or after an operator's work."""
    if disk.synced.exists():
        stats = [path.stat() for path in disk.files()]
        disk.synced.write_text("".join(f"{stat.st_ino} {stat.st_size}\n" for stat in stats))


def save(disk: NodeDisk) -> None:
    """Keep a copy of all files and folders, as from a disk image of a replica. Raises ClusterError."""
    shutil.rmtree(disk.saved, ignore_errors=True)
    disk.saved.mkdir(parents=True)
    _copy(disk.data(), disk.saved)


def restore(disk: NodeDisk) -> None:
    """Put back what `save` kept. Raises ClusterError."""
    for path in disk.data():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    _copy(disk.saved.iterdir(), disk.folder)
    note_synced(disk)


def _copy(paths: Iterable[Path], to: Path) -> None:
    """With owners, modes and links: a store that runs as a user of its own reads them afterwards."""
    if names := sorted(map(str, paths)):
        done = subprocess.run(
            ["cp", "-a", "--", *names, str(to)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise ClusterError(
                f"the files of a node cannot be copied: {done.stderr.strip().splitlines()[-1]}"
            )


def damage(disk: NodeDisk, what: Damage, logs: Sequence[str], chance: random.Random) -> int:
    """Damage the newest log that is long enough. `logs`: patterns of names, tried in a random order.

    Returns how many bytes were added, cut off or changed; 0 if no log was long enough.
    """
    do: Callable[[bytes, list[int], random.Random], bytes | None]
    match what:
        case "torn-tail":
            do = _torn
        case "truncated-tail":
            do = _truncated
        case "bit-flip":
            do = _flipped
        case _:
            raise AssertionError(f"no damage is called {what!r}")
    for pattern in chance.sample(logs, len(logs)) if len(logs) > 1 else logs:
        for path in reversed([path for path in disk.files() if fnmatchcase(path.name, pattern)]):
            data = path.read_bytes()
            damaged = do(data, _blocks(data), chance)
            if damaged is not None:
                path.write_bytes(damaged)
                note_synced(disk)
                return max(1, abs(len(damaged) - len(data)))
    return 0


def _blocks(data: bytes) -> list[int]:
    """Where each block begins."""
    if not data.startswith(XLOG):
        return _framed(data)
    places: list[int] = []
    place = data.find(MARKER)
    while place >= 0:
        places.append(place)
        place = data.find(MARKER, place + len(MARKER))
    return places


def _framed(data: bytes) -> list[int]:
    """Where each record begins, if the whole file is made of records."""
    places: list[int] = []
    place = 0
    while place < len(data):
        body = data[place + _HEAD_BYTES : place + _HEAD_BYTES + int.from_bytes(data[place : place + 4])]
        if not body or crc32(body) != int.from_bytes(data[place + 4 : place + _HEAD_BYTES]):
            return []
        places.append(place)
        place += _HEAD_BYTES + len(body)
    return places


def _torn(data: bytes, blocks: list[int], chance: random.Random) -> bytes | None:
    """The beginning of one more block, as if the process had died while it wrote it."""
    if not blocks:
        return None
    block = data[blocks[-1] :]
    return data + block[: chance.randrange(1, len(block))]


def _truncated(data: bytes, blocks: list[int], chance: random.Random) -> bytes | None:
    """The last few blocks are gone, and perhaps a part of the one before."""
    if not blocks:
        return None
    first = blocks[-min(len(blocks), chance.randrange(1, 9))]
    return data[: chance.randrange(first, len(data))]


def _flipped(data: bytes, blocks: list[int], chance: random.Random) -> bytes | None:
    """One bit of the rows of a block with another behind it: no torn write looks like that."""
    before_bytes = _BEFORE_ROWS_BYTES if data.startswith(XLOG) else _HEAD_BYTES
    all_rows = [range(block + before_bytes, end) for block, end in pairwise(blocks)]
    rows = [places for places in all_rows if places]  # none between a marker and the bytes of one in a head
    if not rows:
        return None
    place = chance.choice(chance.choice(rows))
    return data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]
