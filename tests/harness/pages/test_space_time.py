"""The space-time diagram: drawn from values of any shape, its arrows and cuts where the values say."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.pages.space_time import LANES_MAX, PLACES_MAX, space_time_drawing

PICTURE: dict[str, Any] = {
    "lanes": [{"name": "n1", "about": "near"}, {"name": "n2"}],
    "events": [
        {"lane": "n1", "at": 10, "text": "t5 COMMITTED", "kind": "bad"},
        {"lane": "n2", "at": 12, "text": "t5 COMMITTED", "kind": "record"},
        {"lane": "n2", "at": 13, "text": "cut 3 starts", "kind": "cut"},
    ],
    "arrows": [
        {
            "from": {"lane": "n1", "at": 10},
            "to": {"lane": "n2", "at": 12},
            "text": "FINISH",
            "kind": "violating",
        },
        {
            "from": {"lane": "n1", "at": 9},
            "to": {"lane": "n2", "at": 13},
            "text": "too early",
            "kind": "marked",
        },
    ],
    "cuts": [{"name": "cut 3", "at": {"n1": 9, "n2": 13}}],
    "brackets": [{"lane": "n2", "from": 12, "to": 13, "text": "START to FINISH"}],
    "not_drawn": 1_500,
}


def test_it_shows_what_it_was_given() -> None:
    """Broken, the reader of a violation does not see the message that violates, or sees it on the wrong side."""
    drawn = space_time_drawing(PICTURE)
    for text in ("n1", "near", "t5 COMMITTED", "cut 3", "START to FINISH", "BEFORE", "AFTER", "1,500 events"):
        assert text in drawn
    shafts = re.findall(r'class="sent (\w+)".*?class="shaft"|class="sent (\w+)"', drawn)
    assert len(shafts) == 1, "an arrow from a place that is not drawn has no end"
    cut = re.search(r'class="cut-line" d="M([^"]*)"', drawn)
    assert cut is not None
    points = [tuple(map(float, point.split())) for point in cut[1].split("L")]
    dots = dict(re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn))
    assert len(points) == 4 and len(dots) == 3
    committed = min(map(float, dots))
    assert points[1][0] < committed < points[2][0], "n1 commits behind the cut, n2 before it"


@pytest.mark.parametrize("field", ["lanes", "events"])
def test_there_is_no_drawing_of_nothing(field: str) -> None:
    """Broken, a page has an empty figure."""
    assert space_time_drawing({**PICTURE, field: []}) == ""
    assert space_time_drawing(None) == ""


def test_the_violating_message_is_on_top_and_markup_is_escaped() -> None:
    """Broken, other arrows cover it; or a node's name is a script."""
    evil = "<img src=x onerror=alert(1)>"
    both = [{**PICTURE["arrows"][0]}, {**PICTURE["arrows"][0], "kind": "message", "text": evil}]
    lanes = [*PICTURE["lanes"], {"name": evil, "about": evil}]
    drawn = space_time_drawing(
        {**PICTURE, "arrows": both, "lanes": lanes, "cuts": [{"name": evil, "at": {"n1": 9}}]}
    )
    assert "<img" not in drawn
    assert drawn.index('class="sent message"') < drawn.index('class="sent violating"')


def test_a_large_picture_stays_small() -> None:
    """Broken, a witness of a long run makes a page that no browser opens."""
    events = [{"lane": f"n{at % 50}", "at": at, "text": "x" * 500, "kind": "state"} for at in range(20_000)]
    lanes = [{"name": f"n{number}"} for number in range(50)]
    drawn = space_time_drawing({"lanes": lanes, "events": events})
    assert drawn.count("<circle") <= PLACES_MAX
    assert drawn.count('class="lane"') == LANES_MAX
    assert len(drawn) < 300_000


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | st.sampled_from(["n1", "n2", "", "bad"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["lane", "at", "from", "to", "name", "n1", "text", "kind"]), inner, max_size=5
        )
    ),
    max_leaves=12,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(PICTURE, ODD)), st.sampled_from(sorted(PICTURE)))
def test_odd_values_never_raise(odd: dict[str, Any], kept: str) -> None:
    """Broken, one odd value hides the whole page."""
    space_time_drawing(odd)
    space_time_drawing({**PICTURE, **odd, kept: PICTURE[kept]})
    space_time_drawing({**PICTURE, kept: odd.get(kept)})


@given(
    st.lists(
        st.tuples(st.sampled_from(["n1", "n2"]), st.integers(0, 30), st.text("abc ", max_size=30)), min_size=1
    )
)
def test_texts_do_not_overlap(events: list[tuple[str, int, str]]) -> None:
    """Broken, two texts make one unreadable one."""
    told = [{"lane": lane, "at": at, "text": f"t{text}"} for lane, at, text in events]
    drawn = space_time_drawing({"lanes": PICTURE["lanes"], "events": told})
    boxes = [
        (float(x) - 3.66 * len(text), float(x) + 3.66 * len(text), float(y))
        for x, y, text in re.findall(
            r'class="op-label" x="([\d.]+)" y="([\d.]+)" text-anchor="middle">([^<]*)<', drawn
        )
    ]
    assert boxes
    for number, (left, right, y) in enumerate(boxes):
        for other_left, other_right, other_y in boxes[:number]:
            assert right <= other_left or left >= other_right or abs(y - other_y) > 12
