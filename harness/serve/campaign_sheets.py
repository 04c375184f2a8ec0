"""The pages of campaigns, and of everything that is under way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from checkers.history.values import many
from harness.campaigns import compare, compared, coverage, documents
from harness.campaigns.journal import Journal
from harness.campaigns.nightly import NIGHTS
from harness.campaigns.summary import stored, tone
from harness.pages.tables_page import Cell, Section, cell_html
from harness.serve.index import GOES_ON, Run, goes_on
from harness.serve.sheets import Sheet, macro, run_link, shown

SQUARES_MAX = 400


def campaigns(books: Sequence[Journal]) -> Sheet:
    rows = [_campaign_row(book) for book in books]
    return Sheet(
        title="Campaigns",
        place="Campaigns",
        sentence=many(len(books), "campaign"),
        body=macro("campaigns")(rows),
    )


def _campaign_row(book: Journal) -> dict[str, Any]:
    night = compare.night(book)
    return {
        "id": _id(book),
        "link": campaign_link(book),
        "day": night.day,
        "runs": night.runs,
        "outcomes": cell_html(Cell(parts=tuple(night.counts.items()))),
        "fingerprints": night.fingerprints,
        "state": _state(book),
    }


def _state(book: Journal) -> str:
    if not goes_on(book):
        return "over"
    return f"under way or interrupted: {len(book.ended):,} of {len(book.head.tasks):,}"


def campaign(book: Journal, others: Sequence[Journal], has_page: bool) -> Sheet:
    """One campaign, finished or not: its grid, the comparison with the night before, the trend."""
    night = compare.night(book)
    before = compare.previous(book, others)
    name = book.folder.parent.name
    links = [("Page as stored", f"/results/_campaigns/{quote(name)}/{quote(book.folder.name)}/index.html")]
    if before is not None:
        links.append(("Compare with the night before", nights_link(before, book)))
    upto = [other for other in others if other.head.begun <= book.head.begun]
    sections = [_grid(book), coverage.section(coverage.covered(book))] if book.ended else []
    sections += [compared.trend_section(compare.trend(upto, NIGHTS))] if book.ended else []
    if before is not None:
        sections += compared.sections(compare.compare(before, book), _link_of_run)
    done, whole = len(book.ended), len(book.head.tasks)
    result = stored(book.folder)
    so_far = "anomaly" if night.counts["anomaly"] else "list"  # until there is a summary no more can be said
    return Sheet(
        title=f"{name}: {night.day}",
        place="Campaigns",
        crumbs=(("campaigns", "/campaigns"), (name, ""), (book.folder.name, "")),
        tone=so_far if result is None else tone(result.exit_code),
        sentence=_state(book) if result is None else result.sentence,
        facts=(
            *((word, f"{count:,}", "runs") for word, count in night.counts.items()),
            ("done", f"{done:,}", f"of {whole:,}"),
        ),
        links=tuple(links if has_page else links[1:]),
        body=shown(sections),
        refreshes_ms=2000 if goes_on(book) else 0,
    )


def _grid(book: Journal) -> Section:
    marks = documents.marks_by_cell(book.ended, book.left(), _link_of_run, {*book.interrupted})
    rows = [(cell, documents.squares(of_cell, SQUARES_MAX)) for cell, of_cell in marks.items()]
    return Section(
        "Cells",
        "A square for each run, a bar of their outcomes for very many; dashed squares have no outcome yet.",
        ("cell", "runs"),
        rows,
    )


def two_nights(earlier: Journal, later: Journal, others: Sequence[Journal]) -> Sheet:
    upto = [other for other in others if other.head.begun <= later.head.begun]
    page = compared.page(compare.compare(earlier, later), compare.trend(upto, NIGHTS), _link_of_run)
    return Sheet(
        title=page.title,
        place="Campaigns",
        tone=page.tone,
        badge=page.badge,
        sentence=page.sentence,
        facts=page.facts,
        links=(("A", campaign_link(earlier)), ("B", campaign_link(later))),
        body=shown(page.sections),
    )


def under_way(all_runs: Iterable[Run], books: Iterable[Journal]) -> Sheet:
    runs = [run for run in all_runs if run.outcome == GOES_ON]
    nights = [book for book in books if goes_on(book)]
    rows = [
        (Cell(run.id, link=f"{run_link(run)}/live"), run.system, run.cluster, run.workload) for run in runs
    ]
    more = [(Cell(_id(book), link=campaign_link(book)), _state(book)) for book in nights]
    return Sheet(
        title="Under way",
        place="Under way",
        sentence=f"{many(len(runs), 'run')} and {many(len(nights), 'campaign')} without an end",
        body=shown(
            [
                Section(
                    "Runs",
                    "Their records grew in the last half minute.",
                    ("run", "system", "cluster", "workload"),
                    rows,
                    empty="None.",
                ),
                Section(
                    "Campaigns",
                    "Under way, or interrupted: the same command continues them.",
                    ("campaign", "state"),
                    more,
                    empty="None.",
                ),
            ]
        ),
        refreshes_ms=3000,
    )


def campaign_link(book: Journal) -> str:
    return f"/campaigns/{quote(book.folder.parent.name, safe='')}/{quote(book.folder.name, safe='')}"


def nights_link(one: Journal, other: Journal) -> str:
    return "/nights?" + urlencode({"a": _id(one), "b": _id(other)})


def _id(book: Journal) -> str:
    return f"{book.folder.parent.name}/{book.folder.name}"


def _link_of_run(run: str) -> str:
    """A journal names a run by its folder below results/; nothing is looked up here."""
    return f"/runs/{quote(run)}" if run.count("/") == 1 and not run.startswith(("/", ".")) else ""
