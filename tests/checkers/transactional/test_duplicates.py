"""Registers to which several transactions wrote one value: which verdicts, which proofs, and which words."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from checkers import transactional
from checkers.history import History, ModelError
from checkers.limits import Limits, within
from checkers.proofs import verify_isolation
from checkers.proofs.meaning import Terms
from checkers.transactional import cases
from checkers.transactional.candidates import Choice
from checkers.verdict import Verdict
from tests import examples
from tests.checkers.brute import duplicates, isolation
from tests.checkers.brute.histories import Line, history_of
from tests.checkers.transactional.txns import Txn, history, ok, register, txn

SERIAL = "serializable"


def judged(found: History, model: str) -> Verdict:
    """The verdict, if its proof holds."""
    verdict = transactional.check(found, workload="rw-register", model=model)
    assert verify_isolation.check(found, verdict, Terms(model=model)).holds, verdict.summary
    return verdict


ALLOWED: dict[str, tuple[str, tuple[Txn, ...]]] = {
    "the later of two writers": (
        "strict-serializable",
        (ok(1, "wx1 wy1"), ok(2, "wx2"), ok(3, "wx1 wy2"), register(4, "rx1 ry2")),
    ),
    "the earlier of two writers, which the value hides": (
        SERIAL,
        (ok(1, "wx1 wy1"), ok(2, "wx2 wy2"), ok(3, "wx1 wy3"), register(4, "rx1 ry1")),
    ),
    "two updates of what two transactions wrote": (
        SERIAL,
        (ok(1, "wx1", 0, 9), ok(2, "rx1 wx2", 0, 9), ok(3, "wx1", 0, 9), ok(4, "rx1 wx2", 0, 9)),
    ),
    "one transaction writes a value, another one, and the value again": (
        "strict-serializable",
        (ok(1, "wx1 wx2 wx1"), register(2, "rx1")),
    ),
    "a failed transaction wrote it too": (
        SERIAL,
        (txn("fail", 1, "wx1 wy1"), ok(2, "wx1"), register(3, "rx1 ry")),
    ),
    "another one wrote it on the way": (SERIAL, (ok(1, "wx1 wx2"), ok(2, "wx1"), register(3, "rx1"))),
    "an unsure transaction wrote it too, and happened": (
        "strict-serializable",
        (ok(1, "wx1"), ok(2, "wx2"), txn("info", 3, "wx1 wy1"), register(4, "rx1 ry1")),
    ),
    "an unsure transaction wrote it too, and did not happen": (
        "strict-serializable",
        (ok(1, "wx1"), txn("info", 2, "wx1 wy1"), register(3, "rx1 ry")),
    ),
    "a failed one wrote what the reader itself wrote on the way": (
        "read-committed",
        (txn("fail", 1, "wx2"), ok(2, "wx2 wx3 rx2")),
    ),
    "its session writes later what the reader itself wrote on the way": (
        "strong-session-read-committed",
        (ok(1, "wx2 wx3 rx2"), ok(1, "wx2")),
    ),
    "another one wrote what the reader itself wrote before a read of nothing": (
        "cursor-stability",
        (ok(1, "wx2 rx rx2"), ok(2, "wx2")),
    ),
}
"""By what is in them: a model, and a history of it."""

FORBIDDEN: dict[str, tuple[str, str, tuple[Txn, ...]]] = {
    "neither writer fits": (
        SERIAL,
        "no-order",
        (ok(1, "wx1 wy1"), ok(2, "wx1 wy2"), ok(3, "wx2 wy3"), register(4, "rx1 ry3")),
    ),
    "both writers are overwritten": (
        "strict-serializable",
        "no-order",
        (ok(1, "wx1"), ok(2, "wx2"), ok(3, "wx1"), ok(4, "wx2"), register(5, "rx1")),
    ),
    "three updates of what two transactions wrote": (
        "update-atomic",
        "no-order",
        (
            ok(1, "wx1", 0, 9),
            ok(2, "wx1", 0, 9),
            *(ok(3 + each, f"rx1 wx{each + 2}", 0, 9) for each in range(3)),
        ),
    ),
    "an own write that is over, and a failed one": (
        "read-atomic",
        "internal",
        (txn("fail", 1, "wx2"), ok(2, "wx2 wx3 rx2")),
    ),
    "all who wrote it failed": (
        "read-committed",
        "G1a",
        (txn("fail", 1, "wx1"), txn("fail", 2, "wx1"), register(3, "rx1")),
    ),
    "all who wrote it wrote again": (
        "read-committed",
        "G1b",
        (ok(1, "wx1 wx2"), ok(2, "wx1 wx3"), register(3, "rx1")),
    ),
    "both writers are overwritten for a reader that knows of it": (
        "causal",
        "no-order",
        (ok(1, "wx1"), ok(1, "wx2 wz2"), ok(3, "wx1"), ok(3, "wx3 wv3"), register(5, "rz2 rv3 rx1")),
    ),
}
"""By what is in them: a model, the anomaly that shows, and a history that is not of it."""


@pytest.mark.parametrize(("model", "txns"), ALLOWED.values(), ids=ALLOWED)
def test_a_read_may_show_any_write_of_its_value(model: str, txns: tuple[Txn, ...]) -> None:
    """If this fails, a store is accused because a read was taken for one of the wrong write."""
    verdict = judged(history(*txns), model)
    assert verdict.result == "valid", verdict.summary


@pytest.mark.parametrize(("model", "anomaly", "txns"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_what_no_writer_explains_is_found(model: str, anomaly: str, txns: tuple[Txn, ...]) -> None:
    """If this fails, a wrong answer passes because its value was written more than once."""
    verdict = judged(history(*txns), model)
    assert (verdict.result, verdict.witnesses[0].rule) == ("invalid", anomaly), verdict.summary


def test_the_words_name_all_writers_of_a_value() -> None:
    """If this fails, a reader does not learn that a read had several writers to show, or which."""
    _, _, txns = FORBIDDEN["both writers are overwritten"]
    (witness, *_) = judged(history(*txns), "strict-serializable").witnesses
    said = " ".join(witness.explanation)
    assert (
        "x = 1 was written by several transactions (the transaction of event 0, the transaction of event 4)"
        in said
    )


def test_the_witness_lacks_what_it_does_not_need() -> None:
    """If this fails, the few transactions that show it are hidden among others."""
    _, _, txns = FORBIDDEN["neither writer fits"]
    more = [ok(5 + each, f"wz{each} wx{each + 5}", 90 + 2 * each, 91 + 2 * each) for each in range(6)]
    found = history(*(replace(each, begin=2 * at, end=2 * at + 1) for at, each in enumerate(txns)), *more)
    (witness, *_) = judged(found, SERIAL).witnesses
    assert witness.events == tuple(range(8))


@pytest.mark.parametrize("value", [0, "none", [1]])
def test_the_first_value_may_be_written_again(value: Any) -> None:
    """If this fails, a register that is set back is refused, or its reads are taken for reads of the first value."""
    events = [
        ("invoke", 0, [["w", "x", 7], ["w", "y", 7]]),
        ("ok", 0, [["w", "x", 7], ["w", "y", 7]]),
        ("invoke", 0, [["w", "x", value]]),
        ("ok", 0, [["w", "x", value]]),
        ("invoke", 1, [["r", "x", None], ["r", "y", None]]),
        ("ok", 1, [["r", "x", value], ["r", "y", 7]]),
    ]
    lines = [duplicates.Line(type_, process, "txn", micros) for type_, process, micros in events]
    found = history_of(lines).starting_at(value)
    assert judged(found, "strict-serializable").result == "valid"
    lines[-1] = duplicates.Line("ok", 1, "txn", [["r", "x", value], ["r", "y", value]])
    assert judged(history_of(lines).starting_at(value), "strict-serializable").result == "invalid"


def test_a_list_and_an_order_of_the_store_still_need_distinct_values() -> None:
    """If this fails, a read of one of two writes is judged by an order that only one of them has."""
    found = history(ok(1, "wx1"), ok(2, "wx1"), register(3, "rx1"))
    with pytest.raises(ModelError, match="written to x by event 0 too"):
        transactional.check(found, workload="rw-register", transaction_order={0: 1.0, 2: 2.0, 4: 3.0})
    with pytest.raises(ModelError, match="written to x by event 0 too"):
        transactional.check(history(ok(1, "ax1"), ok(2, "ax1")), workload="append")


def test_a_spent_budget_is_unknown() -> None:
    """If this fails, a search that ended early says valid, or invalid."""
    _, _, txns = FORBIDDEN["both writers are overwritten for a reader that knows of it"]
    with within(Limits(steps=3)):
        verdict = transactional.check(history(*txns), workload="rw-register", model="causal")
    assert verdict.result == "unknown"
    assert "did not suffice" in verdict.summary


def valid(count: int) -> Iterator[tuple[History, Verdict, str]]:
    """Histories with a proof that says which writes reads show."""
    for seed in range(100_000):
        found = history_of(duplicates.drawn(seed))
        model = random.Random(seed).choice(list(isolation.MODELS))
        verdict = transactional.check(found, workload="rw-register", model=model)
        if verdict.result == "valid" and verdict.details["proof"].get("shown"):
            yield found, verdict, model
            count -= 1
        if not count:
            return


def test_a_proof_that_names_a_wrong_writer_is_refused() -> None:
    """If this fails, a forged proof passes: of a writer that is none, that failed, or that the order puts elsewhere."""
    for found, verdict, model in valid(examples.times(100)):
        terms = Terms(model=model)
        assert verify_isolation.check(found, verdict, terms).holds
        proof = verdict.details["proof"]
        sources = {tuple(each[:2]) for each in proof["shown"]}
        writers = [txn.invoke_index for txn in found.operations]
        for at, (reader, place, writer) in enumerate(proof["shown"]):
            key = next(each for each in found.operations if each.invoke_index == reader).value[place]
            able = {
                each.invoke_index
                for each in found.operations
                if each.type != "fail"
                and [m for m in each.value if m[:2] == ["w", key[1]]][-1:] == [["w", *key[1:]]]
            } - {reader}
            for wrong in [None, -1, reader, *(each for each in writers if each not in able)]:
                forged = deepcopy(proof)
                forged["shown"][at] = [reader, place, wrong]
                claim = replace(verdict, details=verdict.details | {"proof": forged})
                assert wrong == writer or not verify_isolation.check(found, claim, terms).holds
        silent = replace(verdict, details=verdict.details | {"proof": proof | {"shown": []}})
        assert sources and not verify_isolation.check(found, silent, terms).holds


def test_a_circle_that_rests_on_an_open_read_is_refused() -> None:
    """If this fails, a forged circle passes: its read may show a different write."""
    null = [ok(1, "wx1 wy2", 0, 9), register(2, "rx1 ry", 0, 9)]
    half = transactional.check(history(*null), workload="rw-register", model=SERIAL)
    assert half.result == "invalid"
    more = history(*null, ok(3, "wx1", 0, 9))
    assert judged(more, SERIAL).result == "valid"
    assert not verify_isolation.check(more, half, Terms(model=SERIAL)).holds


@pytest.mark.parametrize(
    "count", [150, pytest.param(500, marks=pytest.mark.long), pytest.param(5_000, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("with_start", [False, True])
def test_every_verdict_is_that_of_the_definition_and_has_its_proof(count: int, *, with_start: bool) -> None:
    """If this fails, a verdict on duplicated values is wrong, or its proof is refused, at some model."""
    results = {"valid": 0, "invalid": 0}
    for seed in range(count):
        found = history_of(duplicates.drawn(seed, with_start=with_start))
        found = found.starting_at(duplicates.FIRST) if with_start else found
        model = random.Random(seed).choice(list(isolation.MODELS))
        allowed = duplicates.allows(model, found, with_start=with_start)
        verdict = transactional.check(found, workload="rw-register", model=model)
        if allowed is None or (verdict.details["vacuous"] and verdict.result != "invalid"):
            continue
        assert verdict.result == ("valid" if allowed else "invalid"), (seed, model, verdict.summary)
        assert verify_isolation.check(found, verdict, Terms(model=model)).holds, (
            seed,
            model,
            verdict.summary,
        )
        results[verdict.result] += 1
    assert min(results.values()) > count // 15, results


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_the_same_of_many_more(part: int) -> None:
    """As above, new ones each night."""
    for seed in examples.tonight(1_000, part):
        found = history_of(duplicates.drawn(seed))
        for model in isolation.MODELS:
            allowed = duplicates.allows(model, found)
            verdict = transactional.check(found, workload="rw-register", model=model)
            if allowed is not None and not verdict.details["vacuous"]:
                assert verdict.result == ("valid" if allowed else "invalid"), (seed, model, verdict.summary)


def test_cases_are_tried_until_one_holds_and_each_failure_rules_out_all_like_it() -> None:
    """If this fails, the search for choices misses a case, or tries the same mistake with all that does not matter."""
    chance = random.Random(0)
    for _ in range(200):
        choices = [Choice(micro, tuple(range(chance.randint(2, 3)))) for micro in range(chance.randint(1, 6))]
        bad = [
            {
                micro: chance.choice(choices[micro].versions)
                for micro in chance.sample(range(len(choices)), min(2, len(choices)))
            }
            for _ in range(chance.randint(0, 12))
        ]

        def judge(case: cases.Case, bad: list[dict[int, int]] = bad) -> tuple[cases.Result, Any]:
            return ("refuted" if any(each.items() <= case.items() for each in bad) else "proved"), None

        every: list[dict[int, int]] = [{}]
        for choice in choices:
            every = [case | {choice.micro: version} for case in every for version in choice.versions]
        expected = any(judge(case)[0] == "proved" for case in every)
        result, found, _ = cases.choose(choices, {}, judge, 10_000)
        assert result == ("proved" if expected else "refuted")
        assert not expected or judge(found)[0] == "proved"
    assert cases.choose([Choice(0, (1, 2))], {}, lambda case: ("refuted", None), 1)[0] == "open"


def overwritten_by_itself(written: int, *beside: Txn) -> History:
    """A transaction that reads its own first write of x, which another one overwrote; x began with 0."""
    own = register(1, f"wx{written} rx1 rx{written}", 0, 9)
    return history(ok(2, "wx1", 1, 8), own, *beside).starting_at(0)


@pytest.mark.parametrize("model", sorted(transactional.MODELS))
def test_an_own_write_of_the_first_value_is_no_read_of_the_beginning(model: str) -> None:
    """A false alarm: a transaction that wrote what the key began with would be said to have read of the beginning."""
    assert judged(overwritten_by_itself(0), model).result == judged(overwritten_by_itself(7), model).result


def test_the_transactions_without_an_order_have_none_by_themselves() -> None:
    """A proof that proves nothing: a read of an own write would be left out, since others wrote the value, too."""
    for beside in ((), (txn("info", 2, "wx7"),)):
        found = history(register(1, "wx7 wx1 rx7"), *beside)
        assert judged(found, "monotonic-view").result == "invalid"


def test_a_write_of_null_is_not_said_to_be_what_the_key_began_with() -> None:
    """The sentence would not be so."""
    null = history_of(
        [Line("invoke", 0, "txn", [["w", True, None]]), Line("ok", 0, "txn", [["w", True, None]])]
    )
    for start, words in (
        (1, "other than nothing to be"),
        (None, "other than nothing, with which true began, to be"),
    ):
        with pytest.raises(ModelError, match=f"expected a value {words} written"):
            transactional.check(null.starting_at(start), workload="rw-register")
