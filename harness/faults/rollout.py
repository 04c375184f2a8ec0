"""Which nodes run which version in the course of a schedule, and which node is next.

A rolling upgrade is spread over the run: each step brings one node to the other version, and further faults
happen between the steps, while versions are mixed. With a rolling downgrade asked for as well, the way back follows
the way there, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.faults.fault import Does, Fault

UPGRADE, DOWNGRADE = "rolling-upgrade", "rolling-downgrade"


@dataclass(frozen=True, slots=True)
class Rollout:
    """`turn` is the order in which nodes come, `newer` those that run the newer version."""

    turn: tuple[str, ...]
    returns: bool = False
    """A downgrade follows."""
    newer: tuple[str, ...] = ()
    goes_back: bool = False

    def step(self, present: Sequence[str]) -> tuple[str, str] | None:
        """The name of the next fault and its node; None if all is done. A node that has left is passed over."""
        candidates = self._candidates(present)
        if candidates:
            return (DOWNGRADE if self.goes_back else UPGRADE), candidates[0]
        if not self.returns or not present:
            return None
        return replace(self, goes_back=not self.goes_back).step(present)

    def _candidates(self, present: Sequence[str]) -> list[str]:
        return [node for node in self.turn if node in present and (node in self.newer) == self.goes_back]

    def after(self, fault: Fault) -> Rollout:
        if fault.does not in ("upgrade", "downgrade"):
            return self
        others = tuple(node for node in self.newer if node not in fault.nodes)
        newer = (*others, *fault.nodes) if fault.does == "upgrade" else others
        return replace(self, newer=newer, goes_back=fault.does == "downgrade")

    def why_not(self, does: Does, nodes: Sequence[str]) -> str:
        """Why the fault cannot be done to these nodes now; "" if it can."""
        for node in nodes:
            if does == "upgrade" and node in self.newer:
                return f"upgrades {node}, which runs the newer version already"
            if does == "downgrade" and node not in self.newer:
                return f"downgrades {node}, which runs the older version"
        return ""
