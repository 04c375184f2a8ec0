"""Many registers in one pass: what each of them gets by itself."""

from __future__ import annotations

import random
import time
from collections import Counter

import pytest

from checkers import linearizable
from checkers.history import Event, Header, History
from checkers.linearizable import checker, forward, many
from checkers.linearizable.columns import Columns, register_columns
from checkers.linearizable.models import Register
from checkers.linearizable.search import Limits
from tests.checkers.linearizable import generated, tiny_histories
from tests.checkers.linearizable.test_agreement import calls_by_keys

WORDS = {1: "yes", 0: "no", -1: "unknown"}


def tiny(name: str, chance: random.Random, most: int) -> Columns:
    """A tiny history's calls on one key, in order of invocation."""
    while True:
        history = tiny_histories.history(name, chance, most=most)
        calls = [call for calls in calls_by_keys(Register(), history) for call in calls]
        if calls:
            return register_columns(sorted(calls, key=lambda call: call.invoke), (None,))[0]


@pytest.mark.parametrize("count", [200, pytest.param(2_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["register", "unique-register", "cas-register", "deleting-register"])
def test_each_register_gets_its_own_answer(name: str, count: int) -> None:
    """If this fails, a key of a record with many keys is judged otherwise than a key that stands alone."""
    chance = random.Random(7)
    registers = [tiny(name, chance, chance.choice((6, 12, 24))) for _ in range(count)]
    answers = many.decide(many.joined(registers), Limits())
    expected = [forward.search_columns(columns, Limits()).result for columns in registers]
    assert [WORDS[answer] for answer in answers[:, 0].tolist()] == expected
    assert min(Counter(expected).values()) > count * 3 // 40


@pytest.mark.parametrize("keys", [20, pytest.param(40, marks=pytest.mark.long)])
def test_one_key_of_many_is_found_wrong(keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, values or times of one key leak into another, and an anomaly is missed or made up."""
    monkeypatch.setattr(checker, "COLD_CALLS", 0)
    histories = [generated.columns(60 + 9 * seed, 4, seed=seed, crashed=seed % 3) for seed in range(keys)]
    histories[17] = generated.columns(90, 4, seed=17, stale=True)
    verdict = linearizable.check(generated.history_of(histories))
    assert (verdict.result, verdict.details["keys_invalid"]) == ("invalid", ["17"])
    assert verdict.witnesses[0].key == "17"
    histories[17] = histories[16]
    assert linearizable.check(generated.history_of(histories)).result == "valid"


@pytest.mark.parametrize(
    ("operations", "others"), [(140, 50), pytest.param(300, 400, marks=pytest.mark.long)]
)
def test_a_key_does_not_run_out_of_a_share_of_the_time(
    operations: int, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, a check of thousands of keys ends as unknown since one of them took longer than its share."""
    monkeypatch.setattr(checker, "COLD_CALLS", 0)
    # More at once than a word has bits.
    hard = generated.columns(operations, 70, seed=3, values=3, cas=False, stale=True)
    assert many.decide(many.joined([hard, hard]), Limits())[:, 0].tolist() == [-1, -1]
    easy = [generated.columns(10, 3, seed=seed) for seed in range(others)]
    verdict = linearizable.check(generated.history_of([hard, *easy]), timeout_s=20.0, clock=time.process_time)
    assert (verdict.result, verdict.details["keys_undecided"]) == ("invalid", {})


def test_a_register_with_more_calls_than_fit_is_refused() -> None:
    """If this fails, compiled code writes behind the end of an array."""
    with pytest.raises(ValueError, match="expected at most 1,000 calls of a register, got 1,001"):
        many.joined([generated.columns(10, 2), generated.columns(1_001, 2)])


def test_what_does_not_fit_is_left_to_the_search_by_itself() -> None:
    """If this fails, a limit of memory is passed over where registers are searched together."""
    columns = generated.columns(400, 12, seed=5, stale=True)
    answers = many.decide(many.joined([columns, columns]), Limits(configurations=3))
    assert answers[:, 0].tolist() == [-1, -1]


def test_of_two_wrong_reads_the_first_is_named() -> None:
    """If this fails, what is called wrong hangs on the numbers that clients wrote."""
    for values in ((9, 2), (2, 9)):
        asked = [("write", 1), ("read", values[0]), ("read", values[1])]
        events = [
            Event(index=2 * place + ends, time_ns=place, type="ok" if ends else "invoke", process=0, f=f, key="x",
                  value=value if ends or f == "write" else None)
            for place, (f, value) in enumerate(asked)
            for ends in (0, 1)
        ]  # fmt: skip
        verdict = linearizable.check(History.of(Header(), events))
        assert verdict.details["decided_by"] == {"zones": 1}
        assert verdict.witnesses[0].events[-1] == 3
