"""The node image: a base, the package `nodes` and the wheels that it needs; built without a network.

Its tag holds a digest of all that goes into it, so that it is built once and never stale.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.cluster.containers.base import LOCAL_BASE, make_base, name_of
from harness.cluster.ownership import RunId
from harness.cluster.place import ROOT, code_files
from harness.cluster.scratch import scratch
from harness.cluster.wheels import versions_of_a_node, wheels
from harness.errors import ClusterError

BASE = "QSYNC_BASE_IMAGE"
"""The environment variable that names another base."""
GIVEN = "QSYNC_NODE_IMAGE"
"""The environment variable that names an image of nodes, which is then taken as it is; as in docker-compose.yml."""
PUBLIC_BASE = "python:3.12-slim"
REPOSITORY = "qsync-node"
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
    """OSError if no daemon listens at a local socket: the SDK would leave its own open then."""
    kind, _, path = host.partition("://")
    if kind == "unix":
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(5)
            door.connect(path)


def node_image(client: Any, *, base: str | None = None, root: Path = ROOT) -> str:
    """The name of the image, built if there is none yet, with the nodes below `root`. Raises ClusterError."""
    base = base or base_name(client)
    dockerfile = ROOT / "nodes/host/Dockerfile"  # of this checkout, also for another version of the nodes
    versions, sources = versions_of_a_node(), code_files(root, "nodes/**/*")
    name = f"{REPOSITORY}:{digest_of(base, id_of(client, base), dockerfile, versions, sources, root)}"
    if not is_there(client, name):
        build(
            client,
            base,
            name,
            dockerfile=dockerfile,
            versions=versions,
            sources=sources,
            under=".",
            root=root,
        )
    return name


def usual_image(client: Any, packages: Sequence[str] = (), image: str = "") -> str:
    """The image of nodes that the environment names, or else `image`, or the one of this checkout with these packages.

    Raises ClusterError.
    """
    name = os.environ.get(GIVEN)
    if name:
        _here(client, name, f"{GIVEN} names the image {name}, which", f"leave {GIVEN} out to build one")
    elif image:
        _here(client, image, f"the store's image {image}", f"docker build -t {image} …, or docker load")
    else:
        return node_image(client, base=base_with(client, packages)) if packages else node_image(client)
    return name or image


def base_name(client: Any) -> str:
    """The base to take: the one that `BASE` names, else the local one, else the public one."""
    return os.environ.get(BASE) or (LOCAL_BASE if is_there(client, LOCAL_BASE) else PUBLIC_BASE)


def base_with(client: Any, packages: Sequence[str]) -> str:
    """A base that has these Debian packages, made if there is none yet. Raises ClusterError."""
    name = name_of(packages)
    return name if is_there(client, name) else make_base(client, packages)


def is_there(client: Any, name: str) -> bool:
    """An image of that name is on this machine."""
    import docker

    try:
        client.images.get(name)
    except docker.errors.ImageNotFound:
        return False
    return True


def id_of(client: Any, base: str) -> str:
    """The id of an image, pulled if it is not here. Raises ClusterError."""
    attempt = f"./qsync doctor --fix, which makes {LOCAL_BASE} from Debian packages, or name one in {BASE}"
    return str(_here(client, base, f"the base image {base}", attempt).id)


def _here(client: Any, name: str, what: str, attempt: str) -> Any:
    """An image, pulled if it is not here. ClusterError says what to try."""
    import docker

    try:
        with suppress(docker.errors.ImageNotFound):
            return client.images.get(name)
        return client.images.pull(name)
    except docker.errors.DockerException as error:
        raise ClusterError(f"{what} is not here and cannot be pulled; try: {attempt}") from error


def digest_of(
    base: str, base_id: str, dockerfile: Path, versions: Sequence[str], sources: Iterable[Path], root: Path
) -> str:
    """The digest of all that goes into an image: base, Dockerfile, versions of its packages, copied files."""
    digest = hashlib.sha256(f"{base} {base_id} {list(versions)}".encode() + dockerfile.read_bytes())
    for path in sources:
        digest.update(os.fsencode(path.relative_to(root)) + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def build(
    client: Any,
    base: str,
    name: str,
    *,
    dockerfile: Path,
    versions: Sequence[str],
    sources: Iterable[Path],
    under: str,
    unpacked: bool = False,
    root: Path = ROOT,
) -> None:
    """Build an image of files below `root` and of wheels; by default it is this checkout.

    The files are copied into the folder `under` of its context, which has wheels in wheels/, or `unpacked` in
    packages/.
    """
    import docker

    with scratch("image") as context:
        for path in sources:
            target = context / under / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)
        try:
            packed = _wheels(client, base, versions)
        except docker.errors.DockerException as error:
            raise ClusterError(f"the base image {base} does not say which Python it has: {error}") from error
        if unpacked:
            for wheel in sorted(packed.glob("*.whl")):
                shutil.unpack_archive(wheel, context / "packages", "zip")
        else:
            shutil.copytree(packed, context / "wheels")
        shutil.copy2(dockerfile, context / "Dockerfile")
        try:
            client.images.build(
                path=str(context),
                tag=name,
                buildargs={"BASE_IMAGE": base},
                network_mode="none",
                rm=True,
                forcerm=True,  # of a build that fails, too
            )
        except docker.errors.DockerException as error:
            raise ClusterError(f"the image {name} cannot be built on {base}: {error}") from error


def _wheels(client: Any, base: str, versions: Sequence[str]) -> Path:
    """A folder with the wheels for the image's own Python, from the cache or the package index."""
    output = client.containers.run(
        base,
        ["python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        remove=True,
        network_mode="none",
        labels=RunId.new().labels,  # if we are killed now, the next run removes it
    )
    return wheels(versions, output.decode().strip())
