"""The bundle uploaded to a host: the package `nodes` with its wheels, the supervisor and the relay, as one archive."""

from __future__ import annotations

import io
import tarfile
from functools import cache
from typing import Final

from harness.cluster.place import ROOT, Version, Which, code_files
from harness.cluster.wheels import versions_of_a_node, wheels

PROGRAM: Final = "program"
_PATTERNS: Final = (
    "nodes/**/*",
    "harness/__init__.py",
    "harness/cluster/__init__.py",
    "harness/errors.py",
    "harness/cluster/damaged_files.py",
    "harness/cluster/empty_disk.py",
    "harness/cluster/family.py",
    "harness/cluster/faketime_files.py",
    "harness/cluster/last_words.py",
    "harness/cluster/open_files.py",
    "harness/cluster/place.py",
    "harness/cluster/ports.py",
    "harness/cluster/probe.py",
    "harness/cluster/storage.py",
    "harness/cluster/limits/__init__.py",
    "harness/cluster/limits/ballast.py",
    "harness/cluster/limits/enclosure.py",
    "harness/cluster/limits/group.py",
    "harness/cluster/limits/kernel_log.py",
    "harness/cluster/limits/machine.py",
    "harness/cluster/limits/starved.py",
    "harness/cluster/relay/*.py",
    "harness/cluster/ssh/__init__.py",
    "harness/cluster/ssh/remote/*.py",
)
"""Files of this checkout. Of the relay, the harness's own end is among them and is not imported there."""


@cache
def bundle(python: str, machine: str, versions: tuple[tuple[Which, Version], ...] = ()) -> bytes:
    """A tar archive for hosts with that Python ("3.11") and machine ("x86_64"). Raises ClusterError."""
    with io.BytesIO() as whole:
        with tarfile.open(fileobj=whole, mode="w:gz", compresslevel=1) as archive:
            for pattern in _PATTERNS:
                for path in code_files(ROOT, pattern):
                    archive.add(path, arcname=str(path.relative_to(ROOT)), recursive=False)
            for which, version in versions:
                _add_version(archive, which, version)
            for wheel in sorted(wheels(versions_of_a_node(), python, machine).glob("*.whl")):
                archive.add(wheel, arcname=wheel.name)
        return whole.getvalue()


def place_of(which: Which) -> str:
    """The folder of a version in the bundle; in it its package `nodes`, or its `program`."""
    return f"versions/{which}"


def _add_version(archive: tarfile.TarFile, which: Which, version: Version) -> None:
    if version.shipped is not None:
        archive.add(version.shipped, arcname=f"{place_of(which)}/{PROGRAM}")
    if version.root is not None:
        for path in code_files(version.root):
            archive.add(path, arcname=f"{place_of(which)}/{path.relative_to(version.root)}")
