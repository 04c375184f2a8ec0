"""The disk's answers to the kernel and to the harness, with nothing mounted."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.cluster.mounted_disk import disks, mounts
from harness.cluster.mounted_disk.disks import MountedDisk
from harness.cluster.mounted_disk.server import Server
from harness.cluster.mounted_disk.volume import Volume
from harness.cluster.mounted_disk.wire import ROOT_ID, Opcode, Request
from harness.errors import ClusterError

PAGE_BYTES = 4096
MODIFIED = 32
YEAR_S = 365 * 24 * 3600


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    served = Server(Volume(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY), lambda: 0), -1)
    yield served
    served.close()


def answer(server: Server, opcode: Opcode, node: int, body: bytes, unique: int = 2) -> bytes:
    found, error = server._answer(Request(opcode, unique, node, body))
    assert error == 0, os.strerror(error)
    return found


def names(listing: bytes) -> list[str]:
    found = []
    while listing:
        length = struct.unpack_from("=QQII", listing)[2]
        found.append(listing[24 : 24 + length].decode())
        listing = listing[24 + length + -length % 8 :]
    return found


def test_a_folder_is_read_to_its_end_while_its_files_are_removed(server: Server, tmp_path: Path) -> None:
    """If it failed, a store that removes its old logs as it lists them would keep some, and only on this disk."""
    expected = [f"log-{number:03}" for number in range(300)]
    for name in expected:
        (tmp_path / name).touch()
    (reader,) = struct.unpack_from("=Q", answer(server, Opcode.OPENDIR, ROOT_ID, bytes(8), unique=8))
    found: list[str] = []
    while listing := answer(
        server, Opcode.READDIR, ROOT_ID, struct.pack("=QQI", reader, len(found), PAGE_BYTES)
    ):
        found += names(listing)
        for name in names(listing):
            (tmp_path / name).unlink()
    assert found == expected
    again = answer(server, Opcode.READDIR, ROOT_ID, struct.pack("=QQI", reader, 0, PAGE_BYTES))
    assert names(again) == []  # from the beginning: what is there now
    answer(server, Opcode.RELEASEDIR, ROOT_ID, struct.pack("=Q", reader))
    assert not server._listings


def test_a_reader_may_begin_where_another_one_was(server: Server, tmp_path: Path) -> None:
    """If it failed, a `seekdir` in a folder that was opened anew would end the process of the disk."""
    for name in ("a", "b"):
        (tmp_path / name).touch()
    assert names(answer(server, Opcode.READDIR, ROOT_ID, struct.pack("=QQI", 9, 1, PAGE_BYTES))) == ["b"]


def test_a_file_may_be_older_than_1970(server: Server, tmp_path: Path) -> None:
    """If it failed, a `touch` would end the process of the disk, and with it all files of the node."""
    (tmp_path / "old").touch()
    (node,) = struct.unpack_from("=Q", answer(server, Opcode.LOOKUP, ROOT_ID, b"old\0"))
    body = struct.pack("=IIQQQqqqIIIIIII", MODIFIED, 0, 0, 0, 0, 0, -10 * YEAR_S, 0, 0, 5, 0, 0, 0, 0, 0)
    told = answer(server, Opcode.SETATTR, node, body)
    assert (tmp_path / "old").stat().st_mtime_ns == -10 * YEAR_S * 10**9 + 5
    assert struct.unpack_from("=q", told, 16 + 32) == (-10 * YEAR_S,)


def test_a_socket_can_be_made_and_a_device_cannot(server: Server, tmp_path: Path) -> None:
    """If it failed, PostgreSQL, which listens on a socket in its folder, would not start on a mounted disk."""

    def made(mode: int, name: bytes) -> int:
        body = struct.pack("=IIII", mode, 0, 0, 0) + name
        return server._answer(Request(Opcode.MKNOD, 2, ROOT_ID, body, (os.getuid(), os.getgid())))[1]

    assert made(stat.S_IFSOCK | 0o755, b"socket\0") == 0
    assert made(stat.S_IFIFO | 0o600, b"fifo\0") == 0
    assert (tmp_path / "socket").is_socket() and (tmp_path / "fifo").is_fifo()
    assert made(stat.S_IFBLK | 0o600, b"device\0") == errno.EPERM
    assert sorted(path.name for path in tmp_path.iterdir() if not path.is_dir()) == ["fifo", "socket"]


def test_what_a_process_makes_belongs_to_its_user(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a store that gives up root, as PostgreSQL must, could not enter the folders that it made."""
    given: list[tuple[str, int, int]] = []
    monkeypatch.setattr(os, "chown", lambda name, user, group, **_: given.append((name, user, group)))

    def made(opcode: Opcode, body: bytes) -> list[tuple[str, int, int]]:
        given.clear()
        found, error = server._answer(Request(opcode, 2, ROOT_ID, body, (70, 71)))
        assert found and error == 0
        return given

    number, opened = struct.pack("=II", 0o700, 0), struct.pack("=II", os.O_RDWR, 0o600)
    assert made(Opcode.MKDIR, number + b"folder\0") == [("folder", 70, 71)]
    assert made(Opcode.CREATE, opened + bytes(8) + b"file\0") == [("file", 70, 71)]
    assert made(Opcode.SYMLINK, b"link\0file\0") == [("link", 70, 71)]
    (file,) = struct.unpack_from("=Q", answer(server, Opcode.LOOKUP, ROOT_ID, b"file\0"))
    assert made(Opcode.LINK, struct.pack("=Q", file) + b"same\0") == []  # a file keeps its owner
    assert made(Opcode.CREATE, opened + bytes(8) + b"file\0") == []
    tmp_path.chmod(0o2700)  # what is made here is of the folder's group
    assert made(Opcode.MKDIR, number + b"other\0") == [("other", 70, -1)]


def test_each_full_disk_writes_half_before_it_refuses(server: Server, tmp_path: Path) -> None:
    """If it failed, a torn write would be met under the first full disk of a node alone."""
    opened = struct.pack("=IIII", os.O_RDWR, 0o600, 0, 0) + b"file\0"
    (handle,) = struct.unpack_from("=Q", answer(server, Opcode.CREATE, ROOT_ID, opened), -16)

    def taken(error: str, number: int) -> int:
        """How many of eight bytes are written under such orders."""
        server.obey(json.dumps({"do": "order", "orders": {"id": number, "write_error": error}}))
        head = struct.pack("=QQIIQII", handle, 0, 8, 0, 0, 0, 0)
        body, failed = server._answer(Request(Opcode.WRITE, 2, ROOT_ID, head + b"12345678"))
        (tmp_path / "file").write_bytes(b"")
        return 0 if failed else int(struct.unpack_from("=I", body)[0])

    assert [taken(error, number) for number in (1, 2) for error in ("ENOSPC", "")] == [4, 8, 4, 8]


def test_an_answer_that_comes_too_late_is_not_that_of_the_next_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a fault would report the evidence of another one."""
    monkeypatch.setattr(disks, "_PATIENCE_S", 0.001)

    async def drain() -> None: ...

    async def scene() -> dict[str, Any]:
        stdin = SimpleNamespace(write=lambda data: None, drain=drain)
        stdout = asyncio.StreamReader()
        disk = MountedDisk(
            "n1", tmp_path, cast(asyncio.subprocess.Process, SimpleNamespace(stdin=stdin, stdout=stdout))
        )
        with pytest.raises(ClusterError, match="the disk under n1 does not answer"):
            await disk.lose_unsynced("seed")
        for line in ({"bytes": 9, "names": 0, "writes": 1}, {"id": 4, "delayed": 2, "failed": 0}):
            stdout.feed_data(json.dumps(line).encode() + b"\n")
        return await disk.effects()

    assert asyncio.run(scene()) == {"id": 4, "delayed": 2, "failed": 0}


def test_mounts_of_others_are_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, somebody's file system would be unmounted because its name looks a little like ours, or a form feed
    in the path of one would end every run with a traceback."""
    nobody = "999999@1.00"
    lines = [
        f"1 2 0:1 / /a rw - fuse.sshfs qsync-abc-n1:{nobody} rw",
        "2 2 0:1 / /b rw - fuse.qsync somebody rw",
        f"3 2 0:1 / /c rw - ext4 qsync-abc-n1:{nobody} rw",
        rf"4 2 0:1 / /our\040own rw shared:1 master:2 - fuse.qsync qsync-abc-n1:{nobody} rw",
    ]
    listed = tmp_path / "mountinfo"
    listed.write_bytes("\n".join(lines).encode() + b"\n5 2 0:1 / /a\f\r\xffb rw - tmpfs none rw\n")
    monkeypatch.setattr(mounts, "_MOUNTS", listed)
    assert mounts.ours() == [("/our own", nobody)]
