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


class NamesLogs(Protocol):
    @property
    def torn(self) -> tuple[str, ...]: ...


class BringsScenes(Protocol):
    @property
    def scenes(self) -> Mapping[str, Scenes]: ...


class HasAbilities(Protocol):
    """The parts of a system that every schedule needs (`harness.systems.parts`)."""

    @property
    def abilities(self) -> frozenset[Ability]: ...

    @property
    def logs(self) -> NamesLogs: ...

    @property
    def variety(self) -> BringsScenes: ...


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
