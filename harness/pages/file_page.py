"""The report of a judged file, by the code for a run. That code reads a folder, so a temporary one is made."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from checkers.history import jsonl
from checkers.history.history import History
from checkers.history.operation import Event
from harness import pages
from harness.cluster.scratch import scratch
from harness.errors import StoreError
from harness.results import RunFolder


def write(target: Path, source: Path, history: History, verdict: Mapping[str, Any]) -> None:
    """Write the page to `target`. StoreError in one line if it cannot be written."""
    with scratch("page") as made:
        folder = made / "check" / source.name
        folder.mkdir(parents=True)
        (folder / "plan.json").write_bytes(b"{}")
        jsonl.write(folder / "history.jsonl", history.header, _readable(history))
        _write(target, folder, verdict)


def write_of_run(target: Path, run: RunFolder, verdict: Mapping[str, Any]) -> None:
    """The page of a stored run by this verdict, which need not be the stored one. Its folder stays as it is."""
    _write(target, run.path, verdict)


def _write(target: Path, folder: Path, verdict: Mapping[str, Any]) -> None:
    shown = msgspec.to_builtins(verdict, str_keys=True)
    write_file(target, pages.html(folder, shown).encode("utf-8", "replace"), "the page")


def write_file(target: Path, data: bytes, what: str) -> None:
    """Write a whole file or nothing; StoreError if the file system refuses. `what` names the file in its message."""
    is_special = target.exists() and not target.is_file()  # /dev/stdout
    # A link stays one: what it points to is written.
    place = target if is_special else Path(os.path.realpath(target))
    unfinished = place if is_special else place.with_name(f".{place.name}.unfinished")
    try:
        unfinished.write_bytes(data)
        if not is_special:
            unfinished.replace(place)
    except OSError as error:
        if not is_special:
            with suppress(OSError):
                unfinished.unlink()
        raise StoreError(f"cannot write {what} to {target}: {error.strerror or error}") from error


def _readable(history: History) -> Iterator[Event]:
    """The events of judged operations, and those of the nemesis, the monitor and the harness."""
    judged = {index for operation in history.operations for index in operation.events}
    for event in history.events:
        if event.index in judged or isinstance(event.process, str):
            yield event
