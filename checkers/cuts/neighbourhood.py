"""The causal neighbourhood of a witness, and the export of events for ShiViz.

An event has at most two that happened directly before it (the one before it in its life, and the send of its message),
and few directly behind it. So a walk in both directions finds the neighbourhood; no library of graphs is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy

from checkers.cuts.links import Links
from checkers.cuts.trace import Trace, described

SHIVIZ_EXPRESSION = r'(?<host>\S+) "(?<event>.*)" (?<clock>{.*})'
"""The pattern by which ShiViz reads the lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """Rows in an order in which they can have happened, and the messages between them (row of send, of receive)."""

    rows: tuple[int, ...]
    messages: tuple[tuple[int, int], ...]


def around(links: Links, witness: Sequence[int], *, steps: int = 4, most: int = 400) -> Neighbourhood:
    """The rows of a witness, those that led to its first row, and those that followed from its last one.

    `steps`: how many events or messages the walk goes back and forth. `most`: how many rows it takes each way.
    """
    rows = set(witness)
    rows |= _reached(links, [witness[0]], steps, most, _before)
    rows |= _reached(links, [witness[-1]], steps, most, _behind)
    return of_rows(links, rows)


def whole(trace: Trace) -> Neighbourhood:
    """The whole trace. Raises ValueError if an event of it happened before itself."""
    links = Links.of(trace)
    if len(links.order) < len(trace):
        raise ValueError("expected a trace whose events have an order; one of them happened before itself")
    return of_rows(links, range(len(trace)))


def shiviz(trace: Trace, shown: Neighbourhood) -> Iterator[str]:
    """A line for each event: `n1 "sends …" {"n1":3,"n2":1}`, with the vector clock of the shown events."""
    clocks: dict[str, dict[str, int]] = {}
    sent: dict[int, dict[str, int]] = {}
    source = {receive: send for send, receive in shown.messages}
    for row in shown.rows:
        host = trace.lives[trace.life_of(row)].node
        clock = clocks.setdefault(host, {})
        for other, count in sent.get(source.get(row, -1), {}).items():
            clock[other] = max(clock.get(other, 0), count)
        clock[host] = clock.get(host, 0) + 1
        sent[row] = dict(clock)
        # A line is an event, so a name of a mark must not break it.
        event = " ".join(described(trace, row).replace('"', "'").split())
        yield f'{host} "{event}" {msgspec.json.encode(clock, order="sorted").decode()}'


def of_rows(links: Links, rows: Iterable[int]) -> Neighbourhood:
    """These rows, in an order in which they can have happened."""
    chosen = set(rows)
    place = {row: int(links.rank[row]) for row in chosen}
    order = sorted((row for row in chosen if place[row] >= 0), key=place.__getitem__)
    messages = [(send, row) for row in order if (send := int(links.sender_row[row])) in chosen]
    return Neighbourhood(rows=tuple(order), messages=tuple(messages))


def _reached(links: Links, begin: Sequence[int], steps: int, most: int, following: Any) -> set[int]:
    reached, now = set(begin), list(begin)
    for _ in range(steps):
        now = [other for row in now for other in following(links, row) if other not in reached]
        now = list(dict.fromkeys(now))[: max(0, most - len(reached))]
        reached |= set(now)
    return reached


def _before(links: Links, row: int) -> Iterator[int]:
    if row > links.trace.lives[links.trace.life_of(row)].first:
        yield row - 1
    if links.sender_row[row] >= 0:
        yield int(links.sender_row[row])


def _behind(links: Links, row: int) -> Iterator[int]:
    if row + 1 < links.trace.lives[links.trace.life_of(row)].end:
        yield row + 1
    yield from numpy.flatnonzero(links.sender_row == row).tolist()
