"""Wheels for the Python and the machine that something is to run on: from the cache, or the package index."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from harness.errors import ClusterError

REQUIRED: Final = ("crc32c", "msgpack", "zstandard")


def _caches() -> Path:
    """Where this user keeps what can be made again. A user without a home can keep nothing, and may not need to."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return Path("/nonexistent")


CACHE: Final = _caches() / "qsync" / "wheels"
_LOCK: Final = Path(__file__).parents[2] / "requirements.lock"
_PLATFORMS: Final = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")


def versions_of_a_node() -> list[str]:
    """The requirements of a node with their versions, as the lock file has them."""
    lock = _LOCK.read_text()
    return [match[0] for name in REQUIRED if (match := re.search(rf"^{name}==[^\s;\\]+", lock, re.MULTILINE))]


def wheels(versions: Sequence[str], python: str, machine: str = "") -> Path:
    """A folder with the wheels, for Python `python` ("3.11") on Linux `machine` ("aarch64"; "": as here).

    `versions` are requirements with nothing open ("msgpack==1.1.2"). Raises ClusterError.
    """
    foreign = "" if machine in ("", platform.machine()) else machine
    digest = hashlib.sha256(" ".join(versions).encode()).hexdigest()[:8]
    cached = CACHE / "-".join(part for part in (python, foreign, digest) if part)
    try:
        if len(list(cached.glob("*.whl"))) < len(versions):
            _download(versions, python, foreign, cached)
    except OSError as error:
        raise ClusterError(f"wheels cannot be kept in {CACHE}: {error.strerror}") from error
    return cached


def _download(versions: Sequence[str], python: str, machine: str, folder: Path) -> None:
    """Each wheel whole or not at all: another run may look for them at the same time."""
    platforms = (
        [word for name in _PLATFORMS for word in ("--platform", f"{name}_{machine}")] if machine else []
    )
    options = (
        *("--no-deps", "--only-binary", ":all:", "--disable-pip-version-check"),
        *("--python-version", python),
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as fresh:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", *options, *platforms, "-d", fresh, *versions],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
            raise ClusterError(f"wheels for Python {python} cannot be had: {reason}")
        folder.mkdir(exist_ok=True)
        for wheel in Path(fresh).iterdir():
            wheel.replace(folder / wheel.name)
