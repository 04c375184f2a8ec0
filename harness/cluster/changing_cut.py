"""A partition that changes its shape, on any cluster of real nodes: one cut after the other.

Each shape is a cut of its own, under a number that no fault of a plan has, with evidence of its own. The next begins
before the last one is healed, so what both cut is never open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from harness.faults.fault import Evidence, Fault, ShapeSeen

_NUMBERS = 1 << 32
"""Numbers of faults in plans are smaller."""
_GREATEST = ("longest_withheld_ns", "longest_hanging_ns", "longest_withheld_ms")


class CutAtWork(Protocol):
    """A cut that says what it did in two steps: it is healed, and it was seen to be whole."""

    async def begin(self) -> None: ...

    async def heal(self) -> None: ...

    async def evidence(self) -> Evidence: ...


class ChangingCut:
    def __init__(self, fault: Fault, cut: Callable[[Fault], CutAtWork]) -> None:
        self._fault = fault
        self._cut = cut
        self._begun: list[tuple[Fault, CutAtWork]] = []

    async def begin(self) -> None:
        await self._begin(0)

    async def change(self, number: int) -> None:
        """To the shape of that number."""
        _, last = self._begun[-1]
        await self._begin(number)
        await last.heal()

    async def _begin(self, number: int) -> None:
        part = part_of(self._fault, number)
        cut = self._cut(part)
        self._begun.append((part, cut))
        await cut.begin()

    async def end(self) -> Evidence:
        await self._begun[-1][1].heal()
        told = [await cut.evidence() for _, cut in self._begun]
        return merged([part for part, _ in self._begun], told)


def part_of(fault: Fault, number: int) -> Fault:
    """One shape, as a fault of its own."""
    return msgspec.structs.replace(
        fault,
        id=fault.id + number * _NUMBERS,
        does="cut",
        links=fault.shapes[number].links,
        shapes=(),
        seed=fault.seed + number,
    )


def merged(parts: Sequence[Fault], told: Sequence[Evidence]) -> Evidence:
    """It took effect if two of the shapes did: otherwise no node saw a change."""
    affected = [evidence.took_effect for evidence in told]
    first = [evidence.first_effect_ns for evidence in told if evidence.first_effect_ns is not None]
    counters: Counter[str] = Counter()
    for evidence in told:
        for name, count in evidence.counters.items():
            counters[name] = max(counters[name], count) if name in _GREATEST else counters[name] + count
    healed = [evidence.healed for evidence in told]
    return Evidence(
        took_effect=sum(affected) > 1,
        asked_ns=told[0].asked_ns,
        first_effect_ns=min(first, default=None),
        all_in_effect_ns=told[0].all_in_effect_ns,
        heal_asked_ns=told[-1].heal_asked_ns,
        last_effect_ns=told[-1].last_effect_ns,
        healed=False if False in healed else None if None in healed else True,
        counters={
            "shapes": len(told),
            "shapes_affected": sum(affected),
            "changes_affected": sum(affected[1:]),
            "shapes_unused": sum(evidence.counters.get("links_used") == 0 for evidence in told),
            **counters,
        },
        detail="; ".join(dict.fromkeys(each.detail for each in told if each.detail and not each.healed)),
        shapes=tuple(
            ShapeSeen(
                links=part.links,
                asked_ns=evidence.asked_ns,
                in_effect_ns=evidence.all_in_effect_ns,
                until_ns=evidence.heal_asked_ns,
                took_effect=evidence.took_effect,
            )
            for part, evidence in zip(parts, told, strict=True)
        ),
    )
