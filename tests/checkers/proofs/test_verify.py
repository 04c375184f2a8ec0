"""The verifier: what it is given by a liar, it refuses."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from checkers import linearizable
from checkers.history import Event, Header, History
from checkers.linearizable.models import ILLEGAL, Model
from checkers.linearizable.table import MODELS
from checkers.proofs import verify
from checkers.proofs.meaning import Terms
from checkers.verdict import Verdict, Witness
from tests.checkers.linearizable import tiny_histories

WANTED = pytest.mark.parametrize("wanted", [100, pytest.param(1_000, marks=pytest.mark.long)])
"""How many forgeries are refused before the test ends."""
REGISTERS = ("register", "unique-register", "cas-register")
LIE = Witness(rule="lie", summary="no", events=(0,))


def judged(name: str, chance: random.Random) -> tuple[History, Verdict]:
    """A tiny history with operations, and its verdict."""
    while True:
        history = tiny_histories.history(name, chance)
        verdict = linearizable.check(history, model=tiny_histories.NAMES.get(name, name))
        if verdict.result != "unknown":
            return history, verdict


def asked(verdict: Verdict) -> Terms:
    """What these tests ask for, whatever the verdict says of itself but the model's name."""
    return Terms(
        model=verdict.details["model"], reads=linearizable.promised_linearizable, failed_cas_observes=True
    )


def with_proofs(verdict: Verdict, result: str, proofs: list[dict[str, Any]]) -> Verdict:
    details = {**verdict.details, "proofs": proofs}
    witnesses = (LIE,) if result == "invalid" else ()
    return replace(verdict, result=result, details=details, witnesses=witnesses)  # type: ignore[arg-type]  # one of the two


def replays(model: Model, history: History, keys: list[Any], order: list[int]) -> bool:
    """Whether the operations in this order are what a true object does, and all that happened on these keys."""
    by_index = {operation.invoke_index: operation for operation in history.operations}
    state, latest = model.initial, -1
    for index in order:
        operation = by_index.get(index)
        action = model.action(operation) if operation is not None else None
        if operation is None or action is None or not set(model.parts(operation)) <= set(keys):
            return False
        result = model.step(state, action)
        returned = operation.returned_index
        if result is ILLEGAL or (returned is not None and returned < latest):
            return False
        state, latest = result, max(latest, operation.invoke_index)
    needed = {
        each.invoke_index
        for each in history.operations
        if each.returned_index is not None
        and model.action(each) is not None
        and set(model.parts(each)) & set(keys)
    }
    return len(set(order)) == len(order) and needed <= set(order)


def _mutated_order(chance: random.Random, order: list[int], events: int) -> list[int]:
    order = list(order)
    match chance.randrange(4):
        case 0 if order:
            del order[chance.randrange(len(order))]
        case 1 if len(order) > 1:
            first, second = chance.sample(range(len(order)), 2)
            order[first], order[second] = order[second], order[first]
        case 2 if order:
            order.insert(chance.randrange(len(order)), chance.choice(order))
        case _:
            order.insert(chance.randint(0, len(order)), chance.randrange(events + 2))
    return order


@WANTED
@pytest.mark.parametrize("name", tiny_histories.MODELS)
def test_a_mutated_order_is_refused(name: str, wanted: int) -> None:
    """If this fails, a verdict of valid can be forged."""
    chance = random.Random(1)
    model = MODELS[tiny_histories.NAMES.get(name, name)]()
    seen: Counter[bool] = Counter()
    while seen[False] < wanted:
        history, verdict = judged(name, chance)
        if verdict.result != "valid":
            continue
        proofs = list(verdict.details["proofs"])
        place = chance.randrange(len(proofs))
        order = _mutated_order(chance, proofs[place]["operations"], len(history.events))
        proofs[place] = {**proofs[place], "operations": order}
        right = replays(model, history, proofs[place]["keys"], order)
        verified = verify.check(history, with_proofs(verdict, "valid", proofs), asked(verdict))
        assert verified.holds == right, (proofs[place], history.operations)
        seen[right] += 1


def _zones(chance: random.Random, history: History, key: Any) -> dict[str, Any]:
    values = [chance.choice((None, 1, 2, 3, 4, 5, 6)) for _ in range(chance.randint(1, 2))]
    return {"kind": "zones", "keys": [key], "values": values}


def _witness(chance: random.Random, history: History, key: Any) -> dict[str, Any]:
    own = [operation for operation in history.operations if operation.key == key]
    named = chance.sample(own, chance.randint(0, len(own)))
    after = chance.choice(own).invoke_index if chance.random() < 0.5 else None
    until = chance.randrange(len(history.events) + 1)
    return {
        "kind": "witness", "keys": [key], "operations": [each.invoke_index for each in named], "until": until,
        "after": after,
    }  # fmt: skip


def _configurations(chance: random.Random, history: History, key: Any) -> dict[str, Any]:
    return {"kind": "configurations", "keys": [key], "until": chance.randrange(len(history.events) + 1)}


@WANTED
@pytest.mark.parametrize("name", REGISTERS)
def test_no_proof_speaks_against_a_true_history(name: str, wanted: int) -> None:
    """If this fails, the verifier accepts that a correct store was broken: the worst that it could do."""
    chance = random.Random(2)
    refused = 0
    while refused < wanted:
        history, verdict = judged(name, chance)
        if verdict.result != "valid":
            continue
        for forge in (_zones, _witness, _configurations):
            proof = forge(chance, history, history.operations[0].key)
            verified = verify.check(history, with_proofs(verdict, "invalid", [proof]), asked(verdict))
            assert not verified.holds and verified.refused, (proof, history.operations)
            assert not verified.accepted, (proof, history.operations)
        refused += 1


@WANTED
@pytest.mark.parametrize("name", tiny_histories.MODELS)
def test_no_order_is_accepted_for_a_broken_history(name: str, wanted: int) -> None:
    """If this fails, a broken store can be certified."""
    chance = random.Random(3)
    refused = 0
    while refused < wanted:
        history, verdict = judged(name, chance)
        if verdict.result != "invalid":
            continue
        keys = list(dict.fromkeys(key for proof in verdict.details["proofs"] for key in proof["keys"]))
        indexes = [
            operation.invoke_index for operation in history.operations if operation.key in (*keys, None)
        ]
        for _ in range(5):
            chance.shuffle(indexes)
            forged = [{"kind": "order", "keys": keys, "operations": list(indexes)}]
            assert not verify.check(history, with_proofs(verdict, "valid", forged), asked(verdict)).holds
            refused += 1


@WANTED
def test_a_mutated_witness_never_speaks_against_what_is_true(wanted: int) -> None:
    """If this fails, a real proof bent a little is taken for a history that keeps the promise up to there."""
    chance = random.Random(4)
    bent = 0
    while bent < wanted:
        history, verdict = judged("cas-register", chance)
        proof = next((each for each in verdict.details["proofs"] if each["kind"] == "witness"), None)
        if proof is None:
            continue
        changed = dict(proof)
        changed["until"] = chance.randrange(proof["until"])
        before = History.of(Header(), history.events[: changed["until"] + 1])
        verdict_before = linearizable.check(before, model="cas-register")
        verified = verify.check(history, with_proofs(verdict, "invalid", [changed]), asked(verdict))
        assert not verified.holds or verdict_before.result == "invalid", (changed, history.operations)
        bent += 1


def built(*lines: tuple[str, str, Any]) -> History:
    """One operation after the other on one key; "open" never ends."""
    events: list[Event] = []
    for process, (f, outcome, value) in enumerate(lines):
        question = None if f == "read" else value
        events.append(
            Event(
                index=len(events),
                time_ns=len(events),
                type="invoke",
                process=process,
                f=f,
                key="x",
                value=question,
            )
        )
        if outcome != "open":
            error = "mismatch" if outcome == "fail" else None
            events.append(
                Event(
                    index=len(events), time_ns=len(events), type=outcome, process=process, f=f, key="x",  # type: ignore[arg-type]  # ok or fail
                    value=value, error=error,
                )
            )  # fmt: skip
    return History.of(Header(), events)


def test_what_forces_a_value_may_not_be_left_out() -> None:
    """If this fails, leaving a change out of w1, cas 1→2, cas 2→3 makes a legal history look wrong."""
    history = built(("write", "ok", 1), ("cas", "ok", [1, 2]), ("cas", "ok", [2, 3]), ("read", "ok", 3))
    verdict = linearizable.check(history)
    assert verdict.result == "valid"
    for named in ([0, 4], [0, 4, 6], [0, 6], [2, 4], [4], [6]):
        proof = {"kind": "witness", "keys": ["x"], "operations": named, "until": 7, "after": None}
        verified = verify.check(history, with_proofs(verdict, "invalid", [proof]), asked(verdict))
        assert not verified.holds, named


def test_an_unread_crashed_write_may_not_be_left_out_beside_a_mismatch() -> None:
    """The trap: nobody reads the crashed write, yet the refused compare may have seen it."""
    history = built(("write", "ok", 1), ("write", "open", 2), ("cas", "fail", [1, 5]), ("read", "ok", 1))
    verdict = linearizable.check(history)
    assert verdict.result == "invalid"
    assert verify.check(history, verdict, asked(verdict)).holds
    legal = built(("write", "ok", 1), ("write", "open", 2), ("cas", "fail", [1, 5]))
    verdict = linearizable.check(legal)
    assert verdict.result == "valid" and verify.check(legal, verdict, asked(verdict)).holds
    proof = {"kind": "witness", "keys": ["x"], "operations": [0, 3], "until": 4, "after": None}
    assert not verify.check(legal, with_proofs(verdict, "invalid", [proof]), asked(verdict)).holds


def test_a_key_without_a_proof_is_told() -> None:
    """If this fails, a verdict passes for proved although a key was left out of it."""
    history = built(("write", "ok", 1), ("read", "ok", 1))
    verdict = linearizable.check(history)
    verified = verify.check(history, with_proofs(verdict, "valid", []), asked(verdict))
    assert not verified.holds and verified.without == ("x",)


def test_proofs_that_would_be_too_long_are_left_out_and_counted() -> None:
    """If this fails, verdict.json grows without bound, or nobody notices that proofs are missing."""
    history = built(*[("write", "ok", 1), ("read", "ok", 1)] * 10)
    assert len(linearizable.check(history).details["proofs"]) == 1
    verdict = linearizable.check(history, proof_operations=5)
    assert verdict.details["proofs"] == [] and verdict.details["decided_without_proof"] == 1


def test_what_is_judged_is_not_for_the_verdict_to_say() -> None:
    """If this fails, a verdict that leaves every read out, or the answers that are in the way, is verified."""
    stale = built(("write", "ok", 1), ("write", "ok", 2), ("read", "ok", 1))
    promised = Terms(model="register", reads=linearizable.promised_linearizable, failed_cas_observes=True)
    verdict = linearizable.check(stale)
    assert verdict.result == "invalid" and verify.check(stale, verdict, promised).holds
    blind = linearizable.check(stale, reads=lambda role, mode: False)
    order = {"kind": "order", "keys": ["x"], "operations": [0, 2]}
    left_out = replace(blind, result="valid", details={**blind.details, "proofs": [order]})
    assert left_out.details["reads_not_judged"]
    assert verify.check(stale, left_out, promised).refused
    refusal = built(("write", "ok", 1), ("cas", "fail", [1, 5]))
    unseen = linearizable.check(refusal, failed_cas_observes=False)
    forged = replace(
        unseen, result="valid", details={**unseen.details, "proofs": [{**order, "operations": [0]}]}
    )
    assert verify.check(refusal, forged, promised).refused
    assert verify.check(refusal, forged, replace(promised, failed_cas_observes=False)).holds
    other = verify.check(stale, replace(verdict, details={**verdict.details, "model": "list"}), promised)
    assert not other.holds and other.refused == ("it judges by list, not by register",)


@pytest.mark.parametrize(
    ("lines", "result"),
    [
        ([("append", ""), ("get", "")], "valid"),
        ([("append", "a"), ("append", ""), ("get", "a"), ("append", "")], "valid"),
        ([("append", ""), ("append", "a"), ("get", "b")], "invalid"),
    ],
)
def test_nothing_appended_to_a_text_needs_no_place(lines: list[tuple[str, Any]], result: str) -> None:
    """If this fails, a right verdict is refused where a client appended an empty text."""
    history = built(*((f, "ok", value) for f, value in lines))
    verdict = linearizable.check(history, model="kv")
    assert verdict.result == result
    found = verify.check(history, verdict, Terms(model="kv"))
    assert found.holds and not found.refused


@pytest.mark.parametrize(
    ("model", "acquired", "released"),
    [("mutex", "7f3c", "7f3c"), ("owner-aware-mutex", True, None), ("fenced-mutex", 2, "7f3c")],
)
def test_a_fence_that_is_not_judged_may_be_any_value(model: str, acquired: Any, released: Any) -> None:
    """If this fails, a right verdict on locks whose clients note a token is taken back: its proof cannot be read."""
    lines = (("acquire", {"client": "a", "fence": acquired}), ("release", {"client": "a", "fence": released}))
    history = built(*((f, "ok", value) for f, value in lines))
    verdict = linearizable.check(history, model=model)
    assert verdict.result == "valid"
    assert verify.check(history, verdict, Terms(model=model)).holds


@pytest.mark.parametrize(("one", "other"), [(1, "1"), (None, "None"), (None, "null")])
def test_zones_of_values_that_look_alike(one: Any, other: Any) -> None:
    """If this fails, a right verdict is refused where a number and its text are both written."""
    first = [] if one is None else [("write", "ok", one)]
    history = built(*first, ("write", "ok", other), ("read", "ok", one), ("read", "ok", other))
    verdict = linearizable.check(history)
    assert verdict.result == "invalid" and verdict.details["proofs"][0]["kind"] == "zones"
    assert len(verdict.details["proofs"][0]["values"]) == 2
    assert verify.check(history, verdict, asked(verdict)).holds


@pytest.mark.parametrize(("written", "read"), [(-0.0, 0.0), ({"a": -0.0}, {"a": 0.0}), ([-0.0], [0.0])])
def test_values_that_are_the_same_are_the_same_to_the_verifier(written: Any, read: Any) -> None:
    """If it failed, --verify would leave a right verdict unknown."""
    events = [
        Event(index=0, time_ns=0, type="invoke", process=0, f="write", key="x", value=written),
        Event(index=1, time_ns=1, type="ok", process=0, f="write", key="x", value=written),
        Event(index=2, time_ns=2, type="invoke", process=0, f="read", key="x"),
        Event(index=3, time_ns=3, type="ok", process=0, f="read", key="x", value=read),
    ]
    history = History.of(Header(), events)
    verdict = linearizable.check(history)
    assert verdict.result == "valid"
    assert verify.check(history, verdict, asked(verdict)).holds


@pytest.mark.parametrize("after", [2, 4, 6])
def test_a_witness_may_begin_where_a_value_was_fixed(after: int) -> None:
    """If it failed, no proof that begins behind a write, a cas or a read would be accepted."""
    lines = (
        ("write", "ok", 1),
        ("write", "ok", 2),
        ("cas", "ok", [2, 3]),
        ("read", "ok", 3),
        ("read", "ok", 1),
    )
    history = built(*lines)
    proof = {"kind": "witness", "keys": ["x"], "operations": [8], "until": 9, "after": after}
    told = with_proofs(linearizable.check(history), "invalid", [proof])
    assert verify.check(history, told, asked(told)).holds


def test_a_proof_that_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, the verifier would walk without an end where much is possible."""
    history = built(("write", "ok", 1), ("write", "ok", 2), ("read", "ok", 1))
    proof = {"kind": "configurations", "keys": ["x"], "until": 5}
    told = with_proofs(linearizable.check(history), "invalid", [proof])
    assert verify.check(history, told, asked(told)).accepted
    monkeypatch.setattr(verify, "STEPS_MAX", 3)
    (why,) = verify.check(history, told, asked(told)).refused
    assert why.endswith("too much is possible to look at all of it")


def test_zones_of_writes_that_overlap_are_refused() -> None:
    """If it failed, a write that took effect late would be taken for one in effect since it began."""
    lines: list[tuple[int, str, str, Any]] = [
        (0, "invoke", "write", 1), (1, "invoke", "write", 2), (1, "ok", "write", 2),
        (2, "invoke", "read", None), (2, "ok", "read", 1), (0, "ok", "write", 1),
    ]  # fmt: skip
    history = History.of(
        Header(),
        [
            Event(index=index, time_ns=index, type=type_, process=process, f=f, key="x", value=value)  # type: ignore[arg-type]  # invoke or ok
            for index, (process, type_, f, value) in enumerate(lines)
        ],
    )
    verdict = linearizable.check(history)
    assert verdict.result == "valid"
    told = with_proofs(verdict, "invalid", [{"kind": "zones", "keys": ["x"], "values": [1, 2]}])
    assert not verify.check(history, told, asked(told)).accepted
