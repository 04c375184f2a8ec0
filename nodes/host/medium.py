"""The medium under a node's files: the machine's disk, or a faulty one.

A `FaultyMedium` reads its orders from a folder (a harness writes them), and reports their effects into it:

| file | written by | what |
|---|---|---|
| disk.json | outside, by rename | `{"id": 3, "sync_delay_ns": N, "write_error": "ENOSPC", "sync_error": "EIO"}` |
| felt.json | here, by rename | `{"id": 3, "delayed": N, "failed": N}`: the orders read, how many calls they affected |
| synced.txt | here, appended | `inode length`, a line a sync: how much of a file surely is on disk; the last counts |

So a harness that simulates a power loss by kill -9, after which the page cache still has all data, knows which data a
real disk would have. An inode without a line was never synced. A full disk writes half of the data before it refuses,
as a real one may.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from nodes.host.orders import Orders
from nodes.kernel.effects import REMOVED

ORDERS = "disk.json"
AFFECTED = "felt.json"  # the name that nodes of older commits write, which a harness of today upgrades
SYNCED = "synced.txt"
LOOK_EVERY_S = 0.02
_TELL_EVERY_NS = 20_000_000
_DELAY_NS_END = 1 << 60  # Python cannot sleep much longer


def sync_data(file: int) -> None:
    """Bytes and length on disk. macOS's fsync stops at the drive's cache; F_FULLFSYNC does not."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(file)


class Medium:
    """The calls of the operating system that a node's files need. All but `close` raise OSError."""

    def __init__(self, sync: Callable[[int], None] = sync_data) -> None:
        self._sync_data = sync

    def open_folder(self, path: str) -> int:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def open(self, folder: int, name: str, flags: int) -> int:
        return os.open(name, flags | os.O_CLOEXEC, 0o644, dir_fd=folder)

    def length(self, file: int) -> int:
        return os.fstat(file).st_size

    def write(self, file: int, data: bytes | memoryview) -> int:
        """How many bytes it took."""
        return os.write(file, data)

    def cut(self, file: int, size: int) -> None:
        os.ftruncate(file, size)

    def sync(self, file: int) -> None:
        """Bytes and length are on disk."""
        self._sync_data(file)

    def sync_folder(self, folder: int) -> None:
        """The folder's names, and the files that they refer to, are on disk."""
        os.fsync(folder)

    def rename(self, folder: int, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self, folder: int, name: str) -> None:
        os.unlink(name, dir_fd=folder)

    def keep_aside(self, folder: int, name: str) -> None:
        """Link the file into the folder of removed files, in place of an older one of that name."""
        with suppress(FileExistsError):
            os.mkdir(REMOVED, dir_fd=folder)
        aside = f"{REMOVED}/{name}"
        with suppress(FileNotFoundError):
            os.unlink(aside, dir_fd=folder)
        os.link(name, aside, src_dir_fd=folder, dst_dir_fd=folder)

    def close(self, file: int) -> None:
        os.close(file)


class FaultyMedium(Medium):
    """The host's loop calls `look` regularly, the disk's thread calls `write` and `sync`.

    Both report effects, under a lock: otherwise the thread could report orders that the loop has just replaced, and
    the report that the new ones were read would never be written.
    """

    def __init__(self, folder: str) -> None:
        """Raises OSError if the folder cannot be made or written to."""
        super().__init__()
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._synced = os.open(self._folder / SYNCED, flags, 0o644)
        self._orders = Orders()
        self._stamp: tuple[int, int] | None = None
        self._delayed = self._failed = 0
        self._told_ns = 0
        self._is_told = True
        self._telling = threading.Lock()
        self._took_half = False
        self.look()

    def look(self) -> None:
        """Read the orders again if they have changed; report them and their effects, until the report is written."""
        path = self._folder / ORDERS
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_ino)
            orders = None if stamp == self._stamp else _orders(json.loads(path.read_bytes()))
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            return
        with self._telling:
            if orders is not None:
                self._stamp, self._delayed, self._failed = stamp, 0, 0
                self._orders = orders
                self._is_told = False
            if not self._is_told:
                self._write_report()

    def write(self, file: int, data: bytes | memoryview) -> int:
        self._note_new(file)
        orders = self._orders
        if orders.write_error:
            half = len(data) // 2
            if half and not self._took_half:
                self._took_half = True
                return os.write(file, data[:half])
            self._took_half = False
            self._fail(orders, orders.write_error)
        self._took_half = False
        return os.write(file, data)

    def sync(self, file: int) -> None:
        orders = self._orders
        if orders.sync_delay_ns:
            time.sleep(orders.sync_delay_ns / 1e9)
            self._affected(orders, delayed=1)
        if orders.sync_error:
            self._fail(orders, orders.sync_error)
        sync_data(file)
        self._note(file)

    def _fail(self, orders: Orders, name: str) -> None:
        self._affected(orders, failed=1)
        code: int = getattr(errno, name)
        raise OSError(code, os.strerror(code))

    def _note_new(self, file: int) -> None:
        """Note that no byte of an empty file is synced: it may have the inode of an old one."""
        status = os.fstat(file)
        if not status.st_size:
            os.write(self._synced, b"%d 0\n" % status.st_ino)

    def _note(self, file: int) -> None:
        status = os.fstat(file)
        os.write(self._synced, b"%d %d\n" % (status.st_ino, status.st_size))

    def _affected(self, orders: Orders, *, delayed: int = 0, failed: int = 0) -> None:
        """Count a call that these orders affected, unless different orders have come meanwhile."""
        with self._telling:
            if orders is not self._orders:
                return
            self._delayed += delayed
            self._failed += failed
            self._is_told = False  # the next `look` reports it, if it is not reported now
            if self._delayed + self._failed == 1 or time.monotonic_ns() - self._told_ns > _TELL_EVERY_NS:
                self._write_report()

    def _write_report(self) -> None:
        """Best effort: the next `look` repeats a report that failed."""
        self._told_ns = time.monotonic_ns()
        fresh = self._folder / f"{AFFECTED}.new"
        try:
            report = {"id": self._orders.id, "delayed": self._delayed, "failed": self._failed}
            fresh.write_text(json.dumps(report))
            fresh.replace(self._folder / AFFECTED)
        except OSError:
            self._is_told = False
        else:
            self._is_told = True


def _orders(document: dict[str, object]) -> Orders:
    """The orders in a JSON document. Raises ValueError or TypeError if it has none."""
    orders = Orders(
        id=int(str(document.get("id", -1))),
        sync_delay_ns=int(str(document.get("sync_delay_ns", 0))),
        write_error=str(document.get("write_error", "")),
        sync_error=str(document.get("sync_error", "")),
    )
    for name in (orders.write_error, orders.sync_error):
        if name and name not in errno.errorcode.values():
            raise ValueError(f"no error is called {name}")
    if not 0 <= orders.sync_delay_ns < _DELAY_NS_END:
        raise ValueError(f"no sync takes {orders.sync_delay_ns} ns")
    return orders
