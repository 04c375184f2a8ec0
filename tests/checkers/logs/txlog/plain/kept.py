"""Whether rounds add what there is, and nothing is lost: I4 and I5.

| rule | a run breaks it if |
|---|---|
| unrecorded | a client got an answer about a transaction that no origin has made |
| lost | all is quiet, and a transaction that a master accepted is not in every synchronised queue |
| dropped-at-recovery | a master finishes a recovery without what a master brought to it, or its own |
| never-made | a round adds a transaction that its origin has not made, or with another timestamp |
| not-acquired | a round adds a transaction, and the master has not its updates |
| poster-elsewhere | a round counts a poster that never had the base of the round in this epoch |
| poster-lacked | a round adds a transaction, and a poster had not its updates as long as it posted for that base |

With the strategy `none`, a part of a split cluster keeps what it accepted to itself: that is documented.
What a log has is what a master sent: a POST leaves behind the records on which it rests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from checkers.logs.txlog.report import Breach, Report
from tests.checkers.logs.txlog.plain.given import Given
from tests.checkers.logs.txlog.plain.order import UNREPAIRED
from tests.checkers.logs.txlog.plain.records import (
    Acquired,
    Added,
    CaughtUp,
    Log,
    Made,
    Recovered,
    Recovering,
    Ref,
)
from tests.checkers.logs.txlog.plain.replay import NEVER, Base, Replay


def judge(given: Given) -> Report:
    found = Report()
    final = _recoveries(given, found)
    found.breaches += _lost(given, final)
    found.breaches += _unrecorded(given)
    found.count("kept", transactions=len(given.made), masters=len(final))
    if not given.made:
        found.nothing["kept"] = "no transaction was accepted"
    elif given.history.settled is not True:
        found.lacks["kept"] = (
            "the masters were not seen to be quiet and equal in the end: much may still wait"
        )
    found.proofs["kept"] = {"rule": "all kept", "transactions": len(given.made)}
    _rounds(given, found)
    return found


# ---- kept


def _recoveries(given: Given, found: Report) -> Mapping[str, Replay]:
    """All masters, from one recovery to the next; returns the ends."""
    walks = given.walks()
    going = dict(walks)
    while going:
        brought: dict[str, str] = {}
        for master, walk in going.items():
            while not walk.ends_epoch():
                if isinstance(walk.step(), Recovering):
                    replay = walk.replay
                    brought |= dict.fromkeys((*replay.place, *replay.queue), master)
        for master, walk in going.items():
            if walk.next is None:
                continue
            before = (*walk.replay.place, *walk.replay.queue)
            own = [name for name in before if name in given.made and given.made[name].ref.origin == master]
            event = walk.step()
            by = brought | {name: master for name in own if name not in brought}
            gone = [name for name in by if name not in walk.replay.place and name not in walk.replay.queue]
            found.count("kept", recoveries=1)
            for name in gone:
                words = f"which {brought[name]} brought to it" if name in brought else "which it had made"
                found.breaches.append(
                    Breach(
                        rule="dropped-at-recovery",
                        summary=f"{master} finishes a recovery without {name}, {words}",
                        records=[(master, event.place)],
                        facts={"id": name, "by": by[name]},
                    )
                )
        going = {master: walk for master, walk in going.items() if walk.next is not None}
    return {master: walk.replay for master, walk in walks.items()}


def _lost(given: Given, final: Mapping[str, Replay]) -> Iterator[Breach]:
    if given.history.settled is not True:
        return
    for name, made in given.made.items():
        lacking = [
            master
            for master, replay in final.items()
            if name not in replay.place and not given.logs[master].damage
        ]
        if lacking:
            yield Breach(
                rule="lost",
                summary=f"{made.ref.origin} accepted {name}, and in the end {', '.join(lacking)} has not got it",
                records=[(made.ref.origin, made.place)],
                events=given.operations[name].events if name in given.operations else (),
                facts={"id": name, "lacking": lacking},
                price=UNREPAIRED if given.strategy == "none" and given.has_split else "",
            )


def _unrecorded(given: Given) -> Iterator[Breach]:
    if given.missing:
        return
    for name, operation in given.operations.items():
        if name not in given.made:
            yield Breach(
                rule="unrecorded",
                summary=f"a client got an answer about {name}, and no log has it",
                events=operation.events,
                facts={"id": name},
            )


# ---- acquired


def _rounds(given: Given, found: Report) -> None:
    has = {master: _updates(log) for master, log in given.logs.items()}
    stamps = _stamps(given)
    for master, log in given.logs.items():
        epoch = 0
        for event in log.events:
            match event:
                case Recovered():
                    epoch = event.epoch
                case CaughtUp(refs=refs):
                    found.breaches += _never_made(given, stamps, master, event, refs)
                case Added(refs=refs):
                    found.count("acquired", rounds=1, entries=len(refs), posters=len(event.posters))
                    found.breaches += _never_made(given, stamps, master, event, refs)
                    found.breaches += _unacquired(has, master, event)
                    for poster in event.posters:
                        if poster in given.logs and not given.logs[poster].damage:
                            base = given.bases[poster].get((epoch, event.index))
                            found.breaches += _of_poster(has, master, event, poster, base)
    if not found.compared.get("acquired"):
        found.nothing["acquired"] = "no round added anything"
    found.proofs["acquired"] = {"rule": "all acquired", **found.compared.get("acquired", {})}


def _updates(log: Log) -> Mapping[str, int]:
    """Id → the record that brought the updates."""
    has: dict[str, int] = {}
    for event in log.events:
        if isinstance(event, Acquired):
            for name in event.ids:
                has.setdefault(name, event.place)
        elif isinstance(event, Made):
            has.setdefault(event.ref.id, event.place)
    return has


def _stamps(given: Given) -> Mapping[str, set[int]]:
    """Id → its timestamps: that of its origin, and those of recoveries."""
    stamps = {name: {made.ref.ts} for name, made in given.made.items()}
    for log in given.logs.values():
        for event in log.events:
            if isinstance(event, Recovered):
                for ref in event.queue:
                    stamps.setdefault(ref.id, set()).add(ref.ts)
    return stamps


def _never_made(
    given: Given, stamps: Mapping[str, set[int]], master: str, event: Added | CaughtUp, refs: Iterable[Ref]
) -> Iterator[Breach]:
    for ref in refs:
        is_known = ref.id in given.made and ref.ts in stamps[ref.id]
        if is_known or ref.origin not in given.logs or given.logs[ref.origin].damage:
            continue
        yield Breach(
            rule="never-made",
            summary=f"{master} synchronised {ref.id} (ts {ref.ts}), and {ref.origin} never made it",
            records=[(master, event.place)],
            facts={"id": ref.id},
        )


def _unacquired(has: Mapping[str, Mapping[str, int]], master: str, event: Added) -> Iterator[Breach]:
    for ref in event.refs:
        if has[master].get(ref.id, NEVER) > event.place:
            yield Breach(
                rule="not-acquired",
                summary=f"{master} added {ref.id} without its updates",
                records=[(master, event.place)],
                facts={"id": ref.id},
            )


def _of_poster(
    has: Mapping[str, Mapping[str, int]], master: str, event: Added, poster: str, base: Base | None
) -> Iterator[Breach]:
    if base is None:
        yield Breach(
            rule="poster-elsewhere",
            summary=f"{master} counts {poster} in a round behind entry {event.index}, where {poster} never was",
            records=[(master, event.place)],
            facts={"poster": poster},
        )
        return
    for ref in event.refs:
        since = has[poster].get(ref.id, NEVER)
        if since > base.ends or since == NEVER:
            yield Breach(
                rule="poster-lacked",
                summary=f"{master} added {ref.id} with a POST of {poster}, which had not its updates then",
                records=[(master, event.place)],
                facts={"id": ref.id, "poster": poster},
            )
