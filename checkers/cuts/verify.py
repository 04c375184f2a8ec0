"""Accepts or refuses proofs about the messages of a cut. Shares no code with the checker, only the values of a trace.

    verify.check(trace, "k7", judgement.result, judgement.proof)     # RefusedError: the proof does not show the result

| proof | shows | is checked by |
|---|---|---|
| frontier | no message from outside comes inside: these many rows of each life are inside | one pass over all rows |
| message | an event outside happened before one inside: sends and receives that lead from one to the other | its rows |

For a frontier the colour changes decide on which side a row of their node is. Nodes without one are where the proof
says. Any place will do, because then no event that a colour change puts outside can have happened before one that it
puts inside. Rows that were lost refuse a frontier, unless none of them can be inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from checkers.cuts.trace import RECEIVE, SEND, Life, Trace


class RefusedError(Exception):
    """A proof does not prove what it claims."""


def check(trace: Trace, cut: str, result: str, proof: Mapping[str, Any], *, ended_ns: int = -1) -> None:
    """Raise RefusedError unless the proof shows the result ("valid" or "invalid") for the cut."""
    try:
        changes = _changes(trace, cut)
        match result, proof["kind"]:
            case "valid", "frontier":
                _frontier(trace, changes, proof["inside"], ended_ns)
            case "invalid", "message":
                _message(trace, changes, proof["path"])
            case _:
                raise RefusedError(f"a proof of kind {proof['kind']!r} does not show {result}")
    except (LookupError, TypeError, ValueError) as error:
        raise RefusedError(f"the proof cannot be read: {error}") from error


def _need(true: bool, otherwise: str) -> None:
    if not true:
        raise RefusedError(otherwise)


def _changes(trace: Trace, cut: str) -> dict[str, tuple[int, int]]:
    """By node the row and the time of its first colour change in this cut."""
    changes: dict[str, tuple[int, int]] = {}
    for row, code, ns in zip(
        trace.mark_row.tolist(), trace.mark_cut.tolist(), trace.mark_ns.tolist(), strict=True
    ):
        if trace.cuts[code] == cut:
            node = next(life.node for life in trace.lives if life.first <= row < life.end)
            if node not in changes or row < changes[node][0]:
                changes[node] = (row, ns)
    _need(bool(changes), "no node changed its colour")
    return changes


def _message(trace: Trace, changes: Mapping[str, tuple[int, int]], path: list[Mapping[str, Any]]) -> None:
    rows = [trace.row_of(place) for place in path]
    _need(len(rows) >= 2 and len(rows) % 2 == 0, "a path is of sends and receives in turn")
    first, last = path[0]["node"], path[-1]["node"]
    _need(first in changes and rows[0] > changes[first][0], "its first send is not outside")
    _need(last in changes and rows[-1] < changes[last][0], "its last receive is not inside")
    for place in range(0, len(rows), 2):
        send, receive = rows[place], rows[place + 1]
        _need(trace.kind[send] == SEND and trace.kind[receive] == RECEIVE, "a row is of another kind")
        sender = trace.lives[trace.peer[receive]] if trace.peer[receive] >= 0 else None
        is_theirs = sender is not None and (sender.node, sender.life) == (
            path[place]["node"],
            path[place]["life"],
        )
        _need(is_theirs and trace.seq[send] == trace.seq[receive], "a receive is of another message")
        if place:
            here, before = path[place], path[place - 1]
            same = (here["node"], here["life"]) == (before["node"], before["life"])
            _need(same and before["position"] < here["position"], "it leaves out how a node came to know")


def _frontier(
    trace: Trace, changes: Mapping[str, tuple[int, int]], claimed: list[list[Any]], ended_ns: int
) -> None:
    inside = {(node, life): int(size) for node, life, size in claimed}
    _need(len(inside) == len(claimed) == len(trace.lives), "it does not name every life once")
    for life in trace.lives:
        size, length = inside[life.node, life.life], life.end - life.first
        _need(0 <= size <= length, f"{life.name} has no {size} rows")
        if life.node in changes:
            expected = min(max(changes[life.node][0] - life.first, 0), length)
            _need(
                size == expected, f"{life.name} is inside up to its colour change at {expected}, not {size}"
            )
    start_ns = min(ns for _, ns in changes.values()) if trace.is_one_clock else None
    _no_message(trace, changes, inside, start_ns)
    _nothing_lost(trace, changes, start_ns, ended_ns)


def _no_message(
    trace: Trace,
    changes: Mapping[str, tuple[int, int]],
    inside: Mapping[tuple[str, int], int],
    start_ns: int | None,
) -> None:
    """Every message that was received inside was sent inside."""
    sent: dict[tuple[int, int], bool] = {}
    for place, life in enumerate(trace.lives):
        for row in range(life.first, life.end):
            if trace.kind[row] == SEND:
                key = (place, int(trace.seq[row]))
                _need(key not in sent, f"{life.name} has two messages of number {key[1]}")
                sent[key] = row - life.first < inside[life.node, life.life]
    for life in trace.lives:
        for row in range(life.first, life.first + inside[life.node, life.life]):
            if trace.kind[row] != RECEIVE:
                continue
            sender, number = int(trace.peer[row]), int(trace.seq[row])
            is_inside = sent.get((sender, number))
            if is_inside is None and start_ns is not None and len(trace.time_ns):
                is_inside = int(trace.time_ns[row]) < start_ns or None
            if is_inside is None and sender >= 0:
                node = trace.lives[sender].node
                is_inside = (node in changes and changes[node][0] >= trace.lives[sender].end) or None
            _need(is_inside is not None, f"{life.name} received message {number}, whose send is not recorded")
            _need(bool(is_inside), f"{life.name} received message {number} inside, and it was sent outside")


def _nothing_lost(
    trace: Trace, changes: Mapping[str, tuple[int, int]], start_ns: int | None, ended_ns: int
) -> None:
    """Where rows are missing, they are outside; or so early that no cut had begun, or so late that it was over."""
    taken = [0] * len(trace.lives)
    for row in range(len(trace)):
        if trace.kind[row] == RECEIVE and trace.peer[row] >= 0:
            taken[trace.peer[row]] = max(taken[trace.peer[row]], int(trace.seq[row]))
    for place, life in enumerate(trace.lives):
        number, behind = 0, life.first - 1
        for row in range(life.first, life.end):
            if trace.kind[row] != SEND:
                continue
            if trace.seq[row] != number + 1:
                until = int(trace.time_ns[row]) if len(trace.time_ns) else None
                _need(
                    _is_harmless(trace, changes, life, behind, until, start_ns, ended_ns),
                    f"{life.name} has a gap",
                )
            number, behind = int(trace.seq[row]), row
        if life.torn or taken[place] > number:
            after = trace.lives[place + 1] if place + 1 < len(trace.lives) else life
            until = after.time_ns if after is not life and after.node == life.node else None
            lost_behind = life.end - 1
            _need(
                _is_harmless(trace, changes, life, lost_behind, until, start_ns, ended_ns),
                life.torn or f"{life.name} lost its last rows",
            )


def _is_harmless(
    trace: Trace,
    changes: Mapping[str, tuple[int, int]],
    life: Life,
    behind: int,
    until_ns: int | None,
    start_ns: int | None,
    ended_ns: int,
) -> bool:
    if start_ns is not None and until_ns is not None and until_ns < start_ns:
        return True
    if life.node in changes:
        return changes[life.node][0] <= behind
    is_row = behind >= life.first and len(trace.time_ns)
    since = int(trace.time_ns[behind]) if is_row else life.time_ns
    return start_ns is not None and 0 <= ended_ns < since
