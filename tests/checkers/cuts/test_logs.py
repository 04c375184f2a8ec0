"""The levels over logs: in one pass over a series, and by sets, cut by cut."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.cuts import acknowledged, closure, transactions, verify_logs
from checkers.cuts.checker import Given, check
from checkers.cuts.logs import Cut, NodeLog, Operation, logs_of
from tests import examples
from tests.checkers.cuts import twin_logs
from tests.checkers.cuts.drawn_logs import (
    CUTS,
    Step,
    at_random,
    operations,
    operations_at_random,
    steps,
    written,
)

SERIES = tuple(
    Cut(id=cut, asked_ns=8 + 10 * place, ended_ns=12 + 10 * place, causes=("drawn",))
    for place, cut in enumerate(CUTS)
)


def _same(drawn: list[Step], nodes: int, honest: bool, asked: list[Operation]) -> None:
    given_logs = written(drawn, nodes=nodes, honest=honest)
    logs = logs_of(given_logs)
    members = transactions.members(logs, CUTS, logs.nodes)
    torn = transactions.counted(members.torn, len(CUTS))
    gaps = closure.by_key(members)
    inversions = closure.external(members, asked) or [None] * len(CUTS)
    wrong, missing = acknowledged.out_of_bounds(members, SERIES, asked)
    wrong, missing = wrong or [None] * len(CUTS), missing or [""] * len(CUTS)
    for place, twin in enumerate(twin_logs.judged(given_logs, SERIES, asked)):
        rows = members.torn[(members.torn[:, 1] <= place) & (place < members.torn[:, 2])]
        assert {logs.xids[xid] for xid in rows[:, 0]} == twin.torn
        assert torn[place] == len(twin.torn)
        assert (gaps.first[place] is not None) == (gaps.counts[place] > 0)
        assert gaps.counts[place] == twin.gaps or gaps.doubled
        inversion = inversions[place]
        assert (inversion is not None) == bool(twin.inversions)
        if inversion is not None:
            assert (str(inversion.earlier.xid), str(inversion.later.xid)) in twin.inversions
            is_of_one = inversion.earlier.process == inversion.later.process
            assert inversion.rule == ("session-order" if is_of_one else "real-time-order")
        assert (wrong[place] is not None or bool(missing[place])) == twin.out_of_bounds
    _same_in_any_order(given_logs)
    _proved(given_logs, asked)


def _same_in_any_order(given_logs: list[NodeLog]) -> None:
    """Logs whose cuts do not stand in the order of the series."""
    logs = logs_of(given_logs)
    backwards = transactions.members(logs, CUTS[::-1], logs.nodes)
    gaps = closure.by_key(backwards)
    for place, twin in enumerate(twin_logs.judged(given_logs, SERIES[::-1], ())):
        rows = backwards.torn[(backwards.torn[:, 1] <= place) & (place < backwards.torn[:, 2])]
        assert {logs.xids[xid] for xid in rows[:, 0]} == twin.torn
        assert gaps.counts[place] == twin.gaps or gaps.doubled


def _proved(given_logs: list[NodeLog], asked: list[Operation]) -> None:
    """Every judgement that carries a proof has one that the verifier accepts, and it fits no other result."""
    logs = logs_of(given_logs)
    report = check(Given(cuts=SERIES, baseline=logs.nodes, logs=logs, operations=asked))
    for level in ("transactions", "closure", "external-causality"):
        for each in report.judgements[level]:
            if each.standing == "judged" and each.proof is not None:
                arguments = (logs, logs.nodes, each.cut, level)
                verify_logs.check(*arguments, each.result, each.proof, asked)
                other = "valid" if each.result == "invalid" else "invalid"
                with pytest.raises(verify_logs.RefusedError):
                    verify_logs.check(*arguments, other, each.proof, asked)
            assert each.result == "unknown" or each.proof is not None


def test_the_random_logs_show_what_they_are_for() -> None:
    """Random logs in which nothing is wrong, or nothing right, compare nothing."""
    chance = random.Random(1)
    seen: Counter[str] = Counter()
    for _ in range(60):
        drawn = at_random(chance, 40)
        given_logs = written(drawn, nodes=2, honest=chance.random() < 0.5)
        asked = [Operation(xid=f"t{xid}", process=xid % 2, invoked_ns=4 * xid) for xid in (2, 3)]
        asked += [
            Operation(xid=f"t{xid}", process=1, invoked_ns=0, completed_ns=7, ok=True) for xid in (0, 4)
        ]
        for said in twin_logs.judged(given_logs, SERIES, asked):
            seen.update(torn=bool(said.torn), gaps=said.gaps > 0, inverted=bool(said.inversions))
            seen.update(out_of_bounds=said.out_of_bounds, whole=not said.torn)
    assert min(seen.values()) > 10, seen


@given(steps(), st.integers(2, 3), st.booleans(), operations())
@examples.up_to(300)
def test_ranges_over_a_series_say_what_sets_say(
    drawn: list[Step], nodes: int, honest: bool, asked: list[Operation]
) -> None:
    """A transaction on a wrong side, a gap or an inversion that is missed or made up; a proof that proves nothing."""
    _same(drawn, nodes, honest, asked)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(20))
def test_the_same_on_many_logs(part: int) -> None:
    """The same on 5,000 sets of logs."""
    for number in examples.tonight(250, part):
        chance = random.Random(number)
        drawn, asked = at_random(chance, 45), operations_at_random(chance)
        _same(drawn, chance.randint(2, 3), chance.random() < 0.5, asked)
