"""Chance, in named streams: one more draw in one place shifts no other.

Each purpose (a link's delays, a disk, a client process, the schedule of faults) has a stream of its own, derived
from the seed and the purpose's name. The same seed and name give the same draws in every process.
"""

from __future__ import annotations

import random


class Streams:
    """Named generators under one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, random.Random] = {}

    def __getitem__(self, name: str) -> random.Random:
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = random.Random(f"{self.seed}/{name}")
        return stream
