"""Which image nodes are started from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker  # type: ignore[import-untyped]  # it has no types
import pytest

from harness.cluster.containers import image
from harness.errors import ClusterError


class Images:
    """Those that are here, and those that a registry has."""

    def __init__(self, here: tuple[str, ...], elsewhere: tuple[str, ...] = ()) -> None:
        self.here = [*here]
        self.elsewhere = elsewhere

    def get(self, name: str) -> Any:
        if name != name.lower():
            raise docker.errors.APIError("invalid reference format")
        if name not in self.here:
            raise docker.errors.ImageNotFound(name)
        return SimpleNamespace(id=f"id of {name}")

    def pull(self, name: str) -> Any:
        if name not in self.elsewhere:
            raise docker.errors.APIError("no such manifest")
        self.here.append(name)
        return self.get(name)


def client(*here: str, elsewhere: tuple[str, ...] = ()) -> Any:
    return SimpleNamespace(images=Images(here, elsewhere))


def test_a_given_image_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, who brings an image of nodes would test another one, built from this checkout."""
    monkeypatch.setattr(image, "node_image", lambda client: "built")
    monkeypatch.delenv(image.GIVEN, raising=False)
    assert image.usual_image(client()) == "built"
    monkeypatch.setenv(image.GIVEN, "mine:1")
    assert image.usual_image(client("mine:1")) == "mine:1"
    assert image.usual_image(client(elsewhere=("mine:1",))) == "mine:1"
    with pytest.raises(
        ClusterError, match="QSYNC_NODE_IMAGE names the image mine:1, which is not here and cannot"
    ):
        image.usual_image(client())


def test_the_image_of_a_store_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a store that comes as an image would be built of Debian packages, or not be told as missing."""
    monkeypatch.delenv(image.GIVEN, raising=False)
    assert image.usual_image(client("mystore:dev"), image="mystore:dev") == "mystore:dev"
    with pytest.raises(
        ClusterError, match=r"image mystore:dev is not here and cannot be pulled; try: docker build"
    ):
        image.usual_image(client(), image="mystore:dev")
    monkeypatch.setenv(image.GIVEN, "mine:1")
    assert image.usual_image(client("mine:1", "mystore:dev"), image="mystore:dev") == "mine:1"


def test_a_base_that_cannot_be_had_is_told_with_what_to_try() -> None:
    """If it failed, a machine without a registry would get the daemon's words and no way out."""
    assert image.id_of(client("python:3.12-slim"), "python:3.12-slim") == "id of python:3.12-slim"
    with pytest.raises(
        ClusterError, match=r"cannot be pulled; try: \./qsync doctor --fix, which makes qsync-base:local"
    ):
        image.id_of(client(), "python:3.12-slim")
    with pytest.raises(ClusterError, match=r"^the base image Mine is not here and cannot be pulled; try: "):
        image.id_of(client(), "Mine")


def test_packages_of_a_store_come_on_a_base_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a store would be started from an image without it, or every run would make the image anew."""
    made: list[tuple[str, ...]] = []

    def make_base(client: Any, packages: tuple[str, ...]) -> str:
        made.append(packages)
        client.images.here.append(image.name_of(packages))
        return image.name_of(packages)

    monkeypatch.setattr(image, "make_base", make_base)
    monkeypatch.setattr(image, "node_image", lambda client, base="the usual base": f"on {base}")
    monkeypatch.delenv(image.GIVEN, raising=False)
    here, packages = client(), ("etcd-server",)
    assert image.usual_image(here) == "on the usual base"
    assert [image.usual_image(here, packages) for _ in range(2)] == [f"on {image.name_of(packages)}"] * 2
    assert made == [packages]
    assert image.name_of(packages) not in (image.LOCAL_BASE, image.name_of(("redis-server",)))


def test_a_base_without_a_python_that_runs_is_told_in_one_line() -> None:
    """If it failed, a base image of another machine would end in a traceback."""

    def run(base: str, command: list[str], **how: Any) -> bytes:
        raise docker.errors.ContainerError(base, 255, command, base, b"exec format error")

    daemon = client("mine")
    daemon.containers = SimpleNamespace(run=run)
    with pytest.raises(
        ClusterError, match=r"the base image mine does not say which Python it has: .*exec format error"
    ):
        image.node_image(daemon, base="mine")


def test_another_dockerfile_makes_another_image_of_an_older_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If it failed, nodes of an older version, which bring none of it, would run in an image of a former checkout."""
    built: list[str] = []
    monkeypatch.setattr(image, "build", lambda client, base, name, **_: built.append(name))
    monkeypatch.setattr(image, "ROOT", tmp_path)
    dockerfile = tmp_path / "nodes" / "host" / "Dockerfile"
    dockerfile.parent.mkdir(parents=True)
    for words in ("FROM a", "FROM b"):
        dockerfile.write_text(words)
        image.node_image(client("mine"), base="mine", root=tmp_path / "older")
    assert len({*built}) == 2
