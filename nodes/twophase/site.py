"""The state that all roles of a node share: its identity, the effects of this step, continuations."""

from __future__ import annotations

import random

from nodes.kernel.continuations import Continuations, Then
from nodes.twophase.configuration import Configuration
from nodes.twophase.decisions import Decisions
from nodes.twophase.sometimes import Sometimes

__all__ = ["Site", "Then"]


class Site(Continuations):
    """One node in one life."""

    def __init__(self, configuration: Configuration, decisions: Decisions) -> None:
        super().__init__(configuration.name)
        self.configuration = configuration
        self.decisions = decisions
        self.is_server = configuration.role == "server"
        self.life = 0
        """The number of this start of the process, from 1; on disk before any message leaves."""
        self.chance = random.Random(0)
        self.sometimes = Sometimes()

    def begin(self, life: int) -> None:
        self.life = life
        self.chance = random.Random(f"{self.configuration.seed}/{self.name}/{life}")

    def soon(self, name: str, then: Then) -> None:
        """Call `then` in an event of its own: other messages may come first."""
        self.after(name, self.chance.randrange(self.configuration.step_ns + 1), then)
