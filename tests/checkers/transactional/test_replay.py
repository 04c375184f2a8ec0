"""The replay of a proof, by orders that are wrong in one way each: no valid verdict stands without it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
import pytest

from checkers.transactional import replay_kernels
from checkers.transactional.columns import FAIL, INFO, OK, columns_of
from tests.checkers.transactional.txns import Txn, history, ok, register

OUTCOME = numpy.array([OK, FAIL, INFO], numpy.int8)


@pytest.mark.parametrize(
    ("order", "serial", "is_incomplete"),
    [
        ([0], True, False),
        ([2, 0], True, False),
        ([2], True, True),  # an ok one is missing
        ([0, 1], True, True),  # a failed one is there
        ([0, 2, 0], True, True),  # one stands twice
        ([0, 3], True, True),
        ([-1, 0], True, True),
        ([0, 3], False, False),
        ([0, 2, 5, 3], False, False),
        ([3, 0], False, True),  # commits before it reads
        ([0], False, True),  # does not commit
        ([3], False, True),
        ([0, 3, 2], False, True),
        ([0, 1, 3, 4], False, True),
        ([0, 3, 3], False, True),
        ([0, 3, 6], False, True),
    ],
)
def test_an_order_has_each_that_happened_once(order: list[int], *, serial: bool, is_incomplete: bool) -> None:
    """Broken, an order would prove a history that leaves a transaction out, or one that failed in."""
    assert replay_kernels.incomplete(numpy.array(order, numpy.int32), OUTCOME, serial) == is_incomplete


@pytest.mark.parametrize(
    ("order", "sessions", "serial", "early"),
    [
        ([0, 1, 2], [0, 0, 0], True, -1),
        ([0, 2, 1], [0, 0, 0], True, -1),  # the last two overlap
        ([1, 0, 2], [0, 0, 0], True, 1),
        ([1, 0, 2], [0, 1, 1], True, -1),  # of another session
        ([0, 1, 3, 4, 2, 5], [0, 0, 0], False, 1),  # reads before the first one commits
        ([0, 3, 1, 4, 2, 5], [0, 0, 0], False, -1),
        ([0, 1, 3, 4, 2, 5], [0, 1, 0], False, -1),
    ],
)
def test_an_order_keeps_time(order: list[int], sessions: list[int], *, serial: bool, early: int) -> None:
    """Broken, an order would prove a model of sessions or of real time against both."""
    invoke, ends = numpy.array([0, 2, 3], numpy.int64), numpy.array([1, 4, 5], numpy.int64)
    of = numpy.array(sessions, numpy.int64)
    found = replay_kernels.early(numpy.array(order, numpy.int32), invoke, ends, of, max(sessions) + 1, serial)
    assert found == early


SPLIT = [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("txns", "order", "rules", "contradicted"),
    [
        ((ok(1, "ax1"), ok(2, "rx1")), [0, 1], (True, True, True), -1),
        ((ok(1, "ax1"), ok(2, "rx1")), [1, 0], (True, True, True), 1),
        ((ok(1, "ax1"), ok(2, "ax2 rx12")), [0, 1], (True, True, True), -1),
        ((ok(1, "ax1"), ok(2, "ax2 rx21")), [0, 1], (True, True, True), 1),
        ((ok(1, "ax1"), ok(2, "ax2 rx2")), [0, 1], (True, True, True), 1),
        ((ok(1, "ax1"), ok(2, "px")), [0, 1], (True, True, True), 1),
        ((ok(1, "ax1"), ok(2, "px")), [0, 1], (True, False, True), -1),
        ((ok(1, "wx1"), register(2, "rx1 wx2 rx2")), [0, 1], (True, True, True), -1),
        ((ok(1, "wx1"), register(2, "rx1 wx2 rx1")), [0, 1], (True, True, True), 1),
        ((ok(1, "wx1"), register(2, "rx")), [0, 1], (True, True, True), 1),
        # Both write what neither saw of the other.
        ((ok(1, "wx1"), ok(2, "wx2")), SPLIT, (False, True, True), 1),
        ((ok(1, "wx1"), ok(2, "wx2")), SPLIT, (False, True, False), -1),
        ((ok(1, "wx1 wx3"), ok(2, "wx2")), [0, 2, 1, 3], (False, True, True), -1),
        ((ok(1, "wx1 wx3"), register(2, "rx3")), [0, 2, 1, 3], (False, True, True), -1),
        ((ok(1, "wx1"), register(2, "rx1")), SPLIT, (False, True, True), 1),
    ],
)
def test_an_order_gives_the_answers(
    txns: Sequence[Txn], order: list[int], rules: tuple[bool, bool, bool], contradicted: int
) -> None:
    """Broken, an order would prove answers that no store gives which works in it."""
    lists = any(word[0] == "append" for txn in txns for word in txn.micros)
    c = columns_of(history(*txns), "append" if lists else "rw-register")
    serial, predicates, first_wins = rules
    found = replay_kernels.contradicted(
        *(numpy.array(order, numpy.int32), serial, lists, predicates, first_wins),
        *(c.first, c.outcome, c.f, c.key, c.value, c.length, c.elements, c.key_count),
    )
    assert found == contradicted
