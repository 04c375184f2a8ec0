"""Sessions between nodes, seen by n1: which calls it takes, and which messages."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.kernel.effects import Disconnect, Log, Send
from nodes.kernel.events import Received
from nodes.twophase.configuration import Configuration
from nodes.twophase.decisions import Decisions
from nodes.twophase.links import Links
from nodes.twophase.site import Site
from nodes.twophase.sometimes import RESENT
from tests.nodes.twophase.virtual_cluster import SERVERS


class Called:
    """The links of n1, one of three servers with the client c1 and one lane of transactions."""

    def __init__(self) -> None:
        configuration = Configuration(name="n1", role="server", baseline=SERVERS, clients=("c1",), lanes=1)
        self.site = Site(configuration, Decisions())
        self.site.begin(1)
        self.taken: list[str] = []
        self.links = Links(
            self.site,
            lambda peer, life, message: self.taken.append(message[0]),
            lambda peer, life, word, payload: self.taken.append(word),
            lambda: None,
            lambda marker: False,
        )

    def take(self, link: int, *message: Any) -> bool:
        """What `received` says; `out` then has the effects of this message alone."""
        self.site.out = []
        return self.links.received(Received(link, list(message)))

    @property
    def ended(self) -> list[int]:
        return [effect.link for effect in self.site.out if isinstance(effect, Disconnect)]

    @property
    def logged(self) -> list[str]:
        return [effect.message for effect in self.site.out if isinstance(effect, Log)]


@pytest.fixture
def called() -> Called:
    return Called()


@pytest.mark.parametrize(
    "hello",
    [("n9", 1, 0), ("n1", 1, 0), ("n2", 1, 2), ("n2", 1, -1), ("n2", "1", 0), ("n2", 1), (None, 1, 0), ()],
)
def test_a_call_of_a_stranger_is_refused(called: Called, hello: tuple[Any, ...]) -> None:
    """If it failed, a node that is not configured could vote, and its messages would be taken for those of a peer."""
    assert called.take(9, "hello", 0, *hello)
    assert (called.ended, called.logged) == ([9], ["refused a node that is not configured"])
    assert not called.take(9, "ping", 0), "it is a client, or nothing"


@pytest.mark.parametrize("peer", ["n2", "c1"])
@pytest.mark.parametrize("lane", [0, 1])
def test_a_call_of_a_configured_node_is_welcomed(called: Called, peer: str, lane: int) -> None:
    """If it failed, the test before would pass where all calls are refused."""
    assert called.take(9, "hello", 0, peer, 5, lane)
    assert called.site.out == [Send(9, ["welcome", 0, 1, 0])]


@pytest.mark.parametrize("message", [("x",), ("lock", 1), ("lock", "1", None), (7, 1, None)])
def test_a_message_without_word_number_and_marker_ends_its_link(
    called: Called, message: tuple[Any, ...]
) -> None:
    """If it failed, one malformed message would end the node."""
    called.take(9, "hello", 0, "n2", 5, 1)
    assert called.take(9, *message)
    assert called.ended == [9] and len(called.logged) == 1
    assert called.taken == []
    called.take(8, "hello", 0, "n2", 5, 1)
    called.take(8, "lock", 1, None)
    assert called.taken == ["lock"], "the session goes on over a new link"


@pytest.mark.parametrize(("life", "ended"), [(4, []), (5, [9]), (6, [9])])
def test_a_call_ends_the_links_of_this_life_and_of_earlier_ones(
    called: Called, life: int, ended: list[int]
) -> None:
    """If it failed, a late call of a dead life would end the link of the living one; or messages that the old link
    still holds would be taken beside those of the new one."""
    called.take(9, "hello", 0, "n2", 5, 1)
    called.take(8, "hello", 0, "n2", life, 1)
    assert called.ended == ended


def test_a_message_that_comes_again_is_taken_once(called: Called) -> None:
    """If it failed, a transaction would get one of its messages twice when its peer resends more than it has to."""
    for link in (9, 8):
        called.take(link, "hello", 0, "n2", 5, 1)
        called.take(link, "lock", 1, None)
    assert called.taken == ["lock"]


def test_a_life_that_has_left_is_neither_heard_nor_told(called: Called) -> None:
    """If it failed, a transaction could be prepared by a life of which all others know that it is gone; or messages
    for it would be kept for ever."""
    called.take(9, "hello", 0, "n2", 5, 1)
    called.links.forget("n2", 5)
    called.take(9, "lock", 1, None)
    assert called.taken == []
    called.links.send("n2", 5, "n1-1-1", "lock", [])
    called.links.start()
    called.links.connected(7, "n2")
    called.links.connected(6, "n2")
    called.take(6, "welcome", 0, 5, 0)
    assert called.site.out == []


def test_only_a_message_that_was_sent_before_is_sent_again(called: Called) -> None:
    """If it failed, a soak in which no message was ever sent again would report that some were: each message of which
    the link did not stand yet."""
    called.links.start()
    called.links.send("n2", 5, "n1-1-1", "lock", [])
    for first, resent in ((6, 0), (8, 1)):
        for link in (first, first + 1):
            called.links.connected(link, "n2")
            called.take(link, "welcome", 0, 5, 0)
        assert Send(first + 1, ["lock", 1, None]) in called.site.out
        assert called.site.sometimes.get(RESENT, 0) == resent
        for link in (first, first + 1):
            called.links.disconnected(link)
        for name in ("call n2 0", "call n2 1"):
            called.site.fired(name)
