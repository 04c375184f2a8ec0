"""Members leave, come, and lose their disks. An operator does that (`harness.run.administration.members`)."""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.action import Action, Kind, another, anyone
from harness.faults.where import EVERYWHERE, by_name

REMOVE, ADD, LOST_DISK = "remove-node", "add-node", "replace-node"


class MemberAction(Action):
    """Common to these actions."""

    is_of_one = True
    stops_processes = True
    changes_members = True
    is_administered = True


class Remove(MemberAction):
    """The one of `nodes` is stopped and leaves the cluster for good; no node counts it any more."""

    does = "remove"
    kinds = (
        Kind(
            name=REMOVE,
            group="membership",
            summary="a node leaves the cluster: it is stopped, and no node counts it any more",
            draw=another,
            where=by_name(EVERYWHERE),
            nodes_min=3,
        ),
    )
    ability = "members"


class Add(MemberAction):
    """The one of `nodes`, which had left, comes as a fresh node with an identity of its own."""

    does = "add"
    kinds = (
        Kind(
            name=ADD,
            group="joining",
            summary="a node joins: a fresh one at the address of one that left, or one that was no member at first",
            draw=anyone,
            where=by_name(EVERYWHERE),
            nodes_min=3,
        ),
    )
    ability = "newcomers"
    hinders_owner = False

    def candidates(self, present: Sequence[str], absent: Sequence[str], voters: frozenset[str]) -> list[str]:
        return list(absent)


class Replace(MemberAction):
    """The one of `nodes` is killed and loses its disk; at the end a fresh node with another identity takes its place,
    and the old identity never returns."""

    does = "replace"
    kinds = (
        Kind(
            name=LOST_DISK,
            group="membership",
            summary="a node loses its disk, and a fresh one with a new identity takes its place",
            draw=another,
            where=by_name(EVERYWHERE),
            nodes_min=3,
        ),
    )
    ability = "members"
