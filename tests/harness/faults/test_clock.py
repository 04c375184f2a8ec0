"""Clocks that are wrong on real nodes: believed by what a node's own clock says, and by nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from harness.cluster.clock_files import write_clock
from harness.faults import clock
from harness.faults.clock import Off, RealClocks, VirtualClocks
from harness.faults.fault import Evidence, Fault
from harness.faults.virtual import VirtualHands
from nodes.host.clock import Clock
from nodes.world.agenda import Agenda
from nodes.world.clock import NodeClock
from tests.harness.faults.made_up_hands import MadeUpHands

MILLISECOND_NS = 1_000_000
SECOND_NS = 1_000_000_000
PATIENCE_S = 60


def fault(**fields: Any) -> Fault:
    return Fault(id=0, name="clock", does="clock", at_ns=0, until_ns=0, nodes=("n1",), **fields)


class Node:
    """A node that reads its clock from a file, as ours do; one that is `deaf` reads none."""

    def __init__(self, folder: Path, *, is_deaf: bool = False) -> None:
        self._folder = folder
        self._clock = Clock(None if is_deaf else str(folder / "clock.json"))
        self.written: list[tuple[int, int]] = []

    async def set(self, node: str, wall_offset_ns: int, drift_ppm: int) -> None:
        self.written.append((wall_offset_ns, drift_ppm))
        write_clock(self._folder, wall_offset_ns, drift_ppm)

    async def status(self, node: str) -> Mapping[str, object]:
        return {"wall_ns": self._clock.now().wall_ns}

    def at_work(self, fault: Fault) -> RealClocks:
        return RealClocks(fault, MadeUpHands(self.status, set_clock=self.set))


def endure(node: Node, asked: Fault, *, least_turns: int = 0, lasts_s: float = 0.0) -> Evidence:
    """From the beginning to the healed end; strobes go on until they have turned so often."""

    async def story() -> Evidence:
        at_work = node.at_work(asked)
        await at_work.begin()
        async with asyncio.timeout(PATIENCE_S):
            while len(node.written) <= least_turns:
                await asyncio.sleep(0.005)
        await asyncio.sleep(lasts_s)
        return await at_work.end()

    return asyncio.run(story())


@pytest.mark.parametrize("jump_ns", [-600 * SECOND_NS, 600 * SECOND_NS, 2 * SECOND_NS])
def test_a_jump_is_seen_on_the_nodes_own_clock(tmp_path: Path, jump_ns: int) -> None:
    """If it failed, clocks that jumped would be called right, or those that were set right again called wrong."""
    evidence = endure(Node(tmp_path), fault(jump_ns=jump_ns, drift_ppm=50_000), lasts_s=0.05)
    assert (evidence.took_effect, evidence.healed) == (True, True)
    assert evidence.counters["clocks_seen_to_differ"] == 1
    assert evidence.asked_ns <= (evidence.all_in_effect_ns or 0) <= (evidence.heal_asked_ns or 0)


@pytest.mark.parametrize("jump_ns", [MILLISECOND_NS, 400 * MILLISECOND_NS, 60 * SECOND_NS])
def test_a_clock_that_nobody_reads_is_not_believed_to_have_jumped(
    tmp_path: Path, jump_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a jump that is no longer than what is taken for right would be felt by every clock."""
    # Nothing will be seen, however long one looks.
    monkeypatch.setattr(clock, "SEEN_WITHIN_NS", 100 * MILLISECOND_NS)
    evidence = endure(Node(tmp_path, is_deaf=True), fault(jump_ns=jump_ns))
    assert not evidence.took_effect
    assert evidence.all_in_effect_ns is None


@pytest.mark.parametrize("wall_ns", [float("nan"), float("-inf"), "now", None])
def test_a_time_that_is_none_is_no_report_of_a_clock(
    monkeypatch: pytest.MonkeyPatch, wall_ns: object
) -> None:
    """If it failed, a store of a user's own that reports an odd time would break the run."""
    monkeypatch.setattr(clock, "SEEN_WITHIN_NS", 30 * MILLISECOND_NS)

    async def status(node: str) -> Mapping[str, object]:
        return {"wall_ns": wall_ns}

    async def story() -> Evidence:
        at_work = RealClocks(fault(jump_ns=SECOND_NS), MadeUpHands(status, set_clock=AsyncMock()))
        await at_work.begin()
        return await at_work.end()

    evidence = asyncio.run(story())
    assert (evidence.took_effect, evidence.healed) == (False, None)


def test_a_drift_alone_takes_effect_if_the_clock_gained_time(tmp_path: Path) -> None:
    """If it failed, a drift would be taken for granted wherever no jump comes with it."""
    evidence = endure(Node(tmp_path), fault(drift_ppm=1_000_000), lasts_s=0.3)
    assert (evidence.took_effect, evidence.healed) == (True, True)
    assert evidence.counters["gained_us"] > 0
    slow = endure(Node(tmp_path), fault(drift_ppm=-900_000), lasts_s=0.3)
    assert slow.took_effect and slow.counters["lost_us"] > 0


@pytest.mark.parametrize("drift_ppm", [50_000, -50_000])
def test_a_drift_of_a_clock_that_does_not_drift_did_not_bite(tmp_path: Path, drift_ppm: int) -> None:
    """If it failed, the drift of a server whose monotonic clock is the machine's own would count as evidence."""
    evidence = endure(Node(tmp_path, is_deaf=True), fault(drift_ppm=drift_ppm), lasts_s=0.1)
    assert not evidence.took_effect
    assert sum(evidence.counters.values()) == 0


def test_a_strobe_takes_effect_if_the_clock_was_seen_to_turn_and_turn_again(tmp_path: Path) -> None:
    """If it failed, a clock that jumped once, and stayed there, would pass for one that strobes."""
    node = Node(tmp_path)
    asked = fault(jump_ns=-60 * SECOND_NS, delay_ns=5 * MILLISECOND_NS)
    evidence = endure(node, asked, least_turns=5)
    assert (evidence.took_effect, evidence.healed) == (True, True)
    assert evidence.counters["turns_seen"] >= 4
    offsets = [offset_ns for offset_ns, _ in node.written]
    assert offsets[:5] == [-60 * SECOND_NS, 0, -60 * SECOND_NS, 0, -60 * SECOND_NS]
    assert node.written[-1] == (0, 0), "the last word must be the right time"


def test_a_strobe_that_could_not_turn_did_not_bite(tmp_path: Path) -> None:
    """If it failed, one jump would be told as many."""
    asked = fault(jump_ns=60 * SECOND_NS, delay_ns=3600 * SECOND_NS)
    evidence = endure(Node(tmp_path), asked)
    assert (evidence.took_effect, evidence.healed) == (False, True)
    assert evidence.counters == {"clocks_seen_to_differ": 1, "turns_seen": 0}


def test_a_strobe_that_breaks_leaves_the_right_time_and_says_why(tmp_path: Path) -> None:
    """If it failed, a host that cannot be reached any more would be told as a clock that was well."""
    node = Node(tmp_path)
    write = node.set

    async def breaks(name: str, wall_offset_ns: int, drift_ppm: int) -> None:
        if len(node.written) == 2:
            node.written.append((1, 1))
            raise OSError("the host is gone")
        await write(name, wall_offset_ns, drift_ppm)

    node.set = breaks  # type: ignore[method-assign]  # this one breaks
    with pytest.raises(OSError, match="the host is gone"):
        endure(node, fault(jump_ns=60 * SECOND_NS, delay_ns=MILLISECOND_NS), least_turns=2)
    assert node.written[-1] == (0, 0)


def test_between_which_bounds_a_clock_is_off() -> None:
    """If it failed, a slow answer would be taken for a wrong clock."""
    slow_answer = Off(-400 * MILLISECOND_NS, 0)
    assert not slow_answer.is_wrong_by(-300 * MILLISECOND_NS)
    assert slow_answer.may_be_right(-300 * MILLISECOND_NS)
    assert Off(-310 * MILLISECOND_NS, -300 * MILLISECOND_NS).is_wrong_by(-300 * MILLISECOND_NS)
    assert not Off(-310 * MILLISECOND_NS, -300 * MILLISECOND_NS).may_be_right(-300 * MILLISECOND_NS)
    assert Off(5, 9).gained_since(Off(1, 4), 50_000) == 1
    assert Off(5, 9).gained_since(Off(1, 6), 50_000) == 0
    assert Off(-9, -5).gained_since(Off(-4, -1), -50_000) == 1


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_a_virtual_clock_that_strobed_is_right_again_wherever_it_was(turns: int) -> None:
    """If it failed, a simulated clock would stay an hour wrong after the fault, or one that never turned count."""
    agenda, node_clock = Agenda(), NodeClock()
    world: Any = SimpleNamespace(agenda=agenda, machines={"n1": SimpleNamespace(clock=node_clock)})
    asked = fault(jump_ns=SECOND_NS, delay_ns=MILLISECOND_NS)
    at_work = VirtualClocks(asked, VirtualHands(world, AsyncMock(), heartbeat_ns=1))
    asyncio.run(at_work.begin())
    offsets = [node_clock.wall_offset_ns]
    for _ in range(turns):
        agenda.advance()
        offsets.append(node_clock.wall_offset_ns)
    assert offsets == [0 if number % 2 else SECOND_NS for number in range(turns + 1)]
    evidence = asyncio.run(at_work.end())
    assert (node_clock.wall_offset_ns, evidence.took_effect) == (0, turns > 1)
    assert agenda.advance() and node_clock.wall_offset_ns == 0, "the turn that was planned before is void"


def test_a_small_jump_must_be_seen_beyond_what_a_far_clock_may_be_off() -> None:
    """If it failed, the doubt about a remote host's clock would count as the effect of a jump."""
    doubt_ns = clock.SURELY_WRONG_NS
    assert not Off(doubt_ns - 1, doubt_ns + 1).is_wrong_by(MILLISECOND_NS)
    assert Off(doubt_ns, doubt_ns + 1).is_wrong_by(MILLISECOND_NS)
    assert not Off(-doubt_ns - 1, -doubt_ns + 1).is_wrong_by(-MILLISECOND_NS)
