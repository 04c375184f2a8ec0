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
from harness.cluster.mounted_disk.wire import Opcode, Request
from harness.cluster.open_files import allow_many
from nodes.host.medium import sync_data
from nodes.host.orders import Orders

_SYNCS_AT_ONCE: Final = 16
_NO_ANSWER: Final = (Opcode.FORGET, Opcode.BATCH_FORGET, Opcode.INTERRUPT)
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
        self._listings: dict[int, list[tuple[str, int, int]]] = {}
        """The names that each reader of a folder sees, from its beginning on. A removed one moves no other."""
        self._answers: dict[int, Callable[[Request], bytes]] = {
            Opcode.LOOKUP: lambda request: self._entry(request, request.names()[0]),
            Opcode.GETATTR: lambda request: wire.attributes(self._of(request).attributes()),
            Opcode.SETATTR: self._set_attributes,
            Opcode.READLINK: lambda request: os.fsencode(os.readlink("", dir_fd=self._of(request).below)),
            Opcode.SYMLINK: self._symlink,
            Opcode.MKNOD: self._mknod,
            Opcode.MKDIR: self._mkdir,
            Opcode.UNLINK: self._remove,
            Opcode.RMDIR: self._remove,
            Opcode.RENAME: self._rename,
            Opcode.RENAME2: self._rename,
            Opcode.LINK: self._link,
            Opcode.OPEN: self._open,
            Opcode.READ: self._read,
            Opcode.WRITE: self._write,
            Opcode.STATFS: lambda request: wire.file_system(os.fstatvfs(self._of(request).below)),
            Opcode.RELEASE: self._release,
            Opcode.FLUSH: lambda request: b"",
            Opcode.INIT: wire.initial,
            Opcode.OPENDIR: lambda request: wire.opened(request.unique),
            Opcode.READDIR: self._read_folder,
            Opcode.RELEASEDIR: self._release_folder,
            Opcode.CREATE: self._create,
            Opcode.DESTROY: lambda request: b"",
            Opcode.FALLOCATE: self._allocate,
        }

    # The kernel

    def serve(self) -> None:
        """Answer the kernel until the disk is unmounted."""
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

    def _serve(self, request: Request) -> None:
        if request.opcode in _NO_ANSWER:
            self._forget(request)
        elif request.opcode in (Opcode.FSYNC, Opcode.FSYNCDIR) or self._is_synchronous(request):
            self._syncs.submit(self._sync, request)
        else:
            self._say(request, *self._answer(request))

    def _answer(self, request: Request) -> tuple[bytes, int]:
        answer = self._answers.get(request.opcode)
        if answer is None:
            return b"", errno.ENOSYS
        try:
            with self._lock:
                return answer(request), 0
        except OSError as error:
            return b"", error.errno or errno.EIO

    def _say(self, request: Request, body: bytes, error: int) -> None:
        with suppress(OSError):  # the process that asked is dead
            os.write(self._device, wire.answer(request.unique, body, error))

    def _of(self, request: Request) -> Any:
        return self._volume[request.node]

    def _forget(self, request: Request) -> None:
        with self._lock:
            if request.opcode == Opcode.FORGET:
                self._volume.forget(request.node, *request.fields("Q"))
            elif request.opcode == Opcode.BATCH_FORGET:
                number, _ = request.fields("II")
                pairs = request.fields(f"8x{'QQ' * number}")
                for node, lookups in zip(pairs[::2], pairs[1::2], strict=True):
                    self._volume.forget(node, lookups)

    # Names

    def _symlink(self, request: Request) -> bytes:
        name, target = request.names()
        self._volume.make_link(self._of(request), name, target, request.owner)
        return self._entry(request, name)

    def _mknod(self, request: Request) -> bytes:
        (mode,) = request.fields("I")
        (name,) = request.names(16)
        self._volume.make_node(self._of(request), name, mode, request.owner)
        return self._entry(request, name)

    def _mkdir(self, request: Request) -> bytes:
        mode, _ = request.fields("II")
        (name,) = request.names(8)
        self._volume.make_folder(self._of(request), name, mode, request.owner)
        return self._entry(request, name)

    def _link(self, request: Request) -> bytes:
        (target,) = request.fields("Q")
        (name,) = request.names(8)
        self._volume.make_link(self._of(request), name, self._volume[target])
        return self._entry(request, name)

    def _entry(self, request: Request, name: str) -> bytes:
        inode, attributes = self._volume.lookup(self._of(request), name)
        return wire.entry(inode.number, attributes)

    def _remove(self, request: Request) -> bytes:
        is_folder = request.opcode == Opcode.RMDIR
        self._volume.remove(self._of(request), request.names()[0], is_folder=is_folder)
        return b""

    def _rename(self, request: Request) -> bytes:
        is_second = request.opcode == Opcode.RENAME2
        to, *flags = request.fields("QI" if is_second else "Q")
        name, new = request.names(16 if is_second else 8)
        self._volume.rename(self._of(request), name, self._volume[to], new, *flags)
        return b""

    def _read_folder(self, request: Request) -> bytes:
        reader, offset, size = request.fields("QQI")
        if not offset or reader not in self._listings:  # a reader may begin where another one was (seekdir)
            self._listings[reader] = self._volume.entries(self._of(request))
        return wire.folder(self._listings[reader], offset, size)

    def _release_folder(self, request: Request) -> bytes:
        self._listings.pop(request.fields("Q")[0], [])  # a folder that is only synced is not read
        return b""

    # Files

    def _set_attributes(self, request: Request) -> bytes:
        inode = self._of(request)
        valid, _, _, size, _, accessed, modified, _, accessed_ns, modified_ns, _, mode, _, user, group = (
            request.fields("IIQQQqqqIIIIIII")
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
            stat, now_ns = inode.attributes(), time.time_ns()
            given = (accessed * 10**9 + accessed_ns, modified * 10**9 + modified_ns)
            times = (
                now_ns if valid & _ACCESSED_NOW else given[0] if valid & _SET_ACCESSED else stat.st_atime_ns,
                now_ns if valid & _MODIFIED_NOW else given[1] if valid & _SET_MODIFIED else stat.st_mtime_ns,
            )
            os.utime(inode.path, ns=times)
        return wire.attributes(inode.attributes())

    def _open(self, request: Request) -> bytes:
        (flags,) = request.fields("I")
        return wire.opened(self._volume.open(self._of(request), flags))

    def _create(self, request: Request) -> bytes:
        flags, mode = request.fields("II")
        (name,) = request.names(16)
        inode, attributes, handle = self._volume.create(self._of(request), name, flags, mode, request.owner)
        return wire.entry(inode.number, attributes) + wire.opened(handle)

    def _read(self, request: Request) -> bytes:
        handle, offset, size = request.fields("QQI")
        return os.pread(self._volume.handle(handle).file, size, offset)

    def _release(self, request: Request) -> bytes:
        self._volume.release(*request.fields("Q"))
        return b""

    def _write(self, request: Request) -> bytes:
        number, offset, size = request.fields("QQI")
        handle = self._volume.handle(number)
        self._writes += not handle.inode.is_exempt
        data = request.body[40 : 40 + size]
        if self._orders.write_error and not handle.inode.is_exempt:
            half = torn(offset, len(data) // 2, handle.inode.attributes().st_size)
            if not half or self._took_half:
                self._took_half = False
                self._fail(self._orders.write_error)
            self._took_half = True
            data = data[:half]
        return wire.written(self._volume.write(handle, offset, data))

    def _allocate(self, request: Request) -> bytes:
        """Room ahead of the writes: promise it, and do nothing."""
        number, _, _, mode = request.fields("QQQI")
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

    def _is_synchronous(self, request: Request) -> bool:
        """A write to a file that was opened with O_DSYNC or O_SYNC."""
        return request.opcode == Opcode.WRITE and bool(request.fields("QQIIQI")[5] & os.O_DSYNC)

    def _sync(self, request: Request) -> None:
        """In a thread of its own: do the write, if it is one, and sync all earlier changes."""
        body, error = self._answer(request) if request.opcode == Opcode.WRITE else (b"", 0)
        if not error:
            try:
                self._flush(request)
            except OSError as failure:
                body, error = b"", failure.errno or errno.EIO
        self._say(request, body, error)

    def _flush(self, request: Request) -> None:
        with self._lock:
            inode, orders, before = self._of(request), self._orders, self._volume.steps
            is_file = request.opcode != Opcode.FSYNCDIR
            file = os.dup(self._volume.handle(request.fields("Q")[0]).file) if is_file else -1
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
        command = json.loads(line)
        with self._lock:
            match command["do"]:
                case "order":
                    self._orders = Orders(**command["orders"])
                    self._delayed = self._failed = 0
                    self._took_half = False
                case "affected":
                    return {"id": self._orders.id, "delayed": self._delayed, "failed": self._failed}
                case "freeze":
                    self._volume.freeze()
                case "lose":
                    lost, names = self._volume.lose_power(random.Random(command["seed"]))
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
                answer = self.obey(line)
            except Exception as error:  # the harness, which asked, must get an answer
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), flush=True)

    def close(self) -> None:
        with self._lock:
            self._volume.close()


def main(folder: str, name: str, how: str, written_back_after_ns: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0)
    allow_many()  # each file that the kernel knows, and each change that is not on disk, has a descriptor here
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
