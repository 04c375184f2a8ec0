"""Masters that come one after the other, or at once, and are told of by requests at single masters."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests import examples
from tests.nodes.txlog.driver import MASTERS, Driver
from tests.nodes.txlog.part_rounds import Disagreed, Model, Rules
from tests.nodes.txlog.test_settings import accepting, asked
from tests.nodes.txlog.test_splits import met

LATE = ("n4", "n5")
CORRECT = Rules()


def tell(driver: Driver, master: str, newcomer: str) -> None:
    driver.ask(master, ["add-peer", 1, newcomer])


def tell_all(driver: Driver) -> None:
    """Every master of all others."""
    for master in driver.hosts:
        for other in driver.hosts:
            tell(driver, master, other)


def loaded(driver: Driver, turns: int) -> None:
    """Submissions at all masters, in a random schedule without faults."""
    for number in range(turns):
        if number % 6 == 0:
            driver.submit(driver.chance.choice([*driver.hosts]))
        driver.turn_without_faults()


def is_ready(driver: Driver, name: str) -> bool:
    return driver.hosts[name].node.journal.is_matched


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_newcomer_serves_when_all_masters_count_it(seed: int, count: int) -> None:
    """If it failed, the masters that do not count it would add past its transactions: two logs without any fault."""
    driver = Driver(seed)
    driver.pass_ms(1_200)
    driver.add("n4")
    for master in MASTERS[:count]:
        tell(driver, master, "n4")
        loaded(driver, 100)
    driver.pass_ms(1_500)
    loaded(driver, 300)
    assert is_ready(driver, "n4") == (count == 3)
    for name in MASTERS:
        differences = driver.hosts[name].node.settings.differences()
        counts = MASTERS.index(name) < count
        others = [other for other in MASTERS if (MASTERS.index(other) < count) != counts]
        word = "does not count n4" if counts else "counts n4, which this master does not"
        assert differences == dict.fromkeys(others, word)
    tell_all(driver)
    driver.pass_ms(1_500)
    assert accepting(driver) == [*MASTERS, "n4"]
    driver.drain()
    driver.check_end()
    assert "differs" not in driver.hosts["n1"].node.status()


def test_a_newcomer_says_which_masters_do_not_count_it() -> None:
    """If it failed, an operator would not know which master has not been told."""
    driver = met("smart", masters=MASTERS)
    driver.add("n4")
    tell(driver, "n1", "n4")
    driver.pass_ms(2_000)
    told = asked(driver, "n4", ["submit", 1, [["write", "register", 1, 1]], "accepted"])
    assert told["error"] == (
        "configuration: the settings of the masters differ (n2: does not count n4; n3: does not count n4)"
    )


def test_masters_that_have_met_go_on_beside_one_that_counts_more() -> None:
    """If it failed, a list with one name too many would stop a cluster, or no status would report it."""
    driver = met("smart", masters=MASTERS)
    driver.restart("n1", masters=(*MASTERS, "n4"))
    driver.pass_ms(1_200)
    assert accepting(driver) == [*MASTERS]
    driver.pass_ms(1_200)
    driver.drain()
    more, fewer = "counts n4, which this master does not", "does not count n4"
    assert driver.hosts["n1"].node.status()["differs"] == {"n2": fewer, "n3": fewer}
    assert driver.hosts["n2"].node.status()["differs"] == {"n1": more}


def test_two_newcomers_that_do_not_know_each_other_do_not_both_serve() -> None:
    """If it failed, each would add without the counter of the other one."""
    driver = Driver(3)
    driver.pass_ms(1_200)
    driver.add("n4")
    driver.add("n5", (*MASTERS, "n5"))
    for newcomer in LATE:
        for master in MASTERS:
            tell(driver, master, newcomer)
        loaded(driver, 150)
        driver.pass_ms(1_000)
    loaded(driver, 300)
    assert is_ready(driver, "n4") and not is_ready(driver, "n5")
    tell(driver, "n5", "n4")
    loaded(driver, 300)
    assert not is_ready(driver, "n5")
    tell(driver, "n4", "n5")
    driver.pass_ms(1_500)
    assert accepting(driver) == [*MASTERS, *LATE]
    driver.drain()
    driver.check_end()


@examples.up_to(20)
@given(
    seed=st.integers(0, 1 << 32),
    lists=st.sampled_from([(4, 5), (4, 45), (45, 5), (45, 45)]),
    faults=st.booleans(),
)
@example(seed=0, lists=(4, 5), faults=True)  # a full round with a POST of a master that counts more
@example(seed=3, lists=(45, 5), faults=False)  # the last counter of such a master
@example(seed=3, lists=(4, 5), faults=True)  # a newcomer that serves before all count it
def test_masters_that_are_told_of_in_any_order_keep_one_log(
    seed: int, lists: Sequence[int], faults: bool
) -> None:
    """If it failed, some order of requests, messages and crashes would give two logs, or a cluster that stops."""
    driver = drawn(seed, lists, faults=faults)
    driver.cut.clear()
    tell_all(driver)
    driver.pass_ms(2_000)
    assert accepting(driver) == [*MASTERS, *LATE]
    driver.drain()
    driver.check_end()
    assert all("differs" not in host.node.status() for host in driver.hosts.values())


def drawn(seed: int, lists: Sequence[int], *, faults: bool) -> Driver:
    """Two newcomers; each names some first masters, and the other newcomer or not. Operators tell some masters of
    others, in any order.
    """
    driver = Driver(seed)
    chance = driver.chance
    driver.pass_ms(1_200)
    requests = [(master, newcomer) for newcomer in LATE for master in (*MASTERS, *LATE) if master != newcomer]
    chance.shuffle(requests)
    for newcomer, known in zip(LATE, lists, strict=True):
        first = chance.sample(MASTERS, chance.randint(1, 3))
        driver.add(newcomer, (*first, *(name for name in LATE if name[1:] in str(known))))
    for master, newcomer in requests[: chance.randint(4, len(requests))]:
        tell(driver, master, newcomer)
        if faults:
            driver.run(chance.choice((5, 60, 200)))
        else:
            loaded(driver, chance.choice((5, 60, 200)))
        if chance.random() < 0.3:
            driver.cut.clear()
            driver.pass_ms(chance.choice((200, 700)))
    return driver


# ---- the rule, as a model


def modelled(seeds: range, rules: Rules = CORRECT) -> tuple[int, int]:
    """Attacks on two or three masters and one or two newcomers; then all are told of all, and the links stand still.

    How many newcomers served during the attack, and how many masters still knew too few at its end.
    """
    served = short = 0
    for seed in seeds:
        chance = random.Random(seed)
        newcomers = chance.choice((1, 2))
        model = Model(chance, chance.choice((2, 3)) + newcomers, rules, newcomers=newcomers)
        for _ in range(300):
            model.turn()
        served += sum(model.masters[name].has_met for name in model.newcomers)
        short += sum(len(own.masters) < len(model.masters) for own in model.masters.values())
        for own in model.masters.values():
            own.masters = frozenset(model.masters)
        model.calm(frozenset(map(frozenset, combinations(model.masters, 2))))
    return served, short


def test_no_order_of_requests_makes_masters_disagree() -> None:
    """If it failed, the rule would rest on the order in which operators tell masters of each other."""
    served, short = modelled(range(200))
    assert served > 30 and short > 30, "nothing is tested"


@pytest.mark.nightly
def test_no_order_of_many_makes_masters_disagree() -> None:
    """The same, for as many as a night has time for."""
    modelled(range(200, 10_000))


@pytest.mark.parametrize(
    "wrong", [Rules(meets_alike=False), Rules(counts_alike=False)], ids=["meets", "counts"]
)
def test_without_one_of_the_rules_masters_disagree(wrong: Rules) -> None:
    """If it failed, the model would agree whatever a newcomer waits for, or counts."""
    with pytest.raises(Disagreed):
        modelled(range(1_000), wrong)
