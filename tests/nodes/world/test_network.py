"""What connections promise, and what cuts, slowness, holds, deaths and resets do to them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.world.network import CONNECT_TIMEOUT_NS, MILLISECOND, PACKET_BYTES, Codec
from nodes.world.shaping import Shaping
from tests.nodes.world.ears import Lines, Party

BOTH = (("a", "b"), ("b", "a"))
CODECS = pytest.mark.parametrize("codec", [None, Lines()], ids=["typed", "bytes"])

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from("ab")),
        st.tuples(st.just("cut"), st.sampled_from((BOTH[:1], BOTH[1:], BOTH))),
        st.tuples(st.just("heal"), st.integers(0, 3)),
        st.tuples(st.just("slow"), st.integers(0, 30)),
        st.tuples(st.just("hold"), st.sampled_from("ab")),
        st.tuples(st.just("release"), st.sampled_from("ab")),
        st.tuples(st.just("wait"), st.integers(0, 40)),
    ),
    max_size=50,
)


@given(steps=STEPS, seed=st.integers(0, 9), in_bytes=st.booleans())
def test_a_living_connection_is_first_in_first_out_and_drops_nothing(
    steps: list[tuple[str, object]], seed: int, in_bytes: bool
) -> None:
    """Broken, the world does what no byte stream does, and every alarm that follows is false."""
    party = Party(seed, codec=Lines() if in_bytes else None)
    link = party.connected("a", "b")
    sent: dict[str, list[object]] = {"a": [], "b": []}
    cuts: list[tuple[tuple[str, str], ...]] = []
    for number, (step, what) in enumerate(steps):
        match step, what:
            case "send", str(source):
                party.send(link, source, number)
                sent[source].append(number)
            case "cut", tuple(pairs):
                party.network.cut(pairs)
                cuts.append(pairs)
            case "heal", int(which) if cuts:
                party.network.heal(cuts.pop(which % len(cuts)), party.chance)
            case "slow", int(delay):
                party.network.shape(
                    BOTH[:1], Shaping(delay_ns=delay * MILLISECOND, jitter_ns=delay * MILLISECOND // 2)
                )
            case "hold", str(target):
                party.network.hold(target, "int")
            case "release", str(target):
                party.network.release(target, "int")
            case "wait", int(milliseconds):
                party.run(milliseconds)
    while cuts:
        party.network.heal(cuts.pop(), party.chance)
    for target in "ab":
        party.network.release(target, "int")
    party.run(3_000)
    was_reset = any("reset" in word for word in party.ears["a"].words(link))
    assert was_reset == any("reset" in word for word in party.ears["b"].words(link))
    for source, target in BOTH:
        got = party.ears[target].messages(link)
        assert got == sent[source][: len(got)]
        assert was_reset or got == sent[source]


@CODECS
@pytest.mark.parametrize("pairs", [BOTH, BOTH[:1], BOTH[1:]], ids=["both ways", "a to b", "b to a"])
def test_a_cut_is_silent(pairs: tuple[tuple[str, str], ...], codec: Codec | None) -> None:
    """Broken, an end learns of a cut, or the direction that is not cut stops too."""
    party = Party(1, codec=codec)
    link = party.connected("a", "b")
    party.network.cut(pairs)
    party.send(link, "a", 1)
    party.send(link, "b", 2)
    party.run(10_000)
    assert party.ears["b"].messages(link) == ([] if BOTH[0] in pairs else [1])
    assert party.ears["a"].messages(link) == ([] if BOTH[1] in pairs else [2])
    assert party.ears["a"].words(link) == ["connected"]
    assert party.ears["b"].words(link) == ["accepted"]
    for pair in pairs:
        effect = party.network.take_effects([pair])[pair]
        assert effect.withheld == 1 and effect.longest_withheld_ns > 9_900 * MILLISECOND


@CODECS
def test_after_a_cut_what_was_held_goes_on_or_the_connection_is_reset(codec: Codec | None) -> None:
    """Broken, healing is always kind, or always cruel."""
    ends: set[tuple[str, ...]] = set()
    for seed in range(12):
        party = Party(seed, codec=codec)
        link = party.connected("a", "b")
        party.network.cut(BOTH)
        party.send(link, "a", 1, 2, 3)
        party.run(100)
        resets = party.network.heal(BOTH, random.Random(seed))
        party.send(link, "a", 4)
        party.run(100)
        if resets:
            assert party.ears["b"].messages(link) == []
            assert party.ears["b"].words(link) == ["accepted", "ended: reset after a cut"]
            assert party.ears["a"].words(link) == ["connected", "ended: reset after a cut"]
        else:
            assert party.ears["b"].messages(link) == [1, 2, 3, 4]
        ends.add(tuple(party.ears["b"].words(link)))
    assert len(ends) == 2


def test_two_cuts_of_one_pair() -> None:
    """Broken, healing one fault heals another, or a reset comes through a direction that is still cut."""
    for seed in range(8):
        party = Party(seed)
        link = party.connected("a", "b")
        party.network.cut(BOTH)
        party.network.cut(BOTH[1:])
        party.send(link, "a", 1)
        party.send(link, "b", 2)
        party.run(100)
        assert party.network.take_effects(BOTH)[BOTH[1]].withheld == 1
        assert party.network.heal(BOTH, random.Random(seed)) == 0
        party.run(100)
        party.send(link, "b", 3)
        party.run(100)
        assert party.ears["b"].messages(link) == [1] and party.ears["a"].messages(link) == []
        assert party.ears["a"].words(link) == ["connected"]
        assert party.network.take_effects(BOTH[1:])[BOTH[1]].withheld >= 1
        if not party.network.heal(BOTH[1:], random.Random(seed)):
            party.run(100)
            assert party.ears["a"].messages(link) == [2, 3]


def test_a_connection_begun_under_a_cut_stands_when_it_is_healed() -> None:
    """Broken, a partition that heals within the time for connecting leaves both ends waiting."""
    party = Party(3)
    party.network.cut(BOTH)
    link = party.network.connect(party.ears["a"], "b")
    party.run(500)
    assert party.ears["a"].heard == party.ears["b"].heard == []
    assert party.network.heal(BOTH, random.Random(2)) == 0, "this seed lets it go on"
    party.run(100)
    assert party.ears["a"].words(link) == ["connected"]


def test_nobody_waits_for_a_greeting_for_ever() -> None:
    """Broken, a node that connects to a silent peer never tries again."""
    party = Party(3)
    party.network.cut(BOTH)
    link = party.network.connect(party.ears["a"], "b")
    party.run(CONNECT_TIMEOUT_NS / MILLISECOND + 1)
    assert party.ears["a"].heard == [(link, "failed: no greeting in time")]
    party.network.heal(BOTH, random.Random(1))
    party.run(100)
    assert len(party.ears["a"].heard) == 1


@CODECS
def test_hold_stops_before_the_next_message_of_a_class(codec: Codec | None) -> None:
    """Broken, a schedule that holds an acknowledgement holds something else, or lets it slip through."""
    party = Party(5, ("a", "b", "c"), codec)
    link, other = party.connected("a", "b"), party.connected("a", "c")
    party.network.hold("b", "int")
    party.send(link, "a", 123456, 7)
    party.send(other, "a", 1)
    party.send(link, "b", 2)
    party.run(1_000)
    assert party.ears["b"].messages(link) == []
    assert party.ears["c"].messages(other) == [1] and party.ears["a"].messages(link) == [2]
    party.network.release("b", "int")
    party.run(10)
    assert party.ears["b"].messages(link) == [123456, 7]


def test_a_release_lets_nothing_through_a_cut() -> None:
    """Broken, a fault's evidence says that it withheld nothing for long."""
    party = Party(5)
    link = party.connected("a", "b")
    party.network.cut(BOTH)
    party.network.hold("b", "int")
    party.send(link, "a", 1)
    party.run(600)
    party.network.release("b", "int")
    party.run(600)
    assert party.ears["b"].messages(link) == []
    effect = party.network.take_effects(BOTH)[BOTH[0]]
    assert effect.withheld == 1 and effect.longest_withheld_ns > 1_100 * MILLISECOND


def test_a_slow_link_keeps_the_order() -> None:
    """Broken, jitter turns a byte stream into datagrams."""
    party = Party(2)
    link = party.connected("a", "b")
    shaping = Shaping(delay_ns=20 * MILLISECOND, jitter_ns=20 * MILLISECOND)
    party.network.shape(BOTH[:1], shaping)
    for number in range(30):
        party.send(link, "a", number)
        party.run(1)
    assert len(party.ears["b"].messages(link)) < 30
    party.network.unshape(BOTH[:1], shaping)
    party.run(100)
    assert party.ears["b"].messages(link) == list(range(30))
    assert shaping.delayed == 30


def test_messages_overtake_only_those_of_other_connections() -> None:
    """Broken, reordering corrupts a stream, or nothing is ever out of order."""
    party = Party(2)
    links = [party.connected("a", "b"), party.connected("a", "b")]
    shaping = Shaping(delay_ns=50 * MILLISECOND, percent=30)
    party.network.shape(BOTH[:1], shaping)
    for number in range(40):
        party.send(links[number % 2], "a", number)
        party.run(1)
    party.run(100)
    for place, link in enumerate(links):
        assert party.ears["b"].messages(link) == list(range(place, 40, 2))
    assert 0 < shaping.delayed < 40
    assert shaping.overtook > 0


def test_each_shaping_counts_its_own_effect() -> None:
    """Broken, a fault that did nothing took effect because another one of its link did."""
    party = Party(2)
    links = [party.connected("a", "b"), party.connected("a", "b")]
    reorder, idle = (Shaping(delay_ns=50 * MILLISECOND, percent=percent) for percent in (30, 0))
    narrow, wide = (Shaping(bytes_per_s=rate * PACKET_BYTES) for rate in (400, 10**9))
    jitter = Shaping(delay_ns=MILLISECOND, jitter_ns=MILLISECOND)
    shapings = (reorder, idle, narrow, wide, jitter)
    for shaping in shapings:
        party.network.shape(BOTH[:1], shaping)
    for number in range(40):
        party.send(links[number % 2], "a", number)
        party.run(1)
    party.run(500)
    assert 0 < reorder.delayed < 40 and reorder.overtook > 0
    assert narrow.delayed == 40 and narrow.queued > 0
    assert 0 < jitter.delayed <= 40
    for shaping in (idle, wide):
        assert (shaping.delayed, shaping.overtook, shaping.queued) == (0, 0, 0)
    for shaping in shapings:
        party.network.unshape(BOTH[:1], shaping)


def test_what_comes_faster_than_the_rate_waits() -> None:
    """Broken, a bandwidth that was asked for limits nothing, or loses what comes too fast."""
    party = Party(2)
    link = party.connected("a", "b")
    shaping = Shaping(bytes_per_s=100 * 2 * PACKET_BYTES)
    party.network.shape(BOTH[:1], shaping)
    party.send(link, "a", *range(20))
    party.run(101)
    assert 8 <= len(party.ears["b"].messages(link)) <= 10
    party.network.unshape(BOTH[:1], shaping)
    party.run(200)
    assert party.ears["b"].messages(link) == list(range(20))
    assert shaping.queued == 19
    assert 180 * MILLISECOND <= shaping.longest_queued_ns <= 190 * MILLISECOND


def test_what_was_sent_before_the_end_arrives_before_it() -> None:
    """Broken, an answer sent just before a clean stop, or by a process just killed, is lost."""
    party = Party(4)
    link = party.connected("a", "b")
    party.send(link, "b", 1, 2)
    party.network.process_died(party.ears["b"], silently=False)
    party.send(link, "a", 3)
    party.run(50)
    assert [what for _, what in party.ears["a"].heard] == ["connected", 1, 2, "ended: end of stream"]
    assert party.ears["b"].words(link) == ["accepted"], "the dead hear nothing"


def test_after_a_power_loss_peers_hear_nothing_until_they_speak() -> None:
    """Broken, a machine without power says goodbye, or its peers wait on a dead connection after it is back."""
    party = Party(4)
    link = party.connected("a", "b")
    up = False
    party.network.is_up = lambda name: name != "b" or up
    party.send(link, "b", 1)
    party.network.process_died(party.ears["b"], silently=True)
    party.send(link, "a", 2)
    party.run(5_000)
    assert party.ears["a"].words(link) == ["connected"] and party.ears["a"].messages(link) == []
    up = True
    party.run(5_000)
    assert party.ears["a"].words(link) == ["connected"]
    party.send(link, "a", 3)
    party.run(50)
    assert party.ears["a"].words(link) == ["connected", "ended: connection reset by peer"]
    assert party.ears["b"].words(link) == ["accepted"]


@pytest.mark.parametrize("is_dark", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("has_begun", [True, False])
def test_a_connection_of_the_dead_is_forgotten(is_dark: tuple[bool, bool], has_begun: bool) -> None:
    """Broken, each death in a long run leaves connections, and every later fault looks at all of them."""
    party = Party(4)
    if has_begun:
        party.connected("a", "b")
    else:
        party.network.connect(party.ears["a"], "b")
    party.network.is_up = lambda name: False
    for end, silently in zip("ab", is_dark, strict=True):
        party.network.process_died(party.ears[end], silently=silently)
    party.run(50)
    assert not party.network._connections


def test_a_kill_says_no_goodbye_for_a_life_that_lost_its_power() -> None:
    """Broken, a power loss is told to peers after all, as soon as the next process is killed."""
    party = Party(4)
    link = party.connected("a", "b")
    party.network.process_died(party.ears["b"], silently=True)
    party.network.process_died(party.ears["b"], silently=False)
    party.run(50)
    assert party.ears["a"].words(link) == ["connected"]


def test_a_process_that_is_down_refuses() -> None:
    """Broken, clients wait for a dead process instead of hearing at once that nothing was sent."""
    party = Party(4)
    party.network.is_up = lambda name: name != "b"
    link = party.network.connect(party.ears["a"], "b")
    party.run(50)
    assert party.ears["a"].words(link) == ["failed: connection refused"]


@pytest.mark.parametrize("silently", [True, False], ids=["power", "kill"])
@pytest.mark.parametrize("what", ["refused", "no greeting"])
def test_who_died_hears_nothing_of_a_connection_it_had_begun(silently: bool, what: str) -> None:
    """Broken, the next life of a process is told of connections that it knows nothing of, and breaks."""
    party = Party(4)
    party.network.cut(BOTH)
    party.network.connect(party.ears["a"], "b")
    party.run(10)
    party.network.process_died(party.ears["a"], silently=silently)
    if what == "refused":
        party.network.is_up = lambda name: name != "b"
        party.network.heal(BOTH, random.Random(1))
    party.run(5_000)
    assert party.ears["a"].heard == []


def test_a_reset_of_a_connection_that_is_half_open() -> None:
    """Broken, one end hears of an end twice, or of a connection that it never had."""
    party = Party(4)
    link = party.network.connect(party.ears["a"], "b")
    party.network.reset(link, "connection reset by peer")
    party.network.reset(link, "connection reset by peer")
    party.run(3_000)
    assert party.ears["a"].heard == [(link, "failed: connection reset by peer")]
    assert party.ears["b"].words(link) in ([], ["ended: connection reset by peer"])
    standing = party.connected("a", "b")
    party.network.close(standing, party.ears["a"])
    party.network.reset(standing, "reset")
    party.run(50)
    assert party.ears["a"].words(standing) == ["connected"], "who has hung up hears no more"
    assert party.ears["b"].words(standing) == ["accepted", "ended: reset"]


def test_calls_can_be_refused_one_way() -> None:
    """Broken, a node cannot be told whom to follow: a refused caller gets through, or the other way is refused too."""
    party = Party(1)
    link, back = party.connected("a", "b"), party.connected("b", "a")
    party.network.refuse("a", "b")
    party.run(10)
    assert party.ears["a"].words(link) == ["connected", "ended: connection refused"]
    party.send(back, "b", 1)
    refused = party.network.connect(party.ears["a"], "b")
    party.run(10)
    assert party.ears["a"].words(refused) == ["failed: connection refused"]
    assert party.ears["a"].messages(back) == [1]
    party.network.accept("a", "b")
    assert party.connected("a", "b")


def test_a_message_that_is_stopped_counts_once() -> None:
    """Broken, the report would say that a fault stopped as many messages as were sent behind the one."""
    party = Party(1)
    link = party.connected("a", "b")
    stop = party.network.stop(BOTH[:1], ["str"])
    for message in ("first", 1, 2, "second", 3):
        party.send(link, "a", message)
        party.run(20)
    assert stop.stopped == 1
    party.network.go_on(stop)
    party.run(20)
    again = party.network.stop(BOTH[:1], ["str"])
    for message in ("third", 4):
        party.send(link, "a", message)
        party.run(20)
    assert again.stopped == 1
