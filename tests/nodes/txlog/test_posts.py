"""What masters tell each other in a round, and what travels apart from the rounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from nodes.txlog.configuration import MILLISECOND, Configuration
from nodes.txlog.posts import Post
from tests.nodes.txlog.driver import MASTERS, Driver


class Overheard(Driver):
    """Keeps every message of a master to a master: (source, target, message), in the order of sending."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        self.sent: list[tuple[str, str, list[Any]]] = []
        super().__init__(*args, **settings)

    def _push(self, link: int, source: str, item: tuple[str, Any]) -> None:
        super()._push(link, source, item)
        if item[0] == "message":
            target = next(end for end in self.links[link].ends if end != source)
            self.sent.append((source, target, item[1]))

    def posts_of(self, source: str) -> list[tuple[str, Post]]:
        return [
            (target, Post.from_fields(message[2:]))
            for sender, target, message in self.sent
            if sender == source and message[0] == "post"
        ]


def overheard() -> Overheard:
    """One transaction of n1 is made and posted, and synchronised everywhere."""
    driver = Overheard(1)
    driver.pass_ms(1_200)
    driver.sent.clear()
    driver.ask("n1", ["submit", 1, [["write", "register", "k", "a-long-value"]], "accepted"])
    driver.pass_ms(300)
    assert driver.is_drained()
    return driver


def test_a_post_to_all_masters_has_base_counter_and_incoming_queue() -> None:
    """If it failed, a master would lack something by which rounds agree, or one master would not hear of a round."""
    posts = overheard().posts_of("n1")
    first = [(target, post) for target, post in posts if post.queue][:2]
    assert sorted(target for target, _ in first) == ["n2", "n3"]
    for _, post in first:
        assert (post.base, post.index) == ("", 0)
        (ref,) = post.queue
        assert (ref.id, ref.origin) == ("n1-1-1", "n1")
        assert post.counter >= ref.ts > 0
    assert (posts[-1][1].base, posts[-1][1].index) == ("n1-1-1", 1)


def test_updates_travel_apart_and_are_here_before_a_master_posts_the_transaction() -> None:
    """If it failed, a large update would hold up rounds, or a master would agree on what it cannot execute."""
    driver = overheard()
    with_updates = [(target, message) for _, target, message in driver.sent if "a-long-value" in str(message)]
    assert {message[0] for _, message in with_updates} == {"updates"}
    assert {target for target, _ in with_updates} == {"n2", "n3"}
    for name in ("n2", "n3"):
        got = next(
            place
            for place, (_, target, message) in enumerate(driver.sent)
            if target == name and message[0] == "updates"
        )
        posted = next(
            place
            for place, (source, _, message) in enumerate(driver.sent)
            if source == name and message[0] == "post" and "n1-1-1" in str(message)
        )
        assert got < posted


def test_a_master_takes_a_post_before_it_has_posted_itself() -> None:
    """If it failed, a master that is early in a round would have to post again."""
    driver = Overheard(1)
    driver.pass_ms(1_200)
    driver.sent.clear()
    driver.submit("n1")
    while not driver.hosts["n2"].node.journal.queue:
        driver.turn_without_faults()
    assert driver.posts_of("n2") == []
    driver.pass_ms(300)
    assert driver.is_drained() and driver.hosts["n2"].node.journal.base == "n1-1-1"


def test_a_master_that_lags_gets_the_entries_behind_its_base() -> None:
    """If it failed, a master that missed some rounds would stay behind, or get its whole log again."""
    driver = overheard()
    driver.cut = {("n1", "n3"), ("n2", "n3")}
    driver.submit("n1")
    driver.submit("n3")
    driver.pass_ms(100)
    driver.separate("n3")
    driver.pass_ms(500)
    assert [len(driver.hosts[name].node.journal.synced) for name in MASTERS] == [2, 2, 1]
    driver.sent.clear()
    driver.separate()
    driver.pass_ms(1_000)
    assert driver.is_drained()
    differences = [
        message for _, target, message in driver.sent if (message[0], target) == ("difference", "n3")
    ]
    base, index, _, refs = differences[0][5:]
    assert (base, index, [number for _, number, _ in refs][:1]) == ("n1-1-1", 1, ["n1-1-2"])
    assert "n1-1-1" not in str(refs)


def test_a_master_is_helped_when_it_has_posted_an_old_base_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, each POST that is a round behind would cost a difference."""
    driver = overheard()
    _, old = driver.posts_of("n3")[-1]
    driver.submit("n1")
    driver.drain()
    node = driver.hosts["n1"].node
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(node.links, "send", lambda peer, lane, message: sent.append((peer, message[0])))
    node.rounds.take("n3", old)
    assert sent == []
    node.rounds.take("n3", old)
    assert sent == [("n3", "difference")]


def test_parts_that_meet_again_report_different_bases() -> None:
    """If it failed, masters would not notice that their queues differ."""
    driver = Overheard(1, strategy="smart", split_ns=1_100 * MILLISECOND)
    driver.pass_ms(1_200)
    driver.separate("n3")
    driver.submit("n1")
    driver.submit("n3")
    driver.pass_ms(2_000)
    driver.sent.clear()
    driver.separate()
    driver.pass_ms(600)
    first = {source: driver.posts_of(source)[0][1] for source in MASTERS}
    assert {source: post.base for source, post in first.items()} == {
        "n1": "n1-1-1",
        "n2": "n1-1-1",
        "n3": "n3-1-1",
    }


@pytest.mark.parametrize("wrong", [{"base": ""}, {"index": 0}, {"checksum": 0}])
def test_a_post_for_a_different_queue_counts_in_no_round(wrong: dict[str, Any]) -> None:
    """If it failed, queues that contradict each other, and have one base, would be taken for the same."""
    driver = overheard()
    _, post = driver.posts_of("n2")[-1]
    rounds = driver.hosts["n1"].node.rounds
    assert rounds.has_own_base(post)
    assert not rounds.has_own_base(replace(post, **wrong))


class Withholding(Driver):
    """`n2` gets the updates of n3's transactions when `is_over`, and their names before."""

    is_over = False

    def _ways(self) -> Iterator[tuple[int, str]]:
        for link, target in super()._ways():
            _, message = self.links[link].queues[target][0]
            is_held = target == "n2" and message and message[0] == "updates" and "n3-1-" in str(message)
            if self.is_over or not is_held:
                yield link, target


def _after_add() -> tuple[Withholding, list[str]]:
    """The example of the design: n1 has made A and B, n2 has made C, and n3 D and E, whose updates n2 lacks."""
    driver = Withholding(1)
    driver.pass_ms(1_200)
    driver.submit("n1")
    driver.submit("n1")
    driver.submit("n2")
    while driver.hosts["n3"].node.journal.counter < 2:
        driver.turn_without_faults()
    driver.submit("n3")
    driver.submit("n3")
    own = [
        [ref.id for ref in host.node.journal.queue if ref.origin == name]
        for name, host in driver.hosts.items()
    ]
    assert own == [["n1-1-1", "n1-1-2"], ["n2-1-1"], ["n3-1-1", "n3-1-2"]]
    assert not any(host.node.journal.synced for host in driver.hosts.values())
    driver.pass_ms(200)
    names = [ref.id for ref in sorted(driver.made.values())]
    journals = {name: host.node.journal for name, host in driver.hosts.items()}
    assert names[3:] == ["n3-1-1", "n3-1-2"] and journals["n2"].counter >= max(driver.made.values()).ts
    assert names[3] in journals["n1"].updates and names[3] not in journals["n2"].updates
    return driver, names


def test_a_round_adds_the_longest_common_prefix() -> None:
    """If it failed, masters would add transactions which a different master cannot execute yet."""
    driver, names = _after_add()
    for host in driver.hosts.values():
        assert [ref.id for ref in host.node.journal.synced] == names[:3]
        assert [ref.id for ref in host.node.journal.queue] == names[3:]
    driver.submit("n1")
    driver.submit("n2")
    driver.pass_ms(200)
    names = [ref.id for ref in sorted(driver.made.values())]
    for host in driver.hosts.values():
        assert [ref.id for ref in host.node.journal.synced] == names[:3], "F and G wait behind D and E"
        assert [ref.id for ref in host.node.journal.queue] == names[3:]
    driver.is_over = True
    driver.drain()
    assert [ref.id for ref in driver.hosts["n2"].node.journal.synced] == names


def test_a_round_that_takes_the_whole_own_queue_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, the test above would pass whatever the other masters have posted."""
    monkeypatch.setattr("nodes.txlog.rounds.common_length", lambda own, _: len(own))
    driver, names = _after_add()
    assert [ref.id for ref in driver.hosts["n1"].node.journal.synced] == names


def test_busy_masters_post_by_a_timer() -> None:
    """If it failed, docs/seeds.md would say something else: in the design busy rounds follow each other at once."""
    driver, _ = _after_add()
    before = driver.posts
    driver.pass_ms(1_000)
    assert len(MASTERS) * 2 * 49 <= driver.posts - before <= len(MASTERS) * 2 * 51, "one every 20 ms"


@pytest.mark.parametrize(
    ("masters", "name", "words"),
    [((*MASTERS, "n1"), "n1", "expected every master once"), (MASTERS, "n9", "expected a master named 'n9'")],
)
def test_a_master_has_one_name_of_its_own(masters: tuple[str, ...], name: str, words: str) -> None:
    """If it failed, two masters would make transactions with the same ids."""
    with pytest.raises(ValueError, match=words):
        Configuration(name=name, masters=masters)
