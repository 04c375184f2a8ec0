"""Recoveries in which a master dies, or is cut off again: the others go on, and come to one log when it is back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.txlog.configuration import MILLISECOND
from nodes.txlog.sometimes import AGAIN, THAWED
from tests import examples
from tests.nodes.txlog.driver import Driver
from tests.nodes.txlog.test_relays import Attacked
from tests.nodes.txlog.test_settings import asked
from tests.nodes.txlog.test_splits import FIVE, MINORITY, SPLIT_MS, healed, ids, met, modes, split, submit

STRATEGIES = ("simple", "smart")


def frozen(strategy: str, gone: str, seed: int = 1) -> Driver:
    """A recovery that all have begun, and `gone` cannot end: no digest of it comes, nor does it get one."""
    driver = met(strategy, seed=seed, idle_ns=100 * MILLISECOND)
    split(driver)
    driver.pass_ms(2_000)
    driver.separate()
    while not all(host.node.journal.is_recovering for name, host in driver.hosts.items() if name != gone):
        driver.turn_without_faults()
        assert not any(host.node.journal.epoch for host in driver.hosts.values()), "nothing is tested"
    driver.separate(gone)
    driver.pass_ms(1)
    return driver


@pytest.mark.parametrize("gone", ["n1", "n5"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_master_that_dies_in_a_recovery_stops_no_other(strategy: str, gone: str) -> None:
    """If it failed, one returning master that dies would stop all others, until it is back."""
    driver = frozen(strategy, gone)
    rest = [name for name in FIVE if name != gone]
    assert {modes(driver)[name] for name in rest} == {"recovering"}
    driver.pass_ms(2 * SPLIT_MS + 500)
    assert {modes(driver)[name] for name in rest} == {"split"}
    before = {name: len(driver.executed[name]) for name in rest}
    submit(driver, *rest)
    driver.pass_ms(2_500)
    for name in rest:
        assert len(driver.executed[name]) > before[name], name
    assert driver.turns()[THAWED] >= 4
    driver.separate()
    healed(driver)
    assert {host.node.journal.epoch for host in driver.hosts.values()} == {1}
    assert driver.turns()[AGAIN] == 4
    submit(driver, *FIVE)
    healed(driver)


def test_nothing_is_executed_while_digests_travel() -> None:
    """If it failed, docs/seeds.md would say something else: in the design the larger part executes all the time."""
    driver = met("smart", idle_ns=100 * MILLISECOND)
    split(driver)
    driver.separate()
    journal = driver.hosts["n1"].node.journal
    while not journal.is_recovering:
        driver.turn_without_faults()
    driver.separate("n5")
    assert journal.executed < len(journal.synced), "nothing is tested"
    before = journal.executed
    driver.pass_ms(1_100)
    assert journal.is_recovering and journal.executed == before
    driver.pass_ms(200)
    assert not journal.is_recovering and journal.executed == len(journal.synced), "MaxPeerLag was over"
    healed(driver)


def test_the_rest_of_a_majority_serves_for_as_long_as_the_master_is_away() -> None:
    """If it failed, work since the freeze would be lost, or the majority would stop again and again."""
    driver = frozen("smart", "n5")
    driver.pass_ms(2 * SPLIT_MS + 2_500)
    for _ in range(20):
        submit(driver, "n1", "n2")
        driver.pass_ms(200)
    assert driver.executed["n1"][-5:] == driver.executed["n2"][-5:] == ids(driver, "n1")[-5:]
    driver.crash("n1")
    driver.crash("n3")
    driver.separate()
    healed(driver)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_masters_part_in_a_recovery(strategy: str) -> None:
    """If it failed, of two masters the one that is left would need a majority that there is not."""
    driver = met(strategy, masters=FIVE[:2], idle_ns=100 * MILLISECOND)
    driver.separate("n2")
    submit(driver, "n1", "n2", "n1")
    driver.pass_ms(SPLIT_MS + 2_000)
    driver.separate()
    journals = [host.node.journal for host in driver.hosts.values()]
    while not any(journal.epoch for journal in journals):
        driver.turn_without_faults()
    assert any(journal.is_recovering for journal in journals), "nothing is tested"
    driver.separate("n2")
    driver.pass_ms(4 * SPLIT_MS)
    submit(driver, "n1", "n2")
    driver.pass_ms(2_500)
    (name,) = (name for name, host in driver.hosts.items() if not host.node.journal.epoch)
    assert driver.executed[name][-1] == [each for each, ref in driver.made.items() if ref.origin == name][-1]
    driver.separate()
    healed(driver)


def test_a_master_that_has_finished_has_all_digests_after_a_restart() -> None:
    """If it failed, masters that lack the digest of one that is away would wait for it, beside one that had it."""
    driver = met("smart", idle_ns=100 * MILLISECOND)
    split(driver)
    driver.separate()
    while not driver.hosts["n1"].node.journal.epoch:
        driver.turn_without_faults()
    late = [name for name, host in driver.hosts.items() if not host.node.journal.epoch]
    gone = next(name for name in MINORITY if name not in late or name == "n5")
    driver.separate(gone)
    driver.crash("n1")
    driver.pass_ms(1_000)
    assert {driver.hosts[name].node.journal.epoch for name in FIVE if name != gone} == {1}
    healed(driver)


@examples.up_to(4)
@given(seed=st.integers(0, 1 << 32), masters=st.integers(2, 5), strategy=st.sampled_from(STRATEGIES))
def test_random_deaths_in_recoveries_end_in_one_log(seed: int, masters: int, strategy: str) -> None:
    """If it failed, some order of freezes, thaws and deaths would lose a transaction, or leave masters different."""
    dying(seed, masters, strategy)


@pytest.mark.nightly
@examples.up_to(300)
@given(seed=st.integers(0, 1 << 32), masters=st.integers(2, 5), strategy=st.sampled_from(STRATEGIES))
def test_many_random_deaths_in_recoveries_end_in_one_log(seed: int, masters: int, strategy: str) -> None:
    """The same, for as many as a night has time for."""
    dying(seed, masters, strategy)


def dying(seed: int, masters: int, strategy: str) -> Driver:
    """Whenever a recovery has begun, a master is cut off for long, or ends, at a random moment of it."""
    driver = Attacked(
        seed,
        FIVE[:masters],
        strategy=strategy,
        split_ns=250 * MILLISECOND,
        idle_ns=100 * MILLISECOND,
        max_peer_lag_ns=100 * MILLISECOND,
    )
    driver.pass_ms(600)
    chance, names = driver.chance, [*driver.hosts]
    for _ in range(4):
        driver.separate(*chance.sample(names, chance.randint(1, masters - 1)))
        submit(driver, *names)
        driver.pass_ms(700)
        submit(driver, *names)
        driver.separate()
        for _ in range(400):
            if any(host.node.journal.awaits_digests for host in driver.hosts.values()):
                break
            driver.turn_without_faults()
        for _ in range(chance.randint(0, 60)):
            driver.turn_without_faults()
        driver.separate(chance.choice(names))
        for _ in range(chance.randint(1, 4)):
            submit(driver, *names)
            driver.pass_ms(chance.choice((20, 300, 700)))
            if chance.random() < 0.3:
                driver.crash(chance.choice(names))
        if chance.random() < 0.5:
            driver.separate()
            driver.pass_ms(chance.choice((5, 50, 400)))
    driver.separate()
    healed(driver)
    return driver


def test_random_deaths_thaw_masters() -> None:
    """If it failed, the tests above would say nothing of what they are for."""
    turns = [dying(seed, 4, "smart").turns() for seed in range(4)]
    assert sum(turn[THAWED] for turn in turns) >= 4 and sum(turn[AGAIN] for turn in turns) >= 2


def test_max_peer_lag_is_set_while_a_master_runs() -> None:
    """If it failed, an operator would have to end a master, in the middle of a split, to let it serve."""
    driver = met("smart", idle_ns=100 * MILLISECOND)
    assert driver.hosts["n1"].node.status()["max_peer_lag_ms"] == 1_500
    split(driver)
    before = len(driver.executed["n1"])
    assert asked(driver, "n1", ["max-peer-lag", 1, 0]) == {"type": "ok"}
    assert driver.hosts["n1"].node.status()["max_peer_lag_ms"] == 0
    driver.pass_ms(150)
    assert len(driver.executed["n1"]) > before and len(driver.executed["n2"]) == before
    for wrong in (-1, 3_601, "soon", True, None):
        told = asked(driver, "n1", ["max-peer-lag", 1, wrong])
        assert (told["type"], told["error"][:51]) == (
            "fail",
            "illegal-parameters: expected seconds from 0 to 3600",
        )
    driver.crash("n1")
    assert driver.hosts["n1"].node.status()["max_peer_lag_ms"] == 1_500
    healed(driver)
