"""The independent verifier of verdicts on transactions: it accepts what the checker found, and no forgery."""

from __future__ import annotations

import copy
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import transactional
from checkers.history.history import Header, History
from checkers.history.operation import Event
from checkers.proofs import verify_isolation
from checkers.proofs.meaning import Terms
from checkers.transactional import anomalies
from checkers.transactional.columns import WORKLOADS, Workload
from checkers.verdict import Verdict, Verified, Witness
from tests import examples
from tests.checkers.brute.histories import Line
from tests.checkers.brute.histories import history_of as lines_of
from tests.checkers.transactional.arbitrary import arbitrary
from tests.checkers.transactional.tiny_database import LEVELS, TinyDatabase
from tests.checkers.transactional.txns import Txn, ok, register
from tests.checkers.transactional.txns import history as history_of

MODELS = ("strict-serializable", "strong-session-serializable", "serializable")


def asked(verdict: Verdict) -> Terms:
    """What `drawn` asked the checker."""
    return Terms(model=verdict.model)


def drawn(seed: int) -> tuple[History, Verdict]:
    chance = random.Random(seed)
    workload: Workload = chance.choice(WORKLOADS)
    made = TinyDatabase(chance, workload, chance.choice(LEVELS), chance.choice((0, 0, 0.2)))
    history = made.history(chance.randint(3, 9), chance.randint(2, 4), chance.choice(("x", "xy", "xyz")))
    model = chance.choice(MODELS)
    return history, transactional.check(history, workload=workload, model=model, plain_below=10**9)


@pytest.mark.parametrize("count", [150, pytest.param(900, marks=pytest.mark.long)])
def test_every_proof_is_accepted(count: int) -> None:
    """If it failed, a right verdict would be called unproved, or the checker's evidence would not be evidence."""
    seen: Counter[str] = Counter()
    for seed in range(count):
        history, verdict = drawn(seed)
        found = verify_isolation.check(history, verdict, asked(verdict))
        assert not found.refused, f"seed {seed}: {found.refused}"
        seen[verdict.result] += found.accepted
    assert min(seen["valid"], seen["invalid"]) > count // 9, seen


SESSIONS = tuple(name for name, (_, order) in anomalies.MODELS.items() if order == 1)


def of_sessions(history: History, workload: Workload, model: str) -> str:
    """The verdict by a model that keeps the order of sessions; its proof must be accepted, and need no real time."""
    verdict = transactional.check(history, workload=workload, model=model, plain_below=10**9)
    if verdict.result == "unknown":
        return ""
    found = verify_isolation.check(history, verdict, Terms(model=model))
    assert found.holds, f"{model}: {found.refused}\n{verdict.summary}"
    named = verdict.details["proof"].get("names", ())
    kinds = [edge["kind"] for name in named for edge in verdict.details["anomalies"][name]["edges"]]
    assert "realtime" not in kinds, verdict.details["anomalies"]
    return verdict.result


@examples.up_to(300)
@given(
    chance=st.randoms(use_true_random=False),
    workload=st.sampled_from(WORKLOADS),
    model=st.sampled_from(SESSIONS),
)
def test_models_of_sessions_are_refuted_without_real_time(
    chance: random.Random, workload: Workload, model: str
) -> None:
    """If this fails, a right verdict rests on an order that is not promised, and our own verifier refuses it."""
    of_sessions(
        arbitrary(chance, workload, chance.randint(2, 5), "xyz"[: chance.randint(1, 3)]), workload, model
    )


@pytest.mark.parametrize("model", SESSIONS)
def test_what_one_session_did_not_see_is_shown_by_sessions_alone(model: str) -> None:
    """As above: real time lies nearer here, because the first transaction was over before the last began."""
    history = history_of(ok(1, "rz wy1 wx2"), ok(2, "wy3 wz4"), register(2, "rx"))
    keyed = anomalies.OF_KEYS + "-process" in anomalies.forbidden(model)
    result = of_sessions(history, "rw-register", model)
    assert result == ("invalid" if keyed else "valid"), model


def forged(verdict: Verdict, chance: random.Random) -> Verdict | None:
    """The verdict with its proof bent so that it surely proves nothing; None if this one cannot be."""
    details: dict[str, Any] = copy.deepcopy(dict(verdict.details))
    if verdict.result == "valid":
        order = details["proof"].get("order")
        if not order:
            return None
        match chance.randrange(3):
            case 0:
                order.append(order[0])
            case 1:
                order.append(10**6)
            case _:
                order[0] = -1
        return replace(verdict, details=details)
    claimed = [details["anomalies"][name] for name in details["proof"]["names"]]
    circles = [each for each in claimed if each["edges"]]
    if not circles:
        return None
    for each in circles:
        edge = chance.choice(each["edges"])
        match chance.randrange(3):
            case 0:
                edge["to"] = edge["from"]
            case 1:
                edge["key"], edge["kind"] = "nothing", "wr"
            case _:
                each["edges"].remove(edge)
    return replace(verdict, details=details)


@pytest.mark.parametrize("wanted", [150, pytest.param(1_000, marks=pytest.mark.long)])
def test_forgeries_are_refused(wanted: int) -> None:
    """If it failed, anything at all could be called proved."""
    chance = random.Random(5)
    refused = seed = 0
    while refused < wanted:
        history, verdict = drawn(seed)
        seed += 1
        if not verify_isolation.check(history, verdict, asked(verdict)).holds:
            continue
        for _ in range(6):
            bent = forged(verdict, chance)
            if bent is not None:
                assert verify_isolation.check(history, bent, asked(verdict)).refused, (
                    f"seed {seed - 1}: {bent.details}"
                )
                refused += 1


@pytest.mark.parametrize("count", [80, pytest.param(400, marks=pytest.mark.long)])
def test_an_order_that_gives_other_answers_is_refused(count: int) -> None:
    """If it failed, an order would be believed because it names the right transactions."""
    seen = 0
    for seed in range(count):
        history, verdict = drawn(seed)
        order = verdict.details["proof"].get("order")
        if verdict.result != "valid" or not order or verdict.details["proof"]["kind"] != "serial-order":
            continue
        backwards = copy.deepcopy(dict(verdict.details))
        backwards["proof"]["order"] = order[::-1]
        found = verify_isolation.check(history, replace(verdict, details=backwards), asked(verdict))
        seen += bool(found.refused)
    assert seen > count * 30 // 400


def test_a_transaction_left_out_of_the_order_is_missed() -> None:
    """If it failed, a proof could leave out the very answer that contradicts it."""
    for seed in range(100):
        history, verdict = drawn(seed)
        order = verdict.details["proof"].get("order", [])
        ok = {each.invoke_index for each in history.operations if each.type == "ok"}
        if verdict.result == "valid" and verdict.details["proof"]["kind"] == "serial-order" and ok:
            bent = copy.deepcopy(dict(verdict.details))
            bent["proof"]["order"] = [event for event in order if event != min(ok)]
            assert verify_isolation.check(history, replace(verdict, details=bent), asked(verdict)).refused


def test_what_is_judged_is_not_for_the_verdict_to_say() -> None:
    """If this fails, a verdict that leaves reads out, or judges by a weaker model, is verified."""
    stale = history_of(ok(1, "ax1", 0, 1), ok(2, "rx", 2, 3))
    promised = Terms(model="strict-serializable")
    told = transactional.check(stale, model="strict-serializable")
    assert told.result == "invalid" and verify_isolation.check(stale, told, promised).holds
    order = {"kind": "serial-order", "order": [0]}
    details = {**told.details, "proof": order, "reads_not_judged": ["no mode at unknown role"]}
    blind = replace(told, result="valid", witnesses=(), details=details)
    assert verify_isolation.check(stale, blind, promised).refused
    weaker = transactional.check(stale, model="serializable")
    assert weaker.result == "valid"
    assert verify_isolation.check(stale, weaker, Terms(model="serializable")).holds
    assert verify_isolation.check(stale, weaker, promised).refused
    lie = replace(weaker, details={**weaker.details, "promised": "strict-serializable"})
    assert verify_isolation.check(stale, lie, promised).refused


def test_null_and_an_empty_list_are_one_version() -> None:
    """If this fails, a right lost-update is refused where one read is null and the other []."""
    one = Txn(type="ok", process=1, micros=[["r", "x", None], ["append", "x", 1]], begin=0, end=9)
    other = Txn(type="ok", process=2, micros=[["r", "x", []], ["append", "x", 2]], begin=0, end=9)
    found = history_of(one, other)
    verdict = transactional.check(found, model="serializable")
    assert "lost-update" in verdict.details["violations"]
    assert not verify_isolation.check(found, verdict, Terms(model="serializable")).refused


def test_snapshots_in_which_the_first_committer_does_not_win_are_refused() -> None:
    """If this fails, two that wrote one key beside each other can be certified as snapshot isolated."""
    both = history_of(ok(1, "ay1 ry1", 0, 9), ok(2, "ay3 ry3", 0, 9))
    valid = transactional.check(history_of(ok(1, "ax1 rx1", 0, 9)), model="snapshot-isolation")
    steps = [[0, "snapshot"], [1, "snapshot"], [0, "commit"], [1, "commit"]]
    details = {**valid.details, "proof": {"kind": "snapshots-and-commits", "order": steps}}
    found = verify_isolation.check(both, replace(valid, details=details), Terms(model="snapshot-isolation"))
    assert found.refused and "did not see" in found.refused[0]


def test_a_step_that_is_no_snapshot_and_no_commit_is_refused() -> None:
    """If this fails, a transaction commits twice under two other words, and an element that came twice is certified."""
    twice = history_of(ok(1, "ax1", 0, 1), ok(2, "rx11", 2, 3))
    valid = transactional.check(history_of(ok(1, "ax1 rx1", 0, 9)), model="snapshot-isolation")
    details = {
        **valid.details,
        "proof": {"kind": "snapshots-and-commits", "order": [[0, "x"], [0, "y"], [2, "z"]]},
    }
    found = verify_isolation.check(twice, replace(valid, details=details), Terms(model="snapshot-isolation"))
    assert found.refused and "no snapshot and no commit" in found.refused[0]
    assert not found.holds


def test_values_and_keys_that_look_alike() -> None:
    """If this fails, 1 and "1" are one value to the verifier, and a proof can swap them."""
    write = Txn(type="ok", process=1, micros=[["w", 1, "1"]], begin=0, end=1)
    read = Txn(type="ok", process=2, micros=[["r", "1", None], ["r", 1, "1"]], begin=2, end=3)
    wrong = Txn(type="ok", process=2, micros=[["r", 1, 1]], begin=2, end=3)
    good = history_of(write, read)
    verdict = transactional.check(good, workload="rw-register", model="strict-serializable")
    assert verify_isolation.check(good, verdict, Terms(model="strict-serializable")).holds
    assert verify_isolation.check(
        history_of(write, wrong), verdict, Terms(model="strict-serializable")
    ).refused


def test_an_order_remembers_the_latest_beginning() -> None:
    """If this fails, an order may put one before another that was over before it began, if a third stands between."""
    apart = history_of(ok(1, "az1 rz1", 1, 7), ok(2, "ay1 ry1", 5, 15), ok(3, "ax1 rx1", 10, 20))
    model = "strong-read-committed"
    verdict = transactional.check(apart, model=model)
    first, second, third = sorted(each.invoke_index for each in apart.operations)
    for order, holds in ([first, second, third], True), ([third, second, first], False):
        details = {**verdict.details, "proof": {"kind": "order", "order": order}}
        found = verify_isolation.check(apart, replace(verdict, details=details), Terms(model=model))
        assert found.holds == holds, found.refused


@pytest.mark.parametrize("value", [[1, 2], {"a": [0.0]}, "é", 1e300, -0.0, [], [["é"]]])
def test_keys_and_values_of_every_kind(value: Any) -> None:
    """If it failed, --verify would take a list in a register for its elements, and leave a right verdict unknown."""
    same = 0.0 if value == 0 else value
    keys: list[Any] = [value, "x"]

    def told(*answers: Any) -> History:
        lines = []
        for process, micros in enumerate(answers):
            asked_for = [[f, key, shown if f == "w" else None] for f, key, shown in micros]
            lines += [Line("invoke", process, "txn", asked_for), Line("ok", process, "txn", micros)]
        return lines_of(lines)

    for key in keys:
        first, second, read = [["w", key, value]], [["w", key, 1]], [["r", key, same]]
        cases = (first, read), (first, second, [["r", key, 1]]), (first, second, read)
        for case, expected in zip(cases, ("valid", "valid", "invalid"), strict=True):
            found = told(*case)
            verdict = transactional.check(found, workload="rw-register", model="strict-serializable")
            assert verdict.result == expected
            checked = verify_isolation.check(found, verdict, Terms(model="strict-serializable"))
            assert checked.holds, checked.refused


WRITTEN = [["w", "x", 1], ["w", "x", 2]]
SHOWN = [["r", "x", 2]]
EDGES = [
    {"from": "T0", "to": "T1", "kind": "realtime", "predicate": False, "key": "x"},
    {"from": "T1", "to": "T0", "kind": "rw", "predicate": False, "key": "x"},
]


@pytest.mark.parametrize(("name", "edges"), [("incompatible-order", []), ("G-single-item-realtime", EDGES)])
def test_a_read_of_the_last_write_of_a_register_breaks_nothing(
    name: str, edges: list[dict[str, Any]]
) -> None:
    """Broken, the verifier would accept that 2 was not written after 1, or that a reader of 2 had come before its
    writer: no list shows 1, and 2 would stand before itself.
    """
    found = of_forgery([WRITTEN, SHOWN], (0, 1), name, edges, Terms(model="strict-serializable"))
    assert (found.accepted, len(found.refused)) == (0, 1)


def of_forgery(
    done: list[list[Any]], named: tuple[int, ...], name: str, edges: list[dict[str, Any]], terms: Terms
) -> Verified:
    """The verifier's word on an invented anomaly of transactions that one client did one after the other, by their
    numbers."""
    events = []
    for number, micros in enumerate(done):
        asked_for = [[f, key, None if f in ("r", "rp") else value] for f, key, value in micros]
        for type_, value in ("invoke", asked_for), ("ok", micros):
            line = {"type": type_, "process": 0, "f": "txn", "value": value}
            events.append(Event(index=len(events), time_ns=number, **line))
    transactions = [{"name": f"T{at}", "events": [2 * number]} for at, number in enumerate(named)]
    shown = {"transactions": transactions, "edges": edges, "at": [[0, "x"]]}
    verdict = Verdict(
        checker="transactional",
        model=terms.model,
        result="invalid",
        summary="a forgery",
        witnesses=(Witness(rule=name, summary="a forgery", events=()),),
        details={"proof": {"kind": "anomalies", "names": [name]}, "anomalies": {name: shown}},
    )
    return verify_isolation.check(History.of(Header(), events), verdict, terms)


STALE = [
    {"from": "T0", "to": "T1", "kind": "process", "predicate": False, "key": "x"},
    {"from": "T1", "to": "T0", "kind": "ww", "predicate": False, "key": "x"},
]
TWICE_READ = [["w", "x", 2]], [["w", "x", 2]], [["r", "x", 2], ["r", "x", None]]


@pytest.mark.parametrize(
    ("model", "key_order", "done", "named", "name", "edges"),
    [
        ("snapshot-isolation", 0, [[["r", "x", None], ["w", "x", 1]]], (0, 0), "lost-update", []),
        ("read-committed", 2, [*TWICE_READ], (1, 2), "no-order", []),
        ("read-committed", 2, [*TWICE_READ], (2,), "cyclic-versions", []),
        (
            "causal",
            0,
            [
                [["append", "x", 1]],
                [["r", "x", []], ["append", "x", 2], ["r", "x", [2]]],
                [["r", "x", [1, 2]]],
            ],
            (1, 2),
            "incompatible-order",
            [],
        ),
        (
            "strong-session-read-committed",
            0,
            [[["append", "x", 1]], [["append", "x", 3], ["r", "x", [3]]]],
            (0, 1),
            "G",
            STALE,
        ),
        (
            "read-committed",
            0,
            [[["append", "x", 2], ["append", "x", 2]], [["r", "x", [2, 2]]]],
            (1,),
            "duplicate-elements",
            [],
        ),
        (
            "strong-session-repeatable-read",
            0,
            [[["w", "x", 1]], [["rp", "x", None]]],
            (0, 1),
            "cyclic-versions-process",
            [],
        ),
    ],
    ids=[
        *(
            "one named twice",
            "without its first read",
            "without an open read",
            "own element",
            "stale own read",
        ),
        *("appended twice", "old by a predicate"),
    ],
)
def test_nothing_is_proved_against_what_the_model_allows(
    model: str,
    key_order: int,
    done: list[list[Any]],
    named: tuple[int, ...],
    name: str,
    edges: list[dict[str, Any]],
) -> None:
    """A forged proof would be accepted, although these transactions have an execution of the model."""
    found = of_forgery(done, named, name, edges, Terms(model=model, key_order=key_order))
    assert (found.accepted, len(found.refused)) == (0, 1)
