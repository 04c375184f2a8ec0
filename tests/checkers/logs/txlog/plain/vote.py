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

from collections.abc import Iterator, Mapping, Sequence

from checkers.logs.txlog.report import Breach, Report
from tests.checkers.logs.txlog.plain.given import Given
from tests.checkers.logs.txlog.plain.records import Recovered, Recovering, Ref

Queues = Mapping[str, Sequence[Ref]]


def judge(given: Given) -> Report:
    found = Report()
    walks = given.walks()
    found.count("vote", masters=len(walks))
    going = dict(walks)
    while going:
        frozen: dict[str, list[Ref]] = {}
        for master, walk in going.items():
            while not walk.ends_epoch():
                if isinstance(walk.step(), Recovering):
                    frozen[master] = list(walk.replay.synced)
        first: tuple[str, Recovered] | None = None
        winner = ""
        counts: dict[str, int] = {}
        is_whole = len(frozen) == len(given.masters)
        if is_whole:
            counts = votes(frozen)
            winner = min(counts, key=lambda each: (-counts[each], -len(frozen[each]), each))
        for master, walk in going.items():
            if walk.next is None:
                continue
            event = walk.step()
            assert isinstance(event, Recovered)
            found.count("vote", recoveries=1, digests=len(frozen))
            found.breaches += _recovered(given, master, event, frozen)
            if is_whole:
                found.breaches += _outcome(master, event, winner, counts)
                kept = _kept(walk.replay.strategy, frozen, winner)
                if walk.replay.synced != kept:
                    found.breaches.append(
                        _breach(
                            "wrong-branch",
                            [(master, event.place)],
                            f"{master} has {len(walk.replay.synced)} entries behind the recovery, expected the "
                            f"{len(kept)} of {winner}",
                        )
                    )
            if first is not None and first[1].winner != event.winner:
                found.breaches.append(
                    _breach(
                        "two-winners",
                        [(first[0], first[1].place), (master, event.place)],
                        f"{first[0]} elects {first[1].winner}, and {master} elects {event.winner}",
                    )
                )
            first = first or (master, event)
        going = {master: walk for master, walk in going.items() if walk.next is not None}
    found.proofs["vote"] = {"rule": "all votes", **found.compared["vote"]}
    return found


def votes(queues: Queues) -> dict[str, int]:
    """Master → how many masters support its branch."""
    return {
        master: sum([*branch[: len(other)]] == [*other] for other in queues.values())
        for master, branch in sorted(queues.items())
    }


def _kept(strategy: str, frozen: Queues, winner: str) -> list[Ref]:
    branch = frozen[winner]
    if strategy == "smart":
        return [*branch]
    common = min(len(queue) for queue in frozen.values())
    for queue in frozen.values():
        if queue[:common] != branch[:common]:
            common = next(at for at in range(common) if queue[at] != branch[at])
    return [*branch[:common]]


def _breach(rule: str, records: Sequence[tuple[str, int]], summary: str) -> Breach:
    return Breach(rule=rule, summary=summary, records=records)


def _recovered(given: Given, master: str, event: Recovered, frozen: Queues) -> Iterator[Breach]:
    without = [
        each
        for each in given.masters
        if each not in frozen and each in given.logs and not given.logs[each].damage
    ]
    if without:
        yield _breach(
            "voted-without-digest",
            [(master, event.place)],
            f"{master} finishes the recovery before {', '.join(without)} froze its queues",
        )
    if set(event.votes) != {*given.masters}:
        told = ", ".join(sorted(event.votes))
        yield _breach("partial-vote", [(master, event.place)], f"{master} counts the votes of {told} alone")


def _outcome(master: str, event: Recovered, winner: str, counts: Mapping[str, int]) -> Iterator[Breach]:
    if event.winner != winner or dict(event.votes) != counts:
        yield _breach(
            "wrong-winner",
            [(master, event.place)],
            f"{master} elects {event.winner} by {_told(event.votes)}; the queues come to {winner} by {_told(counts)}",
        )


def _told(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{master} {count}" for master, count in sorted(counts.items()))
