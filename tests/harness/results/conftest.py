"""An object store over loopback, as the environment names it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.results.object_server import ObjectServer, object_server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """With one bucket, `b`."""
    with object_server("b") as found:
        found.speak_through(monkeypatch)
        yield found
