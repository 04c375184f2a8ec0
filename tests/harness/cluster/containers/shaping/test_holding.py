"""Which packet may go when, in time that the test makes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cluster.containers.shaped_faults import took_effect
from harness.cluster.containers.shaping.holding import QUEUE_NS, Holding, Shaping
from harness.faults.fault import Fault

MILLISECOND = 1_000_000
AB, BA = ("a", "b"), ("b", "a")


def drain(holding: Holding[int]) -> list[tuple[int, int]]:
    """All that is held, as (when, which), each let go at its time."""
    gone: list[tuple[int, int]] = []
    while (due_ns := holding.next_due_ns()) is not None:
        gone += [(due_ns, token) for token in holding.due(due_ns)]
    return gone


def test_a_slow_link_delays_each_packet_and_keeps_the_order() -> None:
    """Broken if packets come too early, overtake each other, or are lost."""
    holding: Holding[int] = Holding()
    holding.shape(1, [AB], Shaping(delay_ns=20 * MILLISECOND, jitter_ns=15 * MILLISECOND), 7, 0)
    for number in range(50):
        assert holding.take(AB, number, 100, number * MILLISECOND) is False
        assert holding.take(BA, 1000 + number, 100, number * MILLISECOND) is True
    gone = drain(holding)
    assert [token for _, token in gone] == list(range(50))
    assert all(when >= token * MILLISECOND + 5 * MILLISECOND for when, token in gone)
    watch = holding.watches(1)[AB]
    assert (watch["packets"], watch["packets_held"], watch["bytes_held"]) == (50, 50, 5000)
    assert (watch["packets_overtook"], watch["packets_dropped"]) == (0, 0)
    assert 5 * MILLISECOND <= (watch["shortest_held_ns"] or 0) <= (watch["longest_held_ns"] or 0)


@pytest.mark.parametrize("first", [Shaping(delay_ns=1000 * MILLISECOND), Shaping(bytes_per_s=1000)])
def test_a_fault_that_is_over_delays_no_packet_of_the_next(first: Shaping) -> None:
    """Broken if a link is slower than its fault says, by what an earlier one had held."""
    holding: Holding[int] = Holding()
    holding.shape(1, [AB], first, 7, 0)
    for number in range(3):
        holding.take(AB, number, 100, 0)
    holding.unshape(1)  # the evidence of the first is still waited for
    holding.shape(2, [AB], Shaping(delay_ns=MILLISECOND, bytes_per_s=100_000), 7, 0)
    holding.take(AB, 3, 100, 0)
    assert drain(holding) == [(2 * MILLISECOND, 3)]
    assert holding.watches(2)[AB]["packets_queued"] == 0


def test_late_packets_are_overtaken_and_counted() -> None:
    """Broken if nothing is ever out of order, or what was out of order is not known."""
    holding: Holding[int] = Holding()
    shaping = Shaping(delay_ns=20 * MILLISECOND, percent=30, keeps_order=False)
    holding.shape(1, [AB], shaping, 7, 0)
    gone: list[int] = []
    for number in range(100):
        if holding.take(AB, number, 100, number * MILLISECOND):
            gone.append(number)
        gone += holding.due(number * MILLISECOND)
    gone += [token for _, token in drain(holding)]
    assert sorted(gone) == list(range(100))
    assert gone != sorted(gone)
    watch = holding.watches(1)[AB]
    assert 10 < (watch["packets_held"] or 0) < 60
    assert (watch["packets_overtook"] or 0) > 0


def test_each_fault_is_credited_with_its_own_effect() -> None:
    """Broken if a fault that held nothing counts as effective because another one held packets of its link."""
    holding: Holding[int] = Holding()
    holding.shape(1, [AB], Shaping(delay_ns=20 * MILLISECOND, percent=30, keeps_order=False), 7, 0)
    holding.shape(2, [AB], Shaping(delay_ns=20 * MILLISECOND, percent=0, keeps_order=False), 7, 0)
    holding.shape(3, [AB], Shaping(bytes_per_s=1_000_000_000), 7, 0)
    holding.shape(4, [AB], Shaping(bytes_per_s=50_000), 7, 0)
    for number in range(100):
        holding.due(number * MILLISECOND)
        holding.take(AB, number, 100, number * MILLISECOND)
    drain(holding)
    reorders, nothing, wide, narrow = (holding.watches(fault)[AB] for fault in (1, 2, 3, 4))
    assert (reorders["packets_overtook"] or 0) > 0 and 10 < (reorders["packets_held"] or 0) < 60
    assert (narrow["packets_queued"] or 0) > 0 and narrow["packets_held"] == 100
    assert narrow["packets_overtook"] == 0
    for watch in (nothing, wide):
        assert watch["packets"] == 100
        assert not any(watch[name] for name in ("packets_held", "packets_overtook", "packets_queued"))


def test_a_packet_that_keeps_its_place_is_held_by_the_fault_of_the_packet_before_it() -> None:
    """Broken if a fault that makes each second packet late is credited with half of what it holds."""
    holding: Holding[int] = Holding()
    holding.shape(1, [AB], Shaping(delay_ns=20 * MILLISECOND, percent=30), 7, 0)
    holding.shape(2, [AB], Shaping(delay_ns=MILLISECOND, percent=1), 7, 0)
    fates = [holding.take(AB, number, 100, number * MILLISECOND // 2) for number in range(100)]
    drain(holding)
    watch = holding.watches(1)[AB]
    assert watch["packets_held"] == fates.count(False) > 60


def test_a_narrow_link_lets_so_many_bytes_pass_and_drops_what_would_wait_too_long() -> None:
    """Broken if a rate limits nothing, or a queue grows without end."""
    holding: Holding[int] = Holding()
    holding.shape(1, [AB], Shaping(bytes_per_s=10_000), 7, 0)
    fates = [holding.take(AB, number, 1000, 0) for number in range(20)]
    gone = drain(holding)
    assert [when for when, _ in gone] == [100 * MILLISECOND * place for place in range(1, len(gone) + 1)]
    assert fates.count(None) == 20 - len(gone)
    watch = holding.watches(1)[AB]
    assert watch["packets_dropped"] == fates.count(None) > 0
    assert watch["packets_queued"] == 19
    assert gone[-1][0] <= QUEUE_NS + 200 * MILLISECOND


def test_healing_lets_go_at_once_what_no_other_fault_holds() -> None:
    """Broken if a healed link stays slow, or healing one fault undoes another."""
    holding: Holding[int] = Holding()
    holding.shape(1, [AB, BA], Shaping(delay_ns=50 * MILLISECOND), 7, 0)
    holding.shape(2, [BA], Shaping(delay_ns=50 * MILLISECOND), 7, 0)
    for number in range(4):
        assert holding.take(AB, number, 100, 0) is False
        assert holding.take(BA, 10 + number, 100, 0) is False
    assert holding.unshape(1) == [0, 1, 2, 3]
    assert (len(holding._held), holding.stranded()) == (4, 0)
    assert holding.shaped_links() == [BA]
    assert holding.take(AB, 5, 100, 1) is True
    assert [token for _, token in drain(holding)] == [10, 11, 12, 13]
    assert holding.unshape(2) == []
    holding.forget(1)
    holding.forget(2)
    assert holding.watches(1) == holding.watches(2) == {}


def test_packets_of_a_container_that_is_gone_are_forgotten() -> None:
    """Broken if a killed node's packets are let go in the name of its next life."""
    holding: Holding[int] = Holding()
    holding.shape(1, [AB], Shaping(delay_ns=50 * MILLISECOND), 7, 0)
    for number in range(4):
        holding.take(AB, number, 100, 0)
    holding.discard_of(lambda token: token < 2)
    assert [token for _, token in drain(holding)] == [2, 3]


@given(
    gaps_ms=st.lists(st.integers(0, 30), max_size=40),
    shaping=st.builds(
        Shaping,
        delay_ns=st.integers(0, 50 * MILLISECOND),
        jitter_ns=st.integers(0, 50 * MILLISECOND),
        percent=st.sampled_from((100, 40)),
        bytes_per_s=st.sampled_from((0, 20_000)),
        keeps_order=st.booleans(),
    ),
)
def test_every_packet_goes_or_is_dropped_exactly_once(gaps_ms: list[int], shaping: Shaping) -> None:
    """Broken if a packet is decided twice or never: the kernel would keep it for ever."""
    holding: Holding[int] = Holding()
    holding.shape(1, [AB], shaping, 3, 0)
    now_ns, decided = 0, []
    for number, gap_ms in enumerate(gaps_ms):
        now_ns += gap_ms * MILLISECOND
        decided += holding.due(now_ns)
        if holding.take(AB, number, 500, now_ns) is not False:
            decided.append(number)
    decided += [token for _, token in drain(holding)]
    assert sorted(decided) == list(range(len(gaps_ms)))
    assert len(holding._held) == 0


ROW = {
    "packets_held": 9,
    "packets_overtook": 0,
    "packets_queued": 0,
    "shortest_held_ns": 5,
    "longest_held_ns": 9,
}


@pytest.mark.parametrize(
    ("does", "told", "affected"),
    [
        ("slow", {}, True),
        ("slow", {"packets_held": 0}, False),
        ("jitter", {}, False),
        ("jitter", {"longest_held_ns": 15}, True),
        ("jitter", {"shortest_held_ns": None, "longest_held_ns": 15}, False),
        ("reorder", {}, False),
        ("reorder", {"packets_overtook": 1}, True),
        ("bandwidth", {}, False),
        ("bandwidth", {"packets_queued": 1}, True),
    ],
)
def test_a_fault_took_effect_as_it_says(does: str, told: dict[str, int | None], affected: bool) -> None:
    """Broken if packets that were merely held count as reordered, or as held back by a rate."""
    fault = Fault(id=0, name=does, does=does, at_ns=0, until_ns=1, jitter_ns=20)  # type: ignore[arg-type]  # a str
    assert took_effect(fault, {**ROW, **told}) == affected
