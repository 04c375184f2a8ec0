"""The queues of all masters over a run, in the values that the page draws (`harness.pages.queues`).

    {"whole": stretch, "stretches": [stretch], "not_drawn": sentence, "damage": [sentence]}
    stretch  {"title", "start_ns", "end_ns", "lanes": [lane], "told": [sentence], "board": board or None}
    lane     {"name", "points", "rounds", "spans": [{"from_ns", "to_ns", "kind", "text"}],
              "marks": [{"at_ns", "kind", "label", "text", "from", "to"}], "marks_left_out"}
    rounds   "1500 21500 …": µs of the stretch, of the rounds that added entries
    points   "0,230,9,230 1500,235,4,230": µs of the stretch, entries synchronised, incoming, executed
    board    {"columns": [name], "rows": [{"name", "cells": [cell]}], "origins": {id: origin}}
    cell     {"before", "synced": [id], "more_synced", "incoming": [id], "more_incoming", "executed", "about"};
             "before": how many first entries have no box

Times are about right, not exact (`harness.systems.txlog.queues`). A long run stays small: a lane has about `POINTS`
points and no rounds where there are more than `ROUNDS_MAX`. Drawn by themselves are the stretches around the
first violation of each rule, and from a split to the end of its recovery, at most `STRETCHES_MAX`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

from checkers.history.history import History
from harness.systems.parts import NodeFiles
from harness.systems.txlog.logs import MasterLog, Placed, logs_in
from harness.systems.txlog.phases import AFTER, APART, BEFORE, FROZEN, LogChecks, log_checks, phase_sentences
from harness.systems.txlog.queues import LINES, Queues, Row, at, place_at, rows_of, times_ns
from nodes.txlog.refs import common_length

Picture = dict[str, Any]

POINTS, ROUNDS_MAX, MARKS_MAX = 240, 160, 60
STRETCHES_MAX = 5
BOXES, LEAD = 14, 3
"""Boxes in a cell of a board; how many of them show entries that all masters have in common."""
LEAD_NS = 3_000_000_000
"""The stretch that is drawn before a split, at most."""
NEAR_NS = 500_000_000
"""The stretch that is drawn on both sides of a violation."""
SPLIT, RECOVERING = "split", "recovering"
SMALL = ("worker", "caught-up")
MARKS = ("wrong", "restored", "vote", "split", "backup", "start", *SMALL)
"""The kinds of marks, in the order in which they get room."""

PLURALS = {"vote": "votes", "entry": "entries", "transaction": "transactions"}

Place = tuple[str, int]
"""A master, and the place of a record in its log."""
Columns = Sequence[tuple[str, Mapping[str, int]]]
"""Moments: a name, and how many records each master had written."""
Wrong = Mapping[Place, str]
"""Records that prove a violation, and the rule that they break."""


def drawn(
    names: Sequence[str], files: NodeFiles, history: History, verdict: Mapping[str, Any]
) -> Picture | None:
    """The picture of a run; None if no master left a log."""
    logs = logs_in(files, names)
    masters = [_Master(name, log, history, files[name].get(LINES, b"")) for name, log in logs.items()]
    masters = [master for master in masters if master.records]
    if not masters:
        return None
    wrong, checks = _violating(verdict), log_checks(verdict)
    stretches = _stretches(masters, wrong)
    end_ns = max(master.times[-1] for master in masters)
    rest = len(stretches) - STRETCHES_MAX
    return {
        "whole": _stretch(masters, _Stretch("The whole run", 0, end_ns), wrong, checks),
        "stretches": [
            _stretch(masters, stretch, wrong, checks)
            for stretch in sorted(stretches[:STRETCHES_MAX], key=lambda stretch: stretch.start_ns)
        ],
        "not_drawn": f"Splits, recoveries and violations that are only in the picture of the whole run: {rest:,}."
        if rest > 0
        else "",
        "damage": [
            f"The log of {name} cannot be read: {log.damage}" for name, log in logs.items() if log.damage
        ],
    }


@dataclass(frozen=True)
class _Master:
    """A log, with a time for each record."""

    name: str
    log: MasterLog
    history: History
    lines: bytes

    @property
    def records(self) -> Sequence[Placed]:
        return self.log.records

    @cached_property
    def rows(self) -> list[Row]:
        return rows_of(self.records)

    @cached_property
    def times(self) -> list[int]:
        return times_ns(self.records, self.rows, self.history, self.lines)

    def time_of(self, place: int) -> int:
        return self.times[min(max(place, 1), len(self.times)) - 1]

    def places(self, start_ns: int, end_ns: int) -> range:
        """The places of the records from one time to the other, both included."""
        return range(place_at(self.times, start_ns) + 1, place_at(self.times, end_ns + 1) + 1)

    @cached_property
    def apart(self) -> list[tuple[int, int]]:
        """(first place, last place) of every time in which masters are left out, or queues are frozen."""
        spans = []
        first = 0
        for place, row in enumerate(self.rows):
            if row.is_apart and not first:
                first = place
            elif first and not row.is_apart:
                spans.append((first, place))
                first = 0
        return [*spans, (first, len(self.records))] if first else spans


@dataclass(frozen=True, slots=True)
class _Stretch:
    title: str
    start_ns: int
    end_ns: int
    from_ns: int = 0
    """When the split begins: the board shows the queues before that."""
    shows: Literal["", "a split", "violations"] = ""


# ---- which stretches


def _violating(verdict: Mapping[str, Any]) -> Wrong:
    """The records of the first proof of each broken rule. A proof has "rule" and "records": [[master, place]]."""
    wrong: dict[Place, str] = {}
    rules: set[str] = set()
    for check in verdict.get("checks", ()):
        proofs = (check.get("details") or {}).get("proofs") or ()
        for proof in proofs if check.get("result") == "invalid" else ():
            rule = str(proof.get("rule", "")) if isinstance(proof, Mapping) else ""
            if rule and rule not in rules:
                rules.add(rule)
                for master, place in proof.get("records", ()):
                    wrong[master, place] = rule
    return wrong


def _stretches(masters: Sequence[_Master], wrong: Wrong) -> list[_Stretch]:
    """Stretches with violations first, then those in which a queue falls, then by time."""
    times = [
        (master.time_of(first), master.time_of(last)) for master in masters for first, last in master.apart
    ]
    apart = _united(times)
    by_name = {master.name: master for master in masters}
    wrong_ns = [by_name[name].time_of(place) for name, place in wrong if name in by_name]
    ranked: list[tuple[int, int, _Stretch]] = []
    for number, (from_ns, to_ns) in enumerate(apart):
        start_ns = max(from_ns - LEAD_NS, min(_progress_before(master, from_ns) for master in masters))
        next_ns = (
            apart[number + 1][0] if number + 1 < len(apart) else max(master.times[-1] for master in masters)
        )
        end_ns = min(max(_caught_up(master, to_ns) for master in masters), max(next_ns, to_ns))
        margin_ns = max((end_ns - start_ns) // 20, 1)
        start_ns, end_ns = max(0, start_ns - margin_ns), end_ns + margin_ns
        is_wrong = any(start_ns <= time_ns <= end_ns for time_ns in wrong_ns)
        wrong_ns = [time_ns for time_ns in wrong_ns if not start_ns <= time_ns <= end_ns]
        title = f"Split {number + 1} of {len(apart)}"
        rank = 0 if is_wrong else 1 if any(_falls(master, start_ns, end_ns) for master in masters) else 2
        ranked.append((rank, from_ns, _Stretch(title, start_ns, end_ns, from_ns, shows="a split")))
    for start_ns, end_ns in _united([(max(0, entry - NEAR_NS), entry + NEAR_NS) for entry in wrong_ns]):
        ranked.append((0, start_ns, _Stretch("Violations", start_ns, end_ns, shows="violations")))
    return [stretch for _, _, stretch in sorted(ranked, key=lambda entry: entry[:2])]


def _falls(master: _Master, start_ns: int, end_ns: int) -> bool:
    places = master.places(start_ns, end_ns)
    rows = master.rows[places.start - 1 : places.stop]
    return any(later.synced < row.synced or later.executed < row.executed for row, later in pairwise(rows))


def _united(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    united: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if united and start <= united[-1][1]:
            united[-1] = united[-1][0], max(end, united[-1][1])
        else:
            united.append((start, end))
    return united


def _progress_before(master: _Master, time_ns: int) -> int:
    """When the synchronised queue last grew before this time; if it never did, the first transaction."""
    before = master.records[: place_at(master.times, time_ns)]
    grown = (record.place for record in reversed(before) if record.kind in ("added", "caught-up"))
    first = (record.place for record in before if record.kind in ("made", "heard"))
    place = next(grown, 0) or next(first, 0)
    return master.time_of(place) if place else time_ns


def _caught_up(master: _Master, time_ns: int) -> int:
    """When the master had executed all that it knew at this time."""
    place = place_at(master.times, time_ns + 1)
    target = master.rows[place].synced + master.rows[place].incoming
    later = (number for number in range(place, len(master.rows)) if master.rows[number].executed >= target)
    return master.time_of(next(later, len(master.records)))


# ---- one stretch


def _stretch(masters: Sequence[_Master], stretch: _Stretch, wrong: Wrong, checks: LogChecks) -> Picture:
    sentences: list[str] = []
    columns: Columns = []
    match stretch.shows:
        case "a split":
            sentences, columns = _sentences(masters, stretch), _columns(masters, stretch)
            sentences += _by_phase(masters, stretch, checks)
        case "violations":
            sentences, columns = _violations(masters, stretch, wrong), _ends(masters, stretch)
    return {
        "title": stretch.title,
        "start_ns": stretch.start_ns,
        "end_ns": stretch.end_ns,
        "lanes": [_lane(master, stretch, wrong) for master in masters],
        "told": sentences,
        "board": board(columns, {master.name: master.records for master in masters}) if columns else None,
    }


def _lane(master: _Master, stretch: _Stretch, wrong: Wrong) -> Picture:
    places = master.places(stretch.start_ns, stretch.end_ns)
    slot_us = max((stretch.end_ns - stretch.start_ns) // POINTS // 1000, 1)
    before = master.rows[places.start - 1]
    points: list[list[int]] = [[0, *before[:3]]]
    rounds: list[int] = []
    marks: list[Picture] = []
    for place in places:
        record, row, time_ns = master.records[place - 1], master.rows[place], master.times[place - 1]
        if row[:3] != before[:3]:
            falls = row.synced < before.synced or row.executed < before.executed
            _put(points, [(time_ns - stretch.start_ns) // 1000, *row[:3]], slot_us, is_kept=falls)
        if record.kind == "added":
            rounds.append((time_ns - stretch.start_ns) // 1000)
        mark = _mark(record, before, row, wrong.get((master.name, place), ""))
        if mark is not None:
            marks.append({"at_ns": time_ns, **mark})
        before = row
    return {
        "name": master.name,
        "points": " ".join(",".join(map(str, point)) for point in points),
        "rounds": " ".join(map(str, rounds)) if len(rounds) <= ROUNDS_MAX else "",
        "spans": _spans(master, stretch),
        **_fitting(marks),
    }


def _fitting(marks: Sequence[Picture]) -> Picture:
    """All marks if they fit; else the large ones, because a part of the small ones would look like all."""
    large = [mark for mark in marks if mark["kind"] not in SMALL]
    shown = marks if len(marks) <= MARKS_MAX else large
    shown = sorted(shown, key=lambda mark: MARKS.index(mark["kind"]))[:MARKS_MAX]
    return {"marks": shown, "marks_left_out": len(marks) - len(shown)}


def _spans(master: _Master, stretch: _Stretch) -> list[Picture]:
    spans: list[Picture] = []
    for first, last in master.apart:
        edges = [
            place
            for place in range(first, last)
            if place == first or _state(master.rows[place]) != _state(master.rows[place - 1])
        ]
        for begin, end in pairwise((*edges, last)):
            kind, text = _state(master.rows[begin])
            is_open = end == len(master.records) and master.rows[end].is_apart
            from_ns, to_ns = master.time_of(begin), stretch.end_ns if is_open else master.time_of(end)
            if from_ns <= stretch.end_ns and to_ns >= stretch.start_ns:
                spans.append({"from_ns": from_ns, "to_ns": to_ns, "kind": kind, "text": text})
    return spans


def _put(points: list[list[int]], point: list[int], slot_us: int, *, is_kept: bool) -> None:
    """Add a point. Of a slot of time only the last one stays, and both ends of every fall of a queue."""
    is_same_slot = points[-1][0] // slot_us == point[0] // slot_us
    ends_fall = any(
        later[queue] < before[queue] for before, later in pairwise(points[-2:]) for queue in (1, 3)
    )
    if is_same_slot and not is_kept and not ends_fall and len(points) > 1:
        points[-1] = point
    else:
        points.append(point)


def _state(queues: Row | Queues) -> tuple[str, str]:
    if queues.is_recovering:
        return RECOVERING, "recovering"
    return (SPLIT, f"without {_names(queues.missing)}") if queues.missing else ("", "")


def _mark(record: Placed, before: Row, row: Row, rule: str) -> Picture | None:
    """The mark of a record, without its time; None if it has none. A fall of a queue has both its ends."""
    if rule:
        text = f"violation of {rule}: record {record.place} ({record.kind})"
        return {"kind": "wrong", "label": rule, "text": text}
    match [record.kind, *record.fields]:
        case ["life", life, _] if life > 1:
            return {"kind": "start", "label": "starts again", "text": f"starts again (process {life})"}
        case ["split", missing, backup]:
            kept, label = _backup(backup)
            return {"kind": "split", "label": label, "text": f"leaves out {_names(missing)}{kept}"}
        case ["recovering", epoch, backup]:
            kept, label = _backup(backup)
            return {
                "kind": "backup",
                "label": label,
                "text": f"freezes its queues for recovery {epoch + 1}{kept}",
            }
        case ["thawed"]:
            return {"kind": "split", "label": "thaws", "text": "goes on until the last digest comes"}
        case ["recovered", epoch, common, winner, votes, *_]:
            count = _counted(dict(votes).get(winner, 0), "vote")
            return {
                "kind": "vote",
                "label": f"branch of {winner} wins, {count}",
                "text": f"recovery {epoch}: the branch of {winner} wins with {count}",
                **({"from": before.synced, "to": common} if common < before.synced else {}),
            }
        case ["restored", index, _]:
            return {
                "kind": "restored",
                "label": f"restored: {before.executed} → {index}",
                "text": f"restores the backup: from entry {before.executed} back to {index}",
                "from": before.executed,
                "to": row.executed,
            }
        case ["rejoined", *_]:
            return {"kind": "vote", "label": "joins", "text": "joins the masters that it had left out"}
        case ["caught-up", _, refs, source]:
            return {
                "kind": "caught-up",
                "label": "",
                "text": f"takes {_counted(len(refs), 'entry')} from {source}",
            }
        case [("worker-lost" | "worker-back") as kind, worker]:
            text = f"worker {worker} {'lost' if kind == 'worker-lost' else 'back'}"
            return {"kind": "worker", "label": "", "text": text}
    return None


def _backup(state: Sequence[Any] | None) -> tuple[str, str]:
    """The backup in words for the sentence, and for the label."""
    return (f"; backup of the state at entry {state[0]}", f"backup at {state[0]}") if state else ("", "")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun if count == 1 else PLURALS[noun]}"


def _names(names: Iterable[str]) -> str:
    return ", ".join(names)


# ---- in words


def _sentences(masters: Sequence[_Master], stretch: _Stretch) -> list[str]:
    """A sentence for each thing that happened; masters that did the same share one."""
    splits: dict[str, list[str]] = {}
    votes: dict[str, list[str]] = {}
    restores: list[str] = []
    back: list[str] = []
    for master in masters:
        for place in master.places(stretch.start_ns, stretch.end_ns):
            record, executed = master.records[place - 1], master.rows[place - 1].executed
            match [record.kind, *record.fields]:
                case ["split", missing, backup]:
                    kept = f" Backup of the state at entry {backup[0]}." if backup else ""
                    splits.setdefault(f"out {_names(missing)}.{kept}", []).append(master.name)
                case ["recovered", epoch, _, winner, won, *_]:
                    tally = ", ".join(f"{name} {count}" for name, count in sorted(dict(won).items()))
                    votes.setdefault(
                        f"recovery {epoch}: the branch of {winner} wins. Votes for the branch of each master: {tally}.",
                        [],
                    ).append(master.name)
                case ["rejoined", *_]:
                    back.append(master.name)
                case ["restored", index, _]:
                    again = max(executed - index, 0)
                    restores.append(
                        f"{master.name} restores its backup: from entry {executed} back to {index}. "
                        f"It executes {_counted(again, 'transaction')} again, or others in their place."
                    )
    return [
        *(
            f"{_names(names)} {'leaves' if len(names) == 1 else 'leave'} {words}"
            for words, names in _once(splits)
        ),
        *(
            f"{_names(names)} finish{'es' if len(names) == 1 else ''} {words}"
            for words, names in _once(votes)
        ),
        *restores,
        *(
            [
                f"{_names(dict.fromkeys(back))} {'joins' if len({*back}) == 1 else 'join'} masters that were left out."
            ]
            if back
            else []
        ),
    ]


def _once(by_words: Mapping[str, Sequence[str]]) -> Iterable[tuple[str, Sequence[str]]]:
    """Each name once: a master may leave out the same masters again."""
    return ((words, [*dict.fromkeys(names)]) for words, names in by_words.items())


def _by_phase(masters: Sequence[_Master], stretch: _Stretch, checks: LogChecks) -> list[str]:
    phases = {
        (master.name, place): _phase(master, place)
        for master in masters
        for place in master.places(stretch.start_ns, stretch.end_ns)
    }
    return phase_sentences(checks, {*phases.values()}, lambda name, place: phases.get((name, place), ""))


def _phase(master: _Master, place: int) -> str:
    row = master.rows[place]
    if row.is_apart:
        return FROZEN if row.is_recovering else APART
    return BEFORE if any(first > place for first, _ in master.apart) else AFTER


def _violations(masters: Sequence[_Master], stretch: _Stretch, wrong: Wrong) -> list[str]:
    return [
        f"Violation of {rule}: record {place} of {master.name} ({master.records[place - 1].kind})."
        for master in masters
        for (name, place), rule in wrong.items()
        if name == master.name and place in master.places(stretch.start_ns, stretch.end_ns)
    ]


# ---- boards


def _ends(masters: Sequence[_Master], stretch: _Stretch) -> Columns:
    return [
        (title, {master.name: place_at(master.times, time_ns) for master in masters})
        for title, time_ns in (("at the start", stretch.start_ns), ("at the end", stretch.end_ns))
    ]


def _columns(masters: Sequence[_Master], stretch: _Stretch) -> Columns:
    """Moments of a split, each by the last record of every master up to it."""
    before, apart, after, again = {}, {}, {}, {}
    for master in masters:
        here = master.places(stretch.start_ns, stretch.end_ns)
        begins = place_at(master.times, stretch.from_ns) + 1
        first, last = next((span for span in master.apart if span[0] in here), (begins, here.stop - 1))
        frozen = (place for place in range(first, last) if master.rows[place].is_recovering)
        before[master.name], after[master.name] = first - 1, last
        apart[master.name] = max(next(frozen, last) - 1, 0)  # 0: its first record comes later
        target = master.rows[last].synced + master.rows[last].incoming
        ordered = (place for place in range(last, here.stop) if master.rows[place].synced >= target)
        again[master.name] = next(ordered, here.stop - 1)
    ends = [master.records[after[master.name] - 1].kind for master in masters if after[master.name]]
    if "recovered" not in ends:
        return [("before the split", before), ("at its end", after)]
    return [
        ("before the split", before),
        ("the parts apart", apart),
        ("after the vote", after),
        ("in one order again", again),
    ]


def board(columns: Sequence[tuple[str, Mapping[str, int]]], logs: Mapping[str, Sequence[Placed]]) -> Picture:
    """The queues of every master at some moments. A column: its name, and how many records each master had.

    Boxes begin a little before the first entry that not all masters have in common in the second column.
    """
    queues: dict[str, list[Queues]] = {}
    for name, records in logs.items():
        places = [min(each.get(name, 0), len(records)) for _, each in columns]
        found = at(records, places)
        queues[name] = [found[place] for place in places]
    apart = [each[min(1, len(each) - 1)].synced for each in queues.values()]
    base = max(0, min(common_length(apart[0], other) for other in apart) - LEAD)
    return {
        "columns": [name for name, _ in columns],
        "rows": [
            {"name": name, "cells": [_cell(each, base) for each in row]} for name, row in queues.items()
        ],
        "origins": {
            ref.id: ref.origin
            for row in queues.values()
            for each in row
            for ref in (*each.synced[base:][:BOXES], *each.waiting[:BOXES])
        },
    }


def _cell(queues: Queues, base: int) -> Picture:
    synced, incoming = queues.synced[base:], queues.waiting
    return {
        "synced": [ref.id for ref in synced[:BOXES]],
        "more_synced": max(len(synced) - BOXES, 0),
        "incoming": [ref.id for ref in incoming[:BOXES]],
        "more_incoming": max(len(incoming) - BOXES, 0),
        "before": min(base, len(queues.synced)),
        "executed": queues.executed,
        "about": _state(queues)[1],
    }
