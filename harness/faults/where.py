"""Where a fault can be done, as an expression: `DOCKER | by_name(SIM) | no(LOCAL | SSH, "the reason")`.

An expression of the table says of every cluster one of three things: the fault is done there and belongs to "all"; it
is done there when it is asked for by name; it cannot be done there, and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CLUSTERS = ("local", "docker", "ssh", "sim")


@dataclass(frozen=True, slots=True)
class Where:
    clusters: tuple[str, ...] = ()
    """Where it is done, in the order of `CLUSTERS`."""
    only_named: tuple[str, ...] = ()
    """The clusters among these where "all" leaves it out."""
    why_not: Mapping[str, str] = field(default_factory=dict)

    def __or__(self, other: Where) -> Where:
        done, named = {*self.clusters, *other.clusters}, {*self.only_named, *other.only_named}
        return Where(
            tuple(cluster for cluster in CLUSTERS if cluster in done),
            tuple(cluster for cluster in CLUSTERS if cluster in named),
            {**self.why_not, **other.why_not},
        )

    def is_among_all(self, cluster: str) -> bool:
        return cluster in self.clusters and cluster not in self.only_named


LOCAL, DOCKER, SSH, SIM = (Where((cluster,)) for cluster in CLUSTERS)
REAL = LOCAL | DOCKER | SSH
EVERYWHERE = REAL | SIM


def by_name(where: Where) -> Where:
    """These clusters do the fault when it is asked for by name."""
    return Where(where.clusters, where.clusters)


def no(where: Where, why: str) -> Where:
    """These clusters cannot do the fault."""
    return Where(why_not=dict.fromkeys(where.clusters, why))
