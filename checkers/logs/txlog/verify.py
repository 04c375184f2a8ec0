"""Accepts or refuses the proofs in a verdict on the logs of a TxLog. Shares no code with the checks, only records.

    verify.check(masters, records, verdict)      # RefusedError: a proof does not show what the verdict claims

`records`: by master the lists of its log, as `checkers.logs.txlog.records` has them. A proof of a violation names the
rule, and the records that break it; what it claims is read again from these records, and from a plain replay where a
rule is about queues. A proof that all holds names what was compared. It is accepted if it counts what the logs count,
and if the queues of all masters are prefixes of one another, without a doubled id (`order`, `once`).

Rules that rest on the times of clients, on faults, or on the configuration are not shown by records alone: `NOT_SHOWN`
has their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from checkers.verdict import RefusedError, need

Records = Mapping[str, Sequence[Sequence[Any]]]
Proof = Mapping[str, Any]
Show = Callable[[Records, Proof], None]
"""Raises RefusedError if the proof does not show its rule. A master without a log has no records."""

NOT_SHOWN = frozenset(
    {
        "split-without-cause",
        "restored-without-split",
        "executed-too-early",
        "undone-answer",
        "submitted-later-sorts-before",
        "unrecorded",
        "answered-unexecuted",
        "never-drained",
        "stalled",
    }
)


def check(masters: Sequence[str], records: Records, verdict: Mapping[str, Any]) -> int:
    """How many proofs of the verdict (as JSON) were accepted; RefusedError for the first one that is wrong."""
    accepted, logs = 0, {master: records.get(master, ()) for master in masters}
    try:
        for proof in verdict["details"]["proofs"]:
            rule = proof["rule"]
            if rule in NOT_SHOWN:
                continue
            is_broken = verdict["result"] == "invalid"
            need(is_broken == bool(proof.get("records")), f"{rule} shows another result")
            show = _BROKEN[rule] if is_broken else _HOLDS[verdict["checker"]]
            show(logs, proof)
            accepted += 1
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise RefusedError(f"the proof cannot be read: {error}") from error
    return accepted


def _record(records: Records, proof: Proof, number: int, *kinds: str) -> tuple[str, int, Sequence[Any]]:
    """The master, the place and the record that a proof names."""
    master, place = proof["records"][number]
    need(place > 0, f"no record has the place {place}")
    record = records[master][place - 1]
    need(
        not kinds or record[0] in kinds,
        f"record {place} of {master} is {record[0]}, not {' or '.join(kinds)}",
    )
    return master, place, record


APPENDS = ("added", "caught-up", "recovered")


def _appended(record: Sequence[Any]) -> tuple[int, Sequence[Sequence[Any]]]:
    return (record[2], record[5]) if record[0] == "recovered" else (record[1], record[2])


def _queue(records: Records, master: str, place: int | None = None) -> list[Sequence[Any]]:
    """The synchronised queue behind so many records; None: behind all."""
    queue: list[Sequence[Any]] = []
    for record in records[master][:place]:
        if record[0] in APPENDS:
            index, refs = _appended(record)
            queue[index:] = refs
    return queue


def _epoch_end(records: Records, master: str, epoch: int) -> int:
    """How many records the master had when it left the epoch."""
    log = records[master]
    return next(
        (at for at, record in enumerate(log) if record[0] == "recovered" and record[1] > epoch), len(log)
    )


def _epoch(records: Records, master: str, place: int) -> int:
    """The epoch of the master behind so many records."""
    return max((event[1] for event in records[master][:place] if event[0] == "recovered"), default=0)


def _key(ref: Sequence[Any]) -> tuple[int, str]:
    return ref[0], ref[1]


# ---- queues


def _diverged(records: Records, proof: Proof) -> None:
    index, epoch, ends = proof["index"], proof["epoch"], []
    for master, _ in proof["records"]:
        end = _epoch_end(records, master, epoch)
        need(_epoch(records, master, end) == epoch, f"{master} was in no epoch {epoch}")
        ends.append(_queue(records, master, end))
    need(
        len(ends) == 2 and all(0 <= index < len(end) for end in ends),
        "two queues with such an entry are needed",
    )
    need([*ends[0][index]] != [*ends[1][index]], "the entries are the same")


def _out_of_order(records: Records, proof: Proof) -> None:
    master, place, _ = _record(records, proof, -1, *APPENDS)
    queue = _queue(records, master, place)
    pairs = [(one, other) for one, other in pairwise(queue) if other[1] == proof["id"]]
    need(
        any(one[1] == proof["before"] and _key(one) >= _key(other) for one, other in pairs),
        "they are in order",
    )


def _not_a_prefix(records: Records, proof: Proof) -> None:
    lost, above = proof["id"], proof["above"]
    _, _, made = _record(records, proof, 0, "made")
    need(made[3] == lost, "its record is of another transaction")
    master, _, _ = _record(records, proof, 1, *APPENDS)
    ids = [ref[1] for ref in _queue(records, master)]
    before = ids[: ids.index(above)]
    need(lost not in before, "it is before the greater one")
    need(_newest(records, lost) < _newest(records, above), "it is not the smaller one")


def _newest(records: Records, name: str) -> tuple[int, str]:
    """(ts, id), with the newest timestamp that its origin or a recovery gave it."""
    stamps: list[tuple[int, int]] = []
    for log in records.values():
        for record in log:
            if record[0] == "made" and record[3] == name:
                stamps.append((0, record[2]))
            if record[0] == "recovered":
                stamps += [(record[1], ref[0]) for ref in record[6] if ref[1] == name]
    return max(stamps)[1], name


def _skipped(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "added")
    known: dict[str, Sequence[Any]] = {}
    for earlier in records[master][: place - 1]:
        match earlier[0]:
            case "made":
                known.setdefault(earlier[3], (earlier[2], earlier[3], master))
            case "heard":
                for ref in earlier[4]:
                    known.setdefault(ref[1], ref)
            case "recovered":
                known = {ref[1]: ref for ref in earlier[6]}
    waits, missing = known[proof["id"]], _missing(records, master, place)
    before = _queue(records, master, place - 1) if missing else []
    gone = {ref[1] for ref in _queue(records, master, place)}
    need(proof["id"] not in gone, "it is synchronised")
    need(_key(waits) < max(map(_key, record[2])), "it is not smaller")
    need(not before or _key(waits) > _key(before[-1]), "it came too late in a split")
    lacks = waits[2] in missing and not _has(records, master, proof["id"], place - 1)
    need(not lacks, "it waits for the updates of a master that is left out")


def _missing(records: Records, master: str, place: int) -> Sequence[str]:
    """The masters that are left out before a record."""
    missing: Sequence[str] = ()
    for record in records[master][: place - 1]:
        if record[0] in ("split", "rejoined", "recovered"):
            missing = record[1] if record[0] == "split" else ()
    return missing


def _shorter(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "added", "caught-up")
    need(record[1] < len(_queue(records, master, place - 1)), "nothing goes away")


def _not_behind(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, *APPENDS)
    need(_appended(record)[0] > len(_queue(records, master, place - 1)), "there are so many entries")


def _twice(records: Records, proof: Proof) -> None:
    master, place, _ = _record(records, proof, -1, *APPENDS)
    ids = [ref[1] for ref in _queue(records, master, place)]
    need(ids.count(proof["id"]) > 1, "it is there once")


# ---- what is kept and acquired


def _lost(records: Records, proof: Proof) -> None:
    _, _, made = _record(records, proof, 0, "made")
    need(made[3] == proof["id"] and bool(proof["lacking"]), "its record is of another transaction")
    for master in proof["lacking"]:
        need(bool(records[master]), f"{master} left no log")
        need(all(ref[1] != proof["id"] for ref in _queue(records, master)), f"{master} has it")


def _dropped(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "recovered")
    need(all(ref[1] != proof["id"] for ref in (*_queue(records, master, place), *record[6])), "it is there")
    by = proof["by"]
    known = (_ids(earlier) for earlier in records[by][: _epoch_end(records, by, record[1] - 1)])
    need(any(proof["id"] in ids for ids in known), f"{by} did not know it")


def _ids(record: Sequence[Any]) -> set[str]:
    """The transactions that come into a queue by a record."""
    match record[0]:
        case "made":
            return {record[3]}
        case "heard":
            return {ref[1] for ref in record[4]}
        case "recovered":
            return {ref[1] for ref in (*record[5], *record[6])}
        case "added" | "caught-up":
            return {ref[1] for ref in record[2]}
    return set()


def _never_made(records: Records, proof: Proof) -> None:
    _, _, record = _record(records, proof, 0, "added", "caught-up")
    refs = [ref for ref in record[2] if ref[1] == proof["id"]]
    need(any(ref[0] not in _stamps_of(records, ref) for ref in refs), "it was made")


def _stamps_of(records: Records, ref: Sequence[Any]) -> set[Any]:
    """The timestamps with which its origin made a transaction, or a recovery stamped it."""
    stamps = {each[2] for each in records[ref[2]] if each[0] == "made" and each[3] == ref[1]}
    if stamps:
        stamps |= {
            each[0]
            for log in records.values()
            for recovered in log
            if recovered[0] == "recovered"
            for each in recovered[6]
            if each[1] == ref[1]
        }
    return stamps


def _has(records: Records, master: str, name: str, place: int | None = None) -> bool:
    """Whether the master has the updates of a transaction, behind so many records."""
    return any(
        (record[0] == "made" and record[3] == name)
        or (record[0] == "acquired" and any(update[0] == name for update in record[1]))
        for record in records[master][:place]
    )


def _not_acquired(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "added")
    need(any(ref[1] == proof["id"] for ref in record[2]), "the round does not add it")
    need(not _has(records, master, proof["id"], place), "it was acquired")


def _poster(records: Records, proof: Proof) -> None:
    """At no time did the poster have the base of the round; with an id, it never had the base and its updates."""
    master, place, record = _record(records, proof, 0, "added")
    poster = proof["poster"]
    need(poster in record[4], "it was no poster")
    need(bool(records[poster]), "it left no log")
    adds = "id" not in proof or any(ref[1] == proof["id"] for ref in record[2])
    need(adds, "the round does not add it")
    epoch, theirs, length, had = _epoch(records, master, place), 0, 0, False
    for at, event in enumerate([["life"], *records[poster]]):
        if event[0] == "recovered":
            theirs = event[1]
        if event[0] in APPENDS:
            index, refs = _appended(event)
            length = min(length, index) + len(refs)
        if theirs == epoch and length == record[1]:
            had = True
            need("id" in proof, "it had the base")
            need(not _has(records, poster, proof["id"], at), "it had the updates")
    need(had == ("id" in proof), "it never had the base")


# ---- execution


def _executions(records: Records, master: str, place: int) -> tuple[int, int | None]:
    """The executed index before a record, and how many of these entries a recovery has kept; None: all.

    It holds until a restore, or until an execution that comes without one.
    """
    index, kept = 0, None
    for record in records[master][: place - 1]:
        if record[0] in ("executed", "restored"):
            index, kept = record[1], None
        elif record[0] == "recovered" and record[2] < (index if kept is None else kept):
            kept = record[2]
    return index, kept


def _out_of_turn(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "executed")
    need(record[1] != _executions(records, master, place)[0] + 1, "it is its turn")


def _another(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "executed")
    entry = _queue(records, master, place)[record[1] - 1 : record[1]]
    need([ref[1] for ref in entry] != [record[2]], "it is the entry")


def _entry_removed(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "added", "caught-up")
    index, kept = _executions(records, master, place)
    need(record[1] < (index if kept is None else kept), "it was not executed")


def _without_restore(records: Records, proof: Proof) -> None:
    master, place, _ = _record(records, proof, 0, "executed")
    need(_executions(records, master, place)[1] is not None, "nothing was taken away, or it was restored")


def _backup_of(record: Sequence[Any]) -> Any:
    return record[2] if record[0] in ("split", "recovering") else None


def _backup(records: Records, master: str, place: int) -> Any:
    """The backup that the master has before a record; None: none."""
    backup = None
    for at, earlier in enumerate(records[master][: place - 1], 1):
        backup = _backup_of(earlier) or backup
        is_restored = earlier[0] == "restored" and not _in_split(records, master, at)
        if is_restored or (earlier[0] == "recovered" and _executions(records, master, at + 1)[1] is None):
            backup = None
    return backup


def _restored_another(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "restored")
    backup = _backup(records, master, place)
    need(backup is None or [*backup[:2]] != [*record[1:3]], "it is its backup")


def _backup_differs(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "split", "recovering")
    index, digest = _backup_of(record)[:2]
    hashes: dict[int, bytes] = {0: b""}
    for earlier in records[master][: place - 1]:
        if earlier[0] == "executed":
            hashes[earlier[1]] = earlier[3]
        elif earlier[0] == "restored":
            hashes = {at: known for at, known in hashes.items() if at <= earlier[1]}
    need(hashes.get(index) != digest, "it had this state")


def _too_much(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "restored")
    _, kept = _executions(records, master, place)
    need(kept is not None and kept < record[1], "a recovery kept so many entries")


def _state_differs(records: Records, proof: Proof) -> None:
    histories = []
    for number in (0, 1):
        master, place, record = _record(records, proof, number, "executed")
        done: list[str] = []
        for event in records[master][:place]:
            if event[0] == "executed":
                done[event[1] - 1 :] = [event[2]]
            elif event[0] == "restored":
                del done[event[1] :]
        histories.append((done, record[3]))
    need(histories[0][0] == histories[1][0], "other transactions were executed")
    need(histories[0][1] != histories[1][1], "the states are the same")


# ---- counters


def _counter(records: Records, master: str, place: int) -> int:
    """The counter before a record."""
    counter = 0
    for record in records[master][: place - 1]:
        match record[0]:
            case "made":
                counter = record[1]
            case "heard":
                counter = record[2]
            case "caught-up":
                counter = max(counter, *(ref[0] for ref in record[2]), 0)
            case "recovered":
                counter = record[7]
    return counter


def _now(record: Sequence[Any]) -> int:
    counter = {"made": 1, "heard": 2, "recovered": 7}[record[0]]
    return int(record[counter])


def _fell(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "made", "heard", "recovered")
    before = _counter(records, master, place)
    need(_now(record) < before + (record[0] == "made"), "it did not fall")


def _not_raised(records: Records, proof: Proof) -> None:
    _, _, record = _record(records, proof, 0, "heard", "recovered")
    least = record[3] or 0 if record[0] == "heard" else max(ref[0] for ref in (*record[5], *record[6]))
    need(_now(record) < least, "it was raised")


def _too_low(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "made")
    need(record[2] <= _counter(records, master, place), "the timestamp is above the counter")


def _too_high(records: Records, proof: Proof) -> None:
    _, _, record = _record(records, proof, 0, "made")
    need(record[2] > record[1], "the timestamp is not above the counter")


def _bound(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "added")
    epoch, last = 0, dict[str, int]()
    for each in records[master][: place - 1]:
        if each[0] == "heard" and each[3] is not None:
            last[each[1]] = max(each[3], last.get(each[1], 0))
        if each[0] == "rejoined":
            last = {}
        if each[0] == "recovered":
            epoch, last = each[1], dict(each[8])
    counted = [_counter(records, master, place), *(last.get(each, 0) for each in record[5])]
    for poster in record[4]:
        theirs, length, counters = 0, 0, list[int]()
        for at, each in enumerate([["life"], *records[poster]]):
            if each[0] == "recovered":
                theirs = each[1]
            if each[0] in APPENDS:
                index, refs = _appended(each)
                length = min(length, index) + len(refs)
            if theirs == epoch and length == record[1]:
                counters.append(_counter(records, poster, at + 1))
        counted += [counters[-1]] if counters else []
    need(record[3] > min(counted), "the bound is not above a counter")


def _above(records: Records, proof: Proof) -> None:
    _, _, record = _record(records, proof, 0, "added")
    need(any(ref[0] > record[3] for ref in record[2]), "nothing is above the bound")


def _not_counted(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "added")
    came = {event[1]: at for at, event in reversed([*enumerate(records[master], 1)]) if event[0] == "peer"}
    later = [each for each, at in came.items() if at >= place]
    counted = {master, *record[4], *record[5], *_missing(records, master, place), *later}
    need(not counted.issuperset(records), "all are counted")


# ---- policy and votes


def _strategy(records: Records, master: str, place: int) -> str:
    strategies = [record[-1] for record in records[master][: place - 1] if record[0] in ("life", "strategy")]
    return str(strategies[-1]) if strategies else ""


def _in_split(records: Records, master: str, place: int) -> bool:
    missing, frozen = False, False
    for record in records[master][: place - 1]:
        match record[0]:
            case "split":
                missing = bool(record[1])
            case "rejoined":
                missing = False
            case "recovering":
                frozen = True
            case "recovered":
                missing = frozen = False
    return missing or frozen


def _changed(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "life", "strategy")
    need(_in_split(records, master, place), "there is no split")
    need(record[-1] != _strategy(records, master, place), "it is the same strategy")


def _without_strategy(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "split", "recovering", "restored")
    need(_strategy(records, master, place) == "none", "there is a strategy")
    need(record[0] != "split" or record[2] is not None, "it takes no backup")


def _no_backup(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "split")
    is_lacking = record[2] is None and _backup(records, master, place) is None
    need(is_lacking and _strategy(records, master, place) != "none", "there is one")


def _in_recovery(records: Records, proof: Proof) -> None:
    master, place, _ = _record(records, proof, 0, "executed")
    kinds = [
        earlier[0]
        for earlier in records[master][: place - 1]
        if earlier[0] in ("recovering", "thawed", "recovered")
    ]
    need(kinds[-1:] == ["recovering"], "there is no recovery")


def _frozen(records: Records, epoch: int) -> dict[str, list[list[Any]]]:
    """By master the synchronised queue that it froze in this epoch."""
    frozen: dict[str, list[list[Any]]] = {}
    for master in records:
        for at, record in enumerate(records[master]):
            if record[0] == "recovering" and record[1] == epoch:
                frozen[master] = [[*ref] for ref in _queue(records, master, at)]
    return frozen


def _no_digest(records: Records, proof: Proof) -> None:
    _, _, record = _record(records, proof, 0, "recovered")
    frozen = _frozen(records, record[1] - 1)
    need(any(log and master not in frozen for master, log in records.items()), "all have frozen their queues")


def _partial(records: Records, proof: Proof) -> None:
    _, _, record = _record(records, proof, 0, "recovered")
    need({*record[4]} != {*records}, "the votes are of all masters")


def _elected(records: Records, epoch: int) -> tuple[str, dict[str, int], dict[str, list[Any]]]:
    frozen = _frozen(records, epoch)
    need(frozen.keys() == {*records}, "a master has not frozen its queues")
    counts = {
        master: sum(1 for theirs in frozen.values() if branch[: len(theirs)] == theirs)
        for master, branch in frozen.items()
    }
    best = sorted(records, key=lambda master: (-counts[master], -len(frozen[master]), master))
    return best[0], counts, frozen


def _wrong_winner(records: Records, proof: Proof) -> None:
    _, _, record = _record(records, proof, 0, "recovered")
    winner, counts, _ = _elected(records, record[1] - 1)
    need(record[3] != winner or dict(record[4]) != counts, "the vote is right")


def _two_winners(records: Records, proof: Proof) -> None:
    _, _, first = _record(records, proof, 0, "recovered")
    _, _, second = _record(records, proof, 1, "recovered")
    need(first[1] == second[1] and first[3] != second[3], "they elect the same")


def _wrong_branch(records: Records, proof: Proof) -> None:
    master, place, record = _record(records, proof, 0, "recovered")
    winner, _, frozen = _elected(records, record[1] - 1)
    kept = frozen[winner]
    if _strategy(records, master, place) != "smart":
        while not all(branch[: len(kept)] == kept for branch in frozen.values()):
            kept = kept[:-1]
    need([[*ref] for ref in _queue(records, master, place)] != kept, "it is the right branch")


# ---- what holds


def _agree(records: Records, proof: Proof) -> None:
    """All queues are prefixes of the longest one of their epoch, in order; unless a master was ever left out."""
    ends = {master: _queue(records, master) for master in records}
    need({master: len(end) for master, end in ends.items()} == dict(proof["lengths"]), "the lengths differ")
    if any(record[0] in ("split", "recovered") for log in records.values() for record in log):
        return
    longest = max(ends.values(), key=len)
    need(all([*end] == longest[: len(end)] for end in ends.values()), "the queues differ")
    keys = [*dict.fromkeys(map(_key, longest))]
    need(keys == sorted(keys), "the longest queue is not in order")


def _all_once(records: Records, proof: Proof) -> None:
    for master in records:
        ids = [ref[1] for ref in _queue(records, master)]
        need(len(ids) == len(set(ids)) == proof["lengths"][master], f"{master} has an entry twice")


def _counted(**kinds: str) -> Show:
    """Shows that the logs have as many records as the proof counts. `kinds`: by name of the count, the kind."""

    def shown(records: Records, proof: Proof) -> None:
        for name, kind in kinds.items():
            count = sum(record[0] == kind for log in records.values() for record in log)
            need(proof.get(name, 0) == count, f"the logs have {count} {name}")

    return shown


def _transactions(records: Records, proof: Proof) -> None:
    made = {record[3] for log in records.values() for record in log if record[0] == "made"}
    need(len(made) == proof["transactions"], f"the logs have {len(made)} transactions")


def _all_in_turn(records: Records, proof: Proof) -> None:
    for master, log in records.items():
        index, _ = _executions(records, master, len(log) + 1)
        need(index == proof["executed"][master], f"{master} has executed {index}")


def _nothing(records: Records, proof: Proof) -> None:
    """The comparison is with clients, or with faults: records alone do not show it."""


_BROKEN: Mapping[str, Show] = {
    "diverged": _diverged,
    "out-of-order": _out_of_order,
    "not-a-prefix": _not_a_prefix,
    "skipped": _skipped,
    "entries-removed": _shorter,
    "not-behind": _not_behind,
    "twice": _twice,
    "lost": _lost,
    "dropped-at-recovery": _dropped,
    "never-made": _never_made,
    "not-acquired": _not_acquired,
    "poster-elsewhere": _poster,
    "poster-lacked": _poster,
    "executed-out-of-turn": _out_of_turn,
    "executed-another": _another,
    "executed-entry-removed": _entry_removed,
    "executed-without-restore": _without_restore,
    "restored-another": _restored_another,
    "backup-differs": _backup_differs,
    "restored-too-much": _too_much,
    "state-differs": _state_differs,
    "counter-fell": _fell,
    "counter-not-raised": _not_raised,
    "stamped-too-low": _too_low,
    "stamped-too-high": _too_high,
    "bound-too-high": _bound,
    "above-the-bound": _above,
    "master-not-counted": _not_counted,
    "strategy-changed": _changed,
    "acted-without-strategy": _without_strategy,
    "split-without-backup": _no_backup,
    "executed-in-recovery": _in_recovery,
    "voted-without-digest": _no_digest,
    "partial-vote": _partial,
    "wrong-winner": _wrong_winner,
    "two-winners": _two_winners,
    "wrong-branch": _wrong_branch,
}

_HOLDS: Mapping[str, Show] = {
    "txlog-order": _agree,
    "txlog-once": _all_once,
    "txlog-kept": _transactions,
    "txlog-acquired": _counted(rounds="added"),
    "txlog-executed": _all_in_turn,
    "txlog-state": _nothing,
    "txlog-counters": _counted(timestamps="made", posts="heard", rounds="added"),
    "txlog-sessions": _nothing,
    "txlog-policy": _counted(splits="split"),
    "txlog-vote": _counted(recoveries="recovered"),
    "txlog-drained": _transactions,
}
"""By check, what shows that all holds."""
