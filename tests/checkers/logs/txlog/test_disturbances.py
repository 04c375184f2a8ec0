"""When masters may have left each other out, by the faults of a history: hand-written times."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from checkers.logs.txlog.disturbances import OPEN, Disturbances
from tests.checkers.logs.txlog.scripts import SECOND, cut, history, told

MASTERS = ("n1", "n2", "n3")
SPLIT_NS = 2 * SECOND
CRASH = [{**told("crash", 4.0, {"how": "exit 1"})[0], "process": "monitor", "node": "n3"}]
STALL = told("stall", 9.0, {"stalled_ms": 5_000})


def disturbances(*lines: list[dict[str, Any]], idle_s: float = 0.0, split_ns: int = SPLIT_NS) -> Disturbances:
    return Disturbances(history(*lines), MASTERS, split_ns, int(idle_s * SECOND))


def seconds(spans: Any) -> list[tuple[float, float]]:
    return [(begin / SECOND, float("inf") if end >= OPEN else end / SECOND) for begin, end in spans]


def one_way(links: list[tuple[str, str]], start_s: float, end_s: float) -> list[dict[str, Any]]:
    lines = cut(links, start_s, end_s)
    lines[0]["value"]["links"] = [[*link] for link in links]
    return lines


def of_no_node(start_s: float, end_s: float) -> list[dict[str, Any]]:
    lines = cut([], start_s, end_s)
    lines[0]["value"]["does"] = "kill"
    return lines


@pytest.mark.parametrize(
    ("lines", "apart"),
    [
        (cut([("n1", "n3")], 1, 5), {"n1 n3": [(1, 6)]}),
        (cut([("n1", "n3")], 1, 1.8), {}),  # 0.8 s and the time to reconnect: shorter than the time-out
        (CRASH, {"n1 n3": [(4, float("inf"))], "n2 n3": [(4, float("inf"))]}),
        (STALL, {pair: [(4, 10)] for pair in ("n1 n2", "n1 n3", "n2 n3")}),
        (one_way([("n3", "n1")], 1, 5), {"n1 n3": [(1, 6)]}),
        (of_no_node(1, 5), {pair: [(1, 6)] for pair in ("n1 n2", "n1 n3", "n2 n3")}),
    ],
    ids=["cut", "short cut", "crash", "stall", "one way", "a fault of no node"],
)
def test_who_may_have_left_out_whom(lines: list[dict[str, Any]], apart: Mapping[str, Any]) -> None:
    """If it failed, a right master would be blamed for a split, or a wrong one excused."""
    given = disturbances(lines)
    said = {
        f"{one} {other}": seconds(given.apart(one, other))
        for one, other in itertools.combinations(MASTERS, 2)
    }
    assert {pair: spans for pair, spans in said.items() if spans} == apart
    assert not disturbances(lines, split_ns=0).apart("n1", "n3"), "without a time-out nobody is left out"


def test_silence_may_begin_an_idle_round_earlier() -> None:
    """If it failed, a split right after the time-out would be blamed, or one far too early excused."""
    lines = cut([("n1", "n3")], 1, 5)
    needed_s = 2 * 0.94
    for idle_s in (0.0, 0.5):
        given = disturbances(lines, idle_s=idle_s)
        at_ns = int((1 + needed_s - idle_s) * SECOND)
        assert given.may_be_apart("n1", "n3", by_ns=at_ns + 1_000)
        assert not given.may_be_apart("n1", "n3", by_ns=at_ns - 1_000)


def test_from_when_on_masters_can_have_been_left_out() -> None:
    """If it failed, an execution that came in time would be called too early, or one too early would pass."""
    given = disturbances(
        cut([("n1", "n3")], 1, 5), cut([("n2", "n3")], 8, 14, 1), cut([("n1", "n2")], 20, 25, 2)
    )
    for missing, since_s, first_s in (
        (["n3"], 0, 2.88),
        (["n3", "n2"], 0, 9.88),
        (["n3"], 4, 4),
        (["n3"], 7, 9.88),  # the first cut is over, the second one has not begun
        (["n3"], 16, 16),  # no fault explains it: no excuse, and no blame
    ):
        found_ns = given.not_left_out_before_ns(missing, since_s * SECOND)
        assert found_ns == pytest.approx(first_s * SECOND), (missing, since_s)


@pytest.mark.parametrize("idle_s", [0.0, 0.5])
def test_a_cut_that_leaves_all_connected_hinders_only_while_routes_change(idle_s: float) -> None:
    """If it failed, a standstill under a cut of one link would be excused, or a right master blamed."""
    settles_s = 1 + 2 * idle_s
    one_link = seconds(disturbances(cut([("n1", "n3")], 10, 20), idle_s=idle_s).hindrances)
    assert one_link == [(10, 10 + settles_s), (20, 20 + settles_s)]
    alone = seconds(disturbances(one_way([("n3", "n1"), ("n2", "n3")], 10, 20), idle_s=idle_s).hindrances)
    assert alone == [(10, 20 + settles_s)], "no link of n3 stands both ways"
    assert seconds(disturbances(CRASH, idle_s=idle_s).hindrances) == [(4, float("inf"))]
    assert seconds(disturbances(STALL, idle_s=idle_s).spans) == [(4, 10)]
