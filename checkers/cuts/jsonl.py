"""Trace files: a JSON array a line.

    ["life", node, life, wall_ns, ns]              a life begins; the rows that follow are its rows
    ["send", seq, peer, word, xid, ns]             xid null: of no transaction
    ["receive", node, life, seq, ns]               by its sender's node, life and number
    ["mark", kind, fields, ns]                     ["mark", "cut", {"cut": id}, ns] is the colour change
    ["end", ns]                                    the life is over (null: not known when), and all of it is here

A line that cannot be read ends its life there: the life is torn. So is a life without its end, because rows behind the
last one may be lost; unless its recorder writes none (`has_ends=False`). A file whose first line is no life is refused;
an empty one has no life.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from checkers.cuts.trace import LifeRows, Trace, trace_of
from checkers.history.errors import NOT_JSON, HistoryError

KINDS = frozenset({"send", "receive", "mark", "end"})
_LIFE_FIELDS = 5


def read(paths: Iterable[Path], *, is_one_clock: bool = True, has_ends: bool = True) -> Trace:
    """The trace in these files. Raises HistoryError for a file that is none, OSError for one that is not there."""
    lives = [life for path in paths for life in lives_of(path.name, path.read_bytes(), has_ends=has_ends)]
    return trace_of(lives, is_one_clock=is_one_clock)


def lives_of(name: str, text: bytes, *, has_ends: bool = True) -> Iterator[LifeRows]:
    """The lives in the text of one file; `name` is for messages.

    `has_ends` False: the recorder writes no "end", and loses no row of a process that is killed.
    """
    lines = text.split(b"\n")
    ends_whole = lines[-1] == b""
    lines = lines[:-1] if ends_whole else lines
    begun: list[Any] | None = None
    rows: list[list[Any]] = []
    torn = ""
    for number, line in enumerate(lines, 1):
        row = _row(line) if ends_whole or number < len(lines) else None
        if row is not None and row[0] == "life":
            if begun is not None:
                yield _life(begun, rows, torn or _without_end(name, rows, has_ends))
            begun, rows, torn = row, [], ""
        elif begun is None:
            raise HistoryError(
                expected='a trace that begins with ["life", node, life, wall_ns, ns]',
                came=f"{name}: {line[:80]!r}",
                attempt="give the trace files of a run",
                line=number,
            )
        elif row is None and not torn:
            torn = f"{name} line {number} is torn"
        elif row is not None and not torn:
            rows.append(row)
    if begun is not None:
        yield _life(begun, rows, torn or _without_end(name, rows, has_ends))


def _without_end(name: str, rows: list[list[Any]], has_ends: bool) -> str:
    """The possible loss of a life without the row "end", in a sentence; "" if it has the row or needs none."""
    if not has_ends or (rows and rows[-1][0] == "end"):
        return ""
    return f'a life in {name} has no "end": rows behind its last one may be lost'


def _row(line: bytes) -> list[Any] | None:
    """The row of a line; None if there is none in it."""
    try:
        row = msgspec.json.decode(line)
    except NOT_JSON:
        return None
    if not isinstance(row, list) or not row:
        return None
    if row[0] == "life":
        is_whole = (
            len(row) == _LIFE_FIELDS
            and isinstance(row[1], str)
            and all(type(number) is int for number in row[2:])
        )
        return row if is_whole else None
    return row if isinstance(row[0], str) and row[0] in KINDS else None


def _life(begun: list[Any], rows: list[list[Any]], torn: str) -> LifeRows:
    _, node, life, wall_ns, time_ns = begun
    over_ns = -1
    match rows[-1:]:
        case [["end", when]] if when is None or type(when) is int:
            over_ns = -1 if when is None else when
            rows.pop()
    return LifeRows(
        node=node,
        life=life,
        rows=tuple(rows),
        wall_ns=wall_ns,
        time_ns=time_ns,
        over_ns=over_ns,
        torn=torn,
    )


def lines_of(trace: Trace) -> Iterator[bytes]:
    """The lines of a trace, life by life."""
    absent = {row: (node, number) for row, node, number in trace.absent}
    for life in trace.lives:
        yield _line(["life", life.node, life.life, life.wall_ns, life.time_ns])
        for row in range(life.first, life.end):
            yield _line(_written(trace, row, absent))
        if not life.torn:
            yield _line(["end", life.over_ns if life.over_ns >= 0 else None])


def _written(trace: Trace, row: int, absent: dict[int, tuple[str, int]]) -> list[Any]:
    seq, peer, ns = int(trace.seq[row]), int(trace.peer[row]), int(trace.time_ns[row])
    match int(trace.kind[row]):
        case 0:
            xid = trace.xids[trace.xid[row]] if trace.xid[row] >= 0 else None
            return ["send", seq, trace.peers[peer], trace.words[trace.what[row]], xid, ns]
        case 1:
            sender = trace.lives[peer] if peer >= 0 else None
            node, life = absent[row] if sender is None else (sender.node, sender.life)
            return ["receive", node, life, seq, ns]
    return ["mark", trace.words[trace.what[row]], trace.fields.get(row, {}), ns]


def _line(row: list[Any]) -> bytes:
    return msgspec.json.encode(row) + b"\n"
