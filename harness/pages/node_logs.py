"""The nodes' log lines in the window of the witness; without one, warnings, errors and the last lines.

Read line by line, and the number of kept lines has a bound. A line that is not JSON (a traceback, an assertion) is
kept as it is, at the time of the line before it, because it often explains a crash.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from checkers.history.errors import NOT_JSON
from harness.pages.json_door import Json, as_mapping, as_text, as_time_ns, clipped

LINES_A_NODE = 120
WARNINGS = frozenset({"warning", "warn"})
ERRORS = frozenset({"error", "critical", "fatal", "crit", "raw"})
IN_COLUMNS = frozenset({"time_ns", "level", "message", "node", "term", "owner", "lsn"})


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line; `more` holds the fields that have no column."""

    time_ns: int
    node: str
    level: str
    message: str
    term: str
    owner: str
    lsn: str
    more: str

    @property
    def gravity(self) -> str:
        """The style of its row: warning, error or nothing."""
        return "warning" if self.level in WARNINGS else "error" if self.level in ERRORS else ""


@dataclass(slots=True)
class NodeLogs:
    """The log lines of the page, and how they were chosen."""

    lines: list[LogLine]
    chosen: str
    left_out: int = 0
    notes: list[str] = field(default_factory=list)


def node_logs(folder: Path, window: tuple[int, int] | None) -> NodeLogs:
    """The lines within `window`; without one, or if it has none, warnings and errors and the last lines."""
    logs = NodeLogs([], "")
    paths = sorted(folder.glob("nodes/*/log.jsonl"))
    if not paths:
        logs.notes.append("The nodes left no logs (nodes/*/log.jsonl is missing).")
    kept = [_Kept(window) for _ in paths]
    for path, keeping in zip(paths, kept, strict=True):
        for line in _lines(path, logs.notes):
            keeping.take(line)
    if window and any(keeping.inside for keeping in kept):
        logs.chosen = "in the witness's window"
        chosen = [line for keeping in kept for line in keeping.inside]
        logs.left_out = sum(keeping.inside_left_out for keeping in kept)
    else:
        logs.chosen = "warnings, errors and the last lines of each node"
        chosen = [line for keeping in kept for line in keeping.grave_and_last()]
        logs.left_out = sum(keeping.taken for keeping in kept) - len(chosen)
    logs.lines = sorted(chosen, key=lambda line: line.time_ns)
    return logs


class _Kept:
    """A bounded choice of one node's lines."""

    def __init__(self, window: tuple[int, int] | None) -> None:
        self.window = window
        self.inside: list[LogLine] = []
        self.inside_left_out = 0
        self.grave: deque[tuple[int, LogLine]] = deque(maxlen=LINES_A_NODE // 3)
        self.last: deque[tuple[int, LogLine]] = deque(maxlen=10)
        self.taken = 0

    def take(self, line: LogLine) -> None:
        self.taken += 1
        self.last.append((self.taken, line))
        if line.gravity:
            self.grave.append((self.taken, line))
        if self.window and self.window[0] <= line.time_ns <= self.window[1]:
            if len(self.inside) < LINES_A_NODE:
                self.inside.append(line)
            else:
                self.inside_left_out += 1

    def grave_and_last(self) -> list[LogLine]:
        return [line for _, line in sorted({**dict(self.grave), **dict(self.last)}.items())]


def _lines(path: Path, notes: list[str]) -> Iterator[LogLine]:
    node, time_ns, unreadable = path.parent.name, 0, 0
    try:
        with path.open("rb") as file:
            for raw in file:
                fields = _fields(raw)
                time_ns = as_time_ns(fields.get("time_ns")) or time_ns
                unreadable += fields.get("level") == "raw"
                yield _line(node, time_ns, fields)
    except OSError as problem:
        notes.append(f"The log of {node} cannot be read: {problem.strerror}.")
    if unreadable:
        notes.append(
            f"The log of {node} has {unreadable:,} lines that are no JSON; they are shown as they are."
        )


def _fields(raw: bytes) -> Json:
    try:
        fields = msgspec.json.decode(raw)
    except NOT_JSON:
        fields = None
    text = clipped(raw.decode("utf-8", "replace").strip(), 400)
    return as_mapping(fields) or {"level": "raw", "message": text}


def _line(node: str, time_ns: int, fields: Json) -> LogLine:
    more = {name: value for name, value in fields.items() if name not in IN_COLUMNS}
    return LogLine(
        time_ns=time_ns,
        node=node,
        level=as_text(fields.get("level"), 12).lower(),
        message=as_text(fields.get("message")),
        term=as_text(fields.get("term"), 12),
        owner=as_text(fields.get("owner"), 20),
        lsn=as_text(fields.get("lsn"), 24),
        more=", ".join(
            f"{clipped(name, 40)}={as_text(value, 120)}" for name, value in list(more.items())[:12]
        ),
    )
