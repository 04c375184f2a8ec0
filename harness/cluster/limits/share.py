"""The share of its machine that a node may use in a whole run, as a plan says it."""

from __future__ import annotations

from dataclasses import dataclass

from harness.cluster.limits.group import Group

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """`cpus` cores (0.5: half of one) and `memory_mib` of memory at most; None: no limit of this run's."""

    cpus: float | None = None
    memory_mib: int | None = None

    def limit(self, group: Group) -> None:
        """Raises OSError."""
        if self.cpus is not None:
            group.limit_cpu(100 * self.cpus)
        if self.memory_mib is not None:
            group.limit_memory(self.memory_mib * _MIB)
