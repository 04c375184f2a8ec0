"""Where wheels are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cluster import wheels


def test_a_user_without_a_home_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a simulation in a container, under a user that nobody knows there, would end in a traceback."""

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert not wheels._caches().exists()
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert wheels._caches() == Path("/somewhere")
