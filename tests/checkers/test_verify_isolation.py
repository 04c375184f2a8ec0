"""The independent verifier of verdicts on transactions: it accepts what the checker found, and no forgery."""

from __future__ import annotations

import copy
import random
from collections import Counter
from dataclasses import replace
from typing import Any

from checkers import transactional, verify_isolation
from checkers.history.history import History
from checkers.transactional.columns import WORKLOADS, Workload
from checkers.verdict import Verdict
from tests.checkers.transactional.tiny_database import LEVELS, TinyDatabase

MODELS = ("strict-serializable", "strong-session-serializable", "serializable")


def drawn(seed: int) -> tuple[History, Verdict]:
    chance = random.Random(seed)
    workload: Workload = chance.choice(WORKLOADS)
    made = TinyDatabase(chance, workload, chance.choice(LEVELS), chance.choice((0, 0, 0.2)))
    history = made.history(chance.randint(3, 9), chance.randint(2, 4), chance.choice(("x", "xy", "xyz")))
    model = chance.choice(MODELS)
    return history, transactional.check(history, workload=workload, model=model, plain_below=10**9)


def test_every_proof_is_accepted() -> None:
    """If it failed, a right verdict would be called unproved, or the checker's evidence would not be evidence."""
    seen: Counter[str] = Counter()
    for seed in range(900):
        history, verdict = drawn(seed)
        found = verify_isolation.check(history, verdict)
        assert not found.refused, f"seed {seed}: {found.refused}"
        seen[verdict.result] += found.accepted
    assert min(seen["valid"], seen["invalid"]) > 100, seen


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


def test_a_thousand_forgeries_are_refused() -> None:
    """If it failed, anything at all could be called proved."""
    chance = random.Random(5)
    refused = seed = 0
    while refused < 1_000:
        history, verdict = drawn(seed)
        seed += 1
        if not verify_isolation.check(history, verdict).holds:
            continue
        for _ in range(6):
            bent = forged(verdict, chance)
            if bent is not None:
                assert verify_isolation.check(history, bent).refused, f"seed {seed - 1}: {bent.details}"
                refused += 1


def test_an_order_that_gives_other_answers_is_refused() -> None:
    """If it failed, an order would be believed because it names the right transactions."""
    seen = 0
    for seed in range(400):
        history, verdict = drawn(seed)
        order = verdict.details["proof"].get("order")
        if verdict.result != "valid" or not order or verdict.details["proof"]["kind"] != "serial-order":
            continue
        backwards = copy.deepcopy(dict(verdict.details))
        backwards["proof"]["order"] = order[::-1]
        found = verify_isolation.check(history, replace(verdict, details=backwards))
        seen += bool(found.refused)
    assert seen > 30


def test_a_transaction_left_out_of_the_order_is_missed() -> None:
    """If it failed, a proof could leave out the very answer that contradicts it."""
    for seed in range(100):
        history, verdict = drawn(seed)
        order = verdict.details["proof"].get("order", [])
        ok = {each.invoke_index for each in history.operations if each.type == "ok"}
        if verdict.result == "valid" and verdict.details["proof"]["kind"] == "serial-order" and ok:
            bent = copy.deepcopy(dict(verdict.details))
            bent["proof"]["order"] = [event for event in order if event != min(ok)]
            assert verify_isolation.check(history, replace(verdict, details=bent)).refused
