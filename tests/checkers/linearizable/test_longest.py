"""The longest linearizable prefix: what an answer ends is found where trying every prefix finds it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from checkers import linearizable
from checkers.history import History
from checkers.proofs.meaning import Terms
from checkers.proofs.verify import check as verified
from tests.checkers.brute.linear import linearizable as has_order
from tests.checkers.linearizable import tiny_histories

MODELS = ("register", "unique-register", "cas-register", "queue", "stack", "mutex", "list")


def until_by_trying(history: History, model: str) -> int:
    """The first event after which the record has no order any more."""
    events = list(history.events)
    for end in range(1, len(events) + 1):
        if not has_order(model, History.of(history.header, events[:end])):
            return end - 1
    raise AssertionError("it has one")


@pytest.mark.parametrize("model", MODELS)
def test_the_answer_that_ends_it_is_found_by_trying_every_prefix(model: str) -> None:
    """If it failed, a person would look at an answer that is right, and not at the one that is wrong."""
    name, seen = tiny_histories.NAMES.get(model, model), 0
    for seed in range(400):
        history = tiny_histories.history(model, random.Random(seed))
        verdict = linearizable.check(history, model=name, longest_prefixes=True)
        if verdict.result != "invalid":
            assert "longest_prefix" not in verdict.details
            continue
        seen += 1
        found = min(verdict.details["longest_prefix"], key=lambda prefix: prefix["until"])
        assert found["until"] == until_by_trying(history, name), seed
        assert found["blocked"][0] == history.operations[_place(history, found["until"])].invoke_index
        runs = [
            each
            for each in history.operations
            if each.key in found["keys"] and each.invoke_index < found["until"]
        ]
        beside = [
            each.invoke_index for each in runs if (each.complete_index or found["until"] + 1) > found["until"]
        ]
        assert found["blocked"][1:] == beside, seed
        answered = [each.returned_index for each in history.operations if each.key in found["keys"]]
        assert found["operations"] == sum(end is not None and end < found["until"] for end in answered)
    assert seen > 8


def _place(history: History, until: int) -> int:
    return next(place for place, each in enumerate(history.operations) if each.complete_index == until)


def test_the_order_of_the_prefix_is_one() -> None:
    """If it failed, the operations before the wrong answer would be shown in an order that they cannot have."""
    seen = 0
    for seed in range(200):
        history = tiny_histories.history("cas-register", random.Random(seed))
        verdict = linearizable.check(history, model="cas-register", longest_prefixes=True)
        for prefix in verdict.details.get("longest_prefix", ()):
            before = History.of(history.header, list(history.events)[: prefix["until"]])
            said = linearizable.check(before, model="cas-register")
            if (
                said.result != "valid"
                or len(prefix["keys"]) > 1
                or len({each.key for each in before.operations}) > 1
            ):
                continue
            proof = {"kind": "order", "keys": prefix["keys"], "operations": prefix["order"]}
            given = replace(said, details={**said.details, "proofs": [proof]})
            assert verified(before, given, Terms(model="cas-register", failed_cas_observes=True)).holds, seed
            seen += 1
    assert seen > 10
