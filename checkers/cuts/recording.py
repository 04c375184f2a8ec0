"""The cuts that a torn trace leaves open: which cuts have, or may have, rows inside that were never recorded.

- A message that was received inside of a cut and is recorded as sent nowhere: its send may be outside. (Not if the
  whole life that sent it is inside, nor if it was received before any node can have changed its colour.)
- Rows lost from a life, at its end (the file is torn, or other nodes took more messages of the life than it says it
  sent) or in a gap of its numbers: what the life received there may be inside, and the colour change may be lost, too.
  (Not if the life went on, or was over, before any node can have changed its colour. Nor if the colour change is
  recorded, or the cut was over, before the loss.)

No node can have changed its colour before the cut was asked for. Nor before the first recorded change, or before a loss
of a node of which no change is recorded. Times of different nodes are compared only where they are of one clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy

from checkers.cuts.trace import RECEIVE, SEND, Int32s, Int64s, Trace

ALWAYS, NEVER = -(2**62), 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Rows of a node are missing behind row `behind`, and were written between two times."""

    node: int
    behind: int
    from_ns: int
    until_ns: int
    why: str


def unknown(
    trace: Trace,
    sender_row: Int32s,
    first: Int64s,
    frontiers: Int64s,
    asked_ns: Sequence[int],
    ended_ns: Sequence[int],
) -> list[str]:
    """By cut why its messages cannot be judged; "" where they can.

    `first`: by cut and node the row of the colour change, -1 if there is none. `frontiers`: by cut and life the number
    of rows inside. `asked_ns`, `ended_ns`: by cut, -1 if unknown.
    """
    orphans = numpy.flatnonzero((trace.kind == RECEIVE) & (sender_row < 0))
    losses = list(_losses(trace, orphans))
    if not losses and not len(orphans):
        return [""] * len(first)
    starts = _starts(trace, first, losses, asked_ns)
    ends = [ended if ended >= 0 else NEVER for ended in ended_ns]
    groups = list(_groups(trace, orphans))
    return [
        _of_senders(trace, groups, first[cut], frontiers[cut], starts[cut])
        or _of_losses(trace, losses, first[cut], starts[cut], ends[cut])
        for cut in range(len(first))
    ]


def _starts(trace: Trace, first: Int64s, losses: Sequence[Loss], asked_ns: Sequence[int]) -> list[int]:
    """By cut a time before which no node changed its colour; before all times where clocks do not say."""
    if not trace.is_one_clock:
        return [ALWAYS] * len(first)
    when = dict(zip(trace.mark_row.tolist(), trace.mark_ns.tolist(), strict=True))
    starts = []
    for rows, asked in zip(first.tolist(), asked_ns, strict=True):
        changes = [when[row] for row in rows if row >= 0]
        changes += [loss.from_ns for loss in losses if rows[loss.node] < 0]
        starts.append(max(asked, min(changes, default=ALWAYS)))
    return starts


def _losses(trace: Trace, orphans: Int64s) -> Iterator[Loss]:
    nodes = list(trace.nodes)
    last_taken: dict[int, int] = {}
    for row in orphans.tolist():
        sender = int(trace.peer[row])
        last_taken[sender] = max(last_taken.get(sender, 0), int(trace.seq[row]))
    for place, life in enumerate(trace.lives):
        following = trace.lives[place + 1] if place + 1 < len(trace.lives) else None
        sends = life.first + numpy.flatnonzero(trace.kind[life.first : life.end] == SEND)
        numbers = trace.seq[sends]
        sent = int(numbers[-1]) if len(numbers) else 0
        why = life.torn
        if not why and last_taken.get(place, 0) > sent:
            why = f"{life.name} says it sent {sent} messages, and message {last_taken[place]} was received"
        if why:
            is_back = following is not None and following.node == life.node
            until_ns = following.time_ns if following is not None and is_back else NEVER
            yield Loss(
                node=nodes.index(life.node),
                behind=life.end - 1,
                from_ns=_time(trace, life.end - 1, life.time_ns) if life.end > life.first else life.time_ns,
                until_ns=min(until_ns, life.over_ns) if life.over_ns >= 0 else until_ns,
                why=why,
            )
        for gap in numpy.flatnonzero(numpy.diff(numbers, prepend=0) > 1).tolist():
            behind = int(sends[gap - 1]) if gap else life.first - 1
            yield Loss(
                node=nodes.index(life.node),
                behind=behind,
                from_ns=_time(trace, behind, life.time_ns) if gap else life.time_ns,
                until_ns=_time(trace, int(sends[gap]), NEVER),
                why=f"{life.name} has no row of message {int(numbers[gap]) - 1}",
            )


def _time(trace: Trace, row: int, otherwise: int) -> int:
    return int(trace.time_ns[row]) if len(trace.time_ns) else otherwise


def _groups(trace: Trace, orphans: Int64s) -> Iterator[tuple[int, int, Int64s]]:
    """Receives without a recorded send, by the life that took them and the one that sent them; rows ascend."""
    if not len(orphans):
        return
    firsts = numpy.array([life.first for life in trace.lives], numpy.int64)
    takers = numpy.searchsorted(firsts, orphans, side="right") - 1
    senders = trace.peer[orphans]
    for taker, sender in sorted(set(zip(takers.tolist(), senders.tolist(), strict=True))):
        yield taker, sender, orphans[(takers == taker) & (senders == sender)]


def _of_senders(
    trace: Trace,
    groups: Sequence[tuple[int, int, Int64s]],
    changes: Int64s,
    frontier: Int64s,
    start_ns: int,
) -> str:
    nodes = trace.nodes
    for taker, sender, rows in groups:
        inside = int(numpy.searchsorted(rows, trace.lives[taker].first + frontier[taker]))
        if not inside:
            continue
        life = trace.lives[sender] if sender >= 0 else None
        if life is not None and changes[nodes.index(life.node)] >= life.end:
            continue
        last = int(rows[inside - 1])
        if _time(trace, last, NEVER) < start_ns:
            continue
        absent = (f"{node} (life {number})" for at, node, number in trace.absent if at == last)
        name = life.name if life is not None else next(absent, "an unknown life")
        return f"{trace.lives[taker].name} received message {trace.seq[last]} of {name}, whose send is not recorded"
    return ""


def _of_losses(trace: Trace, losses: Sequence[Loss], changes: Int64s, start_ns: int, ended_ns: int) -> str:
    for loss in losses:
        change = int(changes[loss.node])
        was_before = loss.until_ns < start_ns  # ALWAYS, where clocks do not say
        was_after = trace.is_one_clock and loss.from_ns > ended_ns if change < 0 else change <= loss.behind
        if not was_before and not was_after:
            return loss.why
    return ""
