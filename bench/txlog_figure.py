"""Writes docs/txlog-rounds.svg: the example of the TxLog's design, drawn by the code that draws it on a run's page.

    python -m bench.txlog_figure

Three masters begin with U1 … U10 in their logs. The incoming queues have A and B, C, and D and E. In the round, one
master does not get D and E in time. All queues have A, B, C in front, so these are added. F and G come meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import pages
from harness.pages.queue_boxes import queue_boxes
from harness.systems.txlog.logs import Placed
from harness.systems.txlog.picture import Picture, board
from nodes.records import Record

FIGURE = Path(__file__).parents[1] / "docs" / "txlog-rounds.svg"
PAGE_STYLE = Path(pages.__file__).with_name("page.css")

OLD = [[number, f"U{number}", "n1"] for number in range(1, 11)]
A, B, C, D, E, F, G = (
    [11 + place, name, origin]
    for place, (name, origin) in enumerate(
        (("A", "n1"), ("B", "n1"), ("C", "n2"), ("D", "n3"), ("E", "n3"), ("F", "n1"), ("G", "n2"))
    )
)
BEGUN = ["added", 0, OLD, 10, ["n1", "n2", "n3"], []]


def _made(*refs: Sequence[object]) -> list[Record]:
    return [["made", ref[0], ref[0], ref[1], []] for ref in refs]


def _heard(peer: str, *refs: Sequence[object]) -> Record:
    return ["heard", peer, 15, 15, list(refs)]


ADDED = ["added", 10, [A, B, C], 13, ["n1", "n2", "n3"], []]
STEPS: Mapping[str, Sequence[Sequence[Record]]] = {
    "n1": ([BEGUN, *_made(A, B)], [_heard("n2", C), _heard("n3", D, E)], [ADDED, *_made(F), _heard("n2", G)]),
    "n2": (
        [BEGUN, *_made(C)],
        [_heard("n1", A, B)],
        [ADDED, *_made(G), _heard("n3", D, E), _heard("n1", F)],
    ),
    "n3": ([BEGUN, *_made(D, E)], [_heard("n1", A, B), _heard("n2", C)], [ADDED, _heard("n1", F, G)]),
}
"""Master → the records of each step."""
COLUMNS = ("start", "after COLLECT", "after ADD")


def example() -> Picture:
    """The board of the example (`harness.systems.txlog.picture`)."""
    logs = {
        name: [
            Placed(name, place, 1, kind, fields)
            for place, (kind, *fields) in enumerate((each for step in steps for each in step), 1)
        ]
        for name, steps in STEPS.items()
    }
    columns = [
        (title, {name: sum(map(len, steps[: number + 1])) for name, steps in STEPS.items()})
        for number, title in enumerate(COLUMNS)
    ]
    return board(columns, logs)


def figure() -> str:
    """The example as a file of its own: with the colours of the page, light or dark."""
    drawn = str(queue_boxes(example()))
    lines = PAGE_STYLE.read_text(encoding="utf-8").splitlines()
    colours = "\n".join(lines[: next(place for place, line in enumerate(lines) if line.startswith("* {"))])
    rules = "\n".join(line for line in lines if re.match(r"svg (text|\.)|\.queues |\.rule-line", line))
    ground = '<rect width="100%" height="100%" fill="var(--paper)"/>'
    style = f"<style>{colours}\n{rules}</style>"
    return re.sub(
        r"^<svg ([^>]*)>", rf'<svg xmlns="http://www.w3.org/2000/svg" \1>{style}{ground}', drawn, count=1
    )


if __name__ == "__main__":
    FIGURE.write_text(figure() + "\n", encoding="utf-8")
