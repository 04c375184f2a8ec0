"""Links that change a second and a third time: one order in each part, and when they stand still, all masters go on."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations, permutations
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nodes.txlog.configuration import Strategy
from nodes.txlog.sometimes import CAUGHT_UP, LATE, RELAYED, SPLIT_GREW, THAWED, recovered_by
from tests import examples
from tests.nodes.txlog.driver import Driver
from tests.nodes.txlog.part_rounds import Model, Rules, StoodStill
from tests.nodes.txlog.test_relays import FOUR, Graph, graph, met, only, parts_of
from tests.nodes.txlog.test_splits import FIVE, healed, ids, submit

STRATEGIES = get_args(Strategy)


CORRECT = Rules()


def walked(seed: int, rules: Rules = CORRECT, *, joins: bool = False) -> Model:
    """Three attacks, and a network behind each that stands still; not all masters reach each other."""
    chance = random.Random(seed)
    model = Model(chance, chance.choice((3, 4, 5)), rules, joins=joins)
    for _ in range(3):
        for _ in range(chance.choice((20, 80, 200))):
            model.turn()
        model.calm(in_parts(chance, tuple(model.masters)))
    return model


def joined(seed: int, rules: Rules = CORRECT) -> Model:
    """Networks in which one master is dead and others are apart; at last all masters reach each other."""
    chance = random.Random(seed)
    model = Model(chance, chance.choice((3, 4, 5)), rules, joins=True, is_slow=True)
    names = (*model.masters,)
    for _ in range(2):
        model.calm(in_parts(chance, names), away=chance.choice(names))
        for own in chance.choices([*model.masters.values()], k=chance.randint(0, 3)):
            model.submit(own)
    model.calm(frozenset(map(frozenset, combinations(names, 2))))
    return model


def walks(seeds: range, rules: Rules = CORRECT, *, joins: bool = False) -> list[Model]:
    return [walked(seed, rules, joins=joins) for seed in seeds]


def in_parts(chance: random.Random, names: tuple[str, ...]) -> Graph:
    pairs = [frozenset(pair) for pair in combinations(names, 2)]
    while True:
        up = frozenset(chance.sample(pairs, chance.randint(0, len(pairs) - 1)))
        if len(parts_of(names, up)) > 1:
            return up


@pytest.mark.parametrize("joins", [False, True])
def test_every_master_goes_on_whatever_an_attacker_has_left(joins: bool) -> None:
    """If it failed, masters that were left with any missing masters at all would wait for each other for good."""
    models = walks(range(60), joins=joins)
    assert sum(model.rounds for model in models) > 1_600 and sum(model.splits for model in models) > 320


@pytest.mark.nightly
@pytest.mark.parametrize("joins", [False, True])
def test_every_master_goes_on_whatever_many_attackers_have_left(joins: bool) -> None:
    """The same, for as many as a night has time for."""
    walks(range(60, 3_060), joins=joins)


def test_masters_that_are_back_join_all_that_do_not_contradict_them() -> None:
    """If it failed, they would stay apart, join without end, or keep a transaction that a client was promised."""
    masters = [own for seed in range(20) for own in joined(seed).masters.values()]
    assert sum(own.joins for own in masters) > 30 and sum(bool(own.apart) for own in masters) > 20
    with pytest.raises(StoodStill, match="own transactions"):
        [joined(seed, Rules(adds_late=False)) for seed in range(20)]


@pytest.mark.nightly
def test_masters_that_are_back_ever_join_all_that_do_not_contradict_them() -> None:
    """The same, for as many as a night has time for."""
    for seed in range(40, 1_040):
        joined(seed)


@pytest.mark.parametrize(
    "wrong",
    [Rules(passes_differences=False), Rules(waits_for_no_updates=False), Rules(suspects_leavers=False)],
    ids=["a difference goes straight alone", "a part waits for updates", "leavers are not suspected"],
)
def test_without_one_of_the_rules_a_master_stands_still(wrong: Rules) -> None:
    """If it failed, the model would go on whatever the rules are."""
    with pytest.raises(StoodStill):
        walks(range(150), wrong)


def changed(seed: int, masters: int, strategy: str) -> Driver:
    """Networks that change under load, with crashes and recoveries that are cut short; then one stands still for long.

    Every master goes on with its part, or alone. It may lack updates of entries that a recovery brought it, if no
    master that it reaches has them.
    """
    driver = met(strategy, FIVE[:masters], 250, seed=seed)
    chance, names = driver.chance, [*driver.hosts]
    pairs = [frozenset(pair) for pair in combinations(names, 2)]
    for _ in range(chance.randint(1, 4)):
        only(driver, frozenset(chance.sample(pairs, chance.randint(0, len(pairs) - 1))))
        if chance.random() < 0.3:
            driver.cut.add(chance.choice([*permutations(names, 2)]))
        for _ in range(chance.randint(1, 6)):
            driver.submit(chance.choice(names))
            for _ in range(20):
                driver.turn_without_faults()
            driver.pass_ms(chance.choice((5, 20, 150, 700)))
        if chance.random() < 0.25:
            driver.crash(chance.choice(names))
        if chance.random() < 0.5:
            driver.separate()
            for _ in range(chance.randint(5, 200)):
                driver.turn_without_faults()
            driver.pass_ms(chance.choice((0, 0, 400)))
    up = in_parts(chance, tuple(names))
    only(driver, up)
    driver.pass_ms(3_500)
    before = {*driver.made}
    submit(driver, *names)
    driver.pass_ms(2_500)
    fresh = {ref.origin: number for number, ref in driver.made.items() if number not in before}
    for part in parts_of(names, up):
        journals = {name: driver.hosts[name].node.journal for name in sorted(part)}
        for name, journal in journals.items():
            status = driver.hosts[name].node.status()
            assert fresh[name] in ids(driver, name) and not journal.waiting(), (sorted(part), status)
            alike = [other for other in journals.values() if other.missing == journal.missing]
            assert len({(other.epoch, other.base) for other in alike}) == 1, (sorted(part), status)
            for ref in journal.synced[journal.executed :][:1]:
                assert not any(ref.id in other.updates for other in journals.values()), (sorted(part), status)
    return driver


def test_drawn_changes_have_what_makes_them_hard() -> None:
    """If it failed, the tests of drawn changes would say nothing of recoveries that are cut short, or of new parts."""
    turns = sum((changed(seed, 5, "smart").turns() for seed in range(12)), Counter[str]())
    for turn in (THAWED, SPLIT_GREW, RELAYED, CAUGHT_UP, LATE, recovered_by("smart")):
        assert turns[turn], turn


@examples.up_to(10)
@given(seed=st.integers(0, 1 << 32), masters=st.integers(3, 5), strategy=st.sampled_from(STRATEGIES))
# No master of a part has the updates of a missing one's transaction.
@example(seed=14, masters=5, strategy="smart")
# A difference that was due before a recovery, and is sent after it.
@example(seed=61, masters=4, strategy="simple")
def test_masters_go_on_after_changes_of_the_links(seed: int, masters: int, strategy: str) -> None:
    """If it failed, a part would stand still after some changes of the links, or have two orders."""
    driver = changed(seed, masters, strategy)
    driver.separate()
    healed(driver)


@pytest.mark.nightly
@examples.up_to(300)
@given(seed=st.integers(0, 1 << 32), masters=st.integers(3, 5), strategy=st.sampled_from(STRATEGIES))
def test_masters_ever_go_on_after_changes_of_the_links(seed: int, masters: int, strategy: str) -> None:
    """The same, for as many as a night has time for."""
    driver = changed(seed, masters, strategy)
    driver.separate()
    healed(driver)


def lagging(strategy: str) -> Driver:
    """n1 and n3 are one part, and n3 lags; n2 has gone on alone. Then n2 alone joins them. n4 is away."""
    driver = met(strategy, FOUR, 600)
    only(driver, graph("13"))
    submit(driver, *FOUR)
    driver.pass_ms(1_500)
    journals = {name: host.node.journal for name, host in driver.hosts.items()}
    assert [journals[name].missing for name in FOUR[:3]] == [("n2", "n4"), ("n1", "n3", "n4"), ("n2", "n4")]
    length = len(journals["n1"].synced)
    driver.submit("n3")
    while len(journals["n1"].updates) < length + 1:
        driver.pass_ms(1)
    driver.cut.add(("n1", "n3"))
    driver.pass_ms(200)
    assert len(journals["n1"].synced) > len(journals["n3"].synced), "nothing is tested"
    only(driver, graph("12", "23"))
    return driver


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_master_that_lags_gets_a_difference_over_another_part(strategy: str) -> None:
    """If it failed, two masters of one part that reach each other over a third one alone would stand still."""
    driver = lagging(strategy)
    driver.pass_ms(1_500)
    submit(driver, "n1", "n3", "n2")
    driver.pass_ms(1_500)
    journals = {name: host.node.journal for name, host in driver.hosts.items()}
    assert journals["n1"].missing == journals["n3"].missing == ("n2", "n4")
    assert ids(driver, "n1") == ids(driver, "n3")
    assert {journals["n1"].base, journals["n2"].base} == {"n3-1-4", "n2-1-3"}
    for name in FOUR[:3]:
        assert not journals[name].waiting() and journals[name].executed == len(journals[name].synced)
    driver.separate()
    healed(driver)


def test_a_master_that_is_asked_for_updates_gets_them_for_one_that_does_not_hear_all() -> None:
    """If it failed, updates would go no further than one link: a master between two parts would never pass them on."""
    driver = met("smart", FOUR, 0)
    acquiring = driver.hosts["n2"].node.acquiring
    acquiring.take("n3", 1, ["updates?", 0, ["n1-1-9"]])
    assert acquiring._lacking() == [], "n3 hears all masters, and asks the others"
    only(driver, graph("12", "23", "24"))
    driver.pass_ms(600)
    acquiring.take("n3", 1, ["updates?", 0, ["n1-1-9"]])
    assert acquiring._lacking() == ["n1-1-9"]
    acquiring.take("n1", 1, ["updates", 0, [["n1-1-9", []]]])
    assert acquiring._lacking() == []


@pytest.mark.parametrize("count", [1, pytest.param(80, id="more than requests ask for")])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_part_does_not_wait_for_updates_that_a_missing_master_has(strategy: str, count: int) -> None:
    """If it failed, transactions that a part knows by name alone would stop all of its rounds, or all its requests."""
    driver = met(strategy, FOUR[:3], 600)
    assert driver.hosts["n1"].node.journal._site.configuration.batch < 40, "two requests ask for all"
    driver.drain()
    driver.cut = {("n1", "n3"), ("n2", "n3")}  # n3 is asked for nothing
    for _ in range(count):
        driver.submit("n3")
    driver.pass_ms(200)
    driver.separate("n3")
    driver.pass_ms(1_500)
    for name in ("n1", "n2"):
        journal = driver.hosts[name].node.journal
        assert "n3-1-2" in journal.queued and "n3-1-2" not in journal.updates, "nothing is tested"
    submit(driver, "n1", "n2")
    driver.pass_ms(1_500)
    assert ids(driver, "n1")[-2:] == ids(driver, "n2")[-2:] == ["n1-1-2", "n2-1-2"]
    driver.separate()
    healed(driver)


def test_masters_that_thaw_go_on_without_one_that_stays_frozen() -> None:
    """If it failed, a master whose split time-out is 0 would stop the others after a death in a recovery: it is heard,
    and takes no part in rounds until the dead one is back."""
    driver = met("smart", FIVE, 600, own={"n4": {"split_ns": 0}})
    driver.separate("n1")
    submit(driver, *FIVE)
    driver.pass_ms(1_500)
    driver.separate()
    journals = {name: host.node.journal for name, host in driver.hosts.items()}
    while not journals["n1"].is_recovering:
        driver.turn_without_faults()
    driver.separate("n5")
    driver.pass_ms(4_000)
    assert not any(journal.epoch for journal in journals.values()), "nothing is tested"
    assert journals["n4"].is_recovering and not journals["n2"].is_recovering
    assert journals["n2"].missing == journals["n3"].missing == ("n1", "n4", "n5")
    submit(driver, "n2", "n3")
    driver.pass_ms(500)
    assert ids(driver, "n2")[-2:] == ids(driver, "n3")[-2:] == ["n2-1-3", "n3-1-3"]
    driver.separate()
    healed(driver)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_parts_that_a_new_link_joins_both_go_on_and_stay_two(strategy: str) -> None:
    """If it failed, docs/txlog.md would say something else: such parts have one order when all masters are back."""
    driver = met(strategy, FIVE, 600)
    only(driver, graph("12", "34", "45", "35"))
    submit(driver, *FIVE)
    driver.pass_ms(2_000)
    only(driver, graph("12", "34", "23", "41"))
    driver.pass_ms(2_000)
    submit(driver, *FOUR)
    driver.pass_ms(2_000)
    journals = {name: host.node.journal for name, host in driver.hosts.items()}
    for part, gone in (("n1", "n2"), ("n3", "n4", "n5")), (("n3", "n4"), ("n1", "n2", "n5")):
        assert {journals[name].missing for name in part} == {gone}
        assert ids(driver, part[0]) == ids(driver, part[1])
        assert all(journals[name].executed == len(journals[name].synced) for name in part)
        assert not any(journals[name].waiting() for name in part)
    assert ids(driver, "n1") != ids(driver, "n3")
    driver.separate()
    healed(driver)


def test_a_master_that_never_splits_holds_its_part_up() -> None:
    """If it failed, decision 45 would say something else: such a master waits for all that it counts."""
    driver = met("smart", FOUR, 600, own={"n2": {"split_ns": 0}})
    driver.separate("n4")
    submit(driver, *FOUR)
    driver.pass_ms(3_000)
    assert [driver.hosts[name].node.journal.missing for name in FOUR[:3]] == [(), (), ()]
    assert len(ids(driver, "n1")) == len(FOUR)
    driver.separate()
    healed(driver)


def test_a_master_with_a_new_strategy_leaves_no_master_out_after_a_thaw() -> None:
    """If it failed, masters with different strategies might leave each other out for good: it has not met all yet."""
    driver = met("smart", FIVE, 600)
    driver.separate("n1")
    submit(driver, "n1")
    driver.pass_ms(1_500)
    for strategy in ("simple", "smart"):
        driver.ask("n2", ["strategy", 1, strategy])
    driver.separate()
    journals = {name: host.node.journal for name, host in driver.hosts.items()}
    while not journals["n1"].is_recovering:
        driver.turn_without_faults()
    driver.separate("n5")
    driver.pass_ms(2_000)
    assert journals["n2"].is_changed and not any(journal.epoch for journal in journals.values())
    before = ids(driver, "n3")
    submit(driver, "n3", "n4")
    driver.pass_ms(3_000)
    assert not journals["n2"].is_recovering and journals["n2"].missing == ()
    assert ids(driver, "n3") == before
    driver.separate()
    healed(driver)
