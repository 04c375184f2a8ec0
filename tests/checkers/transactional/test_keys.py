"""The order of each register by itself, or the store's own order of transactions, beside an isolation model."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import transactional
from checkers.history import History, ModelError
from checkers.proofs import verify_isolation
from checkers.proofs.meaning import Terms
from checkers.transactional.anomalies import MODELS
from tests import examples
from tests.checkers.brute import isolation, phenomena, tiny_transactions
from tests.checkers.brute.histories import history_of
from tests.checkers.brute.phenomena import Version
from tests.checkers.brute.transactions import Txn, realtime, session, transactions_of
from tests.checkers.transactional.txns import history, ok, register


def of_registers(seed: int) -> History:
    return history_of(tiny_transactions.drawn(seed, workload="rw-register"))


def drawn_order(chance: random.Random, found: History) -> dict[int, float]:
    """Numbers for most of the transactions, by an index of theirs: nearly in the order in which they began."""
    txns = [each for each in found.operations if chance.random() < 0.8]
    ranked = sorted(txns, key=lambda each: each.invoke_index + chance.choice((0, 0, 0, 3)))
    return {
        each.invoke_index
        if each.complete_index is None or chance.random() < 0.5
        else each.complete_index: place
        for place, each in enumerate(ranked)
    }


def in_order(
    ranks: Mapping[int, float], world: Sequence[Txn], versions: dict[str, tuple[Version, ...]]
) -> bool:
    """Whether the versions of each key are in the order of the transactions that made them, by their invocations."""
    of = {txn.number: ranks.get(txn.invoked) for txn in world}
    for made in versions.values():
        known = [rank for maker, _ in made if (rank := of[maker]) is not None]
        if known != sorted(known):
            return False
    return True


@examples.up_to(400)
@given(seed=st.integers(0, 10**6), model=st.sampled_from(sorted(MODELS)))
def test_the_store_s_own_order_is_kept(seed: int, model: str) -> None:
    """If this fails, an order that the store gave is ignored, or forbids what fits into it."""
    found = of_registers(seed)
    ranks = drawn_order(random.Random(seed), found)
    base, before = isolation.MODELS[model]
    name = "repeatable-read" if base == "serializable" else base
    txns = transactions_of(found)
    # An unanswered transaction may be named by the line that says so; to the definition it has no end.
    begun = {
        each.invoke_index: ranks.get(each.invoke_index, ranks.get(each.complete_index or -1))
        for each in found.operations
    }
    begun_ranks = {event: rank for event, rank in begun.items() if rank is not None}
    allowed = phenomena.allowed(
        name, txns, "rw-register", before, lambda world, versions: in_order(begun_ranks, world, versions)
    )
    verdict = transactional.check(found, workload="rw-register", model=model, transaction_order=ranks)
    if not verdict.details["vacuous"]:
        assert verdict.result == ("valid" if allowed else "invalid"), verdict.summary
        assert verify_isolation.check(found, verdict, Terms(model=model, ranks=ranks)).holds


@examples.up_to(400)
@given(seed=st.integers(0, 10**6), model=st.sampled_from(sorted(MODELS)), linearizable=st.booleans())
def test_each_key_by_itself_keeps_an_order(seed: int, model: str, linearizable: bool) -> None:
    """If this fails, a promise of single keys is ignored, or forbids too much, or its verdict has no proof."""
    found = of_registers(seed)
    allowed = isolation.allows(model, found, "rw-register", realtime if linearizable else session)
    verdict = transactional.check(
        found,
        workload="rw-register",
        model=model,
        linearizable_keys=linearizable,
        sequential_keys=not linearizable,
    )
    if not verdict.details["vacuous"]:
        assert verdict.result == ("valid" if allowed else "invalid"), verdict.summary
        terms = Terms(model=model, key_order=1 + linearizable)
        assert verify_isolation.check(found, verdict, terms).holds


def test_a_proof_without_the_order_of_keys_is_refused() -> None:
    """If this fails, the verifier takes an order for a proof that a promise of single keys forbids."""
    read = history(ok(1, "wx1", 0, 1), ok(2, "wx2", 2, 3), ok(3, "wx3", 4, 5), register(4, "rx3", 6, 7))
    verdict = transactional.check(
        read, workload="rw-register", model="serializable", transaction_order={0: 2, 2: 1}
    )
    assert verdict.result == "valid"
    assert verify_isolation.check(read, verdict, Terms(model="serializable", ranks={0: 2, 2: 1})).holds
    assert not verify_isolation.check(read, verdict, Terms(model="serializable", ranks={0: 1, 2: 2})).holds
    assert not verify_isolation.check(read, verdict, Terms(model="serializable", key_order=2)).holds


@pytest.mark.parametrize("model", ["read-committed", "cursor-stability", "update-atomic", "serializable"])
def test_a_value_that_two_wrote_keeps_the_order_of_its_key(model: str) -> None:
    """If this fails, a read of what no client had asked to write yet is valid as soon as two write it later."""
    found = history(register(2, "rx2", 0, 1), register(2, "wx2", 2, 4), register(7, "wx2", 3, 5))
    for named, result in (({}, "valid"), ({"linearizable_keys": True}, "invalid")):
        verdict = transactional.check(found, workload="rw-register", model=model, **named)
        assert verdict.result == result
        terms = Terms(model=model, key_order=2 * len(named))
        assert verify_isolation.check(found, verdict, terms).holds


@pytest.mark.parametrize("begins", [1, 1_700_000_000_000_000_000, 10**400])
def test_an_order_in_nanoseconds_is_exact(begins: int) -> None:
    """If this fails, numbers that are one double stand for transactions in the order of their invocations."""
    found = history(ok(1, "rx1 wx2", 0, 3), ok(2, "wx1", 1, 2))
    for order, result in (((begins + 1, begins), "valid"), ((begins, begins + 1), "invalid")):
        verdict = transactional.check(
            found,
            workload="rw-register",
            model="serializable",
            transaction_order=dict(zip((0, 1), order, strict=True)),
        )
        assert verdict.result == result


@pytest.mark.parametrize("order", [{77: 1}, {0: 1, 2: 1}, {0: 3, 1: 1, 2: 2}])
def test_a_wrong_transaction_order_is_refused(order: dict[int, float]) -> None:
    """If this fails, an order of other transactions is silently ignored."""
    found = history(ok(1, "wx1", 0, 1), ok(2, "wx2", 2, 3))
    with pytest.raises(ModelError, match="transaction order"):
        transactional.check(found, workload="rw-register", transaction_order=order)


def test_lists_show_their_order_themselves() -> None:
    """If this fails, a promise of single keys is ignored where these are lists."""
    with pytest.raises(ModelError, match="registers"):
        transactional.check(history(ok(1, "ax1 rx1")), linearizable_keys=True)
