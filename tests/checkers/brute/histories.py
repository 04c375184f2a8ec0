"""Tiny histories as lines of text: easy to draw, to shrink, to print and to paste into a test.

    history_of([Line("invoke", 0, "write", 1, key="x"), Line("ok", 0, "write", 1, key="x")])

`Recorder` collects lines while a simulated client talks to a simulated store. A process that got no answer (info)
never speaks again: the client goes on under a new number, as in every recorded run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from checkers.history import Event, Header, History


@dataclass(frozen=True, slots=True)
class Line:
    """One event. The names and defaults are those of `checkers.history.Event`."""

    type: Any
    process: int
    f: str
    value: Any = None  # JSON's door
    key: str | None = None
    error: str | None = None
    phase: Any = "load"
    node: str | None = None
    role: str | None = None
    mode: str | None = None

    def __repr__(self) -> str:
        plain = [repr(getattr(self, name)) for name in ("type", "process", "f", "value")]
        named = [
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)[4:]
            if getattr(self, each.name) != each.default
        ]
        return f"Line({', '.join(plain + named)})"


@dataclass(slots=True)
class Recorder:
    """The lines so far, and the process number that each client speaks under."""

    clients: int
    lines: list[Line] = field(default_factory=list)
    _process: list[int] = field(default_factory=list)
    _next: int = 0

    def __post_init__(self) -> None:
        self._process = list(range(self.clients))
        self._next = self.clients

    def add(self, client: int, type: str, f: str, value: Any = None, **named: Any) -> None:  # noqa: A002
        self.lines.append(Line(type, self._process[client], f, value, **named))
        if type == "info":
            self._process[client] = self._next
            self._next += 1


def history_of(lines: Sequence[Line]) -> History:
    """The history of these lines, a millisecond apart."""
    events = [
        Event(
            index=index,
            time_ns=index * 1_000_000,
            type=line.type,
            process=line.process,
            f=line.f,
            key=line.key,
            value=line.value,
            node=line.node,
            role=line.role,
            mode=line.mode,
            error=line.error,
            phase=line.phase,
        )
        for index, line in enumerate(lines)
    ]
    return History.of(Header(), events)


def pasteable(lines: Sequence[Line]) -> str:
    """The lines as Python source."""
    inner = "".join(f"    {line!r},\n" for line in lines)
    return f"history_of([\n{inner}])"


def smaller(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """The histories that lack one operation of this, or one micro-operation of one transaction."""
    pairs = _pairs(lines)
    for pair in pairs:
        yield [line for index, line in enumerate(lines) if index not in pair]
    for pair in pairs:
        value = lines[pair[0]].value
        if lines[pair[0]].f != "txn":
            continue
        for place in range(len(value) if len(value) > 1 else 0):
            cut = list(lines)
            for index in pair:
                line = lines[index]
                rest = [micro for at, micro in enumerate(line.value) if at != place]
                cut[index] = Line(line.type, line.process, line.f, rest, line.key, line.error, line.phase)
            yield cut


def _pairs(lines: Sequence[Line]) -> list[tuple[int, ...]]:
    pairs: list[tuple[int, ...]] = []
    open_at: dict[int, int] = {}
    for index, line in enumerate(lines):
        if line.type == "invoke":
            open_at[line.process] = index
        else:
            pairs.append((open_at.pop(line.process), index))
    return pairs + [(index,) for index in open_at.values()]
