"""Hunting: the same plan under many seeds in the simulator."""

from harness.hunt.seeds import Tried, hunt, try_seed

__all__ = ["Tried", "hunt", "try_seed"]
