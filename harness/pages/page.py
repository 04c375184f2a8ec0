"""Puts the page together and into the run's folder; the order of the sections is the template's."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from checkers.history import History
from checkers.history.values import many
from harness.judge.causes import RankedWitness, ranked, seconds
from harness.pages import first_screen, material, node_logs, tables
from harness.pages.cause_and_effect import Moment, cause_and_effect, moments
from harness.pages.covered import covered
from harness.pages.cut_table import cut_table
from harness.pages.cycle_drawing import Reason, cycle_drawing, picture_of, reasons
from harness.pages.fault_bands import FaultBand, fault_bands
from harness.pages.json_door import Json, as_text, as_texts, as_time_ns, clipped
from harness.pages.known_finds import known_finds
from harness.pages.load_chart import load_chart
from harness.pages.material import WITNESSES_DRAWN, Material
from harness.pages.node_states import HATCH
from harness.pages.orders import for_the_canvas, orders_of_witnesses
from harness.pages.owner_changes import owner_changes
from harness.pages.queues import queues_view
from harness.pages.space_time import space_time_drawing
from harness.pages.tables_page import hash_of
from harness.pages.used import used
from harness.pages.visible import visible
from harness.pages.whole_timeline import whole_timeline
from harness.pages.witness_list import Entry, witness_list
from harness.pages.witness_timeline import Proof, Timeline, proof, timeline

HERE = Path(__file__).parent
NAME = "report.html"
WITNESSES_LISTED = 60
EXPLANATIONS = 12
PRINTED = ("crash", "out-of-memory")
"""Rules that are explained by the last lines that the process printed."""
LINES_PRINTED = 60


def write(run_folder: Path) -> Path:
    """Writes `report.html` into the run's folder (to a temporary name first) and returns its path."""
    target = run_folder / NAME
    unfinished = run_folder / f".{NAME}.{os.getpid()}"
    try:
        unfinished.write_text(html(run_folder), encoding="utf-8", errors="replace")
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def html(run_folder: Path, verdict: Json | None = None, history: History | None = None) -> str:
    """The page as text. `verdict`: that of verdict.json, if it is not in the folder yet. `history`: the run's,
    if it was read already."""
    read = material.read(run_folder, verdict, history)
    bands = fault_bands(read)
    ranking = ranked(read.verdict)
    shown, more = _witnesses(read, ranking, bands)
    window = (shown[0].proof.start_ns, shown[0].proof.end_ns) if shown else None
    logs = node_logs.node_logs(run_folder, window)
    style, script = (
        _text_of("page.css", "timeline.css", "paper.css"),
        _text_of("page.js", "timeline_data.js", "timeline.js"),
    )
    orders = orders_of_witnesses(read)
    command, repeats = first_screen.repeat_line(read)
    template = _environment().get_template("page.html")
    page = template.render(
        style=style,
        script=script,
        style_hash=hash_of(style),
        script_hash=hash_of(script),
        definitions=HATCH,
        folder=run_folder.resolve().name,
        plan_name=run_folder.resolve().parent.name,
        top=first_screen.first_screen(read, bands),
        run={name: first_screen.run_value(read, name) for name in ("system", "cluster", "workload", "seed")},
        witnesses=shown,
        overview=cause_and_effect(read, ranking, bands),
        more_witnesses=more,
        others=len(ranking) - 1,
        checks=tables.check_rows(read),
        promises=first_screen.promises(read),
        rests_on=first_screen.rests_on(read),
        chart=load_chart(read, bands, window),
        owner_changes=owner_changes(read),
        used=used(read),
        orders=orders,
        covered=covered(read, bands),
        known=known_finds(read),
        timeline=whole_timeline(read, bands, run_folder.resolve().name, for_the_canvas(orders)),
        cuts=cut_table(read.verdict),
        queues=queues_view(read, bands),
        faults=tables.fault_rows(bands),
        faults_left_out=max(len(bands) - tables.ROWS, 0),
        nodes=tables.node_rows(read, bands),
        versions=tables.version_rows(read),
        logs=logs,
        command=command,
        repeats=repeats,
        plan=clipped(json.dumps(read.plan, indent=1, ensure_ascii=False), 20_000) if read.plan else "",
    )
    return visible(page)


@dataclass(frozen=True, slots=True)
class WitnessView:
    """One witness as the template draws it."""

    checkers: str
    """The check, and further checks that say the same."""
    standing: str
    """violation, or finding: allowed by what is promised."""
    rule: str
    summary: str
    said: bool
    """Whether the page's first sentence contains the summary, which then need not stand there twice."""
    where: str
    """Its key, its node, and its moment."""
    promised: str
    """The promise of the check, in words."""
    documented: str
    """The sentence of the store's documentation by which it is judged; "" without one."""
    explanation: tuple[str, ...]
    printed: tuple[str, ...]
    """The last lines of a process that ended, as it printed them."""
    proof: Proof
    picture: Timeline
    drawn: Markup
    """The picture that the checker gave: a space-time diagram or a cycle; empty without one."""
    rows: tuple[tables.OperationRow, ...]
    reasons: tuple[Reason, ...]
    """Why each edge of a cycle exists."""
    as_list: tuple[Entry, ...]
    """The same as a list, for screens that are too narrow for the picture."""


def _witnesses(
    read: Material, ranking: Sequence[RankedWitness], bands: Sequence[FaultBand]
) -> tuple[list[WitnessView], tuple[str, ...]]:
    """(the first witnesses as drawings, the next ones as a sentence each)."""
    # In the order of the page: the first witness that names an event gets its anchor.
    anchored: set[int] = set()
    marked = moments(ranking) if read.has_times else []
    views = [
        _witness_view(read, sighted, bands, anchored, place, () if place else marked)
        for place, sighted in enumerate(ranking[:WITNESSES_DRAWN])
    ]
    sentences = [
        f"{clipped(later.checker, 60)}: {as_text(later.witness.get('summary'))}"
        for later in ranking[WITNESSES_DRAWN:]
    ]
    return views, _first(sentences, WITNESSES_LISTED)


def _first(sentences: Sequence[str], most: int) -> tuple[str, ...]:
    """As many of them, and how many more there are."""
    left = len(sentences) - most
    return (*sentences[:most], *([f"… and {left:,} more, in verdict.json."] if left > 0 else ()))


def _witness_view(
    read: Material,
    sighted: RankedWitness,
    bands: Sequence[FaultBand],
    anchored: set[int],
    place: int,
    moments: Sequence[Moment],
) -> WitnessView:
    check, witness = sighted.check, sighted.witness
    shown = proof(read, witness, bands)
    summary = as_text(witness.get("summary"), 600)
    said = summary.rstrip(".").lower() in as_text(read.verdict.get("sentence"), 600).lower()
    answered = dict.fromkeys(op.node for op in shown.operations)
    node = as_text(witness.get("node") or (next(iter(answered)) if len(answered) == 1 else None), 60)
    where = [f"node {node}"] if node else []
    where += [f"key {key}"] if (key := as_text(witness.get("key"), 60)) else []
    time_ns = as_time_ns(sighted.time_ns)
    where += [seconds(time_ns)] if time_ns is not None and read.has_times else []
    checker, rule = clipped(sighted.checker, 60), as_text(witness.get("rule"), 60)
    sentences = as_texts(witness.get("explanation"), 600)
    picture = picture_of(check, rule)
    return WitnessView(
        checkers=clipped(", ".join(sighted.checkers), 200),
        standing="violation" if sighted.is_violation else "finding",
        rule=rule,
        summary=summary,
        said=said,
        where=", ".join(where),
        promised=first_screen.promised(read, checker, rule) or as_text(check.get("model"), 400),
        documented=first_screen.documented(read, checker),
        explanation=() if rule in PRINTED else _first(sentences, EXPLANATIONS),
        printed=sentences[-LINES_PRINTED:] if rule in PRINTED else (),
        proof=shown,
        picture=timeline(read, shown, bands),
        drawn=space_time_drawing(picture) or cycle_drawing(picture, read.operations, place),
        reasons=reasons(picture, read.operations, place),
        rows=tuple(tables.operation_row(operation, anchored) for operation in shown.operations),
        as_list=witness_list(shown, bands, moments, has_times=read.has_times),
    )


@functools.cache
def _environment() -> Environment:
    """Made once, because reading the template takes longer than filling it in."""
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["linked"] = linked
    environment.globals["many"] = many
    return environment


_EVENT = re.compile(r"\b(event|operation) (\d{1,12})\b")


def linked(text: str) -> Markup:
    """The text, with each `event 1431` as a link to that operation."""
    parts, last = [], 0
    for match in _EVENT.finditer(text):
        parts += [
            escape(text[last : match.start()]),
            Markup('<a href="#op-{}">{}</a>').format(match[2], match[0]),
        ]
        last = match.end()
    return Markup("").join([*parts, escape(text[last:])])


def _text_of(*names: str) -> Markup:
    """The content of these files of this folder, concatenated."""
    return Markup("\n".join((HERE / name).read_text(encoding="utf-8") for name in names))
