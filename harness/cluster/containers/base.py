"""A base image for nodes without any registry: the few Debian packages that a node needs, unpacked and imported.

Nothing is installed (no scripts of packages run), so this takes seconds. Python, a shell, real Tarantool, libfaketime,
sshd and the network tools are in it.
"""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.cluster.scratch import scratch
from harness.errors import ClusterError

LOCAL_BASE = "qsync-base:local"
PACKAGES = (
    *("base-files", "base-passwd", "libc-bin", "dash", "coreutils", "python3", "python3-minimal"),
    *("libpython3.11-stdlib", "tarantool", "libfaketime", "iproute2", "nftables", "procps", "openssh-server"),
)
LEFT_OUT = (
    "binutils",
    "dpkg",
    "perl",
    "systemd",
    "gcc",
    "debconf",
    "sysvinit",
    "usrmerge",
    "lsb",
    "adduser",
    "ucf",
)
"""Beginnings of package names that only installing would need."""
_LEFT_ASIDE = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
_DEPENDS = ("apt-cache", "depends", "--recurse", *(f"--no-{kind}" for kind in _LEFT_ASIDE))
_MERGED = ("bin", "sbin", "lib", "lib64")
_PASSWD = "root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
_GROUP = "root:x:0:\nnogroup:x:65534:\n"


def name_of(packages: Sequence[str]) -> str:
    """The name of the base image with these Debian packages beside the usual ones."""
    if not packages:
        return LOCAL_BASE
    digest = hashlib.sha256(" ".join((*PACKAGES, *sorted(packages))).encode()).hexdigest()[:8]
    return f"{LOCAL_BASE.partition(':')[0]}:{'-'.join(sorted(packages))[:100]}-{digest}"


def make_base(client: Any, packages: Sequence[str] = ()) -> str:
    """Import the image as `name_of(packages)`; returns its name. Raises ClusterError if packages cannot be had."""
    name = name_of(packages)
    with scratch("base") as folder:
        root = folder / "root"
        _unpack(_download(folder, (*PACKAGES, *packages)), root)
        archive = folder / "base.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(root, arcname=".")
        repository, _, tag = name.partition(":")
        client.api.import_image_from_file(str(archive), repository=repository, tag=tag)
    return name


def _download(folder: Path, packages: Sequence[str]) -> list[Path]:
    depends = _run([*_DEPENDS, *packages], folder).split("\n")
    names = sorted({line for line in depends if line and line[0].isalnum()})
    wanted = [name for name in names if not name.startswith(LEFT_OUT)]
    policy = _run(["apt-cache", "policy", *wanted], folder)
    available = {
        block.split(":", 1)[0]
        for block in policy.replace("\n  ", "\x00").split("\n")
        if block and "Candidate: (none)" not in block
    }
    _run(["apt-get", "download", "-q", *(name for name in wanted if name in available)], folder)
    return sorted(folder.glob("*.deb"))


def _unpack(packages: list[Path], root: Path) -> None:
    for name in _MERGED:  # Debian's merged /usr, which installing would make
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    for package in packages:
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as source:
            subprocess.run(
                [
                    "tar",
                    "-x",
                    "--keep-directory-symlink",
                    "-C",
                    root,
                    "--exclude=./usr/share/doc",
                    "--exclude=./usr/share/man",
                ],
                stdin=source.stdout,
                check=True,
            )
    for name in ("etc", "tmp", "root", "run/sshd", "proc", "sys", "dev", "data"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "etc/passwd").write_text(_PASSWD)
    (root / "etc/group").write_text(_GROUP)


def _run(command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    except OSError as error:
        raise ClusterError(
            f"a base image is made of Debian packages, and {command[0]} is missing: {error}"
        ) from error
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise ClusterError(f"{' '.join(command[:2])} failed: {reason}; try: apt-get update")
    return done.stdout
