"""Three masters under random schedules, with crashes and cut links and without splits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import examples
from tests.nodes.txlog.driver import Driver, Violated

TURNS = 2_500


def played(seed: int, *bugs: str, turns: int = TURNS) -> Driver:
    driver = Driver(seed, bugs=bugs)
    driver.run(turns)
    driver.drain()
    driver.check_end()
    return driver


@examples.up_to(4)
@given(st.integers(0, 1 << 32))
def test_the_synchronised_queue_is_a_prefix_of_all_transactions_in_order(seed: int) -> None:
    """If it failed, masters would execute transactions in different orders, or lose accepted ones."""
    played(seed)


def test_these_schedules_have_what_makes_rounds_hard() -> None:
    """If it failed, the test above would say nothing of time-out rounds, of rounds with different messages, of
    restarts, or of load."""
    drivers = [played(seed) for seed in range(2)]
    assert all(driver.time_outs >= 5 and len(driver.accepted) >= 50 for driver in drivers)
    assert all(sum(len(rounds) > 1 for rounds in driver.rounds.values()) >= 2 for driver in drivers)
    lives = [host.node.journal.life for driver in drivers for host in driver.hosts.values()]
    assert max(lives) >= 3


@pytest.mark.parametrize(
    "bug",
    [
        "stamp-before-increment",
        "missing-unbounded",
        "unacquired-skipped",
        "merge-of-same-base",
        "sort-by-timestamp",
        "counter-not-raised",
        "counter-reset",
        "queue-not-kept",
        "last-added-stays",
        "difference-overwrites",
        "own-value",
    ],
)
def test_a_seeded_bug_violates_the_invariant(bug: str) -> None:
    """If it failed, the invariant would be one that a wrong master keeps, too."""
    for seed in range(6):
        try:
            played(seed, bug)
        except Violated:
            return
    raise AssertionError(f"six schedules have shown nothing of {bug}")
