"""The queues of a run as pictures: what they show, that they stay small, and that no odd value hides the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.pages import html, material
from harness.pages.queue_boxes import BOXES_MAX, ROWS_MAX, queue_boxes
from harness.pages.queue_lanes import LANES_MAX, queue_lanes
from harness.pages.queues import queues_view
from tests.harness.pages.run_folders import build

SECOND_NS = 10**9
LANE: dict[str, Any] = {
    "name": "n1",
    "points": "0,5,0,5 100000,7,2,5 200000,7,0,7 300000,5,3,5 400000,8,0,6",
    "rounds": "100000 400000",
    "spans": [{"from_ns": 50_000_000, "to_ns": 300_000_000, "kind": "split", "text": "without n2"}],
    "marks": [
        {"at_ns": 300_000_000, "kind": "restored", "label": "restored: 7 → 5", "text": "goes back", "from": 7, "to": 5},
        {"at_ns": 200_000_000, "kind": "wrong", "label": "violation", "text": "record 9"},
    ],
}  # fmt: skip
STRETCH: dict[str, Any] = {"title": "Split 1 of 2", "start_ns": 0, "end_ns": 500_000_000, "lanes": [LANE]}
BOARD: dict[str, Any] = {
    "columns": ["apart"],
    "origins": {"x": "n1", "y": "n1", "z": "n2", "w": "n2"},
    "rows": [
        {
            "name": "n1",
            "cells": [{"before": 4, "synced": ["x", "y"], "more_synced": 3, "executed": 5, "about": "without n2"}],
        },
        {"name": "n2", "cells": [{"before": 4, "synced": ["x", "z"], "incoming": ["w"], "executed": 6}]},
    ],
}  # fmt: skip


def test_a_lane_shows_its_log_its_waiting_ones_and_its_jump_back() -> None:
    """If it failed, a reader would not see that a restore took entries back."""
    drawn = queue_lanes(STRETCH, (), {})
    for text in ("n1", "waiting ≤ 3", "without n2", "restored: 7 → 5", "record 9", "0.10 s"):
        assert text in drawn
    heights = [float(y) for y in re.findall(r"V([\d.]+)", re.findall(r'synced-line" d="([^"]*)"', drawn)[0])]
    seven, still_seven, five, eight = heights
    assert eight < seven == still_seven < five, "a queue that falls goes down"
    assert "executed-area again" in drawn, "what is executed again has a colour of its own"
    assert 'class="fall"' in drawn and 'class="round-line"' in drawn


def test_a_fork_is_framed_from_the_first_entry_that_differs() -> None:
    """If it failed, a reader would compare boxes by eye."""
    drawn = queue_boxes(BOARD)
    frames = re.findall(r'class="fork" x="([\d.]+)"[^>]* width="([\d.]+)"', drawn)
    assert len(frames) == 3, "one for each node, and one in the legend"
    assert drawn.count("a fork: another node has a different entry 6") == 2
    for text in ("4 …", "+3", "without n2", "made by n2", "executed: the first 5"):
        assert text in drawn
    same = {**BOARD, "rows": [BOARD["rows"][0]]}
    assert "fork" not in queue_boxes(same)


def test_short_ids_stand_in_their_boxes_and_long_ones_do_not() -> None:
    """If it failed, long ids would cover each other."""
    assert ">x</text>" in queue_boxes(BOARD)
    long = {**BOARD["rows"][0]["cells"][0], "synced": ["n1-1-17", "n1-1-18"]}
    drawn = queue_boxes({**BOARD, "rows": [{"name": "n1", "cells": [long]}]})
    assert ">n1-1-17</text>" not in drawn
    assert "<title>n1-1-17, n1-1-18</title>" in drawn


def test_there_is_no_drawing_of_nothing() -> None:
    """If it failed, a page would have an empty figure."""
    assert queue_lanes({**STRETCH, "lanes": []}, (), {}) == ""
    assert queue_lanes({**STRETCH, "end_ns": 0}, (), {}) == ""
    assert queue_lanes(None, (), {}) == queue_boxes(None) == ""
    assert queue_boxes({**BOARD, "rows": []}) == queue_boxes({**BOARD, "columns": []}) == ""


def test_large_values_stay_small_and_markup_is_escaped() -> None:
    """If it failed, a long run would make a page that no browser opens; or a node's name would be a script."""
    evil = "<img src=x onerror=alert(1)>"
    points = " ".join(f"{number},{number},{number},{number}" for number in range(50_000))
    lane = {
        **LANE,
        "name": evil,
        "points": points,
        "marks": LANE["marks"] * 1_000,
        "spans": LANE["spans"] * 1_000,
    }
    lane["rounds"] = " ".join(map(str, range(0, 500_000, 7)))
    drawn = queue_lanes({**STRETCH, "lanes": [lane] * 100}, (), {})
    assert "<img" not in drawn
    assert drawn.count('class="synced-line"') == LANES_MAX
    assert len(drawn) < 4_000_000
    names = [f"{evil}{number}" for number in range(1_000)]
    cell = {**BOARD["rows"][0]["cells"][0], "synced": names, "about": evil}
    boxes = queue_boxes({**BOARD, "rows": [{"name": evil, "cells": [cell] * 50}] * 50})
    assert "<img" not in boxes
    assert boxes.count("h9v20") <= BOXES_MAX * ROWS_MAX


def test_the_page_opens_the_stretch_with_the_jump_back(tmp_path: Path) -> None:
    """If it failed, a reader would have to open every split to find the one that took something back."""
    folder = build(tmp_path / "run", "valid")
    plain = {**STRETCH, "title": "Split 1", "lanes": [{**LANE, "marks": []}]}
    queues = {
        "whole": {**plain, "title": "All", "lanes": [{**LANE, "marks": [], "marks_left_out": 9}]},
        "stretches": [plain, {**STRETCH, "board": BOARD}],
        "not_drawn": "3 more",
    }
    verdict = {**material.read(folder).verdict, "drawings": {"queues": queues}}
    view = queues_view(material.read(folder, verdict), ())
    assert [(each.title.partition(",")[0], each.is_open) for each in view.stretches] == [
        ("All", True),
        ("Split 1", False),
        ("Split 1 of 2", True),
    ]
    assert view.notes == ("3 more",)
    assert view.stretches[0].told == ("9 marks found no room, the small ones first.",)
    page = html(folder, verdict)
    assert 'id="queues"' in page and "3 more" in page
    assert 'id="queues"' not in html(folder)
    assert "no queues" in html(folder, {**verdict, "drawings": {"broken": "no queues"}})


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.sampled_from(["n1", "1,2,3,4", "", "7"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["name", "points", "rounds", "marks", "spans", "at_ns", "from", "cells", "synced", "before"]),
        inner,
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@given(
    st.sampled_from(sorted(STRETCH)),
    st.sampled_from(sorted(LANE)),
    st.sampled_from(sorted(BOARD)),
    st.sampled_from(sorted(BOARD["rows"][0]["cells"][0])),
    ODD,
)
def test_odd_values_never_raise(of_stretch: str, of_lane: str, of_board: str, of_cell: str, odd: Any) -> None:
    """If it failed, one odd value would hide the whole page."""
    queue_lanes({**STRETCH, of_stretch: odd}, (), {})
    queue_lanes({**STRETCH, "lanes": [{**LANE, of_lane: odd}, odd]}, (), {})
    queue_boxes({**BOARD, of_board: odd})
    cell = {**BOARD["rows"][0]["cells"][0], of_cell: odd}
    queue_boxes({**BOARD, "rows": [{"name": "n1", "cells": [cell, odd]}, odd]})
