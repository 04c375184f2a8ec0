from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import needs
from tests.nodes.connectors.servers import START, Server

_REAL = [pytest.mark.real, needs.tarantool]


@pytest.fixture(scope="module", params=["ours", pytest.param("tarantool", marks=_REAL)])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Ours, and a real one: a test that holds on both says that they are alike."""
    running = START[request.param](tmp_path_factory.mktemp(request.param))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    """Ours and a real one at once."""
    ours, real = (START[name](tmp_path_factory.mktemp(name)) for name in ("ours", "tarantool"))
    yield ours, real
    ours.stop()
    real.stop()
