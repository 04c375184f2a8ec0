"""Clusters that are split, and what each strategy makes of it when the parts meet again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nodes.txlog.configuration import MILLISECOND
from nodes.txlog.recovery import winner_of
from nodes.txlog.refs import Ref
from nodes.txlog.sometimes import RESTORED, RESTORED_IN_SPLIT, SPLIT_GREW
from nodes.txlog.splits import branch_is_followed
from tests import examples
from tests.nodes.txlog.driver import Driver, Violated

FIVE = ("n1", "n2", "n3", "n4", "n5")
MINORITY = ("n4", "n5")
SPLIT_MS, LAG_MS = 1_200, 1_500
SLOW = {"backup_ns": 300 * MILLISECOND, "worker_loss": 20}
"""Workers that end, and restores that take longer than a split."""


def met(strategy: str, *bugs: str, masters: tuple[str, ...] = FIVE, seed: int = 1, **settings: Any) -> Driver:
    """A cluster in which everything is synchronised and executed."""
    driver = Driver(
        seed,
        masters,
        strategy=strategy,
        split_ns=SPLIT_MS * MILLISECOND,
        max_peer_lag_ns=LAG_MS * MILLISECOND,
        bugs=bugs,
        **settings,
    )
    driver.pass_ms(1_200)
    submit(driver, *masters)
    driver.drain()
    return driver


def submit(driver: Driver, *names: str) -> None:
    for name in names:
        driver.submit(name)
        driver.pass_ms(25)


def split(driver: Driver) -> None:
    """Both parts are split, and have synchronised transactions of their own; the lag is not over."""
    driver.separate(*MINORITY)
    submit(driver, *FIVE)
    driver.pass_ms(SPLIT_MS + 300)
    submit(driver, "n4", "n1")
    driver.pass_ms(200)


def ids(driver: Driver, name: str) -> list[str]:
    return [ref.id for ref in driver.hosts[name].node.journal.synced]


def modes(driver: Driver) -> dict[str, object]:
    return {name: host.node.status()["mode"] for name, host in driver.hosts.items()}


def healed(driver: Driver) -> None:
    """All masters have one queue with every transaction once, in order, and one state. Without a strategy, those have
    one queue whose queues do not contradict each other."""
    if next(iter(driver.hosts.values())).node.journal.strategy == "none":
        _together(driver)
        return
    driver.drain()
    driver.check_end()
    for name, host in driver.hosts.items():
        synced = host.node.journal.synced
        if len({ref.id for ref in synced}) < len(synced) or {ref.id for ref in synced} != driver.made.keys():
            raise Violated(f"{name} has {synced}, made were {sorted(driver.made)}")
        if sorted((ref.ts, ref.id) for ref in synced) != [(ref.ts, ref.id) for ref in synced]:
            raise Violated(f"{name} is out of order: {synced}")
        if host.node.journal.state.index != len(synced):
            raise Violated(f"{name} has executed {host.node.journal.state.index} of {len(synced)}")


def _together(driver: Driver) -> None:
    """All masters go on, with those whose queues do not contradict their own."""
    driver.pass_ms(3_000)
    before = {*driver.made}
    joins = [host.node.journal.joins for host in driver.hosts.values()]
    submit(driver, *driver.hosts)
    driver.pass_ms(2_000)
    fresh = {ref.origin: number for number, ref in driver.made.items() if number not in before}
    journals = {name: host.node.journal for name, host in driver.hosts.items()}
    assert [own.joins for own in journals.values()] == joins
    for name, own in journals.items():
        status = driver.hosts[name].node.status()
        assert not any(ref.origin == name for ref in own.queue), status
        assert fresh[name] in ids(driver, name) and not own.waiting(), status
        assert own.executed == len(own.synced), status
        alike = {other for other, theirs in journals.items() if theirs.synced == own.synced}
        assert {*own.missing} == journals.keys() - alike, (name, own.missing, alike)


def test_without_a_time_out_a_part_of_the_cluster_adds_nothing() -> None:
    """If it failed, queues would diverge whenever a link is down."""
    driver = Driver(1, FIVE)
    driver.pass_ms(1_200)
    submit(driver, *FIVE)
    driver.drain()
    driver.separate(*MINORITY)
    submit(driver, *FIVE)
    driver.pass_ms(3_000)
    assert {len(ids(driver, name)) for name in FIVE} == {5}
    driver.drain()
    driver.check_end()


def test_with_one_link_down_the_cluster_goes_on() -> None:
    """If it failed, the failure of one connection would stop all masters; updates take the way over the third one."""
    driver = Driver(1)
    driver.pass_ms(1_200)
    driver.cut = {("n1", "n2"), ("n2", "n1")}
    submit(driver, "n1", "n2", "n3")
    driver.pass_ms(2_000)
    assert driver.is_drained()


@pytest.mark.parametrize("strategy", ["simple", "smart"])
def test_a_split_cluster_waits_before_it_executes(strategy: str) -> None:
    """If it failed, a short split would cost what executed transactions cost to undo."""
    driver = met(strategy)
    before = {name: len(done) for name, done in driver.executed.items()}
    split(driver)
    assert set(modes(driver).values()) == {"split"}
    assert all(len(ids(driver, name)) > 5 for name in FIVE)
    assert ids(driver, "n1") != ids(driver, "n4")
    assert {name: len(done) for name, done in driver.executed.items()} == before
    backups = [host.node.journal.backup for host in driver.hosts.values()]
    assert all(backup is not None and 0 < backup.index <= 5 for backup in backups), backups
    driver.pass_ms(LAG_MS)
    assert all(len(done) > before[name] for name, done in driver.executed.items())
    hashes = {name: host.node.status()["hash"] for name, host in driver.hosts.items()}
    assert hashes["n1"] != hashes["n4"], "clients of the two parts see different data"


def test_without_a_strategy_a_split_has_no_backup_and_no_delay() -> None:
    """If it failed, masters that should take no action would stand still, or go back later."""
    driver = met("none")
    split(driver)
    for host in driver.hosts.values():
        status = host.node.status()
        assert (status["mode"], status["strategy"]) == ("split", "none")
        assert status["executed"] == status["synchronised"] and len(host.node.journal.synced) > 5
        assert host.node.journal.backup is None


@pytest.mark.parametrize("strategy", ["simple", "smart"])
@pytest.mark.parametrize("is_late", [False, True], ids=["before the lag is over", "after"])
def test_parts_that_meet_again_have_one_log(strategy: str, is_late: bool) -> None:
    """If it failed, masters would stay different, or lose what one part had accepted."""
    driver = met(strategy)
    split(driver)
    if is_late:
        driver.pass_ms(LAG_MS + 300)
    driver.separate()
    submit(driver, "n2")
    healed(driver)
    assert set(modes(driver).values()) == {"normal"}
    assert {host.node.status()["epoch"] for host in driver.hosts.values()} == {1}
    submit(driver, *FIVE)
    healed(driver)


def test_smart_keeps_the_log_of_the_majority() -> None:
    """If it failed, the part with more masters would have to execute anew."""
    driver = met("smart")
    split(driver)
    driver.pass_ms(LAG_MS + 300)
    of_majority, done = ids(driver, "n1"), list(driver.executed["n1"])
    assert len(done) == len(of_majority)
    driver.separate()
    healed(driver)
    assert ids(driver, "n4")[: len(of_majority)] == of_majority
    assert driver.executed["n1"][: len(done)] == done
    assert len(driver.executed["n1"]) == len(driver.made)


def test_simple_takes_all_masters_back() -> None:
    """If it failed, the part with more masters would keep its branch, as it does with `smart`."""
    driver = met("simple")
    split(driver)
    driver.pass_ms(LAG_MS + 300)
    of_majority, done = ids(driver, "n1"), list(driver.executed["n1"])
    assert len(done) == len(of_majority) > 5, "nothing is tested"
    driver.separate()
    healed(driver)
    assert driver.executed["n1"][: len(done)] == done
    assert {*driver.executed["n1"][len(done) :]} >= {*of_majority[5:]}, "it executes them a second time"
    assert ids(driver, "n1")[: len(of_majority)] != of_majority, "and in a different place"
    assert driver.turns()[RESTORED] == len(FIVE)


def test_of_branches_with_as_many_supporters_the_longer_one_wins() -> None:
    """If it failed, the master with the smaller id would win, and more entries than needed would be made anew."""
    refs = [Ref(ts, f"n1-1-{ts}", "n1") for ts in range(1, 8)]
    assert winner_of({"n1": refs[:2], "n2": refs[2:]}) == "n2"
    assert winner_of({"n1": refs[:3], "n2": refs[3:6]}) == "n1", "equally long"
    assert winner_of({"n1": refs[:2], "n2": refs[:2], "n3": refs[2:]}) == "n1", "more supporters"


@pytest.mark.parametrize("strategy", ["simple", "smart"])
def test_a_backup_is_no_newer_than_the_queue_of_a_master_that_lags(strategy: str) -> None:
    """If it failed, a master that fell behind before the split would refuse all digests, and no recovery would end."""
    driver = met(strategy)
    driver.cut = {(name, "n5") for name in FIVE[:-1]}
    driver.submit("n1")
    driver.submit("n5")
    driver.pass_ms(100)
    driver.separate("n5")
    driver.pass_ms(500)
    assert len(ids(driver, "n5")) < len(ids(driver, "n1")) == len(driver.executed["n1"])
    driver.pass_ms(SPLIT_MS)
    assert set(modes(driver).values()) == {"split"}
    healed(driver)


def test_a_master_that_restores_has_the_whole_log() -> None:
    """If it failed, docs/seeds.md would say something else: in the design such a master reports an older base."""
    driver = met("smart", backup_ns=2_600 * MILLISECOND)
    split(driver)
    driver.pass_ms(LAG_MS + 3_000)
    driver.separate()
    journals = {name: host.node.journal for name, host in driver.hosts.items()}
    while not all(journal.epoch for journal in journals.values()):
        driver.pass_ms(1)
    assert journals["n4"].is_restoring and not journals["n1"].is_restoring
    assert journals["n4"].synced == journals["n1"].synced
    assert journals["n4"].executed < journals["n1"].executed
    healed(driver)


def test_without_a_strategy_queues_stay_different() -> None:
    """If it failed, the documented loss of agreement would be hidden, or masters that agree would stay apart."""
    driver = met("none")
    split(driver)
    of_majority, of_minority = ids(driver, "n1"), ids(driver, "n4")
    assert of_majority != of_minority
    driver.separate()
    driver.pass_ms(3_000)
    assert ids(driver, "n1")[: len(of_majority)] == of_majority
    assert ids(driver, "n4")[: len(of_minority)] == of_minority


@pytest.mark.parametrize("longer", ["n1", "n4"])
def test_without_a_strategy_a_master_returns_to_its_part(longer: str) -> None:
    """If it failed, POSTs from before the split, which a healed link brings first, would take a master out of its part,
    and both would stand still: it would wait for masters that leave it out."""
    driver = met("none", masters=("n1", "n2", "n3", "n4"), idle_ns=100 * MILLISECOND)
    driver.separate("n3", "n4")
    submit(driver, "n1", "n2", "n3", "n4")
    driver.pass_ms(SPLIT_MS + 300)
    submit(driver, "n1", "n4", *[longer] * 4)
    for link, found in [*driver.links.items()]:
        if "n1" in found.ends and not {"n3", "n4"}.isdisjoint(found.ends) and found.queues["n1"]:
            driver.deliver(link, "n1")
    driver.pass_ms(150)
    assert modes(driver)["n1"] == "normal", "nothing is tested"
    driver.cut = {pair for pair in driver.cut if "n1" not in pair}
    driver.pass_ms(1_500)
    submit(driver, "n1", "n2")
    driver.pass_ms(1_500)
    for name in ("n1", "n2"):
        status = driver.hosts[name].node.status()
        assert (status["waiting"], status["missing"]) == (0, ["n3", "n4"]), status
        assert status["executed"] == status["synchronised"]
    assert ids(driver, "n1") == ids(driver, "n2")


def test_without_a_strategy_masters_with_the_shorter_log_do_not_wait_for_the_longer_one() -> None:
    """If it failed, they would take it for a part of the cluster that is ahead, and add nothing ever again."""
    driver = met("none", masters=FIVE[:3])
    journals = {name: host.node.journal for name, host in driver.hosts.items()}
    driver.cut = {("n3", "n1"), ("n3", "n2")}
    driver.submit("n2")
    driver.submit("n3")
    _pass_until(driver, lambda: "n2-1-2" in journals["n1"].updates)
    driver.cut = {("n2", "n1"), ("n3", "n1")}
    _pass_until(driver, lambda: journals["n2"].last["n1"] == journals["n3"].last["n1"] == 4)
    driver.separate("n1")
    driver.pass_ms(SPLIT_MS + 600)
    submit(driver, "n1", "n1", "n1")
    assert modes(driver) == {"n1": "split", "n2": "normal", "n3": "normal"}
    assert "n3-1-2" not in ids(driver, "n1") and ids(driver, "n2")[3:] == ["n2-1-2", "n3-1-2"]
    driver.separate()
    driver.pass_ms(3_000)
    submit(driver, "n2")
    driver.pass_ms(1_000)
    assert "n2-1-3" in ids(driver, "n2") and "n2-1-3" in ids(driver, "n3")


def test_a_master_that_has_not_split_yet_takes_no_part_in_a_split() -> None:
    """If it failed, a master would add without a missing one, beside another that hears that one again."""
    driver = met("smart", masters=FIVE[:3])
    journals = {name: host.node.journal for name, host in driver.hosts.items()}
    first, second = "n1", "n3"
    driver.separate("n2")
    submit(driver, first)
    driver.pass_ms(SPLIT_MS - 200)
    driver.cut |= {(first, second)}
    _pass_until(driver, lambda: bool(journals[first].missing))
    assert journals[first].missing == ("n2",) and not journals[second].missing
    before = ids(driver, first)
    driver.separate(first)
    submit(driver, first, first)
    driver.pass_ms(100)
    assert ids(driver, first) == before
    driver.separate("n2")
    driver.pass_ms(300)
    assert len(ids(driver, first)) == len(before) + 3
    driver.separate()
    healed(driver)


def _pass_until(driver: Driver, holds: Callable[[], bool]) -> None:
    for _ in range(400):
        if holds():
            return
        driver.pass_ms(1)
    raise AssertionError("it did not come about")


def test_without_a_strategy_a_master_that_added_nothing_comes_back() -> None:
    driver = met("none")
    driver.separate("n5")
    submit(driver, "n1", "n2")
    driver.pass_ms(SPLIT_MS + 600)
    assert modes(driver)["n1"] == "split" and len(ids(driver, "n1")) == 7
    driver.separate()
    driver.drain()
    driver.pass_ms(1_200)
    assert set(modes(driver).values()) == {"normal"}


@pytest.mark.parametrize("strategy", ["simple", "smart"])
def test_masters_of_one_part_have_one_log(strategy: str) -> None:
    """If it failed, a transaction of a missing master, known to one master of a part alone, would make that one differ
    from the rest of its part: no counter of the missing master bounds a round without the others."""
    masters, patience_ms = ("n1", "n2", "n3", "n4"), 400
    driver = Driver(
        1, masters, strategy=strategy, split_ns=patience_ms * MILLISECOND, idle_ns=100 * MILLISECOND
    )
    driver.pass_ms(1_200)
    driver.separate("n3", "n4")
    driver.cut -= {("n1", "n4")}
    submit(driver, "n1", "n3")
    driver.cut |= {("n1", "n4")}  # n4 knows the first transaction, and lacks its updates; n3 does not know it
    while not ids(driver, "n3"):
        driver.pass_ms(1)
    driver.cut |= {("n3", "n4"), ("n4", "n3")}
    for target in ("n1", "n4"):
        for link, found in [*driver.links.items()]:
            asked = found.queues.get(target, ())
            if found.ends == ("n4", "n1") and any("updates" in str(message) for _, message in asked):
                driver.deliver(link, target)
                driver.persist(target) if driver.hosts[target].unsynced else None
    assert len(driver.hosts["n4"].node.journal.updates) == 2, "nothing is tested"
    driver.pass_ms(200)
    assert driver.hosts["n4"].node.journal.missing == ("n1", "n2")
    assert ids(driver, "n3")[: len(ids(driver, "n4"))] == ids(driver, "n4")
    healed(driver)


@pytest.mark.parametrize("strategy", [pytest.param("simple", marks=pytest.mark.long), "smart"])
@examples.up_to(1)
@given(seed=st.integers(0, 1 << 32))
@example(seed=9)  # a missing master's transaction reaches the others' queues after the split
@example(seed=2)
# A POST that tells of the split is lost with its link, and a difference of the other part arrives.
@example(seed=3872)
def test_random_splits_end_in_one_log(strategy: str, seed: int) -> None:
    """If it failed, some order of splits and crashes would leave masters different, or lose a transaction."""
    _random_splits(strategy, seed)


def _random_splits(strategy: str, seed: int) -> Driver:
    driver = _short_of_patience(strategy, seed, 3)
    for _ in range(4):
        driver.run(700)
        driver.separate(driver.chance.choice(sorted(driver.hosts)))
        driver.run(700)
    healed(driver)
    return driver


@pytest.mark.parametrize("strategy", ["simple", "smart"])
@examples.up_to(1)
@given(seed=st.integers(0, 1 << 32), masters=st.integers(2, 5))
# One has finished its recovery, and is split off again, while the other needs its digest.
@example(seed=84, masters=2)
def test_random_partitions_end_in_one_log(strategy: str, seed: int, masters: int) -> None:
    """The same, for parts of all shapes, and for clusters of all sizes."""
    _random_partitions(strategy, seed, masters)


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", ["simple", "smart"])
@examples.up_to(150)
@given(seed=st.integers(0, 1 << 32), masters=st.integers(2, 5))
def test_many_random_partitions_end_in_one_log(strategy: str, seed: int, masters: int) -> None:
    """The same, for as many as a night has time for."""
    _random_partitions(strategy, seed, masters, **SLOW)


def test_without_a_strategy_a_part_goes_on() -> None:
    """The same as the next one, for parts that are apart before all masters have met."""
    _no_part_stands_still(14, 3)


@pytest.mark.long
@examples.up_to(2)
@given(seed=st.integers(0, 1 << 32), masters=st.integers(3, 5))
@example(seed=15, masters=4)  # a master takes itself for one that lags, and its queue contradicts all others
@example(seed=4, masters=4)  # queues that contradict each other end with the same entry
def test_without_a_strategy_no_part_stands_still(seed: int, masters: int) -> None:
    """If it failed, a master whose queue differs would stop the others of its part, or wait for them for good."""
    _no_part_stands_still(seed, masters)


@pytest.mark.nightly
@examples.up_to(100)
@given(seed=st.integers(0, 1 << 32), masters=st.integers(3, 5))
def test_without_a_strategy_no_part_ever_stands_still(seed: int, masters: int) -> None:
    """The same, for as many as a night has time for."""
    _no_part_stands_still(seed, masters)


def _no_part_stands_still(seed: int, masters: int) -> None:
    driver = _short_of_patience("none", seed, masters)
    driver.pass_ms(2_000)
    assert all(host.node.journal.is_matched for host in driver.hosts.values())
    for _ in range(4):
        driver.run(250 * masters)
        driver.partition()
        driver.run(250 * masters)
    driver.separate()
    driver.pass_ms(2_000)
    before = {*driver.made}
    submit(driver, *driver.hosts)
    driver.pass_ms(2_000)
    fresh = [ref for number, ref in driver.made.items() if number not in before]
    assert len(fresh) == masters
    for name, host in driver.hosts.items():
        journal = host.node.journal
        assert not journal.waiting() and journal.executed == len(journal.synced), host.node.status()
        assert {ref.id for ref in fresh if ref.origin == name} <= {*ids(driver, name)}


def _random_partitions(strategy: str, seed: int, masters: int, **settings: int) -> None:
    driver = _short_of_patience(strategy, seed, masters, **settings)
    for _ in range(4):
        driver.run(250 * masters)
        driver.partition()
        driver.run(250 * masters)
    healed(driver)


def _short_of_patience(strategy: str, seed: int, masters: int, **settings: int) -> Driver:
    return Driver(
        seed,
        FIVE[:masters],
        strategy=strategy,
        split_ns=250 * MILLISECOND,
        idle_ns=100 * MILLISECOND,
        max_peer_lag_ns=200 * MILLISECOND,
        **settings,
    )


def test_random_splits_have_recoveries() -> None:
    """If it failed, the tests above would say nothing of them."""
    epochs = [_random_splits("smart", seed).hosts["n1"].node.journal.epoch for seed in (3, 15)]
    assert all(epochs), epochs


def test_a_master_that_crashes_in_a_recovery_takes_part_again() -> None:
    """If it failed, a crash at a bad moment would leave a master in an epoch of its own."""
    for step in range(0, 12, 4):
        driver = met("smart", seed=step)
        split(driver)
        driver.separate()
        until_ns = driver.now_ns + step * 4 * MILLISECOND
        while driver.now_ns < until_ns:
            driver.turn_without_faults()
        driver.crash("n4")
        driver.pass_ms(300)
        driver.crash("n1")
        healed(driver)


@pytest.mark.parametrize("strategy", ["none", "simple"])
def test_a_split_lasts_until_the_other_part_is_heard_again(strategy: str) -> None:
    """If it failed, a recovery would begin with what was heard before the split, and stop the part until its end."""
    driver = Driver(1, strategy=strategy, split_ns=1_010 * MILLISECOND)
    driver.pass_ms(1_200)
    driver.separate("n3")
    driver.submit("n1")
    seen = []
    for _ in range(100):
        driver.pass_ms(20)
        seen.append(driver.hosts["n1"].node.status()["mode"])
    assert seen[-1] == "split" and set(seen[seen.index("split") :]) == {"split"}, seen


@pytest.mark.parametrize("is_done", [False, True], ids=["restored after it", "restored in it"])
@pytest.mark.parametrize("strategy", ["simple", "smart"])
def test_a_split_during_a_restore(strategy: str, is_done: bool) -> None:
    """If it failed, a master would execute on a state that was to be undone, or lose the backup that undoes it."""
    driver = met(strategy, backup_ns=2_600 * MILLISECOND)
    split(driver)
    driver.pass_ms(2_500)
    driver.separate()
    for _ in range(100):
        if not all(host.node.journal.epoch for host in driver.hosts.values()):
            driver.pass_ms(20)
    assert driver.hosts["n4"].node.journal.is_restoring
    split(driver)
    assert modes(driver)["n4"] == "split" and driver.hosts["n4"].node.journal.is_restoring
    if is_done:
        driver.pass_ms(900)
        assert driver.turns()[RESTORED_IN_SPLIT] >= 1
    driver.crash("n4")
    healed(driver)
    assert driver.hosts["n4"].node.journal.backup is None


@pytest.mark.parametrize("strategy", ["simple", "smart"])
def test_a_split_that_grows(strategy: str) -> None:
    """If it failed, a part that falls apart would stand still until its end."""
    driver = met(strategy)
    driver.separate("n5")
    submit(driver, "n1")
    driver.pass_ms(SPLIT_MS + 300)
    driver.cut |= {(one, other) for one in FIVE for other in FIVE if "n4" in (one, other)}
    submit(driver, "n1", "n4")
    driver.pass_ms(SPLIT_MS + 800)
    assert driver.hosts["n1"].node.status()["missing"] == ["n4", "n5"]
    assert driver.hosts["n4"].node.status()["missing"] == ["n1", "n2", "n3", "n5"]
    assert len(ids(driver, "n1")) == 7
    assert driver.turns()[SPLIT_GREW] >= 3
    healed(driver)


def test_the_strategy_is_fixed_during_a_split() -> None:
    driver = met("simple")
    split(driver)
    answers: list[Any] = []
    driver.answered = answers.append
    driver.ask("n1", ["strategy", 1, "smart"])
    assert answers[0][2]["type"] == "fail"
    assert driver.hosts["n1"].node.journal.strategy == "simple"


def test_masters_with_different_strategies_refuse_each_other() -> None:
    """If it failed, one master would go back to the last common entry, and another one keep its branch."""
    driver = met("simple")
    answers: list[Any] = []
    driver.answered = answers.append
    driver.ask("n1", ["strategy", 1, "smart"])
    driver.pass_ms(600)
    assert answers[0][2]["type"] == "ok"
    assert driver.hosts["n1"].node.status()["refused"] == ["n2", "n3", "n4", "n5"]
    assert driver.hosts["n2"].node.status()["refused"] == ["n1"]


@pytest.mark.parametrize(
    ("bug", "strategy"),
    [
        ("rejoin-with-duplicates", "simple"),
        ("losers-dropped", "smart"),
        ("restore-keeps-index", "simple"),
        ("partial-vote", "smart"),
        ("shortest-is-common", "simple"),
        ("shortest-is-common", "smart"),
    ],
)
def test_a_seeded_bug_of_recovery_is_seen(bug: str, strategy: str) -> None:
    """If it failed, the tests above would pass whatever a recovery does."""
    for seed in range(4):
        driver = met(strategy, bug, seed=seed)
        split(driver)
        driver.pass_ms(LAG_MS + 300)
        driver.separate()
        try:
            healed(driver)
        except Violated:
            return
    raise AssertionError(f"four recoveries have shown nothing of {bug}")


def test_the_seeded_bug_of_the_lag_is_seen() -> None:
    driver = met("simple", "no-lag-window")
    before = {name: len(done) for name, done in driver.executed.items()}
    split(driver)
    assert {name: len(done) for name, done in driver.executed.items()} != before


@pytest.mark.parametrize("pace_ms", [20, 60, 110])
def test_without_a_strategy_a_master_that_two_branches_begin_with_follows_one(pace_ms: int) -> None:
    """If it failed, both branches would count it and leave it out in turn, and join without end; nobody would add."""
    driver = met("none", masters=FIVE[:3], own={"n1": {"busy_ns": pace_ms * MILLISECOND}})
    driver.cut = {*permutations(FIVE[:3], 2)}
    submit(driver, "n2", "n3")
    driver.pass_ms(2_500)
    driver.separate()
    healed(driver)
    journals = [host.node.journal for host in driver.hosts.values()]
    assert [journal.joins for journal in journals] == [1] * 3
    assert {*journals[0].missing} in ({"n2"}, {"n3"})


@pytest.mark.parametrize(
    ("sides", "others", "missing", "follows"),
    [
        ("", "", "", True),
        ("1", "2", "", True),
        ("2", "1", "", False),
        ("2", "1 5", "5", True),
        ("1 5", "2", "5", False),
        ("2 6", "1 5", "5 6", False),
        ("1 5", "2 6", "5 6", True),
        ("2 6", "5", "5 6", True),
        ("6", "1 5", "5 6", False),
    ],
)
def test_a_master_that_has_chosen_a_branch_stays_with_it(
    sides: str, others: str, missing: str, follows: bool
) -> None:
    """If the choice changed, a master would leave out a part of each branch, and wait for the rest of both."""
    pairs = {(side, other) for side in sides.split() for other in others.split()}
    assert branch_is_followed(pairs, {*missing.split()}) is follows


@pytest.mark.parametrize("forks", [True, False])
def test_without_a_strategy_a_late_transaction_of_a_master_that_is_back_is_added(forks: bool) -> None:
    """If this failed, a client's accepted transaction would wait for a recovery that never comes."""
    driver = met("none", masters=FIVE[:3])
    driver.cut = {*permutations(FIVE[:3], 2)} if forks else {("n1", "n2"), ("n1", "n3")}
    if not forks:
        driver.separate("n1")
    submit(driver, "n2", "n3", "n2", "n3")
    driver.pass_ms(SPLIT_MS + 800)
    before = {*driver.made}
    driver.submit("n1")
    (late,) = driver.made.keys() - before
    driver.separate()
    _pass_until(driver, lambda: bool(driver.hosts["n1"].node.journal.joins))
    if not forks:
        driver.separate("n3")
    driver.pass_ms(3_000)
    assert late in ids(driver, "n1") and late in ids(driver, "n2")
    driver.separate()
    healed(driver)
