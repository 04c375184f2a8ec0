"""The table of states and the code agree, in both directions."""

from __future__ import annotations

import pytest

from nodes.twophase import stock, transaction
from nodes.twophase.states import ALLOWED, CHANGES, State, changed
from tests.nodes.twophase.random_run import begun, calm, disturb
from tests.nodes.twophase.virtual_cluster import VirtualCluster


def test_a_change_that_is_not_in_the_table_is_a_mistake() -> None:
    """If it failed, a transaction could be committed after its rollback."""
    with pytest.raises(AssertionError, match="ROLLED_BACK → COMMITTED"):
        changed(State.ROLLED_BACK, State.COMMITTED)
    assert len(ALLOWED) == len(CHANGES)
    assert {state for pair in ALLOWED for state in pair} == set(State)
    assert {before for before, after in ALLOWED if after is State.SUSPENDED} == {State.ACTIVE}
    assert "UNKNOWN" not in State.__members__, "a cut need not fail for such an end"


@pytest.mark.nightly
def test_every_change_in_the_table_occurs(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, the table would show what no transaction does. (Any other change raises.)"""
    seen: set[tuple[State, State]] = set()

    def noted(before: State, after: State) -> State:
        seen.add((before, after))
        return changed(before, after)

    monkeypatch.setattr(stock, "changed", noted)
    monkeypatch.setattr(transaction, "changed", noted)
    lose_the_primary_of_a_suspended_transaction()
    for seed in range(4_000, 4_080):
        run = begun(seed, backups=seed % 3, concurrency=("pessimistic", "optimistic")[seed % 2])
        for _ in range(3):
            run.load(60)
            disturb(run)
        calm(run)
        if seen == ALLOWED:
            return
    assert ALLOWED - seen == set()


def lose_the_primary_of_a_suspended_transaction() -> None:
    cluster = VirtualCluster(1, clients=("c1",))
    cluster.settle()
    asked = cluster.client.txn("c1", *[["write", "r", key, 1] for key in range(9)], suspend_ms=3_000)
    cluster.run(100)
    cluster.machine("n2").kill()
    cluster.run(2_000)
    assert asked.answer["error"] == "the primary n2 left"
