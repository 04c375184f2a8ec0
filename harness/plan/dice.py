"""The draws of a hunt that are the same for every system: how many nodes, how much load, how much calm.

One stream decides a seed. Every draw therefore has its place in it: a system that draws options of its own asks the
dice for these in between, and a new order would make another run of every seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

Weighted = tuple[tuple[Any, float], ...]
"""Values, each with how often it is drawn."""
NODES: Weighted = ((3, 12), (5, 4), (4, 3), (2, 2), (1, 1))
RATES = (36.0, 44.0, 60.0)
CALM_S = (1.0, 1.0, 1.5)
OVERLAPS: Weighted = ((1, 6), (2, 3), (3, 1))


@dataclass(frozen=True, slots=True)
class Dice:
    chance: random.Random

    def weighted(self, table: Weighted) -> Any:
        values, weights = zip(*table, strict=True)
        return self.chance.choices(values, weights)[0]

    def nodes(self) -> int:
        return int(self.weighted(NODES))

    def rate(self) -> float:
        return self.chance.choice(RATES)

    def calm_s(self) -> float:
        return self.chance.choice(CALM_S)

    def overlap(self) -> int:
        return int(self.weighted(OVERLAPS))
