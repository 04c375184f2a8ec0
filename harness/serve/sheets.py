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

from checkers.history.jsonl import NOT_JSON
from harness.pages.tables_page import Cell, Section, section_html, stylesheet
from harness.serve import side_by_side
from harness.serve.index import GOES_ON, Run
from harness.serve.under_way import UnderWay

HERE = Path(__file__).parent
PLACES = (("Runs", "/runs"), ("Campaigns", "/campaigns"), ("Under way", "/live"), ("Tables", "/tables"))
ROWS = 50
EVENTS = 100
AROUND = 10
"""Events shown before the one that was asked for."""
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
        body=macro("runs")(rows, filters, pages),
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
    rows = [
        (Cell(name, link=f"{base}/files/{quote(os.fsencode(name))}"), f"{size:,}")
        for name, size in files[:FILES_MAX]
    ]
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
        body=shown(sections),
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


def run_link(found: Run) -> str:
    return f"/runs/{quote(found.plan, safe='')}/{quote(found.name, safe='')}"


def compare_link(one: Run, other: Run) -> str:
    return "/compare?" + urlencode({"a": one.id, "b": other.id})


def shown(sections: Iterable[Section]) -> Markup:
    return Markup("").join(section_html(section) for section in sections)


def _tone(outcome: str) -> str:
    return outcome if outcome in ("valid", "anomaly", "unknown", "inconclusive", "no-verdict") else "list"


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _clipped(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def many(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


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
