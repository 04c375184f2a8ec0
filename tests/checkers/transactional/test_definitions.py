"""The checker against the definitions of all models, on tiny histories: nothing wrong either way."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from checkers import transactional
from checkers.history import History
from checkers.proofs import verify_isolation
from checkers.proofs.meaning import Terms
from checkers.transactional import anomalies
from checkers.transactional.anomalies import MODELS
from checkers.transactional.columns import WORKLOADS, Workload
from checkers.verdict import Verdict
from tests import examples
from tests.checkers.transactional.arbitrary import arbitrary
from tests.checkers.transactional.around import around
from tests.checkers.transactional.definitions import Definitions
from tests.checkers.transactional.planted import APART, CATALOGUE
from tests.checkers.transactional.tiny_database import LEVELS, TinyDatabase
from tests.checkers.transactional.txns import Txn, history, ok, register, txn

FORKS = tuple(name for name in anomalies.ANOMALIES if name.startswith("G-nonadjacent"))
"""What tells parallel snapshot isolation from the rest, and takes four transactions: chance alone never draws it."""


def drawn(seed: int) -> tuple[History, Workload]:
    chance = random.Random(seed)
    workload: Workload = chance.choice(WORKLOADS)
    keys = chance.choice(("x", "xy", "xy", "xyz"))
    kind = chance.random()
    if kind < 0.05:
        return around(chance, chance.choice(FORKS), transactions=5)
    if kind < 0.6:
        return arbitrary(chance, workload, chance.randint(2, 4), keys), workload
    store = TinyDatabase(chance, workload, chance.choice(LEVELS), chance.choice((0, 0, 0.1, 0.3)))
    return store.history(chance.randint(2, 4), chance.randint(1, 4), keys), workload


def judged(found: History, workload: Workload, model: str) -> Verdict:
    return transactional.check(found, workload=workload, model=model, plain_below=10**9)


def compare(seed: int) -> Counter[str]:
    """What is said of each model is what its definition says; and the verdict on one of them."""
    found, workload = drawn(seed)
    truth = Definitions(found, workload)
    model = random.Random(-seed).choice(tuple(MODELS))
    verdict = judged(found, workload, model)
    told: Counter[str] = Counter()
    if verdict.details["vacuous"]:
        return told
    assert verdict.result != ("invalid" if truth.holds[model] else "valid"), f"seed {seed}, {model}:\n{truth}"
    held = {weaker for name in verdict.details["held"] for weaker in (name, *anomalies.weaker(name))}
    for name, holds in truth.holds.items():
        assert holds or name not in held, f"seed {seed}, {name} held:\n{truth}"
        assert not holds or name not in verdict.details["ruled_out"], (
            f"seed {seed}, {name} ruled out:\n{truth}"
        )
        undecided = name not in held and name not in verdict.details["ruled_out"]
        told["undecided" if undecided else "held" if holds else "ruled out"] += 1
    return told


@pytest.mark.parametrize("count", [150, pytest.param(400, marks=pytest.mark.long)])
def test_what_is_said_of_every_model_is_what_its_definition_says(count: int) -> None:
    """If this fails, a history of a model is called invalid, or one that is not of it is called valid."""
    told: Counter[str] = Counter()
    for seed in range(count):
        told += compare(seed)
    assert min(told["held"], told["ruled out"]) > count * 1_500 // 400, told
    assert told["undecided"] == 0, told


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_the_same_of_many_histories(part: int) -> None:
    """As above. Each history is one of every model."""
    told: Counter[str] = Counter()
    for seed in examples.tonight(1000, part):
        told += compare(seed)
    print(f"{told['undecided'] / told.total():.4%} undecided of {told}")
    assert told["undecided"] < told.total() / 1000, told


def invalid(*txns: Txn, model: str = "strict-serializable", workload: Workload = "append") -> Verdict:
    """The verdict, which must be invalid; the proof must be accepted."""
    found = history(*txns)
    verdict = judged(found, workload, model)
    assert not Definitions(found, workload).holds[model]
    assert verdict.result == "invalid", verdict.summary
    assert verify_isolation.check(found, verdict, Terms(model=model)).holds
    return verdict


def test_an_unsure_transaction_seen_in_part_happened_whole() -> None:
    """If this fails, half a transaction passes for serializable where the client got no answer."""
    invalid(txn("info", 1, "ay1 az2", 0, None), ok(2, "rz ry1", 1, 2), model="serializable")
    invalid(txn("info", 1, "ax1 ax2", 0, None), ok(2, "rx2", 1, 2), model="serializable")
    invalid(txn("info", 1, "ax1 ax2", 0, None), ok(2, "rx1", 1, 2), model="serializable")
    invalid(txn("info", 1, "wy1 wz2", 0, None), register(2, "rz ry1", 1, 2), workload="rw-register")
    late = (txn("info", 1, "ax1 ay1", 0, None), ok(2, "rx1", 1, 2), ok(2, "ry", 3, 4))
    invalid(*late, model="strong-session-serializable")
    assert judged(history(*late), "append", "serializable").result == "valid"


@pytest.mark.parametrize(
    "model", ["snapshot-isolation", "strong-session-snapshot-isolation", "strong-snapshot-isolation"]
)
@pytest.mark.parametrize(
    "words", [("ay1 ry1", "ay3 ry3"), ("ay1 rx ax2", "ax3 ry ay4"), ("rx ax1", "rx ax2")]
)
def test_the_first_committer_wins_also_where_no_read_shows_it(model: str, words: tuple[str, str]) -> None:
    """If this fails, two that wrote one key beside each other, unseen, pass for snapshot isolated."""
    invalid(ok(1, words[0], 0, 9), ok(2, words[1], 1, 8), model=model)
    invalid(
        ok(1, words[0], 0, 9), ok(2, words[1], 1, 8), model=model.replace("snapshot", "parallel-snapshot")
    )


def test_a_model_with_an_order_promises_as_much_of_each_key() -> None:
    """If this fails, a client of a strict serializable store may read back in time."""
    back = (ok(1, "wy1", 0, 1), ok(1, "wy2", 2, 3), register(1, "ry1", 4, 5))
    for model in ("strict-serializable", "strong-session-serializable", "strong-session-snapshot-isolation"):
        verdict = invalid(*back, model=model, workload="rw-register")
        assert verdict.details["violations"][0].startswith(anomalies.OF_KEYS)
    assert judged(history(*back), "rw-register", "serializable").result == "valid"


@pytest.mark.parametrize("model", ["strict-serializable", "strong-session-serializable"])
def test_what_keys_promise_of_reads_by_predicate_rules_out_no_repeatable_read(model: str) -> None:
    """If this fails, a store that promises repeatable read alone is said to break it."""
    stale = (ok(1, "wx1", 0, 1), ok(1, "wx2", 2, 3), register(1, "px1", 4, 5))
    details = invalid(*stale, model=model, workload="rw-register").details
    repeatable = model.replace("strict", "strong").replace("serializable", "repeatable-read")
    assert repeatable not in details["ruled_out"]
    assert transactional.check(history(*stale), workload="rw-register", model=repeatable).result == "valid"


@pytest.mark.parametrize("promise", ["linearizable_keys", "sequential_keys"])
def test_null_after_a_write_is_no_order_of_a_key(promise: str) -> None:
    """If this fails, the checker breaks where a promise of single keys puts null after a write."""
    stale = history(ok(1, "wx1", 0, 1), register(1, "rx", 2, 3))
    verdict = transactional.check(stale, workload="rw-register", **{promise: True})  # type: ignore[arg-type]  # one flag
    assert verdict.details["violations"] == ["cyclic-versions"]


def test_held_needs_a_proof() -> None:
    """If this fails, a model is said to hold that nobody has shown to hold."""
    fractured = history(ok(1, "wx1 wy1", 0, 9), register(2, "rx1 ry", 0, 9))
    details = judged(fractured, "rw-register", "serializable").details
    assert "read-atomic" in details["ruled_out"]
    assert details["held"] == ["strong-cursor-stability"]


def test_the_definitions_tell_the_models_apart() -> None:
    """If this fails, the plain twin has lost a difference between two models, and the comparison with it."""
    seen: dict[str, set[str]] = {}
    planted = [(history(*case.txns), case.workload) for case in (*CATALOGUE, *APART)]
    for each in [*planted, *(drawn(seed) for seed in range(200))]:
        holds = Definitions(*each).holds
        for name in MODELS:
            seen.setdefault(name, set()).update(other for other in MODELS if holds[name] and not holds[other])
    for one in MODELS:
        assert seen[one] == set(MODELS) - {one, *anomalies.weaker(one)}, one


@pytest.mark.parametrize("count", [120, pytest.param(300, marks=pytest.mark.long)])
def test_the_verifier_accepts_what_the_checker_found(count: int) -> None:
    """If this fails, a verdict stands on a proof that only its finder believes."""
    accepted: Counter[str] = Counter()
    for seed in range(1_000, 1_000 + count):
        found, workload = drawn(seed)
        model = random.Random(-seed).choice(tuple(MODELS))
        verdict = judged(found, workload, model)
        if verdict.result == "unknown":
            continue
        verified = verify_isolation.check(found, verdict, Terms(model=model))
        assert not verified.refused and verified.holds, f"seed {seed}, {model}: {verified}, {verdict.summary}"
        accepted[verdict.result] += 1
    assert min(accepted["valid"], accepted["invalid"]) > count // 6, accepted
