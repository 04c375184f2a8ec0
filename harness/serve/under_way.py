"""The progress of an active run, from its record: each look reads on where the last one ended, in bounded portions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from checkers.history import segments
from checkers.history.errors import NOT_JSON
from checkers.history.faults import ENDS_PROCESSES, in_todays_words
from harness.pages.json_door import as_time_ns

PORTION_BYTES = 8 << 20
"""The most that one look reads, so that no page waits for a record of gigabytes."""


class _Event(msgspec.Struct, gc=False):
    time_ns: int = 0
    type: str = ""
    process: int | str = ""
    f: str = ""
    node: str | None = None
    phase: str = "load"
    value: msgspec.Raw = msgspec.Raw()


class _Header(msgspec.Struct):
    nodes: list[str] = []


@dataclass(slots=True)
class UnderWay:
    """The state of a run after the lines that were read. `look` reads new lines."""

    path: Path
    offset: int = 0
    size: int = 0
    lines: int = 0
    time_ns: int = 0
    phase: str = ""
    header: _Header = field(default_factory=_Header)
    outcomes: Counter[str] = field(default_factory=Counter)
    asked: int = 0
    faults: dict[int, tuple[str, str, tuple[str, ...]]] = field(default_factory=dict)
    """The active faults: id → name, kind (`does`), nodes."""
    faults_over: Counter[str] = field(default_factory=Counter)
    """Name → how many ended and took effect."""
    states: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Node → the last state that the monitor noted."""
    unreadable: int = 0

    def look(self) -> None:
        """Read new lines; a torn last line waits for the next look. OSError or HistoryError if the record cannot be
        read.
        """
        with segments.stream(self.path) as file:
            self.size = file.seek(0, 2)
            if self.size < self.offset:  # a different file
                self.__init__(self.path)  # type: ignore[misc]
                self.size = file.seek(0, 2)
            file.seek(self.offset)
            data = file.read(PORTION_BYTES)
        whole = data.rfind(b"\n") + 1
        for line in data[:whole].splitlines():
            self._take(line)
        # Of a line longer than a portion the last part counts, as one that cannot be read.
        self.offset += whole or (len(data) if len(data) == PORTION_BYTES else 0)

    @property
    def is_behind(self) -> bool:
        """Whether the record has much more than the last look read."""
        return self.size - self.offset > PORTION_BYTES // 8

    def _take(self, line: bytes) -> None:
        self.lines += 1
        try:
            if self.lines == 1:
                self.header = msgspec.json.decode(line, type=_Header)
            else:
                self._note(_decode(line))
        except NOT_JSON:
            self.unreadable += 1

    def _note(self, event: _Event) -> None:
        self.time_ns = as_time_ns(event.time_ns) or self.time_ns
        if isinstance(event.process, int):
            self.phase = event.phase
            if event.phase == "final":
                return  # the verdict does not count these reads either
            if event.type == "invoke":
                self.asked += 1
            else:
                self.outcomes[event.type] += 1
        elif event.process == "nemesis":
            self._fault(event)
        elif event.process == "monitor" and event.f == "state" and event.node is not None:
            state = msgspec.json.decode(event.value) if bytes(event.value) else None
            self.states[event.node] = state if isinstance(state, dict) else {}

    def _fault(self, event: _Event) -> None:
        value = msgspec.json.decode(event.value) if bytes(event.value) else None
        if not isinstance(value, dict) or not isinstance(value.get("id"), int):
            return
        if event.type == "invoke":
            nodes = value.get("nodes")
            named = tuple(str(node) for node in nodes) if isinstance(nodes, list) else ()
            self.faults[value["id"]] = (event.f, str(value.get("does", "")), named)
        else:
            self.faults.pop(value["id"], None)
            if in_todays_words(value).get("took_effect") is True:
                self.faults_over[event.f] += 1

    def nodes(self) -> list[tuple[str, str, str]]:
        """(name, condition, role) of the nodes in the header, then of nodes that joined."""
        does: dict[str, set[str]] = {}
        for _, kind, nodes in self.faults.values():
            for node in nodes:
                does.setdefault(node, set()).add(kind)
        names = list(dict.fromkeys((*self.header.nodes, *self.states)))
        return [(name, self._condition(name, does.get(name, set())), self._role(name)) for name in names]

    def _condition(self, node: str, does: Set[str]) -> str:
        if does & ENDS_PROCESSES:
            return "down"
        if "pause" in does:
            return "paused"
        state = self.states.get(node)
        return "not seen" if state is None else "up" if state.get("up") else "silent"

    def _role(self, node: str) -> str:
        state = self.states.get(node) or {}
        words = [str(state[word]) for word in ("role", "state") if isinstance(state.get(word), str)]
        words += [f"term {state['term']}"] if isinstance(state.get("term"), int) else []
        return ", ".join(dict.fromkeys(words))


_decode = msgspec.json.Decoder(_Event).decode
