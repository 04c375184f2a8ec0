"""The report of a judged file, by the code for a run. That code reads a folder, so a temporary one is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from checkers.history import jsonl
from checkers.history.history import History
from checkers.history.operation import Event
from harness import pages
from harness.cluster.scratch import scratch
from harness.results import RunFolder, output_file


def write(target: Path, source: Path, history: History, verdict: Mapping[str, Any]) -> None:
    """Write the page to `target`. StoreError in one line if it cannot be written."""
    with scratch("page") as made:
        folder = made / "check" / source.resolve().name  # `..` names no folder
        folder.mkdir(parents=True)
        (folder / "plan.json").write_bytes(b"{}")
        jsonl.write(folder / "history.jsonl", history.header, _readable(history))
        _write(target, folder, verdict)


def write_of_run(target: Path, run: RunFolder, verdict: Mapping[str, Any]) -> None:
    """The page of a stored run by this verdict, which need not be the stored one. Its folder stays as it is."""
    _write(target, run.path, verdict)


def _write(target: Path, folder: Path, verdict: Mapping[str, Any]) -> None:
    shown = msgspec.to_builtins(verdict, str_keys=True)
    output_file.write(target, pages.html(folder, shown).encode("utf-8", "replace"), "the page")


def _readable(history: History) -> Iterator[Event]:
    """The events of judged operations, and those of the nemesis, the monitor and the harness."""
    judged = {index for operation in history.operations for index in operation.events}
    for event in history.events:
        if event.index in judged or isinstance(event.process, str):
            yield event
