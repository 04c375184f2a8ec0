"""Hunting: the same plan under many seeds in the simulator."""

from harness.hunt.seeds import BY_FAULTS, Tried, hunt, try_seed
from harness.hunt.variety import hunted

__all__ = ["BY_FAULTS", "Tried", "hunt", "hunted", "try_seed"]
