"""The cuts of a run as a table, with a picture of some.

The values come from the verdict of any store. The details of a check may hold

    "series": [{"cut", "begun_ns", "ended_ns", "by", "variant", "state", "why"}]   every cut that was asked for
    "cuts": [{"cut", "result", "standing", "summary"}]                             the words of this check on each cut
    "pictures": {cut: picture}                                                     for `harness.pages.space_time`

Levels are the checks that have words on cuts; the part of their names before the first "-" is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from harness.pages.json_door import Json, as_mapping, as_mappings, as_text, as_time_ns
from harness.pages.space_time import space_time_drawing
from harness.pages.svg import duration, moment

ROWS_MAX, PICTURES_MAX = 300, 12
STATES = {"ok": "finished", "failed": "failed", "refused": "refused"}
WORDS = {"valid": "holds", "invalid": "violated", "unknown": "open"}
CLASSES = {"valid": "valid", "invalid": "violation", "unknown": "unknown"}


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of a level on a cut: a word, its style, and the sentence."""

    word: str
    style: str
    summary: str


NOTHING = Judgement("", "", "")


@dataclass(frozen=True, slots=True)
class CutRow:
    cut: str
    begun: str
    took: str
    by: str
    variant: str
    state: str
    why: str
    said: tuple[Judgement, ...]


@dataclass(frozen=True, slots=True)
class CutPicture:
    cut: str
    drawn: Markup


@dataclass(frozen=True, slots=True)
class CutTable:
    """`levels`: the heads of the columns of `CutRow.said`."""

    levels: tuple[str, ...]
    rows: tuple[CutRow, ...]
    left_out: int
    pictures: tuple[CutPicture, ...]

    @property
    def has_variants(self) -> bool:
        return any(row.variant for row in self.rows)


def cut_table(verdict: Json) -> CutTable:
    """Without rows if the run had no cuts."""
    series: list[Json] = []
    levels: dict[str, dict[str, Judgement]] = {}
    pictures: dict[str, Markup] = {}
    for check in as_mappings(verdict.get("checks")):
        details = as_mapping(check.get("details"))
        series += as_mappings(details.get("series"))
        if words := as_mappings(details.get("cuts")):
            name = as_text(check.get("checker"), 60).partition("-")[2]
            levels[name] = {as_text(entry.get("cut"), 60): _judgement(entry) for entry in words}
        for cut, picture in list(as_mapping(details.get("pictures")).items())[:PICTURES_MAX]:
            if drawn := space_time_drawing(picture):
                pictures[as_text(cut, 60)] = drawn
    rows = tuple(_row(cut, levels) for cut in series[:ROWS_MAX])
    order = [row.cut for row in rows]
    drawn_cuts = sorted(pictures, key=lambda cut: order.index(cut) if cut in order else len(order))
    return CutTable(
        levels=tuple(level.replace("-", " ") for level in levels),
        rows=rows,
        left_out=len(series) - len(rows),
        pictures=tuple(CutPicture(cut, pictures[cut]) for cut in drawn_cuts) if rows else (),
    )


def _judgement(words: Json) -> Judgement:
    result = as_text(words.get("result"), 20)
    if words.get("standing") == "nothing to judge":
        return Judgement("–", "", as_text(words.get("summary")))
    return Judgement(WORDS.get(result, "open"), CLASSES.get(result, "unknown"), as_text(words.get("summary")))


def _row(cut: Json, levels: dict[str, dict[str, Judgement]]) -> CutRow:
    name = as_text(cut.get("cut"), 60)
    begun_ns, ended_ns = as_time_ns(cut.get("begun_ns")), as_time_ns(cut.get("ended_ns"))
    is_timed = begun_ns is not None and ended_ns is not None and ended_ns >= begun_ns
    return CutRow(
        cut=name,
        begun="" if begun_ns is None else moment(begun_ns),
        took=duration(ended_ns - begun_ns) if is_timed else "",  # type: ignore[operator]  # both are there
        by=as_text(cut.get("by"), 20),
        variant=as_text(cut.get("variant"), 20),
        state=STATES.get(as_text(cut.get("state"), 20), "not known"),
        why=as_text(cut.get("why"), 200),
        said=tuple(judgements.get(name, NOTHING) for judgements in levels.values()),
    )
