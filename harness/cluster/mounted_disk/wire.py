"""The kernel's FUSE protocol (include/uapi/linux/fuse.h, version 7): requests read from /dev/fuse, and their answers.

Only what a file system needs that passes everything through and caches nothing. All numbers in the machine's order.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

ROOT_ID: Final = 1
REQUEST_BYTES_MAX: Final = (1 << 17) + (1 << 13)
WRITE_BYTES_MAX: Final = 1 << 17

_HEADER: Final = struct.Struct("=IIQQIIII")
_ANSWER: Final = struct.Struct("=IiQ")
_INIT_IN: Final = struct.Struct("=IIII")
_INIT_OUT: Final = struct.Struct("=IIIIHHIIHHI28x")
_ATTRIBUTES: Final = struct.Struct("=QQQqqqIIIIIIIIII")  # times before 1970 are negative
_ENTRY: Final = struct.Struct("=QQQQII")
_VALID: Final = struct.Struct("=QII")
_OPENED: Final = struct.Struct("=QII")
_STATFS: Final = struct.Struct("=QQQQQIIII24x")
_ENTRY_OF_FOLDER: Final = struct.Struct("=QQII")

_MINOR_MAX: Final = 38
_DIRECT_IO: Final = 1
_BIG_WRITES: Final = 1 << 5
_MORE_FLAGS: Final = 1 << 30
_MMAP_WITH_DIRECT_IO: Final = 1 << 4
"""Of the upper flags: without it, files that are mapped shared could not be opened (since Linux 6.6)."""


class Opcode(IntEnum):
    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    READLINK = 5
    SYMLINK = 6
    MKNOD = 8
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    LINK = 13
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    CREATE = 35
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    FALLOCATE = 43
    RENAME2 = 45


@dataclass(frozen=True, slots=True)
class Request:
    """`opcode` is one of `Opcode`, or one that is not answered here; `node` is the inode's number; `owner` the user and
    the group of the process that asks, None: those of the disk's process."""

    opcode: int
    unique: int
    node: int
    body: bytes
    owner: tuple[int, int] | None = None

    def fields(self, form: str) -> tuple[int, ...]:
        """The numbers that the body begins with."""
        return struct.unpack_from(f"={form}", self.body)

    def names(self, skip: int = 0) -> list[str]:
        """The names that follow `skip` bytes."""
        return [os.fsdecode(name) for name in self.body[skip:].split(b"\0")[:-1]]


def read(data: bytes) -> Request:
    _, opcode, unique, node, user, group, *_ = _HEADER.unpack_from(data)
    return Request(opcode, unique, node, data[_HEADER.size :], (user, group))


def answer(unique: int, body: bytes = b"", error: int = 0) -> bytes:
    return _ANSWER.pack(_ANSWER.size + len(body), -error, unique) + body


def initial(request: Request) -> bytes:
    """The options of this file system: writes of 128 KiB, nothing cached."""
    major, minor, read_ahead, _ = _INIT_IN.unpack_from(request.body)
    flags = _BIG_WRITES | _MORE_FLAGS
    more = (16, 12, WRITE_BYTES_MAX, 1, 0, 0, _MMAP_WITH_DIRECT_IO)
    return _INIT_OUT.pack(major, min(minor, _MINOR_MAX), read_ahead, flags, *more)


def _attributes(stat: os.stat_result) -> bytes:
    seconds = [time_ns // 10**9 for time_ns in (stat.st_atime_ns, stat.st_mtime_ns, stat.st_ctime_ns)]
    rest = [time_ns % 10**9 for time_ns in (stat.st_atime_ns, stat.st_mtime_ns, stat.st_ctime_ns)]
    owner = (stat.st_mode, stat.st_nlink, stat.st_uid, stat.st_gid)
    return _ATTRIBUTES.pack(
        stat.st_ino, stat.st_size, stat.st_blocks, *seconds, *rest, *owner, 0, stat.st_blksize, 0
    )


def attributes(stat: os.stat_result) -> bytes:
    return _VALID.pack(0, 0, 0) + _attributes(stat)


def entry(node: int, stat: os.stat_result) -> bytes:
    return _ENTRY.pack(node, 0, 0, 0, 0, 0) + _attributes(stat)


def opened(handle: int) -> bytes:
    return _OPENED.pack(handle, _DIRECT_IO, 0)


def written(size: int) -> bytes:
    return struct.pack("=II", size, 0)


def file_system(stat: os.statvfs_result) -> bytes:
    counts = (stat.f_blocks, stat.f_bfree, stat.f_bavail, stat.f_files, stat.f_ffree)
    return _STATFS.pack(*counts, stat.f_bsize, stat.f_namemax, stat.f_frsize, 0)


def folder(entries: list[tuple[str, int, int]], first: int, size_max: int) -> bytes:
    """Entries (name, inode, type: the upper bits of a mode) from the number `first` on, as many as fit."""
    body = b""
    for number, (name, inode, kind) in enumerate(entries[first:], start=first + 1):
        encoded = os.fsencode(name)
        whole = _ENTRY_OF_FOLDER.pack(inode, number, len(encoded), kind) + encoded
        whole += bytes(-len(whole) % 8)
        if len(body) + len(whole) > size_max:
            break
        body += whole
    return body
