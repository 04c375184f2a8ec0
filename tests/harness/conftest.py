"""What the tests of the harness share."""

from __future__ import annotations

import sys

import pytest

from harness.systems.tarantool.system import PROGRAM


@pytest.fixture
def a_tarantool(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness finds a program of Tarantool, on any machine. A test that asks for it starts no node of it."""
    monkeypatch.setenv(PROGRAM, sys.executable)
