"""Capabilities of a system that faults draw on: small protocols, each asked for by `isinstance`."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from harness.faults.abilities import Ability
from harness.faults.directed import Scenes
from harness.faults.fault import Fault
from harness.faults.membership import Membership
from harness.plan.plan import Plan


class HasAbilities(Protocol):
    """The part of a system that every schedule needs."""

    @property
    def abilities(self) -> frozenset[Ability]: ...


@runtime_checkable
class BringsScenes(Protocol):
    """A system that names the moments of its nodes and the kinds of their messages, and has scenes made of them."""

    @property
    def scenes(self) -> Mapping[str, Scenes]:
        """Name in the table of faults (`holds`, `moments`) → the scenes that it draws."""
        ...


@runtime_checkable
class DrawsOptions(Protocol):
    """A system with options that change in the course of a run."""

    def draw_options(
        self,
        name: str,
        plan: Plan,
        members: Membership,
        owner: str,
        chance: random.Random,
        before: Iterable[Fault],
    ) -> dict[str, Any] | None:
        """The fields of the fault `name`, which changes options of `members`; None if it can change nothing then.

        `before`: what was drawn so far.
        """
        ...

    def begins_elections(self, plan: Plan, faults: Iterable[Fault]) -> bool:
        """One of these faults begins elections in a cluster that had none."""
        ...


@runtime_checkable
class NamesLogs(Protocol):
    """A system with logs whose last record may be torn by a crash."""

    @property
    def torn_logs(self) -> tuple[str, ...]:
        """Patterns of their names in the folder of a node, such as "*.xlog". `harness.cluster.damaged_files` knows the
        forms of records that are cut and torn."""
        ...
