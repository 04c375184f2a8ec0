"""A history by hand for every anomaly: it must be named, its cycle the smallest, and the right models left."""

from __future__ import annotations

import pytest

from checkers import transactional
from checkers.proofs import verify_isolation
from checkers.proofs.meaning import Terms
from checkers.transactional.anomalies import ANOMALIES, MODELS, OF_KEYS
from tests.checkers.transactional.definitions import Definitions
from tests.checkers.transactional.planted import APART, CATALOGUE, Apart, Planted
from tests.checkers.transactional.txns import history, ok


def _identity(case: Planted) -> str:
    return f"{case.workload}-{case.anomaly}-{case.name}".replace(" ", "-")


@pytest.mark.parametrize("case", CATALOGUE, ids=_identity)
def test_it_is_named_and_its_cycle_is_the_smallest(case: Planted) -> None:
    """If this fails, an anomaly that somebody planted goes unseen, by another name, or longer than need be."""
    verdict = transactional.check(history(*case.txns), workload=case.workload, model="strict-serializable")
    found = verdict.details["anomalies"]
    assert verdict.result == "invalid"
    assert case.anomaly in found, f"{case.name}: {list(found)}"
    assert len(found[case.anomaly]["edges"]) == case.size
    if case.left is not None:
        assert tuple(verdict.details["left"]) == case.left


@pytest.mark.parametrize("case", CATALOGUE, ids=_identity)
def test_its_witness_explains_itself(case: Planted) -> None:
    """If this fails, a person who meets the anomaly gets no events, sentences or picture of it."""
    verdict = transactional.check(history(*case.txns), workload=case.workload, model="strict-serializable")
    witness = next(each for each in verdict.witnesses if each.rule == case.anomaly)
    assert witness.events
    assert witness.start_ns is not None
    assert len(witness.explanation) == (case.size + 1 if case.size else 1)
    picture = verdict.details["anomalies"][case.anomaly]
    names = {each["name"] for each in picture["transactions"]}
    assert all(
        edge["from"] in names and edge["to"] in names and edge["sentence"] for edge in picture["edges"]
    )


@pytest.mark.parametrize("case", APART, ids=[case.name.replace(" ", "-") for case in APART])
def test_a_history_that_tells_models_apart(case: Apart) -> None:
    """If this fails, a model is judged as if it were its neighbour, or its verdict has no proof."""
    found = history(*case.txns)
    truth = Definitions(found, case.workload).holds
    for model in (*case.allowed_by, *case.forbidden_by):
        verdict = transactional.check(found, workload=case.workload, model=model)
        assert truth[model] == (model in case.allowed_by), model
        assert verdict.result == ("valid" if truth[model] else "invalid"), model
        assert verify_isolation.check(found, verdict, Terms(model=model)).holds, model


def test_every_new_model_has_a_history_that_it_allows_and_one_that_it_forbids() -> None:
    """If this fails, nothing by hand says what a model means."""
    bases = {base for base, _ in MODELS.values()} - {"snapshot-isolation", "parallel-snapshot-isolation"}
    bases -= {"read-committed", "read-atomic", "repeatable-read", "serializable"}
    for side in ("allowed_by", "forbidden_by"):
        assert bases <= {MODELS[model][0] for case in APART for model in getattr(case, side)}, side


def test_there_is_one_for_every_anomaly() -> None:
    """If this fails, an anomaly has no history that must show it."""
    of_sessions = {OF_KEYS + "-process"}  # found where no more than an order of sessions is promised
    assert set(ANOMALIES) - of_sessions <= {case.anomaly for case in CATALOGUE}


def test_a_promise_that_allows_it_is_kept() -> None:
    """If this fails, what a weak promise allows counts as its violation, or goes unmentioned."""
    skew = history(ok(1, "rx ay1", 0, 9), ok(2, "ry ax1", 0, 9), ok(3, "rx1 ry1", 10, 11))
    verdict = transactional.check(skew, model="strong-snapshot-isolation")
    assert verdict.result == "valid"
    assert verdict.details["findings"] == ["G2-item"]
    assert verdict.details["proof"]["kind"] == "snapshots-and-commits"
    assert transactional.check(skew, model="serializable").result == "invalid"


def test_the_sentences() -> None:
    """If this fails, the explanation of a cycle reads otherwise than it was meant to."""
    verdict = transactional.check(
        history(ok(1, "ax1 ay1", 0, 9), ok(2, "rx1 ry", 0, 9), ok(3, "ry1", 10, 11)), model="serializable"
    )
    witness = next(each for each in verdict.witnesses if each.rule == "G-single")
    assert witness.explanation == (
        "T1 read y as []; T2 appended 1 to y, which T1 did not see, so T1 came before T2.",
        "Yet T2 appended 1 to x; T1 read x as [1], so T1 came after T2.",
        "So each of them would have to come before itself: there is no such order.",
    )


def test_the_order_of_two_writes_is_told_by_a_read_of_both() -> None:
    """If this fails, a person is sent to a read that shows the opposite order, or the later write alone."""
    writes = ok(1, "ax1 ay2", 0, 9), ok(2, "ax2 ay1", 0, 9), ok(3, "ax3", 0, 9)
    reads = ok(4, "rx21", 0, 9), ok(5, "rx123", 0, 10), ok(6, "ry12", 0, 11)
    verdict = transactional.check(history(*writes, *reads), model="serializable")
    (witness,) = (each for each in verdict.witnesses if each.rule == "G0")
    told = " ".join(witness.explanation)
    assert "read [1, 2, 3])" in told and "read [1, 2])" in told and "[2, 1]" not in told, told
