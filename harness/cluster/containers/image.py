"""The node image: a base, the package `nodes` and the wheels that it needs; built without a network.

Its tag holds a digest of all that goes into it, so that it is built once and never stale.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness.cluster.containers.base import LOCAL_BASE
from harness.errors import ClusterError

ROOT = Path(__file__).parents[3]
BASE = "QSYNC_BASE_IMAGE"
"""The environment variable that names another base."""
PUBLIC_BASE = "python:3.12-slim"
REPOSITORY = "qsync-node"
REQUIRED = ("crc32c", "msgpack", "zstandard")
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "qsync" / "wheels"
DOCKER_HOST = "unix:///var/run/docker.sock"
NODE_ROOT = "/opt/node"
"""Where the package `nodes` lies in the image."""


def connect() -> Any:
    """A client of the Docker daemon; ClusterError says what to try."""
    import docker  # type: ignore[import-untyped]  # it has no types

    try:
        _knock(os.environ.get("DOCKER_HOST", DOCKER_HOST))
        client = docker.from_env(timeout=60)
        client.ping()
    except (OSError, docker.errors.DockerException) as error:
        raise ClusterError(
            "no Docker daemon answers; try: ./qsync doctor, and start dockerd or set DOCKER_HOST"
        ) from error
    return client


def _knock(host: str) -> None:
    """OSError if nobody listens at a local socket: the SDK would leave its own open then."""
    kind, _, path = host.partition("://")
    if kind == "unix":
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(5)
            door.connect(path)


def node_image(client: Any, *, base: str | None = None) -> str:
    """The name of the image, built if there is none yet. Raises ClusterError."""
    base = base or base_name(client)
    name = f"{REPOSITORY}:{_digest(base, _id_of(client, base))}"
    if not is_there(client, name):
        _build(client, base, name)
    return name


def base_name(client: Any) -> str:
    """The base that would be taken: the one that is named, the local one, or else the public one."""
    return os.environ.get(BASE) or (LOCAL_BASE if is_there(client, LOCAL_BASE) else PUBLIC_BASE)


def is_there(client: Any, name: str) -> bool:
    """An image of that name is on this machine."""
    import docker

    try:
        client.images.get(name)
    except docker.errors.ImageNotFound:
        return False
    return True


def _id_of(client: Any, base: str) -> str:
    import docker

    try:
        return str(client.images.get(base).id)
    except docker.errors.ImageNotFound:
        pass
    try:
        return str(client.images.pull(base).id)
    except docker.errors.DockerException as error:
        raise ClusterError(
            f"the base image {base} is not here and cannot be pulled; try: ./qsync doctor --fix, "
            f"which makes {LOCAL_BASE} from Debian packages, or name one in {BASE}"
        ) from error


def _sources() -> list[Path]:
    return sorted(
        path for path in (ROOT / "nodes").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )


def _digest(base: str, base_id: str) -> str:
    digest = hashlib.sha256(f"{base} {base_id} {_versions()}".encode())
    for path in _sources():
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _versions() -> list[str]:
    """The requirements with their versions, as the lock file has them."""
    lock = (ROOT / "requirements.lock").read_text()
    return [found[0] for name in REQUIRED if (found := re.search(rf"^{name}==[^\s;\\]+", lock, re.MULTILINE))]


def _build(client: Any, base: str, name: str) -> None:
    import docker

    with tempfile.TemporaryDirectory(prefix="qsync-image-") as folder:
        context = Path(folder)
        for path in _sources():
            target = context / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
        _wheels(client, base, context / "wheels")
        shutil.copy2(ROOT / "nodes/host/Dockerfile", context / "Dockerfile")
        try:
            client.images.build(
                path=str(context), tag=name, buildargs={"BASE_IMAGE": base}, network_mode="none", rm=True
            )
        except docker.errors.DockerException as error:
            raise ClusterError(f"the node image cannot be built on {base}: {error}") from error


def _wheels(client: Any, base: str, folder: Path) -> None:
    """What the image's own Python needs, from the cache or the package index."""
    told = client.containers.run(
        base,
        ["python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        remove=True,
        network_mode="none",
    )
    version = told.decode().strip()
    cached = CACHE / f"{version}-{hashlib.sha256(' '.join(_versions()).encode()).hexdigest()[:8]}"
    if len(list(cached.glob("*.whl"))) < len(REQUIRED):
        _download(version, cached)
    shutil.copytree(cached, folder)


def _download(version: str, folder: Path) -> None:
    options = (
        "--no-deps",
        "--only-binary",
        ":all:",
        "--python-version",
        version,
        "--disable-pip-version-check",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", *options, "-d", str(folder), *_versions()],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        raise ClusterError(f"the wheels of the node image cannot be had: {said}")
