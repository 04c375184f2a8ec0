"""Two nights of a plan side by side, and the trend over many. Pure: journals in, values out; no Spark, no clock.

| an anomaly is | if |
|---|---|
| new | runs of the later night show its fingerprint, and no run of the earlier one |
| more frequent | both nights show it, and chance makes a night so much worse less often than once in fifty nights |
| less frequent | the same, better |
| as frequent | both nights show it, and the difference may be chance |
| gone | the later night does not show it, and chance would hide it less often than once in fifty nights |
| not seen | the later night does not show it, but ran too few runs of its cells to say more |
| not tried | the later night has no conclusive run of its cells |

A rare turn that the earlier night reached and the later one did not is *lost* or *not reached*, as an anomaly is *gone*
or *not seen*; its counts are of the runs that say which rare turns they reached.

Chance is computed exactly and cell by cell (`harness.campaigns.chance`). Only conclusive runs count: valid ones and
anomalies. Several fingerprints share the bound of one in fifty (Bonferroni), so it holds for a night as a whole. A run
shows a fingerprint also if a different one leads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from checkers.history.values import many
from harness.campaigns.chance import Count, Stratum, chances
from harness.campaigns.coverage import States, counted
from harness.campaigns.journal import OUTCOMES, Ended, Journal
from harness.campaigns.summary import NO_FINGERPRINT

Change = Literal["new", "more frequent", "as frequent", "less frequent", "not tried", "not seen", "gone"]
CHANGES: tuple[Change, ...] = get_args(Change)
FALSE_ALARM = Fraction(1, 50)
"""Of nights without any change, the largest share in which chance makes some anomaly more frequent; so for all that is
said by the exact test. What is new, or undecided for the first time, is said whatever its chance."""
CONCLUSIVE = ("valid", "anomaly")


@dataclass(frozen=True, slots=True)
class Night:
    """One campaign in numbers. `kinds`: faults that took effect → runs, `rare_turns`: those that came about → runs;
    None where the journal does not say."""

    name: str
    begun: str
    digest: str
    counts: Mapping[str, int]
    fingerprints: int
    kinds: Mapping[str, int] | None
    rare_turns: Mapping[str, int] | None
    cells: int
    not_reached: int
    spent_s: float

    @property
    def runs(self) -> int:
        return sum(self.counts.values())

    @property
    def day(self) -> str:
        """2026-11-23 02:17, in UTC."""
        return self.begun[:16].replace("T", " ")


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One fingerprint on two nights. `before` and `after` count the conclusive runs of the cells that ever showed it;
    `chance`: the probability of so large a difference if nothing has changed; 1 where no test applies.
    """

    fingerprint: str
    shape: str
    change: Change
    before: Count
    after: Count
    chance: Fraction
    run: str
    """A run that shows it, of the later night if there is one."""
    was_tried: bool = True
    """Of a new anomaly: whether the earlier night had conclusive runs of its cells."""


Cover = Literal["lost", "not reached", "not tried", "added", ""]


@dataclass(frozen=True, slots=True)
class Turn:
    """One rare turn on two nights, in the runs of the cells that ever reached it. `change`: "" if both reached it."""

    name: str
    change: Cover
    before: Count
    after: Count
    chance: Fraction


@dataclass(frozen=True, slots=True)
class Undecided:
    """The runs of one cell that ended unknown, inconclusive or broken. `chance`: of so large an increase."""

    cell: str
    before: Count
    after: Count
    words: str
    """The outcomes of the later night that are neither valid nor anomalies, with their counts."""
    is_worse: bool
    chance: Fraction


@dataclass(frozen=True, slots=True)
class Turned:
    """A cell and seed that was conclusive on the earlier night, and is not on the later one."""

    cell: str
    seed: int
    before: str
    after: str
    run: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The later night against the earlier one."""

    before: Night
    after: Night
    anomalies: tuple[Anomaly, ...]
    undecided: tuple[Undecided, ...]
    turned: tuple[Turned, ...]
    kinds: tuple[tuple[str, Count, Count], ...] | None
    """Each kind of fault: runs in which it took effect, on both nights; None if a journal does not say."""
    turns: tuple[Turn, ...] | None
    """Each rare turn that either night reached; None if a journal does not say."""
    cells_lost: tuple[str, ...]
    """Cells with conclusive runs on the earlier night, and none on the later one."""
    cells_new: tuple[str, ...]
    cells_both: int

    def of(self, change: Change) -> tuple[Anomaly, ...]:
        return tuple(anomaly for anomaly in self.anomalies if anomaly.change == change)

    @property
    def kinds_lost(self) -> tuple[str, ...]:
        return tuple(name for name, before, after in self.kinds or () if before.hits and not after.hits)

    def turns_of(self, change: Cover) -> tuple[str, ...]:
        return tuple(turn.name for turn in self.turns or () if turn.change == change)

    @property
    def exit_code(self) -> int:
        """1: an anomaly is new or more frequent; 3: the later night shows less than the earlier one (cells, kinds of
        faults or rare turns are missing, runs became undecided), or has no cell in common with it; else 0.
        """
        if self.of("new") or self.of("more frequent"):
            return 1
        is_less = (
            self.cells_lost or self.kinds_lost or self.turns_of("lost") or self.turned or not self.cells_both
        )
        return 3 if is_less or any(cell.is_worse for cell in self.undecided) else 0

    @property
    def sentence(self) -> str:
        counts = Counter(row.change for row in self.anomalies)
        changes = [f"{counts[change]} {change}" for change in CHANGES if counts[change]]
        worse = sum(row.is_worse for row in self.undecided)
        words = ["anomalies: " + ", ".join(changes) if changes else "no anomaly on either night"]
        if worse:
            words.append(f"more undecided runs in {many(worse, 'cell')}")
        if self.turned:
            words.append(f"{many(len(self.turned), 'seed')} became undecided")
        if self.cells_lost:
            words.append(f"{many(len(self.cells_lost), 'cell')} without a conclusive run now")
        if self.kinds_lost:
            words.append(f"no longer in effect: {', '.join(self.kinds_lost)}")
        if lost := self.turns_of("lost"):
            words.append(f"{many(len(lost), 'rare turn')} no longer reached: {', '.join(lost)}")
        if not self.cells_both:
            words.append("no cell has conclusive runs on both nights")
        return "; ".join(words)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": "qsync-nights",
            "version": 1,
            "before": self.before.begun,
            "after": self.after.begun,
            "exit_code": self.exit_code,
            "sentence": self.sentence,
            "anomalies": [
                {
                    "fingerprint": row.fingerprint,
                    "shape": row.shape,
                    "change": row.change,
                    "before": [row.before.hits, row.before.runs],
                    "after": [row.after.hits, row.after.runs],
                    "chance": float(row.chance),
                    "run": row.run,
                }
                for row in self.anomalies
            ],
            "undecided": [
                {
                    "cell": row.cell,
                    "before": [row.before.hits, row.before.runs],
                    "after": [row.after.hits, row.after.runs],
                    "words": row.words,
                    "is_worse": row.is_worse,
                    "chance": float(row.chance),
                }
                for row in self.undecided
            ],
            "turned": [{"cell": row.cell, "seed": row.seed, "run": row.run} for row in self.turned],
            "cells_lost": list(self.cells_lost),
            "cells_new": list(self.cells_new),
            "kinds": None
            if self.kinds is None
            else {name: [before.hits, after.hits] for name, before, after in self.kinds},
            "rare_turns": None
            if self.turns is None
            else {
                turn.name: {
                    "change": turn.change,
                    "before": [turn.before.hits, turn.before.runs],
                    "after": [turn.after.hits, turn.after.runs],
                    "chance": float(turn.chance),
                }
                for turn in self.turns
            },
        }


def night(book: Journal) -> Night:
    """The numbers of one campaign."""
    counts: Counter[str] = Counter(run.outcome for run in book.ended)
    return Night(
        name=book.head.name,
        begun=book.head.begun,
        digest=book.head.digest,
        counts={word: counts[word] for word in OUTCOMES},
        fingerprints=len({fingerprint for run in book.ended for fingerprint in _leading(run)}),
        kinds=_counts(book.ended, "kinds_in_effect"),
        rare_turns=_counts(book.ended, "rare_turns"),
        cells=len({run.cell for run in book.ended}),
        not_reached=len(book.left()),
        spent_s=book.spent_s,
    )


def trend(books: Iterable[Journal], last: int) -> list[Night]:
    """The last nights with any run, oldest first."""
    nights = [night(book) for book in sorted(books, key=lambda book: book.head.begun) if book.ended]
    return nights[-last:]


def previous(book: Journal, others: Iterable[Journal]) -> Journal | None:
    """The newest of the other campaigns that has any run and began before this one."""
    earlier = [
        other
        for other in others
        if other.ended and other.folder != book.folder and other.head.begun <= book.head.begun
    ]
    return max(earlier, key=lambda other: other.head.begun, default=None)


def compare(earlier: Journal, later: Journal) -> Comparison:
    """The later night against the earlier one."""
    before, after = _by_cell(earlier.ended), _by_cell(later.ended)
    cells = list(dict.fromkeys((*after, *before)))
    tried_before = {cell for cell in before if _conclusive(before[cell])}
    tried_after = {cell for cell in after if _conclusive(after[cell])}
    return Comparison(
        before=night(earlier),
        after=night(later),
        anomalies=tuple(_anomalies(cells, before, after)),
        undecided=tuple(_undecided(cells, before, after)),
        turned=tuple(_turned(earlier.ended, later.ended)),
        kinds=_both_kinds(earlier.ended, later.ended),
        turns=_turns(cells, before, after),
        cells_lost=tuple(cell for cell in cells if cell in tried_before - tried_after),
        cells_new=tuple(cell for cell in cells if cell in tried_after - tried_before),
        cells_both=len(tried_before & tried_after),
    )


Runs = Mapping[str, Sequence[Ended]]


def _by_cell(ended: Iterable[Ended]) -> dict[str, list[Ended]]:
    cells: dict[str, list[Ended]] = {}
    for run in ended:
        cells.setdefault(run.cell, []).append(run)
    return cells


def _conclusive(runs: Iterable[Ended]) -> list[Ended]:
    return [run for run in runs if run.outcome in CONCLUSIVE]


def _shown(run: Ended) -> tuple[str, ...]:
    """All fingerprints of a run, the leading one first."""
    return (run.fingerprints or (NO_FINGERPRINT,)) if run.outcome == "anomaly" else ()


def _leading(run: Ended) -> tuple[str, ...]:
    return _shown(run)[:1]


def _anomalies(cells: Sequence[str], before: Runs, after: Runs) -> Iterator[Anomaly]:
    """Every fingerprint of either night, with a run that it leads if there is one."""
    first: dict[str, Ended] = {}
    runs = [run for night in (after, before) for cell in cells for run in night.get(cell, ())]
    for of_run in (_leading, _shown):
        for run in runs:
            for fingerprint in of_run(run):
                first.setdefault(fingerprint, run)
    was, now = (
        {cell: [_shown(run) for run in _conclusive(night.get(cell, ()))] for cell in cells}
        for night in (before, after)
    )
    strata = {fingerprint: _strata(fingerprint, cells, was, now) for fingerprint in first}
    bound = _bound(strata.values())
    anomalies = [_anomaly(name, run, strata[name], bound) for name, run in first.items()]
    yield from sorted(
        anomalies,
        key=lambda anomaly: (CHANGES.index(anomaly.change), -anomaly.after.hits, anomaly.fingerprint),
    )


Showing = Mapping[str, Sequence[tuple[str, ...]]]
"""Cell → the fingerprints, or the rare turns, that each of its runs shows."""


def _strata(name: str, cells: Sequence[str], was: Showing, now: Showing) -> list[Stratum]:
    """Of the cells that show this name on either night."""

    def count(runs: Sequence[tuple[str, ...]]) -> Count:
        return Count(sum(name in run for run in runs), len(runs))

    pairs = [(count(was[cell]), count(now[cell])) for cell in cells]
    return [(old, new) for old, new in pairs if old.hits or new.hits]


def _bound(tests: Iterable[Sequence[Stratum]]) -> Fraction:
    """The share of `FALSE_ALARM` of each test; what the earlier night does not show is not tested."""
    tested = sum(any(old.hits for old, _ in strata) for strata in tests)
    return FALSE_ALARM / max(tested, 1)


def _totals(strata: Sequence[Stratum]) -> tuple[Count, Count]:
    return sum((old for old, _ in strata), Count()), sum((new for _, new in strata), Count())


def _anomaly(fingerprint: str, first: Ended, strata: Sequence[Stratum], bound: Fraction) -> Anomaly:
    was, now = _totals(strata)
    change, chance = _change(was, now, strata, bound)
    return Anomaly(
        fingerprint=fingerprint,
        shape=dict(zip(first.fingerprints, first.shapes, strict=False)).get(fingerprint, first.sentence),
        change=change,
        before=was,
        after=now,
        chance=chance,
        run=first.run,
        was_tried=change != "new" or was.runs > 0,
    )


def _change(was: Count, now: Count, strata: Sequence[Stratum], bound: Fraction) -> tuple[Change, Fraction]:
    if not was.hits:
        return "new", Fraction(1)
    if not now.runs:
        return "not tried", Fraction(1)
    more, fewer = chances(strata)
    if not now.hits:
        return ("gone" if fewer <= bound else "not seen"), fewer
    if more <= bound:
        return "more frequent", more
    if fewer <= bound:
        return "less frequent", fewer
    return "as frequent", min(more, fewer)


def _undecided(cells: Sequence[str], before: Runs, after: Runs) -> Iterator[Undecided]:
    """Cells with undecided runs on either night; those that became worse first."""
    pairs = {cell: (_open(before.get(cell, ())), _open(after.get(cell, ()))) for cell in cells}
    pairs = {cell: (was, now) for cell, (was, now) in pairs.items() if was.hits or now.hits}
    bound = FALSE_ALARM / max(len(pairs), 1)
    rows = []
    for cell, (was, now) in pairs.items():
        chance, _ = chances([(was, now)])
        is_first = now.hits > 0 and was.runs > 0 and not was.hits
        words = Counter(run.outcome for run in after.get(cell, ()) if run.outcome not in CONCLUSIVE)
        outcomes = ", ".join(f"{count} {word}" for word, count in words.items())
        rows.append(Undecided(cell, was, now, outcomes, is_first or chance <= bound, chance))
    yield from sorted(rows, key=lambda undecided: (not undecided.is_worse, -undecided.after.hits))


def _open(runs: Sequence[Ended]) -> Count:
    return Count(sum(run.outcome not in CONCLUSIVE for run in runs), len(runs))


def _turned(before: Iterable[Ended], after: Iterable[Ended]) -> Iterator[Turned]:
    was = {(run.cell, run.seed): run for run in before}
    for run in after:
        old = was.get((run.cell, run.seed))
        if old is not None and old.outcome in CONCLUSIVE and run.outcome not in CONCLUSIVE:
            yield Turned(run.cell, run.seed, old.outcome, run.outcome, run.run, run.sentence)


def _counts(ended: Iterable[Ended], of: States) -> dict[str, int] | None:
    counts = counted(ended, of)
    return None if counts is None else dict(sorted(counts[1].items()))


def _both_kinds(
    before: Sequence[Ended], after: Sequence[Ended]
) -> tuple[tuple[str, Count, Count], ...] | None:
    was, now = counted(before, "kinds_in_effect"), counted(after, "kinds_in_effect")
    if was is None or now is None:
        return None
    return tuple(
        (name, Count(was[1].get(name, 0), was[0]), Count(now[1].get(name, 0), now[0]))
        for name in sorted({*was[1], *now[1]})
    )


def _turns(cells: Sequence[str], before: Runs, after: Runs) -> tuple[Turn, ...] | None:
    """Every rare turn that a run of either night reached, lost ones first; None if a journal does not say."""
    was = {cell: _saying(before.get(cell, ())) for cell in cells}
    now = {cell: _saying(after.get(cell, ())) for cell in cells}
    if not any(was.values()) or not any(now.values()):
        return None
    reached = {name: None for night in (was, now) for runs in night.values() for run in runs for name in run}
    strata = {name: _strata(name, cells, was, now) for name in reached}
    bound = _bound(strata.values())
    turns = [_turn(name, counts, bound) for name, counts in strata.items()]
    return tuple(sorted(turns, key=lambda turn: (get_args(Cover).index(turn.change), turn.name)))


def _saying(runs: Iterable[Ended]) -> list[tuple[str, ...]]:
    return [turns for run in runs if (turns := run.rare_turns) is not None]


def _turn(name: str, strata: Sequence[Stratum], bound: Fraction) -> Turn:
    was, now = _totals(strata)
    fewer = chances(strata)[1] if was.hits and not now.hits else Fraction(1)
    change: Cover = ""
    if not was.hits:
        change = "added"
    elif not now.runs:
        change = "not tried"
    elif not now.hits:
        change = "lost" if fewer <= bound else "not reached"
    return Turn(name, change, was, now, fewer)
