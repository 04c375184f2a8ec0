"""What the tests of the harness share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.systems.tarantool.system import PROGRAM
from tests.checkers.conftest import WRAP_AROUND

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs are judged by the same kernels as in tests of the checkers."""
    silent = pytest.mark.filterwarnings(
        *(f"ignore:overflow encountered in scalar:RuntimeWarning:{name}" for name in WRAP_AROUND)
    )
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(silent)


@pytest.fixture
def a_tarantool(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness finds a program of Tarantool, on any machine. A test that asks for it starts no node of it."""
    monkeypatch.setenv(PROGRAM, sys.executable)
