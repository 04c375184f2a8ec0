"""Where wheels are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cluster import wheels
from harness.errors import ClusterError


def test_a_user_without_a_home_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a simulation in a container, under a user that nobody knows there, would end in a traceback."""

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert not wheels._caches().exists()
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert wheels._caches() == Path("/somewhere")


def test_a_folder_that_keeps_no_wheels_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a user with a cache that cannot be written would get a traceback."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(wheels, "CACHE", tmp_path / "file" / "wheels")
    with pytest.raises(ClusterError, match=r"wheels cannot be kept in .*: Not a directory"):
        wheels.wheels(["msgpack==1"], "3.11")
