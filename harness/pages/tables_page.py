"""A page of tables over many runs: the same look as a run's page, no script, no external resources.

A cell is text, or a `Cell` with a style ("valid", "anomaly", …) or a link. Everything is escaped.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markupsafe import Markup, escape

from harness.pages.visible import visible

HERE = Path(__file__).parent
OUTCOMES = ("valid", "anomaly", "unknown", "inconclusive")


@dataclass(frozen=True, slots=True)
class Mark:
    """A square: its style (an outcome), the words under the mouse, and where it leads."""

    style: str
    title: str
    link: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """`style` is a class of the style sheet; `parts` draws a bar of counts by outcome in place of the text, `marks` a
    square for each run.
    """

    text: str = ""
    style: str = ""
    link: str = ""
    parts: tuple[tuple[str, float], ...] = ()
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A table with its heading. `numbers`: the columns that are set to the right. `paste`: text to be copied, in the
    table's place.
    """

    title: str
    caption: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str | Cell]]
    numbers: frozenset[str] = frozenset()
    empty: str = "Nothing."
    paste: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """The content of the page, from top to bottom."""

    title: str
    crumbs: tuple[str, ...]
    tone: str
    badge: str
    sentence: str
    facts: tuple[tuple[str, str, str], ...] = ()
    """Label, value, and a smaller word."""
    notes: tuple[str, ...] = ()
    sections: tuple[Section, ...] = field(default_factory=tuple)
    style: str = ""
    """More style rules. They are not escaped, so they come from our own code alone."""


def stylesheet() -> str:
    """The style sheet of a run's page, and that of tables."""
    return (HERE / "page.css").read_text() + (HERE / "tables.css").read_text()


def html(page: Page) -> str:
    """The whole page as one file."""
    style = stylesheet() + page.style
    filled = _PAGE.format(
        policy=_POLICY.format(hash_of(style)),
        style=Markup(style),
        title=page.title,
        crumbs=Markup(" <span>/</span> ").join(escape(crumb) for crumb in page.crumbs),
        tone=page.tone,
        badge=page.badge,
        sentence=page.sentence,
        facts=Markup("").join(_FACT.format(*fact) for fact in page.facts),
        notes=_notes(page.notes),
        sections=Markup("").join(section_html(section) for section in page.sections),
    )
    return visible(filled)


def hash_of(source: str) -> str:
    """For a page's own content policy, which allows this style or script and nothing else."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


_POLICY = (
    "default-src 'none'; style-src '{}'; style-src-attr 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
_PAGE = Markup("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<header>
  <p class="crumbs">qsync-harness <span>/</span> {crumbs}</p>
  <div class="verdict {tone}"><strong class="badge" id="badge">{badge}</strong><h1>{sentence}</h1></div>
  <dl class="facts">{facts}</dl>
  {notes}
</header>
{sections}
</main>
</body>
</html>
""")
_FACT = Markup("<div><dt>{}</dt><dd>{} <small>{}</small></dd></div>")
_SECTION = Markup("""<section>
<div class="heading"><h2>{title}</h2></div>
<p class="caption">{caption}</p>
{body}
</section>
""")


def _notes(notes: Sequence[str]) -> Markup:
    if not notes:
        return Markup("")
    rows = Markup("").join(Markup("<li>{}</li>").format(note) for note in notes)
    return Markup('<div class="callout" id="notes"><b>Notes.</b><ul>{}</ul></div>').format(rows)


def section_html(section: Section) -> Markup:
    if section.paste:
        body = Markup('<pre class="paste" tabindex="0">{}</pre>').format(section.paste)
        return _SECTION.format(title=section.title, caption=section.caption, body=body)
    if not section.rows:
        return _SECTION.format(title=section.title, caption=section.caption, body=section.empty)
    sides = ["number" if column in section.numbers else "" for column in section.columns]
    head = Markup("").join(
        Markup('<th class="{}">{}</th>').format(side, column)
        for side, column in zip(sides, section.columns, strict=True)
    )
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(cell_html(cell, side) for cell, side in zip(row, sides, strict=True))
        )
        for row in section.rows
    )
    table = Markup(
        '<div class="scroll" tabindex="0"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
    ).format(head, body)
    return _SECTION.format(title=section.title, caption=section.caption, body=table)


def cell_html(cell: str | Cell, side: str = "") -> Markup:
    """`side`: the class of a column of numbers."""
    if isinstance(cell, str):
        return Markup('<td class="{}">{}</td>').format(side, cell)
    if cell.parts:
        return Markup("<td>{}</td>").format(_shares(cell.parts))
    if cell.marks:
        return Markup('<td><div class="marks">{}</div></td>').format(Markup("").join(map(_mark, cell.marks)))
    inside = Markup('<a href="{}">{}</a>').format(cell.link, cell.text) if cell.link else escape(cell.text)
    if cell.style in OUTCOMES:
        return Markup('<td class="{}"><span class="word {}">{}</span></td>').format(side, cell.style, inside)
    return Markup('<td class="{} {}">{}</td>').format(side, cell.style, inside)


def _mark(mark: Mark) -> Markup:
    if not mark.link:
        return Markup('<span class="mark-of {}" title="{}"></span>').format(mark.style, mark.title)
    square = Markup('<a class="mark-of {}" href="{}" title="{}" aria-label="{}"></a>')
    return square.format(mark.style, mark.link, mark.title, mark.title)


def _shares(parts: Sequence[tuple[str, float]]) -> Markup:
    whole = sum(count for _, count in parts) or 1
    bars = Markup("").join(
        Markup('<span class="share {}" style="width:{:.2f}%" title="{} {:g}"></span>').format(
            name, 100 * count / whole, name, count
        )
        for name, count in parts
        if count
    )
    return Markup('<div class="shares">{}</div>').format(bars)
