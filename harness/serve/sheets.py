"""Values → pages. Everything is escaped by the templates; a page loads its style and its script from here alone."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from checkers.history.errors import NOT_JSON
from checkers.history.values import many
from harness.pages.json_door import as_text, as_time_ns, clipped
from harness.pages.tables_page import Cell, Section, section_html, stylesheet
from harness.pages.visible import visible
from harness.serve import side_by_side
from harness.serve.index import GOES_ON, Run
from harness.serve.under_way import UnderWay

HERE = Path(__file__).parent
PLACES = (("Runs", "/runs"), ("Campaigns", "/campaigns"), ("Under way", "/live"), ("Tables", "/tables"))
ROWS = 50
EVENTS = 100
AROUND = 10
"""The number of events shown before the requested one."""
VALUE_MAX = 300
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
    return visible(_environment().get_template("serve.html").render(sheet=sheet, places=PLACES))


@functools.cache
def style() -> str:
    return stylesheet() + (HERE / "serve.css").read_text()


@functools.cache
def script() -> str:
    return (HERE / "serve.js").read_text()


def plain(status: int, sentence: str) -> Sheet:
    """A page with one sentence, for a refusal or an error."""
    return Sheet(title=f"{status}: {sentence}", sentence=sentence, tone="inconclusive", badge=str(status))


def runs(all_runs: Sequence[Run], asked: Mapping[str, str], page: int) -> Sheet:
    """The list of runs. `asked`: text, plan, outcome, sort, as the request has them."""
    fitting = _fitting(all_runs, asked)
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
    plans = [("", "any")] + [(name, name) for name in sorted({run.plan for run in all_runs})]
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
        sentence=many(len(all_runs), "run")
        if len(fitting) == len(all_runs)
        else f"{len(fitting):,} of {len(all_runs):,} runs",
        body=macro("runs")(rows, filters, pages),
    )


def _fitting(runs: Sequence[Run], asked: Mapping[str, str]) -> list[Run]:
    words = asked.get("text", "").lower().split()
    fitting = [
        run
        for run in runs
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
    names = ("id", "outcome", "system", "configuration", "cluster", "workload", "ok")
    return {
        **{name: getattr(run, name) for name in names},
        "sentence": clipped(run.sentence, 120),
        "faults": ", ".join(run.kinds),
        "link": run_link(run),
    }


def run(
    given: Run,
    stored: side_by_side.Stored,
    files: Sequence[tuple[str, int]],
    has_report: bool,
    has_record: bool,
) -> Sheet:
    """One run: its verdict, its documents, the files of its folder."""
    base = run_link(given)
    links = [("Report", f"/results{base.removeprefix('/runs')}/report.html")] if has_report else []
    if has_record:
        links += [("Operations", f"{base}/operations"), ("Live view", f"{base}/live")]
        links += [("Download as one bundle", f"{base}/bundle")]
    rows = [
        (Cell(name, link=f"{base}/files/{quote(os.fsencode(name))}"), f"{size:,}")
        for name, size in files[:FILES_MAX]
    ]
    more = f" The first {FILES_MAX} of {len(files):,}." if len(files) > FILES_MAX else ""
    return Sheet(
        title=f"{given.outcome}: {given.id}",
        place="Runs",
        crumbs=(
            ("runs", "/runs"),
            (given.plan, "/runs?" + urlencode({"plan": given.plan})),
            (given.name, ""),
        ),
        tone=_tone(given.outcome),
        badge=given.outcome.replace("-", " ").upper(),
        sentence=given.sentence or _without_verdict(given, has_record),
        facts=(
            ("system", given.system, given.configuration),
            ("workload", given.workload, f"on {given.cluster}"),
            ("seed", str(given.seed), ""),
            ("began (UTC)", given.began, ""),
            ("succeeded", f"{given.ok:,}", "operations"),
            ("faults in effect", ", ".join(given.kinds) or "none", ""),
        ),
        links=tuple(links),
        body=shown(
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


def _without_verdict(run: Run, has_record: bool) -> str:
    if not has_record:
        return "The run has no record yet. If it has ended, try: qsync run --plan, with its plan.json"
    return "The run goes on." if run.outcome == GOES_ON else "The run has no verdict. Try: qsync check"


def two_runs(one: side_by_side.Stored, other: side_by_side.Stored) -> Sheet:
    sections = list(side_by_side.sections(one, other))
    count = sum(bool(row[0]) for section in sections for row in section.rows)
    return Sheet(
        title=f"{one.run.id} and {other.run.id}",
        place="Runs",
        crumbs=(("runs", "/runs"), ("two side by side", "")),
        sentence=f"{many(count, 'line')} differ{'s' if count == 1 else ''}"
        if count
        else "The two do not differ",
        facts=(
            ("A", one.run.id, one.run.outcome),
            ("B", other.run.id, other.run.outcome),
        ),
        links=(
            ("A", run_link(one.run)),
            ("B", run_link(other.run)),
            ("Swap", compare_link(other.run, one.run)),
        ),
        body=shown(sections),
    )


def live(run: Run, progress: UnderWay) -> Sheet:
    """A run from its record so far."""
    counts = progress.outcomes
    is_over = run.outcome != GOES_ON
    styles = {"up": "valid", "down": "anomaly", "paused": "unknown", "silent": "inconclusive"}
    nodes = [
        (name, Cell(condition, f"word {styles.get(condition, '')}"), role)
        for name, condition, role in progress.nodes()
    ]
    over = [(name, "took effect", f"{count:,}") for name, count in progress.faults_over.items()]
    faults = [
        (Cell(name, "word effect"), "active", ", ".join(nodes)) for name, _, nodes in progress.faults.values()
    ]
    notes = " More was recorded than this look read; the next one reads on." if progress.is_behind else ""
    if progress.unreadable:
        notes += f" {progress.unreadable:,} lines cannot be read."
    return Sheet(
        title=f"{counts['ok']:,} ok: {run.id}",
        place="Under way",
        crumbs=(("runs", "/runs"), (run.id, run_link(run)), ("live", "")),
        tone=_tone(run.outcome) if is_over else "list",
        badge="OVER" if is_over else "UNDER WAY",
        sentence=(run.sentence or "The record no longer grows.")
        if is_over
        else f"{progress.time_ns / 1e9:,.1f} s, {progress.phase or 'before the load'}",
        facts=(
            ("asked", f"{progress.asked:,}", "operations"),
            *((word, f"{counts[word]:,}", "operations") for word in ("ok", "fail", "info")),
            (
                "faults now",
                f"{len(progress.faults):,}",
                f"{sum(progress.faults_over.values()):,} took effect before",
            ),
            ("record", f"{progress.offset:,}", "bytes read"),
        ),
        links=(
            ("The run", run_link(run)),
            ("Operations", f"{run_link(run)}/operations?from={max(progress.lines - 2, 0)}"),
        ),
        body=shown(
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
        refreshes_ms=0 if is_over and not progress.is_behind else 300 if progress.is_behind else 1000,
    )


def operations(run: Run, lines: Sequence[bytes], first: int, whole: int, asked: int) -> Sheet:
    """Events from number `first` on. `whole`: the number of events in the record; `asked`: the number to mark."""
    base = f"{run_link(run)}/operations"
    after = first + EVENTS
    pages = Pages(
        f"events {first:,}–{first + len(lines) - 1:,} of {whole:,}"
        if lines
        else f"the record has {whole:,} events",
        f"{base}?from={max(first - EVENTS + AROUND, 0)}" if first > 0 else "",
        f"{base}?from={min(after + AROUND, whole - 1)}" if after < whole else "",
    )
    rows = [_event_row(first + place, line) for place, line in enumerate(lines)]
    return Sheet(
        title=f"Operations of {run.id} from {first}",
        place="Runs",
        crumbs=(("runs", "/runs"), (run.id, run_link(run)), ("operations", "")),
        sentence=f"Events around number {asked:,}"
        if asked < max(whole, 1)
        else f"There is no event {asked:,}; these are the last ones",
        body=macro("operations")(rows, pages, base, asked),
    )


def _event_row(index: int, line: bytes) -> dict[str, Any]:
    try:
        event = msgspec.json.decode(line)
    except NOT_JSON:
        event = None
    if not isinstance(event, dict):
        event = {"value": line[:VALUE_MAX].decode(errors="replace"), "error": "this line cannot be read"}
    names = ("process", "type", "f", "key", "node", "role", "mode", "error")
    time_ns = as_time_ns(event.get("time_ns"))
    return {
        "index": index,
        "at": "" if time_ns is None else f"{time_ns / 1e9:.4f} s",
        **{name: as_text(event.get(name), 120) for name in names},
        "value": as_text(event.get("value"), VALUE_MAX),
    }


def tables(names: Sequence[str], has_overview: bool) -> Sheet:
    rows = [(Cell(name, link=f"/tables/{quote(name)}"),) for name in names]
    return Sheet(
        title="Tables",
        place="Tables",
        sentence=many(len(names), "table"),
        links=(("Overview", "/results/_tables/overview.html"),) if has_overview else (),
        body=shown(
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
        body=shown([section]),
    )


def run_link(run: Run) -> str:
    return f"/runs/{quote(run.plan, safe='')}/{quote(run.name, safe='')}"


def compare_link(one: Run, other: Run) -> str:
    return "/compare?" + urlencode({"a": one.id, "b": other.id})


def shown(sections: Iterable[Section]) -> Markup:
    return Markup("").join(section_html(section) for section in sections)


def _tone(outcome: str) -> str:
    return outcome if outcome in ("valid", "anomaly", "unknown", "inconclusive", "no-verdict") else "list"


def macro(name: str) -> Any:
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
