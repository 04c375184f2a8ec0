"""Masters that come to a running cluster, masters that are not configured, and how often masters post."""

from __future__ import annotations

from typing import Any

import pytest

from harness.systems.txlog.options import TxLogOptions
from nodes.kernel.effects import Disconnect, Log, Send, SetTimer
from nodes.kernel.events import Instant, Received
from nodes.txlog.configuration import MILLISECOND
from nodes.txlog.links import ROUNDS, SILENT_NS
from tests.nodes.txlog.driver import MASTERS, Driver

BUSY_MS, IDLE_MS = 20, 500


def met(**settings: Any) -> Driver:
    """Masters that take submissions, and have nothing to synchronise."""
    driver = Driver(1, **settings)
    driver.pass_ms(1_200)
    return driver


def loaded(driver: Driver, turns: int) -> None:
    """Submissions among the other turns."""
    for number in range(turns):
        if number % 8 == 0:
            driver.submit(driver.chance.choice(MASTERS))
        driver.turn_without_faults()


def add_everywhere(driver: Driver, name: str, between: int) -> None:
    for master in MASTERS:
        driver.ask(master, ["add-peer", 1, name])
        loaded(driver, between)


@pytest.mark.parametrize(
    "is_early", [False, True], ids=["added before it starts", "started before it is added"]
)
@pytest.mark.parametrize("seed", range(4))
def test_a_master_joins_a_cluster_under_load(seed: int, is_early: bool) -> None:
    """If it failed, a new master would add what the others add in a different order, or stop them for good."""
    driver = Driver(seed)
    driver.pass_ms(1_200)
    loaded(driver, 300)
    if is_early:
        driver.add("n4")
        loaded(driver, 60)
    add_everywhere(driver, "n4", 60)
    if not is_early:
        driver.add("n4")
    loaded(driver, 300)
    driver.drain()
    driver.check_end()
    before = len(driver.made)
    driver.pass_ms(1_200)
    assert driver.hosts["n4"].node.journal.is_matched
    driver.submit("n4")
    driver.drain()
    driver.check_end()
    assert len(driver.made) == before + 1 > 50


def test_a_master_that_was_added_is_known_after_a_restart() -> None:
    driver = met()
    add_everywhere(driver, "n4", 5)
    driver.add("n4")
    driver.drain()
    for name in driver.hosts:
        driver.crash(name)
    driver.pass_ms(1_200)
    driver.submit("n4")
    driver.drain()
    assert all(host.node.journal.masters == ("n1", "n2", "n3", "n4") for host in driver.hosts.values())


def test_a_master_is_added_once() -> None:
    driver = met()
    answers: list[Any] = []
    driver.answered = answers.append
    for name in ("n2", "n1", "n4", "n4"):
        driver.ask("n1", ["add-peer", 1, name])
    driver.pass_ms(20)
    assert [answer[2]["type"] for answer in answers] == ["fail", "fail", "ok", "fail"]
    assert answers[0][2]["error"] == "illegal-parameters: n2 is a master of this cluster"


def test_no_master_is_added_during_a_split() -> None:
    """If it failed, a backup could be newer than what the new master has, and masters would go back too little."""
    driver = met(strategy="smart", split_ns=1_100 * MILLISECOND)
    answers: list[Any] = []
    driver.answered = answers.append
    driver.separate("n3")
    driver.submit("n1")
    driver.pass_ms(2_000)
    answers.clear()
    driver.ask("n1", ["add-peer", 1, "n4"])
    driver.pass_ms(20)
    assert [answer[2] for answer in answers] == [
        {"type": "fail", "error": "no master can be added during a split"}
    ]


def test_a_master_that_is_not_configured_is_refused() -> None:
    """If it failed, a stranger could put transactions into the log of a cluster."""
    driver = met()
    driver.add("n4")
    driver.pass_ms(1_000)
    driver.ask("n4", ["submit", 1, [["write", "register", 1, 1]], "accepted"])
    driver.submit("n1")
    driver.pass_ms(1_000)
    assert {host.node.journal.base for name, host in driver.hosts.items() if name != "n4"} == {"n1-1-1"}
    assert driver.hosts["n1"].node.status()["refused"] == ["n4"]
    assert not driver.hosts["n4"].node.journal.is_matched


def test_a_peer_whose_hello_is_malformed_is_told_apart() -> None:
    """If it failed, an operator would look for a missing entry in a configuration that has it."""
    logged: list[tuple[str, object]] = []
    driver = met()
    links = driver.hosts["n1"].node.links
    links._site.log = lambda words, level="info", **told: logged.append((words, told["peer"]))  # type: ignore[method-assign]
    assert links.received(99, ["hello", 0, "n2"])
    assert links.received(98, ["hello", 0, "n9", {}])
    assert logged == [
        ("refused a master whose hello is malformed", "n2"),
        ("refused a master that is not configured", "n9"),
    ]


@pytest.mark.parametrize(
    "word", ["post", "relayed", "difference", "digest", "updates?", "updates", "news", 7]
)
@pytest.mark.parametrize("fields", [(), (1,), (1,) * 30])
def test_a_message_of_another_length_is_told_and_dropped(word: object, fields: tuple[int, ...]) -> None:
    """If it failed, a master of another version would end all masters that it calls."""
    driver = met()
    node = driver.hosts["n1"].node
    node.site.out = []
    assert node.links.received(99, ["hello", 0, "n2", {}])
    if not (fields == (1,) and word in ("updates?", "updates")):
        assert node.links.received(99, [word, 0, *fields])
        (log,) = (effect for effect in node.site.out if isinstance(effect, Log))
        assert log.message.startswith("unknown message")
        assert log.fields == {"word": str(word), "fields": len(fields), "peer": "n2"}
    before = node.rounds.newest["n3"]
    node.links.received(99, ["relayed", 0, "n3", {}, list(fields)])
    assert node.rounds.newest["n3"] is before


def test_a_message_of_nothing_is_nothing() -> None:
    """If it failed, two bytes of a peer or a client would end the master."""
    driver = met()
    node = driver.hosts["n1"].node
    node.links.received(99, ["hello", 0, "n2", {}])
    for link in (99, 98):
        assert node.step(Received(link, []), Instant(driver.now_ns, driver.now_ns)) == []


def test_a_call_without_answers_is_given_up() -> None:
    """If it failed, a master would post for ever into a connection whose other end is silent."""
    driver = met()
    node = driver.hosts["n1"].node
    links, site = node.links, node.site
    (call,) = (call for call in links._calls if (call.peer, call.lane) == ("n2", ROUNDS))
    call.asked_ns = None
    for passed_ns, stands in ((0, True), (SILENT_NS, True), (SILENT_NS + 1, False)):
        site.now = Instant(driver.now_ns + passed_ns, 0)
        site.out = []
        link = call.link
        assert links.send("n2", ROUNDS, ["post", 0]) is stands
        assert [type(effect) for effect in site.out] == ([Send] if stands else [Disconnect, SetTimer])
    assert not links.send("n2", ROUNDS, ["post", 0])
    assert not links.disconnected(link), "the host says nothing of what the node ended itself"


def test_a_master_that_was_hung_up_on_is_heard_no_more() -> None:
    """If it failed, a POST that was sent to the strategy before would be taken, or answered as a client's request."""
    driver = met()
    node = driver.hosts["n1"].node
    node.links.received(99, ["hello", 0, "n2", {}])
    node.links.hang_up()
    node.site.out = []
    before = node.rounds.newest["n2"]
    node.step(Received(99, ["post", 0]), Instant(driver.now_ns, driver.now_ns))
    assert node.site.out == [] and node.rounds.newest["n2"] is before


def test_a_refused_master_that_posts_is_refused_no_more() -> None:
    """If it failed, an operator would look for what is wrong with a master that takes part."""
    driver = met()
    node = driver.hosts["n1"].node
    node.links.received(99, ["hello", 0, "n2"])
    assert node.status()["refused"] == ["n2"]
    driver.pass_ms(1_000)
    assert node.status()["refused"] == []


# ---- pace


def waits_ms(driver: Driver, name: str) -> float:
    """Until the next POST of the master."""
    return (driver.hosts[name].timers["round"] - driver.now_ns) / MILLISECOND


def posts_in(driver: Driver, milliseconds: int) -> int:
    before = driver.posts
    driver.pass_ms(milliseconds)
    return driver.posts - before


def test_idle_masters_become_busy_by_a_transaction_and_by_a_post() -> None:
    """If it failed, the first transaction after a quiet time would wait for idle rounds."""
    driver = met()
    assert max(waits_ms(driver, name) for name in MASTERS) > BUSY_MS
    driver.submit("n1")
    assert waits_ms(driver, "n1") <= BUSY_MS < waits_ms(driver, "n2")
    driver.pass_ms(2 * BUSY_MS)
    assert max(waits_ms(driver, name) for name in MASTERS) <= BUSY_MS


@pytest.mark.parametrize("idle_ms", [IDLE_MS, TxLogOptions().idle_ms])
def test_masters_are_idle_when_nothing_waits(idle_ms: float) -> None:
    """If it failed, a cluster without load would post without end, or not notice that a master is away."""
    driver = met(idle_ns=int(idle_ms * MILLISECOND))
    for _ in range(2):
        assert 4_000 / idle_ms * 3 * 2 - 6 <= posts_in(driver, 4_000) <= 4_000 / idle_ms * 3 * 2
        driver.submit("n1")
        driver.drain()
        driver.pass_ms(300)


def test_the_first_idle_round_makes_a_master_idle() -> None:
    """If it failed, a master would go on with busy rounds for a while, or for good."""
    driver = met()
    driver.submit("n1")
    driver.drain()
    bases = {host.node.journal.base for host in driver.hosts.values()}
    assert bases == {"n1-1-1"} and waits_ms(driver, "n1") <= BUSY_MS, "nothing is tested"
    driver.posts = 0
    driver.pass_ms(2 * BUSY_MS)
    assert driver.posts <= 2 * 3 * 2, "the round that was under way, and an idle one"
    assert min(waits_ms(driver, name) for name in MASTERS) > BUSY_MS


def test_parts_that_went_on_apart_are_idle() -> None:
    """If it failed, masters with different queues and no strategy would post without end."""
    driver = met(split_ns=1_100 * MILLISECOND)
    driver.separate("n3")
    for name in ("n1", "n3"):
        driver.submit(name)
    driver.pass_ms(2_000)
    driver.separate()
    driver.pass_ms(2_000)
    assert driver.hosts["n1"].node.journal.synced != driver.hosts["n3"].node.journal.synced
    assert posts_in(driver, 4_000) <= 4_000 / IDLE_MS * 3 * 2
