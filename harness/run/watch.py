"""Judges a run while its load goes on: the keys that are finished, and nodes that ended.

The clients turn to a key, leave it, and may come back after an hour. A key that was left alone for a while is judged by
the checks of single keys, with all that ever happened under it; then its lines are let go, to a file without a name.
So the memory of a watch is that of the keys in use.

A watch ends a run early, and judges nothing for good: the verdict comes from the whole record. A violation here is one
there, because a history that breaks a rule of a key breaks it whatever follows.

`python -m harness.run.watch FOLDER` watches a run in a process of its own: it prints a sentence at the first violation,
and ends with its stdin.
"""

from __future__ import annotations

import os
import select
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from checkers.check import Check, run_here
from checkers.history import segments
from checkers.history.errors import NOT_JSON, HistoryError
from checkers.history.history import Header, History
from checkers.history.jsonl import parse_header
from checkers.history.operation import Event
from checkers.history.others import OFTEN
from checkers.replicas.crash import NAME as CRASH
from harness.judge.promised import checks_of, promise_of
from harness.plan.plan import SECOND_NS, Plan
from harness.results import RunFolder
from harness.systems import plans

LEFT_ALONE_NS: Final = 10 * SECOND_NS
"""A key without an open operation for so long is finished: no workload comes back to one so soon."""
LOOK_EVERY_S: Final = 1.0
_NICE: Final = 10
_decode = msgspec.json.Decoder(Event).decode


@dataclass(slots=True)
class _Key:
    """The lines of a key since it was judged last."""

    lines: list[bytes] = field(default_factory=list)
    open_processes: set[int] = field(default_factory=set)
    """Those with an operation under way."""
    last_ns: int = 0


class Watch:
    """Takes the lines of a record as they come; `judge_finished` says what is violated, "" if nothing is."""

    def __init__(self, plan: Plan, header: Header, spilled: BinaryIO) -> None:
        self._plan = plan
        self._header = header
        self._spilled = spilled
        self._keys: dict[str, _Key] = {}
        self._spilled_parts: dict[str, list[tuple[int, int]]] = {}
        """By key: place and length of each part of its earlier lines in the file."""
        self._others: list[Event] = []
        """Lines that no client wrote, but for `OFTEN`."""
        self._time_ns = 0
        self._has_news = False

    def take(self, line: bytes) -> None:
        """The next line of the record."""
        event = _decode(line)
        self._time_ns = event.time_ns
        if not isinstance(event.process, int):
            if event.f not in OFTEN:
                self._others.append(event)
                self._has_news |= event.process == "monitor" and event.f == "crash"
        elif event.key is not None:
            key = self._keys.setdefault(event.key, _Key())
            key.lines.append(line)
            key.last_ns = event.time_ns
            if event.type == "invoke":
                key.open_processes.add(event.process)
            else:
                key.open_processes.discard(event.process)

    def judge_finished(self) -> str:
        """Judge the keys that are finished by now, and the crashes; a sentence if one of them is a violation."""
        late_ns = self._time_ns - LEFT_ALONE_NS
        due = [name for name, key in self._keys.items() if not key.open_processes and key.last_ns <= late_ns]
        if not due and not self._has_news:
            return ""
        others = History.of(self._header, self._others)
        checks = [check for check in checks_of(self._plan, promise_of(self._plan, others)) if check.model]
        violation = ""
        if self._has_news:
            self._has_news = False
            reports = replace(others, states=())  # the many reports of states say nothing of a crash
            violation = _violated([check for check in checks if check.name == CRASH], reports)
        of_keys = [check for check in checks if check.is_per_key]
        if not of_keys:
            for name in due:
                del self._keys[name]
            return violation
        return violation or self._judged(due, others, of_keys)

    def _judged(self, names: Sequence[str], others: History, checks: Sequence[Check]) -> str:
        """Judge all that happened under these keys, and let them go."""
        events = [*others.events]
        for name in names:
            lines = self._keys.pop(name).lines
            events += map(_decode, (*self._spilled_lines(name), *lines))
            self._spill(name, lines)
        return _violated(checks, History.of(self._header, sorted(events, key=lambda event: event.index)))

    def _spilled_lines(self, name: str) -> Iterable[bytes]:
        for place, length in self._spilled_parts.get(name, ()):
            self._spilled.seek(place)
            yield from self._spilled.read(length).splitlines()

    def _spill(self, name: str, lines: Sequence[bytes]) -> None:
        place = self._spilled.seek(0, os.SEEK_END)
        data = b"\n".join(lines)
        self._spilled.write(data)
        self._spilled_parts.setdefault(name, []).append((place, len(data)))


def _violated(checks: Iterable[Check], history: History) -> str:
    """The summary of the first invalid check. A checker that breaks, or says unknown, ends no run."""
    for check in checks:
        verdict = run_here(check, history)
        if verdict.result == "invalid":
            return f"{check.name}: {verdict.summary}"
    return ""


class Watched:
    """A record that is being written, and its watch."""

    def __init__(self, folder: RunFolder, plan: Plan) -> None:
        self._plan = plan
        self._path = folder.history
        self._at = 0
        """The place of the first byte that was not read yet."""
        self._spilled = tempfile.TemporaryFile(dir=folder.path)  # noqa: SIM115  # `close` closes it
        self._watch: Watch | None = None
        self._is_broken = False

    def look(self) -> str:
        """Read the new lines, and judge what is finished; "" if nothing is violated.

        A record with a line that cannot be read is left to the final judgement: without that line a key may look wrong.
        """
        if self._is_broken:
            return ""
        try:
            data = self._new()
        except (HistoryError, OSError):
            return ""  # the record is not there yet, or was handed over meanwhile: the next look reads the same bytes
        try:
            lines = data.split(b"\n")  # the last one has no end yet, or is empty
            self._at -= len(lines.pop())  # a line that is not finished is read again next time
            if self._watch is None and lines:
                self._watch = Watch(self._plan, parse_header(lines.pop(0)), self._spilled)
            if self._watch is None:
                return ""
            for line in lines:
                self._watch.take(line)
            return self._watch.judge_finished()
        except (HistoryError, OSError, *NOT_JSON):
            self._is_broken = True
            return ""

    def _new(self) -> bytes:
        with segments.stream(self._path) as file:
            file.seek(self._at)
            data = file.read()
        self._at += len(data)
        return data

    def close(self) -> None:
        self._spilled.close()


def main(folder: str) -> None:
    """Watch a run until its first violation, which is printed, or until stdin ends."""
    os.nice(_NICE)
    run = RunFolder(Path(folder))
    with closing(Watched(run, plans.read(run.plan_file))) as watched:
        while not select.select([sys.stdin], [], [], LOOK_EVERY_S)[0]:
            if violation := watched.look():
                print(" ".join(violation.split()), flush=True)
                return


if __name__ == "__main__":
    main(sys.argv[1])
