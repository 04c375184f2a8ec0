"""Counters and bounds that must be refused: with any of them, a smaller transaction may come after a greater one."""

from __future__ import annotations

from functools import partial

import pytest

from tests.checkers.logs.txlog.scripts import Records, added, heard, life, made, ref, verdicts
from tests.checkers.logs.txlog.scripts import rules as rules_of

rules = partial(rules_of, of=("counters",))
A = ref(1, "n1-1")
OVER = ["recovered", 1, 0, "n2", {"n1": 1, "n2": 1}, [], [ref(9, "n2-1")], 4, {}]
"""The next epoch begins with a queue up to 9, and the counter 4."""


def logs(*records: list[object]) -> dict[str, Records]:
    return {"n1": [life(), *map(list, records)], "n2": [life(), heard("n1", 4, 4), made(5, "n2-1")]}


def test_counters_that_rise() -> None:
    fine = logs(made(1, "n1-1"), heard("n2", 5, 5), life(2), made(6, "n1-2"), added(0, 5, ["n2"], [], A))
    said = verdicts(fine)["counters"]
    assert (said.result, said.details["compared"]) == ("valid", {"timestamps": 3, "posts": 2, "rounds": 1})


@pytest.mark.parametrize(
    ("rule", "records"),
    [
        ("stamped-too-low", [made(0, "n1-1", counter=1)]),
        ("stamped-too-low", [made(1, "n1-1"), made(1, "n1-2", counter=2)]),
        ("stamped-too-low", [heard("n2", 5, 5), made(5, "n1-1", counter=6)]),
        ("stamped-too-high", [made(3, "n1-1", counter=2)]),
        ("counter-fell", [heard("n2", 5, 5), life(2), heard("n2", 1, None)]),
        ("counter-fell", [heard("n2", 5, 5), heard("n2", 4, 4)]),
        ("counter-not-raised", [made(1, "n1-1"), heard("n2", 1, 5)]),
        ("bound-too-high", [made(1, "n1-1"), added(0, 2, ["n2"], [], A)]),
        ("bound-too-high", [made(1, "n1-1"), added(0, 1, [], ["n2"], A)]),
        (
            "bound-too-high",
            [
                made(1, "n1-1"),
                heard("n2", 5, 5),
                ["split", ["n2"], None],
                ["rejoined", 1],
                added(0, 5, [], ["n2"], A),
            ],
        ),
        ("above-the-bound", [made(1, "n1-1"), heard("n2", 5, 5), added(0, 0, ["n2"], [], A)]),
        ("master-not-counted", [made(1, "n1-1"), added(0, 1, [], [], A)]),
    ],
)
def test_wrong_counters(rule: str, records: Records) -> None:
    assert rules(logs(*records)) == {rule}


@pytest.mark.parametrize(
    ("says", "records"),
    [
        (
            "n1 makes transaction n1-2 at the counter 1, and its counter had been 3",
            [made(3, "n1-1"), made(1, "n1-2")],
        ),
        (
            "n1 makes transaction n1-2 at the counter 2, and its counter had been 2",
            [made(2, "n1-1"), made(2, "n1-2")],
        ),
        (
            "n1 makes transaction n1-1 with the timestamp 5, when its counter is 7",
            [heard("n2", 7, 7), made(5, "n1-1", counter=8)],
        ),
        ("n1 makes n1-1 with timestamp 3, and goes on from 2", [made(3, "n1-1", counter=2)]),
        ("n1 has the counter 4, and had 6 before", [heard("n2", 6, 6), heard("n2", 4, 4)]),
        (
            "n1 has heard the counter 5, and does not raise its own counter of 1",
            [made(1, "n1-1"), heard("n2", 1, 5)],
        ),
        (
            "n1 adds transactions up to 3 in a round, and the counter of n2 is 0",
            [made(3, "n1-1"), added(0, 3, [], ["n2"], ref(3, "n1-1"))],
        ),
        (
            "n1 adds a timestamp of 2, above 1",
            [made(2, "n1-1"), heard("n2", 5, 5), added(0, 1, ["n2"], [], ref(2, "n1-1"))],
        ),
        ("n1 has a transaction of 9, and does not raise its own counter of 4", [OVER]),
        ("n1 has the counter 4, and had 6 before", [made(6, "n1-1"), OVER]),
        ("n1 adds without the counter of n2, n3", [made(1, "n1-1"), added(0, 1, [], [], A)]),
        ("n1 adds without the counter of n3", [made(1, "n1-1"), added(0, 1, ["n2"], [], A)]),
        ("n1 adds without the counter of n3", [made(1, "n1-1"), added(0, 1, [], ["n2"], A)]),
        (
            "n1 adds without the counter of n3",
            [made(1, "n1-1"), ["split", ["n2"], None], added(0, 1, [], [], A)],
        ),
    ],
)
def test_the_sentence_names_the_counters_and_the_masters(says: str, records: Records) -> None:
    """If it failed, a true alarm would be told with another number, or blame a master that was counted."""
    said = verdicts({**logs(*records), "n3": [life()]})["counters"]
    assert says in [witness.summary for witness in said.witnesses]


@pytest.mark.parametrize(
    "records",
    [
        [made(1, "n1-1"), heard("n2", 5, 5), added(0, 5, [], ["n2"], A)],
        [made(1, "n1-1"), ["rejoined", 1], heard("n2", 5, 5), added(0, 5, [], ["n2"], A)],
        [made(1, "n1-1"), heard("n2", 1, None)],
        [made(1, "n1-1"), ["split", ["n2"], None], added(0, 1, [], [], A)],
    ],
)
def test_their_neighbours(records: Records) -> None:
    """An absent master counts with its last counter since a join, and one that is left out does not count."""
    assert rules(logs(*records)) == set()


def test_a_master_that_is_added_counts_from_its_record_on() -> None:
    """If it failed, every round before it came would be an alarm, or none behind that would be one."""
    before, after = [made(1, "n1-1"), added(0, 1, [], [], A)], [["peer", "n2"]]
    assert rules(logs(*before, *after), late=("n2",)) == set()
    assert rules(logs(*before, *after), late=("n1", "n2")) == set(), "one newcomer may not know the other one"
    assert rules(logs(*after, *before), late=("n2",)) == {"master-not-counted"}


def test_a_damaged_log_says_no_counter() -> None:
    """If it failed, a poster of which the log cannot be read would have had the counter 0."""
    damaged = logs(made(1, "n1-1"), heard("n2", 5, 5), added(0, 5, ["n2"], [], A))
    damaged["n2"][1] = ["nonsense"]
    assert verdicts(damaged)["counters"].result == "unknown"


def test_a_poster_counts_as_long_as_it_has_the_base() -> None:
    """n1 has heard nothing of it in its own records: the POST had a base that n1 came to later."""
    fine = logs(made(1, "n1-1"), heard("n2", 5, None), added(0, 5, ["n2"], [], A))
    assert rules(fine) == set()
    fine["n2"].insert(1, ["caught-up", 0, [A], "n1"])
    assert rules(fine) == {"bound-too-high"}


def test_each_round_has_the_counters_of_its_own_base() -> None:
    """Broken, a poster would count in all rounds as in the first one: every later bound would be an alarm."""
    first, late = added(0, 5, ["n2"], [], A), added(1, 9, ["n2"], [], ref(5, "n2-1"))
    said = logs(made(1, "n1-1"), heard("n2", 5, 5), first, heard("n2", 9, 9), late)
    said["n2"] += [added(0, 5, ["n1"], [], A), heard("n1", 9, 9)]
    assert rules(said) == set()
    said["n2"][-1:] = [heard("n1", 8, 8)]
    assert rules(said) == {"bound-too-high"}


def test_a_record_may_break_several_rules() -> None:
    """Broken, of several breaches by one record only the last one would be told."""
    assert rules(logs(made(1, "n1-1"), made(2, "n1-2", counter=1))) == {"counter-fell", "stamped-too-high"}
    assert rules(logs(made(2, "n1-1"), made(1, "n1-2"))) == {"counter-fell", "stamped-too-low"}
