"""The members of the cluster in the course of a schedule, and which change of them is possible next.

A node name such as n2 is an address slot. When a member leaves, the slot is free; a node that joins there gets a new
identity. The quorum stays consistent with N: N/2 < Q ≤ N for the present members. Either it follows N by a formula (N /
2 + 1 by default), or it is fixed and bounds how many may leave. A majority of the first members always stays, and one
that may lead. A node that loses its disk counts until it was removed; for that the remaining nodes must have a
quorum without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from harness.faults.fault import Does, Fault
from nodes.kernel.quorum import evaluate

FORMULA = "N / 2 + 1"


def quorum_of(said: int | str | None, count: int) -> int:
    """The quorum of so many members: what a plan says, or a majority."""
    return evaluate(FORMULA if said is None else said, max(count, 1))


@dataclass(frozen=True, slots=True)
class Membership:
    """`places` are all names there are, `present` those that have a member; `voters` never lead.

    `said` is the quorum as the plan has it: a number, a formula, or None.
    """

    places: tuple[str, ...]
    present: tuple[str, ...]
    said: int | str | None = None
    voters: frozenset[str] = frozenset()
    without_a_vote: frozenset[str] = frozenset()
    """Members that take no part in elections. A leader needs a quorum of votes from the remaining members."""

    @classmethod
    def at_first(
        cls,
        places: tuple[str, ...],
        said: int | str | None,
        voters: frozenset[str] = frozenset(),
        without_a_vote: frozenset[str] = frozenset(),
    ) -> Membership:
        return cls(places, places, said, voters, without_a_vote)

    @property
    def absent(self) -> tuple[str, ...]:
        return tuple(name for name in self.places if name not in self.present)

    @property
    def quorum(self) -> int:
        return quorum_of(self.said, len(self.present))

    @property
    def is_sound(self) -> bool:
        """N/2 < Q ≤ N, and a majority of the first members is there."""
        count = len(self.present)
        return count < 2 * self.quorum <= 2 * count and 2 * count > len(self.places)

    def why_not(self, does: Does, nodes: Iterable[str]) -> str:
        """Why the fault cannot be done to these nodes now; "" if it can."""
        named = tuple(nodes)
        missing = [name for name in named if name not in self.present]
        if does == "add":
            there = [name for name in named if name in self.present]
            return f"adds {there[0]}, which is a member already" if there else ""
        if missing:
            return f"is done to {missing[0]}, which has left the cluster"
        if does == "remove" and not self.without(*named).is_sound:
            count = len(self.present) - len(named)
            return (
                f"would leave {count} members, which is too few for a quorum of {self.without(*named).quorum}"
            )
        left = self.without(*named)
        if does in ("remove", "replace") and self.voters.issuperset(left.present):
            return f"takes away {named[0]}, without which only voters are left: no node could lead"
        if does == "replace" and len(self.present) - len(named) < self.quorum:
            return (
                f"takes away {named[0]}, without which {len(self.present)} members have no quorum of {self.quorum}: "
                "it could not be removed, and no node could join"
            )
        if does in ("remove", "replace") and len({*left.present} - self.without_a_vote) < (
            left.quorum if does == "remove" else self.quorum
        ):
            return f"takes away {named[0]}, without which too few have a vote: no node could be elected"
        return ""

    def without(self, *nodes: str) -> Membership:
        return replace(self, present=tuple(name for name in self.present if name not in nodes))

    def having(self, *nodes: str) -> Membership:
        kept = {*self.present, *nodes}
        return replace(self, present=tuple(name for name in self.places if name in kept))

    def after(self, fault: Fault) -> Membership:
        match fault.does:
            case "remove":
                return self.without(*fault.nodes)
            case "add":
                return self.having(*fault.nodes)
            case _:
                return self
