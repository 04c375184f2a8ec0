"""A witness or a whole cut as a space-time diagram, in the values that pages draw: lanes, events, arrows, the cut.

Places are ranks in an order in which the events can have happened, so that every message goes forward. The shape of the
values: {"lanes": [{"name"}], "events": [{"lane", "at", "text", "kind"}], "arrows": [{"from", "to", "text", "kind"}],
"cuts": [{"name", "at": {lane: at}}], "brackets": [{"lane", "from", "to", "text"}], "not_drawn"}.

A bracket spans what a node reports by its marks "start" and "finish" of the cut: the records of its log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import Any

import numpy

from checkers.cuts.links import Links
from checkers.cuts.messages import Crossing
from checkers.cuts.neighbourhood import Neighbourhood, around, of_rows
from checkers.cuts.trace import MARK, RECEIVE, SEND, Trace, name_of

ROWS_MAX = 60
STEPS = 3
MESSAGES_MAX = 14
"""In the picture of a whole cut."""
START_MARK, FINISH_MARK = "start", "finish"

Picture = dict[str, Any]


def of_crossing(links: Links, cut: str, crossing: Crossing) -> Picture:
    """The violating message, with the rows that led to it and those that followed from it."""
    near = around(links, crossing.path, steps=STEPS, most=ROWS_MAX // 2)
    shown = _with_changes(links, cut, near.rows)
    return _drawn(links.trace, cut, shown, violating=(crossing.send, crossing.receive))


def of_transaction(links: Links, cut: str, xid: str) -> Picture | None:
    """All messages about a transaction; None if the trace names it nowhere."""
    trace = links.trace
    if xid not in trace.xids or not len(trace.xid):
        return None
    sends = (trace.kind == SEND) & (trace.xid == trace.xids.index(xid))
    takes = (trace.kind == RECEIVE) & (links.sender_row >= 0)
    takes &= sends[numpy.maximum(links.sender_row, 0)]
    rows = numpy.flatnonzero(sends | takes).tolist()[:ROWS_MAX]
    return _drawn(trace, cut, _with_changes(links, cut, rows)) if rows else None


def of_cut(links: Links, cut: str) -> Picture | None:
    """The colour changes, the records of the cut, and the messages of transactions nearest to it: first those that were
    sent before the cut and received behind it. None if the trace has no colour change of it, or lacks a column."""
    trace = links.trace
    changes = [row for row, name in _changes(trace) if name == cut]
    if not changes or not min(len(trace.what), len(trace.xid), len(trace.time_ns)):
        return None
    marks = {
        *changes,
        *(row for kind in (START_MARK, FINISH_MARK) for row in _marks(trace, kind, cut).values()),
    }
    rank = links.rank
    taken = numpy.flatnonzero((trace.kind == RECEIVE) & (links.sender_row >= 0))
    taken = taken[trace.xid[links.sender_row[taken]] >= 0]
    sent = links.sender_row[taken]
    change_of = numpy.full(len(trace.nodes), len(trace), numpy.int64)
    for row in reversed(changes):
        change_of[trace.nodes.index(_node(trace, row))] = row
    node_of = links.node_of_life[links.life_of]
    crosses = (sent < change_of[node_of[sent]]) & (taken > change_of[node_of[taken]])
    places = rank[sorted(marks)]
    away = numpy.maximum(0, numpy.maximum(places.min() - rank[taken], rank[sent] - places.max()))
    nearest = numpy.lexsort((rank[sent], away, ~crosses))[:MESSAGES_MAX]
    chosen = {*marks, *taken[nearest].tolist(), *sent[nearest].tolist()}
    return _drawn(trace, cut, _by_time(trace, of_rows(links, chosen)))


def _by_time(trace: Trace, shown: Neighbourhood) -> Neighbourhood:
    """The same rows in the order of their times, as far as every message still goes forward."""
    waits = dict.fromkeys(shown.rows, 0)
    then: dict[int, list[int]] = {row: [] for row in shown.rows}
    last: dict[str, int] = {}
    for row in sorted(shown.rows):
        if (before := last.get(_node(trace, row))) is not None:
            then[before].append(row)
            waits[row] += 1
        last[_node(trace, row)] = row
    for send, receive in shown.messages:
        then[send].append(receive)
        waits[receive] += 1
    ready = [(int(trace.time_ns[row]), row) for row, count in waits.items() if not count]
    heapify(ready)
    order = []
    while ready:
        _, row = heappop(ready)
        order.append(row)
        for other in then[row]:
            waits[other] -= 1
            if not waits[other]:
                heappush(ready, (int(trace.time_ns[other]), other))
    return Neighbourhood(rows=tuple(order), messages=shown.messages)


def _changes(trace: Trace) -> Iterable[tuple[int, str]]:
    """(row, cut) of every colour change."""
    for row, code in zip(trace.mark_row.tolist(), trace.mark_cut.tolist(), strict=True):
        yield row, trace.cuts[code]


def _marks(trace: Trace, kind: str, cut: str) -> dict[str, int]:
    """By node the row of its first mark of this kind for the cut."""
    if kind not in trace.words or not len(trace.what):
        return {}
    firsts: dict[str, int] = {}
    rows = numpy.flatnonzero((trace.kind == MARK) & (trace.what == trace.words.index(kind)))
    for row in rows.tolist():
        if name_of(trace.fields.get(row, {}).get("cut")) == cut:
            firsts.setdefault(_node(trace, row), row)
    return firsts


def _with_changes(links: Links, cut: str, rows: Iterable[int]) -> Neighbourhood:
    """These rows, with the colour changes of the cut on the same nodes."""
    trace, chosen = links.trace, set(rows)
    nodes = {_node(trace, row) for row in chosen}
    chosen |= {row for row, name in _changes(trace) if name == cut and _node(trace, row) in nodes}
    return of_rows(links, chosen)


def _drawn(trace: Trace, cut: str, shown: Neighbourhood, violating: tuple[int, int] | None = None) -> Picture:
    places = {row: place for place, row in enumerate(shown.rows)}
    ends = {row: {"lane": _node(trace, row), "at": place} for row, place in places.items()}
    begins = {row: name for row, name in _changes(trace) if row in places}
    changes: dict[str, int] = {}
    for row, name in begins.items():
        if name == cut:
            changes.setdefault(_node(trace, row), places[row])
    starts, finishes = (_marks(trace, kind, cut) for kind in (START_MARK, FINISH_MARK))
    bad = () if violating is None else violating
    sent = {send for send, _ in shown.messages}
    return {
        "lanes": [{"name": node} for node in trace.nodes if node in {_node(trace, row) for row in places}],
        "events": [
            {
                **ends[row],
                "text": "" if row in sent else _text(trace, row, begins),
                "kind": "bad" if row in bad else "cut" if row in begins else _kind(trace, row),
            }
            for row in shown.rows
        ],
        "arrows": [
            {
                "from": ends[send],
                "to": ends[receive],
                "text": _text(trace, send, begins),
                "kind": "violating" if (send, receive) == violating else "message",
            }
            for send, receive in shown.messages
        ],
        "cuts": [{"name": cut, "at": changes}],
        "brackets": [
            {"lane": node, "from": places[row], "to": places[finishes[node]], "text": "START to FINISH"}
            for node, row in starts.items()
            if row in places and finishes.get(node) in places
        ],
        "not_drawn": len(trace) - len(shown.rows),
    }


def _node(trace: Trace, row: int) -> str:
    return trace.lives[trace.life_of(row)].node


def _kind(trace: Trace, row: int) -> str:
    """A mark that reports a record of the log, or anything else but a colour change."""
    is_mark = trace.kind[row] == MARK and len(trace.what) > 0
    return "record" if is_mark and trace.words[trace.what[row]] in (START_MARK, FINISH_MARK) else "state"


def _text(trace: Trace, row: int, begins: Mapping[int, str]) -> str:
    """The word of a message or mark and its transaction; of a colour change (`begins`) its cut."""
    if row in begins:
        return f"{begins[row]} begins"
    if trace.kind[row] == RECEIVE or not len(trace.what):
        return ""
    word = trace.words[trace.what[row]]
    about = trace.xids[trace.xid[row]] if len(trace.xid) and trace.xid[row] >= 0 else ""
    return f"{word.upper() if _kind(trace, row) == 'record' else word} {about}".strip()
