"""The states that a night reached: kinds of faults that took effect, and rare turns of the table *sometimes*.

Only runs that say which states they reached count. Runs without evidence and journals of older versions do not say.
A rare turn may come about in one run of fifty, so a night that misses one has not lost it: on that, see
`harness.campaigns.compare`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harness.campaigns.journal import Ended, Journal
from harness.pages.tables_page import Cell, Section

States = Literal["kinds_in_effect", "rare_turns"]
"""A field of `Ended`: the states of one kind that a run reached; None if it does not say."""


@dataclass(frozen=True, slots=True)
class Reached:
    """`runs`: how many say; `counts`: state → runs that reached it; `never`: states that the night could have
    reached, and that none of its runs reached."""

    runs: int
    counts: Mapping[str, int]
    never: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"runs": self.runs, "reached": dict(self.counts), "never": list(self.never)}


@dataclass(frozen=True, slots=True)
class Covered:
    """None: no run of the night says which states it reached."""

    kinds: Reached | None
    rare_turns: Reached | None

    def to_json(self) -> dict[str, Any]:
        both = {"kinds": self.kinds, "rare_turns": self.rare_turns}
        return {name: None if reached is None else reached.to_json() for name, reached in both.items()}


def covered(book: Journal) -> Covered:
    """The states that a campaign reached, at its end or so far."""
    return Covered(
        kinds=_reached(book.ended, "kinds_in_effect", _never(book.ended)),
        rare_turns=_reached(book.ended, "rare_turns", book.head.rare_turns),
    )


def counted(ended: Iterable[Ended], of: States) -> tuple[int, dict[str, int]] | None:
    """(runs that say, state → runs that reached it); None if no run says."""
    said: list[tuple[str, ...]] = [states for run in ended if (states := getattr(run, of)) is not None]
    return (len(said), dict(Counter(state for states in said for state in states))) if said else None


def _reached(ended: Sequence[Ended], of: States, possible: Sequence[str]) -> Reached | None:
    states = counted(ended, of)
    if states is None:
        return None
    runs, counts = states
    order = {name: place for place, name in enumerate(possible)}
    names = sorted(counts, key=lambda name: (order.get(name, len(order)), name))
    return Reached(
        runs, {name: counts[name] for name in names}, tuple(name for name in possible if name not in counts)
    )


def _never(ended: Sequence[Ended]) -> tuple[str, ...]:
    """Kinds of faults that plans ask for and that took effect in no run."""
    seen = {kind for run in ended for kind in (*run.observed, *(run.kinds_in_effect or ()))}
    return tuple(sorted({kind for run in ended for kind in run.not_observed} - seen))


def section(reached: Covered) -> Section:
    """The states for a page, those that no run reached included."""
    rows = [(Cell(name, "label"), Cell(text, "prose")) for name, text in lines(reached)]
    return Section(
        "States covered",
        "Kinds of faults that took effect, and rare turns that nodes and records counted; in brackets the runs that "
        "reached each. A night proves nothing about a state that it never reached.",
        ("", " "),
        rows,
        empty="The runs of this night do not say which states they reached.",
    )


def lines(states: Covered) -> Iterator[tuple[str, str]]:
    """(title, the states in words), for a page and for Markdown."""
    parts = (
        (states.kinds, "faults that took effect", "faults that never took effect"),
        (states.rare_turns, "rare turns that came about", "rare turns that never came about"),
    )
    for reached, title, title_of_never in parts:
        if reached is not None:
            yield title, "; ".join(f"{name} ({runs:,})" for name, runs in reached.counts.items()) or "none"
            if reached.never:
                yield title_of_never, "; ".join(reached.never)
    said = sorted({f"{reached.runs:,}" for reached, _, _ in parts if reached is not None})
    if said:
        yield "runs that say", " and ".join(said)
