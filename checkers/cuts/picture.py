"""A witness as a space-time diagram, in the values that pages draw: lanes, events, arrows, the cut across.

Places are ranks in an order in which the events can have happened, so that every message goes forward. The shape of the
values: {"lanes": [{"name"}], "events": [{"lane", "at", "text", "kind"}], "arrows": [{"from", "to", "text", "kind"}],
"cuts": [{"name", "at": {lane: at}}], "not_drawn"}.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy

from checkers.cuts.links import Links
from checkers.cuts.messages import Crossing
from checkers.cuts.neighbourhood import Neighbourhood, around, of_rows
from checkers.cuts.trace import MARK, RECEIVE, SEND, Trace

ROWS_MAX = 60
STEPS = 3

Picture = dict[str, Any]


def of_crossing(trace: Trace, cut: str, crossing: Crossing) -> Picture:
    """The message that violates, what led to it and what came of it."""
    near = around(trace, crossing.path, steps=STEPS, most=ROWS_MAX // 2)
    shown = _with_changes(trace, cut, near.rows)
    return _drawn(trace, cut, shown, violating=(crossing.send, crossing.receive))


def of_transaction(trace: Trace, cut: str, xid: str) -> Picture | None:
    """All messages about a transaction; None if the trace names it nowhere."""
    if xid not in trace.xids or not len(trace.xid):
        return None
    links = Links.of(trace)
    sends = (trace.kind == SEND) & (trace.xid == trace.xids.index(xid))
    takes = (trace.kind == RECEIVE) & (links.sender_row >= 0)
    takes &= sends[numpy.maximum(links.sender_row, 0)]
    rows = numpy.flatnonzero(sends | takes).tolist()[:ROWS_MAX]
    return _drawn(trace, cut, _with_changes(trace, cut, rows)) if rows else None


def _with_changes(trace: Trace, cut: str, rows: Iterable[int]) -> Neighbourhood:
    """These rows, with the colour changes of the cut on the same nodes."""
    chosen = set(rows)
    nodes = {_node(trace, row) for row in chosen}
    for row, code in zip(trace.mark_row.tolist(), trace.mark_cut.tolist(), strict=True):
        if trace.cuts[code] == cut and _node(trace, row) in nodes:
            chosen.add(row)
    return of_rows(Links.of(trace), chosen)


def _drawn(trace: Trace, cut: str, shown: Neighbourhood, violating: tuple[int, int] | None = None) -> Picture:
    places = {row: place for place, row in enumerate(shown.rows)}
    ends = {row: {"lane": _node(trace, row), "at": place} for row, place in places.items()}
    changes: dict[str, int] = {}
    for row, code in zip(trace.mark_row.tolist(), trace.mark_cut.tolist(), strict=True):
        if row in places and trace.cuts[code] == cut:
            changes.setdefault(_node(trace, row), places[row])
    bad = () if violating is None else violating
    sent = {send for send, _ in shown.messages}
    return {
        "lanes": [{"name": node} for node in trace.nodes if node in {_node(trace, row) for row in places}],
        "events": [
            {
                **ends[row],
                "text": "" if row in sent else _text(trace, row, cut),
                "kind": _kind(trace, row, bad),
            }
            for row in shown.rows
        ],
        "arrows": [
            {
                "from": ends[send],
                "to": ends[receive],
                "text": _text(trace, send, cut),
                "kind": "violating" if (send, receive) == violating else "message",
            }
            for send, receive in shown.messages
        ],
        "cuts": [{"name": cut, "at": changes}],
        "not_drawn": len(trace) - len(shown.rows),
    }


def _node(trace: Trace, row: int) -> str:
    return trace.lives[trace.life_of(row)].node


def _kind(trace: Trace, row: int, bad: tuple[int, ...]) -> str:
    if row in bad:
        return "bad"
    return "cut" if trace.kind[row] == MARK else "state"


def _text(trace: Trace, row: int, cut: str) -> str:
    """The word of a message and its transaction; of a colour change the cut."""
    if trace.kind[row] == MARK:
        return f"{cut} begins"
    if trace.kind[row] != SEND or not len(trace.what):
        return ""
    about = trace.xids[trace.xid[row]] if trace.xid[row] >= 0 else ""
    return f"{trace.words[trace.what[row]]} {about}".strip()
