"""A comparison of two nights in words: sections of a page, and lines for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from checkers.history.values import many
from harness.campaigns.chance import Count
from harness.campaigns.compare import Anomaly, Change, Comparison, Cover, Night
from harness.campaigns.journal import OUTCOMES
from harness.campaigns.summary import tone
from harness.pages.tables_page import Cell, Page, Section

STYLES: dict[Change, str] = {
    "new": "anomaly",
    "more frequent": "anomaly",
    "as frequent": "unknown",
    "less frequent": "unknown",
    "not tried": "inconclusive",
    "not seen": "inconclusive",
    "gone": "valid",
}
COLOURS: dict[Change, str] = {"new": "red", "more frequent": "red", "gone": "green"}
COVER_STYLES: dict[Cover, str] = {
    "lost": "anomaly",
    "not reached": "unknown",
    "not tried": "inconclusive",
    "added": "valid",
}
Link = Callable[[str], str]
"""A run's folder below results/ → the address of its page, "" if it has none."""


def page(comparison: Comparison, nights: Sequence[Night], link: Link) -> Page:
    """Two nights side by side, as a page of its own."""
    return Page(
        title=f"{comparison.after.name}: {comparison.before.day} and {comparison.after.day}",
        crumbs=("nightly", comparison.after.name, f"{comparison.before.day} → {comparison.after.day}"),
        tone=tone(comparison.exit_code),
        badge={0: "NO WORSE", 1: "WORSE", 3: "SHOWS LESS"}[comparison.exit_code],
        sentence=comparison.sentence[:1].upper() + comparison.sentence[1:] + ".",
        facts=(
            ("earlier night", comparison.before.day, _numbers(comparison.before)),
            ("later night", comparison.after.day, _numbers(comparison.after)),
            ("cells on both", f"{comparison.cells_both:,}", "with conclusive runs"),
        ),
        sections=(*sections(comparison, link), *([trend_section(nights)] if nights else [])),
    )


def sections(comparison: Comparison, link: Link) -> Iterator[Section]:
    """The differences of the later night: anomalies, undecided runs, coverage."""
    yield _anomalies(comparison, link)
    yield _undecided(comparison, link)
    yield _coverage(comparison)


def _anomalies(nights: Comparison, link: Link) -> Section:
    rows = [
        (
            Cell(anomaly.change, f"word {STYLES[anomaly.change]}"),
            Cell(anomaly.fingerprint, "code"),
            Cell(anomaly.shape, "prose"),
            str(anomaly.before),
            str(anomaly.after),
            _why(anomaly),
            Cell(anomaly.run, link=link(anomaly.run)) if link(anomaly.run) else "",
        )
        for anomaly in nights.anomalies
    ]
    caption = (
        f"The night of {nights.after.day} against that of {nights.before.day} (UTC). Counts are of conclusive runs, in "
        "the cells that showed the anomaly on either night. “More frequent” and “gone” are said by an exact test, "
        "and by chance at most once in fifty nights."
        + (" The plan's file changed between the two." if nights.before.digest != nights.after.digest else "")
    )
    return Section(
        f"Since {nights.before.day}",
        caption,
        ("change", "fingerprint", "what", "before", "after", "chance alone", "look at"),
        rows,
        frozenset({"before", "after"}),
        "No anomaly on either night.",
    )


def _why(anomaly: Anomaly) -> str:
    match anomaly.change:
        case "new":
            return "" if anomaly.was_tried else "its cells did not run before"
        case "not tried":
            return "its cells have no conclusive run"
        case _:
            return in_words(float(anomaly.chance))


def in_words(chance: float) -> str:
    """A probability in words: `25%`, `1 in 40`."""
    if chance >= 0.1:
        return f"{chance:.0%}"
    return f"1 in {1 / chance:,.0f}" if chance > 1e-6 else "less than 1 in a million"


def _undecided(comparison: Comparison, link: Link) -> Section:
    rows: list[tuple[str | Cell, ...]] = [
        (
            Cell("became undecided", "word unknown"),
            entry.cell,
            f"seed {entry.seed}: {entry.before}",
            entry.after,
            Cell(entry.sentence, "prose"),
            Cell(entry.run, link=link(entry.run)) if link(entry.run) else "",
        )
        for entry in comparison.turned
    ]
    rows += [
        (
            Cell("more", "word unknown") if entry.is_worse else "",
            entry.cell,
            str(entry.before),
            str(entry.after),
            entry.words,
            "",
        )
        for entry in comparison.undecided
    ]
    return Section(
        "Undecided runs",
        "Runs that ended unknown, inconclusive or broken, by cell, on the earlier night and on the later one.",
        ("change", "cell", "before", "after", "what", "look at"),
        rows,
        frozenset({"before", "after"}),
        "Every run of both nights was decided.",
    )


def _coverage(comparison: Comparison) -> Section:
    rows: list[tuple[str | Cell, ...]] = [
        (_kind_change(before, after), f"fault {name}", str(before), str(after))
        for name, before, after in comparison.kinds or ()
    ]
    rows += [
        (
            Cell(turn.change, f"word {COVER_STYLES[turn.change]}"),
            f"rare turn: {turn.name}",
            str(turn.before),
            str(turn.after),
        )
        for turn in comparison.turns or ()
        if turn.change not in ("", "not tried")
    ]
    if not_tried := comparison.turns_of("not tried"):
        names = Cell(
            f"{len(not_tried):,} rare turns of cells that lack runs: {'; '.join(not_tried)}", "prose"
        )
        rows.append((Cell("not tried", f"word {COVER_STYLES['not tried']}"), names, "reached", "no run"))
    rows += [
        (Cell("lost", "word anomaly"), f"cell {cell}", "conclusive", "none") for cell in comparison.cells_lost
    ]
    rows += [
        (Cell("added", "word valid"), f"cell {cell}", "none", "conclusive") for cell in comparison.cells_new
    ]
    both = len([turn for turn in comparison.turns or () if not turn.change])
    caption = (
        "Runs in which each kind of fault took effect; rare turns that one night reached and the other did not "
        f"({both:,} were reached on both); cells with conclusive runs on one night only. A rare turn is lost if chance "
        "would hide all of them in at most one of fifty nights, and else only not reached."
    )
    if comparison.kinds is None:
        caption += " The journal of one of the nights does not say which faults took effect."
    if comparison.turns is None:
        caption += " The journal of one of the nights does not say which rare turns came about."
    return Section(
        "Coverage",
        caption,
        ("change", "what", "before", "after"),
        rows,
        frozenset({"before", "after"}),
        "The same cells.",
    )


def _kind_change(before: Count, after: Count) -> Cell | str:
    if before.hits and not after.hits:
        return Cell("lost", "word anomaly")
    return Cell("added", "word valid") if after.hits and not before.hits else ""


def trend_section(nights: Sequence[Night]) -> Section:
    """A row for each night, the newest first."""
    rows: list[tuple[str | Cell, ...]] = [
        (
            night.day,
            Cell(parts=tuple(night.counts.items())),
            f"{night.runs:,}",
            *(f"{night.counts[word]:,}" if night.counts[word] else "" for word in night.counts),
            f"{night.fingerprints:,}",
            f"{night.cells:,}",
            "" if night.kinds is None else f"{len(night.kinds):,}",
            "" if night.rare_turns is None else f"{len(night.rare_turns):,}",
            f"{night.not_reached:,}" if night.not_reached else "",
            f"{night.spent_s:,.0f}",
        )
        for night in reversed(nights)
    ]
    columns = (
        *("night (UTC)", "outcomes", "runs", *OUTCOMES),
        *("fingerprints", "cells", "kinds of faults", "rare turns", "not reached", "seconds"),
    )
    return Section(
        "Trend",
        f"{many(len(nights), 'night')} of this plan, the last ones; kinds of faults are those that took effect, "
        "rare turns those that came about.",
        columns,
        rows,
        frozenset(columns[2:]),
    )


def _numbers(night: Night) -> str:
    return ", ".join(f"{count} {word}" for word, count in night.counts.items() if count) or "no run"


def lines(comparison: Comparison, nights: Sequence[Night]) -> Iterator[tuple[str, str]]:
    """(line, colour) for a terminal; colour "": none."""
    yield f"{comparison.after.name}: {comparison.before.day} → {comparison.after.day}", "bold"
    yield comparison.sentence, ""
    for anomaly in comparison.anomalies:
        counts = f"{anomaly.before} → {anomaly.after}"
        why = f"  ({_why(anomaly)})" if _why(anomaly) else ""
        yield (
            f"  {anomaly.change:<13} {anomaly.fingerprint:<10}  {counts:<20}  {anomaly.shape}{why}",
            COLOURS.get(anomaly.change, ""),
        )
    for turned in comparison.turned:
        yield f"  undecided     {turned.cell} seed {turned.seed}: {turned.before} → {turned.after}", "yellow"
    for cell in comparison.undecided:
        if cell.is_worse:
            numbers = f"{cell.before} → {cell.after}, {cell.words}"
            yield f"  undecided     {cell.cell}: {numbers}", "yellow"
    for name in comparison.cells_lost:
        yield f"  not covered   {name}", "yellow"
    for name in comparison.kinds_lost:
        yield f"  not in effect {name}", "yellow"
    for turn in comparison.turns or ():
        if turn.change in ("lost", "not reached"):
            numbers = f"{turn.before} → {turn.after}  ({in_words(float(turn.chance))})"
            colour = "yellow" if turn.change == "lost" else ""
            yield f"  {turn.change:<13} {turn.name}  {numbers}", colour
    if len(nights) > 2:
        yield f"the last {len(nights)} nights", "bold"
        for night in nights:
            yield (
                f"  {night.day}  {night.runs:>6,} runs  {_numbers(night)}; {night.fingerprints} fingerprints",
                "",
            )
