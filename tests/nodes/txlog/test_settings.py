"""Masters whose settings differ: they refuse each other, and are never taken for silent."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nodes.kernel.errors import StartRefused
from nodes.txlog.configuration import MILLISECOND, Configuration, Strategy
from tests import examples
from tests.nodes.txlog.driver import MASTERS, Driver
from tests.nodes.txlog.test_splits import SPLIT_MS, healed, met, modes, split, submit

STRATEGIES = get_args(Strategy)
QUICK = {"split_ns": 250 * MILLISECOND, "idle_ns": 100 * MILLISECOND, "max_peer_lag_ns": 200 * MILLISECOND}


def asked(driver: Driver, name: str, message: list[Any]) -> dict[str, Any]:
    """The answer to a client of that master."""
    answers: list[Any] = []
    before, driver.answered = driver.answered, answers.append
    driver.ask(name, message)
    while not answers:
        driver.pass_ms(5)
    driver.answered = before
    told: dict[str, Any] = answers[0][2]
    return told


def accepting(driver: Driver) -> list[str]:
    """The masters that take a transaction."""
    message = ["submit", 1, [["write", "register", 1, 1]], "accepted"]
    return [name for name in driver.hosts if asked(driver, name, message)["type"] == "accepted"]


def set_strategy(driver: Driver, name: str, strategy: str, *, by_restart: bool) -> None:
    if by_restart:
        driver.restart(name, strategy=strategy)
    else:
        assert asked(driver, name, ["strategy", 1, strategy]) == {"type": "ok"}


@pytest.mark.parametrize("by_restart", [False, True], ids=["by request", "by restart"])
@pytest.mark.parametrize(("usual", "other"), [("smart", "none"), ("none", "simple"), ("simple", "smart")])
def test_a_different_strategy_splits_nothing(usual: str, other: str, by_restart: bool) -> None:
    """If it failed, one setting on one master would split a healthy cluster for good, and both parts would go on."""
    driver = met(usual, masters=MASTERS)
    driver.submit("n2")  # it waits to be synchronised, so a silent master would be left out
    set_strategy(driver, "n1", other, by_restart=by_restart)
    driver.pass_ms(3 * SPLIT_MS)
    assert modes(driver) == dict.fromkeys(MASTERS, "normal")
    assert accepting(driver) == []
    told = asked(driver, "n2", ["submit", 1, [["write", "register", 1, 1]], "executed"])
    assert (
        told["error"]
        == f"configuration: the settings of the masters differ (n1: strategy {other}, here {usual})"
    )
    status = driver.hosts["n2"].node.status()
    assert (status["refused"], status["differs"]) == (["n1"], {"n1": f"strategy {other}, here {usual}"})
    assert driver.hosts["n1"].node.status()["refused"] == ["n2", "n3"]
    assert not driver.hosts["n1"].node.status()["ready"]
    set_strategy(driver, "n1", usual, by_restart=not by_restart or driver.chance.random() < 0.5)
    driver.pass_ms(1_200)
    assert accepting(driver) == [*MASTERS]
    healed(driver)
    assert "differs" not in driver.hosts["n2"].node.status()


def test_a_master_that_is_away_is_left_out_whatever_its_strategy() -> None:
    """If it failed, a cluster could not go on without a master that was stopped because its setting was wrong."""
    driver = met("smart", masters=MASTERS)
    set_strategy(driver, "n1", "none", by_restart=False)
    driver.pass_ms(600)
    driver.separate("n1")
    driver.pass_ms(1_500)
    submit(driver, "n2")
    driver.pass_ms(SPLIT_MS + 900)
    assert (driver.hosts["n2"].node.status()["missing"], accepting(driver)) == (["n1"], ["n2", "n3"])
    driver.separate()
    driver.pass_ms(1_500)
    assert driver.hosts["n2"].node.status()["missing"] == ["n1"], "its setting is still a different one"
    assert accepting(driver) == ["n2", "n3"]
    driver.restart("n1", strategy="smart")
    healed(driver)
    driver.pass_ms(1_200)
    assert accepting(driver) == [*MASTERS]


def test_an_operators_choice_outlasts_a_restart_in_a_split() -> None:
    """If it failed, a master that ends in a split could not start again with the configuration that it has."""
    driver = met("simple")
    for name in driver.hosts:
        assert asked(driver, name, ["strategy", 1, "smart"]) == {"type": "ok"}
    driver.pass_ms(1_200)
    split(driver)
    for _ in range(2):
        driver.crash("n4")
        assert driver.hosts["n4"].node.journal.strategy == "smart"
    with pytest.raises(StartRefused, match="expected smart, got none"):
        driver.restart("n4", strategy="none")
    driver.restart("n4", strategy="smart")
    healed(driver)


def both_left_out(driver: Driver) -> list[tuple[str, str]]:
    """Pairs that have left each other out with different strategies: no recovery brings these together."""
    journals = {name: host.node.journal for name, host in driver.hosts.items()}
    return [
        (one, other)
        for one in journals
        for other in journals[one].missing
        if one in journals[other].missing and journals[one].strategy != journals[other].strategy
    ]


@examples.up_to(2)
@given(seed=st.integers(0, 1 << 32), usual=st.sampled_from(STRATEGIES))
@example(seed=26, usual="smart")  # a master that has not met the others anew would leave them out
@example(seed=38, usual="smart")  # a POST from before the change is still on its way
@example(seed=6000, usual="none")  # a recovery began that the others, with another strategy, never joined
def test_random_changes_of_strategies_never_part_masters(seed: int, usual: str) -> None:
    """If it failed, some order of changes, cuts and restarts would leave two parts that no recovery can join."""
    _random_changes(seed, usual)


@pytest.mark.nightly
@examples.up_to(60)
@given(seed=st.integers(0, 1 << 32), usual=st.sampled_from(STRATEGIES))
def test_many_random_changes_of_strategies_never_part_masters(seed: int, usual: str) -> None:
    """The same, for many."""
    _random_changes(seed, usual)


def _random_changes(seed: int, usual: str) -> None:
    driver = Driver(seed, strategy=usual, **QUICK)
    driver.pass_ms(1_200)
    for _ in range(5):
        if driver.chance.random() < 0.5:
            driver.partition()
        for _ in range(3):
            name, strategy = driver.chance.choice(MASTERS), driver.chance.choice(STRATEGIES)
            if driver.chance.random() < 0.3:
                with suppress(StartRefused):
                    driver.restart(name, strategy=strategy)
            else:
                driver.ask(name, ["strategy", 1, strategy])
            for _ in range(120):
                driver.turn()
                assert not both_left_out(driver)
        driver.separate()
    settled = [host.node.journal.strategy for host in driver.hosts.values() if host.node.journal.missing]
    common = settled[0] if settled else usual
    for name in MASTERS:  # until all have it: a split must be over first
        for _ in range(20):
            if driver.hosts[name].node.journal.strategy == common:
                break
            driver.ask(name, ["strategy", 1, common])
            driver.pass_ms(300)
    driver.pass_ms(2_000)
    if common != "none":
        healed(driver)
    assert accepting(driver) == [*MASTERS]


def changed_and_back(driver: Driver, name: str) -> None:
    """A master gets a different strategy, and the first one again, before it hears anything."""
    for strategy in ("none", "smart"):
        driver.ask(name, ["strategy", 1, strategy])


def test_a_post_from_before_a_change_of_the_strategy_does_not_count() -> None:
    """If it failed, a master would leave out one that has got the other strategy meanwhile, and is left out by it."""
    driver = met("smart", masters=MASTERS)
    driver.pass_ms(1_200)  # the last POSTs have the own base
    driver.separate("n1")
    changed_and_back(driver, "n1")
    driver.submit("n2")
    driver.pass_ms(3 * SPLIT_MS)
    status = driver.hosts["n1"].node.status()
    assert (status["ready"], status["missing"], status["mode"]) == (False, [], "normal")
    driver.separate()
    healed(driver)
    driver.pass_ms(600)
    assert driver.hosts["n1"].node.status()["ready"]


def test_a_post_that_is_on_its_way_when_the_strategy_changes_does_not_count() -> None:
    """If it failed, the same: the older POST would come behind the change."""
    driver = met("smart", masters=MASTERS)
    driver.cut.add(("n2", "n1"))
    driver.pass_ms(200)
    older = [
        (link, len(found.queues["n1"])) for link, found in driver.links.items() if found.ends == ("n2", "n1")
    ]
    assert sum(count for _, count in older) > 0, "nothing is tested"
    changed_and_back(driver, "n1")
    driver.ask("n2", ["strategy", 1, "none"])
    for link, count in older:
        for _ in range(count):
            driver.deliver(link, "n1")
    driver.pass_ms(600)
    assert not driver.hosts["n1"].node.status()["ready"]
    assert driver.hosts["n1"].node.settings.shares("n3"), "nothing is tested: n3 has not posted"


@pytest.mark.parametrize("others", [("n2",), ("n3",), ("n2", "n3")])
def test_a_master_that_lacks_one_of_the_masters_takes_nothing(others: tuple[str, ...]) -> None:
    """If it failed, masters that do not count each other would add without each other: two logs without any fault."""
    lists = {"n2": {"masters": ("n1", "n2")}, "n3": {"masters": ("n1", "n3")}}
    driver = Driver(1, own={name: lists[name] for name in others})
    driver.pass_ms(2_000)
    assert not {*accepting(driver)} & {*others}
    for name in others:
        lacked = "n3" if name == "n2" else "n2"
        assert driver.hosts[name].node.status()["differs"] == {
            "n1": f"counts {lacked}, which this master does not"
        }
    for name in others:
        driver.restart(name, masters=MASTERS)
    driver.pass_ms(2_000)
    assert accepting(driver) == [*MASTERS]
    driver.drain()
    driver.check_end()


def test_a_master_of_the_log_cannot_be_left_out_at_a_start() -> None:
    """If it failed, the master would add without the counter of one that goes on to make transactions."""
    driver = met("none", masters=MASTERS)
    with pytest.raises(StartRefused, match="expected n2 among n1, n3"):
        driver.restart("n3", masters=("n1", "n3"))
    driver.drain()


def test_a_slow_master_is_measured_by_its_own_pace() -> None:
    """If it failed, a master that posts less often than others would be left out though nothing is wrong with it."""
    slow = {"busy_ns": 700 * MILLISECOND, "idle_ns": 700 * MILLISECOND, "split_ns": 2_000 * MILLISECOND}
    driver = Driver(1, own={"n2": slow}, strategy="smart", **QUICK)
    driver.pass_ms(4_000)
    for _ in range(8):
        submit(driver, *MASTERS)
        driver.pass_ms(250)
        assert modes(driver) == dict.fromkeys(MASTERS, "normal")
    healed(driver)


@pytest.mark.parametrize("word", ["Simple", "SIMPLE", "simple"])
def test_names_of_strategies_are_taken_in_any_case(word: str) -> None:
    """If it failed, the setting of the design's own examples would be refused, or differ from the same one."""
    data = json.loads(Configuration(name="n1", masters=MASTERS).to_json())
    assert Configuration.from_json(json.dumps({**data, "strategy": word}).encode()).strategy == "simple"
    driver = met("smart", masters=MASTERS)
    for name in MASTERS:
        assert asked(driver, name, ["strategy", 1, word]) == {"type": "ok"}
    assert asked(driver, "n1", ["strategy", 1, f"{word}s"])["type"] == "fail"
    driver.pass_ms(1_200)
    assert {host.node.journal.strategy for host in driver.hosts.values()} == {"simple"}
    assert accepting(driver) == [*MASTERS]
    with pytest.raises(ValueError, match="'strategy' cannot be 'Simplest'"):
        Configuration.from_json(json.dumps({**data, "strategy": "Simplest"}).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"{}", b"3", b"\xff", b"[" * 99_999])
def test_what_is_no_configuration_is_one_sentence(data: bytes) -> None:
    """If it failed, a torn file would end a master with a traceback."""
    with pytest.raises(ValueError, match=r"^not a configuration of a TxLog master: "):
        Configuration.from_json(data)
