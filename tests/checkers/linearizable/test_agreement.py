"""Every algorithm against trying every order, every proof against the verifier: tiny histories of every model."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from checkers import linearizable
from checkers.history import History, Operation
from checkers.linearizable import forward, search
from checkers.linearizable.models import Model
from checkers.linearizable.search import Call, Limits
from checkers.linearizable.table import MODELS
from checkers.proofs import verify
from checkers.proofs.meaning import Terms
from tests import examples
from tests.checkers.linearizable import all_orders, tiny_histories

NO_LIMITS = Limits()


def asked(model: str) -> Terms:
    """What the checker judges if nothing is said but the model."""
    return Terms(model=model, reads=linearizable.promised_linearizable, failed_cas_observes=True)


def calls_by_keys(model: Model, history: History) -> list[list[Call]]:
    """The calls of every key; of a multi-register all together."""
    groups: dict[object, list[Operation]] = {}
    for operation in history.operations:
        groups.setdefault(None if model.name == "multi-register" else operation.key, []).append(operation)
    return [
        [
            Call(action, each.invoke_index, each.returned_index)
            for each in group
            if (action := model.action(each)) is not None
        ]
        for group in groups.values()
    ]


def agree(name: str, count: int, seed: int) -> Counter[str]:
    """Compare all of them on `count` histories; what was seen."""
    chance = random.Random(seed)
    model = MODELS[tiny_histories.NAMES.get(name, name)]()
    seen: Counter[str] = Counter()
    for _ in range(count):
        history = tiny_histories.history(name, chance)
        legal = [_one_key(model, calls) for calls in calls_by_keys(model, history)]
        verdict = linearizable.check(history, model=tiny_histories.NAMES.get(name, name))
        expected = "valid" if all(legal) else "invalid"
        assert verdict.result == (expected if verdict.details["observations"] else "unknown"), (
            history.operations
        )
        verified = verify.check(history, verdict, asked(verdict.details["model"]))
        assert not verified.refused, (verified, verdict, history.operations)
        assert verdict.result == "unknown" or verified.holds, (verified, verdict, history.operations)
        assert not verified.without and not verdict.details["decided_without_proof"]
        seen[verdict.result] += 1
        seen.update(proof["kind"] for proof in verdict.details["proofs"])
    return seen


def _one_key(model: Model, calls: list[Call]) -> bool:
    legal = all_orders.linearizable(model, calls)
    plain = search.search(model, calls, NO_LIMITS)
    compiled = forward.search(model, calls, NO_LIMITS)
    assert (plain.result == "yes", compiled.result == "yes") == (legal, legal), calls
    assert plain.failing == compiled.failing, calls
    return legal


@pytest.mark.parametrize(("count", "least"), [(150, 5), pytest.param(2_000, 150, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", tiny_histories.MODELS)
def test_agreement(name: str, count: int, least: int) -> None:
    """If this fails, a checker raises a false alarm or misses an anomaly, or hands out a proof that is none."""
    seen = agree(name, count, seed=1)
    assert min(seen["valid"], seen["invalid"], seen["order"]) > least, seen
    by_element = dict.fromkeys(("unordered-queue", "stack", "priority-queue"), "element")
    kind = {"unique-register": "zones", **by_element}.get(name, "witness")
    assert seen[kind] > least // 3, seen


@pytest.mark.nightly
@pytest.mark.parametrize("name", tiny_histories.MODELS)
def test_agreement_at_length(name: str) -> None:
    """The same on many more, since the rarest of mistakes showed up once in tens of thousands."""
    agree(name, 10_000, seed=examples.tonight(1)[0])
