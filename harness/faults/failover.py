"""Failover: another node is asked to become the owner. The run asks for it (`harness.run.failover`)."""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.action import Action, Kind, another

FAILOVER = "failover"


class Failover(Action):
    """The one of `nodes` is asked to become the owner, again and again until it is."""

    does = "failover"
    kinds = (
        Kind(name=FAILOVER, group="failover", summary="another node is promoted", draw=another, nodes_min=2),
    )
    is_of_one = True
    ability = "failover"
    hinders_owner = False

    def candidates(self, present: Sequence[str], absent: Sequence[str], voters: frozenset[str]) -> list[str]:
        return [node for node in present if node not in voters]
