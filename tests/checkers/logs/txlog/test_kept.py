"""Transactions that are lost, or added without what a round needs: else a master may answer for what it has not."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from checkers.logs.txlog import check, kept
from tests.checkers.logs.txlog.scripts import (
    Records,
    acquired,
    added,
    cut,
    given,
    heard,
    history,
    life,
    made,
    operation,
    ref,
    told,
    verdicts,
)
from tests.checkers.logs.txlog.scripts import rules as rules_of

rules = partial(rules_of, of=("kept", "acquired"))
A = ref(1, "n1-1")
QUIET = history(told("settled", 1, True))


def logs(*of_n1: list[Any], of_n2: Records | None = None) -> dict[str, Records]:
    """n1 makes A, and both add it; `of_n1`, `of_n2`: other records behind the first one."""
    return {
        "n1": [life(), *(of_n1 or (made(1, "n1-1"), heard("n2", 1, 1), added(0, 1, ["n2"], [], A)))],
        "n2": [
            life(),
            *(
                of_n2
                or [heard("n1", 1, 1, A), acquired("n1-1"), heard("n1", 1, 1), added(0, 1, ["n1"], [], A)]
            ),
        ],
    }


def test_what_is_everywhere_is_kept() -> None:
    said = verdicts(logs(), QUIET)
    assert said["kept"].result == said["acquired"].result == "valid"
    assert said["acquired"].details["compared"] == {"rounds": 2, "entries": 2, "posters": 2}


def test_what_one_master_lacks_in_the_end_is_lost_unless_more_may_come() -> None:
    lagging = logs(of_n2=[heard("n1", 1, 1, A), acquired("n1-1")])
    assert rules(lagging, QUIET) == {"lost"}
    assert rules(lagging) == set()
    said = verdicts(lagging)["kept"]
    assert (said.result, "quiet" in said.summary) == ("unknown", True)


def test_what_a_damaged_log_does_not_say_is_not_lost() -> None:
    """If it failed, one bad byte in a log would be an anomaly of the store."""
    damaged = logs(of_n2=[heard("n1", 1, 1, A), ["nonsense"]])
    said = verdicts(damaged, QUIET)["kept"]
    assert (said.result, "cannot be read" in said.summary) == ("unknown", True)


def test_a_side_of_a_split_keeps_its_transactions_to_itself_with_the_strategy_none() -> None:
    alone = [made(1, "n1-1"), heard("n2", 1, 1), added(0, 1, [], ["n2"], A)]
    split = logs(*alone, of_n2=[heard("n1", 1, 1, A), ["split", ["n1"], None]])
    record = history(cut([("n1", "n2")], 1, 5), told("settled", 9, True))
    assert rules(split, record, split_ns=2_000_000_000) == set()
    assert rules(split, record, split_ns=2_000_000_000, strategy="simple") == {"lost"}
    assert rules(split, record) == {"lost"}


def test_an_answer_about_a_transaction_that_no_log_has() -> None:
    quiet = told("settled", 5, True)
    assert rules(logs(), history(operation(0, 1, 2, "n1-2"), quiet)) == {"unrecorded"}
    assert rules(logs(), history(operation(0, 1, 2, "n1-1"), quiet)) == set()


@pytest.mark.parametrize(
    ("rule", "records"),
    [
        ("not-acquired", [heard("n1", 1, 1, A), added(0, 1, ["n1"], [], A)]),
        ("not-acquired", [heard("n1", 1, 1, A), added(0, 1, ["n1"], [], A), acquired("n1-1")]),
        (
            "never-made",
            [heard("n1", 1, 1, ref(1, "n1-2")), acquired("n1-2"), added(0, 1, ["n1"], [], ref(1, "n1-2"))],
        ),
        (
            "never-made",
            [heard("n1", 1, 1, ref(2, "n1-1")), acquired("n1-1"), added(0, 2, ["n1"], [], ref(2, "n1-1"))],
        ),
    ],
)
def test_wrong_rounds(rule: str, records: Records) -> None:
    assert rule in rules(logs(of_n2=records))


@pytest.mark.parametrize(("index", "walks"), [(1, 0), (2, 1)])
def test_what_recoveries_stamped_is_looked_up_once_and_only_for_what_is_strange(
    index: int, walks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a cluster of many masters would have all logs walked through once for each of them."""
    calls = []
    stamped = kept._stamped
    monkeypatch.setattr(kept, "_stamped", lambda columns: calls.append(1) or stamped(columns))
    records = [acquired("n1-1"), heard("n1", 1, 1), added(0, 1, ["n1"], [], ref(index, "n1-1"))]
    written = logs(of_n2=[heard("n1", 1, 1, ref(index, "n1-1")), *records])
    written["n3"] = written["n2"]
    check(given(written, QUIET))
    assert len(calls) == walks


def test_a_poster_has_the_updates_as_long_as_it_posts_for_the_base() -> None:
    """n1 adds A with a POST of n2: n2 must have acquired A before its queue got longer."""
    late = [heard("n1", 1, 1, A), ["caught-up", 0, [A], "n1"], acquired("n1-1")]
    assert rules(logs(of_n2=late)) == {"poster-lacked"}
    assert rules(logs(of_n2=[late[0], late[2], late[1]])) == set()
    assert rules(logs(of_n2=[late[0], late[2]])) == set()
    assert rules(logs(of_n2=[late[0]])) == {"poster-lacked"}
    assert rules(logs(of_n2=late[:2])) == {"poster-lacked"}


def test_a_poster_has_had_the_base() -> None:
    second = ref(2, "n1-2")
    both = [made(1, "n1-1"), made(2, "n1-2"), added(0, 1, ["n2"], [], A), added(1, 2, ["n2"], [], second)]
    other = [heard("n1", 2, 2, A, second), acquired("n1-1", "n1-2")]
    assert rules(logs(*both, of_n2=other)) == {"poster-elsewhere"}
    assert rules(logs(*both, of_n2=[*other, ["caught-up", 0, [A], "n1"]])) == set()


def recovery(queue: list[list[Any]]) -> dict[str, Records]:
    """n2 has made B beside A, and brings it to the recovery."""
    both = [A, ref(1, "n2-1")]
    over: list[Any] = ["recovered", 1, 0, "n1", {"n1": 2, "n2": 2}, [], both, 1, {}]
    return {
        "n1": [life(strategy="simple"), made(1, "n1-1"), ["recovering", 0, None], [*over[:6], queue, 1, {}]],
        "n2": [life(strategy="simple"), made(1, "n2-1"), ["recovering", 0, None], over],
    }


def test_a_recovery_keeps_what_any_master_brings() -> None:
    assert rules(recovery([A])) == {"dropped-at-recovery"}
    assert rules(recovery([A, ref(1, "n2-1")])) == set()
    assert rules(recovery([A, ref(7, "n2-1")])) == set()
