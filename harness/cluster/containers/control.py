"""The image of the control container of docker-compose.yml: this checkout, and what `./qsync run` needs.

It is built as the node image is, without a network, and named by a digest of all that goes into it. docker-compose.yml
uses the name `local` of both, which `./qsync doctor --fix` gives to the newest.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from harness.cluster.containers.base import LOCAL_BASE
from harness.cluster.containers.image import (
    base_name,
    base_with,
    build,
    digest_of,
    id_of,
    is_there,
    node_image,
)
from harness.cluster.place import ROOT, code_files

REPOSITORY: Final = "qsync-control"
LOCAL: Final = "local"
PACKAGES: Final = ("iptables", "util-linux")
"""The harness needs these for faults of the network, beside the packages of a node: `nsenter`, `unshare`."""
_FILES: Final = (
    "qsync",
    "pyproject.toml",
    "requirements.lock",
    "requirements-spark.lock",
    "requirements-test.lock",
)
_FOLDERS: Final = ("harness", "nodes", "checkers", "plans", "docs")


def control_image(client: Any) -> str:
    """The name of the image, built if there is none yet. Raises ClusterError."""
    base = base_name(client)
    if base == LOCAL_BASE:
        base = base_with(client, PACKAGES)
    versions, sources = _versions(), _sources()
    dockerfile = ROOT / "harness/Dockerfile"
    name = f"{REPOSITORY}:{digest_of(base, id_of(client, base), dockerfile, versions, sources, ROOT)}"
    if not is_there(client, name):
        build(
            client,
            base,
            name,
            dockerfile=dockerfile,
            versions=versions,
            sources=sources,
            under="checkout",
            unpacked=True,
        )
    return name


def images_of_compose(client: Any) -> tuple[str, ...]:
    """Build the images that docker-compose.yml asks for, and tag them with its names; returns these."""
    names = []
    for name in (node_image(client), control_image(client)):
        repository = name.partition(":")[0]
        client.images.get(name).tag(repository, tag=LOCAL)
        names.append(f"{repository}:{LOCAL}")
    return tuple(names)


def _sources() -> list[Path]:
    inside = (path for folder in _FOLDERS for path in code_files(ROOT / folder))
    return sorted([*(ROOT / name for name in _FILES), *inside])


def _versions() -> list[str]:
    """All requirements of the lock file."""
    lock = (ROOT / "requirements.lock").read_text()
    return re.findall(r"^[^#\s]+==[^\s;\\]+", lock, re.MULTILINE)
