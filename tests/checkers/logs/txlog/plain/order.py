"""Whether the synchronised queues agree: I1, I2, I3, and the strong prefix.

| rule | a run breaks it if |
|---|---|
| out-of-order | an entry is not above the one before it in (ts, id) |
| twice | a synchronised queue has one id twice |
| entries-removed | a synchronised queue gets shorter, and no recovery is the cause |
| not-behind | a record puts entries behind more than there are |
| skipped | a round adds an entry, and leaves a smaller one behind that the master knew |
| diverged | two masters have different entries at the same index of one epoch |
| not-a-prefix | a transaction is in no place of a queue that has greater ones |

Why the last one holds: a transaction u with ts(u) ≤ T from origin k was made before k posted a counter of T or more. It
was then in that POST, or already synchronised. So while no master is left out, a synchronised queue is a prefix of all
transactions that were ever made, sorted by (ts, id). A recovery that works makes it true again: with `simple` all
timestamps stay, with `smart` those outside of the winning branch are above all others.

Masters that can have been apart may disagree (`disturbances`), as far as their own records place the entries in a
split, too. With the strategy `none` nothing repairs that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations

from checkers.logs.txlog.report import Breach, Report
from tests.checkers.logs.txlog.plain.given import Given
from tests.checkers.logs.txlog.plain.records import (
    Acquired,
    Added,
    CaughtUp,
    Event,
    Heard,
    Life,
    Made,
    Recovered,
    Ref,
    Rejoined,
)
from tests.checkers.logs.txlog.plain.replay import NEVER, Walk

UNREPAIRED = "unrepaired divergence: strategy none goes on with two branches"
APART = "documented: parts of a split cluster go on by themselves"


def judge(given: Given) -> Report:
    found = Report()
    walks = {master: _Walk(given, walk) for master, walk in given.walks().items()}
    going, differs, epoch = walks, NEVER, 0
    while going:
        lows = [walk.to_epoch_end(found) for walk in going.values()]
        here = {master: walk for master, walk in going.items() if walk.replay.epoch == epoch}
        differs = _compare(given, here, min(*lows, differs), found)
        going = {master: walk for master, walk in going.items() if walk.walk.next is not None}
        epoch += 1
    _prefixes(given, walks, found)
    lengths = {master: len(walk.replay.synced) for master, walk in walks.items()}
    found.count("order", masters=len(walks), transactions=len(given.made), entries=sum(lengths.values()))
    found.count("once", masters=len(walks), entries=sum(lengths.values()))
    if not any(lengths.values()):
        found.nothing["order"] = found.nothing["once"] = "no transaction was synchronised"
    found.proofs["order"] = {"rule": "agree", "lengths": lengths}
    found.proofs["once"] = {"rule": "all once", "lengths": lengths}
    return found


class _Walk:
    """One master's queue, with the incoming transactions in their order."""

    def __init__(self, given: Given, walk: Walk) -> None:
        self.given = given
        self.walk = walk
        self.replay = walk.replay
        self.has_split = False
        """Entries came while masters were left out, in this epoch."""
        self._heap: list[tuple[int, str]] = []
        self._acquired: set[str] = set()

    def to_epoch_end(self, found: Report) -> int:
        """Apply the records up to the end of an epoch; returns how many first entries stayed all the while."""
        low = len(self.replay.synced)
        is_first = True
        while (event := self.walk.next) is not None and (is_first or not isinstance(event, Recovered)):
            is_first = False
            if isinstance(event, Added | CaughtUp | Recovered):
                index = event.common if isinstance(event, Recovered) else event.index
                low = min(low, index)
                found.breaches += self._appends(event, index)
                is_anew = isinstance(event, Recovered)
                self.has_split = not is_anew and (self.has_split or bool(self.replay.missing))
            self.walk.step()
            self._known(event)
        return low

    def has_added(self, index: int) -> bool:
        """The entry came by a round of this master, not by a forerunner's difference."""
        return not isinstance(self.replay.of_entry[index], CaughtUp)

    def _known(self, event: Event) -> None:
        match event:
            case Made(ref=ref):
                heappush(self._heap, ref.key)
                self._acquired.add(ref.id)
            case Heard(refs=refs):
                for ref in refs:
                    heappush(self._heap, ref.key)
            case Acquired(ids=ids):
                self._acquired.update(ids)
            case Recovered() | Rejoined():
                self._heap = [ref.key for ref in self.replay.queue.values()]
                heapify(self._heap)

    def _appends(self, event: Added | CaughtUp | Recovered, index: int) -> Iterator[Breach]:
        replay, master = self.replay, self.replay.master
        records = [(master, event.place)]
        if index > len(replay.synced):
            yield Breach(
                rule="not-behind",
                summary=f"{master} puts entries behind the first {index}, and has {len(replay.synced)}",
                records=records,
            )
        if index < len(replay.synced) and not isinstance(event, Recovered):
            yield Breach(
                rule="entries-removed",
                summary=f"{master} had {len(replay.synced)} synchronised entries, and keeps {index}",
                records=records,
            )
        last = replay.synced[index - 1] if 0 < index <= len(replay.synced) else None
        of_last = replay.of_entry[index - 1] if last is not None else event
        seen: set[str] = set()
        for ref in event.refs:
            at = replay.place.get(ref.id, 0)
            if 0 < at <= index or ref.id in seen:
                earlier = replay.of_entry[at - 1] if 0 < at <= index else event
                yield Breach(
                    rule="twice",
                    summary=f"{master} has {ref.id} twice in its synchronised queue",
                    records=[(master, earlier.place), *records],
                    facts={"id": ref.id},
                    how="after a recovery" if self._met(Recovered, event) else "without a recovery",
                )
            elif last is not None and last.key >= ref.key:
                yield Breach(
                    rule="out-of-order",
                    summary=f"{master} has {_told(ref)} behind {_told(last)}",
                    records=[(master, of_last.place), *records] if of_last is not event else records,
                    facts={"before": last.id, "id": ref.id},
                    price=self._late(ref, event),
                )
            seen.add(ref.id)
            last, of_last = ref, event
        if isinstance(event, Added):
            yield from self._skips(event)

    def _late(self, ref: Ref, event: Event) -> str:
        """With `none`, a transaction of a master that was left out comes in late, when that master is back."""
        given = self.given
        is_documented = self.replay.strategy == "none" and given.has_split
        by_ns = given.clocks[self.replay.master].not_after_ns(event.place)
        apart = (given.disturbances.may_be_apart(ref.origin, each, by_ns=by_ns) for each in given.masters)
        return UNREPAIRED if is_documented and any(apart) else ""

    def _skips(self, event: Added) -> Iterator[Breach]:
        """A round adds the smallest incoming transactions; in a split, late ones wait for the recovery."""
        replay = self.replay
        added = {ref.id for ref in event.refs}
        last = replay.synced[-1].key if replay.missing and replay.synced else (0, "")
        rest = len(added)
        while self._heap and rest:
            key = self._heap[0]
            ref = replay.queue.get(key[1])
            if ref is None or ref.key != key:
                heappop(self._heap)
            elif ref.id in added:
                heappop(self._heap)
                rest -= 1
            elif key <= last:
                heappop(self._heap)  # it comes back with the recovery
            elif self._lacks_updates(ref):
                heappop(self._heap)
            else:
                greater = max(event.refs, key=lambda each: each.key)
                if greater.key > key:
                    yield Breach(
                        rule="skipped",
                        summary=f"{replay.master} added {_told(greater)}, and knew {_told(ref)}",
                        records=[(replay.master, event.place)],
                        facts={"id": ref.id},
                        how=self._how(event),
                    )
                return

    def _lacks_updates(self, ref: Ref) -> bool:
        """With `simple` and `smart`, a part does not wait for the updates of a missing master's transaction."""
        is_unsure = ref.origin in self.replay.missing
        return is_unsure and ref.id not in self._acquired

    def _met(self, kind: type[Event], event: Event) -> int:
        """How many records of a kind the master has written up to this one."""
        events = self.given.logs[self.replay.master].events
        return sum(isinstance(each, kind) and each.place <= event.place for each in events)

    def _how(self, event: Event) -> str:
        return "after a restart" if self._met(Life, event) > 1 else "in the first life"


def _told(ref: Ref) -> str:
    return f"{ref.id} (ts {ref.ts})"


def _compare(given: Given, walks: Mapping[str, _Walk], low: int, found: Report) -> int:
    """The queues of one epoch, from the index `low` on. Returns the first index where any two differ."""
    first = NEVER
    groups = [[*walks]]
    while groups:
        group = groups.pop()
        queues = {master: walks[master].replay.synced for master in group}
        longest = max(queues.values(), key=len, default=[])
        differs = min((_first_difference(longest, queue, low) for queue in queues.values()), default=NEVER)
        found.count("order", pairs_of_queues=len(group) * (len(group) - 1) // 2)
        if differs >= len(longest):
            continue
        by_entry: dict[Ref, list[str]] = {}
        for master in group:
            if len(queues[master]) > differs:
                by_entry.setdefault(queues[master][differs], []).append(master)
        found.breaches += (
            _divergence(given, walks, one, other, differs)
            for one, other in combinations(by_entry.values(), 2)
        )
        first = min(first, differs)
        groups += by_entry.values()
    return first


def _first_difference(longer: Sequence[Ref], other: Sequence[Ref], low: int) -> int:
    """The first index at which the two have different entries; the length of the longer one if there is none."""
    end = len(other)
    if longer[low:end] == other[low:end]:
        return len(longer)
    return next(index for index in range(low, end) if longer[index] != other[index])


def _divergence(
    given: Given, walks: Mapping[str, _Walk], one: Sequence[str], other: Sequence[str], index: int
) -> Breach:
    """Of the masters `one` and `other`, which have different entries at the index."""
    mine, theirs = walks[one[0]].replay, walks[other[0]].replay
    price = ""
    adders = [[each for each in group if walks[each].has_added(index)] or group for group in (one, other)]
    if all(_are_apart(given, walks, a, b, index) for a in adders[0] for b in adders[1]):
        price = UNREPAIRED if mine.strategy == "none" else APART
    return Breach(
        rule="diverged",
        summary=f"entry {index + 1} is {_told(mine.synced[index])} on {mine.master}, and "
        f"{_told(theirs.synced[index])} on {theirs.master}",
        records=[(each.master, each.of_entry[index].place) for each in (mine, theirs)],
        facts={"index": index, "epoch": mine.epoch},
        price=price,
    )


def _are_apart(given: Given, walks: Mapping[str, _Walk], one: str, other: str, index: int) -> bool:
    """By the faults, and by their own records: one of them had left the other out when it added the entry."""
    for here, there in ((one, other), (other, one)):
        replay = walks[here].replay
        by_ns = given.clocks[here].not_after_ns(replay.of_entry[index].place)
        if there in replay.left_out[index] and given.disturbances.may_be_apart(one, other, by_ns=by_ns):
            return True
    return False


def _prefixes(given: Given, walks: Mapping[str, _Walk], found: Report) -> None:
    """Each queue of the last epoch, against all transactions that were ever made."""
    if given.missing or (given.strategy == "none" and given.has_split):
        return
    newest = max((walk.replay.epoch for walk in walks.values()), default=0)
    by_key = sorted(given.stamped.values(), key=lambda ref: ref.key)
    for master, walk in walks.items():
        replay = walk.replay
        if replay.epoch < newest or (walk.has_split and given.has_split):
            continue
        found.count("order", prefixes=1)
        known = dict.fromkeys(ref.id for ref in replay.synced if ref.id in given.stamped)
        queue = [given.stamped[name] for name in known]
        if queue == by_key[: len(queue)]:
            continue
        index = next(at for at, ref in enumerate(queue) if by_key[at] != ref)
        greater, lost = replay.place[queue[index].id] - 1, by_key[index]
        found.breaches.append(
            Breach(
                rule="not-a-prefix",
                summary=f"{master} has {_told(queue[index])} as entry {greater + 1}, and {_told(lost)} not before it",
                records=[
                    (given.made[lost.id].ref.origin, given.made[lost.id].place),
                    (master, replay.of_entry[greater].place),
                ],
                facts={"id": lost.id, "above": queue[index].id},
            )
        )
