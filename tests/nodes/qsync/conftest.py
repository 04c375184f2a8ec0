"""What the tests of nodes share."""

from __future__ import annotations

from functools import lru_cache

import pytest

from nodes.qsync import snapshot


@pytest.fixture(autouse=True)
def snapshots_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes start again and again here, and most snapshots are the first one."""
    monkeypatch.setattr(snapshot, "read", _read)


_read = lru_cache(maxsize=64)(snapshot.read)
