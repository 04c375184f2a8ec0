"""A base image for nodes without any registry: the few Debian packages that a node needs, unpacked and imported.

Nothing is installed (no scripts of packages run), so this takes seconds. Python, a shell, real Tarantool, libfaketime,
sshd and the network tools are in it.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from harness.cluster.scratch import scratch
from harness.doing import doing
from harness.errors import ClusterError

LOCAL_BASE = "qsync-base:local"
PACKAGES = (
    *("base-files", "base-passwd", "libc-bin", "dash", "coreutils", "python3", "python3-minimal"),
    *("libpython3.11-stdlib", "tarantool", "libfaketime", "iproute2", "nftables", "procps", "openssh-server"),
)
ESSENTIAL = (
    *("bash", "diffutils", "findutils", "grep", "gzip", "hostname"),
    *("mawk", "sed", "tar", "util-linux"),
)
"""What scripts of Debian packages use without a dependency: every Debian has it. It comes with the packages of a
store."""
LEFT_OUT = (
    *("binutils", "dpkg", "perl", "systemd", "gcc", "debconf"),
    *("sysvinit", "usrmerge", "lsb", "adduser", "ucf"),
)
"""Beginnings of package names that only installing would need; one that is asked for by name is not left out."""
_LEFT_ASIDE = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
_DEPENDS = ("apt-cache", "depends", "--recurse", *(f"--no-{kind}" for kind in _LEFT_ASIDE))
_CANDIDATE = re.compile(r"^(\S+):\n  Installed: .*\n  Candidate: (.*)$", re.MULTILINE)
_ENVIRONMENT = {**os.environ, "LC_ALL": "C", "LANGUAGE": "C"}  # words of apt are read
_EXTRACT = (
    *("tar", "-x", "--keep-directory-symlink"),
    *("--exclude=./usr/share/doc", "--exclude=./usr/share/man", "-f"),
)
_WITHIN_S = 300
_MERGED = ("bin", "sbin", "lib", "lib64")
_PASSWD = "root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
_GROUP = "root:x:0:\nnogroup:x:65534:\n"


def name_of(packages: Sequence[str]) -> str:
    """The name of the base image; with Debian packages beside the usual ones it tells what this file does, too."""
    if not packages:
        return LOCAL_BASE
    recipe = " ".join(sorted(packages)).encode() + Path(__file__).read_bytes()
    digest = hashlib.sha256(recipe).hexdigest()[:8]
    readable = re.sub(r"[^\w.-]", "_", "-".join(sorted(packages)), flags=re.ASCII)  # a tag has no "+"
    return f"{LOCAL_BASE.partition(':')[0]}:{readable[:100]}-{digest}"


def make_base(client: Any, packages: Sequence[str] = ()) -> str:
    """Import the image as `name_of(packages)`; returns its name. Raises ClusterError if packages cannot be had."""
    name = name_of(packages)
    doing("an image with the Debian packages")
    with scratch("base") as folder:
        root = folder / "root"
        _unpack(_download(folder, (*PACKAGES, *(ESSENTIAL if packages else ())), packages), root)
        archive = folder / "base.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(root, arcname=".")
        repository, _, tag = name.partition(":")
        client.api.import_image_from_file(str(archive), repository=repository, tag=tag)
    doing("")
    return name


def _download(folder: Path, usual: Sequence[str], packages: Sequence[str] = ()) -> list[Path]:
    depends = _run([*_DEPENDS, *usual, *packages], folder).split("\n")
    names = sorted({line for line in depends if line and line[0].isalnum()})
    wanted = [name for name in names if name in packages or not name.startswith(LEFT_OUT)]
    policy = _run(["apt-cache", "policy", *wanted], folder)
    candidates = dict(_CANDIDATE.findall(policy))
    available = [name for name in wanted if candidates.get(name, "(none)") != "(none)"]
    if missing := [name for name in packages if name not in available]:
        raise ClusterError(f"there is no Debian package {', '.join(missing)} here; try: apt-get update")
    _run(["apt-get", "download", "-q", *available], folder)
    return sorted(folder.glob("*.deb"))


def _unpack(packages: list[Path], root: Path) -> None:
    for name in _MERGED:  # Debian's merged /usr, which installing would make
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    for package in packages:
        content = package.with_suffix(".tar")
        with content.open("wb") as file:
            _run(["dpkg-deb", "--fsys-tarfile", str(package)], root, file)
        _run([*_EXTRACT, str(content)], root)
        content.unlink()
    for name in ("etc", "tmp", "root", "run/sshd", "proc", "sys", "dev", "data"):
        (root / name).mkdir(parents=True, exist_ok=True)
    if (root / "usr/bin/mawk").exists():  # installing makes this link
        (root / "usr/bin/awk").symlink_to("mawk")
    for name, ours in (("passwd", _PASSWD), ("group", _GROUP)):
        named = {line.partition(":")[0] for line in ours.splitlines()}
        debians = (root / f"usr/share/base-passwd/{name}.master").read_text().splitlines(keepends=True)
        users = (line for line in debians if line.partition(":")[0] not in named)
        (root / "etc" / name).write_text(ours + "".join(users))


def _run(command: list[str], folder: Path, output: BinaryIO | int = subprocess.PIPE) -> str:
    """The output of the command; "" if that goes to the file `output`. Raises ClusterError."""
    how: dict[str, Any] = {"stdout": output, "stderr": subprocess.PIPE, "text": True, "env": _ENVIRONMENT}
    try:
        done = subprocess.run(command, cwd=folder, timeout=_WITHIN_S, check=False, **how)
    except OSError as error:
        raise ClusterError(
            f"a base image is made of Debian packages: {command[0]}: {error.strerror}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(
            f"{' '.join(command[:2])} took more than {_WITHIN_S} s; try: apt-get update"
        ) from error
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise ClusterError(f"{' '.join(command[:2])} failed: {reason}; try: apt-get update")
    return done.stdout or ""
