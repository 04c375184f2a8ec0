"""Errors that are not the harness's own fault, each with one line for people and an exit code.

    HarnessError
    ├── WrongUse       64  asked for something impossible: an option, a plan, a fault that this cluster cannot do
    │   └── NotHere        what was asked for is possible, but this machine lacks a program for it
    ├── ClusterError    3  the nodes, or what runs them, did not do what was asked: the run is inconclusive
    │   └── NodeEnded      a node ended by itself instead of coming up
    └── StoreError      3  results cannot be written or read: the run is inconclusive

Anything else that is raised is a bug of the harness: exit 70, with its traceback in the run's folder. An OSError of a
path that nobody may use, or of a full disk, is none (`harness.cli.main`).
"""

from __future__ import annotations

import tempfile
import traceback
from pathlib import Path
from typing import ClassVar

TRACEBACK_NOTE = "traceback in "
"""Begins the note on an exception that says which file keeps its traceback."""
FAILED = "failed"
"""A line of the harness in the record: why the run was broken off. It counts at every later judgement too."""


class HarnessError(Exception):
    """`message` is one line that says what was expected, what came, and what to try. Every file can hold it."""

    exit_code: ClassVar[int] = 70

    def __init__(self, message: str) -> None:
        line = _one_line(message)  # it may quote a value of any length
        super().__init__(line if len(line) <= 4000 else f"{line[:2000]} … {line[-1500:]}")

    @property
    def message(self) -> str:
        return str(self.args[0])


class WrongUse(HarnessError):
    exit_code = 64


class NotHere(WrongUse):
    pass


class ClusterError(HarnessError):
    exit_code = 3


class NodeEnded(ClusterError):
    pass


class StoreError(HarnessError):
    exit_code = 3


def given_path(text: str) -> Path:
    """The path that a person gave, with `~` and `~user` replaced. WrongUse if no file that we see can have it."""
    if "\0" in text:
        raise WrongUse(f"expected a path, got one with a NUL in it: {text!r}")
    try:
        path = Path(text).expanduser()
        path.exists()
    except OSError as error:
        raise WrongUse(f"{text}: {error.strerror}; try: another path") from error
    except RuntimeError as error:
        raise WrongUse(f"{text}: there is no user of this name here; try: a path without ~") from error
    return path


def _one_line(text: str) -> str:
    """The text may name a file, and the name need not be UTF-8."""
    return " ".join(text.split()).encode(errors="backslashreplace").decode()


def broke(error: Exception) -> str:
    """The line for an exception that is a bug of the harness."""
    try:
        words = f"{error}"
    except Exception:  # Spark's own can be read only while it runs
        words = "it cannot say why"
    return _one_line(f"the harness itself broke: {type(error).__name__}: {words}")


def keep_traceback(error: Exception) -> str:
    """The file with the traceback: the one in the run's folder, if there is one, else a new temporary file."""
    for note in getattr(error, "__notes__", ()):
        if note.startswith(TRACEBACK_NOTE):
            return str(note.removeprefix(TRACEBACK_NOTE))
    try:
        with tempfile.NamedTemporaryFile(prefix="qsync-traceback-", suffix=".txt", delete=False) as file:
            # Of one that cannot be read it says so. The name of a file need not be UTF-8.
            file.write("".join(traceback.format_exception(error)).encode(errors="backslashreplace"))
    except OSError as full:
        return f"no file ({full.strerror})"
    return file.name
