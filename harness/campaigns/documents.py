"""The documents of a campaign: JUnit XML for a CI, Markdown for the summary page of the CI, an HTML index page."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree as Xml

from harness.campaigns import coverage
from harness.campaigns.compare import Comparison, Night
from harness.campaigns.compared import Link, sections, trend_section
from harness.campaigns.entries import entries
from harness.campaigns.journal import OUTCOMES, Ended, Task
from harness.campaigns.summary import OUTCOME_OF, Group, Kind, Summary, tone
from harness.pages.tables_page import Cell, Mark, Page, Section, html

MARK = {"valid": "✅", "anomaly": "❌", "unknown": "❔", "inconclusive": "⚪", "broken": "💥"}
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
LISTED = 200
SQUARES = 64
"""Runs of one cell that are drawn as squares."""


def junit(summary: Summary) -> bytes:
    """One test case a run.

    A new or expired anomaly is a failure. A known one, and a run that the campaign did not reach, is skipped. An
    inconclusive, undecided or broken run is an error, not a pass; so is a cell that was left out, a run that takes
    longer than the whole budget, and a campaign of which nothing ran or was published.
    """
    standing = {run.run: group.standing for group in summary.groups for run in group.runs}
    suite = Xml.Element("testsuite", name=_clean(summary.name), timestamp=summary.begun.partition("+")[0])
    counts = {"failures": 0, "errors": 0, "skipped": 0}
    for run in summary.ended:
        case = Xml.SubElement(
            suite, "testcase", classname=_clean(run.cell), name=f"seed {run.seed}", time=f"{run.seconds:.3f}"
        )
        match run.outcome:
            case "valid":
                continue
            case "anomaly" if standing[run.run] == "known":
                kind, element = "skipped", "skipped"
            case "anomaly":
                kind, element = "failures", "failure"
            case _:
                kind, element = "errors", "error"
        counts[kind] += 1
        result = Xml.SubElement(case, element, message=_clean(run.sentence))
        if element != "skipped":
            result.set("type", (*run.fingerprints, run.outcome)[0])
        result.text = _clean("\n".join([run.run, *run.shapes]))
    for task in summary.left:
        case = Xml.SubElement(
            suite, "testcase", classname=_clean(task.cell), name=f"seed {task.seed}", time="0"
        )
        if task.cell in summary.too_long:
            Xml.SubElement(case, "error", message="takes longer than the whole budget", type="too-long")
            counts["errors"] += 1
        else:
            Xml.SubElement(case, "skipped", message="not reached within the budget")
            counts["skipped"] += 1
    for cell in summary.left_out:
        case = Xml.SubElement(suite, "testcase", classname=_clean(cell.cell), name="left out", time="0")
        Xml.SubElement(case, "error", message=_clean(cell.why), type="left-out")
        counts["errors"] += 1
    if summary.exit_code and not counts["failures"] + counts["errors"]:
        # A CI that reads this file alone must not be green, as if all had run and were published.
        case = Xml.SubElement(suite, "testcase", classname=_clean(summary.name), name="as a whole", time="0")
        Xml.SubElement(case, "error", message=_clean(summary.sentence), type=OUTCOME_OF[summary.exit_code])
        counts["errors"] += 1
    numbers = {
        "tests": str(len(suite)),
        "time": f"{summary.spent_s:.3f}",
        **{word: str(count) for word, count in counts.items()},
    }
    for word, number in numbers.items():
        suite.set(word, number)
    suites = Xml.Element("testsuites", {"name": "qsync", **numbers})
    suites.append(suite)
    Xml.indent(suites)
    return bytes(Xml.tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"


def markdown(summary: Summary) -> str:
    """The summary for a CI page: anomalies first, then every cell."""
    lines = [f"## {MARK[OUTCOME_OF[summary.exit_code]]} {_md(summary.name)}: {_md(summary.sentence)}", ""]
    if summary.groups:
        lines += [
            "| | fingerprint | what | runs | cells | seen before | issue |",
            "|---|---|---|---:|---|---|---|",
        ]
        lines += [_group_row(group) for group in summary.groups]
        lines.append("")
    if summary.kinds:
        lines += ["| found | by | runs | in one of them | its documentation |", "|---|---|---:|---|---|"]
        lines += [_kind_row(kind, len(summary.ended)) for kind in summary.kinds]
        lines.append("")
    lines += [
        "| cell | valid | anomaly | unknown | inconclusive | broken | not reached |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for cell, counts in _by_cell(summary).items():
        numbers = " | ".join(str(count) if count else "" for count in counts.values())
        lines.append(f"| {_md(cell)} | {numbers} |")
    lines += [f"| {_md(left.cell)} | left out: {_md(left.why)} | | | | | |" for left in summary.left_out]
    lines.append("")
    states = list(coverage.lines(summary.covered))
    if states:
        lines += ["| states covered | |", "|---|---|"]
        lines += [f"| {_md(name)} | {_md(text)} |" for name, text in states]
        lines.append("")
    wrong = [run for run in summary.ended if run.outcome not in ("valid", "anomaly")]
    lines += [
        f"- {MARK[run.outcome]} {_md(run.cell)}, seed {run.seed}: {_md(run.sentence)}"
        for run in wrong[:LISTED]
    ]
    lines += [f"- {_md(note)}" for note in summary.notes]
    return "\n".join(lines).rstrip() + "\n"


def _group_row(group: Group) -> str:
    cells = ", ".join(group.cells[:3]) + (f" and {len(group.cells) - 3} more" if len(group.cells) > 3 else "")
    until = f" (until {group.expires})" if group.expires else ""
    row = (
        group.standing,
        f"`{group.fingerprint}`",
        _md(group.shape),
        str(len(group.runs)),
        _md(cells),
        str(group.earlier),
        _md(group.issue + until),
    )
    return "| " + " | ".join(row) + " |"


def _kind_row(kind: Kind, whole: int) -> str:
    result = kind.found
    words = (
        result.standing,
        result.checker,
        f"{len(kind.runs)} of {whole}",
        result.summary,
        result.documented,
    )
    return "| " + " | ".join(_md(word) for word in words) + " |"


def page(
    summary: Summary,
    folder: Path,
    results: Path,
    comparison: Comparison | None = None,
    nights: Sequence[Night] = (),
) -> str:
    """The index page. `folder`: the folder of the page, for its links to the pages of runs.

    `comparison`: with the previous campaign of the same plan; `nights`: the latest campaigns, for the trend.
    """
    counts = summary.counts

    def link(run: str) -> str:
        report = results / run / "report.html"
        return os.path.relpath(report, folder) if run and report.exists() else ""

    return html(
        Page(
            title=f"{summary.name}: {summary.sentence}",
            crumbs=("nightly", summary.name, folder.name),
            tone=tone(summary.exit_code),
            badge=OUTCOME_OF[summary.exit_code].upper(),
            sentence=summary.sentence[:1].upper() + summary.sentence[1:] + ".",
            facts=(
                *((word, f"{count:,}", "runs") for word, count in counts.items()),
                ("not reached", f"{len(summary.left):,}", "runs"),
                *([("left out here", f"{len(summary.left_out):,}", "cells")] if summary.left_out else []),
                ("took", f"{summary.spent_s:,.0f} s", f"begun {summary.begun[:16].replace('T', ' ')}"),
            ),
            notes=summary.notes,
            sections=(
                *_left_out(summary),
                _anomalies(summary, link),
                *_to_paste(summary),
                *_compared(comparison, link),
                _kinds(summary, link),
                _cells(summary, link),
                coverage.section(summary.covered),
                *([trend_section(nights)] if nights else []),
                _runs(summary, link),
            ),
        )
    )


def _left_out(summary: Summary) -> list[Section]:
    if not summary.left_out:
        return []
    rows = [(Cell(cell.cell, "prose"), Cell(cell.why, "prose")) for cell in summary.left_out]
    caption = "Nothing of them ran, and nothing can be said of them: this machine lacks what they need."
    return [Section("Cells left out here", caption, ("cell", "why"), rows)]


def _anomalies(summary: Summary, link: Link) -> Section:
    styles = {"new": "anomaly", "expired": "unknown", "known": "inconclusive"}
    rows = [
        (
            Cell(group.fingerprint, "code"),
            Cell(group.standing, styles[group.standing]),
            Cell(group.shape, "prose"),
            f"{len(group.runs):,}",
            Cell("; ".join(group.cells), "prose"),
            str(group.earlier),
            # An empty cell for prose would be as wide as a full one, and push the last column off the page.
            Cell(f"{group.issue} until {group.expires}", "prose") if group.issue else "",
            Cell(group.runs[0].run.rpartition("/")[2], link=link(group.runs[0].run)),
            Cell(", ".join(group.seen_with), "code prose"),
        )
        for group in summary.groups
    ]
    return Section(
        "Anomalies by fingerprint",
        "Runs whose leading anomaly looks the same. Known ones stand in known.toml; "
        "“seen with” are other fingerprints of the same runs.",
        ("fingerprint", "standing", "what", "runs", "cells", "seen before", "issue", "look at", "seen with"),
        rows,
        frozenset({"runs"}),
        "No anomaly was found.",
    )


def _to_paste(summary: Summary) -> list[Section]:
    text = entries(summary)
    if not text:
        return []
    caption = "Entries for known.toml, to accept these anomalies for a time; fill in the issue of each."
    return [Section("To accept", caption, (), (), paste=text)]


def _compared(comparison: Comparison | None, link: Link) -> list[Section]:
    if comparison is None:
        return [
            Section("Since the night before", "", (), (), empty="There is no earlier night of this plan.")
        ]
    return list(sections(comparison, link))


def _kinds(summary: Summary, link: Link) -> Section:
    styles = {"violation": "anomaly", "finding": "unknown"}
    rows = [
        (
            Cell(kind.found.standing, styles[kind.found.standing]),
            Cell(kind.found.checker, "code"),
            f"{len(kind.runs):,} of {len(summary.ended):,}",
            Cell(kind.found.summary, "prose"),
            Cell(kind.found.documented, "prose"),
            Cell(kind.runs[0].run.rpartition("/")[2], link=link(kind.runs[0].run)),
        )
        for kind in summary.kinds
    ]
    return Section(
        "What the checks found",
        "In how many runs, whatever came of each as a whole. A finding is allowed by what is promised, and weaker than "
        "a reader may think; the words are those of the first run.",
        ("judged", "check", "runs", "in the words of one run", "its documentation", "look at"),
        rows,
        frozenset({"runs"}),
        "No check found anything.",
    )


def _cells(summary: Summary, link: Link) -> Section:
    marks = marks_by_cell(summary.ended, summary.left, link)
    rows: list[tuple[str | Cell, ...]] = [
        (
            cell,
            squares(marks[cell]),
            *(str(count) if count else "" for count in counts.values()),
        )
        for cell, counts in _by_cell(summary).items()
    ]
    columns = ("cell", "runs", *OUTCOMES, "not reached")
    caption = (
        f"The matrix, a square for each run, in the order in which its cells ran; {summary.excluded} combinations are "
        "excluded."
    )
    return Section("Cells", caption, columns, rows, frozenset(columns[2:]))


def marks_by_cell(
    ended: Iterable[Ended], left: Iterable[Task], link: Link, begun: Collection[Task] = ()
) -> dict[str, list[Mark]]:
    """A mark for each run and each task without an outcome. `begun`: those of the tasks that are under way, or were."""
    marks: dict[str, list[Mark]] = {}
    for run in ended:
        mark = Mark(run.outcome, f"seed {run.seed}: {run.outcome}", link(run.run))
        marks.setdefault(run.cell, []).append(mark)
    for task in left:
        words = "began" if task in begun else "not reached"
        marks.setdefault(task.cell, []).append(Mark("left", f"seed {task.seed}: {words}"))
    return marks


def squares(marks: Sequence[Mark], most: int = SQUARES) -> Cell:
    """A square for each run; of more than `most` a bar of their outcomes."""
    if len(marks) <= most:
        return Cell(marks=tuple(marks))
    counts = Counter(mark.style for mark in marks)
    return Cell(parts=tuple((word, counts[word]) for word in OUTCOMES))


def _runs(summary: Summary, link: Link) -> Section:
    order = {"anomaly": 0, "broken": 1, "unknown": 2, "inconclusive": 3, "valid": 4}
    runs = sorted(summary.ended, key=lambda run: order[run.outcome])
    rows = [
        (
            Cell(run.outcome, run.outcome),
            Cell(run.cell, "prose"),
            str(run.seed),
            f"{run.seconds:.1f}",
            Cell(run.run.rpartition("/")[2] or "no folder", link=link(run.run)),
            Cell(run.sentence, "prose"),
        )
        for run in runs[:LISTED]
    ]
    more = f" The first {LISTED} of {len(runs):,}." if len(runs) > LISTED else ""
    caption = f"What failed first.{more}"
    return Section(
        "Runs",
        caption,
        ("outcome", "cell", "seed", "seconds", "run", "what it says"),
        rows,
        frozenset({"seed", "seconds"}),
    )


def _by_cell(summary: Summary) -> dict[str, dict[str, int]]:
    words = (*OUTCOMES, "not reached")
    cells: dict[str, dict[str, int]] = {}
    for run in summary.ended:
        cells.setdefault(run.cell, dict.fromkeys(words, 0))[run.outcome] += 1
    for task in summary.left:
        cells.setdefault(task.cell, dict.fromkeys(words, 0))["not reached"] += 1
    return cells


def _clean(text: str) -> str:
    """Without the characters that XML cannot express."""
    return _NO_XML.sub("\ufffd", text)


def _md(text: str) -> str:
    """The text on one line of a table, with its markup escaped."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", " ".join(text.split()))
