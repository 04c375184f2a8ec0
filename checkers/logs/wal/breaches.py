"""A breach of a rule of logs: the rows that break it, and the sentences that a witness makes of their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import starmap
from typing import Any

import numpy

from checkers.history.values import value_words
from checkers.logs.wal.nodes import FATES, Logs, Node
from checkers.logs.wal.record import Id, Record
from checkers.verdict import WITNESSES_MAX, Witness

Array = Any  # numpy's


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one log: its number among the logs, and ascending places in it."""

    log: int
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Breach:
    """`parts` are the rows that prove it. `words` makes the witness from the records of each part."""

    parts: tuple[Part, ...]
    words: Callable[..., Witness]


@dataclass(frozen=True, slots=True)
class Breaches:
    """How often a rule is broken, and the first times, at most WITNESSES_MAX."""

    count: int = 0
    first: Sequence[Breach] = ()

    @classmethod
    def of(cls, found: Sequence[tuple[int, ...]], breach: Callable[..., Breach]) -> Breaches:
        """Of what was found; `breach` makes it of the numbers of each, but only the first WITNESSES_MAX times."""
        return cls(len(found), tuple(starmap(breach, found[:WITNESSES_MAX])))


def about_few_rows(rule: Callable[[Logs], Iterable[Breach]]) -> Callable[[Logs], Breaches]:
    """The decorator of a rule that makes all its breaches."""

    @wraps(rule)
    def judged(logs: Logs) -> Breaches:
        every = tuple(rule(logs))
        return Breaches(len(every), every[:WITNESSES_MAX])

    return judged


def witnesses_of(logs: Logs, breaches: Iterable[Breach]) -> Iterator[Witness]:
    """The witnesses. Only the records that they name are made, at once for each log, because a file is read again for
    them."""
    known = list(breaches)
    wanted: dict[int, set[int]] = {}
    for part in (part for breach in known for part in breach.parts):
        wanted.setdefault(part.log, set()).update(part.places)
    records = {
        number: dict(zip(sorted(places), logs.nodes[number].some(sorted(places)), strict=True))
        for number, places in wanted.items()
    }
    for breach in known:
        yield breach.words(*([records[part.log][place] for place in part.places] for part in breach.parts))


def story_of(logs: Logs, number: int, transaction: int) -> Part:
    """All that a log says about a transaction: its rows, and the row that decided about it."""
    node = logs.nodes[number]
    places = rows_of(node, transaction)
    decision = int(node.decided[transaction])
    if decision >= 0:
        places = sorted({*places, decision})
    return Part(number, tuple(places))


def rows_of(node: Node, transaction: int) -> list[int]:
    """The places of the rows of a transaction in a log; if it stands there twice, of the last time.

    A log has the rows of a transaction one behind the other, and the last one ends it. So the rows of the last time
    begin behind a gap, or behind a row that ends the transaction.
    """
    places = numpy.flatnonzero(node.is_of(transaction)).tolist()
    first = len(places) - 1
    while first > 0 and places[first - 1] == places[first] - 1 and not node.ends(places[first - 1]):
        first -= 1
    return places[first:]


def story(node: Node, transaction: int, records: Sequence[Record]) -> str:
    """`story_of` as a sentence. `records`: those of its rows."""
    rows, decisions = parted(records)
    by = f", by {text(decisions[0])}" if decisions else ""
    return f"{node.log.node}: {'; '.join(map(text, rows))} is {FATES[node.fates[transaction]]}{by}"


def parted(records: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """The rows of a transaction, and the decisions about it."""
    rows = [row for row in records if row.kind in ("write", "nop")]
    return rows, [row for row in records if row.kind not in ("write", "nop")]


def text(row: Record) -> str:
    """A record for a person: `CONFIRM of replica 1's entries up to lsn 7 [1:9, n2/0.xlog]`."""
    words = {
        "confirm": f"CONFIRM of replica {row.owner}'s entries up to lsn {row.until}",
        "rollback": f"ROLLBACK of replica {row.owner}'s entries from lsn {row.until} on",
        "promote": f"PROMOTE of replica {row.origin} over {row.owner} at lsn {row.until} in term {row.term}",
        "demote": f"DEMOTE of replica {row.origin} in term {row.term}",
        "vote": f"vote for replica {row.vote} in term {row.term}",
    }.get(row.kind, f"{row.kind} {value_words(row.tuple or None)}")
    return f"{words} [{row.origin}:{row.lsn}, {row.place}]"


def name_of(transaction: Id) -> str:
    return f"transaction {transaction[0]}:{transaction[1]}"


def witness(
    rule: str,
    summary: str,
    node: str,
    *explanation: str,
    rows: Iterable[Record] = (),
    at: Iterable[tuple[int, int]] = (),
    how: str = "",
) -> Witness:
    """`rows` prove it, and so do the rows `at` (origin, lsn)."""
    return Witness(
        rule=rule,
        summary=summary,
        events=(),
        node=node,
        explanation=explanation,
        records=(*((row.origin, row.lsn) for row in rows), *at),
        how=how,
    )


def one_of_each_first(witnesses: Sequence[Witness]) -> list[Witness]:
    """The first witness of each rule, then the second ones, …: many of one rule must not hide one of another."""
    seen: Counter[str] = Counter()
    ranked = []
    for place, witness in enumerate(witnesses):
        ranked.append((seen[witness.rule], place, witness))
        seen[witness.rule] += 1
    return [witness for _, _, witness in sorted(ranked, key=lambda entry: entry[:2])]
