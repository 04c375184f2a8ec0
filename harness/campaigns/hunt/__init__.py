"""Hunting: the same plan under many seeds in the simulator."""

from harness.campaigns.hunt.seeds import Tried, hunt, try_seed
from harness.campaigns.hunt.variety import hunted

__all__ = ["Tried", "hunt", "hunted", "try_seed"]
