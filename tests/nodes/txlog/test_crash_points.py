"""One scripted life of a cluster, with a split and a recovery; a master crashes at one record, at each in turn."""

from __future__ import annotations

from typing import Literal, get_args

import pytest

from nodes.txlog.configuration import MILLISECOND
from tests.nodes.txlog.driver import Driver, Violated
from tests.nodes.txlog.test_splits import healed

Fate = Literal["lost", "torn", "written"]
"""Of the record at which the master crashes."""
FATES: tuple[Fate, ...] = get_args(Fate)
STRATEGIES = ("simple", "smart")


class CrashesOnce(Driver):
    """`point`: the record, of all masters' ones, at which its master crashes."""

    point = 0
    fate: Fate = "lost"
    records = 0

    def persist(self, name: str) -> None:
        self.records += 1
        if self.records != self.point:
            super().persist(name)
        elif self.fate == "written":
            super().persist(name)
            self.crash(name)
        else:
            self.crash(name, is_torn=self.fate == "torn")


class Hasty(CrashesOnce):
    is_hasty = True


def lived(
    strategy: str, point: int, fate: Fate, *bugs: str, kind: type[CrashesOnce] = CrashesOnce
) -> CrashesOnce:
    """Three masters: one is split off, both parts take transactions and execute them, and the parts meet again."""
    driver = kind(
        1,
        strategy=strategy,
        split_ns=220 * MILLISECOND,
        idle_ns=100 * MILLISECOND,
        max_peer_lag_ns=50 * MILLISECOND,
        bugs=bugs,
    )
    driver.point, driver.fate = point, fate
    driver.pass_ms(300)
    _submit(driver, "n1", "n3")
    driver.separate("n3")
    _submit(driver, "n1", "n3")
    driver.pass_ms(450)
    _submit(driver, "n2", "n3")
    driver.pass_ms(100)
    driver.separate()
    _submit(driver, "n1")
    driver.pass_ms(150)
    _submit(driver, "n2")
    healed(driver)
    return driver


def _submit(driver: Driver, *names: str) -> None:
    for name in names:
        driver.submit(name)
    driver.pass_ms(40)


@pytest.mark.parametrize(
    "is_quick", [True, pytest.param(False, marks=pytest.mark.long)], ids=["some records", "all records"]
)
def test_a_crash_at_any_record_loses_nothing(is_quick: bool) -> None:
    """If it failed, a message would leave before the record on which it rests, or a start would forget some."""
    whole = [lived(strategy, 0, "lost") for strategy in STRATEGIES]
    for driver in whole:
        assert len(driver.accepted) == 8 and {host.node.journal.epoch for host in driver.hosts.values()} == {
            1
        }
    every = 5 if is_quick else 1
    for point in range(1, max(driver.records for driver in whole) + 1, every):
        lived(STRATEGIES[point % len(STRATEGIES)], point, FATES[point % len(FATES)])


@pytest.mark.parametrize(
    "bug", ["queue-not-kept", "restore-keeps-index", ""], ids=["queue", "index", "hasty"]
)
def test_what_a_crash_takes_is_seen(bug: str) -> None:
    """If it failed, the test above would pass whatever a master keeps, and whenever its messages leave."""
    for point in range(1, 60):
        try:
            lived("simple", point, "lost", *filter(None, [bug]), kind=CrashesOnce if bug else Hasty)
        except Violated:
            return
    raise AssertionError(f"no crash has shown {bug or 'a message that leaves too early'}")


@pytest.mark.nightly
@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_crash_at_any_record_in_any_way_loses_nothing(strategy: str, fate: Fate) -> None:
    """The same, for each fate of each record, and each strategy."""
    for point in range(1, lived(strategy, 0, "lost").records + 1):
        lived(strategy, point, fate)
