"""Values → pages. Everything is escaped by the templates; a page loads its style and its script from here alone."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from checkers.history.jsonl import NOT_JSON
from harness.campaign import compare, compared
from harness.campaign.journal import Journal
from harness.report.tables_page import Cell, Mark, Page, Section, cell_html, section_html, stylesheet
from harness.serve import side_by_side
from harness.serve.index import GOES_ON, Run, goes_on
from harness.serve.under_way import UnderWay

HERE = Path(__file__).parent
PLACES = (("Runs", "/runs"), ("Campaigns", "/campaigns"), ("Under way", "/live"), ("Tables", "/tables"))
ROWS = 50
EVENTS = 100
AROUND = 10
"""Events shown before the one that was asked for."""
VALUE_MAX = 300
SQUARES_MAX = 400
FILES_MAX = 400
SORTS = {
    "newest": "newest first",
    "oldest": "oldest first",
    "outcome": "outcome",
    "plan": "plan",
    "ok": "most operations",
}
GRAVITY = ("anomaly", "broken", "unknown", "inconclusive", "no-verdict", GOES_ON, "valid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One page. `links` are buttons below its head; `refreshes_ms`: it loads itself again, 0 never."""

    title: str
    sentence: str
    place: str = ""
    body: Markup = field(default_factory=Markup)
    tone: str = "list"
    badge: str = ""
    crumbs: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    refreshes_ms: int = 0


@dataclass(frozen=True, slots=True)
class Pages:
    """Links to the rows before and after those that are shown."""

    told: str
    before: str = ""
    after: str = ""


def html(sheet: Sheet) -> str:
    return _environment().get_template("serve.html").render(sheet=sheet, places=PLACES)


@functools.cache
def style() -> str:
    return stylesheet() + (HERE / "serve.css").read_text()


@functools.cache
def script() -> str:
    return (HERE / "serve.js").read_text()


def plain(status: int, sentence: str) -> Sheet:
    """What went wrong, in a sentence."""
    return Sheet(title=f"{status}: {sentence}", sentence=sentence, tone="inconclusive", badge=str(status))


def runs(found: Sequence[Run], asked: Mapping[str, str], page: int) -> Sheet:
    """The list. `asked`: text, plan, outcome, sort, as they were given."""
    fitting = _fitting(found, asked)
    last = max((len(fitting) - 1) // ROWS, 0)
    page = min(page, last)
    shown = fitting[page * ROWS : (page + 1) * ROWS]

    def link(number: int) -> str:
        return "/runs?" + urlencode({**{key: value for key, value in asked.items() if value}, "page": number})

    pages = Pages(
        f"{page * ROWS + 1:,}–{page * ROWS + len(shown):,} of {len(fitting):,}" if shown else "",
        link(page - 1) if page > 0 else "",
        link(page + 1) if page < last else "",
    )
    outcomes = [("", "any")] + [(word, word) for word in GRAVITY]
    plans = [("", "any")] + [(name, name) for name in sorted({run.plan for run in found})]
    filters = {
        "text": asked.get("text", ""),
        "choices": [
            ("outcome", "Outcome", asked.get("outcome", ""), outcomes),
            ("plan", "Plan", asked.get("plan", ""), plans),
            ("sort", "Sorted by", asked.get("sort", "newest"), list(SORTS.items())),
        ],
    }
    rows = [_run_row(run) for run in shown]
    return Sheet(
        title="Runs",
        place="Runs",
        sentence=f"{len(found):,} runs"
        if len(fitting) == len(found)
        else f"{len(fitting):,} of {len(found):,} runs",
        body=_macro("runs")(rows, filters, pages),
    )


def _fitting(found: Sequence[Run], asked: Mapping[str, str]) -> list[Run]:
    words = asked.get("text", "").lower().split()
    fitting = [
        run
        for run in found
        if asked.get("outcome", "") in ("", run.outcome)
        and asked.get("plan", "") in ("", run.plan)
        and all(word in run.text for word in words)
    ]
    match asked.get("sort"):
        case "oldest":
            fitting.reverse()
        case "outcome":
            fitting.sort(
                key=lambda run: GRAVITY.index(run.outcome) if run.outcome in GRAVITY else len(GRAVITY)
            )
        case "plan":
            fitting.sort(key=lambda run: run.plan)
        case "ok":
            fitting.sort(key=lambda run: -run.ok)
    return fitting


def _run_row(run: Run) -> dict[str, Any]:
    return {
        **{
            name: getattr(run, name)
            for name in ("id", "outcome", "began", "system", "configuration", "cluster")
        },
        **{name: getattr(run, name) for name in ("workload", "ok")},
        "sentence": _clipped(run.sentence, 120),
        "faults": ", ".join(run.kinds),
        "link": run_link(run),
    }


def run(
    found: Run,
    stored: side_by_side.Stored,
    files: Sequence[tuple[str, int]],
    has_report: bool,
    has_bundle: bool,
) -> Sheet:
    """One run: what it says, and everything that lies in its folder."""
    base = run_link(found)
    links = [("Report", f"/results{base.removeprefix('/runs')}/report.html")] if has_report else []
    links += [("Operations", f"{base}/operations"), ("Live view", f"{base}/live")]
    links += [("Download as one bundle", f"{base}/bundle")] if has_bundle else []
    rows = [(Cell(name, link=f"{base}/files/{quote(name)}"), f"{size:,}") for name, size in files[:FILES_MAX]]
    more = f" The first {FILES_MAX} of {len(files):,}." if len(files) > FILES_MAX else ""
    return Sheet(
        title=f"{found.outcome}: {found.id}",
        place="Runs",
        crumbs=(
            ("runs", "/runs"),
            (found.plan, "/runs?" + urlencode({"plan": found.plan})),
            (found.name, ""),
        ),
        tone=_tone(found.outcome),
        badge=found.outcome.replace("-", " ").upper(),
        sentence=found.sentence or _without_verdict(found),
        facts=(
            ("system", found.system, found.configuration),
            ("workload", found.workload, f"on {found.cluster}"),
            ("seed", str(found.seed), ""),
            ("began (UTC)", found.began, ""),
            ("succeeded", f"{found.ok:,}", "operations"),
            ("faults in effect", ", ".join(found.kinds) or "none", ""),
        ),
        links=tuple(links),
        body=_sections(
            [
                *side_by_side.alone(stored),
                Section(
                    "Files",
                    f"They are downloaded, never shown.{more}",
                    ("file", "bytes"),
                    rows,
                    frozenset({"bytes"}),
                ),
            ]
        ),
    )


def _without_verdict(found: Run) -> str:
    return "The run goes on." if found.outcome == GOES_ON else "The run has no verdict. Try: qsync check"


def two_runs(one: side_by_side.Stored, other: side_by_side.Stored) -> Sheet:
    sections = list(side_by_side.sections(one, other))
    count = sum(bool(row[0]) for section in sections for row in section.rows)
    return Sheet(
        title=f"{one.run.id} and {other.run.id}",
        place="Runs",
        crumbs=(("runs", "/runs"), ("two side by side", "")),
        sentence=f"{count:,} lines differ" if count else "The two do not differ",
        facts=(
            ("A", one.run.id, one.run.outcome),
            ("B", other.run.id, other.run.outcome),
        ),
        links=(
            ("A", run_link(one.run)),
            ("B", run_link(other.run)),
            ("Swap", compare_link(other.run, one.run)),
        ),
        body=_sections(sections),
    )


def campaigns(books: Sequence[Journal]) -> Sheet:
    rows = [_campaign_row(book) for book in books]
    return Sheet(
        title="Campaigns",
        place="Campaigns",
        sentence=_many(len(books), "campaign"),
        body=_macro("campaigns")(rows),
    )


def _campaign_row(book: Journal) -> dict[str, Any]:
    night = compare.night(book)
    return {
        "id": f"{book.folder.parent.name}/{book.folder.name}",
        "name": f"{book.folder.parent.name}/{book.folder.name}",
        "link": campaign_link(book),
        "day": night.day,
        "runs": night.runs,
        "outcomes": cell_html(Cell(parts=_parts(night.counts))),
        "fingerprints": night.fingerprints,
        "state": _state(book),
    }


def _parts(counts: Mapping[str, int]) -> tuple[tuple[str, float], ...]:
    return tuple((word, float(count)) for word, count in counts.items())


def _state(book: Journal) -> str:
    if not goes_on(book):
        return "over"
    return f"under way or interrupted: {len(book.ended):,} of {len(book.head.tasks):,}"


def campaign(book: Journal, others: Sequence[Journal], has_page: bool) -> Sheet:
    """One campaign, also under way: its grid, the comparison with the night before, the trend."""
    night = compare.night(book)
    before = compare.previous(book, others)
    name = book.folder.parent.name
    links = [("Page as stored", f"/results/_campaigns/{quote(name)}/{quote(book.folder.name)}/index.html")]
    if before is not None:
        links.append(("Compare with the night before", nights_link(before, book)))
    upto = [each for each in others if each.head.begun <= book.head.begun]
    sections = [_grid(book), compared.trend_section(compare.trend(upto, 14))] if book.ended else []
    if before is not None:
        sections += compared.sections(compare.compare(before, book), _link_of_run)
    done, whole = len(book.ended), len(book.head.tasks)
    return Sheet(
        title=f"{name}: {night.day}",
        place="Campaigns",
        crumbs=(("campaigns", "/campaigns"), (name, ""), (book.folder.name, "")),
        tone="anomaly" if night.counts["anomaly"] else "list" if goes_on(book) else "valid",
        sentence=_state(book)
        if goes_on(book)
        else f"{_many(night.runs, 'run')}, {_many(night.fingerprints, 'fingerprint')} of anomalies",
        facts=(
            *((word, f"{count:,}", "runs") for word, count in night.counts.items()),
            ("done", f"{done:,}", f"of {whole:,}"),
        ),
        links=tuple(links if has_page else links[1:]),
        body=_sections(sections),
        refreshes_ms=2000 if goes_on(book) else 0,
    )


def _grid(book: Journal) -> Section:
    marks: dict[str, list[Mark]] = {}
    for run in book.ended:
        mark = Mark(run.outcome, f"seed {run.seed}: {run.outcome}", _link_of_run(run.run))
        marks.setdefault(run.cell, []).append(mark)
    active = {(task.cell, task.seed) for task in book.interrupted}
    for task in book.left():
        words = "began" if (task.cell, task.seed) in active else "not reached"
        marks.setdefault(task.cell, []).append(Mark("left", f"seed {task.seed}: {words}"))
    rows = [(cell, Cell(marks=tuple(squares[:SQUARES_MAX]))) for cell, squares in marks.items()]
    return Section("Cells", "A square for each run; dashed ones have no outcome yet.", ("cell", "runs"), rows)


def two_nights(earlier: Journal, later: Journal, others: Sequence[Journal]) -> Sheet:
    upto = [each for each in others if each.head.begun <= later.head.begun]
    page = compared.page(compare.compare(earlier, later), compare.trend(upto, 14), _link_of_run)
    return _of_page(page, "Campaigns", (("A", campaign_link(earlier)), ("B", campaign_link(later))))


def _of_page(page: Page, place: str, links: tuple[tuple[str, str], ...]) -> Sheet:
    return Sheet(
        title=page.title,
        place=place,
        tone=page.tone,
        badge=page.badge,
        sentence=page.sentence,
        facts=page.facts,
        links=links,
        body=_sections(page.sections),
    )


def under_way(found: Iterable[Run], books: Iterable[Journal]) -> Sheet:
    runs = [run for run in found if run.outcome == GOES_ON]
    nights = [book for book in books if goes_on(book)]
    rows = [
        (Cell(run.id, link=f"{run_link(run)}/live"), run.system, run.cluster, run.workload) for run in runs
    ]
    more = [
        (Cell(f"{book.folder.parent.name}/{book.folder.name}", link=campaign_link(book)), _state(book))
        for book in nights
    ]
    return Sheet(
        title="Under way",
        place="Under way",
        sentence=f"{_many(len(runs), 'run')} and {_many(len(nights), 'campaign')} without an end",
        body=_sections(
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


def live(found: Run, seen: UnderWay) -> Sheet:
    """A run from its record so far."""
    told = seen.to_json()
    is_over = found.outcome != GOES_ON
    styles = {"up": "valid", "down": "anomaly", "paused": "unknown", "silent": "inconclusive"}
    nodes = [
        (name, Cell(condition, f"word {styles.get(condition, '')}"), role)
        for name, condition, role in seen.nodes()
    ]
    over = [(name, "took effect", f"{count:,}") for name, count in seen.faults_over.items()]
    faults = [
        (Cell(name, "word effect"), "active", ", ".join(nodes)) for name, _, nodes in seen.faults.values()
    ]
    notes = " More was recorded than this look read; the next one reads on." if seen.is_behind else ""
    if seen.unreadable:
        notes += f" {seen.unreadable:,} lines cannot be read."
    return Sheet(
        title=f"{told['ok']:,} ok: {found.id}",
        place="Under way",
        crumbs=(("runs", "/runs"), (found.id, run_link(found)), ("live", "")),
        tone=_tone(found.outcome) if is_over else "list",
        badge="OVER" if is_over else "UNDER WAY",
        sentence=(found.sentence or "The record no longer grows.")
        if is_over
        else f"{told['seconds']:,.1f} s, {told['phase'] or 'before the load'}",
        facts=(
            ("asked", f"{seen.asked:,}", "operations"),
            *((word, f"{told[word]:,}", "operations") for word in ("ok", "fail", "info")),
            ("faults now", f"{len(seen.faults):,}", f"{sum(seen.faults_over.values()):,} took effect before"),
            ("record", f"{seen.offset:,}", "bytes read"),
        ),
        links=(
            ("The run", run_link(found)),
            ("Operations", f"{run_link(found)}/operations?from={max(seen.lines - 2, 0)}"),
        ),
        body=_sections(
            [
                Section(
                    "Nodes",
                    f"As the monitor noted them last.{notes}",
                    ("node", "condition", "role"),
                    nodes,
                    empty="No node was seen yet.",
                ),
                Section(
                    "Faults",
                    "Active ones first.",
                    ("fault", "state", "nodes or count"),
                    [*faults, *over],
                    empty="None yet.",
                ),
            ]
        ),
        refreshes_ms=0 if is_over and not seen.is_behind else 300 if seen.is_behind else 1000,
    )


def operations(found: Run, lines: Sequence[bytes], first: int, whole: int, asked: int) -> Sheet:
    """Events from number `first` on; `whole`: how many the record has. `asked`: the one that is marked."""
    base = f"{run_link(found)}/operations"
    after = first + EVENTS
    pages = Pages(
        f"events {first:,}–{first + len(lines) - 1:,} of {whole:,}"
        if lines
        else f"the record has {whole:,} events",
        f"{base}?from={max(first - EVENTS + AROUND, 0)}" if first > 0 else "",
        f"{base}?from={after + AROUND}" if after < whole else "",
    )
    rows = [_event_row(first + place, line) for place, line in enumerate(lines)]
    return Sheet(
        title=f"Operations of {found.id} from {first}",
        place="Runs",
        crumbs=(("runs", "/runs"), (found.id, run_link(found)), ("operations", "")),
        sentence=f"Events around number {asked:,}",
        body=_macro("operations")(rows, pages, base, asked),
    )


def _event_row(index: int, line: bytes) -> dict[str, Any]:
    try:
        event = msgspec.json.decode(line)
    except NOT_JSON:
        event = None
    if not isinstance(event, dict):
        event = {"value": line[:VALUE_MAX].decode(errors="replace"), "error": "this line cannot be read"}
    names = ("process", "type", "f", "key", "node", "role", "mode", "error")
    time_ns = event.get("time_ns")
    return {
        "index": index,
        "at": f"{time_ns / 1e9:.4f} s" if isinstance(time_ns, int | float) else "",
        **{name: _clipped(_text(event.get(name)), 120) for name in names},
        "value": _clipped(_text(event.get("value")), VALUE_MAX),
    }


def tables(names: Sequence[str], has_overview: bool) -> Sheet:
    rows = [(Cell(name, link=f"/tables/{quote(name)}"),) for name in names]
    return Sheet(
        title="Tables",
        place="Tables",
        sentence=_many(len(names), "table"),
        links=(("Overview", "/results/_tables/overview.html"),) if has_overview else (),
        body=_sections(
            [
                Section(
                    "Tables",
                    "Written by qsync analyze.",
                    ("table",),
                    rows,
                    empty="There are none yet. Try: qsync analyze",
                )
            ]
        ),
    )


def table(name: str, section: Section) -> Sheet:
    return Sheet(
        title=name,
        place="Tables",
        crumbs=(("tables", "/tables"), (name, "")),
        sentence=f"{name}: {section.caption}",
        body=_sections([section]),
    )


def run_link(found: Run) -> str:
    return f"/runs/{quote(found.plan, safe='')}/{quote(found.name, safe='')}"


def campaign_link(book: Journal) -> str:
    return f"/campaigns/{quote(book.folder.parent.name, safe='')}/{quote(book.folder.name, safe='')}"


def compare_link(one: Run, other: Run) -> str:
    return "/compare?" + urlencode({"a": one.id, "b": other.id})


def nights_link(one: Journal, other: Journal) -> str:
    names = [f"{book.folder.parent.name}/{book.folder.name}" for book in (one, other)]
    return "/nights?" + urlencode({"a": names[0], "b": names[1]})


def _link_of_run(run: str) -> str:
    """A journal names a run by its folder below results/; nothing is looked up here."""
    return f"/runs/{quote(run)}" if run.count("/") == 1 and not run.startswith(("/", ".")) else ""


def _sections(sections: Iterable[Section]) -> Markup:
    return Markup("").join(section_html(section) for section in sections)


def _tone(outcome: str) -> str:
    return outcome if outcome in ("valid", "anomaly", "unknown", "inconclusive", "no-verdict") else "list"


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _clipped(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _macro(name: str) -> Any:
    return getattr(_environment().get_template("lists.html").module, name)


@functools.cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
