"""A command line in this process, with results of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.cli.verbs import simulate
from harness.pages.terminal import working


@dataclass(frozen=True)
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The one line that it said on stderr, and nothing else anywhere."""
        assert self.out == ""
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1
        return self.err.strip()


Qsync = Callable[..., Said]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "results"
    monkeypatch.setenv("QSYNC_RESULTS", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return folder


@pytest.fixture
def qsync(results: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Qsync:
    """`qsync("run", "--seed", 3)`, without lines of progress: a slow machine would have some."""
    monkeypatch.setattr(working, "PATIENCE_S", 600.0)
    monkeypatch.setattr(simulate.ProgressBar, "BETWEEN_LINES_S", 600.0)

    def run(*words: object) -> Said:
        capfd.readouterr()
        code = main([str(word) for word in words])
        captured = capfd.readouterr()
        return Said(code, captured.out, captured.err)

    return run
