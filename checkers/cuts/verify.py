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

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from checkers.cuts.trace import RECEIVE, SEND, Life, Trace
from checkers.verdict import RefusedError, need


def check(
    trace: Trace,
    cut: str,
    result: str,
    proof: Mapping[str, Any],
    *,
    asked_ns: int = -1,
    ended_ns: int = -1,
    sideless: Collection[str] = (),
) -> None:
    """Raise RefusedError unless the proof shows the result ("valid" or "invalid") for the cut.

    `asked_ns`, `ended_ns`: when the cut was asked for and over, -1 if unknown. `sideless`: nodes that claim no side.
    """
    try:
        changes = {node: row for node, row in _changes(trace, cut).items() if node not in sideless}
        need(bool(changes), "no node changed its colour")
        match result, proof["kind"]:
            case "valid", "frontier":
                _frontier(trace, changes, proof["inside"], asked_ns, ended_ns)
            case "invalid", "message":
                _message(trace, changes, proof["path"])
            case _:
                raise RefusedError(f"a proof of kind {proof['kind']!r} does not show {result}")
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise RefusedError(f"the proof cannot be read: {error}") from error


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
    return changes


def _message(trace: Trace, changes: Mapping[str, tuple[int, int]], path: list[Mapping[str, Any]]) -> None:
    rows = [trace.row_of(place) for place in path]
    need(len(rows) >= 2 and len(rows) % 2 == 0, "a path is of sends and receives in turn")
    first, last = path[0]["node"], path[-1]["node"]
    need(first in changes and rows[0] > changes[first][0], "its first send is not outside")
    need(last in changes and rows[-1] < changes[last][0], "its last receive is not inside")
    for place in range(0, len(rows), 2):
        send, receive = rows[place], rows[place + 1]
        need(trace.kind[send] == SEND and trace.kind[receive] == RECEIVE, "a row is of another kind")
        sender = trace.lives[trace.peer[receive]] if trace.peer[receive] >= 0 else None
        is_theirs = sender is not None and (sender.node, sender.life) == (
            path[place]["node"],
            path[place]["life"],
        )
        need(is_theirs and trace.seq[send] == trace.seq[receive], "a receive is of another message")
        if place:
            here, before = path[place], path[place - 1]
            same = (here["node"], here["life"]) == (before["node"], before["life"])
            need(same and before["position"] < here["position"], "it leaves out how a node came to know")


def _frontier(
    trace: Trace,
    changes: Mapping[str, tuple[int, int]],
    claimed: list[list[Any]],
    asked_ns: int,
    ended_ns: int,
) -> None:
    inside = {(node, life): size for node, life, size in claimed}
    need(all(type(size) is int for size in inside.values()), "how many rows are inside is no whole number")
    need(len(inside) == len(claimed) == len(trace.lives), "it does not name every life once")
    for life in trace.lives:
        size, length = inside[life.node, life.life], life.end - life.first
        need(0 <= size <= length, f"{life.name} has no {size} rows")
        if life.node in changes:
            expected = min(max(changes[life.node][0] - life.first, 0), length)
            need(size == expected, f"{life.name} is inside up to its colour change at {expected}, not {size}")
    losses = list(_losses(trace))
    start_ns = None
    if trace.is_one_clock:
        times = [ns for _, ns in changes.values()]
        times += [since for life, _, since, _ in losses if life.node not in changes]
        start_ns = max(min(times), asked_ns)
    _no_message(trace, changes, inside, start_ns)
    for life, behind, since, until in losses:
        was_before = start_ns is not None and until is not None and until < start_ns
        was_after = start_ns is not None and 0 <= ended_ns < since
        is_out = changes[life.node][0] <= behind if life.node in changes else was_after
        need(was_before or is_out, life.torn or f"{life.name} has lost rows")


def _no_message(
    trace: Trace,
    changes: Mapping[str, tuple[int, int]],
    inside: Mapping[tuple[str, int], int],
    start_ns: int | None,
) -> None:
    """Every message that was received inside was sent inside.

    The row of a send may have been lost. Such a send was inside all the same in two cases: the message was received
    before the cut can have begun, or its sender's life was over when the sender's node changed its colour.
    """
    sent: dict[tuple[int, int], bool] = {}
    for place, life in enumerate(trace.lives):
        for row in range(life.first, life.end):
            if trace.kind[row] == SEND:
                key = (place, int(trace.seq[row]))
                need(key not in sent, f"{life.name} has two messages of number {key[1]}")
                sent[key] = row - life.first < inside[life.node, life.life]
    for life in trace.lives:
        for row in range(life.first, life.first + inside[life.node, life.life]):
            if trace.kind[row] != RECEIVE:
                continue
            sender, number = int(trace.peer[row]), int(trace.seq[row])
            message = f"{life.name} received message {number}"
            if (sender, number) in sent:
                need(sent[sender, number], f"{message} inside, and it was sent outside")
                continue
            is_early = start_ns is not None and len(trace.time_ns) > 0 and int(trace.time_ns[row]) < start_ns
            its_life = trace.lives[sender] if sender >= 0 else None
            was_over = (
                its_life is not None
                and its_life.node in changes
                and its_life.end <= changes[its_life.node][0]
            )
            need(is_early or was_over, f"{message}, whose send is not recorded")


def _losses(trace: Trace) -> Iterator[tuple[Life, int, int, int | None]]:
    """Where rows of a life are missing: behind which row, and since and until when they were written."""
    taken = [0] * len(trace.lives)
    for row in range(len(trace)):
        if trace.kind[row] == RECEIVE and trace.peer[row] >= 0:
            taken[trace.peer[row]] = max(taken[trace.peer[row]], int(trace.seq[row]))
    for place, life in enumerate(trace.lives):
        number, behind, since = 0, life.first - 1, life.time_ns
        for row in range(life.first, life.end):
            if trace.kind[row] == SEND:
                now = int(trace.time_ns[row]) if len(trace.time_ns) else None
                if trace.seq[row] != number + 1:
                    yield life, behind, since, now
                number, behind, since = int(trace.seq[row]), row, since if now is None else now
        if life.torn or taken[place] > number:
            after = [later for later in trace.lives[place + 1 :] if later.node == life.node]
            ends = [later.time_ns for later in after] + [life.over_ns] * (life.over_ns >= 0)
            has_times = len(trace.time_ns) and life.end > life.first
            last = int(trace.time_ns[life.end - 1]) if has_times else life.time_ns
            yield life, life.end - 1, last, min(ends, default=None)
