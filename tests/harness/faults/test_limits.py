"""The three faults over made-up limits: when they take effect, what heals them, and what does not."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from harness.errors import ClusterError
from harness.faults import limits
from harness.faults.fault import Evidence, Fault
from harness.faults.hands import Counts
from harness.faults.limits import RealCpuLimit, RealMemoryLimit, RealOutOfMemory
from tests.harness.faults.made_up_hands import MadeUpHands

NOTHING: Counts = {}


class Node:
    """One node and its limits. It has to wait below `needs_percent`; `dies` when somebody fills its memory."""

    def __init__(
        self, *, needs_percent: int = 100, dies: bool = True, counted: bool = True, told: bool = False
    ) -> None:
        self.needs_percent = needs_percent
        self.dies = dies
        self.counted = counted
        self.told = told
        self.alive = True
        self.starved = 0
        self.untold = 0
        self.lifts = True
        self.asked: list[str] = []
        self.now = NOTHING

    # what limits it

    async def counts(self, node: str) -> Counts:
        if not self.alive:
            raise ValueError("it does not run")
        return self.now

    async def limit_cpu(self, node: str, percent: int) -> None:
        self.asked.append(f"cpu {percent}")
        if percent < self.needs_percent:
            self.now = {"throttled": 9, "throttled_ns": 900_000_000}

    async def limit_memory(self, node: str, spare_bytes: int) -> None:
        self.asked.append("memory")

    async def press(self, node: str, ballast: str) -> None:
        self.asked.append(ballast)
        if ballast == "press":
            self.now = {"refaults": 50}
        elif self.dies:
            if self.counted:
                self.now = {"oom_kills": 1}
            asyncio.get_running_loop().call_later(0.05, self.die)

    async def release(self, node: str) -> None:
        self.asked.append("release")

    async def lift(self, node: str) -> bool:
        self.asked.append("lift")
        return self.lifts

    # who looks after it

    def die(self) -> None:
        self.alive = False
        self.untold += not self.starved

    def starve(self, node: str) -> None:
        self.starved += 1

    async def feed(self, node: str) -> bool:
        self.starved -= 1
        return self.told and not self.alive

    async def revive(self, node: str) -> bool:
        self.asked.append("revive")
        self.alive = True
        return True

    def is_alive(self, node: str) -> bool:
        return self.alive

    async def status(self, node: str) -> dict[str, object] | None:
        return {} if self.alive else None

    def may_refuse(self, node: str) -> AbstractContextManager[list[str]]:
        return nullcontext([])


def carried_out(kind: Any, node: Node, **fields: Any) -> Evidence:
    fault = Fault(id=0, name="x", does="oom", at_ns=0, until_ns=9, nodes=("n1",), **fields)

    async def both() -> Evidence:
        at_work = kind(fault, MadeUpHands(node.status, processes=node, limits=node))
        await at_work.begin()
        evidence = await at_work.end()
        assert isinstance(evidence, Evidence)
        return evidence

    return asyncio.run(both())


def test_a_node_that_has_to_wait_is_limited() -> None:
    """Broken, a limit that held no node up would count as a fault that was survived."""
    node = Node()
    evidence = carried_out(RealCpuLimit, node, percent=8)
    assert (evidence.took_effect, evidence.healed) == (True, True)
    assert evidence.counters == {"periods_throttled": 9, "throttled_ms": 900, "percent": 8}
    assert node.asked == ["cpu 8", "lift"]


def test_a_node_that_needs_less_gets_less() -> None:
    """Broken, a quiet replica would never feel the fault, and its run would be no evidence."""
    node = Node(needs_percent=3)
    evidence = carried_out(RealCpuLimit, node, percent=9)
    assert (evidence.took_effect, node.asked) == (True, ["cpu 9", "cpu 4", "cpu 2", "lift"])
    idle = Node(needs_percent=0)
    evidence = carried_out(RealCpuLimit, idle, percent=2)
    assert (evidence.took_effect, evidence.healed, idle.asked) == (False, True, ["cpu 2", "cpu 1", "lift"])


class UntoldAtFirst(Node):
    """It had to wait before the fault, which the kernel's first answer would have told."""

    asked_for_counts = 0

    async def counts(self, node: str) -> Counts:
        self.asked_for_counts += 1
        if self.asked_for_counts == 1:
            raise ClusterError("the daemon does not answer")
        return {"throttled": 9, "throttled_ns": 900_000_000}


def test_what_came_before_the_fault_is_not_its_doing() -> None:
    """Broken, a limit that held no node up would count as survived where the first counts could not be read."""
    assert not carried_out(RealCpuLimit, UntoldAtFirst(), percent=1).took_effect


def test_limits_that_stay_are_no_heal() -> None:
    """Broken, a node that stays slow for the rest of the run would count as well."""
    for kind in (RealCpuLimit, RealMemoryLimit):
        node = Node()
        node.lifts = False
        evidence = carried_out(kind, node, percent=8)
        assert evidence.healed is False
        assert "not what they were" in evidence.detail


def test_pressure_is_believed_by_what_the_kernel_took_back() -> None:
    """Broken, a node with memory to spare would count as one under pressure."""
    node = Node()
    evidence = carried_out(RealMemoryLimit, node)
    assert (evidence.took_effect, evidence.healed) == (True, True)
    assert evidence.counters == {"limit_hits": 0, "refaults": 50, "oom_kills": 0}
    assert node.asked == ["memory", "press", "release", "lift", "revive"]


def test_who_dies_under_pressure_is_told_and_comes_back() -> None:
    """Broken, a node that the fault ended would be called a crash of the store."""
    node = Node()

    class Deadly(RealMemoryLimit):
        async def _until_in_effect(self, name: str) -> None:
            await super()._until_in_effect(name)
            node.die()

    evidence = carried_out(Deadly, node)
    assert (evidence.healed, node.alive, node.untold) == (True, True, 0)

    class Fatal(Deadly):
        async def _until_in_effect(self, name: str) -> None:
            await super()._until_in_effect(name)
            node.now = NOTHING

    node = Node(told=True)
    evidence = carried_out(Fatal, node)
    assert evidence.took_effect, (
        "a node that was ended at once felt the limit, though nothing was taken back from it before"
    )


class EndedAtTheEnd(Node):
    """The kernel ends it while its limits are lifted; that is seen a little later."""

    is_gone = False

    async def counts(self, node: str) -> Counts:
        if self.is_gone:
            raise ValueError("it does not run")
        return await super().counts(node)

    async def lift(self, node: str) -> bool:
        if "revive" not in self.asked:
            self.is_gone = True
            asyncio.get_running_loop().call_later(0.05, self.die)
            raise ValueError("it does not run")
        return await super().lift(node)

    async def revive(self, node: str) -> bool:
        self.is_gone = False
        return await super().revive(node)


def test_who_is_ended_when_the_pressure_is_over_is_told_too() -> None:
    """Broken, a node that the fault ended in its last moment would be called a crash of the store."""
    node = EndedAtTheEnd(told=True)
    evidence = carried_out(RealMemoryLimit, node)
    assert (evidence.took_effect, evidence.healed, node.alive, node.untold, node.starved) == (
        True,
        True,
        True,
        0,
        0,
    )
    assert node.asked[-2:] == ["revive", "lift"]


def test_the_kernel_ends_the_node_and_the_fault_brings_it_back() -> None:
    """Broken, an end for want of memory would be a crash, or the node be gone for the rest of the run."""
    node = Node()
    evidence = carried_out(RealOutOfMemory, node)
    assert (evidence.took_effect, evidence.healed, node.untold, node.starved) == (True, True, 0, 0)
    assert evidence.counters == {"oom_kills": 1, "processes_seen_dead": 1}
    assert node.asked[:2] == ["memory", "fill"]
    assert node.asked.index("revive") < node.asked.index("lift")


def test_an_end_that_the_kernel_did_not_count_is_no_bite() -> None:
    """Broken, any death while memory was short would be taken for the kernel's doing."""
    assert not carried_out(RealOutOfMemory, Node(counted=False)).took_effect
    evidence = carried_out(RealOutOfMemory, Node(counted=False, told=True))
    assert evidence.took_effect, "a container's counts go with it; who saw it end knows"
    assert evidence.counters == {"oom_kills": 1, "processes_seen_dead": 1}


def test_a_node_that_the_kernel_spares_did_not_feel_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken, the harness would wait for ever, or call a node dead that lives."""
    monkeypatch.setattr(limits, "DEAD_WITHIN_NS", 50_000_000)
    evidence = carried_out(RealOutOfMemory, Node(dies=False))
    assert (evidence.took_effect, evidence.healed) == (False, True)
    assert "was not ended" in evidence.detail
