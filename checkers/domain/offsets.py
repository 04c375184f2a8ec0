"""Logs whose entries have offsets, as those of Kafka: what is sent is polled, once, in one order.

`history.log_entries` has the form of the operations; crash and debug-topic-partitions are not judged. Names are those
of `jepsen.tests.kafka`. An entry is known if its send was acknowledged with an offset, or a client polled it. A send of
unknown outcome counts as acknowledged if another operation polled anything that its operation sent. Offsets may have
gaps, where transactions keep their marks. A value is sent once: one that is acknowledged twice is a duplicate.

| rule | what must not be |
|---|---|
| inconsistent-offsets | two values at one offset |
| lost-write | an acknowledged value that nobody polled, at or below an offset that somebody did |
| duplicate | a value at two offsets |
| aborted-read, never-sent | a value was polled whose send surely failed, or that nobody sent |
| precommitted-read | a transaction polled what it sent itself |
| nonmonotonic-send, int-nonmonotonic-send | of two values that a client sent, the second one has no greater offset |
| int-nonmonotonic-poll, int-poll-skip | within a transaction, polls go back, or leave out a known entry |
| nonmonotonic-poll, poll-skip | the same between a client's polls, as long as it polls the same keys |

An operation that failed, or whose outcome is unknown, shows what it polled, too: Kafka never gives uncommitted
entries. Its client's place does not count as moved, neither by what it polled nor by what it sent: an entry of unknown
outcome may be appended later than the client's next one. A client that assigns itself other keys begins anew in both
directions.

Where any client has subscribed, the store moves keys between them, and they begin again where another one has
committed: the last two rules are findings then. Cannot see: circles of transactions (`transactional.log_cycles` does);
sends with an unknown offset. Cost: n log n.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from checkers.domain.proof import shown, verdict
from checkers.history.history import History
from checkers.history.log_entries import JUDGED, MOVES, Entry, keys_of, polled_by, sent_by
from checkers.history.operation import Operation
from checkers.history.values import Value, often
from checkers.verdict import Verdict, Witness, witness

NAME = "offsets"
MODEL = "what is sent to a log is polled, once, in one order"

IF_ASSIGNED = ("nonmonotonic-poll", "poll-skip")
"""Rules that hold only where clients choose their keys themselves."""


@dataclass(slots=True)
class _Log:
    """The entries of one key that are known."""

    at: dict[int, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    """By offset those who sent or polled something there."""
    places: dict[int, int] = field(default_factory=dict)
    """Offset → how many known entries are before it."""

    def skipped(self, before: Entry, after: Entry) -> bool:
        """Whether a known entry is between these two."""
        assert before.offset is not None and after.offset is not None
        return self.places[after.offset] - self.places[before.offset] > 1


def check(history: History) -> Verdict:
    """Whether the logs keep what was sent. `details`: sent, polled, logs, findings."""
    operations = history.select(f=(*JUDGED, *MOVES))
    polls = [entry for operation in operations for entry in polled_by(operation)]
    sends = _placed([entry for operation in operations for entry in sent_by(operation)], polls)
    logs = _logs(sends, polls)
    found = [
        *_inconsistent(logs),
        *_lost(sends, polls),
        *_duplicates(logs),
        *_from_nowhere(sends, polls),
        *_of_clients(operations, sends, logs),
    ]
    moves = any(operation.f == "subscribe" and operation.type != "fail" for operation in operations)
    allowed = [each for each in found if moves and each.rule in IF_ASSIGNED]
    witnesses = [each for each in found if not moves or each.rule not in IF_ASSIGNED]
    details: dict[str, Any] = {"sent": len(sends.entries), "polled": len(polls), "logs": len(logs)}
    if allowed:
        did = "went back, or left something out, where clients subscribe"
        details["findings"] = [f"{often(len(allowed))} a client {did}: {allowed[0].summary}"]
    valid = f"{len(polls)} polled entries of {len(logs)} logs are what was sent, in one order"
    return verdict(NAME, MODEL, witnesses, details, judged=len(polls), valid=valid)


@dataclass(frozen=True, slots=True)
class _Sends:
    """What was sent, with the offsets that are known. `took_effect`: the operations that surely did, by invocation."""

    entries: Sequence[Entry]
    took_effect: Set[int]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def sure(self) -> Iterator[Entry]:
        return (entry for entry in self.entries if entry.operation.invoke_index in self.took_effect)


def _placed(sends: Sequence[Entry], polls: Iterable[Entry]) -> _Sends:
    offsets: dict[tuple[str, Value], set[int]] = defaultdict(set)
    pollers: dict[tuple[str, Value], set[int]] = defaultdict(set)
    for entry in polls:
        if entry.offset is not None:
            offsets[entry.name].add(entry.offset)
        pollers[entry.name].add(entry.operation.invoke_index)
    sure = {
        entry.operation.invoke_index
        for entry in sends
        if entry.operation.type == "ok"
        or (entry.operation.type == "info" and pollers[entry.name] - {entry.operation.invoke_index})
    }
    placed = [
        entry._replace(offset=min(offsets[entry.name]))
        if entry.offset is None and len(offsets.get(entry.name, ())) == 1
        else entry
        for entry in sends
    ]
    return _Sends(placed, sure)


def _logs(sends: _Sends, polls: Iterable[Entry]) -> dict[str, _Log]:
    logs: dict[str, _Log] = defaultdict(_Log)
    for entry in (*sends.sure(), *polls):
        if entry.offset is not None:
            logs[entry.key].at[entry.offset].append(entry)
    for log in logs.values():
        log.places = {offset: place for place, offset in enumerate(sorted(log.at))}
    return logs


# ---- what the logs hold


def _inconsistent(logs: Mapping[str, _Log]) -> Iterator[Witness]:
    for key, log in logs.items():
        for offset, entries in log.at.items():
            first = entries[0]
            other = next((entry for entry in entries if entry.name != first.name), None)
            if other is not None:
                values = f"{shown(first.value)} and {shown(other.value)}"
                summary = f"at offset {offset} of log {key} stand {values}"
                yield witness("inconsistent-offsets", summary, [first.operation, other.operation], key=key)


def _lost(sends: _Sends, polls: Iterable[Entry]) -> Iterator[Witness]:
    polled: set[tuple[str, Value]] = set()
    last: dict[str, Entry] = {}
    for entry in polls:
        polled.add(entry.name)
        if entry.offset is not None and entry.offset >= (last.get(entry.key, entry).offset or 0):
            last[entry.key] = entry
    for entry in sends.sure():
        top = last.get(entry.key)
        if entry.offset is None or top is None or entry.name in polled:
            continue
        if entry.offset <= (top.offset or 0):
            told = "was acknowledged at" if entry.operation.type == "ok" else "took effect at"
            summary = (
                f"{entry} {told} offset {entry.offset}, and no client polled it, although process "
                f"{top.operation.process} polled up to offset {top.offset}"
            )
            yield witness("lost-write", summary, [entry.operation, top.operation], key=entry.key)


def _duplicates(logs: Mapping[str, _Log]) -> Iterator[Witness]:
    for key, log in logs.items():
        first: dict[tuple[str, Value], Entry] = {}
        for offset in log.places:
            for entry in log.at[offset]:
                earlier = first.setdefault(entry.name, entry)
                if earlier.offset != offset:
                    summary = f"{entry} stands at the offsets {earlier.offset} and {offset}"
                    yield witness("duplicate", summary, [earlier.operation, entry.operation], key=key)
                    break


def _from_nowhere(sends: Iterable[Entry], polls: Iterable[Entry]) -> Iterator[Witness]:
    senders: dict[tuple[str, Value], list[Entry]] = defaultdict(list)
    for entry in sends:
        senders[entry.name].append(entry)
    told: set[tuple[str, Value]] = set()
    for entry in polls:
        by = [send.operation for send in senders.get(entry.name, [])]
        if _is_own(entry, senders.get(entry.name, [])):
            summary = f"process {entry.operation.process} polled {entry} in the transaction that sent it"
            yield witness("precommitted-read", summary, [entry.operation], key=entry.key)
        elif entry.name not in told and all(operation.type == "fail" for operation in by):
            told.add(entry.name)
            rule, why = (
                ("aborted-read", "whose send surely failed") if by else ("never-sent", "which nobody sent")
            )
            summary = f"process {entry.operation.process} polled {entry}, {why}"
            yield witness(rule, summary, [*by[:1], entry.operation], key=entry.key)


def _is_own(entry: Entry, sends: Iterable[Entry]) -> bool:
    """Whether a polled entry can only be what the same transaction sent, by the senders of its value, or its offset."""
    sends = [send for send in sends if send.operation.type != "fail" or send.operation is entry.operation]
    placed = [send for send in sends if entry.offset is not None and send.offset == entry.offset]
    candidates = placed or sends
    return bool(candidates) and all(send.operation is entry.operation for send in candidates)


# ---- what clients did, one operation after the other


def _of_clients(
    operations: Iterable[Operation], sends: _Sends, logs: Mapping[str, _Log]
) -> Iterator[Witness]:
    sent_in: dict[int, list[Entry]] = defaultdict(list)
    for entry in sends.sure():
        sent_in[entry.operation.invoke_index].append(entry)
    polled: dict[Any, dict[str, Entry]] = defaultdict(dict)
    sent: dict[Any, dict[str, Entry]] = defaultdict(dict)
    for operation in operations:
        of_process = polled[operation.process], sent[operation.process]
        if operation.f in MOVES:
            if operation.type != "fail":
                keys = keys_of(operation)
                for last in of_process:
                    for key in set(last) - keys:
                        del last[key]
        else:
            last_polled, last_sent = of_process if operation.type == "ok" else map(dict, of_process)
            yield from _steps(polled_by(operation), logs, last_polled, "poll", skips=True)
            yield from _steps(sent_in[operation.invoke_index], logs, last_sent, "send", skips=False)


def _steps(
    entries: Iterable[Entry], logs: Mapping[str, _Log], last: dict[str, Entry], did: str, *, skips: bool
) -> Iterator[Witness]:
    """Where a client goes back, or leaves something out, from one entry to the next. `last`: its last entry by key."""
    by_key: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.offset is not None:
            by_key[entry.key].append(entry)
    for key, own in by_key.items():
        earlier = [last[key]] if key in last else []
        for before, after in pairwise((*earlier, *own)):
            inside = "int-" if before.operation is after.operation else ""
            if after.offset <= before.offset:  # type: ignore[operator]  # both are known
                rule, how = f"nonmonotonic-{did}", "and then"
            elif skips and logs[key].skipped(before, after):
                rule, how = f"{did}-skip", "and next, leaving something out,"
            else:
                continue
            done = {"poll": "polled", "send": "sent"}[did]
            summary = (
                f"process {after.operation.process} {done} {before} at offset {before.offset}, {how} "
                f"{shown(after.value)} at offset {after.offset}"
            )
            yield witness(f"{inside}{rule}", summary, [before.operation, after.operation], key=key)
        last[key] = own[-1]
