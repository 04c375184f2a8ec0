"""Protocols of the parts of a system that schedules use."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

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


class DrawsOptions(Protocol):
    def drawn(
        self,
        name: str,
        plan: Plan,
        members: Membership,
        owner: str,
        chance: random.Random,
        before: Iterable[Fault],
    ) -> dict[str, Any] | None: ...


class HasAbilities(Protocol):
    """The parts of a system that every schedule needs (`harness.systems.parts`)."""

    @property
    def abilities(self) -> frozenset[Ability]: ...

    @property
    def logs(self) -> NamesLogs: ...

    @property
    def variety(self) -> BringsScenes: ...

    @property
    def settings(self) -> DrawsOptions: ...
