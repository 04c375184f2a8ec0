"""What `doctor --clean` removes of what is kept, and what it must leave."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker  # type: ignore[import-untyped]  # it has no types
import pytest
from click.testing import CliRunner

from harness.cli.verbs import doctor
from harness.cluster import versions
from harness.cluster.containers.image import REPOSITORY
from harness.cluster.old import DAY_S, NEWEST, old, remove_old_images, remove_old_versions

NOW_S = 1_700_000_000.0


def named(number: int) -> str:
    return f"{number:016x}"


def wanted(folder: Path, name: str, days_ago: float) -> Path:
    path = folder / name
    (path / "nodes").mkdir(parents=True)
    (path / "nodes" / "code.py").write_text("")
    os.utime(path, (NOW_S, NOW_S - days_ago * DAY_S))
    return path


def test_what_is_new_or_among_the_newest_stays() -> None:
    """If it failed, a run of last week would lose its version, or caches would grow for ever."""
    ages = {
        name: NOW_S - age * DAY_S
        for name, age in zip("abcdefgh", (90, 80, 70, 60, 50, 13, 2, 1), strict=True)
    }
    assert old(ages, NOW_S) == ["a", "b", "c"]
    assert old({name: ages[name] for name in "abcde"}, NOW_S) == []
    assert old({**ages, "a": NOW_S}, NOW_S) == ["b", "c", "d"]


def test_only_versions_that_nobody_wanted_for_long_are_removed(tmp_path: Path) -> None:
    """If it failed, somebody's own folder would be removed, or a version that a run stands on."""
    kept = [wanted(tmp_path, named(number), number) for number in range(NEWEST)]
    gone = wanted(tmp_path, named(100), 100)
    others = [wanted(tmp_path, name, 300) for name in ("mine", "0123", "tmpabc", named(7) + "0")]
    half = wanted(tmp_path, f"gone-{named(8)}", 300)
    assert remove_old_versions(tmp_path, NOW_S) == [
        f"version {gone.name} of the nodes, not wanted for 100 days"
    ]
    assert not gone.exists()
    assert not half.exists()
    assert all((path / "nodes" / "code.py").exists() for path in (*kept, *others))
    assert remove_old_versions(tmp_path, NOW_S) == []
    assert remove_old_versions(tmp_path / "nowhere", NOW_S) == []


def test_a_version_that_is_wanted_again_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a version that is tested every night would be removed because it was first wanted long ago."""
    monkeypatch.setattr(versions, "FOLDER", tmp_path)
    root = versions.this_package().root
    assert root is not None
    os.utime(root, (0, 0))
    assert versions.this_package().root == root
    assert root.stat().st_mtime > NOW_S


class Images:
    """Those of a daemon that refuses to remove what is in use."""

    def __init__(self, *images: tuple[str, float, str]) -> None:
        self.all = {name: SimpleNamespace(tags=[name], attrs=_attributes(days)) for name, days, _ in images}
        self.used = {name: use for name, _, use in images}
        self.removed: list[str] = []

    def list(self, name: str) -> list[Any]:
        return [*self.all.values()]

    def remove(self, name: str, force: bool) -> None:
        assert not force
        if self.used[name] == "since just now":
            raise docker.errors.APIError("conflict: it is used by a container")
        self.removed.append(name)


def _attributes(days: float) -> dict[str, Any]:
    from datetime import UTC, datetime

    made = datetime.fromtimestamp(NOW_S - days * DAY_S, UTC)
    return {
        "Created": made.strftime("%Y-%m-%dT%H:%M:%S.123456789Z"),
        "Metadata": {"LastTagTime": "0001-01-01"},
    }


def test_images_in_use_and_those_of_others_stay() -> None:
    """If it failed, cleaning up would take an image from a run, or remove what somebody else has made."""
    newest = [(f"{REPOSITORY}:{named(number)}", float(number), "") for number in range(NEWEST)]
    images = Images(
        *newest,
        (f"{REPOSITORY}:{named(50)}", 50, ""),
        (f"{REPOSITORY}:{named(51)}", 51, "by a container"),
        (f"{REPOSITORY}:{named(52)}", 52, "since just now"),
        (f"{REPOSITORY}:local", 90, ""),
        (f"registry/{REPOSITORY}:{named(53)}", 90, ""),
        (f"somebody:{named(54)}", 90, ""),
    )
    containers = SimpleNamespace(
        list=lambda **asked: ["one"] * (images.used[asked["filters"]["ancestor"]] == "by a container")
    )
    client = SimpleNamespace(images=images, containers=containers)
    assert remove_old_images(client, REPOSITORY, NOW_S) == [
        f"image {REPOSITORY}:{named(50)}, made 50 days ago"
    ]
    assert images.removed == [f"{REPOSITORY}:{named(50)}"]


@pytest.mark.parametrize("attributes", [{}, {"Created": None, "Metadata": {"LastTagTime": None}}])
def test_an_image_of_unknown_age_stays(attributes: dict[str, Any]) -> None:
    """If it failed, a daemon that does not tell when an image was made would lose all of them."""
    images = Images(*((f"{REPOSITORY}:{named(number)}", 90.0, "") for number in range(9)))
    for image in images.all.values():
        image.attrs = attributes
    client = SimpleNamespace(images=images, containers=SimpleNamespace(list=lambda **_: []))
    assert remove_old_images(client, REPOSITORY, NOW_S) == []

    def list_removed(**_: object) -> None:
        raise docker.errors.ImageNotFound("No such image")

    client = SimpleNamespace(images=SimpleNamespace(list=list_removed))
    assert remove_old_images(client, REPOSITORY, NOW_S) == [], "another process is at it"


def test_clean_says_what_it_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, versions would vanish without a word, or only where Docker is."""
    monkeypatch.setattr(versions, "FOLDER", tmp_path)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    for look in ("_left_mounted", "_left_here"):
        monkeypatch.setattr(doctor, look, list)
    for number in range(NEWEST + 1):
        wanted(tmp_path, named(number), 100 + number)
    said = CliRunner().invoke(doctor.command, ["--clean"], standalone_mode=False)
    assert f"removed  version {named(NEWEST)} of the nodes, not wanted for" in said.output
