"""The table of cuts on the page: a row for each, with the words of every level; and any values at all."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.pages.cut_table import cut_table

PICTURE = {
    "lanes": [{"name": "n1"}, {"name": "n2"}],
    "events": [
        {"lane": "n1", "at": 0, "text": "k begins", "kind": "cut"},
        {"lane": "n2", "at": 1, "kind": "record"},
    ],
    "cuts": [{"name": "k", "at": {"n1": 0, "n2": 1}}],
    "brackets": [{"lane": "n1", "from": 0, "to": 1, "text": "START to FINISH"}],
}
VERDICT: dict[str, Any] = {
    "checks": [
        {"checker": "bank", "details": {"reads": 3}},
        {
            "checker": "cuts-messages",
            "details": {
                "cuts": [
                    {"cut": "k", "result": "valid", "standing": "judged", "summary": "all is well"},
                    {"cut": "m", "result": "unknown", "standing": "nothing to judge", "summary": "it did not finish"},
                ],
                "pictures": {"k": PICTURE},
            },
        },
        {
            "checker": "cuts-finish",
            "details": {
                "cuts": [
                    {"cut": "k", "result": "invalid", "standing": "judged", "summary": "n2 is missing"},
                    {"cut": "m", "result": "unknown", "standing": "lacks material", "summary": "no log"},
                ],
                "series": [
                    {"cut": "k", "begun_ns": 10**9, "ended_ns": 10**9 + 5 * 10**6, "by": "n1", "variant": "shipped",
                     "state": "ok", "why": ""},
                    {"cut": "m", "begun_ns": 2 * 10**9, "ended_ns": None, "by": "n2", "variant": "shipped",
                     "state": "refused", "why": "a cut runs"},
                ],
            },
        },
    ]
}  # fmt: skip


def test_every_cut_has_its_row_and_every_level_its_word() -> None:
    """If it failed, a reader could not see which cuts there were, or what was found of one."""
    table = cut_table(VERDICT)
    assert table.levels == ("messages", "finish")
    k, m = table.rows
    assert (k.cut, k.begun, k.took, k.by, k.variant, k.state) == (
        "k",
        "1.000 s",
        "5 ms",
        "n1",
        "shipped",
        "finished",
    )
    assert [(said.word, said.style) for said in k.said] == [("holds", "valid"), ("violated", "violation")]
    assert (m.took, m.state, m.why) == ("", "refused", "a cut runs")
    assert [(said.word, said.style) for said in m.said] == [("–", ""), ("open", "unknown")]
    (picture,) = table.pictures
    assert picture.cut == "k"
    for part in ('class="side before"', 'class="side after"', 'class="bracket"', 'class="cut-line"'):
        assert part in picture.drawn


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["checks", "details", "cuts", "series", "pictures", "cut", "begun_ns", "ended_ns", "checker"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_values_give_a_table(odd: Any) -> None:
    """If it failed, one odd value would leave a run without its page."""
    cut_table(odd if isinstance(odd, dict) else {"checks": odd})
    cut_table({"checks": [{"checker": "cuts-x", "details": odd}]})
