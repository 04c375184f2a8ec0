"""A comparison of two nights in words: sections of a page, and lines of a screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.campaigns.chance import Count
from harness.campaigns.compare import Anomaly, Change, Comparison, Cover, Night
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
    "": "",
}
TONES = {0: "valid", 1: "anomaly", 3: "inconclusive"}
Link = Callable[[str], str]
"""A run's folder below results/ → where its page is; empty if there is none."""


def no_link(run: str) -> str:
    return ""


def page(found: Comparison, nights: Sequence[Night], link: Link = no_link) -> Page:
    """Two nights side by side, as a page of its own."""
    tone = TONES[found.exit_code]
    return Page(
        title=f"{found.after.name}: {found.before.day} and {found.after.day}",
        crumbs=("nightly", found.after.name, f"{found.before.day} → {found.after.day}"),
        tone=tone,
        badge={0: "NO WORSE", 1: "WORSE", 3: "SHOWS LESS"}[found.exit_code],
        sentence=found.sentence[:1].upper() + found.sentence[1:] + ".",
        facts=(
            ("earlier night", found.before.day, _numbers(found.before)),
            ("later night", found.after.day, _numbers(found.after)),
            ("cells on both", f"{found.cells_both:,}", "with conclusive runs"),
        ),
        sections=(*sections(found, link), *([trend_section(nights)] if nights else [])),
    )


def sections(found: Comparison, link: Link = no_link) -> Iterator[Section]:
    """Anomalies, undecided runs, coverage: what is different on the later night."""
    yield _anomalies(found, link)
    yield _undecided(found, link)
    yield _coverage(found)


def _anomalies(found: Comparison, link: Link) -> Section:
    rows = [
        (
            Cell(each.change, f"word {STYLES[each.change]}"),
            Cell(each.fingerprint, "code"),
            Cell(each.shape, "prose"),
            str(each.before),
            str(each.after),
            _why(each),
            Cell(each.run, link=link(each.run)) if link(each.run) else "",
        )
        for each in found.anomalies
    ]
    caption = (
        f"The night of {found.after.day} against that of {found.before.day} (UTC). Counts are of conclusive runs, in "
        "the cells that showed the anomaly on either night. “More frequent” and “gone” are said by an exact test, "
        "and by chance at most once in fifty nights."
        + (" The plan's file changed between the two." if found.before.digest != found.after.digest else "")
    )
    return Section(
        f"Since {found.before.day}",
        caption,
        ("change", "fingerprint", "what", "before", "after", "chance alone", "look at"),
        rows,
        frozenset({"before", "after"}),
        "No anomaly on either night.",
    )


def _why(each: Anomaly) -> str:
    match each.change:
        case "new":
            return "" if each.was_tried else "its cells did not run before"
        case "not tried":
            return "its cells have no conclusive run"
        case _:
            return in_words(float(each.chance))


def in_words(chance: float) -> str:
    """A probability as a person says it."""
    if chance >= 0.1:
        return f"{chance:.0%}"
    return f"1 in {1 / chance:,.0f}" if chance > 1e-6 else "less than 1 in a million"


def _undecided(found: Comparison, link: Link) -> Section:
    rows: list[tuple[str | Cell, ...]] = [
        (
            Cell("became undecided", "word unknown"),
            each.cell,
            f"seed {each.seed}: {each.before}",
            each.after,
            Cell(each.sentence, "prose"),
            Cell(each.run, link=link(each.run)) if link(each.run) else "",
        )
        for each in found.turned
    ]
    rows += [
        (
            Cell("more", "word unknown") if each.is_worse else "",
            each.cell,
            str(each.before),
            str(each.after),
            each.words,
            "",
        )
        for each in found.undecided
    ]
    return Section(
        "Undecided runs",
        "Runs that ended unknown, inconclusive or broken, by cell, on the earlier night and on the later one.",
        ("change", "cell", "before", "after", "what", "look at"),
        rows,
        frozenset({"before", "after"}),
        "Every run of both nights was decided.",
    )


def _coverage(found: Comparison) -> Section:
    rows: list[tuple[str | Cell, ...]] = [
        (_kind_change(before, after), f"fault {name}", str(before), str(after))
        for name, before, after in found.kinds or ()
    ]
    rows += [
        (
            Cell(turn.change, f"word {COVER_STYLES[turn.change]}"),
            f"rare turn: {turn.name}",
            str(turn.before),
            str(turn.after),
        )
        for turn in found.turns or ()
        if turn.change not in ("", "not tried")
    ]
    if not_tried := found.turns_of("not tried"):
        told = Cell(f"{len(not_tried):,} rare turns of cells that lack runs: {'; '.join(not_tried)}", "prose")
        rows.append((Cell("not tried", f"word {COVER_STYLES['not tried']}"), told, "reached", "no run"))
    rows += [
        (Cell("lost", "word anomaly"), f"cell {cell}", "conclusive", "none") for cell in found.cells_lost
    ]
    rows += [(Cell("added", "word valid"), f"cell {cell}", "none", "conclusive") for cell in found.cells_new]
    both = len([turn for turn in found.turns or () if not turn.change])
    caption = (
        "Runs in which each kind of fault took effect; rare turns that one night reached and the other did not "
        f"({both:,} were reached on both); cells with conclusive runs on one night only. A rare turn is lost if chance "
        "would hide all of them in at most one of fifty nights, and else only not reached."
    )
    if found.kinds is None:
        caption += " The journal of one of the nights does not say which faults took effect."
    if found.turns is None:
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
    """The newest first."""
    rows: list[tuple[str | Cell, ...]] = [
        (
            each.day,
            Cell(parts=tuple((word, float(count)) for word, count in each.counts.items())),
            f"{each.runs:,}",
            *(f"{each.counts[word]:,}" if each.counts[word] else "" for word in each.counts),
            f"{each.fingerprints:,}",
            f"{each.cells:,}",
            "" if each.kinds is None else f"{len(each.kinds):,}",
            "" if each.rare_turns is None else f"{len(each.rare_turns):,}",
            f"{each.not_reached:,}" if each.not_reached else "",
            f"{each.spent_s:,.0f}",
        )
        for each in reversed(nights)
    ]
    columns = (
        *("night (UTC)", "outcomes", "runs", "valid", "anomaly", "unknown", "inconclusive", "broken"),
        *("fingerprints", "cells", "kinds of faults", "rare turns", "not reached", "seconds"),
    )
    return Section(
        "Trend",
        f"The last {len(nights)} nights of this plan; kinds of faults are those that took effect, "
        "rare turns those that came about.",
        columns,
        rows,
        frozenset(columns[2:]),
    )


def _numbers(night: Night) -> str:
    return ", ".join(f"{count} {word}" for word, count in night.counts.items() if count) or "no run"


def lines(found: Comparison, nights: Sequence[Night]) -> Iterator[tuple[str, str]]:
    """The screen: lines, each with the name of its colour (or none)."""
    yield f"{found.after.name}: {found.before.day} → {found.after.day}", "bold"
    yield found.sentence, ""
    for each in found.anomalies:
        counts = f"{each.before} → {each.after}"
        why = f"  ({_why(each)})" if _why(each) else ""
        yield (
            f"  {each.change:<13} {each.fingerprint:<10}  {counts:<20}  {each.shape}{why}",
            COLOURS.get(each.change, ""),
        )
    for turned in found.turned:
        yield f"  undecided     {turned.cell} seed {turned.seed}: {turned.before} → {turned.after}", "yellow"
    for cell in found.undecided:
        if cell.is_worse:
            told = f"{cell.before} → {cell.after}, {cell.words}"
            yield f"  undecided     {cell.cell}: {told}", "yellow"
    for name in found.cells_lost:
        yield f"  not covered   {name}", "yellow"
    for name in found.kinds_lost:
        yield f"  not in effect {name}", "yellow"
    for turn in found.turns or ():
        if turn.change in ("lost", "not reached"):
            told = f"{turn.before} → {turn.after}  ({in_words(float(turn.chance))})"
            colour = "yellow" if turn.change == "lost" else ""
            yield f"  {turn.change:<13} {turn.name}  {told}", colour
    if len(nights) > 2:
        yield f"the last {len(nights)} nights", "bold"
        for night in nights:
            yield (
                f"  {night.day}  {night.runs:>6,} runs  {_numbers(night)}; {night.fingerprints} fingerprints",
                "",
            )
