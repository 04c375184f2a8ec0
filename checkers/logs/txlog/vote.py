"""Whether recoveries come to what their rule says, recomputed from the queues that all masters froze.

A master supports each branch of which its synchronised queue is a prefix. The branch with the most supporters wins, of
several the longest one, of equals that of the smallest master id. With `simple` all keep what all have in common. With
`smart` all keep the winning branch.

| rule | a run breaks it if |
|---|---|
| voted-without-digest | a master finishes a recovery for which another one has not frozen its queues |
| partial-vote | its votes are not of all masters |
| wrong-winner | its winner, or a number of votes, is not what the frozen queues come to |
| two-winners | two masters finish one recovery with different winners |
| wrong-branch | the synchronised queue behind a recovery is not what the strategy keeps |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy

from checkers.logs.txlog import kernels
from checkers.logs.txlog.given import Given
from checkers.logs.txlog.queues import Queues
from checkers.logs.txlog.records import Recovered
from checkers.logs.txlog.report import Breach, Report

Array = Any  # numpy's
Frozen = Mapping[str, Array]
"""By master a synchronised queue."""


def judge(given: Given) -> Report:
    report = Report()
    report.count("vote", masters=len(given.by_master))
    going: dict[str, Queues] = {}
    if any(log.recoveries for log in given.by_master.values()):
        going = {master: Queues(given.columns, log) for master, log in given.by_master.items()}
    number = 0
    while going:
        frozen: dict[str, Array] = {}
        for master, queues in going.items():
            end = queues.next_of(kernels.RECOVERED)
            while (row := queues.next_of(kernels.RECOVERING)) < end:
                queues.go_on(row + 1)
                frozen[master] = queues.synced.copy()
            queues.go_on(end)
        going = {master: queues for master, queues in going.items() if queues.next < queues.end}
        over = {master: given.by_master[master].recoveries[number] for master in going}
        for queues in going.values():
            queues.go_on(queues.next + 1)
        if going:
            report.count("vote", recoveries=len(going), digests=len(frozen) * len(going))
        report.breaches += _recovery(given, frozen, over, {name: walk.synced for name, walk in going.items()})
        going = {master: queues for master, queues in going.items() if queues.next < queues.end}
        number += 1
    report.proofs["vote"] = {"rule": "all votes", **report.compared["vote"]}
    return report


def _recovery(
    given: Given, frozen: Frozen, over: Mapping[str, Recovered], synced: Frozen
) -> Iterator[Breach]:
    """One recovery. `synced`: the queues behind it."""
    winner = ""
    counts: dict[str, int] = {}
    kept: dict[str, Array] = {}
    is_whole = len(frozen) == len(given.masters)
    if is_whole and over:
        counts = votes(frozen)
        winner = min(counts, key=lambda master: (-counts[master], -len(frozen[master]), master))
    first: tuple[str, Recovered] | None = None
    for master, event in over.items():
        yield from _recovered(given, master, event, frozen)
        if is_whole:
            yield from _outcome(master, event, winner, counts)
            strategy = given.by_master[master].strategy_before(event.place)
            if strategy not in kept:
                kept[strategy] = _kept(strategy, frozen, winner)
            if not numpy.array_equal(synced[master], kept[strategy]):
                yield _breach(
                    "wrong-branch",
                    [(master, event.place)],
                    f"{master} has {len(synced[master])} entries behind the recovery, expected the "
                    f"{len(kept[strategy])} of {winner}",
                )
        if first is not None and first[1].winner != event.winner:
            yield _breach(
                "two-winners",
                [(first[0], first[1].place), (master, event.place)],
                f"{first[0]} elects {first[1].winner}, and {master} elects {event.winner}",
            )
        first = first or (master, event)


def votes(queues: Frozen) -> dict[str, int]:
    """Master → how many masters support its branch."""
    return {
        master: sum(numpy.array_equal(branch[: len(other)], other) for other in queues.values())
        for master, branch in sorted(queues.items())
    }


def _kept(strategy: str, frozen: Frozen, winner: str) -> Array:
    branch = frozen[winner]
    if strategy == "smart":
        return branch
    common = min(len(queue) for queue in frozen.values())
    for queue in frozen.values():
        differs = numpy.flatnonzero(queue[:common] != branch[:common])
        common = int(differs[0]) if len(differs) else common
    return branch[:common]


def _breach(rule: str, records: list[tuple[str, int]], summary: str) -> Breach:
    return Breach(rule=rule, summary=summary, records=records)


def _recovered(given: Given, master: str, event: Recovered, frozen: Frozen) -> Iterator[Breach]:
    without = [
        peer
        for peer in given.masters
        if peer not in frozen and peer in given.columns.logs and not given.columns.logs[peer].damage
    ]
    if without:
        yield _breach(
            "voted-without-digest",
            [(master, event.place)],
            f"{master} finishes the recovery before {', '.join(without)} froze its queues",
        )
    if set(event.votes) != {*given.masters}:
        voters = ", ".join(sorted(event.votes))
        yield _breach("partial-vote", [(master, event.place)], f"{master} counts the votes of {voters} alone")


def _outcome(master: str, event: Recovered, winner: str, counts: Mapping[str, int]) -> Iterator[Breach]:
    if event.winner != winner or dict(event.votes) != counts:
        yield _breach(
            "wrong-winner",
            [(master, event.place)],
            f"{master} elects {event.winner} by {_words(event.votes)}; the queues come to {winner} by {_words(counts)}",
        )


def _words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{master} {count}" for master, count in sorted(counts.items()))
