"""Pairs of numbers get numbers: the plain kernel against a dict."""

from __future__ import annotations

import warnings

import numpy
from hypothesis import given
from hypothesis import strategies as st

from checkers.logs.wal.columns import numbered
from checkers.logs.wal.plain import packed

INT64S = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-2, 2)


@given(st.lists(st.tuples(INT64S, INT64S), max_size=40))
def test_each_pair_has_a_number_in_the_order_in_which_it_comes(pairs: list[tuple[int, int]]) -> None:
    """Broken, two keys of an audit would be one, or numpy would tell the user that a product overflows."""
    one, other = numpy.array([packed("register-1"), *pairs, packed("register-2")], dtype=numpy.int64).T
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numbers, count = numbered(one, other)
    known: dict[tuple[int, int], int] = {}
    both = zip(one.tolist(), other.tolist(), strict=True)
    assert numbers.tolist() == [known.setdefault(pair, len(known)) for pair in both]
    assert count == len(known)
