"""The check of the random runs rejects what it is there for."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.nodes.twophase.random_run import Run, check_order
from tests.nodes.twophase.virtual_cluster import Asked, VirtualCluster

Look = tuple[int, int, list[list[Any]], list[Any]]
"""Asked at, answered at, steps, results."""


def append(name: str, tag: str) -> list[Any]:
    return ["append", "log", name, tag]


def read(name: str) -> list[Any]:
    return ["read", "log", name]


def looked(*looks: Look) -> Run:
    run = Run(VirtualCluster(1), random.Random(1))
    run.looks = [
        Asked("n1", ["txn", number, steps], asked_ns, {"type": "ok", "results": results}, answered_ns)
        for number, (asked_ns, answered_ns, steps, results) in enumerate(looks)
    ]
    return run


ROWS: dict[tuple[str, Any], Any] = {("log", "l0"): ["a"], ("log", "l1"): ["b"]}
BOTH_READ_NOTHING: tuple[Look, Look] = (
    (0, 10, [read("l1"), append("l0", "a")], [None, True]),
    (0, 10, [read("l0"), append("l1", "b")], [None, True]),
)
OLD_READ: tuple[Look, Look] = (
    (0, 10, [append("l0", "a")], [True]),
    (20, 30, [read("l0")], [None]),
)
NOT_A_BEGINNING: tuple[Look, ...] = ((0, 10, [read("l0")], [["b"]]),)


@pytest.mark.parametrize(
    "looks",
    [
        (*BOTH_READ_NOTHING,),
        (*OLD_READ, (0, 10, [append("l1", "b")], [True])),
        (*NOT_A_BEGINNING, (0, 10, [append("l0", "a")], [True]), (0, 10, [append("l1", "b")], [True])),
    ],
    ids=["write skew", "old read", "no beginning of the list"],
)
def test_what_has_no_order_is_rejected(looks: tuple[Look, ...]) -> None:
    """If it failed, storms would pass whatever transactions have read."""
    with pytest.raises(AssertionError):
        check_order(looked(*looks), ROWS)


def test_what_has_an_order_is_accepted() -> None:
    """If it failed, a storm would fail without a fault of the store."""
    one, (_, _, steps, _) = BOTH_READ_NOTHING
    check_order(looked(one, (0, 10, steps, [["a"], True])), ROWS)
    first, (_, _, late, _) = OLD_READ
    check_order(looked(first, (5, 30, late, [None]), (0, 10, [append("l1", "b")], [True])), ROWS)
