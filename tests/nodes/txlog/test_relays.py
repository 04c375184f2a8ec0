"""Networks in which not all masters are linked: a connected one acts like a full one, and parts are what is apart."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import combinations, permutations
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.txlog.configuration import MILLISECOND, Strategy
from nodes.txlog.node import TxLog
from nodes.txlog.posts import Post
from nodes.txlog.sometimes import RELAYED, SPLIT
from tests import examples
from tests.nodes.txlog.driver import Driver, Violated
from tests.nodes.txlog.part_rounds import Disagreed, Model, Rules, compared
from tests.nodes.txlog.test_splits import FIVE, healed, ids, submit

FOUR = FIVE[:4]
Link = frozenset[str]
Graph = frozenset[Link]
"""The links that stand."""


def graph(*links: str) -> Graph:
    """Of "12" for a link between n1 and n2."""
    return frozenset(frozenset({f"n{one}", f"n{other}"}) for one, other in links)


NETWORKS = {
    "ring": (FOUR, graph("12", "23", "34", "41")),
    "chain": (FIVE, graph("12", "23", "34", "45")),
    "one link between two sites": (FIVE, graph("12", "23", "34", "45", "35")),
    "star with a gap": (FIVE, graph("12", "13", "14", "45")),
}
"""Networks in which no master is linked to all others."""


def only(driver: Driver, up: Graph) -> None:
    """Let these links stand alone."""
    names = [*driver.hosts]
    driver.cut = {(one, other) for one, other in permutations(names, 2) if frozenset({one, other}) not in up}


def parts_of(names: Iterable[str], up: Graph) -> list[set[str]]:
    """The masters that reach each other, perhaps over others."""
    parts: list[set[str]] = []
    for name in names:
        joined = [
            part for part in parts if any(frozenset({name, other}) in up for other in part if other != name)
        ]
        parts = [part for part in parts if part not in joined] + [{name}.union(*joined)]
    return parts


def graphs(names: tuple[str, ...]) -> Iterator[Graph]:
    """All networks of these masters, one of each form."""
    pairs = [frozenset(pair) for pair in combinations(names, 2)]
    seen: set[Graph] = set()
    for count in range(len(pairs) + 1):
        for links in combinations(pairs, count):
            if frozenset(links) not in seen:
                yield frozenset(links)
                for order in permutations(names):
                    other = dict(zip(names, order, strict=True))
                    seen.add(frozenset(frozenset(other[name] for name in link) for link in links))


def met(strategy: str, names: tuple[str, ...], split_ms: int, seed: int = 1, **settings: Any) -> Driver:
    driver = Attacked(
        seed,
        names,
        strategy=strategy,
        split_ns=split_ms * MILLISECOND,
        max_peer_lag_ns=200 * MILLISECOND,
        idle_ns=100 * MILLISECOND,
        **settings,
    )
    driver.pass_ms(600)
    submit(driver, *names)
    return driver


class Attacked(Driver):
    """Masters that count each other agree on one log, whatever they leave out.

    Without a strategy a master that was left out counts again. Then of two masters whose rounds contradict each other,
    one has left the other out.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        self.left_out: dict[str, frozenset[str]] = {}
        self.adders: dict[tuple[int, int], dict[str, frozenset[str]]] = {}
        """Length and checksum of a queue → whose round put its last entry there, and whom that master left out."""
        super().__init__(*args, **settings)

    def _note(self, name: str, record: list[Any]) -> None:
        super()._note(name, record)
        match record:
            case ["split", missing, _]:
                self.left_out[name] = frozenset(missing)
            case ["rejoined" | "recovered", *_]:
                self.left_out[name] = frozenset()
            case ["added", index, refs, *_]:
                checksums = self.hosts[name].node.journal.checksums
                for length in range(index + 1, index + len(refs) + 1):
                    adders = self.adders.setdefault((length, checksums[length]), {})
                    adders[name] = self.left_out.get(name, frozenset())

    def crash(self, name: str, is_torn: bool = False) -> None:
        super().crash(name, is_torn)
        journal = self.hosts[name].node.journal
        self.left_out[name] = frozenset(journal.missing)
        for (length, checksum), adders in self.adders.items():
            if [*journal.checksums[length : length + 1]] != [checksum]:
                adders.pop(name, None)

    def check(self, name: str) -> None:
        super().check(name)
        own = self.hosts[name].node.journal
        for other, host in self.hosts.items():
            theirs = host.node.journal
            length = min(len(own.synced), len(theirs.synced))
            if theirs.epoch != own.epoch or own.checksums[length] == theirs.checksums[length]:
                continue
            if own.strategy == "none":
                self._check_rounds(own.checksums, theirs.checksums)
            elif name not in theirs.missing and other not in own.missing:
                raise Violated(f"{name} and {other} count each other, and have different entries")

    def _check_rounds(self, one: list[int], other: list[int]) -> None:
        places = zip(one, other, strict=False)
        length, pair = next((place, pair) for place, pair in enumerate(places) if pair[0] != pair[1])
        adders, others = (self.adders[length, checksum] for checksum in pair)
        for first, missing in adders.items():
            for second, gone in others.items():
                if first not in gone and second not in missing:
                    raise Violated(f"{first} and {second} added different entries as number {length}")


@pytest.mark.parametrize(
    ("strategy", "split_ms"),
    [
        ("none", 0),
        ("smart", 600),
        *(pytest.param(*pair, marks=pytest.mark.nightly) for pair in (("none", 600), ("smart", 0))),
    ],
)
@pytest.mark.parametrize("shape", NETWORKS)
def test_a_connected_network_goes_on_whole(shape: str, strategy: str, split_ms: int) -> None:
    """If it failed, a cluster in which every master reaches every other would stand still, or fall apart."""
    names, up = NETWORKS[shape]
    driver = met(strategy, names, split_ms)
    only(driver, up)
    driver.pass_ms(400)  # until the masters miss each other's POSTs
    for _ in range(3):
        submit(driver, *names)
    driver.pass_ms(1_500)
    assert driver.is_drained(), [host.node.status() for host in driver.hosts.values()]
    assert driver.turns()[RELAYED] and not driver.turns()[SPLIT]


@pytest.mark.parametrize("strategy", ["none", pytest.param("simple", marks=pytest.mark.nightly), "smart"])
def test_every_part_of_every_network_goes_on(strategy: str) -> None:
    """If it failed, a part would wait for masters that it cannot reach, or leave out one that it can reach over
    others. These are all networks of four masters."""
    for number, up in enumerate(graphs(FOUR)):
        driver = met(strategy, FOUR, 600, seed=number)
        only(driver, up)
        submit(driver, *FOUR)
        driver.pass_ms(2_200)
        before = {name: len(ids(driver, name)) for name in FOUR}
        submit(driver, *FOUR)
        driver.pass_ms(600)
        for part in parts_of(FOUR, up):
            assert len({driver.hosts[name].node.journal.base for name in part}) == 1, (up, part)
            for name in part:
                journal = driver.hosts[name].node.journal
                assert {*journal.missing} == {*FOUR} - part, (up, part, name)
                assert len(ids(driver, name)) >= before[name] + len(part), (up, part, name)
                assert journal.executed == len(journal.synced)
        driver.separate()
        healed(driver)
    assert number == 10


def test_nothing_is_passed_on_where_all_links_stand() -> None:
    """If it failed, every POST of a healthy cluster would cross it several times."""
    driver = met("smart", FOUR, 600)
    for _ in range(10):
        submit(driver, *FOUR)
    driver.drain()
    assert not driver.turns()[RELAYED]


def attacked(driver: Driver, rounds: int = 5) -> Driver:
    """Draw networks that change while masters submit, crash and split; the driver judges each step."""
    chance, names = driver.chance, [*driver.hosts]
    pairs = [frozenset(pair) for pair in combinations(names, 2)]
    for _ in range(rounds):
        only(driver, frozenset(chance.sample(pairs, chance.randint(0, len(pairs)))))
        if chance.random() < 0.4:
            driver.cut.add(chance.choice([*permutations(names, 2)]))
        for _ in range(chance.randint(1, 8)):
            driver.submit(chance.choice(names))
            for _ in range(20):
                driver.turn_without_faults()
            driver.pass_ms(chance.choice((5, 20, 150, 400)))
        if chance.random() < 0.2:
            driver.crash(chance.choice(names))
    driver.separate()
    return driver


def impatient(seed: int, masters: int, strategy: str) -> Driver:
    return met(strategy, FIVE[:masters], 250, seed=seed)


@examples.up_to(6)
@given(seed=st.integers(0, 1 << 32), masters=st.integers(3, 5), strategy=st.sampled_from(get_args(Strategy)))
def test_no_network_makes_masters_that_count_each_other_disagree(
    seed: int, masters: int, strategy: str
) -> None:
    """If it failed, one master would be counted in two parts that go on differently, or a part would have two logs."""
    healed(attacked(impatient(seed, masters, strategy)))


@pytest.mark.nightly
@examples.up_to(200)
@given(seed=st.integers(0, 1 << 32), masters=st.integers(3, 5), strategy=st.sampled_from(get_args(Strategy)))
def test_no_network_ever_makes_them_disagree(seed: int, masters: int, strategy: str) -> None:
    """The same, for as many as a night has time for."""
    healed(attacked(impatient(seed, masters, strategy)))


@examples.up_to(4)
@given(seed=st.integers(0, 1 << 32), masters=st.integers(3, 5))
def test_without_a_time_out_no_network_splits(seed: int, masters: int) -> None:
    """If it failed, a POST that comes over others would make a queue that is no prefix of all transactions."""
    driver = attacked(met("smart", FIVE[:masters], 0, seed=seed))
    assert not driver.turns()[SPLIT]
    healed(driver)


def modelled(seeds: range, rules: Rules, turns: int = 250, *, joins: bool = False) -> tuple[int, int]:
    """Attacks on the model: how many pairs of masters had gone on in one part, and how many entries parts added."""
    pairs = entries = 0
    for seed in seeds:
        model = Model(random.Random(seed), 3, rules, joins=joins)
        for _ in range(turns):
            model.turn()
        pairs += compared(model.masters)
        entries += model.rounds
    return pairs, entries


@pytest.mark.parametrize("joins", [False, True])
def test_no_attacker_makes_masters_that_count_each_other_disagree(joins: bool) -> None:
    """If it failed, the rule of the parts would rest on what masters hear, or when: the attacker decides that."""
    pairs, entries = modelled(range(150), Rules(), joins=joins)
    assert pairs > 20 and entries > 800, "nothing is tested"


@pytest.mark.nightly
@pytest.mark.parametrize("joins", [False, True])
def test_no_attacker_of_many_makes_them_disagree(joins: bool) -> None:
    """The same, for as many as a night has time for."""
    modelled(range(150, 15_000), Rules(), joins=joins)


@pytest.mark.parametrize(
    "wrong", [Rules(has_one_part=False), Rules(needs_all=False)], ids=["any part", "some"]
)
def test_an_attacker_breaks_a_weaker_rule(wrong: Rules) -> None:
    """If it failed, the model would agree whatever a part counts: another part's POSTs, or only some masters."""
    with pytest.raises(Disagreed):
        modelled(range(400), wrong)


@pytest.mark.parametrize("wrong", [Rules(forgets_posts=False), Rules(forgets_counters=False)])
def test_an_attacker_breaks_joins_that_count_what_was_posted_before(wrong: Rules) -> None:
    """If it failed, the model would agree whatever masters count that have joined."""
    with pytest.raises(Disagreed):
        modelled(range(600, 1_600), wrong, 400, joins=True)


def test_an_older_post_that_came_over_others_is_dropped() -> None:
    """If it failed, what a master said before a split, or of a branch that is gone, would replace what it says now."""
    driver = met("smart", FOUR, 600)
    only(driver, graph("12", "23", "34", "41"))
    driver.pass_ms(1_000)
    node: TxLog = driver.hosts["n1"].node
    before = node.rounds.newest["n3"]
    old = Post.from_fields(before.to_message()[2:])
    assert old == before
    driver.pass_ms(300)
    now = node.rounds.newest["n3"]
    assert now.number > old.number
    node._take("n2", 1, ["relayed", 0, "n3", {}, old.to_message()[2:]])
    assert node.rounds.newest["n3"] == now


def test_a_new_strategy_is_met_straight_alone() -> None:
    """If it failed, an old POST that is on its way over others would make masters with different strategies leave each
    other out, and no recovery could join them."""
    driver = met("smart", FOUR, 600)
    only(driver, graph("12", "23", "34", "41"))
    driver.pass_ms(1_000)
    for name in FOUR:
        driver.ask(name, ["strategy", 1, "simple"])
    driver.pass_ms(1_500)
    assert not any(host.node.journal.is_matched for host in driver.hosts.values())
    driver.separate()
    driver.pass_ms(1_500)
    assert all(host.node.journal.is_matched for host in driver.hosts.values())
    healed(driver)


@pytest.mark.parametrize("strategy", ["simple", "smart"])
@pytest.mark.parametrize("masters", [3, 5])
def test_masters_go_on_beside_one_that_left_them_out(masters: int, strategy: str) -> None:
    """If it failed, a majority that was idle while one master split off would stand still for as long as they hear it:
    it is not silent, and takes no part."""
    names = FIVE[:masters]
    driver = met(strategy, names, 600)
    driver.pass_ms(500)
    first, *others, dead = names

    def away(*gone: str) -> None:
        driver.cut = {(one, other) for one, other in permutations(names, 2) if one in gone or other in gone}

    away(dead)
    submit(driver, first, *others)
    driver.pass_ms(2_500)
    away(first, dead)
    submit(driver, first)
    driver.pass_ms(1_000)
    away(dead)
    synced = {name: len(driver.hosts[name].node.journal.synced) for name in others}
    for _ in range(4):
        submit(driver, first, *others)
        driver.pass_ms(1_000)
    for name in others:
        journal = driver.hosts[name].node.journal
        assert len(journal.synced) > synced[name] and not journal.queue, name
    driver.separate()
    healed(driver)
