"""Rare turns that a plan and a history tell, for the table *sometimes*; `nodes.twophase.sometimes` has those that nodes
count."""

from __future__ import annotations

from typing import get_args

from checkers.history.history import History
from harness.systems.cut_lines import ASKED, ENDED
from harness.systems.twophase.cut_operator import NEEDS_BASE
from nodes.twophase import sometimes
from nodes.twophase.configuration import Variant

FINISHED_AFTER_LEFT = "cut finished after one that a server's leaving or joining failed"
FINISHED_AFTER_BASE = "cut finished after one that a rebalance failed"
ASKED_AT_ONCE = "cut asked for while one was open"
REFUSED = "cut refused while a server was away"
OPEN_AT_END = "cut without an end that a node reported"


def finished_by(variant: str) -> str:
    return f"cut finished, named as in {variant}"


ROWS = (
    *(finished_by(variant) for variant in get_args(Variant)),
    FINISHED_AFTER_LEFT,
    FINISHED_AFTER_BASE,
    ASKED_AT_ONCE,
    REFUSED,
    OPEN_AT_END,
)


RARE_TURNS = (*sometimes.ROWS, *ROWS)


def counted(variant: str, history: History) -> dict[str, int]:
    """Row → how often, by the lines of the operator."""
    rows = dict.fromkeys(ROWS, 0)
    open_cuts: set[str] = set()
    failed_by = ""
    for event in history.told("operator", ASKED, ENDED):
        line = event.value
        if event.f == ASKED:
            rows[ASKED_AT_ONCE] += bool(open_cuts)
            open_cuts.add(line["cut"])
            continue
        if line["state"] == "unknown":
            continue
        open_cuts.discard(line["cut"])
        if line["state"] == "ok":
            rows[finished_by(variant)] += 1
            rows[FINISHED_AFTER_LEFT] += failed_by.endswith((" left", " joined"))
            rows[FINISHED_AFTER_BASE] += NEEDS_BASE in failed_by
            failed_by = ""
        elif line["state"] == "failed":
            failed_by = line["why"]
        rows[REFUSED] += line["state"] == "refused" and line["why"].endswith("is away")
    rows[OPEN_AT_END] = len(open_cuts)
    return rows
