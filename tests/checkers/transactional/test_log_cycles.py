"""Circles of transactions over logs: histories that must be refused or accepted, and a twin that tries all orders."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import by_model
from checkers.history import Event, Header, History, Operation
from checkers.limits import Limits, within
from checkers.transactional import log_cycles
from tests.checkers.domain.test_offsets import polled, sent


def history(*asked: tuple[int, tuple[int, int], str, list[Any]]) -> History:
    """Transactions: process, (begin, end), outcome, micro-operations. Begins and ends order the events."""
    moments = sorted(
        (moment, place, place >= len(asked))
        for place, moment in enumerate([each[1][0] for each in asked] + [each[1][1] for each in asked])
    )
    events = []
    for index, (_, place, is_end) in enumerate(moments):
        process, _, outcome, micros = asked[place % len(asked)]
        shown = (
            micros
            if is_end
            else [["poll"] if micro[0] == "poll" else [*micro[:2], micro[2][1]] for micro in micros]
        )
        kind = outcome if is_end else "invoke"
        events.append(Event(index=index, time_ns=index, type=kind, process=process, f="txn", value=shown))  # type: ignore[arg-type]
    return History.of(Header(), events)


EACH_POLLS_THE_OTHER = [
    (0, (0, 2), "ok", [sent(0, 1, "x"), polled((0, 2), key="y")]),
    (1, (1, 3), "ok", [sent(0, 2, "y"), polled((0, 1), key="x")]),
]
ACROSS_A_CLIENT = [  # T1 polls y of a transaction that polls x, which T1's client sends only then
    (0, (0, 1), "ok", [polled((0, 2), key="y")]),
    (0, (2, 3), "ok", [sent(0, 1, "x")]),
    (1, (0, 4), "ok", [sent(0, 2, "y"), polled((0, 1), key="x")]),
]
ACROSS_TIME = [(9, *ACROSS_A_CLIENT[0][1:]), *ACROSS_A_CLIENT[1:]]
BETWEEN_EACH_OTHER = [  # ww both ways: the entries of two transactions take turns
    (0, (0, 2), "ok", [sent(0, 1), sent(2, 3)]),
    (1, (1, 3), "ok", [sent(1, 2), sent(3, 4)]),
    (2, (4, 5), "ok", [polled((0, 1), (1, 2), (2, 3), (3, 4))]),
]


@pytest.mark.parametrize(
    ("rule", "asked"),
    [("G1c", EACH_POLLS_THE_OTHER), ("G1c-process", ACROSS_A_CLIENT), ("G1c-realtime", ACROSS_TIME)],
)
def test_each_rule_has_a_history_that_breaks_it(rule: str, asked: list[Any]) -> None:
    """If it failed, a store that shows uncommitted entries would pass."""
    judged = by_model.judge(history(*asked), "kafka")
    assert judged.violations == (log_cycles.NAME,)
    (verdict,) = (each for each in judged.verdicts if each.checker == log_cycles.NAME)
    assert verdict.details["violations"] == [rule]
    assert [witness.rule for witness in verdict.witnesses] == [rule] and verdict.witnesses[0].events
    assert len(verdict.graph()) == len(verdict.details["anomalies"][rule]["transactions"])


def test_the_sentences_name_what_was_sent_and_polled() -> None:
    """If it failed, somebody who reads them would look for registers."""
    verdict = log_cycles.check(history(*EACH_POLLS_THE_OTHER))
    assert verdict.witnesses[0].explanation[:2] == (
        "T1 sent 1 to x; T2 polled 1 of x, so T2 came after T1.",
        "Yet T2 sent 2 to y; T1 polled 2 of y, so T1 came after T2.",
    )


def test_entries_between_each_other_are_a_finding() -> None:
    """If it failed, every Kafka would be accused: it promises no isolation of sends."""
    judged = by_model.judge(history(*BETWEEN_EACH_OTHER), "log")
    assert judged.result == "valid"
    (verdict,) = (each for each in judged.verdicts if each.checker == log_cycles.NAME)
    assert [finding.split(":")[0] for finding in verdict.details["findings"]] == ["G0"]
    assert "at a higher offset" in verdict.details["anomalies"]["G0"]["edges"][0]["sentence"]


@pytest.mark.parametrize(
    "asked",
    [
        [(0, (0, 1), "ok", [sent(0, 1)]), (1, (2, 3), "ok", [polled((0, 1)), sent(0, 2, "y")])],
        # Its own entry is no circle, another rule forbids that.
        [(0, (0, 1), "ok", [sent(0, 1), polled((0, 1))])],
        # A failed transaction sent nothing and shows nothing.
        [EACH_POLLS_THE_OTHER[0], (1, (1, 3), "fail", EACH_POLLS_THE_OTHER[1][3])],
        # Two senders of one value: nobody knows which one was polled.
        [*EACH_POLLS_THE_OTHER, (2, (0, 4), "ok", [sent(1, 1, "x"), sent(1, 2, "y")])],
    ],
)
def test_what_is_no_circle_is_valid(asked: list[Any]) -> None:
    """If it failed, a right store would be accused."""
    assert log_cycles.check(history(*asked)).result == "valid"


def test_an_unsure_transaction_shows_what_it_polled() -> None:
    """If it failed, a circle would be missed whenever a commit had no answer."""
    first, second = EACH_POLLS_THE_OTHER
    assert log_cycles.check(history(first, (*second[:2], "info", second[3]))).details["violations"] == ["G1c"]


def test_without_polls_there_is_nothing_to_judge() -> None:
    """If it failed, a test that never polled would be a green light."""
    assert log_cycles.check(history((0, (0, 1), "ok", [sent(0, 1)]))).result == "unknown"


def test_a_small_budget_says_unknown() -> None:
    """If it failed, a search that was given up would be called valid."""
    ring = [
        (number, (0, 1), "ok", [sent(number, number, "x"), polled((0, (number + 1) % 9), key="x")])
        for number in range(9)
    ]
    assert log_cycles.check(history(*ring)).result == "invalid"
    with within(Limits(steps=1)):
        verdict = log_cycles.check(history(*ring))
    assert verdict.result == "unknown" and "did not suffice" in verdict.summary


# ---- the twin


def edges(operations: Sequence[Operation], order: str) -> Iterator[tuple[int, int]]:
    """Who must come before whom, from the definition alone."""
    for one, first in enumerate(operations):
        for other, second in enumerate(operations):
            if one == other:
                continue
            is_counted = order == "-realtime" or (order and first.process == second.process)
            if is_counted and first.type == "ok" and first.precedes(second):
                yield one, other
            mine = {(key, str(pair[1])) for key, pair in _sent(first)}
            polled_there = {(key, str(value)) for key, value in _polled(second)}
            others = {
                (key, str(pair[1]))
                for third in operations
                if third is not first
                for key, pair in _sent(third)
            }
            if (mine - others) & polled_there:
                yield one, other


def _sent(operation: Operation) -> Iterable[tuple[str, Any]]:
    return [
        (micro[1], micro[2] if operation.type == "ok" or isinstance(micro[2], list) else [None, micro[2]])
        for micro in operation.value
        if micro[0] == "send"
    ]


def _polled(operation: Operation) -> Iterable[tuple[str, Any]]:
    return [
        (key, value)
        for micro in operation.value
        if micro[0] == "poll" and len(micro) > 1
        for key, pairs in micro[1].items()
        for _, value in pairs
    ]


def has_order(operations: Sequence[Operation], order: str) -> bool:
    """Whether any order of the transactions agrees with all edges."""
    pairs = set(edges(operations, order))
    return any(
        all(places.index(one) < places.index(other) for one, other in pairs)
        for places in permutations(range(len(operations)))
    )


def drawn(chance: random.Random) -> History:
    """Some transactions of three clients over two logs, which poll whatever anybody sends at any time."""
    count = chance.randint(2, 5)
    clock, asked, sends = [0, 0, 0], [], []
    for value in range(count):
        sends.append((chance.choice("xy"), value + 1))
    for value in range(count):
        process = chance.randrange(3)
        begin = clock[process] + chance.randint(1, 4)
        clock[process] = end = begin + chance.randint(1, 6)
        outcome = chance.choice(["ok", "ok", "ok", "info", "fail"])
        micros: list[Any] = []
        if chance.random() < 0.8:
            log, own = sends[value] if chance.random() < 0.9 else chance.choice(sends)
            micros.append(sent(own, own, log))
        for log, other in chance.sample(sends, chance.randint(0, 2)):
            micros.append(polled((other, other), key=log))
        if micros:
            asked.append((process + (10 * value if outcome == "info" else 0), (begin, end), outcome, micros))
    return history(*asked) if asked else history((0, (0, 1), "ok", [polled((1, 1))]))


@given(st.randoms(use_true_random=False))
def test_the_search_agrees_with_all_orders(chance: random.Random) -> None:
    """If it failed, a circle would be missed, or one be named that is none."""
    made = drawn(chance)
    operations = [operation for operation in made.operations if operation.type != "fail"]
    expected: list[str] = []
    for order in ("", "-process", "-realtime"):
        if not has_order(operations, order):
            expected = [f"G1c{order}"]
            break
    found = log_cycles.check(made).details["violations"]
    assert found[:1] == expected, "the least that it needs"
    weakest = ("G1c", "G1c-process", "G1c-realtime")
    assert all(weakest.index(name) >= weakest.index(expected[0]) for name in found)
