"""Whether counters and timestamps keep the order safe: I9, and the bound of every round.

| rule | a run breaks it if |
|---|---|
| counter-fell | a counter is below an earlier one of the same master, its lives all together |
| counter-not-raised | a master has a counter below one that it has heard, or below a timestamp of its queues |
| stamped-too-low | a transaction has a timestamp that is not above the counter before it, which may have been posted |
| stamped-too-high | its timestamp is above the counter behind it |
| bound-too-high | the bound of a round is above a counter that counts (see below) |
| above-the-bound | a round adds a transaction above its bound |
| master-not-counted | a round counts a master neither as a poster nor as absent, and it is not left out |

The own counter counts, the last known one of an absent master, and that of a poster as long as it had the base of the
round. The records of the master itself do not have the counter of a POST with a base that came to be its own later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from checkers.logs.txlog.report import Breach, Report
from tests.checkers.logs.txlog.plain.given import Given
from tests.checkers.logs.txlog.plain.records import Added, Event, Heard, Joined, Made, Recovered, Ref
from tests.checkers.logs.txlog.plain.replay import Replay


def judge(given: Given) -> Report:
    found = Report()
    for master, log in given.logs.items():
        replay = Replay(master)
        for event in log.events:
            match event:
                case Made():
                    found.count("counters", timestamps=1)
                    found.breaches += _made(replay, event)
                case Heard(counter=counter, last=last):
                    found.count("counters", posts=1)
                    found.breaches += _raised(
                        replay, event, counter, last or 0, f"has heard the counter {last}"
                    )
                case Recovered(counter=counter, refs=refs, queue=queue):
                    highest = _highest((*refs, *queue))
                    found.breaches += _raised(
                        replay, event, counter, highest, f"has a transaction of {highest}"
                    )
                case Added():
                    found.count("counters", rounds=1)
                    found.breaches += _round(given, replay, event)
            replay.apply(event)
    if not found.compared:
        found.nothing["counters"] = "no counter was used"
    found.proofs["counters"] = {"rule": "all rise", **found.compared.get("counters", {})}
    return found


def _breach(replay: Replay, rule: str, event: Event, says: str) -> Breach:
    return Breach(rule=rule, summary=f"{replay.master} {says}", records=[(replay.master, event.place)])


def _made(replay: Replay, event: Made) -> Iterator[Breach]:
    before, ts, name = replay.counter, event.ref.ts, event.ref.id
    if event.counter <= before:
        yield _breach(
            replay,
            "counter-fell",
            event,
            f"makes transaction {name} at the counter {event.counter}, and its counter had been {before}",
        )
    if ts <= before:
        yield _breach(
            replay,
            "stamped-too-low",
            event,
            f"makes transaction {name} with the timestamp {ts}, when its counter is {before}",
        )
    if ts > event.counter:
        yield _breach(
            replay,
            "stamped-too-high",
            event,
            f"makes {name} with timestamp {ts}, and goes on from {event.counter}",
        )


def _raised(replay: Replay, event: Event, counter: int, least: int, says: str) -> Iterator[Breach]:
    if counter < replay.counter:
        yield _breach(
            replay, "counter-fell", event, f"has the counter {counter}, and had {replay.counter} before"
        )
    if counter < least:
        yield _breach(
            replay, "counter-not-raised", event, f"{says}, and does not raise its own counter of {counter}"
        )


def _round(given: Given, replay: Replay, event: Added) -> Iterator[Breach]:
    counted = {replay.master: replay.counter}
    counted |= {each: replay.last.get(each, 0) for each in event.absent}
    for poster in event.posters:
        base = given.bases.get(poster, {}).get((replay.epoch, event.index))
        counted[poster] = replay.counter if base is None else base.counter
    least = min(counted, key=lambda master: (counted[master], master))
    if event.bound > counted[least]:
        yield _breach(
            replay,
            "bound-too-high",
            event,
            f"adds transactions up to {event.bound} in a round, and the counter of {least} is {counted[least]}",
        )
    highest = _highest(event.refs)
    if highest > event.bound:
        yield _breach(replay, "above-the-bound", event, f"adds a timestamp of {highest}, above {event.bound}")
    events = given.logs[replay.master].events[: event.place]
    joined = {each.master for each in events if isinstance(each, Joined)}
    known = {*given.masters} - {*given.late} | {replay.master, *joined}
    forgotten = [
        each for each in given.masters if each in known and each not in counted and each not in replay.missing
    ]
    if forgotten:
        yield _breach(
            replay, "master-not-counted", event, f"adds without the counter of {', '.join(forgotten)}"
        )


def _highest(refs: Iterable[Ref]) -> int:
    return max((ref.ts for ref in refs), default=0)
