"""Faults of real nodes: what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from harness.faults.fault import Evidence, Fault
from harness.faults.hands import Hands, together

T = TypeVar("T")
SECOND_NS = 1_000_000_000
ASK_AGAIN_NS = 5_000_000


class RealFault:
    """A fault at work on real nodes: its times, and what went wrong at which node."""

    def __init__(self, fault: Fault, hands: Hands) -> None:
        self.fault = fault
        self.hands = hands
        self.processes = hands.processes
        self.asked_ns = hands.now_ns()
        self.heal_asked_ns: int | None = None
        self.seen_ns: list[int] = []
        """When each node was observed to be affected."""
        self.details: list[str] = []

    def saw(self) -> None:
        self.seen_ns.append(self.hands.now_ns())

    @property
    def all_seen(self) -> bool:
        return bool(self.seen_ns) and len(self.seen_ns) == len(self.fault.nodes)

    async def each(self, work: Callable[[str], Coroutine[Any, Any, T]]) -> list[T]:
        """Do `work` on all nodes of the fault, side by side."""
        return await together(self.hands, map(work, self.fault.nodes))

    async def sleep(self, time_ns: int) -> None:
        await self.hands.sleep_until(self.hands.now_ns() + time_ns)

    async def answers_again(self, node: str) -> bool:
        """Ask the node until it answers; False if it is dead or does not answer in time."""
        within_ns = self.hands.ready_within_ns
        deadline_ns = self.hands.now_ns() + within_ns
        while await self.hands.status(node) is None:
            if not self.processes.is_alive(node):
                self.details.append(f"{node} is dead")
                return False
            if self.hands.now_ns() > deadline_ns:
                self.details.append(f"{node} did not answer within {within_ns / SECOND_NS:g} s")
                return False
            await self.sleep(ASK_AGAIN_NS)
        return True

    def evidence(
        self, took_effect: bool, healed: Iterable[bool | None], counters: Mapping[str, int]
    ) -> Evidence:
        """`healed`: for each node; None where that could not be tried."""
        tried = [outcome for outcome in healed if outcome is not None]
        return Evidence(
            took_effect=took_effect,
            asked_ns=self.asked_ns,
            first_effect_ns=min(self.seen_ns, default=None),
            # Not of those that were seen alone: from then on answers count as given under the fault.
            all_in_effect_ns=max(self.seen_ns) if self.all_seen else None,
            heal_asked_ns=self.heal_asked_ns,
            last_effect_ns=self.hands.now_ns(),
            healed=all(tried) if tried else None,
            counters=dict(counters),
            detail="; ".join(self.details),
        )
