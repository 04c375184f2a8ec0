"""`python -m harness.cluster.mounted_disk.server FOLDER SOURCE HOW AFTER_NS`: the disk under a node, until stdin ends.

HOW is "journal" or "strict"; unsynced data are written back after AFTER_NS.

Mounts over the folder, answers the kernel, and takes JSON lines on stdin, each answered by one on stdout:

| do | with | answers |
|---|---|---|
| order | orders: the fields of `nodes.host.medium.Orders` | |
| affected | | id, delayed, failed: calls that these orders affected |
| freeze | | (what is not on disk now will not come to be) |
| lose | seed | bytes, names: what was lost or spoilt; writes: of the node, since the beginning |
| settle | | (all that is there is on disk) |

The first line it prints is {"ready": true}, or {"error": "one line"}. Calls are answered in the order in which the
kernel asks, but for syncs, which take their time beside.
"""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from harness.cluster.mounted_disk import wire
from harness.cluster.mounted_disk.mounts import DEVICE, mount, unmount
from harness.cluster.mounted_disk.undo import torn
from harness.cluster.mounted_disk.volume import Volume
from harness.cluster.mounted_disk.wire import Asked, Request
from nodes.host.medium import sync_data
from nodes.host.orders import Orders

_SYNCS_AT_ONCE: Final = 16
_NO_ANSWER: Final = (Asked.FORGET, Asked.BATCH_FORGET, Asked.INTERRUPT)
_KEEP_SIZE: Final = 1
_SET_MODE, _SET_OWNER, _SET_GROUP, _SET_SIZE = 1, 2, 4, 8
_SET_ACCESSED, _SET_MODIFIED, _ACCESSED_NOW, _MODIFIED_NOW = 16, 32, 128, 256
_LEAVE: Final = -1


class Server:
    def __init__(self, volume: Volume, device: int) -> None:
        self._volume = volume
        self._device = device
        self._lock = threading.Lock()
        self._syncs = ThreadPoolExecutor(_SYNCS_AT_ONCE, "sync")
        self._orders = Orders()
        self._delayed = self._failed = 0
        self._took_half = False
        self._writes = 0
        self._answers: dict[int, Callable[[Request], bytes]] = {
            Asked.LOOKUP: self._lookup,
            Asked.GETATTR: lambda asked: wire.attributes(self._of(asked).found()),
            Asked.SETATTR: self._set_attributes,
            Asked.READLINK: lambda asked: os.fsencode(os.readlink("", dir_fd=self._of(asked).below)),
            Asked.SYMLINK: self._symlink,
            Asked.MKDIR: self._mkdir,
            Asked.UNLINK: self._unlink,
            Asked.RMDIR: self._rmdir,
            Asked.RENAME: self._rename,
            Asked.RENAME2: self._rename,
            Asked.LINK: self._link,
            Asked.OPEN: self._open,
            Asked.READ: self._read,
            Asked.WRITE: self._write,
            Asked.STATFS: lambda asked: wire.file_system(os.fstatvfs(self._of(asked).below)),
            Asked.RELEASE: self._release,
            Asked.FLUSH: lambda asked: b"",
            Asked.INIT: wire.initial,
            Asked.OPENDIR: lambda asked: wire.opened(0),
            Asked.READDIR: self._read_folder,
            Asked.RELEASEDIR: lambda asked: b"",
            Asked.CREATE: self._create,
            Asked.DESTROY: lambda asked: b"",
            Asked.FALLOCATE: self._allocate,
        }

    # The kernel

    def serve(self) -> None:
        """Until the disk is unmounted."""
        while True:
            try:
                data = os.read(self._device, wire.REQUEST_BYTES_MAX)
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                    continue
                raise
            self._serve(wire.read(data))

    def _serve(self, asked: Request) -> None:
        if asked.what in _NO_ANSWER:
            self._forget(asked)
        elif asked.what in (Asked.FSYNC, Asked.FSYNCDIR) or self._is_synchronous(asked):
            self._syncs.submit(self._sync, asked)
        else:
            self._say(asked, *self._answer(asked))

    def _answer(self, asked: Request) -> tuple[bytes, int]:
        answer = self._answers.get(asked.what)
        if answer is None:
            return b"", errno.ENOSYS
        try:
            with self._lock:
                return answer(asked), 0
        except OSError as error:
            return b"", error.errno or errno.EIO

    def _say(self, asked: Request, body: bytes, error: int) -> None:
        with suppress(OSError):  # the process that asked is dead
            os.write(self._device, wire.answer(asked.unique, body, error))

    def _of(self, asked: Request) -> Any:
        return self._volume[asked.node]

    def _forget(self, asked: Request) -> None:
        with self._lock:
            if asked.what == Asked.FORGET:
                self._volume.forget(asked.node, *asked.fields("Q"))
            elif asked.what == Asked.BATCH_FORGET:
                number, _ = asked.fields("II")
                pairs = asked.fields(f"8x{'QQ' * number}")
                for node, lookups in zip(pairs[::2], pairs[1::2], strict=True):
                    self._volume.forget(node, lookups)

    # Names

    def _lookup(self, asked: Request) -> bytes:
        inode, found = self._volume.lookup(self._of(asked), asked.names()[0])
        return wire.entry(inode.number, found)

    def _symlink(self, asked: Request) -> bytes:
        name, target = asked.names()
        self._volume.make_link(self._of(asked), name, target)
        return self._entry(asked, name)

    def _mkdir(self, asked: Request) -> bytes:
        mode, _ = asked.fields("II")
        (name,) = asked.names(8)
        self._volume.make_folder(self._of(asked), name, mode)
        return self._entry(asked, name)

    def _link(self, asked: Request) -> bytes:
        (target,) = asked.fields("Q")
        (name,) = asked.names(8)
        self._volume.make_link(self._of(asked), name, self._volume[target])
        return self._entry(asked, name)

    def _entry(self, asked: Request, name: str) -> bytes:
        inode, found = self._volume.lookup(self._of(asked), name)
        return wire.entry(inode.number, found)

    def _unlink(self, asked: Request) -> bytes:
        self._volume.remove(self._of(asked), asked.names()[0])
        return b""

    def _rmdir(self, asked: Request) -> bytes:
        self._volume.remove(self._of(asked), asked.names()[0], is_folder=True)
        return b""

    def _rename(self, asked: Request) -> bytes:
        is_second = asked.what == Asked.RENAME2
        to, *flags = asked.fields("QI" if is_second else "Q")
        name, new = asked.names(16 if is_second else 8)
        self._volume.rename(self._of(asked), name, self._volume[to], new, *flags)
        return b""

    def _read_folder(self, asked: Request) -> bytes:
        _, offset, size = asked.fields("QQI")
        return wire.folder(self._volume.entries(self._of(asked)), offset, size)

    # Files

    def _set_attributes(self, asked: Request) -> bytes:
        inode = self._of(asked)
        valid, _, _, size, _, accessed, modified, _, accessed_ns, modified_ns, _, mode, _, user, group = (
            asked.fields("IIQQQQQQIIIIIII")
        )
        if valid & _SET_MODE:
            Path(inode.path).chmod(mode & 0o7777)
        if valid & (_SET_OWNER | _SET_GROUP):
            os.chown(
                inode.path, user if valid & _SET_OWNER else _LEAVE, group if valid & _SET_GROUP else _LEAVE
            )
        if valid & _SET_SIZE:
            self._volume.truncate(inode, size)
        if valid & (_SET_ACCESSED | _SET_MODIFIED):
            found, now_ns = inode.found(), time.time_ns()
            told = (accessed * 10**9 + accessed_ns, modified * 10**9 + modified_ns)
            times = (
                now_ns if valid & _ACCESSED_NOW else told[0] if valid & _SET_ACCESSED else found.st_atime_ns,
                now_ns if valid & _MODIFIED_NOW else told[1] if valid & _SET_MODIFIED else found.st_mtime_ns,
            )
            os.utime(inode.path, ns=times)
        return wire.attributes(inode.found())

    def _open(self, asked: Request) -> bytes:
        (flags,) = asked.fields("I")
        return wire.opened(self._volume.open(self._of(asked), flags))

    def _create(self, asked: Request) -> bytes:
        flags, mode = asked.fields("II")
        (name,) = asked.names(16)
        inode, found, handle = self._volume.create(self._of(asked), name, flags, mode)
        return wire.entry(inode.number, found) + wire.opened(handle)

    def _read(self, asked: Request) -> bytes:
        handle, offset, size = asked.fields("QQI")
        return os.pread(self._volume.handle(handle).file, size, offset)

    def _release(self, asked: Request) -> bytes:
        self._volume.release(*asked.fields("Q"))
        return b""

    def _write(self, asked: Request) -> bytes:
        number, offset, size = asked.fields("QQI")
        handle = self._volume.handle(number)
        self._writes += not handle.inode.is_exempt
        data = asked.body[40 : 40 + size]
        if self._orders.write_error and not handle.inode.is_exempt:
            half = torn(offset, len(data) // 2, handle.inode.found().st_size)
            if not half or self._took_half:
                self._took_half = False
                self._fail(self._orders.write_error)
            self._took_half = True
            data = data[:half]
        return wire.written(self._volume.write(handle, offset, data))

    def _allocate(self, asked: Request) -> bytes:
        """Room ahead of what is written: promised, and nothing is done."""
        number, _, _, mode = asked.fields("QQQI")
        handle = self._volume.handle(number)
        if self._orders.write_error and not handle.inode.is_exempt:
            self._fail(self._orders.write_error)
        if mode != _KEEP_SIZE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return b""

    def _fail(self, name: str) -> None:
        self._failed += 1
        code: int = getattr(errno, name)
        raise OSError(code, os.strerror(code))

    # Syncs

    def _is_synchronous(self, asked: Request) -> bool:
        """A write to a file that was opened with O_DSYNC or O_SYNC."""
        return asked.what == Asked.WRITE and bool(asked.fields("QQIIQI")[5] & os.O_DSYNC)

    def _sync(self, asked: Request) -> None:
        """In a thread of its own: the write if it is one, then what stands before it is on disk."""
        body, error = self._answer(asked) if asked.what == Asked.WRITE else (b"", 0)
        if not error:
            try:
                self._flush(asked)
            except OSError as failure:
                body, error = b"", failure.errno or errno.EIO
        self._say(asked, body, error)

    def _flush(self, asked: Request) -> None:
        with self._lock:
            inode, orders, before = self._of(asked), self._orders, self._volume.steps
            is_file = asked.what != Asked.FSYNCDIR
            file = os.dup(self._volume.handle(asked.fields("Q")[0]).file) if is_file else -1
        try:
            if orders.sync_delay_ns and not inode.is_exempt:
                time.sleep(orders.sync_delay_ns / 1e9)
                with self._lock:
                    self._delayed += orders is self._orders
            if orders.sync_error and not inode.is_exempt:
                with self._lock:
                    self._fail(orders.sync_error)
            if is_file:
                sync_data(file)
        finally:
            if is_file:
                os.close(file)
        with self._lock:
            self._volume.synced(inode, before)

    # The harness

    def obey(self, line: str) -> dict[str, Any]:
        """The answer to a line of stdin."""
        told = json.loads(line)
        with self._lock:
            match told["do"]:
                case "order":
                    self._orders = Orders(**told["orders"])
                    self._delayed = self._failed = 0
                case "affected":
                    return {"id": self._orders.id, "delayed": self._delayed, "failed": self._failed}
                case "freeze":
                    self._volume.freeze()
                case "lose":
                    lost, names = self._volume.lose_power(random.Random(told["seed"]))
                    return {"bytes": lost, "names": names, "writes": self._writes}
                case "settle":
                    self._volume.settle()
                case other:
                    return {"error": f"nothing is called {other!r}"}
        return {}

    def listen(self) -> None:
        """Lines of stdin until it ends; in a thread of its own."""
        for line in sys.stdin:
            try:
                said = self.obey(line)
            except Exception as error:  # the harness, which asked, must hear of it
                said = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(said), flush=True)

    def close(self) -> None:
        with self._lock:
            self._volume.close()


def main(folder: str, name: str, how: str, written_back_after_ns: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0)
    try:
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
        volume = Volume(
            root,
            time.monotonic_ns,
            strict=how == "strict",
            written_back_after_ns=int(written_back_after_ns),
        )
        mount(name, folder, device)
    except OSError as error:
        print(json.dumps({"error": f"nothing can be mounted at {folder}: {error.strerror}"}), flush=True)
        sys.exit(1)
    server = Server(volume, device)

    def leave(*_: object) -> None:
        with suppress(OSError):  # another process has unmounted it
            unmount(folder)
        server.close()
        os._exit(0)  # a process with a file still open there gets errors from the kernel

    def obey() -> None:
        server.listen()
        leave()

    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=leave).start())
    threading.Thread(target=obey, name="orders", daemon=True).start()
    print('{"ready": true}', flush=True)
    server.serve()
    server.close()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
