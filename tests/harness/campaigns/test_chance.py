"""The exact test against the enumeration of all draws."""

from __future__ import annotations

import itertools
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from harness.campaigns.chance import Count, Stratum, chances


@st.composite
def counts(draw: st.DrawFn, most: int = 4) -> Count:
    runs = draw(st.integers(0, most))
    return Count(draw(st.integers(0, runs)), runs)


def enumerated(strata: list[Stratum]) -> Fraction:
    """The slow twin: every way to mark the runs of each cell, and the share of ways as uneven as the real one."""
    seen = sum(after.hits for _, after in strata)
    choices = []
    for before, after in strata:
        runs = ["before"] * before.runs + ["after"] * after.runs
        marked = itertools.combinations(range(len(runs)), before.hits + after.hits)
        choices.append([sum(runs[place] == "after" for place in places) for places in marked])
    draws = [sum(draw) for draw in itertools.product(*choices)]
    return Fraction(sum(draw >= seen for draw in draws), len(draws))


@given(st.lists(st.tuples(counts(), counts()), max_size=3))
def test_it_is_the_share_of_all_draws(strata: list[Stratum]) -> None:
    """If it failed, a night would cry on chance, or miss what is really more frequent."""
    assert chances(strata) == (enumerated(strata), enumerated([(after, before) for before, after in strata]))


def test_known_values() -> None:
    """If it failed, both the test and its twin would count the wrong side. Fisher's tea: 4 of 4, 1 in 70."""
    tea = [(Count(0, 4), Count(4, 4))]
    assert chances(tea) == (Fraction(1, 70), 1)
    assert chances([]) == (1, 1)
    assert chances([(Count(3, 1000), Count(3, 1000))])[0] > Fraction(1, 2)


def test_a_different_mix_of_cells_is_no_difference() -> None:
    """If it failed, a night with more runs of a cell that always fails would be called worse."""
    always, never = (Count(2, 2), Count(20, 20)), (Count(0, 20), Count(0, 2))
    assert chances([always, never])[0] == 1
    assert chances([(Count(2, 22), Count(20, 22))])[0] < Fraction(1, 1000)
