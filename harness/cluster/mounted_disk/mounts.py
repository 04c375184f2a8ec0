"""Which harness made a mounted disk, which mounts dead harnesses left, and whether this machine can do it.

The source of a mount says its run, its node and its harness (process number and the time at which it started), as the
labels of containers do. A mount of a dead harness is a leftover. Mounts of other types, or without these words,
are never touched.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from pathlib import Path
from typing import Final

from harness.cluster.ownership import lives, this_harness

DEVICE: Final = "/dev/fuse"
TYPE: Final = "fuse.qsync"
_SOURCE: Final = re.compile(r"^qsync-(?P<run>[0-9a-f]+)-(?P<node>[^:]+):(?P<owner>\d+@[\d.]+) ")
_MOUNTS: Final = Path("/proc/self/mountinfo")
_NOSUID_NODEV: Final = 6
_DETACH_NOFOLLOW: Final = 2 | 8


def why_not() -> str:
    """The requirement for a disk under a node that this machine lacks; "" if none."""
    if sys.platform != "linux":
        return "it needs Linux"
    if not Path(DEVICE).exists():
        return f"there is no {DEVICE}; try: modprobe fuse"
    if os.geteuid() != 0 or not os.access(DEVICE, os.R_OK | os.W_OK):
        return f"only root may mount what {DEVICE} offers; try: sudo ./qsync …"
    return ""


def source(run: str, node: str) -> str:
    return f"qsync-{run}-{node}:{this_harness()}"


def mount(name: str, folder: str, device: int) -> None:
    """Raises OSError."""
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    _call("mount", name.encode(), os.fsencode(folder), TYPE.encode(), _NOSUID_NODEV, options.encode())


def unmount(folder: str) -> None:
    """Detach it. A process with open files there keeps them while the mount's process lives. Raises OSError."""
    _call("umount2", os.fsencode(folder), _DETACH_NOFOLLOW)


def _call(name: str, *arguments: object) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def ours() -> list[tuple[str, str]]:
    """(mount point, harness) of every disk that a harness of any run has mounted here."""
    try:
        lines = os.fsdecode(_MOUNTS.read_bytes()).split("\n")  # a path may hold all that else ends a line
    except OSError:
        return []
    disks: list[tuple[str, str]] = []
    for line in lines:
        where, _, what = line.partition(" - ")
        kind, _, name = what.partition(" ")
        if kind == TYPE and (match := _SOURCE.match(name)):
            disks.append((_plain(where.split(" ")[4]), match["owner"]))
    return disks


def _plain(path: str) -> str:
    """A path of the table of mounts, in which spaces and the like are octal."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), path)


def remove_leftovers() -> list[str]:
    """Unmount what dead harnesses left; what was removed, in words, or why it could not be."""
    removed: list[str] = []
    for folder, owner in ours():
        if not lives(owner):
            try:
                unmount(folder)
                removed.append(f"disk mounted at {folder}")
            except OSError as error:
                removed.append(f"disk mounted at {folder}: no, it is still there ({error.strerror})")
    return removed
