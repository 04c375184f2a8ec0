"""L1 from its definition: sets of events, and everything that happened before each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from checkers.cuts.trace import LifeRows

Event = tuple[str, int, int]  # node, life, position


@dataclass(frozen=True)
class Said:
    """Of one cut: how many messages cross it the wrong way, and whether it is consistent."""

    crossing: int
    is_consistent: bool


def judged(lives: Sequence[LifeRows], cuts: Sequence[str]) -> list[Said]:
    """Each cut by itself. A node's lives are in order of time; what a node knew does not outlive its life."""
    events: dict[Event, list[object]] = {}
    of_node: dict[str, list[Event]] = {}
    for life in sorted(lives, key=lambda each: each.time_ns):
        for position, row in enumerate(life.rows):
            event = (life.node, life.life, position)
            events[event] = list(row)
            of_node.setdefault(life.node, []).append(event)
    sent = {
        (node, life, row[1]): (node, life, at) for (node, life, at), row in events.items() if row[0] == "send"
    }
    past = _pasts(events, sent)
    return [_of_cut(cut, events, of_node, sent, past) for cut in cuts]


def _pasts(
    events: dict[Event, list[object]], sent: dict[tuple[object, object, object], Event]
) -> dict[Event, set[Event]]:
    """All that happened before each event: grown until nothing is added."""
    direct: dict[Event, set[Event]] = {}
    for (node, life, at), row in events.items():
        direct[node, life, at] = {(node, life, at - 1)} if at else set()
        if row[0] == "receive":
            direct[node, life, at].add(sent[row[1], row[2], row[3]])
    past = {event: set(before) for event, before in direct.items()}
    grew = True
    while grew:
        grew = False
        for before in past.values():
            size = len(before)
            before.update(*[past[each] for each in before])
            grew = grew or len(before) > size
    return past


def _of_cut(
    cut: str,
    events: dict[Event, list[object]],
    of_node: dict[str, list[Event]],
    sent: dict[tuple[object, object, object], Event],
    past: dict[Event, set[Event]],
) -> Said:
    inside: set[Event] = set()
    outside: set[Event] = set()
    for line in of_node.values():
        changes = [
            place for place, event in enumerate(line) if events[event][:3] == ["mark", "cut", {"cut": cut}]
        ]
        if changes:
            inside |= set(line[: changes[0]])
            outside |= set(line[changes[0] :])
    crossing = sum(
        event in inside and sent[row[1], row[2], row[3]] in outside
        for event, row in events.items()
        if row[0] == "receive"
    )
    return Said(crossing, not any(past[event] & outside for event in inside))
